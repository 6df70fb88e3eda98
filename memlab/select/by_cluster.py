"""Cluster-based selection: the best of each group, round robin."""

from __future__ import annotations

import numpy as np

from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve.bench import Bench
from memlab.select._candidates import chunks, reordered


def by_cluster(run: Run, bench: Bench, *, n_clusters: int = 10, candidates: int = 50, seed: int = 0) -> Run:
    """Group the first candidates by k-means over their embeddings, then take the best of each group in turn.

    In a round, groups come in the order of their best remaining candidate.

    :param n_clusters: how many groups; as many as there are candidates where those are fewer.
    :param candidates: how many of the run's first documents to group; the rest follow as they were.
    :param seed: of k-means.
    :raises DataError: for a count below 1, or without embeddings.

    >>> from memlab import datasets, retrieve, select
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> one_group = select.by_cluster(plain, bench, n_clusters=1)
    >>> one_group.frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits
    from tqdm.auto import tqdm

    if n_clusters < 1:
        raise DataError(f"n_clusters is {n_clusters}; make at least one group")
    vectors = bench.documents(run.level).vectors()
    n_queries = run.frame["query_id"].n_unique()
    chosen: list[np.ndarray] = []
    # k-means over fifty rows is too small for threads: starting them costs more than the work.
    with threadpool_limits(1), tqdm(total=n_queries, desc="clustering candidates", disable=n_queries < 500) as bar:
        for _, some in chunks(run, bench, candidates):
            for at, held in zip(some.at, some.held, strict=True):
                points = vectors[at[held]]
                groups = min(n_clusters, len(np.unique(points, axis=0)))
                labels = KMeans(groups, n_init=1, random_state=seed).fit_predict(points) if groups > 1 else None
                chosen.append(np.arange(len(points)) if labels is None else round_robin(labels))
                bar.update()
    return reordered(run, bench, chosen)


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
