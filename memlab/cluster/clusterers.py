"""Clusterers: functions from unit vectors to labels, by name, so that every stage and the map can
use any of them.

Among them Gaussian mixtures whose number of components the data choose. Equal vectors, which equal
texts have, are clustered once and share a label: a message that is sent a hundred times is one
point, and makes no place dense.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from memlab.cluster.umap_projection import check_and_scale_to_unit, project
from memlab.errors import DataError, check_at_least, require_extra
from memlab.registry import clusterer, clusterers

if TYPE_CHECKING:
    from hdbscan import HDBSCAN
    from scipy.sparse import csr_array
    from threadpoolctl import ThreadpoolController

# Dimensions to reduce to, the most components of one mixture, the least probability of a
# membership, and the neighbours that UMAP looks at within a large group.
DIMENSIONS, MAX_COMPONENTS, THRESHOLD, LOCAL_NEIGHBORS = 10, 50, 0.1, 10
# A tenth of the spread of all rows: with less, the criterion takes every pair of near rows for a
# group.
_REGULARISATION = 1e-2
STARTS = 5
"""Of k-means, of which the best is taken: one alone can leave two groups in a cluster and cut a
third.
"""

_COARSE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 50)


class _SoftGroup(NamedTuple):
    """The rows (m,) of a group, and the weights (m,) of their memberships."""

    members: np.ndarray
    weights: np.ndarray


def mixture_memberships(embeddings: np.ndarray, *, seed: int = 0) -> csr_array:
    """Cluster softly by Gaussian mixtures: global clusters, then local ones within each.

    Rows are reduced to a few dimensions by UMAP, once for all of them with √(n − 1) neighbours, and
    again within each large group with ten. Both times the Bayesian information criterion chooses
    the number of components of a Gaussian mixture with diagonal covariance, at most half as many as
    there are different rows. A row belongs to the components whose probability is above a tenth, or
    to the likeliest one; groups that are nobody's likeliest are left out.

    :param embeddings: (n, d) finite numbers; rows are scaled to unit length.
    :param seed: of the reduction and of the mixture's start.
    :returns: (n, k) ``scipy.sparse.csr_array`` of weights in (0, 1], each row with at least one:
        the probability of the large group times that of the smaller one. Groups come in order of
        their first member, none twice.
    :raises DataError: when the array is not (n, d), holds NaN or infinity.

    Source: Sarthi et al., "RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval",
    ICLR 2024.

    >>> import numpy as np
    >>> from memlab.cluster import mixture_memberships
    >>> noise = np.random.default_rng(0).normal(scale=0.05, size=(12, 8))
    >>> two = np.repeat(np.eye(8)[:2], 6, axis=0) + noise
    >>> likeliest = mixture_memberships(two).argmax(axis=1)  # the machine decides how many, by UMAP
    >>> set(likeliest[:6].tolist()) & set(likeliest[6:].tolist())
    set()
    """
    from scipy.sparse import csr_array

    unit_vectors = check_and_scale_to_unit(embeddings)
    groups: list[_SoftGroup] = []
    for members, weights in _mixture_groups_of_rows(
        unit_vectors, isqrt(max(len(unit_vectors) - 1, 0)), seed
    ):
        for inner_members, inner_weights in _mixture_groups_of_rows(
            unit_vectors[members], LOCAL_NEIGHBORS, seed
        ):
            groups.append(
                _SoftGroup(members[inner_members], weights[inner_members] * inner_weights)
            )
    likeliest = np.zeros((2, len(unit_vectors)))
    for group_number, (members, weights) in enumerate(groups):
        is_likelier = weights > likeliest[0, members]
        likeliest[:, members[is_likelier]] = (
            weights[is_likelier],
            np.full(is_likelier.sum(), group_number),
        )
    likeliest_groups = (
        [groups[group_number] for group_number in np.unique(likeliest[1]).astype(int)]
        if groups
        else []
    )
    group_by_members = {
        members.tobytes(): (members, weights) for members, weights in likeliest_groups
    }
    ordered_groups = sorted(group_by_members.values(), key=lambda group: int(group[0].min()))
    group_columns = np.repeat(
        np.arange(len(ordered_groups)), [len(members) for members, _ in ordered_groups]
    )
    member_rows, member_weights = (
        np.concatenate([*arrays, []])
        for arrays in (zip(*ordered_groups, strict=True) if ordered_groups else ([], []))
    )
    return csr_array(
        (member_weights, (member_rows.astype(int), group_columns)),
        shape=(len(unit_vectors), len(ordered_groups)),
    )


def _mixture_groups_of_rows(
    unit_vectors: np.ndarray, n_neighbors: int, seed: int
) -> list[_SoftGroup]:
    """Give the members of each component of one mixture, and the weights of their memberships."""
    n_rows = len(unit_vectors)
    max_components = min(MAX_COMPONENTS, len(np.unique(unit_vectors, axis=0)) // 2)
    if max_components < 2 or n_rows <= DIMENSIONS + 1:
        return [_SoftGroup(np.arange(n_rows), np.ones(n_rows))] if n_rows else []
    n_dimensions = min(DIMENSIONS, unit_vectors.shape[1], n_rows - 2)
    projected = project(
        unit_vectors,
        n_components=n_dimensions,
        n_neighbors=max(n_neighbors, 2),
        min_dist=0.0,
        seed=seed,
    )
    centred_points = projected.astype(np.float64) - projected.mean(axis=0, dtype=np.float64)
    probability = _probabilities_of_best_mixture(
        centred_points / max(centred_points.std(), 1e-12), max_components, seed
    )
    is_member = probability > THRESHOLD
    is_member[np.arange(n_rows), probability.argmax(axis=1)] = True
    component_rows = (np.flatnonzero(column) for column in is_member.T)
    return [
        _SoftGroup(member_rows, probability[member_rows, component_number])
        for component_number, member_rows in enumerate(component_rows)
        if len(member_rows)
    ]


def _probabilities_of_best_mixture(
    points: np.ndarray, max_components: int, seed: int
) -> np.ndarray:
    """Fit mixtures of several sizes, coarse steps first, then around the best.

    Give the probabilities of the best.
    """
    fit_by_size: dict[int, tuple[float, np.ndarray]] = {}

    def fit_once_and_give_bic(n_components: int) -> float:
        if n_components not in fit_by_size:
            fit_by_size[n_components] = _bic_and_probabilities_of_mixture(
                points, n_components, seed
            )
        return fit_by_size[n_components][0]

    coarse_steps = [coarse_step for coarse_step in _COARSE if coarse_step < max_components] + [
        max_components
    ]
    best_size = min(coarse_steps, key=fit_once_and_give_bic)
    step_width = max(
        abs(coarse_step - best_size)
        for coarse_step in coarse_steps
        if abs(coarse_steps.index(coarse_step) - coarse_steps.index(best_size)) <= 1
    )
    while step_width > 1:
        step_width = (step_width + 1) // 2
        best_size = min(
            (
                best_size,
                max(best_size - step_width, 1),
                min(best_size + step_width, max_components),
            ),
            key=fit_once_and_give_bic,
        )
    return fit_by_size[best_size][1]


def _bic_and_probabilities_of_mixture(
    points: np.ndarray, n_components: int, seed: int
) -> tuple[float, np.ndarray]:
    """Fit one mixture: its Bayesian information criterion, and the (n, k) probabilities."""
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        # A start with fewer different rows than components, or an end before convergence, still
        # gives a mixture.
        warnings.simplefilter("ignore")
        model = GaussianMixture(
            n_components,
            covariance_type="diag",
            reg_covar=_REGULARISATION,
            max_iter=50,
            init_params="k-means++",
            random_state=seed,
        ).fit(points)
        return float(model.bic(points)), model.predict_proba(points)


NOISE = -1
_LEAST_WANTED = {"n_clusters": 1, "min_cluster_size": 2}
MANY_POINTS, FEW_DIMENSIONS = 10_000, 20
"""From which on HDBSCAN joins points by Borůvka's algorithm, and up to which dimensions."""


def cluster_labels(vectors: np.ndarray, clustering: str, **wanted: int) -> np.ndarray:
    """Cluster vectors by a registered clusterer.

    :param vectors: (n, d) finite numbers; the clusterer is given the different ones among them as
        unit rows. Fewer than two different rows are one cluster.
    :param clustering: a name of :data:`memlab.clusterers`.
    :param wanted: parameters for the clusterer; it is given those that it takes, ``n_clusters`` at
        most the number of different rows. One that takes ``weights`` is given how often each stands
        among the vectors.
    :returns: (n,) int64 labels from 0, the largest cluster first (ties by first member), noise
        ``NOISE`` = −1.
    :raises DataError: for an unknown clusterer, or one that does not give a label for each row.

    >>> import numpy as np
    >>> from memlab.cluster import cluster_labels
    >>> vectors = np.repeat(np.eye(2), 3, axis=0)
    >>> cluster_labels(vectors, "kmeans", n_clusters=2, min_cluster_size=5).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if clustering not in clusterers:
        raise DataError(f"clustering is {clustering!r}; choose from {', '.join(clusterers)}")
    for name in wanted.keys() & _LEAST_WANTED.keys():
        check_at_least(_LEAST_WANTED[name], **{name: wanted[name]})
    all_rows = check_and_scale_to_unit(vectors)
    first_copies, copy_of = find_distinct_rows(all_rows)
    unique_rows = all_rows[first_copies]
    if len(unique_rows) < 2:
        return np.zeros(len(all_rows), np.int64)
    known_arguments: dict[str, Any] = {**wanted, "weights": np.bincount(copy_of)}
    if "n_clusters" in known_arguments:
        known_arguments["n_clusters"] = min(known_arguments["n_clusters"], len(unique_rows))
    function = clusterers[clustering]
    parameters = inspect.signature(function).parameters
    try:
        labels = np.asarray(
            function(
                unique_rows,
                **{
                    argument_name: argument
                    for argument_name, argument in known_arguments.items()
                    if argument_name in parameters
                },
            )
        )
    except ValueError as error:
        raise DataError(
            f"clusterer {clustering!r} cannot cluster {len(unique_rows)} vectors: {error}"
        ) from error
    if labels.shape != (len(unique_rows),) or not np.issubdtype(labels.dtype, np.integer):
        raise DataError(
            f"clusterer {clustering!r} gave {labels.dtype} of shape {labels.shape}; expected "
            f"{len(unique_rows)} whole numbers"
        )
    return renumber_clusters_by_size(labels[copy_of])


class DistinctRows(NamedTuple):
    """Where each different row stands first (m,), and which of these each row equals (n,)."""

    first_copies: np.ndarray
    copy_of: np.ndarray


def find_distinct_rows(vectors: np.ndarray) -> DistinctRows:
    """Find the rows that are equal.

    :returns: (m,) where each different row stands first, in order, and (n,) which of the m each row
        equals.

    >>> import numpy as np
    >>> from memlab.cluster.clusterers import find_distinct_rows
    >>> first, copy_of = find_distinct_rows(np.array([[2.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))
    >>> first.tolist(), copy_of.tolist()
    ([0, 1], [0, 1, 0])
    """
    _, first_places, item_numbers = np.unique(
        view_rows_as_comparable_items(vectors), return_index=True, return_inverse=True
    )
    appearance_order = np.argsort(first_places)
    new_numbers = np.empty_like(appearance_order)
    new_numbers[appearance_order] = np.arange(len(appearance_order))
    return DistinctRows(first_places[appearance_order], new_numbers[item_numbers])


def view_rows_as_comparable_items(vectors: np.ndarray) -> np.ndarray:
    """Give each row as one item, by which rows can be compared: (n,)."""
    contiguous_rows = np.ascontiguousarray(vectors + 0.0)  # for which −0 is 0
    row_items: np.ndarray = contiguous_rows.view(
        f"V{contiguous_rows.itemsize * contiguous_rows.shape[1]}"
    ).ravel()
    return row_items


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
    :param vectors: (n, d) finite numbers, such as ``bench.documents("turn").speaker_centred()``: as
        they are encoded, turns cluster by who says them.
    :param spans: first row and end of each scope, as ``bench.documents("turn").spans``.
    :returns: a row a turn and seed: ``scope``, ``turn_id``, ``label`` and ``draw``, the seed; for
        :func:`memlab.cluster.observed_and_null_spread`.

    >>> import numpy as np
    >>> from memlab.cluster import scope_labels
    >>> scope_labels(["a", "b"], np.eye(2), {"ann": (0, 2)}, clustering="hdbscan").row(0)
    ('ann', 'a', -1, 0)
    """
    label_frames = [
        pl.DataFrame(
            {"turn_id": list(ids[span_start:span_end])}, schema={"turn_id": pl.String}
        ).select(
            pl.lit(scope).alias("scope"),
            "turn_id",
            label=pl.Series(cluster_labels(vectors[span_start:span_end], clustering, seed=seed)),
            draw=pl.lit(seed),
        )
        for scope, (span_start, span_end) in spans.items()
        for seed in seeds
    ]
    return pl.concat(label_frames)


@clusterer
def kmeans(
    vectors: np.ndarray,
    *,
    n_clusters: int = 10,
    seed: int = 0,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Lloyd's k-means, the best of five starts, with at most as many clusters as there are
    different rows.

    :param weights: (n,) how often each row counts; once by default.
    """
    from sklearn.cluster import KMeans

    n_distinct = min(n_clusters, len(find_distinct_rows(vectors)[0]))
    kmeans_model = KMeans(n_distinct, n_init=STARTS, random_state=seed)
    # For so few rows, starting threads costs more than the work.
    with _cached_thread_controller().limit(limits=1):
        labels: np.ndarray = kmeans_model.fit_predict(vectors, sample_weight=weights)
    return labels


@cache
def _cached_thread_controller() -> ThreadpoolController:
    """Find the libraries with threads once: it takes as long as a small k-means."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@clusterer
def hdbscan(
    vectors: np.ndarray, *, min_cluster_size: int = 5, weights: np.ndarray | None = None
) -> np.ndarray:
    """HDBSCAN in the embedding space, where nothing is random; see :func:`hdbscan_labels`."""
    return hdbscan_labels(
        vectors, min_cluster_size=min_cluster_size, n_components=None, weights=weights
    )


@clusterer
def mixture(vectors: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """The likeliest group of each row, see :func:`memlab.cluster.mixture_memberships`."""
    labels: np.ndarray = mixture_memberships(vectors, seed=seed).argmax(axis=1)
    return labels


@clusterer(name="umap_hdbscan")
def hdbscan_labels(
    vectors: np.ndarray,
    *,
    min_cluster_size: int = 5,
    n_components: int | None = 5,
    seed: int = 0,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Find the dense groups of embeddings by HDBSCAN, by default after UMAP; the rest is noise.

    The leaves of the cluster tree are taken: the usual "excess of mass" put 95 % of a LoCoMo
    conversation into one cluster for two seeds of four. Clusters after UMAP depend on the seed
    (adjusted Rand index between two seeds 0.43 on average), so repeat a finding over several.

    Density is that of different rows: equal ones count once, since many copies have no distance
    from each other and would be denser than anything that is said in words of its own. A row that
    belongs to no dense group is a cluster of its own where it stands ``min_cluster_size`` times,
    and noise, with all its copies, where it does not.

    Up to 10,000 points, and in more than 20 dimensions, scikit-learn finds them. Of more points in
    few dimensions the package ``hdbscan`` does, by an algorithm that is exact too and takes less
    than four times as long for twice the points. Many distances of density are equal, and between
    equal ones the two choose differently: they agree on most rows, not on all.

    :param vectors: (n, d) finite numbers; rows are scaled to unit length.
    :param min_cluster_size: least members of a cluster, at least 2; half as many neighbours define
        density.
    :param n_components: dimensions to reduce to by UMAP; ``None`` for none.
    :param seed: of UMAP.
    :param weights: (n,) how often each row stands; once by default.
    :returns: as :func:`cluster_labels`.
    :raises DataError: when the array is not (n, d), holds NaN or infinity, or a parameter is out of
        range.

    Campello, Moulavi and Sander, "Density-Based Clustering Based on Hierarchical Density
    Estimates", 2013; UMAP with ``min_dist=0`` before it as in Grootendorst, "BERTopic", 2022,
    section 3.

    >>> import numpy as np
    >>> from memlab.cluster import hdbscan_labels
    >>> east, north = np.tile([1.0, 0.0], (6, 1)), np.tile([0.0, 1.0], (9, 1))
    >>> hdbscan_labels(np.vstack([east, north, [[-1.0, 0.0]]]), n_components=None).tolist()
    [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1]
    """
    check_at_least(2, min_cluster_size=min_cluster_size)
    unit_vectors = check_and_scale_to_unit(vectors)
    first_copies, copy_of = find_distinct_rows(unit_vectors)
    row_labels = _hdbscan_leaf_labels(
        unit_vectors[first_copies], min_cluster_size, n_components, seed
    )
    copy_counts = np.bincount(copy_of, weights=weights, minlength=len(first_copies))
    row_labels = label_repeated_noise(row_labels, copy_counts, min_cluster_size)
    return renumber_clusters_by_size(row_labels[copy_of])


def label_repeated_noise(
    labels: np.ndarray, copy_counts: np.ndarray, min_cluster_size: int
) -> np.ndarray:
    """Make a cluster of each row of noise that stands ``min_cluster_size`` times or more: (m,)
    labels.

    :param labels: (m,) of different rows.
    :param copy_counts: (m,) how often each of them stands.
    """
    labelled = labels.copy()
    lone_places = np.flatnonzero((labels == NOISE) & (copy_counts >= min_cluster_size))
    labelled[lone_places] = labels.max(initial=NOISE) + 1 + np.arange(len(lone_places))
    return labelled


def _hdbscan_leaf_labels(
    distinct_vectors: np.ndarray, min_cluster_size: int, n_components: int | None, seed: int
) -> np.ndarray:
    """Give the leaves of HDBSCAN's cluster tree of different rows: (n,) labels.

    Fewer than a cluster has are noise.
    """
    from sklearn.cluster import HDBSCAN

    points, point_of = distinct_points_and_point_of_row(distinct_vectors, n_components, seed)
    if len(points) < min_cluster_size:
        return np.full(len(distinct_vectors), NOISE, np.int64)
    if _has_many_points_in_few_dimensions(points):
        density_labels: np.ndarray = fit_hdbscan_model(points, min_cluster_size).labels_
        return density_labels[point_of].astype(np.int64)
    # scikit-learn counts the point itself among its neighbours.
    density_model = HDBSCAN(
        min_cluster_size=min_cluster_size,
        min_samples=1 + n_density_neighbours(min_cluster_size),
        cluster_selection_method="leaf",
        copy=True,
    )
    point_labels: np.ndarray = density_model.fit_predict(points)[point_of].astype(np.int64)
    return point_labels


def _has_many_points_in_few_dimensions(points: np.ndarray) -> bool:
    """Say whether a tree over the points is worth it: of many, in few dimensions."""
    return len(points) > MANY_POINTS and points.shape[1] <= FEW_DIMENSIONS


def fit_hdbscan_model(points: np.ndarray, min_cluster_size: int) -> HDBSCAN:
    """Fit the model of the package ``hdbscan`` to different points, at least two.

    Up to 10,000 points, and in more than 20 dimensions, by Prim's algorithm, which breaks ties as
    scikit-learn does, and takes four times as long for twice the points. Of more points by
    Borůvka's, also exact, which breaks ties otherwise.

    :raises ModelError: without the extra ``clusters``.
    """
    with require_extra("clusters", "HDBSCAN with its trees"):
        import hdbscan

    return hdbscan.HDBSCAN(
        min_cluster_size=min_cluster_size,
        min_samples=n_density_neighbours(min_cluster_size),
        cluster_selection_method="leaf",
        algorithm="boruvka_kdtree"
        if _has_many_points_in_few_dimensions(points)
        else "prims_kdtree",
        approx_min_span_tree=False,
        core_dist_n_jobs=1,
    ).fit(points)


def n_density_neighbours(min_cluster_size: int) -> int:
    """Give how many other rows say how dense it is around a row: half as many as a cluster has."""
    return (min_cluster_size + 1) // 2


def distinct_points_and_point_of_row(
    distinct_vectors: np.ndarray, n_components: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Give different rows as HDBSCAN is given them.

    Ties are broken by position: in an order of their own, the same rows give the same clusters
    wherever they stand. Rows that a reduction puts in one place are one point.

    :returns: (p, n_components) float64, reduced by UMAP where they have more dimensions, and (m,)
        which of the points each row is.
    """
    row_points = distinct_vectors
    if n_components is not None and n_components < distinct_vectors.shape[1]:
        row_points = project(distinct_vectors, n_components=n_components, min_dist=0.0, seed=seed)
    _, first_places, point_of = np.unique(
        view_rows_as_comparable_items(row_points), return_index=True, return_inverse=True
    )
    return row_points[first_places].astype(np.float64), point_of


def renumber_clusters_by_size(labels: np.ndarray) -> np.ndarray:
    """Number clusters from 0, the largest first and ties by first member.

    Negative labels become noise.
    """
    old_labels, first_places, label_sizes = np.unique(
        labels[labels >= 0], return_index=True, return_counts=True
    )
    renumbered = np.full(len(labels), NOISE, np.int64)
    for new_label, label_place in enumerate(np.lexsort((first_places, -label_sizes))):
        renumbered[labels == old_labels[label_place]] = new_label
    return renumbered
