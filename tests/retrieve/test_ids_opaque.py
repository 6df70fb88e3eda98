"""Ids carry no information: in some benchmarks they give the label away, so no ranking may depend on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memlab.pipelines import pipeline
from memlab.records import Dataset, Level, Run
from memlab.retrieve import Bench, sessions_from_turns

PIPELINES = [
    "dense(k=3)",
    "bm25(k=3)",
    "hybrid(k=4)",
    "hybrid(k=6, weights=(2, 0))",
    "bm25 | mmr(lambda_=0.5, k=5)",
    "dense | mmr(lambda_=0.0)",
    "hybrid | by_cluster(n_clusters=3, candidates=6)",
    "bm25 | by_cluster(n_clusters=4)",
    "bm25 | budget(tokens=12)",
    "combsum(turn=(0, 1, 0), session=(1, 0, 0), k=7)",
    "tree(over='weeks')",
    "two_stage(k=99, sessions=2, turns=2)",
    "two_stage(rerank=False, by='turn')",
    "hybrid | light(window=2)",
    "hybrid | by_cluster(clustering='hdbscan', min_cluster_size=2)",
    "hybrid | expand_cluster(seeds=2, cluster_size=2)",
    "hybrid | fill_sessions(sessions=2)",
    "hybrid | adaptive(k=3, typical=4)",
    "hybrid | budget(tokens=60, content='sentences', limit=12)",
    "hybrid | budget(tokens=60, content='head', limit=12)",
    "hybrid(k=9) | mmr(k=4) | by_cluster(n_clusters=2, candidates=5) | budget(tokens=25)",
]
Ranking = Callable[[Run], dict[str, list[str]]]
Renamed = Callable[[Dataset, int], tuple[Dataset, dict[str, str]]]


@pytest.fixture(scope="module", params=["world", "talk"])
def pairs(request: pytest.FixtureRequest, renamed: Renamed) -> list[tuple[Bench, Bench, dict[str, str]]]:
    data = request.getfixturevalue(request.param)
    data = data.take(data.scopes[: 1 if request.param == "talk" else 3])
    plain = Bench.of(data, encoder="hashing:32")
    made = [renamed(data, seed) for seed in ((1, 2) if request.param == "world" else (1,))]
    return [(plain, Bench.of(other, encoder="hashing:32"), names) for other, names in made]


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize("text", PIPELINES)
def test_renaming_every_id_renames_the_ranking_and_nothing_else(
    pairs: list[tuple[Bench, Bench, dict[str, str]]], ranking: Ranking, text: str, level: Level
) -> None:
    one = pipeline(text).run(pairs[0][0], level=level)
    for _, other, names in pairs:
        two = pipeline(text).run(other, level=level)
        expected = {names[q]: [names[d] for d in documents] for q, documents in ranking(one).items()}
        assert list(ranking(two).items()) == list(expected.items())
        assert two.frame["score"].equals(one.frame["score"])


@pytest.mark.parametrize("text", ["dense(k=3, path='indexed')", "bm25(k=3, path='indexed')"])
def test_renaming_on_the_indexed_path(
    tmp_path: Path, world: Dataset, renamed: Renamed, ranking: Ranking, text: str
) -> None:
    other, names = renamed(world, 1)
    runs = []
    for name, data in (("one", world), ("two", other)):
        bench = Bench.of(data, encoder="hashing:32", store=str(tmp_path / name))
        assert bench.turn_vectors is not None  # encoded here
        bench.store.search.create_indexes(bench.encoder)
        runs.append(ranking(pipeline(text).run(bench)))
    assert runs[1] == {names[q]: [names[d] for d in documents] for q, documents in runs[0].items()}


def test_renaming_and_sessions_from_turns(pairs: list[tuple[Bench, Bench, dict[str, str]]], ranking: Ranking) -> None:
    for plain, other, names in pairs:
        one, two = (sessions_from_turns(pipeline("hybrid(k=7)").run(b), b, k=3) for b in (plain, other))
        assert ranking(two) == {names[q]: [names[d] for d in ids] for q, ids in ranking(one).items()}


def test_the_renaming_does_change_the_order_of_ids(world: Dataset, renamed: Renamed) -> None:
    for seed in (1, 2, 3):
        other, names = renamed(world, seed)
        assert len(set(names.values())) == len(names)
        for table, column in (("turns", "turn_id"), ("sessions", "session_id"), ("questions", "query_id")):
            assert getattr(world, table)[column].is_sorted()
            assert not getattr(other, table)[column].is_sorted()


@pytest.mark.parametrize(
    "text", ["hybrid", "hybrid | mmr", "bm25 | by_cluster(n_clusters=3)", "dense | budget(tokens=9)"]
)
def test_scopes_in_another_order_give_the_same_rankings(world: Dataset, ranking: Ranking, text: str) -> None:
    from memlab.records import concat

    backwards = concat(world.take([scope]) for scope in reversed(world.scopes))
    assert backwards.scopes == world.scopes[::-1]
    for level in ("turn", "session"):
        one, two = (pipeline(text).run(Bench.of(d, encoder="hashing:32"), level=level) for d in (world, backwards))
        assert ranking(one) == ranking(two)
