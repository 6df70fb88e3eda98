"""What a stage may look at, when it is encoded, and what a store spares."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from remembering import Remembering

from memlab import embed
from memlab.embed.text import session_texts, turn_texts
from memlab.errors import DataError
from memlab.pipelines import pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench, bm25, dense, hybrid
from memlab.store import MemoryStore


def counting() -> Remembering:
    """Give an encoder that notes what it is asked."""
    return Remembering(embed.load("hashing:64"), {})


def test_the_evidence_is_out_of_reach(odd: Bench) -> None:
    assert odd.queries.columns == ["query_id", "scope", "text", "timestamp"]
    public = [getattr(odd, f.name) for f in fields(Bench) if not f.name.startswith("_")]
    columns = {column for value in public if isinstance(value, pl.DataFrame) for column in value.columns}
    assert not columns & {"evidence", "evidence_sessions", "answer", "question_type"}


def test_documents_are_grouped_by_scope_in_order_of_time(world: Dataset) -> None:
    bench = Bench.of(replace(world, turns=world.turns.sample(fraction=1.0, shuffle=True, seed=0)), encoder="hashing:32")
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
    for change, said in (
        ({"turns": world.turns.head(0)}, "'world' holds no turns"),
        ({"sessions": world.sessions.filter(pl.col("session_id") != "ann/s3")}, "'ann/s3/1' belongs to session"),
        ({"turns": world.turns.filter(pl.col("scope") != "bob")}, "scope 'bob' has questions but no turns"),
    ):
        with pytest.raises(DataError, match=said):
            bm25(Bench.of(replace(world, **change), encoder=None))


def test_turns_that_a_store_loses_by_it_are_told(
    world: Dataset, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    Bench.of(world, encoder=None, store=store)
    assert caplog.messages == []
    Bench.of(replace(world, turns=world.turns.head(-1)), encoder=None, store=store)
    assert "1 turns that their scopes no longer have were removed" in caplog.messages[-1]


def test_nothing_is_encoded_before_a_stage_reads_vectors_and_nothing_twice_with_a_store(
    world: Dataset, odd: Bench, store: MemoryStore
) -> None:
    for memory in (None, store):
        encoder = counting()
        bench = Bench.of(world, encoder=encoder, store=memory, progress=False)
        pipeline("bm25 | light | fill_sessions | decompose(retriever='bm25')").run(bench.with_rows(np.array([1, 0])))
        assert encoder.asked == []
        versions = bench.provenance.get("versions")
        assert dense(bench).frame.equals(dense(bench.with_queries(bench.queries)).frame)
        assert {text for _, text in encoder.asked} == {*bench.documents("turn").texts, *bench.queries["text"]}
        assert bench.provenance.get("versions") == (memory and memory.versions())
        assert memory is None or versions != memory.versions()
    again = counting()
    two = Bench.of(world, encoder=again, store=store, progress=False)
    for each in (bench, two):
        np.testing.assert_array_equal(each.turn_vectors, odd.turn_vectors)
        np.testing.assert_array_equal(each.query_vectors, odd.query_vectors)
    assert again.asked == []
    dense(Bench.of(world, encoder=again, store=store, header=("scope",), progress=False))
    assert again.asked, "another header gives other texts"


def test_a_part_of_what_the_store_holds(talk: Dataset, store: MemoryStore) -> None:
    dense(Bench.of(talk, encoder="hashing:64", store=store, progress=False))
    encoder, fewer = counting(), replace(talk, turns=talk.turns.filter(pl.col("n") > 1))
    for part in (talk.take(talk.scopes[1:2]), talk.take(talk.scopes[::2]), fewer):
        plain, bench = Bench.of(part, encoder="hashing:64"), Bench.of(part, encoder=encoder, store=store)
        np.testing.assert_array_equal(bench.turn_vectors, plain.turn_vectors)
        assert hybrid(bench).frame.equals(hybrid(plain).frame)
    assert encoder.asked == []


def test_other_questions(odd: Bench) -> None:
    asked = pl.DataFrame({"scope": ["cyd", "ann"], "text": ["roses roses doctor", "How many doctors did I see?"]})
    other, whole = odd.with_queries(asked), hybrid(odd).frame
    assert other.queries.schema == odd.queries.schema
    assert other.documents("turn") is odd.documents("turn")
    for new, old in (("query-0", "cyd/q0"), ("query-1", "ann/q0")):
        rows = hybrid(other).frame.filter(query_id=new).drop("query_id")
        assert rows.equals(whole.filter(query_id=old).drop("query_id"))
    assert "✔" in (shown := bm25(odd)._repr_html_())
    assert "I saw the doctor today" in shown
    assert "✔" not in bm25(other)._repr_html_()
