"""Groups of texts by density: any number of groups of any shape, and the rest is noise."""

from __future__ import annotations

import warnings

import numpy as np

from memlab.cluster.projection import fixed_order, project, unit_rows
from memlab.errors import at_least

NOISE = -1


def hdbscan_labels(
    embeddings: np.ndarray, *, min_cluster_size: int = 5, n_components: int | None = 5, seed: int = 0
) -> np.ndarray:
    """Find the dense groups of embeddings; what belongs to none is noise.

    Density is estimated after UMAP to a few dimensions, and the leaves of the cluster tree are taken: the usual "excess
    of mass" put 95 % of a LoCoMo conversation into one cluster for two seeds of four. These clusters depend on the seed
    (adjusted Rand index between two seeds 0.43 on average), so repeat a finding over several; clusters in the embedding
    space depend on nothing but the data.

    Rows are scaled to unit length. All-zero rows have no direction and are noise. Fewer than ``min_cluster_size`` rows
    are all noise; identical rows are one cluster.

    :param embeddings: (n, d) finite numbers.
    :param min_cluster_size: the smallest group to call a cluster, at least 2; a point is as dense as its distance to
        half as many neighbours is small.
    :param n_components: dimensions to reduce to with UMAP first; ``None`` clusters in the embedding space,
        as does a number not below d.
    :param seed: of the reduction; without reduction nothing is random.
    :returns: (n,) int64 labels from 0, the largest cluster first (ties by first member), noise ``NOISE`` = −1.
    :raises DataError: when the array is not (n, d), holds NaN or infinity, or a parameter is out of range.

    Campello, Moulavi and Sander, "Density-Based Clustering Based on Hierarchical Density Estimates", 2013; UMAP
    with ``min_dist=0`` before it as in Grootendorst, "BERTopic", 2022, section 3.

    >>> import numpy as np
    >>> from memlab.cluster import hdbscan_labels
    >>> east, north = np.tile([1.0, 0.0], (6, 1)), np.tile([0.0, 1.0], (9, 1))
    >>> hdbscan_labels(np.vstack([east, north, [[0.0, 0.0]]]), n_components=None).tolist()
    [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1]
    """
    at_least(2, min_cluster_size=min_cluster_size)
    rows = unit_rows(embeddings)
    labels = np.full(len(rows), NOISE, np.int64)
    directed = np.flatnonzero(rows.any(axis=1))
    points = rows[directed]
    if len(points) < min_cluster_size:
        return labels
    if (points == points[0]).all():
        labels[directed] = 0
        return labels
    if n_components is not None and n_components < points.shape[1]:
        points = project(points, n_components=n_components, min_dist=0.0, seed=seed)
    labels[directed] = _hdbscan(points, min_cluster_size)
    return by_size(labels)


def _hdbscan(points: np.ndarray, min_cluster_size: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import hdbscan

        model = hdbscan.HDBSCAN(
            min_cluster_size,
            (min_cluster_size + 1) // 2,
            cluster_selection_method="leaf",
            approx_min_span_tree=False,
            core_dist_n_jobs=1,
        )
        order = fixed_order(points)
        labels = np.empty(len(points), np.int64)
        labels[order] = model.fit_predict(points[order].astype(np.float64))
        return labels


def by_size(labels: np.ndarray) -> np.ndarray:
    """Number clusters anew from 0, the largest first and ties by first member, so that equal partitions read equal.

    :param labels: (n,) integers; negative ones are noise and become ``NOISE``.
    :returns: (n,) int64.
    """
    labels = np.asarray(labels)
    members = labels >= 0
    _, first, cluster, sizes = np.unique(labels[members], return_index=True, return_inverse=True, return_counts=True)
    place = np.empty(len(sizes), np.int64)
    place[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    renumbered = np.full(len(labels), NOISE, np.int64)
    renumbered[members] = place[cluster]
    return renumbered
