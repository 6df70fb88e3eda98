"""Hybrid retrieval: dense and BM25 rankings joined by weighted reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memlab.errors import DataError
from memlab.records import Level, Run, run_from_scores
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.dense import dense

RRF_K = 60


def hybrid(
    bench: Bench,
    *,
    level: Level = "turn",
    k: int = 200,
    weights: Sequence[float] = (1.0, 1.0),
    rrf_k: int = RRF_K,
    path: str = "exact",
) -> Run:
    """Fuse the dense and the BM25 ranking, each ``k`` deep.

    :param weights: of the dense and of the BM25 ranking.
    :param rrf_k: the constant of reciprocal rank fusion.
    :param path: ``exact`` or ``indexed``, for both rankings.

    Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (SIGIR 2009).

    >>> from memlab import datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> retrieve.hybrid(bench, k=5, weights=(2, 1)).frame["rank"].max()
    5
    """
    if len(weights) != 2:
        raise DataError(f"weights={tuple(weights)}; hybrid takes two, for dense and for BM25")
    runs = [dense(bench, level=level, k=k, path=path), bm25(bench, level=level, k=k, path=path)]
    return bench.show(rrf(runs, weights=weights, k=k, rrf_k=rrf_k))


def rrf(runs: Sequence[Run], *, weights: Sequence[float] | None = None, k: int = 200, rrf_k: int = RRF_K) -> Run:
    """Fuse rankings: a document scores Σ weight / (rrf_k + rank) over the runs that hold it.

    A document that a run lists at a score of 0 or less, as BM25 does to fill its places, gains nothing from that run.

    :param weights: one a run, not negative; all 1 by default.
    :raises DataError: when runs are of different levels, or weights do not fit.
    """
    weights = [1.0] * len(runs) if weights is None else list(weights)
    if len(weights) != len(runs) or not runs:
        raise DataError(f"{len(runs)} runs and {len(weights)} weights; give one weight a run")
    if len({run.level for run in runs}) > 1:
        raise DataError("runs of turns and runs of sessions cannot be fused; rank at one level")
    if min(weights) < 0 or rrf_k < 0:
        raise DataError(f"weights={weights}, rrf_k={rrf_k}; neither may be negative")
    parts = [
        run.frame.select(
            "query_id",
            "doc_id",
            gain=pl.when(pl.col("score") > 0).then(float(weight) / (float(rrf_k) + pl.col("rank"))).otherwise(0.0),
        )
        for run, weight in zip(runs, weights, strict=True)
    ]
    fused = pl.concat(parts).group_by("query_id", "doc_id", maintain_order=True).agg(pl.col("gain").sum())
    level = runs[0].level
    return run_from_scores(
        fused["query_id"].to_numpy(), fused["doc_id"].to_numpy(), fused["gain"].to_numpy(), level=level, k=k
    )
