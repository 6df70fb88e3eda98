import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.cluster import mixture
from memlab.cluster.mixture import mixture_memberships
from memlab.errors import DataError


def planted(groups=4, size=15, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(groups), size)
    return np.eye(32)[truth] + rng.normal(scale=noise, size=(groups * size, 32)), truth


def laws(memberships, n):
    weights = memberships.toarray()
    assert weights.shape[0] == n
    assert ((weights > 0).sum(axis=1) >= 1).all(), "every row belongs somewhere"
    assert (weights <= 1 + 1e-9).all()
    if n:
        assert set(weights.argmax(axis=1)) == set(range(weights.shape[1])), "every group is somebody's likeliest"
        members = {tuple(np.flatnonzero(column)) for column in weights.T}
        assert len(members) == weights.shape[1], "no group twice"


@pytest.mark.parametrize("reduce", ["umap", "pca"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 11, 12, 13])
def test_any_number_of_rows(n, reduce):
    laws(mixture_memberships(np.random.default_rng(n).normal(size=(n, 16)), reduce=reduce), n)


@pytest.mark.parametrize("reduce", ["umap", "pca"])
@pytest.mark.parametrize(
    "rows",
    [
        np.ones((30, 8)),
        np.zeros((30, 8)),
        np.repeat(np.eye(8)[:3], 20, axis=0),
        np.vstack([np.ones((29, 8)), -1e6 * np.eye(8)[:1]]),
        np.random.default_rng(0).normal(size=(25, 1)),
    ],
    ids=["equal", "zero", "three different", "outlier", "one dimension"],
)
def test_rows_that_break_a_mixture(rows, reduce):
    laws(mixture_memberships(rows, reduce=reduce), len(rows))


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 10**6))
def test_laws_hold_for_any_rows(n, different, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(different, 6))[rng.integers(0, different, n)]
    laws(mixture_memberships(rows, reduce="pca"), n)


@pytest.mark.parametrize("reduce", ["umap", "pca"])
def test_groups_that_are_there_are_found(reduce):
    rows, truth = planted()
    labels = mixture_memberships(rows, reduce=reduce).argmax(axis=1)
    for label in set(labels.tolist()):
        assert len(set(truth[labels == label])) == 1, "no group mixes two"
    if reduce == "pca":
        assert len(set(labels.tolist())) == 4


def test_repeats_for_a_seed():
    rows = np.random.default_rng(1).normal(size=(60, 16))
    first, again, other = (mixture_memberships(rows, seed=seed).toarray() for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_a_row_between_two_groups_belongs_to_both(monkeypatch):
    rng = np.random.default_rng(0)
    ends = np.vstack([np.tile([1.0, 0.0], (20, 1)), np.tile([0.0, 1.0], (20, 1))])
    rows = np.vstack([ends + rng.normal(scale=0.25, size=(40, 2)), [[1.0, 1.0]]])
    monkeypatch.setattr(mixture, "THRESHOLD", 0.01)
    memberships = mixture_memberships(rows, reduce="pca").toarray()
    assert (memberships > 0).sum(axis=1).max() > 1
    monkeypatch.setattr(mixture, "THRESHOLD", 0.99)
    hard = mixture_memberships(rows, reduce="pca").toarray()
    assert ((hard > 0).sum(axis=1) == 1).all()


def test_the_search_finds_the_best_of_all_sizes_nearly(monkeypatch):
    """A bounded search over a criterion with one valley finds its lowest point, and asks for few sizes."""
    for lowest in (1, 2, 5, 7, 13, 20, 29, 45, 50):
        asked = []

        def criterion(points, n_components, seed, lowest=lowest, asked=asked):
            asked.append(n_components)
            return abs(n_components - lowest) ** 1.5, np.full((1, n_components), 1 / n_components)

        monkeypatch.setattr(mixture, "_mixture", criterion)
        assert mixture._fitted(np.zeros((1, 1)), 50, 0).shape[1] == lowest
        assert len(asked) == len(set(asked)) <= 24
        assert max(asked) <= 50


def test_another_reduction_is_refused():
    with pytest.raises(DataError, match="reduce is 'tsne'; choose from umap, pca"):
        mixture_memberships(np.eye(4), reduce="tsne")


def test_numbers_that_are_none():
    with pytest.raises(DataError, match="row 0 holds NaN"):
        mixture_memberships(np.array([[np.nan, 1.0]]))
