"""Clusterers: functions from unit vectors to labels, by name, so that every stage and the map can use any of them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from memlab.cluster.mixture import mixture_memberships
from memlab.cluster.projection import project, unit_rows
from memlab.errors import DataError, check_at_least
from memlab.registry import clusterer, clusterers

NOISE = -1


def cluster_labels(vectors: np.ndarray, clustering: str, **wanted: int) -> np.ndarray:
    """Cluster vectors by a registered clusterer.

    :param vectors: (n, d) finite numbers; the clusterer is given unit rows, fewer than two rows are one cluster.
    :param clustering: a name of :data:`memlab.clusterers`.
    :param wanted: parameters for the clusterer; it is given those that it takes, ``n_clusters`` at most n.
    :returns: (n,) int64 labels from 0, the largest cluster first (ties by first member), noise ``NOISE`` = −1.
    :raises DataError: for an unknown clusterer, or one that does not give a label for each row.

    >>> import numpy as np
    >>> from memlab.cluster import cluster_labels
    >>> cluster_labels(np.repeat(np.eye(2), 3, axis=0), "kmeans", n_clusters=2, min_cluster_size=5).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if clustering not in clusterers:
        raise DataError(f"clustering is {clustering!r}; choose from {', '.join(clusterers)}")
    rows = unit_rows(vectors)
    if len(rows) < 2:
        return np.zeros(len(rows), np.int64)
    if "n_clusters" in wanted:
        wanted["n_clusters"] = min(wanted["n_clusters"], len(rows))
    function = clusterers[clustering]
    takes = inspect.signature(function).parameters
    try:
        labels = np.asarray(function(rows, **{name: value for name, value in wanted.items() if name in takes}))
    except ValueError as error:
        raise DataError(f"clusterer {clustering!r} cannot cluster {len(rows)} vectors: {error}") from error
    if labels.shape != (len(rows),) or not np.issubdtype(labels.dtype, np.integer):
        raise DataError(
            f"clusterer {clustering!r} gave {labels.dtype} of shape {labels.shape}; expected {len(rows)} whole numbers"
        )
    return _renumber_by_size(labels)


def scope_labels(
    ids: Sequence[str] | np.ndarray,
    vectors: np.ndarray,
    spans: Mapping[str, tuple[int, int]],
    *,
    clustering: str = "umap_hdbscan",
    seeds: Sequence[int] = (0,),
) -> pl.DataFrame:
    """Cluster the turns of each scope by itself, once with each seed; see :func:`cluster_labels`.

    :param ids: (n,) of the turns.
    :param vectors: (n, d) finite numbers.
    :param spans: first row and end of each scope, as ``bench.documents("turn").spans``.
    :returns: a row a turn and seed: ``scope``, ``turn_id``, ``label`` and ``draw``, the seed; for
        :func:`memlab.cluster.observed_and_null_spread`.

    >>> import numpy as np
    >>> from memlab.cluster import scope_labels
    >>> scope_labels(["a", "b"], np.eye(2), {"ann": (0, 2)}, clustering="hdbscan").row(0)
    ('ann', 'a', -1, 0)
    """
    parts = [
        pl.DataFrame({"turn_id": list(ids[first:last])}, schema={"turn_id": pl.String}).select(
            pl.lit(scope).alias("scope"),
            "turn_id",
            label=pl.Series(cluster_labels(vectors[first:last], clustering, seed=seed)),
            draw=pl.lit(seed),
        )
        for scope, (first, last) in spans.items()
        for seed in seeds
    ]
    return pl.concat(parts)


@clusterer
def kmeans(vectors: np.ndarray, *, n_clusters: int = 10, seed: int = 0) -> np.ndarray:
    """Lloyd's k-means with at most as many clusters as there are different rows."""
    from sklearn.cluster import KMeans

    n = min(n_clusters, len(np.unique(vectors, axis=0)))
    # For so few rows, starting threads costs more than the work.
    with _thread_controller().limit(limits=1):
        labels: np.ndarray = KMeans(n, n_init=1, random_state=seed).fit_predict(vectors)
    return labels


@cache
def _thread_controller() -> Any:
    """Find the libraries with threads once: it takes as long as a small k-means."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@clusterer
def hdbscan(vectors: np.ndarray, *, min_cluster_size: int = 5) -> np.ndarray:
    """HDBSCAN in the embedding space, where nothing is random."""
    return hdbscan_labels(vectors, min_cluster_size=min_cluster_size, n_components=None)


@clusterer
def mixture(vectors: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """The likeliest group of each row, see :func:`memlab.cluster.mixture_memberships`."""
    labels: np.ndarray = mixture_memberships(vectors, seed=seed).argmax(axis=1)
    return labels


@clusterer(name="umap_hdbscan")
def hdbscan_labels(
    vectors: np.ndarray, *, min_cluster_size: int = 5, n_components: int | None = 5, seed: int = 0
) -> np.ndarray:
    """Find the dense groups of embeddings by HDBSCAN, by default after UMAP; the rest is noise.

    The leaves of the cluster tree are taken: the usual "excess of mass" put 95 % of a LoCoMo conversation into one
    cluster for two seeds of four. Clusters after UMAP depend on the seed (adjusted Rand index between two seeds 0.43 on
    average), so repeat a finding over several. Fewer rows than ``min_cluster_size`` are all noise.

    :param vectors: (n, d) finite numbers; rows are scaled to unit length.
    :param min_cluster_size: least members of a cluster, at least 2; half as many neighbours define density.
    :param n_components: dimensions to reduce to by UMAP; ``None`` for none.
    :param seed: of UMAP.
    :returns: as :func:`cluster_labels`.
    :raises DataError: when the array is not (n, d), holds NaN or infinity, or a parameter is out of range.

    Campello, Moulavi and Sander, "Density-Based Clustering Based on Hierarchical Density Estimates", 2013; UMAP
    with ``min_dist=0`` before it as in Grootendorst, "BERTopic", 2022, section 3.

    >>> import numpy as np
    >>> from memlab.cluster import hdbscan_labels
    >>> east, north = np.tile([1.0, 0.0], (6, 1)), np.tile([0.0, 1.0], (9, 1))
    >>> hdbscan_labels(np.vstack([east, north, [[-1.0, 0.0]]]), n_components=None).tolist()
    [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1]
    """
    from sklearn.cluster import HDBSCAN

    check_at_least(2, min_cluster_size=min_cluster_size)
    points = unit_rows(vectors)
    if len(points) < min_cluster_size:
        return np.full(len(points), NOISE, np.int64)
    if n_components is not None and n_components < points.shape[1]:
        points = project(points, n_components=n_components, min_dist=0.0, seed=seed)
    # scikit-learn counts the point itself among its neighbours.
    model = HDBSCAN(
        min_cluster_size=min_cluster_size, min_samples=min(1 + (min_cluster_size + 1) // 2, len(points)),
        cluster_selection_method="leaf", copy=True,
    )  # fmt: skip
    # Ties are broken by position: in an order of their own, the same rows give the same clusters wherever they stand.
    order = np.argsort(
        np.ascontiguousarray(points).view(f"V{points.itemsize * points.shape[1]}").ravel(), kind="stable"
    )
    labels = np.empty(len(points), np.int64)
    labels[order] = model.fit_predict(points[order].astype(np.float64))
    return _renumber_by_size(labels)


def _renumber_by_size(labels: np.ndarray) -> np.ndarray:
    """Number clusters from 0, the largest first and ties by first member; negative labels become noise."""
    numbers, first, sizes = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    renumbered = np.full(len(labels), NOISE, np.int64)
    for place, which in enumerate(np.lexsort((first, -sizes))):
        renumbered[labels == numbers[which]] = place
    return renumbered
