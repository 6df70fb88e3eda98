"""Labels by any registered clusterer, soft groups, and layouts: groups that are there, and rows that break things."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import memlab
from memlab.cluster import NOISE, cluster_labels, mixture_memberships, project
from memlab.errors import DataError, PipelineError

FOUR = ["kmeans", "hdbscan", "umap_hdbscan", "mixture"]


def blobs(*sizes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Directions around well-separated axes, and which axis each row belongs to."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return np.eye(16)[truth] + np.random.default_rng(seed).normal(
        scale=0.08, size=(len(truth), 16)
    ), truth


@pytest.mark.parametrize("clustering", FOUR)
def test_each_finds_groups_that_are_there(clustering: str) -> None:
    from sklearn.metrics import homogeneity_score

    points, truth = blobs(40, 25, 15)
    labels = cluster_labels(points * 3, clustering, n_clusters=3, seed=1)
    assert labels.dtype == np.int64
    assert homogeneity_score(truth[labels >= 0], labels[labels >= 0]) >= 0.95
    assert (np.diff(np.bincount(labels[labels >= 0])) <= 0).all(), "the largest first"
    assert np.array_equal(labels, cluster_labels(points, clustering, n_clusters=3, seed=1))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 6, 13])
def test_any_number_of_rows_and_equal_ones(n: int) -> None:
    for rows in (
        np.random.default_rng(n).normal(size=(n, 8)),
        np.ones((n, 8)),
        np.eye(8)[np.arange(n) % 2],
    ):
        for clustering in FOUR:
            labels = cluster_labels(rows, clustering, n_clusters=5)
            assert labels.shape == (n,)
            assert n == 0 or labels.min() >= NOISE
        for n_components in (1, 3):
            coordinates = project(rows, n_components=n_components)
            assert (coordinates.shape, coordinates.dtype) == ((n, n_components), np.float32)
            assert np.isfinite(coordinates).all()


def test_ones_own_is_given_unit_rows_and_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memlab.clusterers, "_functions", dict(memlab.clusterers))
    seen = dict[str, float]()

    @memlab.clusterer
    def halves(vectors: np.ndarray, *, n_clusters: int = 9) -> list[int]:
        seen.update(length=float(np.linalg.norm(vectors, axis=1).max()), n_clusters=n_clusters)
        return [7 if i else -3 for i in range(len(vectors))]

    @memlab.clusterer
    def too_few(vectors: np.ndarray) -> np.ndarray:
        return np.zeros(2, np.int64)

    @memlab.clusterer
    def failing(vectors: np.ndarray) -> np.ndarray:
        raise ValueError("no")

    assert cluster_labels(np.eye(3) * 5, "halves", n_clusters=50, seed=4).tolist() == [NOISE, 0, 0]
    assert seen == {"length": 1.0, "n_clusters": 3}, "no more than there are rows"
    text = "dense | expand_cluster(clustering='halves')"
    assert set(memlab.pipeline(text).dependencies()["stages"]) == {"clustering='halves'"}
    for name in ("too_few", "failing", "k-means"):
        with pytest.raises(DataError, match=name):
            cluster_labels(np.eye(3), name)
    with pytest.raises(PipelineError, match="vectors"):
        memlab.clusterer(blobs)


def test_soft_groups_that_are_there_are_found_for_a_seed_and_no_rows_break_them() -> None:
    outlier = np.vstack([np.ones((29, 8)), -1e6 * np.eye(8)[:1]])
    for rows in (
        np.ones((30, 8)),
        np.zeros((30, 8)),
        np.repeat(np.eye(8)[:3], 20, axis=0),
        outlier,
        np.eye(25)[:, :1],
    ):
        weights = mixture_memberships(rows).toarray()
        assert (len(weights), (weights.max(axis=1) > 0).all()) == (len(rows), True), (
            "every row belongs somewhere"
        )
        assert weights.max() <= 1 + 1e-9
        assert set(weights.argmax(axis=1)) == set(range(weights.shape[1])), (
            "every group is somebody's likeliest"
        )
        assert np.unique(weights > 0, axis=1).shape == weights.shape, "no group twice"
    rows, truth = blobs(15, 15, 15, 15)
    memberships = mixture_memberships(rows, seed=3)
    labels = memberships.argmax(axis=1)
    assert all(len(set(truth[labels == label])) == 1 for label in set(labels.tolist())), (
        "no group mixes two"
    )
    assert (memberships != mixture_memberships(rows, seed=3)).nnz == 0


def test_a_layout_repeats_keeps_neighbours_and_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    points, truth = blobs(20, 20, 20)
    layouts = []
    for threads, scale in ((1, 1), (2, 7)):
        with warnings.catch_warnings(), threadpool_limits(threads):
            warnings.simplefilter("error")
            layouts.append(project(points * scale, seed=3))
    assert np.array_equal(*layouts), "only the direction of a row counts, and no thread does"
    assert not np.array_equal(layouts[0], project(points, seed=4))
    apart = np.linalg.norm(layouts[0][:, None] - layouts[0][None], axis=2) + np.diag(
        np.full(60, np.inf)
    )
    assert (truth[apart.argmin(axis=1)] == truth).mean() > 0.95
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_laid_out() -> None:
    for wrong in ({"n_components": 0}, {"n_neighbors": 1}, {"min_dist": 1.5}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            project(np.eye(4), **wrong)
    for rows, said in (
        (np.ones(3), r"shape \(3,\)"),
        (np.full((5, 3), np.inf), r"row 0 .* NaN or infinity"),
    ):
        with pytest.raises(DataError, match=said):
            project(rows)
