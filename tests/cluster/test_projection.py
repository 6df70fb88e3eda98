import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from threadpoolctl import threadpool_limits

from memlab.cluster import project
from memlab.cluster.projection import exact_neighbors, principal_components, unit_rows
from memlab.errors import DataError


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6, 12])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_defined_for_few_points(n, n_components):
    points = np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32)
    coordinates = project(points, n_components=n_components)
    assert coordinates.shape == (n, n_components)
    assert coordinates.dtype == np.float32
    assert np.isfinite(coordinates).all()


@pytest.mark.parametrize("n", [9, 60])
def test_duplicates_and_empty_rows_are_finite(n):
    assert not project(np.ones((n, 4))).any()
    mixed = np.vstack([np.repeat(np.eye(4), n, axis=0), np.zeros((3, 4))])
    assert np.isfinite(project(mixed)).all()


def test_repeats_with_a_seed_keeps_neighbours_and_says_nothing(capfd):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 30)
    points = np.eye(16)[truth] + rng.normal(scale=0.1, size=(90, 16))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = project(points, seed=3)
        again = project(points * 7, seed=3)
    assert np.array_equal(first, again), "only the direction of a row counts"
    assert not np.array_equal(first, project(points, seed=4))
    apart = np.linalg.norm(first[:, None] - first[None], axis=2) + np.diag(np.full(90, np.inf))
    assert (truth[apart.argmin(axis=1)] == truth).mean() > 0.95
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("wrong", [{"n_components": 0}, {"n_neighbors": 1}, {"min_dist": -0.1}, {"min_dist": 1.5}])
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(DataError, match=next(iter(wrong))):
        project(np.eye(4), **wrong)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(bad):
    points = np.ones((5, 3))
    points[2, 1] = bad
    with pytest.raises(DataError, match="row 2 holds NaN or infinity"):
        project(points)


def test_wrong_shape_is_refused():
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        project(np.ones(3))


def test_principal_components_agree_with_scikit_learn():
    from sklearn.decomposition import PCA

    points = np.random.default_rng(1).normal(size=(40, 6)) * [5, 4, 3, 2, 1, 0.5]
    theirs = PCA(3, svd_solver="full").fit_transform(points)
    assert np.allclose(np.abs(principal_components(points, n_components=3)), np.abs(theirs), atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.floats(-1e300, 1e300)))
def test_unit_rows_have_unit_length_or_none(points):
    lengths = np.linalg.norm(unit_rows(points), axis=1)
    assert np.allclose(lengths[points.any(axis=1)], 1, atol=1e-5)
    assert not lengths[~points.any(axis=1)].any()


def test_exact_neighbors_agree_with_scikit_learn():
    from sklearn.neighbors import NearestNeighbors

    rows = unit_rows(np.random.default_rng(2).normal(size=(2500, 24)))
    indices, distances = exact_neighbors(rows, 7)
    theirs, _ = NearestNeighbors(n_neighbors=7, metric="cosine").fit(rows).kneighbors(rows)
    assert np.array_equal(indices[:, 0], np.arange(2500))
    assert np.allclose(distances, theirs, atol=1e-5)


def test_exact_neighbors_of_duplicates_begin_with_themselves():
    indices, distances = exact_neighbors(unit_rows(np.ones((6, 3))), 4)
    assert np.array_equal(indices[:, 0], np.arange(6))
    assert np.allclose(distances, 0, atol=1e-6)


def test_rows_of_nought_stay_and_components_point_to_their_largest_loading():
    assert np.allclose(unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0.0, 0.0]])
    assert principal_components(np.array([[0.0, 0.0], [2.0, 0.0]]), n_components=2).tolist() == [[-1, 0], [1, 0]]


def test_the_number_of_threads_does_not_move_the_map() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 64))
    maps = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            maps.append(project(rows, seed=0))
    np.testing.assert_array_equal(*maps)
