"""Search in the database finds what comparing everything finds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from store_data import FakeEncoder, build

from memlab.errors import StoreError
from memlab.store import MemoryStore, search


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    store = MemoryStore.open(tmp_path_factory.mktemp("filled") / "store")
    store.ingest([build(4, 5, 20), build(4, 5, 20, name="other", seed=1)])
    for name in ("small", "other"):
        store.vectors.backfill(FakeEncoder(), name, progress=False)
    return store


def assert_agree(store: MemoryStore, scopes: list[str], k: int) -> None:
    """Compare with every vector of the scope by matrix product, best first, ties in the dataset's order."""
    queries, column = FakeEncoder().encode([f"q{i}" for i in range(5)]), store.vectors.column(FakeEncoder())
    found = store.search.by_vector(queries, column=column, dataset="small", scopes=scopes, k=k)
    assert found.schema == {"query": pl.Int32, "doc_id": pl.String, "session_id": pl.String, "score": pl.Float64}
    turns, vectors = store.turns("small", columns=["turn_id", "scope"]), store.vectors.read(FakeEncoder(), "small")
    for row, scope in enumerate(scopes):
        own = np.flatnonzero(turns["scope"] == scope)
        scores, got = vectors[own] @ queries[row], found.filter(query=row)
        best = np.argsort(-scores, kind="stable")[:k]
        assert got["doc_id"].to_list() == turns["turn_id"][own[best]].to_list()
        np.testing.assert_allclose(got["score"], scores[best], atol=1e-5)


def test_search_agrees_with_the_product_and_indexes_are_made_once(
    filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match=r"no full-text index; run store.search.create_indexes\(\)"):
        filled.search.by_text(["dentist"], dataset="small", scopes=["scope-0"], k=3)
    for k in (1, 10, 500):
        assert_agree(filled, ["scope-2", "scope-0", "scope-2", "scope-3", "scope-2"], k)
    made = filled.search.create_indexes(FakeEncoder())
    assert made["made"].to_list() == ["made"] * 4 + ["left out: the largest scope has 100 turns, it pays from 100,000"]
    monkeypatch.setattr(search, "INDEXED_SCOPE", 50)
    assert filled.search.create_indexes(FakeEncoder())["made"].to_list() == ["there"] * 4 + ["made"]
    # One partition at this size, so the index misses nothing and its distances are exact.
    assert_agree(filled, ["scope-1"] * 5, 10)


def test_queries_that_cannot_be_compared(filled: MemoryStore) -> None:
    for vectors, message in (
        (np.ones((1, 7)), r"shape \(1, 7\); expected \(n, 8\)"),
        (np.full((1, 8), np.nan), "row 0 holds NaN"),
        (np.ones((2, 8)), "2 queries have 1 scopes"),
    ):
        with pytest.raises(StoreError, match=message):
            filled.search.by_vector(vectors, column="vector_fake_8", dataset="small", scopes=["scope-0"], k=3)


def test_text_search_finds_words_in_their_scope_and_signs_are_only_text(filled: MemoryStore) -> None:
    filled.search.create_indexes()
    turns = filled.turns("small", columns=["turn_id", "scope", "text", "content_hash"])
    for word, query, scope in (("dentist", "the dentists", "scope-1"), ("guitar", "guitar", "scope-3")):
        got = filled.search.by_text([query], dataset="small", scopes=[scope], k=1000)
        said = turns.filter((pl.col("scope") == scope) & pl.col("text").str.contains(word))["turn_id"]
        assert set(got["doc_id"]) == set(said) != set()
        placed = got.join(turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left")
        assert placed.equals(placed.sort("score", "content_hash", descending=[True, False], maintain_order=True))
    texts = ["", " ", "\x00", '"', "'; --", "💥", "(((", "the", "dentist", "dentist AND (", "+dentist -", "dentist~2 *"]
    texts += ["\x00dentist\x00", '"dentist"^3', "NOT dentist", "-dentist"]
    found = filled.search.by_text(texts, dataset="small", scopes=["scope-0"] * len(texts), k=1000)
    said = turns.filter((pl.col("scope") == "scope-0") & pl.col("text").str.contains("dentist"))["turn_id"]
    for row, text in enumerate(texts):
        assert set(found.filter(query=row)["doc_id"]) == (set(said) if "dentist" in text else set()), text
