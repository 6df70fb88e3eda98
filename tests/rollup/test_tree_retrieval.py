"""Rankings over trees, against plain Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import DataError
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, dense
from memlab.rollup import rollup, tree, trees_of
from memlab.rollup.retrieval import GROUPINGS, SEARCHES
from memlab.select import budget, mmr


@pytest.fixture(scope="module")
def data() -> Dataset:
    return memlab.sample(turns=160)


@pytest.fixture(scope="module")
def bench(data: Dataset) -> Bench:
    return Bench.of(data, encoder="hashing:64", progress=False)


def ranking(run: Run) -> dict[str, list[str]]:
    return dict(run.frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())


def cosine_of(bench: Bench) -> Any:
    """Give cosines as the stage has them: float32 numbers."""
    documents = bench.documents("turn")
    at = {turn: i for i, turn in enumerate(documents.ids)}

    def turn(query: int, name: str) -> float:
        return float(np.float32(bench.query_vectors[query].astype(float) @ documents.vectors()[at[name]].astype(float)))

    def vector(query: int, row: np.ndarray) -> float:
        return float(np.float32(bench.query_vectors[query].astype(float) @ row.astype(float)))

    return turn, vector


def queries(bench: Bench) -> list[tuple[int, str, str]]:
    return [(i, q, s) for i, (q, s) in enumerate(bench.queries.select("query_id", "scope").iter_rows())][::7]


@pytest.mark.parametrize("grouping", ["clusters", "weeks", "mixed"])
@pytest.mark.parametrize("turns", [2, 10**6])
def test_collapsed_gives_the_turns_of_the_best_nodes(bench: Bench, grouping: str, turns: int) -> None:
    got = ranking(tree(bench, grouping=grouping, turns=turns, k=999))
    of_turn, of_vector = cosine_of(bench)
    documents = bench.documents("turn")
    for number, query, scope in queries(bench):
        held = trees_of(bench, [scope], grouping)[scope]
        names = documents.ids[slice(*documents.spans[scope])].tolist()
        own = {name: of_turn(number, name) for name in names}
        best = dict(own)
        for row, vector in zip(held.nodes.iter_rows(named=True), held.vectors, strict=True):
            score = of_vector(number, vector)
            for name in sorted(row["turns"], key=lambda t: -own[t])[:turns]:
                best[name] = max(best[name], score)
        assert got[query] == sorted(names, key=lambda t: (-best[t], -own[t])), query


@pytest.mark.parametrize("grouping", ["clusters", "weeks", "mixed"])
@pytest.mark.parametrize("beam", [1, 3, 10**6])
def test_traversal_goes_down_from_the_top(bench: Bench, grouping: str, beam: int) -> None:
    got = ranking(tree(bench, grouping=grouping, search="traversal", beam=beam, k=999))
    of_turn, of_vector = cosine_of(bench)
    documents = bench.documents("turn")
    for number, query, scope in queries(bench):
        held = trees_of(bench, [scope], grouping)[scope]
        rows = held.nodes.rows(named=True)
        score = {row["node_id"]: of_vector(number, v) for row, v in zip(rows, held.vectors, strict=True)}
        names = documents.ids[slice(*documents.spans[scope])].tolist()
        depth = dict.fromkeys(names, 0)
        looked_at = {row["node_id"] for row in rows if row["parent"] is None}
        height = {row["node_id"]: row["level"] + (row["kind"] != "cluster") for row in rows}
        for layer, level in enumerate(sorted(set(height.values()), reverse=True), 1):
            here = [r for r in rows if height[r["node_id"]] == level and r["node_id"] in looked_at]
            for row in sorted(here, key=lambda r: -score[r["node_id"]])[:beam]:
                looked_at |= set(row["children"])
                depth |= dict.fromkeys(row["turns"], layer)
        assert got[query] == sorted(names, key=lambda t: (-depth[t], -of_turn(number, t))), query


def test_without_a_tree_it_is_dense(bench: Bench) -> None:
    for search in SEARCHES:
        assert ranking(tree(bench, grouping="none", search=search, k=50)) == ranking(dense(bench, k=50))


@pytest.mark.parametrize("search", SEARCHES)
def test_a_run_like_any_other(bench: Bench, search: str) -> None:
    run = tree(bench, grouping="weeks", search=search, k=30)
    assert run.frame.group_by("query_id").agg(pl.col("doc_id").n_unique())["doc_id"].unique().to_list() == [30]
    scores = run.frame.with_columns(down=pl.col("score").diff().over("query_id")).drop_nulls("down")
    assert (scores["down"] < 0).all()
    spent = budget(run, bench, tokens=100).frame
    assert 0 < spent.height < run.frame.height
    assert mmr(run, bench).frame.height == run.frame.height
    sessions = tree(bench, grouping="weeks", search=search, level="session", k=5)
    assert sessions.level == "session"
    assert sessions.frame["rank"].max() == min(5, bench.sessions["scope"].value_counts()["count"].max())
    first = sessions.frame.filter(pl.col("rank") == 1)["doc_id"].to_list()
    best = run.frame.filter(pl.col("rank") == 1)["doc_id"]
    home = dict(bench.turns.select("turn_id", "session_id").iter_rows())
    assert first == [home[turn] for turn in best]


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_one_query_ranks_as_in_the_batch_and_one_scope_as_among_others(
    data: Dataset, bench: Bench, grouping: str
) -> None:
    whole = ranking(tree(bench, grouping=grouping, k=20))
    for number, query, _ in queries(bench)[:3]:
        alone = bench.with_queries(bench.queries[number : number + 1])
        assert ranking(tree(alone, grouping=grouping, k=20)) == {query: whole[query]}
    if grouping != "clusters":  # held by mixed too, and slow
        other = Bench.of(data.take([data.scopes[1]]), encoder="hashing:64", progress=False)
        of_scope = ranking(tree(other, grouping=grouping, k=20))
        assert of_scope == {query: whole[query] for query in of_scope}


def test_a_tree_reads_nothing_from_ids(data: Dataset, bench: Bench) -> None:
    old = [*data.scopes, *data.sessions["session_id"], *data.turns["turn_id"], *data.questions["query_id"]]
    numbers = np.random.default_rng(0).permutation(len(old))
    names = {name: f"x{number:04d}" for name, number in zip(old, numbers, strict=True)}

    def swap(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        return rows.with_columns(pl.col(column).replace_strict(names) for column in columns)

    other = replace(
        data,
        turns=swap(data.turns, "turn_id", "scope", "session_id"),
        sessions=swap(data.sessions, "session_id", "scope"),
        questions=swap(data.questions, "query_id", "scope").clear(),
    )
    asked = swap(bench.queries, "query_id", "scope")
    renamed = Bench.of(other, encoder="hashing:64", progress=False).with_queries(asked)
    expected = {names[q]: [names[t] for t in turns] for q, turns in ranking(tree(bench, grouping="mixed")).items()}
    assert ranking(tree(renamed, grouping="mixed")) == expected


def test_trees_are_built_once_for_a_bench(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for grouping in GROUPINGS:
        tree(bench, grouping=grouping)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr("memlab.rollup.retrieval.grow", never)
    monkeypatch.setattr("memlab.rollup.retrieval.rollup", never)
    for grouping in GROUPINGS:
        tree(bench.with_queries(bench.queries.head(2)), grouping=grouping, search="traversal")


def test_no_queries(bench: Bench) -> None:
    assert tree(bench.with_queries(bench.queries.clear()), grouping="weeks").frame.is_empty()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"grouping": "months"}, "grouping is 'months'; choose from clusters, weeks, mixed, none"),
        ({"search": "greedy"}, "search is 'greedy'; choose from"),
        ({"turns": 0}, "turns=0"),
        ({"beam": 0}, "beam=0"),
        ({"k": 0}, "k=0"),
    ],
)
def test_values_that_the_stage_cannot_use(bench: Bench, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        tree(bench, **parameters)


def test_embeddings_are_needed_for_a_tree(data: Dataset) -> None:
    with pytest.raises(DataError, match="make the bench with an encoder"):
        tree(Bench.of(data, encoder=None), grouping="none")


def test_sessions_keep_the_summaries_that_they_come_with(data: Dataset) -> None:
    summaries = [f"The talk number {n} was about zebras." for n in range(data.sessions.height)]
    told = replace(data, sessions=data.sessions.with_columns(summary=pl.Series(summaries)))
    bench = Bench.of(told, encoder="hashing:64", progress=False)
    held = trees_of(bench, [data.scopes[0]], "weeks", given=True)[data.scopes[0]].nodes
    assert held.filter(kind="session")["text"].to_list() == summaries[: held.filter(kind="session").height]
    own = trees_of(bench, [data.scopes[0]], "weeks")[data.scopes[0]].nodes
    assert not own["text"].str.contains("zebras").any()
    assert ranking(tree(bench, grouping="weeks", given=True)) != ranking(tree(bench, grouping="weeks"))


def test_days_begin_where_the_owner_lives(data: Dataset, bench: Bench) -> None:
    nodes = trees_of(bench, data.scopes, "weeks", tz="Pacific/Auckland")
    expected = rollup(data.turns, sessions=data.sessions, tz="Pacific/Auckland")
    assert pl.concat(nodes[scope].nodes for scope in data.scopes)["node_id"].sort().equals(expected["node_id"].sort())
    with pytest.raises(DataError, match="no time zone"):
        tree(bench, grouping="weeks", tz="Mars/North")
