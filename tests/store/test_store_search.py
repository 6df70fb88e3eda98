"""Search in the database finds what comparing everything finds."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from store_data import FakeEncoder, awkward, build

from memlab.embed.text import turn_texts
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


def test_turns_without_a_vector_are_not_found_by_vector(filled: MemoryStore) -> None:
    more = build(4, 5, 21)
    filled.ingest(more)
    query = FakeEncoder().encode(["q"])
    given = {"column": filled.vectors.column(FakeEncoder()), "dataset": "small", "scopes": ["scope-0"], "k": 1000}
    found = filled.search.by_vector(query, **given)
    assert 0 < found.height < 105
    assert found["score"].is_finite().all()


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


def test_the_order_of_text_search_does_not_depend_on_k(filled: MemoryStore) -> None:
    filled.search.create_indexes()
    whole = filled.search.by_text(["violin piano"], dataset="small", scopes=["scope-0"], k=1000)
    for k in (1, 2, 5, 9):
        assert filled.search.by_text(["violin piano"], dataset="small", scopes=["scope-0"], k=k).equals(whole.head(k))


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


def test_indexes_follow_what_is_written_later(filled: MemoryStore) -> None:
    filled.search.create_indexes()
    data = build(4, 5, 21)
    said = pl.when(pl.col("n") == 3).then(pl.lit("a xylophone")).otherwise("text")
    changed = replace(data, turns=data.turns.with_columns(text=said))
    filled.ingest(changed)
    filled.vectors.backfill(FakeEncoder(name="later"), "small", progress=False)
    filled.vectors.backfill(FakeEncoder(), "small", progress=False)
    for _ in range(2):
        found = filled.search.by_text(["xylophone"], dataset="small", scopes=["scope-2"], k=50)
        assert sorted(found["doc_id"]) == [f"scope-2/session_{s}/3" for s in range(5)]
        queries = FakeEncoder().encode(turn_texts(changed.turns)[:3])
        given = {"column": "vector_fake_8", "dataset": "small", "scopes": ["scope-0"] * 3, "k": 5}
        assert_agree(filled.search.by_vector(queries, **given), product(filled, queries, ["scope-0"] * 3, 5))
        filled.optimize()


def test_ids_with_quotes_are_searched_like_others(store: MemoryStore) -> None:
    data = awkward()
    store.ingest(data)
    store.vectors.backfill(FakeEncoder(), data.name, progress=False)
    store.search.create_indexes()
    queries = np.repeat(FakeEncoder().encode(["x"]), len(data.scopes), axis=0)
    found = store.search.by_vector(queries, column="vector_fake_8", dataset=data.name, scopes=data.scopes, k=3)
    assert found["doc_id"].to_list() == [f"{scope}/s/1" for scope in data.scopes]
    texts = store.search.by_text(["inside"] * len(data.scopes), dataset=data.name, scopes=data.scopes, k=3)
    inside = [row for row, text in enumerate(data.turns["text"]) if "inside" in text]
    assert texts["query"].to_list() == inside
