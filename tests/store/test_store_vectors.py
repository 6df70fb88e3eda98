"""Vectors are made once, belong to the text that they stand beside, and come back in the order of the turns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from store_data import FakeEncoder, awkward, build

from memlab.embed import load
from memlab.embed.text import turn_texts
from memlab.errors import DataError, StoreError
from memlab.records import Dataset
from memlab.store import CachedEncoder, MemoryStore, caches, vectors
from memlab.store.database import in_parts


def edited(data: Dataset, turn_id: str, **columns: str) -> Dataset:
    there = pl.col("turn_id") == turn_id
    new = {c: pl.when(there).then(pl.lit(v)).otherwise(c) for c, v in columns.items()}
    return replace(data, turns=data.turns.with_columns(**new))


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


def test_queries_and_documents_do_not_meet_in_the_cache(store: MemoryStore) -> None:
    encoder = FakeEncoder()
    document, query = store.encode(encoder, ["a"]), store.encode(encoder, ["a"], kind="query")
    assert encoder.asked == [("document", "a"), ("query", "a")]
    assert not np.array_equal(document, query)
    np.testing.assert_array_equal(store.encode(encoder, ["a"], kind="query"), query)
    with pytest.raises(DataError, match="kind is 'passage'"):
        store.encode(encoder, ["a"], kind="passage")


def test_no_texts_are_no_vectors(store: MemoryStore) -> None:
    assert store.encode(FakeEncoder(), []).shape == (0, 8)


def test_the_cache_is_read_in_parts_when_much_is_wanted(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "LOOKUP", 3)
    texts = [f"text {i}" for i in range(40)]
    encoder = FakeEncoder()
    first = store.encode(encoder, texts[:30])
    both = store.encode(encoder, texts)
    assert [text for _, text in encoder.asked] == texts
    np.testing.assert_array_equal(both[:30], first)


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


@pytest.mark.parametrize(("seconds", "texts", "writes"), [(5.0, 100, 1), (0.0, 100, 5), (5.0, 9, 3)])
def test_what_is_encoded_is_written_now_and_then(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, seconds: float, texts: int, writes: int
) -> None:
    for name, value in (("CACHE_CHUNK", 5), ("_KEEP_SECONDS", seconds), ("_KEEP_TEXTS", texts)):
        monkeypatch.setattr(vectors, name, value)
    encoder = FakeEncoder()
    asked = [f"text {i // 2}" for i in range(48)]
    made = store.encode(encoder, asked)
    cache = store.table("embeddings_fake_8")
    assert len(cache.list_versions()) == 1 + writes
    np.testing.assert_array_equal(made, FakeEncoder().encode(asked))
    np.testing.assert_array_equal(store.encode(encoder, asked[::-1]), made[::-1])
    assert len(encoder.asked) == 24


def test_vectors_are_handed_to_the_database_in_small_parts() -> None:
    rows = pa.table({"row": list(range(10_000))})
    assert in_parts(rows).equals(rows)
    assert max(len(part) for part in in_parts(rows).to_batches()) < 5_000
    assert in_parts(rows[:0]).equals(rows[:0])


@pytest.mark.parametrize("header", [(), ("time", "participants")])
@pytest.mark.parametrize("data", [build(), awkward()], ids=["plain", "awkward"])
def test_vectors_stand_in_the_order_of_the_turns(store: MemoryStore, data: Dataset, header: tuple[str, ...]) -> None:
    store.ingest([build(name="another", seed=9), data])
    encoder, plain = FakeEncoder(), FakeEncoder()
    store.vectors.backfill(encoder, data.name, header=header, progress=False)
    got = store.vectors.read(encoder, data.name, header=header)
    expected = plain.encode(turn_texts(store.turns(data.name), header=header))
    np.testing.assert_array_equal(got, expected)
    assert (got.dtype, got.flags.c_contiguous) == (np.float32, True)


def test_backfill_fills_only_what_is_missing(store: MemoryStore) -> None:
    whole = build(n_scopes=4)
    store.ingest(whole.take(whole.scopes[:2]))
    encoder = FakeEncoder()
    assert store.vectors.backfill(encoder, "small", progress=False) == 16
    assert store.vectors.backfill(encoder, "small", progress=False) == 0
    version = store.versions()["turns"]
    store.vectors.backfill(encoder, "small", progress=False)
    assert store.versions()["turns"] == version
    store.ingest(whole)
    with pytest.raises(
        StoreError, match=r"16 of 32 turns of 'small' .* run store.vectors.backfill\(encoder, 'small'\)"
    ):
        store.vectors.read(encoder, "small")
    assert store.vectors.backfill(encoder, "small", progress=False) == 16
    np.testing.assert_array_equal(store.vectors.read(encoder, "small"), FakeEncoder().encode(turn_texts(whole.turns)))


def test_a_second_dataset_of_the_same_texts_costs_nothing(store: MemoryStore) -> None:
    data = build()
    store.ingest([data, replace(data, name="copy")])
    encoder = FakeEncoder()
    assert store.vectors.backfill(encoder, "small", progress=False) == 24
    assert store.vectors.backfill(encoder, "copy", progress=False) == 0
    np.testing.assert_array_equal(store.vectors.read(encoder, "copy"), store.vectors.read(encoder, "small"))


def test_a_changed_turn_loses_its_vectors_and_the_others_keep_theirs(store: MemoryStore) -> None:
    data = build()
    store.ingest(data)
    one, two = FakeEncoder(), FakeEncoder(name="other")
    for encoder in (one, two):
        store.vectors.backfill(encoder, "small", progress=False)
    changed = edited(data, "scope-1/session_0/2", text="now it says this")
    store.ingest(changed)
    columns = [store.vectors.column(e) for e in (one, two)]
    raw = store.table("turns").search().select(["turn_id", *columns]).to_arrow()
    without = [raw["turn_id"][i].as_py() for i in range(len(raw)) if raw[columns[0]][i].as_py() is None]
    assert without == ["scope-1/session_0/2"]
    assert raw[columns[1]].null_count == 1
    with pytest.raises(StoreError, match="1 of 24 turns"):
        store.vectors.read(one, "small")
    assert store.vectors.backfill(one, "small", progress=False) == 1
    np.testing.assert_array_equal(store.vectors.read(one, "small"), FakeEncoder().encode(turn_texts(changed.turns)))


def test_a_header_that_changed_through_another_turn_is_stale_too(store: MemoryStore) -> None:
    data = build()
    store.ingest(data)
    encoder = FakeEncoder()
    store.vectors.backfill(encoder, "small", header=("participants",), progress=False)
    store.vectors.backfill(encoder, "small", progress=False)
    changed = edited(data, "scope-1/session_0/2", speaker="Carla")
    store.ingest(changed)
    with pytest.raises(StoreError, match=r"4 of 24 turns .* header=\('participants',\)\)"):
        store.vectors.read(encoder, "small", header=("participants",))
    assert store.vectors.backfill(encoder, "small", header=("participants",), progress=False) == 4
    assert store.vectors.backfill(encoder, "small", progress=False) == 1
    expected = FakeEncoder().encode(turn_texts(changed.turns, header=("participants",)))
    np.testing.assert_array_equal(store.vectors.read(encoder, "small", header=("participants",)), expected)


def test_a_backfill_in_chunks_is_the_same(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_FILL_BYTES", 7 * 8 * 4)
    data = build()
    store.ingest(data)
    assert store.vectors.backfill(FakeEncoder(), "small", progress=False) == 24
    np.testing.assert_array_equal(
        store.vectors.read(FakeEncoder(), "small"), FakeEncoder().encode(turn_texts(data.turns))
    )


def test_an_empty_dataset_has_no_vectors(store: MemoryStore) -> None:
    data = build()
    store.ingest(replace(data, turns=data.turns.clear()))
    assert store.vectors.backfill(FakeEncoder(), "small", progress=False) == 0
    assert store.vectors.read(FakeEncoder(), "small").shape == (0, 8)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_no_number_is_named_and_not_kept(store: MemoryStore, bad: float) -> None:
    store.ingest(build())
    encoder = FakeEncoder()
    encoder.spoil = bad
    with pytest.raises(StoreError, match=r"encoder fake_8: row 1 holds NaN or infinity \(1 of 24 rows\)"):
        store.vectors.backfill(encoder, "small", progress=False)
    encoder.spoil = None
    assert store.vectors.backfill(encoder, "small", progress=False) == 24


def test_vectors_of_another_width_are_refused(store: MemoryStore) -> None:
    encoder = FakeEncoder(8)
    encoder.encode = FakeEncoder(16).encode  # type: ignore[method-assign]
    with pytest.raises(StoreError, match=r"encoder fake_8: vectors have shape \(1, 16\); expected \(1, 8\)"):
        store.encode(encoder, ["a"])
    store.ingest(build())
    made, other = FakeEncoder(8, dim_in_key=False), FakeEncoder(16, dim_in_key=False)
    store.vectors.backfill(made, "small", progress=False)
    for call in (store.vectors.backfill, store.vectors.read):
        with pytest.raises(StoreError, match="vectors have shape .* encode with the same encoder"):
            call(other, "small")


def test_vectors_that_were_never_made_say_how_to_make_them(store: MemoryStore) -> None:
    store.ingest(build())
    with pytest.raises(StoreError, match=r"has no vectors of fake_8; run store.vectors.backfill\(encoder, 'small'\)"):
        store.vectors.read(FakeEncoder(), "small")


def test_a_service_is_asked_a_question_once_and_a_model_of_this_process_whenever_it_comes(store: MemoryStore) -> None:
    service, model = (load("hashing:32") for _ in range(2))
    asked: list[str] = []
    for encoder, sort in ((service, "endpoint"), (model, "transformer")):
        plain = encoder.encode

        def counting(texts, *, plain=plain, sort=sort, **how):
            asked.append(sort)
            return plain(texts, **how)

        encoder.identity = replace(encoder.identity, kind=sort)
        encoder.encode = counting  # type: ignore[method-assign]
        first, again = (CachedEncoder(store, encoder).encode(["Where?"], kind="query") for _ in range(2))
        np.testing.assert_array_equal(first, again)
    assert asked == ["endpoint", "transformer", "transformer"]
