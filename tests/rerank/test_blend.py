"""Position-aware blending against the formula, one document at a time, and its laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.rerank import blend_by_position
from memlab.retrieve import Bench, bm25, sessions_from_turns

BENCH = Bench.of(memlab.sample(["owen"], turns=200), encoder=None)
IDS = BENCH.documents("turn").ids


def run_of(scores: list[list[float]]) -> Run:
    """Rank the first turns by given scores, one list a query."""
    query = np.repeat([f"q{i}" for i in range(len(scores))], [len(s) for s in scores])
    documents = np.concatenate([np.zeros(0, object), *(IDS[: len(s)] for s in scores)])
    values = np.concatenate([np.zeros(0), *map(np.array, scores)])
    return run_from_scores(query, documents, values.astype(float), level="turn", k=500)


def order_of(run: Run) -> dict[str, list[str]]:
    return dict(run.frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())


def scale(value: float, values: list[float]) -> float:
    return (value - min(values)) / (max(values) - min(values)) if max(values) > min(values) else 1.0


def test_the_formula_by_hand() -> None:
    rng = np.random.default_rng(0)
    run = run_of([rng.standard_normal(n).tolist() for n in (1, 2, 40)])
    reranked = run_of([rng.standard_normal(n).tolist() for n in (1, 2, 9)])
    wanted = {}
    for (query,), rows in run.frame.group_by("query_id", maintain_order=True):
        second = dict(reranked.frame.filter(pl.col("query_id") == query).select("doc_id", "score").iter_rows())
        scores = {}
        for document, rank, score in rows.select("doc_id", "rank", "score").iter_rows():
            w = 0.75 if rank <= 3 else 0.6 if rank <= 10 else 0.4
            other = scale(second[document], list(second.values())) if document in second else 0.0
            scores[document] = w * scale(score, rows["score"].to_list()) + (1 - w) * other
        wanted[str(query)] = sorted(scores, key=lambda d: -scores[d])
    assert order_of(blend_by_position(run, reranked, BENCH)) == wanted


def test_what_only_the_reranker_brings_stays_out_and_levels_may_not_differ() -> None:
    run = run_of([[3.0, 2.0, 1.0]])
    brought = run_of([[0.0, 1.0, 2.0, 3.0, 4.0]])
    assert set(order_of(blend_by_position(run, brought, BENCH))["q0"]) == set(order_of(run)["q0"])
    nothing = replace(brought, frame=brought.frame.head(0))
    assert order_of(blend_by_position(run, nothing, BENCH)) == order_of(run)
    turns = bm25(BENCH, k=5)
    with pytest.raises(DataError, match="ranks turns and the reranked one sessions"):
        blend_by_position(turns, sessions_from_turns(turns, BENCH), BENCH)
