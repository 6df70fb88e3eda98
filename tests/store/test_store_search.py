"""Search in the database finds what comparing everything finds."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from store_data import FakeEncoder, build

from memlab.errors import StoreError
from memlab.store import MemoryStore, search


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("template") / "store"
    store = MemoryStore.open(place)
    store.ingest([build(4, 5, 20), build(4, 5, 20, name="other", seed=1)])
    for name in ("small", "other"):
        store.vectors.backfill(FakeEncoder(), name, progress=False)
    return place


@pytest.fixture
def filled(template: Path, tmp_path: Path) -> MemoryStore:
    shutil.copytree(template, tmp_path / "filled")
    return MemoryStore.open(tmp_path / "filled")


def product(store: MemoryStore, queries: np.ndarray, scopes: list[str], k: int) -> pl.DataFrame:
    """The reference: every vector of the scope by matrix product, best first, ties in the dataset's order."""
    turns = store.turns("small", columns=["turn_id", "scope"]).with_row_index("at")
    scores = queries @ store.vectors.read(FakeEncoder(), "small").T
    parts = []
    for row, scope in enumerate(scopes):
        mine = turns.filter(pl.col("scope") == scope)
        found = mine.select(query=pl.lit(row, pl.Int32), doc_id="turn_id", score=pl.Series(scores[row][mine["at"]]))
        parts.append(found.cast({"score": pl.Float64}).sort("score", descending=True, maintain_order=True).head(k))
    return pl.concat(parts)


def assert_agree(got: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert got.schema == {"query": pl.Int32, "doc_id": pl.String, "session_id": pl.String, "score": pl.Float64}
    assert got.select("query", "doc_id").rows() == expected.select("query", "doc_id").rows()
    np.testing.assert_allclose(got["score"], expected["score"], atol=1e-5)


@pytest.mark.parametrize("k", [1, 10, 500])
def test_vector_search_agrees_with_the_product(filled: MemoryStore, k: int) -> None:
    scopes = ["scope-2", "scope-0", "scope-2", "scope-3", "scope-2"]
    queries = FakeEncoder().encode([f"q{i}" for i in range(5)])
    column = filled.vectors.column(FakeEncoder())
    got = filled.search.by_vector(queries, column=column, dataset="small", scopes=scopes, k=k)
    assert_agree(got, product(filled, queries, scopes, k))


def test_search_through_a_vector_index(filled: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, column = FakeEncoder(), filled.vectors.column(FakeEncoder())
    made = filled.search.create_indexes(encoder)
    assert made["made"].to_list() == ["made"] * 4 + ["left out: the largest scope has 100 turns, it pays from 100,000"]
    monkeypatch.setattr(search, "INDEXED_SCOPE", 50)
    made = filled.search.create_indexes(encoder)
    assert made["made"].to_list() == ["there"] * 4 + ["made"]
    assert filled.search.create_indexes(encoder)["made"].to_list() == ["there"] * 5
    queries = encoder.encode([f"q{i}" for i in range(5)])
    scopes = ["scope-1"] * 5
    expected = product(filled, queries, scopes, 10)
    given = {"column": column, "dataset": "small", "scopes": scopes, "k": 10}
    # One partition at this size, so the index misses nothing and its distances are exact.
    assert_agree(filled.search.by_vector(queries, **given), expected)


@pytest.mark.parametrize(
    ("vectors", "scopes", "message"),
    [
        (np.ones((1, 7)), ["scope-0"], r"shape \(1, 7\); expected \(n, 8\)"),
        (np.full((2, 8), np.nan), ["scope-0"] * 2, "row 0 holds NaN"),
        (np.ones(8), ["scope-0"], r"shape \(8,\)"),
        (np.ones((2, 8)), ["scope-0"], "2 queries have 1 scopes"),
    ],
)
def test_queries_that_cannot_be_compared(
    filled: MemoryStore, vectors: np.ndarray, scopes: list[str], message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        filled.search.by_vector(vectors, column="vector_fake_8", dataset="small", scopes=scopes, k=3)


def test_text_search_finds_words_in_their_scope(filled: MemoryStore) -> None:
    with pytest.raises(StoreError, match=r"no full-text index; run store.search.create_indexes\(\)"):
        filled.search.by_text(["dentist"], dataset="small", scopes=["scope-0"], k=3)
    filled.search.create_indexes()
    turns = filled.turns("small")
    got = filled.search.by_text(["the dentists", "guitar"], dataset="small", scopes=["scope-1", "scope-3"], k=1000)
    for row, (word, scope) in enumerate([("dentist", "scope-1"), ("guitar", "scope-3")]):
        said = turns.filter((pl.col("scope") == scope) & pl.col("text").str.contains(word))["turn_id"]
        assert said.len() > 0
        assert set(got.filter(query=row)["doc_id"]) == set(said)
    hashed = turns.select("turn_id", lot=filled.turns("small", columns=["content_hash"])["content_hash"])
    placed = got.join(hashed, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left")
    assert placed.equals(placed.sort("query", "score", "lot", descending=[False, True, False], maintain_order=True))


def test_signs_in_a_query_are_only_text(filled: MemoryStore) -> None:
    filled.search.create_indexes()
    words = ["", " ", "\x00", '"', "'; --", "💥", "(((", "the", "dentist"]
    signs = ["dentist AND (", "+dentist -", "dentist~2 *", "\x00dentist\x00", '"dentist"^3', "NOT dentist", "-dentist"]
    texts = [*words, *signs]
    found = filled.search.by_text(texts, dataset="small", scopes=["scope-0"] * len(texts), k=1000)
    said = set(filled.turns("small", scopes=["scope-0"]).filter(pl.col("text").str.contains("dentist"))["turn_id"])
    assert len(said) > 5
    for row, text in enumerate(texts):
        assert set(found.filter(query=row)["doc_id"]) == (said if "dentist" in text else set()), text
