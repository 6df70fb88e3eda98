import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.cluster import NOISE, hdbscan_labels
from memlab.cluster.density import by_size
from memlab.errors import DataError


def blobs(seed: int, sizes=(40, 25, 15), dimensions: int = 16, spread: float = 0.08):
    """Directions around well-separated axes, and which axis each row belongs to."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return np.eye(dimensions)[truth] + rng.normal(scale=spread, size=(len(truth), dimensions)), truth


def same_partition(a, b) -> bool:
    return np.array_equal(np.equal.outer(a, a), np.equal.outer(b, b))


@pytest.mark.parametrize("n_components", [None, 5])
def test_finds_blobs_in_the_embedding_space_and_after_umap(n_components):
    from sklearn.metrics import adjusted_rand_score, homogeneity_score

    points, truth = blobs(0)
    labels = hdbscan_labels(points, n_components=n_components)
    assert labels.dtype == np.int64
    if n_components is None:
        assert adjusted_rand_score(truth, labels) >= 0.95
    else:  # UMAP gives a round blob a structure of its own, and leaves follow it: parts of a blob, never two blobs
        assert homogeneity_score(truth[labels >= 0], labels[labels >= 0]) >= 0.95


@pytest.mark.parametrize(("min_cluster_size", "neighbours"), [(5, 3), (10, 5)])
def test_agrees_with_scikit_learn(min_cluster_size, neighbours):
    from sklearn.cluster import HDBSCAN
    from sklearn.metrics import adjusted_rand_score

    points, _ = blobs(1, sizes=(60, 40, 30, 20), spread=0.2)
    noisy = np.vstack([points, np.random.default_rng(2).normal(size=(30, points.shape[1]))])
    unit = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    counted = 1 + neighbours  # scikit-learn counts the point itself
    theirs = HDBSCAN(
        min_cluster_size=min_cluster_size, min_samples=counted, cluster_selection_method="leaf", copy=True
    ).fit_predict(unit)
    ours = hdbscan_labels(noisy, min_cluster_size=min_cluster_size, n_components=None)
    assert ours.max() >= 3
    assert adjusted_rand_score(theirs, ours) >= 0.95


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 60))
def test_order_and_length_of_rows_do_not_change_the_partition(seed, n):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    order = rng.permutation(n)
    labels = hdbscan_labels(points, n_components=None)
    shuffled = hdbscan_labels(points[order] * 2.0 ** rng.integers(-3, 4, (n, 1)), n_components=None)
    assert np.array_equal(labels[order] == NOISE, shuffled == NOISE)
    clustered = shuffled != NOISE
    assert same_partition(labels[order][clustered], shuffled[clustered])
    sizes = np.bincount(labels[labels != NOISE])
    assert (sizes[sizes > 0] >= 5).all()
    assert (np.diff(sizes) <= 0).all(), "the largest cluster comes first"


def test_repeats_with_a_seed_in_any_order():
    points, _ = blobs(3, spread=0.3)
    order = np.random.default_rng(0).permutation(len(points))
    labels, shuffled = hdbscan_labels(points, seed=1), hdbscan_labels(points[order], seed=1)
    assert np.array_equal(labels, hdbscan_labels(points, seed=1))
    assert np.array_equal(labels[order] == NOISE, shuffled == NOISE)
    assert same_partition(labels[order], shuffled)


@pytest.mark.parametrize("n_components", [None, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_too_few_rows_are_noise(n, n_components):
    labels = hdbscan_labels(np.random.default_rng(0).normal(size=(n, 8)), n_components=n_components)
    assert labels.tolist() == [NOISE] * n


@pytest.mark.parametrize("n_components", [None, 2, 5])
@pytest.mark.parametrize("n", [5, 6, 7, 8, 9, 16])
def test_small_numbers_of_rows_are_defined(n, n_components):
    points = np.random.default_rng(n).normal(size=(n, 8))
    labels = hdbscan_labels(points, n_components=n_components)
    assert labels.shape == (n,)
    assert labels.min() >= NOISE


@pytest.mark.parametrize("n_components", [None, 2])
def test_identical_rows_are_one_cluster_and_empty_ones_noise(n_components):
    assert hdbscan_labels(np.ones((9, 4)), n_components=n_components).tolist() == [0] * 9
    assert hdbscan_labels(np.zeros((9, 4)), n_components=n_components).tolist() == [NOISE] * 9
    repeated = hdbscan_labels(np.repeat(np.eye(4), [30, 20, 10, 6], axis=0), n_components=None)
    assert repeated.tolist() == [0] * 30 + [1] * 20 + [2] * 10 + [3] * 6


def test_bad_embeddings_are_refused():
    points = np.ones((9, 4))
    points[7, 2] = np.nan
    with pytest.raises(DataError, match=r"row 7 holds NaN"):
        hdbscan_labels(points)
    with pytest.raises(DataError, match=r"shape \(9,\)"):
        hdbscan_labels(np.ones(9))


@pytest.mark.parametrize("wrong", [{"min_cluster_size": 1}, {"n_components": 0}])
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(DataError, match=next(iter(wrong))):
        hdbscan_labels(np.random.default_rng(0).normal(size=(20, 4)), **wrong)


@given(st.lists(st.integers(-2, 6)))
def test_by_size_renames_and_never_regroups(raw):
    labels = np.array(raw, dtype=int)
    named = by_size(labels)
    assert np.array_equal(named == NOISE, labels < 0)
    assert same_partition(named[labels >= 0], labels[labels >= 0])
    sizes = np.bincount(named[named >= 0])
    assert (np.diff(sizes) <= 0).all()
    assert np.array_equal(by_size(named), named)


def test_importing_the_room_loads_no_heavy_library():
    heavy = (
        "import sys, memlab.cluster; print([m for m in ('umap', 'hdbscan', 'sklearn', 'numba') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_by_size_puts_the_largest_first_and_ties_by_first_member():
    assert by_size(np.array([7, -1, 3, 3, 9])).tolist() == [1, -1, 0, 0, 2]
