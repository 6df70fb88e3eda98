"""Vectors of turns and of tokens are made once, belong to their texts, and come back in the order of the turns."""

from __future__ import annotations

import numpy as np
import pytest
from store_data import FakeEncoder, Words, build, edited

from memlab.embed.text import turn_texts
from memlab.embed.token_vectors import TokenVectors, compress_tokens
from memlab.errors import StoreError
from memlab.store import MemoryStore, caches, vectors


def test_the_cache_gives_what_the_encoder_gave(store: MemoryStore) -> None:
    encoder, plain = FakeEncoder(), FakeEncoder()
    texts = ["a", "b", "a", "", "\ud800", "it's"]
    first = store.encode(encoder, texts)
    assert len(encoder.asked) == 5, "a text that repeats is encoded once"
    np.testing.assert_array_equal(first, plain.encode(["a", "b", "a", "", "\ufffd", "it's"]))
    again = store.encode(encoder, reversed(texts))
    np.testing.assert_array_equal(again, first[::-1])
    assert len(encoder.asked) == 5
    assert (again.dtype, again.flags.c_contiguous) == (np.float32, True)


def test_an_interrupted_encoding_goes_on_where_it_stopped(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "CACHE_CHUNK", 5)
    store.ingest(build())
    encoder = FakeEncoder()
    encoder.fail_after = 12
    with pytest.raises(KeyboardInterrupt):
        store.vectors.backfill(encoder, "small", progress=False)
    assert len(encoder.asked) == 10
    encoder.fail_after = None
    assert store.vectors.backfill(encoder, "small", progress=False) == 14
    assert len(set(encoder.asked)) == len(encoder.asked) == 24
    version = store.versions()["turns"]
    assert store.vectors.backfill(encoder, "small", progress=False) == 0
    assert store.versions()["turns"] == version


def test_a_changed_turn_loses_its_vectors_and_so_do_those_whose_header_it_changes(store: MemoryStore) -> None:
    data, header = build(), ("participants",)
    store.ingest([build(name="another", seed=9), data])
    one, two = FakeEncoder(), FakeEncoder(name="other")
    for encoder in (one, two):
        store.vectors.backfill(encoder, "small", progress=False)
    store.vectors.backfill(one, "small", header=header, progress=False)
    changed = edited(data, "scope-1/session_0/2", text="now it says this", speaker="Carla")
    store.ingest(changed)
    columns = [store.vectors.column(e) for e in (one, two)]
    raw = store.table("turns").search().where("dataset = 'small'").select(["turn_id", *columns]).to_arrow()
    without = [raw["turn_id"][i].as_py() for i in range(len(raw)) if raw[columns[0]][i].as_py() is None]
    assert without == ["scope-1/session_0/2"]
    assert raw[columns[1]].null_count == 1
    assert store.vectors.backfill(one, "small", progress=False) == 1
    assert store.vectors.backfill(one, "small", header=header, progress=False) == 4
    for each in ((), header):
        expected = FakeEncoder().encode(turn_texts(changed.turns, header=each))
        np.testing.assert_array_equal(store.vectors.read(one, "small", header=each), expected)


def test_a_vector_that_is_no_number_is_named_and_not_kept(store: MemoryStore) -> None:
    store.ingest(build())
    encoder = FakeEncoder()
    for encoder.spoil in (np.nan, -np.inf):
        with pytest.raises(StoreError, match=r"encoder fake_8: row 1 holds NaN or infinity \(1 of 24 rows\)"):
            store.vectors.backfill(encoder, "small", progress=False)
    encoder.spoil = None
    assert store.vectors.backfill(encoder, "small", progress=False) == 24


TEXTS = ["we met old friends", "", "hi", "we met old friends", "x \x1e y", "no"]


def assert_equal(one: TokenVectors, two: TokenVectors) -> None:
    for name in ("ids", "vectors", "start"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_a_second_call_encodes_nothing(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "CHUNK", 1)
    store.tokens.arrange(Words())  # nothing yet
    first, again = Words(), Words()
    made = store.tokens.encode(first, TEXTS)
    assert len(first.asked) == 5  # one text stands twice
    assert_equal(made, compress_tokens(Words().encode_tokens(TEXTS)))
    assert_equal(MemoryStore.open(store.uri).tokens.encode(again, TEXTS), made)
    store.tokens.arrange(Words())
    table = store.table("tokens_fake_8")
    assert table.stats()["fragment_stats"]["num_fragments"] == 1
    assert [index.columns for index in table.list_indices()] == [["key"]]
    monkeypatch.setattr(caches, "LOOKUP", 2)  # many texts are read without a list of keys
    assert_equal(store.tokens.encode(again, TEXTS), made)
    assert again.asked == []


def test_other_words_before_another_kind_and_another_encoder_are_other_keys(store: MemoryStore) -> None:
    encoder, other = Words(), Words(name="other")
    alone = store.tokens.encode(encoder, ["hi"])
    after = store.tokens.encode(encoder, ["hi", "hi"], before=["", "we met"])
    store.tokens.encode(encoder, ["hi"], kind="query")
    assert [asked for _, asked in encoder.asked] == ["document:|hi", "document:we met|hi", "query:|hi"]
    assert_equal(after.take(np.array([0])), alone)
    assert not np.array_equal(after.vectors[0], after.vectors[1])
    store.tokens.encode(other, ["hi"])
    assert len(other.asked) == 1
