"""UMAP with a seed, and what is given where there are too few points for it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from memlab.cluster import project
from memlab.errors import DataError


@pytest.mark.parametrize("n", [0, 1, 2, 4, 5, 12])
@pytest.mark.parametrize("n_components", [1, 3])
def test_any_number_of_points_has_places(n: int, n_components: int) -> None:
    for points in (np.random.default_rng(0).normal(size=(n, 8)), np.ones((n, 8)), np.eye(8)[np.arange(n) % 2]):
        coordinates = project(points, n_components=n_components)
        assert coordinates.shape == (n, n_components)
        assert coordinates.dtype == np.float32
        assert np.isfinite(coordinates).all()


def test_a_layout_repeats_keeps_neighbours_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 30)
    points = np.eye(16)[truth] + rng.normal(scale=0.1, size=(90, 16))
    layouts = []
    for threads, scale in ((1, 1), (2, 7)):
        with warnings.catch_warnings(), threadpool_limits(threads):
            warnings.simplefilter("error")
            layouts.append(project(points * scale, seed=3))
    assert np.array_equal(*layouts), "only the direction of a row counts, and no thread does"
    assert not np.array_equal(layouts[0], project(points, seed=4))
    apart = np.linalg.norm(layouts[0][:, None] - layouts[0][None], axis=2) + np.diag(np.full(90, np.inf))
    assert (truth[apart.argmin(axis=1)] == truth).mean() > 0.95
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_laid_out() -> None:
    for wrong in ({"n_components": 0}, {"n_neighbors": 1}, {"min_dist": 1.5}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            project(np.eye(4), **wrong)
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        project(np.ones(3))
    with pytest.raises(DataError, match=r"row 0 .* NaN or infinity"):
        project(np.full((5, 3), np.inf))
