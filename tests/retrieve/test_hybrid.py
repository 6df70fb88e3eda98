"""Fusion against reciprocal rank fusion in plain Python, and session rankings from turn rankings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest

from memlab.errors import DataError
from memlab.records import Dataset, Level, Run
from memlab.retrieve import Bench, bm25, dense, hybrid, rrf, sessions_from_turns

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture(scope="module", params=["world", "talk"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench.of(request.getfixturevalue(request.param), encoder="hashing:64")


def fused(runs: Sequence[Run], weights: Sequence[float], rrf_k: float, k: int) -> dict[str, list[str]]:
    """Cormack's formula, a document at a time; what a run lists at no positive score gains nothing from it."""
    gains: dict[str, dict[str, float]] = defaultdict(dict)
    for run, weight in zip(runs, weights, strict=True):
        for query, document, rank, score in run.frame.iter_rows():
            before = gains[query].get(document, 0.0)
            gains[query][document] = before + (weight / (rrf_k + rank) if score > 0 else 0.0)
    return {q: sorted(held, key=lambda d: -held[d])[:k] for q, held in gains.items()}


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize(("k", "weights"), [(200, (1.0, 1.0)), (5, (1.0, 1.0)), (50, (2, 1)), (9, (1, 0)), (9, (0, 0))])
def test_rankings_are_fused_by_reciprocal_ranks(
    bench: Bench, ranking: Ranking, level: Level, k: int, weights: tuple[float, float]
) -> None:
    runs = [dense(bench, level=level, k=k), bm25(bench, level=level, k=k)]
    got = rrf(runs, weights=weights, k=k)
    assert ranking(got) == fused(runs, weights, 60, k)
    assert got.level == level
    if weights == (1.0, 1.0):
        assert got.frame.equals(hybrid(bench, level=level, k=k).frame)


def test_documents_that_only_fill_places_gain_nothing(world: Dataset, ranking: Ranking) -> None:
    bench = Bench.of(world, encoder="hashing:64")
    unknown = "ann/q2"
    assert ranking(hybrid(bench))[unknown] == ranking(rrf([dense(bench), bm25(bench)], weights=[1, 0]))[unknown]


def test_rankings_that_cannot_be_fused(bench: Bench) -> None:
    turns, sessions = bm25(bench, k=3), bm25(bench, level="session", k=3)
    with pytest.raises(DataError, match="runs of turns and runs of sessions cannot be fused"):
        rrf([turns, sessions])
    with pytest.raises(DataError, match="2 runs have weights"):
        rrf([turns, turns], weights=[1])
    with pytest.raises(DataError, match="0 runs"):
        rrf([])
    with pytest.raises(DataError, match="none negative"):
        rrf([turns], weights=[-1])
    with pytest.raises(DataError, match="not a finite number"):
        rrf([turns], weights=[float("nan")])


def test_sessions_rank_by_their_best_turn(bench: Bench, ranking: Ranking) -> None:
    of_turn = dict(bench.turns.select("turn_id", "session_id").iter_rows())
    for run in (dense(bench, k=7), bm25(bench), hybrid(bench)):
        expected = {q: list(dict.fromkeys(of_turn[d] for d in ids)) for q, ids in ranking(run).items()}
        got = sessions_from_turns(run, bench)
        assert ranking(got) == expected
        assert got.level == "session"
        assert ranking(sessions_from_turns(run, bench, k=2)) == {q: ids[:2] for q, ids in expected.items()}
    with pytest.raises(DataError, match="the run ranks sessions"):
        sessions_from_turns(sessions_from_turns(run, bench), bench)
