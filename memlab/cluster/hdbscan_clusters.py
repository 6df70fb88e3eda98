"""HDBSCAN with all that it knows: how firmly a row belongs, where else it might, how far out it
lies, the trees.

Labels are those of :func:`memlab.cluster.hdbscan_labels`, which scikit-learn gives of up to 10,000
points without the package ``hdbscan``. The rest only that package has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from memlab.cluster.clusterers import (
    NOISE,
    distinct_points_and_point_of_row,
    find_distinct_rows,
    fit_hdbscan_model,
    label_repeated_noise,
    renumber_clusters_by_size,
)
from memlab.cluster.merge_trees import MergeTree
from memlab.cluster.umap_projection import check_and_scale_to_unit
from memlab.errors import DataError, check_at_least

if TYPE_CHECKING:
    from hdbscan import HDBSCAN

PLACED_BY = 15
"""Nearest rows whose places say where a new row lies once rows are reduced."""

_CONDENSED = {"parent": pl.Int64, "child": pl.Int64, "density": pl.Float64, "size": pl.Int64}


class PlacedRows(NamedTuple):
    """Where new rows would lie in clusters that were found without them.

    :param labels: (q,) int64, ``NOISE`` = −1 outside all clusters.
    :param strengths: (q,) from 0 to 1, 0 outside.
    :param memberships: (q, k) from 0 to 1, a row's sum being how likely it is in any cluster.
    """

    labels: np.ndarray
    strengths: np.ndarray
    memberships: np.ndarray


class _ClusterValuesOfPoints(NamedTuple):
    """What a model says of each of its p points; memberships are (p, c)."""

    labels: np.ndarray
    strengths: np.ndarray
    memberships: np.ndarray
    outlier_scores: np.ndarray


@dataclass(frozen=True, eq=False)
class DensityClusters:
    """What HDBSCAN finds in n rows; equal ones were clustered once, and have the same values.

    :param labels: (n,) int64, from 0, the largest cluster first, noise ``NOISE`` = −1.
    :param strengths: (n,) how firmly a row belongs to its cluster: the density at which it leaves
        it, as a share of the highest density there; 0 for noise.
    :param memberships: (n, k) soft membership in each of the k clusters, a row's sum being how
        likely it is in any; noise has them too.
    :param outlier_scores: (n,) GLOSH from 0 to 1: how much less dense it is around a row than in
        the densest place of the branch that it falls out of.
    :param merges: HDBSCAN's single-linkage tree; heights are distances of mutual reachability.
    :param condensed: the same without branches of fewer than ``min_cluster_size`` leaves:
        ``parent``, ``child``, ``density`` (1 / distance) at which the child leaves the parent, and
        ``size`` of the child in leaves. Children below the number of leaves are those of
        ``merges``, which ``merges.leaf_of`` gives for each row.
    :param names: of clusters, by label; empty until somebody names them.
    """

    labels: np.ndarray
    strengths: np.ndarray
    memberships: np.ndarray
    outlier_scores: np.ndarray
    condensed: pl.DataFrame
    merges: MergeTree
    names: Mapping[int, str] = field(default_factory=dict)
    _fitted: _FittedHdbscan | None = field(default=None, repr=False)

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return self.memberships.shape[1]

    def place(self, vectors: np.ndarray) -> PlacedRows:
        """Say in which clusters new rows would lie.

        Where the rows were reduced by UMAP, a new row is first placed among its nearest ones, with
        no random step. A cluster of copies of one row takes in no new row.

        :param vectors: (q, d) finite numbers, such as a question's; scaled to unit length.
        :raises DataError: for rows of another width, NaN or infinity.

        >>> import numpy as np
        >>> from memlab.cluster import density_clusters
        >>> noise = np.random.default_rng(0).normal(scale=0.05, size=(16, 4))
        >>> rows = np.repeat(np.eye(4)[:2], 8, axis=0) + noise
        >>> density_clusters(rows, n_components=None).place(np.eye(4)[:2]).labels.tolist()
        [0, 1]
        """
        unit_vectors = check_and_scale_to_unit(vectors)
        placed_rows = PlacedRows(
            np.full(len(unit_vectors), NOISE, np.int64),
            np.zeros(len(unit_vectors)),
            np.zeros((len(unit_vectors), self.n_clusters)),
        )
        if self._fitted is None or not len(unit_vectors):
            return placed_rows
        fitted_labels, strengths, memberships = self._fitted.predict(unit_vectors)
        in_cluster = fitted_labels != NOISE
        placed_rows.labels[in_cluster] = self._fitted.numbers[fitted_labels[in_cluster]]
        placed_rows.strengths[:] = strengths
        placed_rows.memberships[:, self._fitted.numbers] = memberships
        return placed_rows


@dataclass(frozen=True, eq=False)
class _FittedHdbscan:
    """A model of the library that found clusters.

    :param model: ``hdbscan.HDBSCAN`` with its data for predictions.
    :param rows: (m, d) different unit rows; ``points`` (m, w) are their places, which were
        clustered.
    :param numbers: (c,) label of each of the model's clusters.
    """

    model: HDBSCAN
    rows: np.ndarray
    points: np.ndarray
    numbers: np.ndarray

    def predict(self, new_rows: np.ndarray) -> PlacedRows:
        """Give the model's labels, strengths and memberships of new unit rows."""
        import hdbscan

        if new_rows.shape[1] != self.rows.shape[1]:
            raise DataError(
                f"rows of width {new_rows.shape[1]} cannot be placed among rows of width "
                f"{self.rows.shape[1]}; encode both by one encoder"
            )
        points = new_rows.astype(np.float64)
        if self.points.shape[1] != self.rows.shape[1]:
            points = place_among_known_rows(new_rows, self.rows, self.points)
        predicted_labels, strengths = hdbscan.approximate_predict(self.model, points)
        memberships = np.nan_to_num(hdbscan.membership_vector(self.model, points))
        return PlacedRows(predicted_labels, strengths, memberships)


def place_among_known_rows(
    new_rows: np.ndarray,
    known_rows: np.ndarray,
    known_points: np.ndarray,
    *,
    most_nearest: int = PLACED_BY,
) -> np.ndarray:
    """Place new rows in few dimensions among rows that have a place there: where UMAP's transform
    begins.

    The mean of the places of the nearest rows, each weighted by how much nearer than the others it
    is; without UMAP's last, random steps a row lands always in the same place.

    :param new_rows: (q, d) unit rows.
    :param known_rows: (m, d) unit rows; ``known_points`` (m, w) are their places.
    :param most_nearest: rows whose places count.
    :returns: (q, w) float64.

    McInnes, Healy and Melville 2018, section 4 (embedding of new data).
    """
    n_nearest = min(most_nearest, len(known_rows))
    distance = 1.0 - new_rows.astype(np.float64) @ known_rows.T.astype(np.float64)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :n_nearest]
    extra_distance = np.take_along_axis(distance, nearest, axis=1)
    extra_distance -= extra_distance[:, :1]
    weights = np.exp(-extra_distance / np.maximum(extra_distance.mean(axis=1, keepdims=True), 1e-9))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("qn,qnw->qw", weights, known_points[nearest].astype(np.float64))


def density_clusters(
    vectors: np.ndarray,
    *,
    min_cluster_size: int = 5,
    n_components: int | None = 5,
    seed: int = 0,
) -> DensityClusters:
    """Find the dense groups of embeddings by HDBSCAN, by default after UMAP, with all that it knows
    of them.

    Parameters are those of :func:`memlab.cluster.hdbscan_labels`, and so are the labels. Different
    rows are clustered, each once: the library gives no numbers where more than ``min_cluster_size``
    rows are equal. A row that belongs to no dense group and stands ``min_cluster_size`` times is a
    cluster of its own, in which its copies have strength and membership 1 and outlier score 0.

    :param vectors: (n, d) finite numbers, n ≥ 1; rows are scaled to unit length.
    :raises DataError: when the array is not (n, d), has no row, holds NaN or infinity, or a
        parameter is out of range.
    :raises ModelError: without the extra ``clusters``.

    Campello, Moulavi, Zimek and Sander, "Hierarchical Density Estimates for Data Clustering,
    Visualization, and Outlier Detection", 2015.

    >>> import numpy as np
    >>> from memlab.cluster import density_clusters
    >>> noise = np.random.default_rng(0).normal(scale=0.05, size=(16, 4))
    >>> rows = np.repeat(np.eye(4)[:2], 8, axis=0) + noise
    >>> found = density_clusters(np.vstack([rows, -np.eye(4)[:1]]), n_components=None)
    >>> found.labels.tolist(), found.memberships.shape
    ([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, -1], (17, 2))
    """
    check_at_least(2, min_cluster_size=min_cluster_size)
    all_rows = check_and_scale_to_unit(vectors)
    if not len(all_rows):
        raise DataError("clusters with their tree need at least one row; there is none")
    first_copies, copy_of = find_distinct_rows(all_rows)
    points, point_of = distinct_points_and_point_of_row(all_rows[first_copies], n_components, seed)
    # The library refuses a single point.
    density_model = fit_hdbscan_model(points, min_cluster_size) if len(points) > 1 else None
    point_values = _cluster_values_of_fitted_points(density_model, len(points))
    dense_labels = point_values.labels[point_of]
    row_labels = label_repeated_noise(dense_labels, np.bincount(copy_of), min_cluster_size)
    is_lone = row_labels != dense_labels
    # Which number each cluster has once they are numbered by size.
    numbered_labels = renumber_clusters_by_size(row_labels[copy_of])
    number_by_label = np.zeros(row_labels.max() + 1, np.int64)
    number_by_label[row_labels[row_labels != NOISE]] = numbered_labels[
        first_copies[row_labels != NOISE]
    ]
    found_numbers = number_by_label[: point_values.memberships.shape[1]]
    memberships = np.zeros((len(first_copies), len(number_by_label)))
    memberships[:, found_numbers] = point_values.memberships[point_of]
    memberships[is_lone] = np.eye(len(number_by_label))[numbered_labels[first_copies[is_lone]]]
    fitted_model = None
    if len(found_numbers):
        fitted_model = _FittedHdbscan(
            density_model, all_rows[first_copies], points[point_of], found_numbers
        )
    return DensityClusters(
        labels=numbered_labels,
        strengths=np.where(is_lone, 1.0, point_values.strengths[point_of])[copy_of],
        memberships=memberships[copy_of],
        outlier_scores=np.where(is_lone, 0.0, point_values.outlier_scores[point_of])[copy_of],
        condensed=_condensed_tree_edges(density_model),
        merges=_single_linkage_tree(density_model, point_of[copy_of]),
        _fitted=fitted_model,
    )


def _cluster_values_of_fitted_points(
    model: HDBSCAN | None, n_points: int
) -> _ClusterValuesOfPoints:
    """Give labels, strengths, memberships and outlier scores of the points that a model was fitted
    to.
    """
    import hdbscan

    if model is None:
        all_noise = np.full(n_points, NOISE, np.int64)
        return _ClusterValuesOfPoints(
            all_noise, np.zeros(n_points), np.zeros((n_points, 0)), np.zeros(n_points)
        )
    labels = model.labels_.astype(np.int64)
    memberships = np.zeros((n_points, labels.max() + 1))
    if memberships.shape[1]:
        model.generate_prediction_data()
        memberships = hdbscan.all_points_membership_vectors(model)
    return _ClusterValuesOfPoints(labels, model.probabilities_, memberships, model.outlier_scores_)


def _condensed_tree_edges(model: HDBSCAN | None) -> pl.DataFrame:
    if model is None:
        return pl.DataFrame(schema=_CONDENSED)
    tree_edges = model.condensed_tree_.to_numpy()
    columns = zip(_CONDENSED, ("parent", "child", "lambda_val", "child_size"), strict=True)
    return pl.DataFrame(
        {column_name: tree_edges[field_name] for column_name, field_name in columns},
        schema=_CONDENSED,
    )


def _single_linkage_tree(model: HDBSCAN | None, leaf_of_row: np.ndarray) -> MergeTree:
    if model is None:
        return MergeTree(np.zeros((0, 2), np.int64), np.zeros(0), leaf_of_row)
    joined_pairs = model.single_linkage_tree_.to_numpy()
    return MergeTree(joined_pairs[:, :2].astype(np.int64), joined_pairs[:, 2], leaf_of_row)
