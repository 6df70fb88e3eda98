"""Groups of embeddings for the selectors that look at clusters."""

from __future__ import annotations

import numpy as np

from memlab.errors import DataError

CLUSTERINGS = ("kmeans", "hdbscan")


def groups(points: np.ndarray, *, clustering: str, n_clusters: int, min_cluster_size: int, seed: int) -> np.ndarray:
    """Group unit rows; every row has a group, and what density leaves out as noise has one of its own.

    HDBSCAN works in the embedding space: UMAP before it, which finds clearer groups, would take seconds a query.

    :param points: (n, d) unit rows.
    :param clustering: ``kmeans`` into ``n_clusters`` groups (fewer where there are fewer different rows), or
        ``hdbscan``, which finds how many groups there are.
    :param min_cluster_size: of HDBSCAN: a group has at least as many members.
    :param seed: of k-means.
    :returns: (n,) group of each row.
    """
    if clustering == "hdbscan":
        from memlab.cluster import hdbscan_labels

        labels = hdbscan_labels(points, min_cluster_size=min_cluster_size, n_components=None)
        alone = labels < 0
        labels[alone] = labels.max(initial=-1) + 1 + np.arange(alone.sum())
        return labels
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    n = min(n_clusters, len(np.unique(points, axis=0)))
    if n < 2:
        return np.zeros(len(points), np.int64)
    # These are too few rows for threads: starting them costs more than the work.
    with threadpool_limits(1):
        return KMeans(n, n_init=1, random_state=seed).fit_predict(points)


def check(clustering: str, n_clusters: int, min_cluster_size: int) -> None:
    """Refuse what neither clustering can use."""
    if clustering not in CLUSTERINGS:
        raise DataError(f"clustering is {clustering!r}; choose from {', '.join(CLUSTERINGS)}")
    if n_clusters < 1:
        raise DataError(f"n_clusters is {n_clusters}; make at least one group")
    if min_cluster_size < 2:
        raise DataError(f"min_cluster_size is {min_cluster_size}; a group has at least 2 members")
