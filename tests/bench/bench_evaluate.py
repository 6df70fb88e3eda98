"""How long scoring, intervals, tests and TREC files take. Run with ``make bench``."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from memlab.evaluate import (
    DEFAULT_MEASURES,
    Measure,
    bootstrap_interval,
    randomisation_test,
    read_run,
    score,
    write_run,
)
from memlab.records import Qrels, run_from_scores
from memlab.registry import measures as NAMES

QUERIES, DEPTH = 2_000, 200


@pytest.fixture(scope="module")
def big():
    rng = np.random.default_rng(0)
    queries = np.repeat([f"conv-{q % 10}/q{q}" for q in range(QUERIES)], DEPTH)
    docs = np.array([f"conv-{q % 10}/session_{d // 20}/{d % 20}" for q in range(QUERIES) for d in range(DEPTH)])
    run = run_from_scores(queries, docs, rng.random(len(docs)), level="turn", k=DEPTH)
    held = run.frame.sample(fraction=0.015, seed=0).select("query_id", "doc_id", relevance=pl.lit(1, pl.Int32))
    return run, Qrels(held.with_columns(subtopic=pl.col("doc_id").str.replace(r"/[^/]*$", "")), "turn")


def test_score_every_measure(benchmark, big):
    wanted = [Measure(name, k) for name in NAMES for k in (1, 5, 10, 20, 50)]
    table = benchmark(score, *big, wanted)
    assert table.width == len(wanted) + 1
    assert benchmark.stats.stats.min < 1.0


def test_score_default_measures(benchmark, big):
    assert benchmark(score, *big, DEFAULT_MEASURES["turn"]).height > 1_000


def test_bootstrap(benchmark):
    values = np.random.default_rng(0).random((QUERIES, 8))
    low, high = benchmark(bootstrap_interval, values, np.ones(QUERIES))
    assert (low < high).all()


def test_randomisation(benchmark):
    differences = np.random.default_rng(0).normal(0.02, 1.0, QUERIES)
    assert 0 < benchmark(randomisation_test, differences) <= 1


def test_write_and_read_run(benchmark, big, tmp_path):
    back = benchmark(lambda: read_run(write_run(big[0], tmp_path / "x.trec"), "turn"))
    assert back.frame.equals(big[0].frame)
