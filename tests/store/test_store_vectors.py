"""Vectors are made once, belong to the text that they stand beside, and come back in the order of the turns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from store_data import FakeEncoder, awkward, build, edited

from memlab.embed import load
from memlab.embed.text import turn_texts
from memlab.errors import DataError, StoreError
from memlab.records import Dataset
from memlab.store import CachedEncoder, MemoryStore, vectors


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
    with pytest.raises(StoreError, match="vectors have shape"):
        store.vectors.read(other, "small")
    with pytest.raises(StoreError, match="vectors of 8 dimensions"):
        store.encode(other, ["a"])


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
