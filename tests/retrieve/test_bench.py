"""What a stage may look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab import embed
from memlab.embed.text import session_texts, turn_texts
from memlab.errors import DataError
from memlab.pipelines import pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench, bm25, dense, hybrid
from memlab.store import MemoryStore


class Counting:
    """An encoder that keeps count of the texts it was given."""

    def __init__(self, name: str = "hashing:32") -> None:
        self.inner = embed.load(name)
        self.seen: list[str] = []

    @property
    def identity(self) -> Any:
        return self.inner.identity

    @property
    def dim(self) -> int:
        return self.inner.dim

    def encode(self, texts: Iterable[str], *, kind: Any = "document", progress: bool = True) -> np.ndarray:
        held = list(texts)
        self.seen += held
        return self.inner.encode(held, kind=kind, progress=progress)


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore.open(tmp_path / "store")


@pytest.fixture(scope="module")
def bench(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


def test_the_evidence_is_out_of_reach(bench: Bench) -> None:
    assert bench.queries.columns == ["query_id", "scope", "text", "timestamp"]
    public = [f.name for f in fields(Bench) if not f.name.startswith("_")]
    frames = [getattr(bench, name) for name in public if isinstance(getattr(bench, name), pl.DataFrame)]
    assert not {c for f in frames for c in f.columns} & {"evidence", "evidence_sessions", "answer", "question_type"}


def test_documents_are_grouped_by_scope_in_order_of_time(world: Dataset) -> None:
    mixed = replace(world, turns=world.turns.sample(fraction=1.0, shuffle=True, seed=0))
    bench = Bench.of(mixed, encoder="hashing:32")
    turns, sessions = bench.documents("turn"), bench.documents("session")
    assert turns.ids.tolist() == world.turns["turn_id"].to_list()
    assert turns.texts == turn_texts(world.turns)
    assert sessions.texts == session_texts(world.turns, world.sessions)
    assert sessions.ids[turns.session].tolist() == world.turns["session_id"].to_list()
    for documents in (turns, sessions):
        for scope, (first, last) in documents.spans.items():
            assert {d.split("/")[0] for d in documents.ids[first:last]} == {scope}
    np.testing.assert_array_equal(turns.embeddings, embed.load("hashing:32").encode(turns.texts))
    lengths = np.linalg.norm(sessions.embeddings, axis=1)
    np.testing.assert_allclose(lengths, sessions.ids != "ann/s2", atol=1e-6)
    mean = turns.embeddings[turns.session == 0].mean(axis=0)
    np.testing.assert_allclose(sessions.embeddings[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_what_cannot_be_a_bench(world: Dataset) -> None:
    with pytest.raises(DataError, match="'world' holds no turns"):
        Bench.of(replace(world, turns=world.turns.head(0)))
    lost = replace(world, sessions=world.sessions.filter(pl.col("session_id") != "ann/s3"))
    with pytest.raises(DataError, match="turn 'ann/s3/1' belongs to session 'ann/s3', which the dataset does not list"):
        bm25(Bench.of(lost, encoder=None))
    stray = replace(world, turns=world.turns.filter(pl.col("scope") != "bob"))
    with pytest.raises(DataError, match="scope 'bob' has questions but no turns"):
        bm25(Bench.of(stray, encoder=None))


def test_nothing_is_encoded_before_a_stage_reads_vectors(world: Dataset, store: MemoryStore) -> None:
    for memory in (None, store):
        encoder = Counting()
        bench = Bench.of(world, encoder=encoder, store=memory, progress=False)
        pipeline("bm25 | light | fill_sessions | decompose(retriever='bm25')").run(bench.with_rows(np.array([1, 0])))
        assert encoder.seen == []
        bm25(bench.with_queries(bench.queries))
        assert encoder.seen == []
        versions = bench.provenance.get("versions")
        runs = [dense(bench).frame, dense(bench.with_queries(bench.queries)).frame]
        assert runs[0].equals(runs[1])
        assert set(encoder.seen) == {*bench.documents("turn").texts, *bench.queries["text"]}
        assert bench.provenance.get("versions") == (memory and memory.versions())
        assert memory is None or versions != memory.versions()


def test_a_store_encodes_everything_once(world: Dataset, store: MemoryStore) -> None:
    first, second = Counting(), Counting()
    one = Bench.of(world, encoder=first, store=store, progress=False)
    dense(one)
    assert sorted(set(first.seen)) == sorted(set(one.documents("turn").texts) | set(one.queries["text"]))
    two = Bench.of(world, encoder=second, store=store, progress=False)
    dense(two)
    assert second.seen == []
    plain = Bench.of(world, encoder="hashing:32")
    for bench in (one, two):
        np.testing.assert_array_equal(bench.turn_vectors, plain.turn_vectors)
        np.testing.assert_array_equal(bench.query_vectors, plain.query_vectors)
        assert hybrid(bench).frame.equals(hybrid(plain).frame)
    third = Counting()
    dense(Bench.of(world, encoder=third, store=store, header=("scope",), progress=False))
    assert third.seen


def test_a_part_of_what_the_store_holds(talk: Dataset, store: MemoryStore) -> None:
    dense(Bench.of(talk, encoder="hashing:32", store=store, progress=False))
    encoder = Counting()
    for scopes in (talk.scopes[1:2], talk.scopes[::2]):
        part = talk.take(scopes)
        bench = Bench.of(part, encoder=encoder, store=store, progress=False)
        np.testing.assert_array_equal(bench.turn_vectors, Bench.of(part, encoder="hashing:32").turn_vectors)
        assert hybrid(bench).frame.equals(hybrid(Bench.of(part, encoder="hashing:32")).frame)
    fewer = replace(talk, turns=talk.turns.filter(pl.col("n") > 1))
    bench = Bench.of(fewer, encoder=encoder, store=store, progress=False)
    assert dense(bench).frame.equals(dense(Bench.of(fewer, encoder="hashing:32")).frame)
    assert encoder.seen == []


def test_other_questions(bench: Bench, world: Dataset) -> None:
    asked = pl.DataFrame({"scope": ["cyd", "ann"], "text": ["roses roses doctor", "How many doctors did I see?"]})
    other = bench.with_queries(asked)
    assert other.queries["query_id"].to_list() == ["query-0", "query-1"]
    assert other.queries.schema == bench.queries.schema
    whole = hybrid(bench).frame
    for new, old in (("query-0", "cyd/q0"), ("query-1", "ann/q0")):
        rows = hybrid(other).frame.filter(pl.col("query_id") == new).drop("query_id")
        assert rows.equals(whole.filter(pl.col("query_id") == old).drop("query_id"))
    assert "✔" in (shown := bm25(bench)._repr_html_())
    assert "I saw the doctor today" in shown
    assert "✔" not in bm25(other)._repr_html_()
    kept = bench.with_queries(world.questions.reverse())
    assert kept.queries["query_id"].to_list() == world.questions["query_id"].to_list()[::-1]
    assert kept.documents("turn") is bench.documents("turn")
