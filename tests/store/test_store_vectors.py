"""Vectors of turns and tokens are made once and belong to their texts; search finds what comparing everything finds."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest
from stand_in import StandIn
from store_data import FakeEncoder, Words, build, edited

from memlab.embed import cache_encoder, load
from memlab.embed.token_vectors import TokenVectors, compress_tokens
from memlab.embed.turn_texts import turn_texts
from memlab.errors import StoreError
from memlab.store import MemoryStore, turn_vectors, vector_and_text_search, vector_cache


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


class QuickForFew(StandIn):
    """An encoder that reads what is not stored in a quicker way, whose vectors are others."""

    def __init__(self) -> None:
        super().__init__()
        self.stored = StandIn()
        self.encode = self.encode_tokens = Mock(side_effect=AssertionError("read the quick way"))

    def for_storing(self) -> StandIn:
        return self.stored


@pytest.mark.parametrize("n_before", [0, 23])
def test_what_is_stored_does_not_depend_on_how_much_of_it_was_missing(
    store: MemoryStore, n_before: int
) -> None:
    """As after a kill: of 24 turns and 5 questions some have their vectors already."""
    data, model = build(), QuickForFew()
    texts = turn_texts(data.turns)
    questions, said = [f"which note {n}?" for n in range(5)], texts[: n_before + 1]
    store.ingest(data)
    cached = cache_encoder(store, load(model))
    store.encode(cached, texts[:n_before])
    cached.encode(questions[: max(2, n_before // 5)], kind="query")
    cached.encode_tokens(said[:n_before], kind="document")
    store.vectors.backfill(cached, "small", progress=False)
    every = store.vectors.read(cached, "small")
    assert (every == model.stored.encode(texts)).all()
    asked = cached.encode(questions, kind="query")
    assert (asked == model.stored.encode(questions, kind="query")).all()
    codes = compress_tokens(model.stored.encode_tokens(said)).vectors
    assert (cached.encode_tokens(said, kind="document").vectors == codes).all()
    with pytest.raises(AssertionError, match="the quick way"):
        cached.encode(questions[:1], kind="query")


def test_an_interrupted_encoding_goes_on_where_it_stopped(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_vectors, "CACHE_CHUNK", 5)
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


def test_a_changed_turn_loses_its_vectors_and_so_do_those_whose_header_it_changes(
    store: MemoryStore,
) -> None:
    data, header = build(), ("participants",)
    store.ingest([build(name="another", seed=9), data])
    one, two = FakeEncoder(), FakeEncoder(name="other")
    for encoder in (one, two):
        store.vectors.backfill(encoder, "small", progress=False)
    headed = load(one, header=header)
    store.vectors.backfill(headed, "small", progress=False)
    changed = edited(data, "scope-1/session_0/2", text="now it says this", speaker="Carla")
    store.ingest(changed)
    columns = [store.vectors.column(e) for e in (one, two)]
    raw = (
        store.table("turns")
        .search()
        .where("dataset = 'small'")
        .select(["turn_id", *columns])
        .to_arrow()
    )
    without = [
        raw["turn_id"][i].as_py() for i in range(len(raw)) if raw[columns[0]][i].as_py() is None
    ]
    assert without == ["scope-1/session_0/2"]
    assert raw[columns[1]].null_count == 1
    assert store.vectors.backfill(one, "small", progress=False) == 1
    assert store.vectors.backfill(headed, "small", progress=False) == 4
    for each, fields in ((one, ()), (headed, header)):
        expected = FakeEncoder().encode(turn_texts(changed.turns, header=fields))
        np.testing.assert_array_equal(store.vectors.read(each, "small"), expected)


def cached(store: MemoryStore, encoder: FakeEncoder) -> int:
    return int(store.table(f"embeddings_{encoder.identity.key}").count_rows())


def test_a_vector_is_kept_once(store: MemoryStore) -> None:
    data, encoder = build(), FakeEncoder()
    store.ingest(data)
    texts = turn_texts(data.turns)
    store.encode(encoder, ["no turn says this", texts[3]])
    assert cached(store, encoder) == 2
    assert store.vectors.backfill(encoder, "small", progress=False) == 23
    assert cached(store, encoder) == 1, "what the column has, the cache has not"
    # Whoever asks for a text of a turn has it from the column: another dataset, a view, a sentence.
    asked = len(encoder.asked)
    view = store.at(store.versions())
    expected = FakeEncoder().encode(texts)
    np.testing.assert_array_equal(store.vectors.read(encoder, "small"), expected)
    np.testing.assert_array_equal(view.vectors.read(encoder, "small"), expected)
    np.testing.assert_array_equal(store.encode(encoder, texts[::-1]), expected[::-1])
    store.ingest(build(name="again"))
    np.testing.assert_array_equal(store.vectors.read(encoder, "again"), expected)
    assert store.vectors.backfill(encoder, "again", progress=False) == 0
    assert len(encoder.asked) == asked
    assert cached(store, encoder) == 1
    # A question is another kind of text.
    store.encode(encoder, texts[:1], kind="query")
    assert cached(store, encoder) == 2
    scopes = ["scope-2", "scope-0"]
    own = data.turns["scope"].is_in(scopes).to_numpy()
    np.testing.assert_array_equal(
        store.vectors.read(encoder, "small", scopes=scopes), expected[own]
    )


def test_a_turn_that_only_moves_keeps_its_vector(store: MemoryStore) -> None:
    data, encoder = build(), FakeEncoder()
    store.ingest(data)
    store.vectors.backfill(encoder, "small", progress=False)
    changed = edited(data, "scope-1/session_0/2", text="now it says this")
    first = changed.turns.row(0, named=True) | {
        "turn_id": "scope-0/session_0/0", "n": 0, "text": "before all",
    }  # fmt: skip
    longer = pl.concat([pl.DataFrame([first], schema=changed.turns.schema), changed.turns])
    store.ingest(replace(changed, turns=longer))
    asked = len(encoder.asked)
    assert store.vectors.backfill(encoder, "small", progress=False) == 2
    new = [text for _, text in encoder.asked[asked:]]
    assert new == ["Ann: before all", "Ann: now it says this"]
    np.testing.assert_array_equal(
        store.vectors.read(encoder, "small"), FakeEncoder().encode(turn_texts(longer))
    )


def test_a_store_that_has_its_vectors_twice_is_read_and_optimized(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, encoder = build(), FakeEncoder()
    store.ingest(data)
    with monkeypatch.context() as before:
        before.setattr(turn_vectors, "_drop_cached_vectors_of_texts", lambda *_: None)
        store.vectors.backfill(encoder, "small", progress=False)
        store.encode(encoder, ["no turn says this"])
    assert cached(store, encoder) == 25
    expected = FakeEncoder().encode(turn_texts(data.turns))
    asked = len(encoder.asked)
    for _ in range(2):
        np.testing.assert_array_equal(store.vectors.read(encoder, "small"), expected)
        store.encode(encoder, ["no turn says this"])
        store.optimize()
    assert cached(store, encoder) == 1
    assert len(encoder.asked) == asked


def test_a_vector_that_is_no_number_is_named_and_not_kept(store: MemoryStore) -> None:
    store.ingest(build())
    encoder = FakeEncoder()
    for encoder.spoil in (np.nan, -np.inf):
        with pytest.raises(
            StoreError, match=r"encoder fake_8: row 1 holds NaN or infinity \(1 of 24 rows\)"
        ):
            store.vectors.backfill(encoder, "small", progress=False)
    encoder.spoil = None
    assert store.vectors.backfill(encoder, "small", progress=False) == 24


TEXTS = ["we met old friends", "", "hi", "we met old friends", "x \x1e y", "no"]


def assert_equal(one: TokenVectors, two: TokenVectors) -> None:
    for name in ("ids", "vectors", "start"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_a_second_call_encodes_nothing(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_cache, "CHUNK", 1)
    store.tokens.compact_and_index_caches(Words())  # nothing yet
    first, again = Words(), Words()
    made = store.tokens.encode(first, TEXTS)
    assert len(first.asked) == 5  # one text stands twice
    assert_equal(made, compress_tokens(Words().encode_tokens(TEXTS)))
    assert_equal(MemoryStore.open(store.uri).tokens.encode(again, TEXTS), made)
    store.tokens.compact_and_index_caches(Words())
    table = store.table("tokens_fake_8")
    assert table.stats()["fragment_stats"]["num_fragments"] == 1
    assert [index.columns for index in table.list_indices()] == [["key"]]
    monkeypatch.setattr(vector_cache, "LOOKUP", 2)  # many texts are read without a list of keys
    assert_equal(store.tokens.encode(again, TEXTS), made)
    assert again.asked == []


def test_other_words_before_another_kind_and_another_encoder_are_other_keys(
    store: MemoryStore,
) -> None:
    encoder, other = Words(), Words(name="other")
    alone = store.tokens.encode(encoder, ["hi"])
    after = store.tokens.encode(encoder, ["hi", "hi"], before=["", "we met"])
    store.tokens.encode(encoder, ["hi"], kind="query")
    assert [asked for _, asked in encoder.asked] == [
        "document:|hi",
        "document:we met|hi",
        "query:|hi",
    ]
    assert_equal(after.take(np.array([0])), alone)
    assert not np.array_equal(after.vectors[0], after.vectors[1])
    store.tokens.encode(other, ["hi"])
    assert len(other.asked) == 1


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    store = MemoryStore.open(tmp_path_factory.mktemp("filled") / "store")
    store.ingest([build(4, 5, 20), build(4, 5, 20, name="other", seed=1)])
    for name in ("small", "other"):
        store.vectors.backfill(FakeEncoder(), name, progress=False)
    return store


def assert_agree(store: MemoryStore, scopes: list[str], k: int) -> None:
    """Compare with every vector of the scope by matrix product, best first, ties in the dataset's order."""
    queries, column = (
        FakeEncoder().encode([f"q{i}" for i in range(5)]),
        store.vectors.column(FakeEncoder()),
    )
    found = store.search.by_vector(queries, column=column, dataset="small", scopes=scopes, k=k)
    assert found.schema == {
        "query": pl.Int32,
        "doc_id": pl.String,
        "session_id": pl.String,
        "score": pl.Float64,
    }
    turns, vectors = (
        store.turns("small", columns=["turn_id", "scope"]),
        store.vectors.read(FakeEncoder(), "small"),
    )
    for row, scope in enumerate(scopes):
        own = np.flatnonzero(turns["scope"] == scope)
        scores, got = vectors[own] @ queries[row], found.filter(query=row)
        best = np.argsort(-scores, kind="stable")[:k]
        assert got["doc_id"].to_list() == turns["turn_id"][own[best]].to_list()
        np.testing.assert_allclose(got["score"], scores[best], atol=1e-5)


def test_search_agrees_with_the_product_and_indexes_are_made_once(
    filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        StoreError, match=r"no full-text index; run store.search.create_indexes\(\)"
    ):
        filled.search.by_text(["dentist"], dataset="small", scopes=["scope-0"], k=3)
    for k in (1, 10, 500):
        assert_agree(filled, ["scope-2", "scope-0", "scope-2", "scope-3", "scope-2"], k)
    made = filled.search.create_indexes(FakeEncoder())
    assert made["made"].to_list() == ["made"] * 4 + [
        "left out: the largest scope has 100 turns, it pays from 100,000"
    ]
    monkeypatch.setattr(vector_and_text_search, "INDEXED_SCOPE", 50)
    assert filled.search.create_indexes(FakeEncoder())["made"].to_list() == ["there"] * 4 + ["made"]
    # One partition at this size, so the index misses nothing and its distances are exact.
    assert_agree(filled, ["scope-1"] * 5, 10)


def test_queries_that_cannot_be_compared(filled: MemoryStore) -> None:
    for asked, message in (
        (np.ones((1, 7)), r"shape \(1, 7\); expected \(n, 8\)"),
        (np.full((1, 8), np.nan), "row 0 holds NaN"),
        (np.ones((2, 8)), "2 queries have 1 scopes"),
    ):
        with pytest.raises(StoreError, match=message):
            filled.search.by_vector(
                asked, column="vector_fake_8", dataset="small", scopes=["scope-0"], k=3
            )


def test_text_search_finds_words_in_their_scope_and_signs_are_only_text(
    filled: MemoryStore,
) -> None:
    filled.search.create_indexes()
    turns = filled.turns("small", columns=["turn_id", "scope", "text", "content_hash"])
    for word, query, scope in (
        ("dentist", "the dentists", "scope-1"),
        ("guitar", "guitar", "scope-3"),
    ):
        got = filled.search.by_text([query], dataset="small", scopes=[scope], k=1000)
        said = turns.filter((pl.col("scope") == scope) & pl.col("text").str.contains(word))[
            "turn_id"
        ]
        assert set(got["doc_id"]) == set(said) != set()
        placed = got.join(
            turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left"
        )
        assert placed.equals(
            placed.sort("score", "content_hash", descending=[True, False], maintain_order=True)
        )
    texts = [
        "",
        " ",
        "\x00",
        '"',
        "'; --",
        "💥",
        "(((",
        "the",
        "dentist",
        "dentist AND (",
        "+dentist -",
        "dentist~2 *",
    ]
    texts += ["\x00dentist\x00", '"dentist"^3', "NOT dentist", "-dentist"]
    found = filled.search.by_text(texts, dataset="small", scopes=["scope-0"] * len(texts), k=1000)
    said = turns.filter((pl.col("scope") == "scope-0") & pl.col("text").str.contains("dentist"))[
        "turn_id"
    ]
    for row, text in enumerate(texts):
        assert set(found.filter(query=row)["doc_id"]) == (
            set(said) if "dentist" in text else set()
        ), text
