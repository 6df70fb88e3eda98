"""Trees over turns and sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_data import FakeEncoder

import memlab
from memlab import embed
from memlab.datasets import load
from memlab.errors import DataError
from memlab.records import Node, Turn, frame, schema
from memlab.rollup import grow
from memlab.rollup.trees import FEW, LAYERS

ENCODER = embed.load("hashing:64")
SETTINGS = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def numbered(sizes: list[int]) -> pl.DataFrame:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return frame(
        Turn,
        [
            Turn(f"{s}/x/{n}", str(s), f"{s}/x", n, "Ann", "user", f"I saw {n % 7} birds.", None, start + timedelta(n))
            for s, size in enumerate(sizes)
            for n in range(1, size + 1)
        ],
    )


@SETTINGS
@given(st.lists(st.integers(1, 70), min_size=1, max_size=2), st.integers(1, 70), st.integers(0, 10**6))
def test_a_forest_over_any_turns(counting: Any, laws: Any, sizes: list[int], different: int, seed: int) -> None:
    turns = numbered(sizes)
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(different, 8))[rng.integers(0, different, turns.height)].astype(np.float32)
    tree = grow(turns, encoder=ENCODER8, vectors=vectors, summariser=counting, reduce="pca", seed=seed % 5)
    laws(tree.nodes, turns)
    assert tree.vectors.shape == (tree.nodes.height, 8)
    layers = tree.nodes.group_by("scope", "level").len().sort("scope", "level")
    for scope in layers["scope"].unique():
        sizes = layers.filter(pl.col("scope") == scope)["len"].to_list()
        assert len(sizes) <= LAYERS + 1
        assert all(above <= below / 2 for below, above in pairwise(sizes))
        assert sizes[-1] <= FEW


ENCODER8 = FakeEncoder()


@pytest.mark.parametrize("vectors", ["equal", "zero"])
def test_equal_vectors_end(counting: Any, laws: Any, vectors: str) -> None:
    turns = numbered([60])
    same = np.full((60, 8), 1.0 if vectors == "equal" else 0.0, np.float32)
    nodes = grow(turns, encoder=ENCODER8, vectors=same, summariser=counting).nodes
    laws(nodes, turns)
    first = nodes.filter(pl.col("level") == 1)
    assert (first["method"] == "chunks").all()
    assert first["turns"].list.len().to_list() == [5] * 12, "neighbours in time, five by five"


def test_few_turns_are_a_forest_of_themselves() -> None:
    nodes = grow(numbered([FEW, 1]), encoder=ENCODER).nodes
    assert nodes["level"].to_list() == [0] * (FEW + 1)
    assert nodes["parent"].null_count() == nodes.height


def test_no_turns() -> None:
    for leaves in ("turns", "sessions"):
        nodes = grow(frame(Turn), encoder=ENCODER, leaves=leaves).nodes
        assert nodes.is_empty()
        assert dict(nodes.schema) == schema(Node)


def test_the_whole_on_talk(laws: Any) -> None:
    data = memlab.sample(turns=120)
    one, two = (grow(data.turns, encoder=ENCODER, seed=1).nodes for _ in range(2))
    assert one.equals(two), "a seed repeats"
    laws(one, data.turns)
    clusters = one.filter(pl.col("kind") == "cluster")
    assert set(clusters["service"]) == {"extractive"}
    assert clusters["sentences"].list.len().max() <= 6
    assert clusters["sentences"].list.len().min() >= 1
    assert clusters["topics"].list.len().max() > 0
    assert all(len(set(held)) == len(held) for held in clusters["sentences"]), "nothing is said twice"
    # Every sentence is one of the conversation, said in a turn that it stands on.
    said = dict(data.turns.select("turn_id", "text").iter_rows())
    who = dict(data.turns.select("turn_id", "speaker").iter_rows())
    for sentences, evidence in clusters.select("sentences", "evidence").iter_rows():
        for sentence, (turn,) in zip(sentences, evidence, strict=True):
            said_then = " ".join(sentence.removeprefix(f"{who[turn]}: ").rstrip("…").split())
            assert said_then in " ".join(said[turn].split())
    alone = grow(data.take([data.scopes[-1]]).turns, encoder=ENCODER, seed=1).nodes
    assert set(alone["node_id"]) == set(one.filter(pl.col("scope") == data.scopes[-1])["node_id"]), "scopes do not mix"


def test_sessions_as_leaves(laws: Any, counting: Any) -> None:
    data = memlab.sample(["owen"], turns=150)
    nodes = grow(data.turns, encoder=ENCODER, leaves="sessions", summariser=counting, reduce="pca").nodes
    laws(nodes, data.turns)
    leaves = nodes.filter(pl.col("level") == 0)
    assert leaves.height == data.sessions.height
    assert set(leaves["kind"]) == {"session"}
    assert counting.groups.count("session") == leaves.height
    assert len(counting.calls) == nodes["level"].max() + 1, "one call of the summariser a layer"


def test_groups_follow_the_vectors(counting: Any) -> None:
    turns = numbered([60])
    truth = np.arange(60) % 3
    vectors = np.eye(8, dtype=np.float32)[truth] + np.random.default_rng(0).normal(0, 0.05, (60, 8)).astype(np.float32)
    nodes = grow(turns, encoder=ENCODER8, vectors=vectors, summariser=counting, reduce="pca").nodes
    place = {turn: i for i, turn in enumerate(turns["turn_id"])}
    for held in nodes.filter(pl.col("level") == 1)["turns"]:
        assert len({truth[place[turn]] for turn in held}) == 1


def test_turns_without_words_are_leaves_all_the_same(laws: Any) -> None:
    turns = numbered([12]).with_columns(
        text=pl.when(pl.col("n") < 12).then(pl.lit("")).otherwise(pl.lit("!!")),
        caption=pl.when(pl.col("n") == 3).then(pl.lit("a red barn")).otherwise(pl.lit(None, pl.String)),
    )
    nodes = grow(turns, encoder=ENCODER).nodes
    laws(nodes, turns)
    assert any("a red barn" in text for text in nodes.filter(pl.col("kind") == "cluster")["text"])


def test_values_that_cannot_be_used() -> None:
    turns = numbered([3])
    with pytest.raises(DataError, match="leaves is 'words'; choose from turns, sessions"):
        grow(turns, encoder=ENCODER, leaves="words")
    with pytest.raises(DataError, match="there are 2 vectors for 3 turns"):
        grow(turns, encoder=ENCODER, vectors=np.ones((2, 64), np.float32))
    with pytest.raises(DataError, match="reduce is 'tsne'"):
        grow(numbered([20]), encoder=ENCODER, reduce="tsne")


@pytest.mark.slow
@pytest.mark.shared_data
def test_a_forest_over_real_conversations(locomo_path: Path, laws: Any) -> None:
    data = load(locomo_path)
    turns = data.take(data.scopes[:2]).turns
    nodes = grow(turns, encoder=ENCODER).nodes
    laws(nodes, turns)
    assert nodes["level"].max() >= 2
