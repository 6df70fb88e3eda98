"""Cluster-based selection: the best of each group, round robin."""

from __future__ import annotations

from typing import Any

import numpy as np

from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.select._each import each
from memlab.select._groups import check, groups


@stage
def by_cluster(
    run: Run,
    bench: Bench,
    *,
    n_clusters: int = 10,
    candidates: int = 50,
    clustering: str = "kmeans",
    min_cluster_size: int = 5,
    seed: int = 0,
) -> Run:
    """Group the first candidates by their embeddings, then take the best of each group in turn.

    In a round, groups come in the order of their best remaining candidate. :func:`expand_cluster` does the opposite.

    :param n_clusters: how many groups k-means makes; as many as there are different candidates where those are fewer.
    :param candidates: how many of the run's first documents to group; the rest follow as they were.
    :param clustering: ``kmeans``, or ``hdbscan``, where each candidate that is in no dense group is a group of its own:
        only what is very much alike waits for a later round.
    :param min_cluster_size: of HDBSCAN: the least members of a group.
    :param seed: of k-means.
    :raises DataError: for a count out of range, an unknown clustering, or without embeddings.

    >>> from memlab import datasets, retrieve, select
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> one_group = select.by_cluster(plain, bench, n_clusters=1)
    >>> one_group.frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    check(clustering, n_clusters, min_cluster_size)
    how: dict[str, Any] = {"clustering": clustering, "n_clusters": n_clusters, "min_cluster_size": min_cluster_size}

    def in_turn(embedded: np.ndarray, _: np.ndarray) -> np.ndarray:
        return round_robin(groups(embedded, seed=seed, **how))

    return each(run, bench, candidates, in_turn, task="clustering candidates")


def round_robin(labels: np.ndarray) -> np.ndarray:
    """Order candidates so that each round holds the best remaining one of every group.

    :param labels: (n,) group of each candidate, in order of rank.
    :returns: (n,) ranks (from 0) in their new order.

    >>> import numpy as np
    >>> from memlab.select.by_cluster import round_robin
    >>> round_robin(np.array([0, 0, 0, 1, 2, 1])).tolist()
    [0, 3, 4, 1, 5, 2]
    """
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    depth = np.arange(len(labels)) - np.repeat(first, np.diff(np.r_[first, len(labels)]))
    round_of = np.empty(len(labels), np.int64)
    round_of[order] = depth
    return np.lexsort((np.arange(len(labels)), round_of))
