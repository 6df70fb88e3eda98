"""Trees of clusters, and retrieval through weeks and clusters, against plain Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summarised import Model

from memlab import llm
from memlab.errors import DataError
from memlab.llm import recorded_answers
from memlab.records import Dataset, Turn, frame
from memlab.retrieve import Bench
from memlab.sessions import sessions_of
from memlab.summaries import GROUPS, build_raptor_tree, nearest_summaries, summary_tree, tree
from memlab.summaries.raptor_trees import MAX_LAYERS, MAX_TOP_NODES

THINGS = ("boat", "piano", "lease", "tulips", "marathon", "dentist")


def talked(n: int, scope: str = "u") -> list[Turn]:
    said = [
        f"I paid ${n % 90 + 5} for the {THINGS[n * n % 6]} and the {THINGS[n % 5]}, visit {n}."
        for n in range(n)
    ]
    ids = [(f"{scope}/{i // 10}", i, text) for i, text in enumerate(said)]
    return [Turn(f"{at}/{i}", scope, at, i % 10, "Mel", "user", text) for at, i, text in ids]


def bench_of(turns: list[Turn], encoder: str | None = "hashing:64") -> Bench:
    rows = frame(Turn, turns)
    bench = Bench.of(
        Dataset("made", "made", rows, sessions_of(rows)), encoder=encoder, progress=False
    )
    about = [f"What did the {thing} cost at visit {7 * n}?" for n, thing in enumerate(THINGS)]
    asked = [(scope, text) for scope in rows["scope"].unique(maintain_order=True) for text in about]
    return bench.with_queries(pl.DataFrame(asked, schema=["scope", "text"], orient="row"))


@pytest.fixture(scope="module")
def bench() -> Bench:
    return bench_of([*talked(60), *talked(45, "v")])


def check(nodes: pl.DataFrame, turns: pl.DataFrame) -> None:
    """Check what holds for every tree."""
    rows = {row["node_id"]: row for row in nodes.iter_rows(named=True)}
    assert len(rows) == nodes.height
    place = {turn: n for n, turn in enumerate(turns["turn_id"])}
    for row in rows.values():
        assert row["turns"] == sorted(set(row["turns"]), key=place.__getitem__)
        assert {turn for ids in row["evidence"] for turn in ids} <= set(row["turns"])
        below = [rows[child]["turns"] if row["level"] > 1 else [child] for child in row["children"]]
        assert set(row["turns"]) == {turn for ids in below for turn in ids}
        assert not row["parent"] or row["node_id"] in rows[row["parent"]]["children"]
    layers = nodes.explode("turns").group_by("scope", "level").agg(pl.col("turns").n_unique())
    whole = dict(turns.group_by("scope").len().iter_rows())
    assert all(n == whole[scope] for scope, _, n in layers.iter_rows()), "a layer holds every turn"


@settings(max_examples=5)
@given(st.integers(1, 40), st.integers(0, 3), st.booleans())
def test_every_input_ends_in_a_tree(n: int, seed: int, equal: bool) -> None:
    turns = frame(Turn, talked(n))
    vectors = (
        np.random.default_rng(seed).normal(scale=not equal, size=(n, 64)).astype(np.float32) + equal
    )
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    made = build_raptor_tree(bench_of(talked(n)).with_changes(vectors=unit))
    assert made.nodes.is_empty() == (n <= MAX_TOP_NODES)
    assert made.nodes["level"].max() in (None, *range(1, MAX_LAYERS + 1))
    assert len(made.vectors) == made.nodes.height
    check(made.nodes, turns)
    with pytest.raises(DataError, match="one for each"):
        build_raptor_tree(bench_of(talked(n)).with_changes(vectors=vectors[1:]))
    with pytest.raises(DataError, match="no encoder"):
        build_raptor_tree(bench_of(talked(n), encoder=None))


def test_a_model_writes_clusters_of_clusters_and_recorded_trees_are_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, bench, lab = tmp_path / "recorded.jsonl", bench_of(talked(60)), Model()
    nodes = build_raptor_tree(bench, service=lab).nodes
    check(nodes, bench.turns)
    assert {asked.task for asked in lab.asked} == {"cluster", GROUPS}
    for each in lab.asked:
        row = {"key": each.key, "answer": lab.answer(each).value.model_dump()}
        with path.open("a") as out:
            print(json.dumps(row), file=out)
    monkeypatch.setattr(recorded_answers, "DEFAULT_RECORDINGS", (path,))
    # Other vectors, as another machine has them, would make other groups; none are computed where
    # all are recorded.
    monkeypatch.setattr("memlab.summaries.raptor_trees.mixture_memberships", None)
    other = np.random.default_rng(0).normal(size=(60, 64)).astype(np.float32)
    again = build_raptor_tree(bench.with_changes(vectors=other), service=llm.RECORDED).nodes
    assert again.drop("service").equals(nodes.drop("service"))
    assert again["service"].unique().to_list() == ["recorded"]


@pytest.mark.parametrize(("over", "turns", "k"), [("weeks", 2, 999), ("both", 10**6, 7)])
def test_turns_are_ranked_by_the_best_node_that_gives_them(
    bench: Bench, over: str, turns: int, k: int
) -> None:
    run, documents, made = (
        tree(bench, over=over, turns=turns, k=k),
        bench.documents("turn"),
        summary_tree(bench, over),
    )
    check(made.nodes.filter(kind="cluster"), bench.turns)
    nearest = nearest_summaries(bench, over=over, k=2)
    for asked, (query, scope) in zip(
        bench.query_vectors, bench.queries.select("query_id", "scope").rows(), strict=True
    ):
        span = slice(*documents.spans[scope])
        own = dict(
            zip(
                documents.ids[span].tolist(),
                (documents.vectors()[span] @ asked).tolist(),
                strict=True,
            )
        )
        best, summaries = dict(own), dict[str, float]()
        for row, vector in zip(made.nodes.iter_rows(named=True), made.vectors, strict=True):
            if row["scope"] == scope:
                summaries[row["node_id"]] = float(vector @ asked)
                for name in sorted(row["turns"], key=lambda t: -own[t])[:turns]:
                    best[name] = max(best[name], summaries[row["node_id"]])
        found = [summaries[node] for node in nearest.filter(query_id=query)["node_id"]]
        assert found == pytest.approx(sorted(summaries.values(), reverse=True)[:2], abs=1e-6)
        ranked = [best[turn] for turn in run.frame.filter(query_id=query)["doc_id"]]
        assert ranked == pytest.approx(sorted(best.values(), reverse=True)[:k], abs=1e-6)


def test_what_the_stage_cannot_use(bench: Bench) -> None:
    with pytest.warns(UserWarning, match="not recorded"):
        tree(bench, over="weeks", service=llm.RECORDED)
    for wrong in (
        {"over": "months"},
        {"turns": 0},
        {"k": 0},
        {"over": "weeks", "tz": "Mars/North"},
    ):
        with pytest.raises(DataError):
            tree(bench, **wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="encoder"):
        tree(bench_of(talked(12), encoder=None))
    assert tree(bench.with_queries(bench.queries.clear()), over="weeks").frame.is_empty()
