"""Labels by any registered clusterer, soft groups, and layouts: groups that are there, and rows that break things."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

import memlab
from memlab.cluster import NOISE, cluster_labels, hdbscan_labels, mixture_memberships, project
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
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from memlab.cluster import umap_projection

    points, truth = blobs(20, 20, 20)
    layouts = []
    for threads, scale in ((1, 1), (2, 7)):
        monkeypatch.setattr(umap_projection, "_kept_layouts", {})
        monkeypatch.setattr(umap_projection, "_last_neighbours", {})
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


@pytest.mark.parametrize("copies", [2, pytest.param(60, marks=pytest.mark.slow), 100])
@pytest.mark.parametrize("clustering", FOUR)
def test_equal_rows_share_one_label_however_many_they_are(clustering: str, copies: int) -> None:
    """Among 240 others; and as many copies change nothing about the others."""
    rng = np.random.default_rng(5)
    subjects = np.eye(30)[rng.integers(0, 12, 240)]
    others = subjects + rng.normal(scale=0.15, size=(240, 30))
    same = np.eye(30)[20] + rng.normal(scale=0.1, size=30)
    rows = np.vstack([others, np.tile(same, (copies, 1))])
    mixed = rng.permutation(len(rows))
    labels = np.empty(len(rows), np.int64)
    labels[mixed] = cluster_labels(rows[mixed], clustering, n_clusters=12, min_cluster_size=5)
    assert len(set(labels[240:].tolist())) == 1
    if copies > 5:
        assert labels[240] != NOISE, "a message sent that often is a cluster"
    if clustering == "hdbscan":
        once = cluster_labels(np.vstack([others, same]), clustering, min_cluster_size=5)
        assert np.array_equal(once[:240] == NOISE, labels[:240] == NOISE)
        together = labels[:240, None] == labels[None, :240]
        assert np.array_equal(once[:240, None] == once[None, :240], together)


def test_copies_count_where_a_clusterer_takes_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memlab.clusterers, "_functions", dict(memlab.clusterers))
    seen = dict[str, list[float]]()

    @memlab.clusterer
    def counted(vectors: np.ndarray, *, weights: np.ndarray) -> np.ndarray:
        seen.update(weights=weights.tolist(), first=vectors[:, 0].tolist())
        return np.arange(len(vectors))

    rows = np.eye(3)[[2, 0, 2, 1, 0, 2]]
    assert cluster_labels(rows, "counted").tolist() == [0, 1, 0, 2, 1, 0], "the largest first"
    assert seen == {"weights": [3, 2, 1], "first": [0, 1, 0]}
    points = np.array([[1.0, 0.0], [0.96, 0.28], [0.6, 0.8]])
    heavy = np.repeat(points, [1, 1, 30], axis=0)
    assert cluster_labels(heavy, "kmeans", n_clusters=2).tolist() == [1, 1, *[0] * 30]


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.12])
def test_two_far_groups_do_not_mix_for_any_seed(noise: float) -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 60)
    rows = np.eye(384)[truth] + rng.normal(scale=noise, size=(120, 384))
    for seed in range(50):
        labels = cluster_labels(rows, "kmeans", n_clusters=2, seed=seed)
        assert sorted(np.bincount(labels).tolist()) == [60, 60], seed
        assert len(set(labels[:60].tolist())) == 1, seed


def test_ones_own_rows_are_dense_by_their_differences_and_copies_are_a_cluster_alone() -> None:
    rows = np.eye(12)[[0, 1, 2, 3, 4, 5, 6, *[7] * 4, *[8] * 5]]
    labels = hdbscan_labels(rows, min_cluster_size=5, n_components=None)
    assert labels.tolist() == [NOISE] * 11 + [0] * 5
    weights = np.r_[np.ones(7), np.full(4, 2), np.ones(5)]
    labels = hdbscan_labels(rows, min_cluster_size=5, n_components=None, weights=weights)
    assert labels.tolist() == [NOISE] * 7 + [1] * 4 + [0] * 5


def nearest_of(rows: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Compare all pairs by cosine distance."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    distances = np.maximum(1 - unit @ unit.T, 0).astype(np.float32)
    np.fill_diagonal(distances, 0)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return nearest, np.take_along_axis(distances, nearest, axis=1)


@pytest.mark.slow
def test_layouts_of_many_rows_share_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    from memlab.cluster import umap_projection

    monkeypatch.setattr(umap_projection, "_EXACT_UP_TO", 100)
    monkeypatch.setattr(umap_projection, "_last_neighbours", {})
    monkeypatch.setattr(umap_projection, "_kept_layouts", {})
    searched = []

    def counted(rows: np.ndarray, n_neighbors: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        searched.append(rows.shape)
        return nearest_of(rows, n_neighbors)

    monkeypatch.setattr(umap_projection, "_search_nearest_neighbours", counted)
    points, truth = blobs(80, 60, 60)
    layout = project(points, seed=3)
    project(points, n_components=5, min_dist=0.0, seed=3)
    assert searched == [points.shape], "once for both"
    umap_projection._kept_layouts.clear()
    assert np.array_equal(layout, project(points, seed=3)), "what was kept is not written into"
    middles = np.stack([layout[truth == group].mean(axis=0) for group in range(3)])
    nearest = ((layout[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == truth).mean() >= 0.95
    project(points, seed=4)
    assert len(searched) == 2
    assert len(umap_projection._last_neighbours) == 1


def test_a_layout_that_was_made_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from memlab.cluster import umap_projection

    laid_out = []

    def counted(rows: np.ndarray, settings: tuple[bytes, int, int, float, int]) -> np.ndarray:
        laid_out.append(settings[1:])
        return rows[:, : settings[1]]

    monkeypatch.setattr(umap_projection, "_project_by_umap", counted)
    monkeypatch.setattr(umap_projection, "_kept_layouts", {})
    monkeypatch.setattr(umap_projection, "_MOST_KEPT_LAYOUTS", 2)
    points, _ = blobs(9, 9)
    first = project(points, seed=3)
    first[:] = 0
    assert project(points, seed=3).any(), "what was kept is not written into"
    project(points[:-1], seed=3)
    project(points, seed=3)
    assert laid_out == [(2, 15, 0.1, 3)] * 2
    project(points, seed=4)
    project(points[:-1], seed=3)
    assert len(laid_out) == 4, "of three the one that nobody asked for longest goes"


@pytest.mark.parametrize("bytes_of_product", [1 << 30, 1 << 20])
def test_neighbours_are_those_of_scikit_learn_to_the_last_bit(
    bytes_of_product: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memlab.cluster import umap_projection

    monkeypatch.setattr(umap_projection, "_BYTES_OF_PRODUCT", bytes_of_product)
    rows = umap_projection.check_and_scale_to_unit(blobs(150, 150, 100)[0])
    rows[7] = 0
    search = NearestNeighbors(n_neighbors=15, metric="cosine", algorithm="brute")
    with config_context(working_memory=bytes_of_product >> 20), threadpool_limits(1):
        distances, indices = search.fit(rows).kneighbors(rows)
        found = umap_projection._search_nearest_neighbours(rows, 15, 0)
    assert np.array_equal(found.indices, indices)
    assert np.array_equal(found.distances, distances)


@pytest.mark.nightly  # numba compiles the search
def test_the_search_among_many_rows_finds_most_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    from memlab.cluster import umap_projection

    monkeypatch.setattr(umap_projection, "_EXACT_UP_TO", 100)
    rows = umap_projection.check_and_scale_to_unit(blobs(150, 100, 50)[0])
    found, _ = umap_projection._search_nearest_neighbours(rows, 15, 0)
    exact, _ = nearest_of(rows, 15)
    shared = [len(set(a) & set(b)) for a, b in zip(found.tolist(), exact.tolist(), strict=True)]
    assert np.mean(shared) >= 0.9 * 15


def test_many_points_are_joined_by_another_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.metrics import adjusted_rand_score

    from memlab.cluster import clusterers, density_clusters

    points, truth = blobs(60, 50, 40)
    few = points[:, :3] @ np.diag([1.0, 0.9, 1.1])
    by_prim = hdbscan_labels(few, min_cluster_size=20, n_components=None)
    monkeypatch.setattr(clusterers, "MANY_POINTS", 100)
    by_boruvka = hdbscan_labels(few, min_cluster_size=20, n_components=None)
    assert adjusted_rand_score(by_prim, by_boruvka) >= 0.9
    assert by_boruvka.max() == 2
    found = density_clusters(few, min_cluster_size=20, n_components=None)
    assert np.array_equal(found.labels, by_boruvka)
    wide = np.hstack([points] * 2)
    assert wide.shape[1] > clusterers.FEW_DIMENSIONS
    assert hdbscan_labels(wide, n_components=None).shape == truth.shape


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("n_clusters", 0, "1"), ("n_clusters", -1, "1"), ("min_cluster_size", 1, "2")],
)
@pytest.mark.parametrize("clustering", ["kmeans", "hdbscan", "mixture"])
def test_a_number_of_clusters_that_cannot_be_is_refused_by_name(
    clustering: str, name: str, value: int, expected: str
) -> None:
    with pytest.raises(DataError, match=f"^{name} is {value}; expected at least {expected}$"):
        cluster_labels(np.eye(3), clustering, **{name: value})
