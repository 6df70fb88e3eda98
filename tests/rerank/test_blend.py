"""Position-aware blending against the formula, one document at a time, and its laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.rerank import light, position_aware
from memlab.retrieve import Bench, bm25, sessions_from_turns

BENCH = Bench.of(memlab.sample(["owen"], turns=200), encoder=None)
IDS = BENCH.documents("turn").ids


def run_of(scores: list[list[float]], *, seed: int | None = None) -> Run:
    """Rank the first turns by given scores, one list a query; a seed mixes which turn gets which score."""
    order = np.arange(len(IDS)) if seed is None else np.random.default_rng(seed).permutation(len(IDS))
    query = np.repeat([f"q{i}" for i in range(len(scores))], [len(s) for s in scores])
    documents = np.concatenate([np.zeros(0, object), *(IDS[np.sort(order[: len(s)])] for s in scores)])
    values = np.concatenate([np.zeros(0), *map(np.array, scores)])
    return run_from_scores(query, documents, values.astype(float), level="turn", k=500)


def by_hand(run: Run, reranked: Run, weights: tuple[float, ...], by: str) -> dict[str, list[str]]:
    wanted = {}
    for (query,), rows in run.frame.group_by("query_id", maintain_order=True):
        of_reranker = dict(reranked.frame.filter(pl.col("query_id") == query).select("doc_id", "score").iter_rows())
        scores: dict[str, float] = {}
        for document, rank, score in rows.select("doc_id", "rank", "score").iter_rows():
            w = weights[0] if rank <= 3 else weights[1] if rank <= 10 else weights[2]
            retrieval = 1 / rank if by == "rank" else scale(score, rows["score"].to_list())
            second = scale(of_reranker[document], list(of_reranker.values())) if document in of_reranker else 0.0
            scores[document] = w * retrieval + (1 - w) * second
        wanted[str(query)] = sorted(scores, key=lambda d: -scores[d])
    return wanted


def scale(value: float, values: list[float]) -> float:
    return (value - min(values)) / (max(values) - min(values)) if max(values) > min(values) else 1.0


def order_of(run: Run) -> dict[str, list[str]]:
    return dict(run.frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())


def test_the_published_weights() -> None:
    """Twelve places: what the reranker puts first from place 12 passes all but the first; 1/rank is qmd's score."""
    run = run_of([[12.0 - i for i in range(12)]])
    first_last = run_of([[0.0] * 11 + [1.0]])
    got = position_aware(run, first_last, BENCH, by="rank").frame
    ids = run.frame["doc_id"].to_list()
    assert got["doc_id"].to_list() == [ids[0], ids[11], *ids[1:11]]
    expected = [0.75, 0.4 / 12 + 0.6, 0.75 / 2, 0.75 / 3, *(0.6 / r for r in range(4, 11)), 0.4 / 11]
    assert got["score"].to_list() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("by", ["rank", "score"])
@pytest.mark.parametrize("weights", [(0.75, 0.60, 0.40), (0.2, 0.9, 0.5), (0.0, 0.0, 0.0)])
def test_the_formula_by_hand(by: str, weights: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    sizes = (1, 2, 40)
    run = run_of([rng.standard_normal(n).tolist() for n in sizes])
    reranked = run_of([rng.standard_normal(n).tolist() for n in (1, 2, 9)])
    got = position_aware(run, reranked, BENCH, weights=weights, by=by)
    assert order_of(got) == by_hand(run, reranked, weights, by)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=30), max_size=4),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.sampled_from(["rank", "score"]),
)
def test_laws(scores: list[list[float]], weights: list[float], by: str) -> None:
    run = run_of(scores)
    same = position_aware(run, run, BENCH, weights=(1, 1, 1), by=by)
    assert order_of(same) == order_of(run)
    other = run_of([s[::-1] for s in scores])
    mixed = position_aware(run, other, BENCH, weights=weights, by=by)
    assert {q: sorted(d) for q, d in order_of(mixed).items()} == {q: sorted(d) for q, d in order_of(run).items()}
    assert mixed.frame.select(pl.col("score").diff().over("query_id").drop_nulls() < 0).to_series().all()
    # The scale of the reranker's scores is of no account; a power of two keeps the steps between ties exact.
    stretched = replace(other, frame=other.frame.with_columns(score=pl.col("score") * 8))
    assert order_of(position_aware(run, stretched, BENCH, weights=weights, by=by)) == order_of(mixed)
    for query in list(order_of(run))[:2]:
        alone = [replace(r, frame=r.frame.filter(pl.col("query_id") == query)) for r in (run, other)]
        assert order_of(position_aware(*alone, BENCH, weights=weights, by=by)) == {query: order_of(mixed)[query]}


def test_weights_of_none_give_the_reranker_the_word() -> None:
    run = run_of([[3.0, 2.0, 1.0, 0.0]])
    other = run_of([[0.0, 1.0, 2.0, 3.0]])
    assert order_of(position_aware(run, other, BENCH, weights=(0, 0, 0))) == order_of(other)


def test_what_the_reranker_drops_and_what_it_brings() -> None:
    run = run_of([[3.0, 2.0, 1.0]])
    brought = run_of([[0.0, 1.0, 2.0, 3.0, 4.0]])
    assert set(order_of(position_aware(run, brought, BENCH))["q0"]) == set(order_of(run)["q0"])
    dropped = replace(brought, frame=brought.frame.filter(pl.col("doc_id") == run.frame["doc_id"][2]))
    assert order_of(position_aware(run, dropped, BENCH, weights=(0, 0, 0)))["q0"][0] == run.frame["doc_id"][2]
    nothing = replace(brought, frame=brought.frame.head(0))
    assert order_of(position_aware(run, nothing, BENCH)) == order_of(run)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_on_talk(level: str) -> None:
    turns = bm25(BENCH, k=40)
    run = turns if level == "turn" else sessions_from_turns(turns, BENCH)
    reranked = light(run, BENCH)
    got = position_aware(run, reranked, BENCH)
    assert order_of(got) == by_hand(run, reranked, (0.75, 0.60, 0.40), "score")
    assert not got.frame["doc_id"].equals(run.frame["doc_id"])
    assert got.level == level


def test_what_goes_in_is_kept() -> None:
    run = replace(run_of([[3.0, 2.0]]), name="mine", provenance={"x": 1})
    before = run.frame.clone()
    got = position_aware(run, run, BENCH)
    assert (got.name, got.provenance) == ("mine", {"x": 1})
    assert run.frame.equals(before)
    assert got.text_of is not None
    none = replace(run, frame=run.frame.head(0))
    assert position_aware(none, none, BENCH).frame.equals(none.frame)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"weights": (1, 1)}, r"weights=\(1, 1\); give three"),
        ({"weights": (0.5, 0.5, 1.1)}, "give three in"),
        ({"weights": (0.5, float("nan"), 0.1)}, "give three in"),
        ({"by": "order"}, "by is 'order'"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], message: str) -> None:
    run = run_of([[3.0, 2.0]])
    with pytest.raises(DataError, match=message):
        position_aware(run, run, BENCH, **wrong)


def test_levels_may_not_differ() -> None:
    run = bm25(BENCH, k=5)
    with pytest.raises(DataError, match="ranks turns and the reranked one sessions"):
        position_aware(run, sessions_from_turns(run, BENCH), BENCH)
