"""Hybrid retrieval: dense and BM25 rankings joined by weighted reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence

from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.dense import dense
from memlab.retrieve.fusion import RRF_K, rrf


@stage
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
