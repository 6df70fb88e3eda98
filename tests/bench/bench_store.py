"""How long the store takes: writing, reading, and search by comparing everything or through LanceDB."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from memlab.embed import EncoderIdentity
from memlab.records import Dataset, Session, Turn, frame, schema
from memlab.store import MemoryStore

N_TURNS, N_SCOPES, DIM, N_QUERIES, K = 50_000, 20, 384, 100, 50


class RandomEncoder:
    """Vectors at no cost, so that only the store is measured."""

    identity = EncoderIdentity("random", "random", "1", "none", "", "", None, True, DIM)
    dim = DIM

    def encode(self, texts: Any, *, kind: str = "document", progress: bool = True) -> np.ndarray:
        vectors = np.random.default_rng(len(texts)).standard_normal((len(texts), DIM), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(4000)])
    at = np.arange(N_TURNS)
    per_scope = N_TURNS // N_SCOPES
    said = pl.DataFrame(rng.choice(words, (N_TURNS, 15))).select(pl.concat_str(pl.all(), separator=" ")).to_series()
    turns = pl.DataFrame({"scope": at // per_scope, "session": at % per_scope // 20, "n": at % 20 + 1, "text": said})
    session = pl.format("scope-{}/session_{}", "scope", "session")
    turns = turns.with_columns(
        turn_id=pl.format("{}/{}", session, "n"),
        session_id=session,
        scope=pl.format("scope-{}", "scope"),
        speaker=pl.lit("user"),
        role=pl.lit("user"),
        caption=pl.lit(None),
        timestamp=pl.lit(datetime(2024, 1, 1, tzinfo=UTC)),
    )
    types = schema(Turn)
    return Dataset("bench", "synthetic", turns.select(*types).cast(types), frame(Session))


@pytest.fixture(scope="module")
def filled(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    store = MemoryStore.open(tmp_path_factory.mktemp("bench") / "store")
    store.ingest(data)
    store.vectors.backfill(RandomEncoder(), "bench", progress=False)
    store.search.create_indexes(RandomEncoder())
    return store


def test_ingest_new(benchmark: BenchmarkFixture, data: Dataset, tmp_path: Path) -> None:
    places = iter(range(sys.maxsize))

    def fresh() -> tuple[tuple[MemoryStore], dict[str, Any]]:
        return (MemoryStore.open(tmp_path / str(next(places))),), {}

    report = benchmark.pedantic(lambda store: store.ingest(data), setup=fresh, rounds=3)
    assert report["inserted"].sum() == N_TURNS


def test_ingest_again(benchmark: BenchmarkFixture, data: Dataset, filled: MemoryStore) -> None:
    report = benchmark.pedantic(filled.ingest, args=(data,), rounds=3)
    assert report["inserted"].sum() == 0


def test_read_dataset(benchmark: BenchmarkFixture, filled: MemoryStore) -> None:
    assert benchmark.pedantic(filled.dataset, args=("bench",), rounds=3).turns.height == N_TURNS


def test_read_vectors(benchmark: BenchmarkFixture, filled: MemoryStore) -> None:
    got = benchmark.pedantic(filled.vectors.read, args=(RandomEncoder(), "bench"), rounds=3)
    assert got.shape == (N_TURNS, DIM)


def test_encode_from_cache(benchmark: BenchmarkFixture, filled: MemoryStore) -> None:
    texts = filled.turns("bench", columns=["content"])["content"].head(1000)
    got = benchmark.pedantic(filled.encode, args=(RandomEncoder(), texts), kwargs={"progress": False}, rounds=3)
    assert got.shape == (1000, DIM)


def test_search_exact_by_product(benchmark: BenchmarkFixture, filled: MemoryStore) -> None:
    vectors, queries = filled.vectors.read(RandomEncoder(), "bench"), RandomEncoder().encode(range(N_QUERIES))
    scopes = filled.turns("bench", columns=["scope"])["scope"].to_numpy()

    def search() -> np.ndarray:
        mine = np.flatnonzero(scopes == "scope-3")
        return np.argsort(-(queries @ vectors[mine].T), axis=1)[:, :K]

    assert benchmark(search).shape == (N_QUERIES, K)


@pytest.mark.parametrize("n_scopes", [1, N_SCOPES])
def test_search_vectors(benchmark: BenchmarkFixture, filled: MemoryStore, n_scopes: int) -> None:
    queries = RandomEncoder().encode(range(N_QUERIES))
    options = {
        "column": filled.vectors.column(RandomEncoder()),
        "dataset": "bench",
        "scopes": [f"scope-{i % n_scopes}" for i in range(N_QUERIES)],
        "k": K,
    }
    assert benchmark.pedantic(filled.search.by_vector, (queries,), options, rounds=3).height == N_QUERIES * K


def test_search_text(benchmark: BenchmarkFixture, filled: MemoryStore) -> None:
    texts = filled.turns("bench", columns=["text"])["text"].head(N_QUERIES)
    options = {"dataset": "bench", "scopes": ["scope-0"] * N_QUERIES, "k": K}
    found = benchmark.pedantic(filled.search.by_text, (texts,), options, rounds=3)
    assert found["query"].n_unique() == N_QUERIES
