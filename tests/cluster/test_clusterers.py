"""Labels by any registered clusterer, and HDBSCAN."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import memlab
from memlab.cluster import NOISE, cluster_labels
from memlab.errors import DataError, PipelineError


def blobs(seed: int, sizes: tuple[int, ...] = (40, 25, 15), spread: float = 0.08) -> tuple[np.ndarray, np.ndarray]:
    """Directions around well-separated axes, and which axis each row belongs to."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return np.eye(16)[truth] + rng.normal(scale=spread, size=(len(truth), 16)), truth


@pytest.fixture
def added() -> Iterator[None]:
    before = set(memlab.clusterers)
    yield
    for name in set(memlab.clusterers) - before:
        del memlab.clusterers[name]


@pytest.mark.parametrize("clustering", ["kmeans", "hdbscan", "umap_hdbscan", "mixture"])
def test_each_finds_groups_that_are_there(clustering: str) -> None:
    from sklearn.metrics import homogeneity_score

    points, truth = blobs(0)
    labels = cluster_labels(points * 3, clustering, n_clusters=3, seed=1)
    assert labels.dtype == np.int64
    assert homogeneity_score(truth[labels >= 0], labels[labels >= 0]) >= 0.95
    assert (np.diff(np.bincount(labels[labels >= 0])) <= 0).all(), "the largest first"
    assert np.array_equal(labels, cluster_labels(points, clustering, n_clusters=3, seed=1))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 6, 13])
@pytest.mark.parametrize("clustering", ["kmeans", "hdbscan", "umap_hdbscan", "mixture"])
def test_any_number_of_rows_and_equal_ones(clustering: str, n: int) -> None:
    for rows in (np.random.default_rng(n).normal(size=(n, 8)), np.ones((n, 8)), np.zeros((n, 8))):
        labels = cluster_labels(rows, clustering, n_clusters=5)
        assert labels.shape == (n,)
        assert n == 0 or labels.min() >= NOISE


@pytest.mark.usefixtures("added")
def test_ones_own_is_given_unit_rows_and_what_it_takes() -> None:
    seen = dict[str, float]()

    @memlab.clusterer
    def halves(vectors: np.ndarray, *, n_clusters: int = 9) -> list[int]:
        seen.update(length=float(np.linalg.norm(vectors, axis=1).max()), n_clusters=n_clusters)
        return [7 if i else -3 for i in range(len(vectors))]

    assert cluster_labels(np.eye(3) * 5, "halves", n_clusters=2, seed=4).tolist() == [NOISE, 0, 0]
    assert seen == {"length": 1.0, "n_clusters": 2}
    assert cluster_labels(np.eye(3), "halves", n_clusters=50).tolist() == [NOISE, 0, 0]
    assert seen["n_clusters"] == 3, "no more than there are rows"


@pytest.mark.usefixtures("added")
def test_what_is_no_clusterer_is_refused() -> None:
    with pytest.raises(PipelineError, match="vectors"):
        memlab.clusterer(lambda_named)
    with pytest.raises(DataError, match="choose from"):
        cluster_labels(np.eye(3), "k-means")

    @memlab.clusterer
    def too_few(vectors: np.ndarray) -> np.ndarray:
        return np.zeros(2, np.int64)

    @memlab.clusterer
    def fractions(vectors: np.ndarray) -> np.ndarray:
        return np.zeros(len(vectors))

    @memlab.clusterer
    def failing(vectors: np.ndarray) -> np.ndarray:
        raise ValueError("no")

    for name in ("too_few", "fractions", "failing"):
        with pytest.raises(DataError, match=name):
            cluster_labels(np.eye(3), name)


def lambda_named(points: np.ndarray) -> np.ndarray:
    return points
