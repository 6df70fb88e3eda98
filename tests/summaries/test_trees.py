"""Trees of clusters, and retrieval through weeks and clusters, against plain Python."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab import llm
from memlab.errors import DataError
from memlab.llm import recording
from memlab.records import Dataset, Run, Turn, frame
from memlab.retrieve import Bench
from memlab.sessions import sessions_of
from memlab.summaries import GROUPS, grow, nearest_summaries, tree, tree_of
from memlab.summaries.raptor import FEW, LAYERS

Make = Callable[..., pl.DataFrame]
THINGS = ("boat", "piano", "lease", "tulips", "marathon", "dentist")


def talked(n: int, scope: str = "u", session: int = 10) -> list[Turn]:
    said = [f"I paid ${n % 90 + 5} for the {THINGS[n * n % 6]} and the {THINGS[n % 5]}, visit {n}." for n in range(n)]
    return [
        Turn(f"{scope}/{i // session}/{i}", scope, f"{scope}/{i // session}", i % session, "Mel", "user", t)
        for i, t in enumerate(said)
    ]


def bench_of(turns: list[Turn], questions: int = 6) -> Bench:
    rows = frame(Turn, turns)
    bench = Bench.of(Dataset("made", "made", rows, sessions_of(rows)), encoder="hashing:64", progress=False)
    asked = [
        (scope, f"What did the {THINGS[n % 6]} cost at visit {7 * n}?")
        for scope in rows["scope"].unique(maintain_order=True)
        for n in range(questions)
    ]
    return bench.with_queries(pl.DataFrame(asked, schema=["scope", "text"], orient="row"))


@pytest.fixture(scope="module")
def bench() -> Bench:
    return bench_of([*talked(60), *talked(45, "v")])


def ranking(run: Run) -> dict[str, list[str]]:
    return dict(run.frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())


def check(nodes: pl.DataFrame, turns: pl.DataFrame) -> None:
    """Check what holds for every tree."""
    rows = {row["node_id"]: row for row in nodes.iter_rows(named=True)}
    assert len(rows) == nodes.height
    place = {turn: n for n, turn in enumerate(turns["turn_id"])}
    of_level: dict[tuple[str, int], set[str]] = {}
    for row in rows.values():
        assert row["turns"] == sorted(set(row["turns"]), key=place.__getitem__)
        assert {turn for ids in row["evidence"] for turn in ids} <= set(row["turns"])
        below = [rows[child]["turns"] if row["level"] > 1 else [child] for child in row["children"]]
        assert set(row["turns"]) == {turn for ids in below for turn in ids}
        if row["parent"]:
            assert row["node_id"] in rows[row["parent"]]["children"]
        of_level.setdefault((row["scope"], row["level"]), set()).update(row["turns"])
    scopes = dict(turns.group_by("scope").agg("turn_id").iter_rows())
    assert all(held == set(scopes[scope]) for (scope, _), held in of_level.items()), "a layer holds every turn"


@settings(max_examples=15)
@given(st.integers(1, 40), st.integers(0, 3), st.booleans())
def test_every_input_ends_in_a_tree(n: int, seed: int, equal: bool) -> None:
    turns = frame(Turn, talked(n))
    vectors = np.random.default_rng(seed).normal(size=(n, 64)).astype(np.float32)
    vectors = np.ones_like(vectors) if equal else vectors
    made = grow(turns, encoder="hashing:64", vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    assert made.nodes.is_empty() == (n <= FEW)
    assert made.nodes["level"].max() in (None, *range(1, LAYERS + 1))
    assert len(made.vectors) == made.nodes.height
    check(made.nodes, turns)


def test_scopes_have_trees_of_their_own(bench: Bench) -> None:
    made = grow(bench.turns, encoder="hashing:64")
    check(made.nodes, bench.turns)
    alone = grow(bench.turns.filter(scope="v"), encoder="hashing:64")
    assert alone.nodes["node_id"].to_list() == made.nodes.filter(scope="v")["node_id"].to_list()
    with pytest.raises(DataError, match="one for each"):
        grow(bench.turns, encoder="hashing:64", vectors=np.ones((2, 64), np.float32))


def test_a_model_writes_clusters_of_clusters(model: Any) -> None:
    turns, lab = frame(Turn, talked(60)), model()
    nodes = grow(turns, encoder="hashing:64", service=lab).nodes
    assert nodes["service"].unique().to_list() == ["lab"]
    check(nodes, turns)
    assert {asked.task for asked in lab.asked} == {"cluster", GROUPS}


def test_recorded_trees_are_those_of_the_recording(
    model: Any, record_rounds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, turns = tmp_path / "recorded.jsonl", frame(Turn, talked(60))
    monkeypatch.setattr(recording, "DEFAULT", (path,))
    record_rounds(partial(grow, turns, encoder="hashing:64"), model(), path)
    # No group is computed where all are recorded.
    monkeypatch.setattr("memlab.summaries.raptor.mixture_memberships", None)
    nodes = grow(turns, encoder="hashing:64", service=llm.RECORDED).nodes
    # Other vectors, as another machine has them, would make other groups.
    other = np.random.default_rng(0).normal(size=(60, 64)).astype(np.float32)
    again = grow(turns, encoder="hashing:64", vectors=other, service=llm.RECORDED).nodes
    assert again.equals(nodes)
    assert nodes["service"].unique().to_list() == ["recorded"]


@pytest.mark.parametrize("over", ["weeks", "clusters", "both"])
@pytest.mark.parametrize("turns", [2, 10**6])
@pytest.mark.parametrize("k", [7, 999])
def test_turns_are_ranked_by_the_best_node_that_gives_them(bench: Bench, over: str, turns: int, k: int) -> None:
    levels: Any = ("turn", "session")
    got, of_sessions = (ranking(tree(bench, over=over, turns=turns, k=k, level=level)) for level in levels)
    documents, made = bench.documents("turn"), tree_of(bench, over)
    home = dict(bench.turns.select("turn_id", "session_id").iter_rows())
    for number, (query, scope) in enumerate(bench.queries.select("query_id", "scope").iter_rows()):
        asked = bench.query_vectors[number].astype(float)
        span = slice(*documents.spans[scope])
        names = documents.ids[span].tolist()
        cosines = (documents.vectors()[span].astype(float) @ asked).astype(np.float32)
        own = dict(zip(names, cosines.tolist(), strict=True))
        best = dict(own)
        for row, vector in zip(made.nodes.iter_rows(named=True), made.vectors, strict=True):
            if row["scope"] != scope:
                continue
            score = float(np.float32(vector.astype(float) @ asked))
            for name in sorted(row["turns"], key=lambda t: -own[t])[:turns]:
                best[name] = max(best[name], score)
        order = sorted(names, key=lambda t: (-best[t], -own[t]))
        assert got[query] == order[:k]
        first = {s: max(best[t] for t in names if home[t] == s) for s in dict.fromkeys(home[t] for t in order)}
        assert [first[s] for s in of_sessions[query]] == sorted(first.values(), reverse=True)[:k]


def test_the_summaries_themselves(bench: Bench) -> None:
    found = nearest_summaries(bench, over="weeks", k=2)
    assert found["rank"].to_list() == [1, 2] * bench.queries.height
    asked = dict(bench.queries.select("query_id", "scope").iter_rows())
    assert all(asked[query] == scope for query, scope in found.select("query_id", "scope").iter_rows())
    made = tree_of(bench, "weeks")
    scores = np.where(made.nodes["scope"] == "u", made.vectors @ bench.query_vectors[0], -1)
    assert found["node_id"][0] == made.nodes["node_id"][int(scores.argmax())]


def test_a_question_alone_ranks_as_in_the_batch_and_ids_do_not_matter(bench: Bench) -> None:
    whole = ranking(tree(bench, over="both", k=9))
    alone = bench.with_queries(bench.queries[7:8])
    assert ranking(tree(alone, over="both", k=9)) == {query: whole[query] for query in alone.queries["query_id"]}
    swapped = bench_of([replace(t, turn_id=f"x{hash(t.turn_id) % 10**9}") for t in (*talked(60), *talked(45, "v"))])
    names = dict(zip(swapped.turns["turn_id"], bench.turns["turn_id"], strict=True))
    assert [[names[t] for t in ids] for ids in ranking(tree(swapped, over="weeks")).values()] == list(
        ranking(tree(bench, over="weeks")).values()
    )


def test_one_questions_working_set_at_a_time() -> None:
    small, large = (bench_of(talked(2_000), questions) for questions in (3, 60))
    peaks = []
    for each in (small, large):
        tree_of(each, "weeks")
        assert each.query_vectors is not None
        tracemalloc.start()
        for level in ("turn", "session"):
            tree(each, over="weeks", k=10, level=level)  # type: ignore[arg-type]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    one_matrix = 60 * 2_000 * 8
    assert peaks[1] - peaks[0] < one_matrix / 2


def test_trees_are_grown_once_for_a_bench(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(bench, over="both")
    for maker in ("grow", "rollup"):
        monkeypatch.setattr(sys.modules["memlab.summaries.tree"], maker, None)
    tree(bench.with_queries(bench.queries.head(2)), over="both", level="session")


def test_the_stage_says_what_no_model_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "DEFAULT", ())
    with pytest.warns(UserWarning, match="not recorded"):
        tree(bench_of(talked(12)), over="weeks", service=llm.RECORDED)


@pytest.mark.parametrize("wrong", [{"over": "months"}, {"turns": 0}, {"k": 0}, {"over": "weeks", "tz": "Mars/North"}])
def test_values_that_the_stage_cannot_use(bench: Bench, wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        tree(bench, **wrong)


def test_it_needs_an_encoder_and_no_questions_are_no_error(bench: Bench) -> None:
    assert tree(bench.with_queries(bench.queries.clear()), over="weeks").frame.is_empty()
    turns = frame(Turn, talked(12))
    bare = Bench.of(Dataset("made", "made", turns, sessions_of(turns)), encoder=None)
    with pytest.raises(DataError, match="encoder"):
        tree(bare.with_queries(pl.DataFrame({"scope": ["u"], "text": ["What?"]})))
