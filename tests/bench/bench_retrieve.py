"""How long retrieval and selection take: what is worth an index, and what going through many queries at once buys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import pyversity
from pytest_benchmark.fixture import BenchmarkFixture

from memlab.datasets import synthetic
from memlab.records import Run
from memlab.retrieve import Bench, bm25, dense, hybrid
from memlab.select import by_cluster, mmr
from memlab.store import MemoryStore

N_TURNS, N_QUERIES, K = 20_000, 100, 50


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """One scope of many turns: what an index is for."""
    data = synthetic.generate(N_TURNS, seed=0, turns_per_scope=N_TURNS)
    store = MemoryStore.open(tmp_path_factory.mktemp("bench") / "store")
    made = Bench.of(replace(data, questions=data.questions.head(N_QUERIES)), encoder="hashing", store=store)
    assert made.turn_vectors is not None  # encoded here
    store.search.create_indexes(made.encoder)
    made.documents("turn")
    return made


@pytest.fixture(scope="module")
def candidates(bench: Bench) -> Run:
    return hybrid(bench, k=200)


def alone(bench: Bench) -> list[Bench]:
    """Give a bench for each query; the documents, which do not change, are shared."""
    found = []
    for row in range(bench.queries.height):
        one = replace(bench, queries=bench.queries[[row]], query_vectors=bench.query_vectors[[row]])
        found.append(one)
    return found


@pytest.mark.parametrize("path", ["exact", "indexed"])
def test_dense(benchmark: BenchmarkFixture, bench: Bench, path: str) -> None:
    run = benchmark.pedantic(dense, (bench,), {"k": K, "path": path}, rounds=3, warmup_rounds=1)
    assert run.frame.height == bench.queries.height * K


def test_dense_one_by_one(benchmark: BenchmarkFixture, bench: Bench) -> None:
    benches = alone(bench)
    frames = benchmark.pedantic(lambda: [dense(one, k=K).frame for one in benches], rounds=3, warmup_rounds=1)
    assert pl.concat(frames).equals(dense(bench, k=K).frame)


@pytest.mark.parametrize("path", ["exact", "indexed"])
def test_bm25(benchmark: BenchmarkFixture, bench: Bench, path: str) -> None:
    run = benchmark.pedantic(bm25, (bench,), {"k": K, "path": path}, rounds=3)
    assert run.frame["query_id"].n_unique() > 0.9 * bench.queries.height


def test_bm25_one_by_one(benchmark: BenchmarkFixture, bench: Bench) -> None:
    """Of ten queries only: every call indexes the scope anew."""
    benches = alone(bench)[:10]
    frames = benchmark.pedantic(lambda: [bm25(one, k=K).frame for one in benches], rounds=1)
    assert len(frames) == 10


def test_hybrid(benchmark: BenchmarkFixture, bench: Bench) -> None:
    assert benchmark.pedantic(hybrid, (bench,), {"k": K}, rounds=3).frame.height == bench.queries.height * K


def test_mmr(benchmark: BenchmarkFixture, bench: Bench, candidates: Run) -> None:
    run = benchmark.pedantic(mmr, (candidates, bench), {"k": K}, rounds=3)
    assert run.frame.height == candidates.frame.height


def test_mmr_by_pyversity(benchmark: BenchmarkFixture, bench: Bench, candidates: Run) -> None:
    """The same selection a query at a time, its inputs ready at hand."""
    documents = bench.documents("turn")
    rows = candidates.frame.partition_by("query_id", maintain_order=True)
    inputs = [(documents.vectors()[documents.at(r["doc_id"])], r["score"].to_numpy()) for r in rows]

    def select() -> list[np.ndarray]:
        return [pyversity.mmr(vectors, scores, K, diversity=0.3).indices for vectors, scores in inputs]

    assert len(benchmark.pedantic(select, rounds=3)) == bench.queries.height


def test_by_cluster(benchmark: BenchmarkFixture, bench: Bench, candidates: Run) -> None:
    run = benchmark.pedantic(by_cluster, (candidates, bench), rounds=3)
    assert run.frame.height == candidates.frame.height
