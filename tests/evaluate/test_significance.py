"""Tests and intervals agree with scipy where it has them, and keep the laws that make them honest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from memlab.errors import DataError
from memlab.evaluate import against_null, bootstrap_interval, holm, randomisation_test
from memlab.evaluate.significance import EXACT_UP_TO, PERMUTATIONS, by_unit

DIFFERENCES = arrays(np.float64, st.integers(1, 25), elements=st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.1, 0.5, 1.0]))


def scipy_p(differences: np.ndarray) -> float:
    return stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    ).pvalue


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [2, 5, 10, EXACT_UP_TO])
def test_exact_like_scipy(seed, n):
    rng = np.random.default_rng(seed)
    differences = rng.normal(0.3, 1.0, n) if seed % 2 else rng.choice([-1.0, -0.5, 0.5, 1.0], n)
    assert randomisation_test(differences) == pytest.approx(scipy_p(differences), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_sampled_is_close_to_exact(seed):
    rng = np.random.default_rng(seed)
    differences = rng.normal(0.3, 1.0, EXACT_UP_TO + 2)
    exact = scipy_p(differences)
    sampled = randomisation_test(differences, seed=seed)
    assert sampled == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / PERMUTATIONS) + 2e-4)


def test_sampled_on_equal_sizes_is_the_sign_test():
    differences = np.array([1.0] * 40 + [-1.0] * 22 + [0.0] * 100)
    exact = stats.binomtest(40, 62).pvalue
    assert randomisation_test(differences) == pytest.approx(exact, abs=0.006)


def test_never_zero_and_repeatable():
    differences = np.linspace(0.1, 1.0, 60)
    p = randomisation_test(differences, seed=5)
    assert p == 1 / (PERMUTATIONS + 1)
    noisy = np.random.default_rng(0).normal(0.1, 1, 60)
    assert randomisation_test(noisy, seed=5) == randomisation_test(noisy, seed=5)


@settings(deadline=None)
@given(DIFFERENCES)
def test_symmetric_bounded_and_blind_to_zeros(differences):
    p = randomisation_test(differences, permutations=500)
    assert 0 < p <= 1
    padded = np.concatenate([np.zeros(3), differences])
    assert randomisation_test(padded, permutations=500) == p
    if np.count_nonzero(differences) <= EXACT_UP_TO:
        assert randomisation_test(-differences) == p
        assert randomisation_test(differences[::-1]) == pytest.approx(p, abs=1e-12)


def test_no_difference_is_one():
    assert randomisation_test(np.zeros(50)) == 1.0
    assert randomisation_test(np.array([1.0])) == 1.0


@pytest.mark.parametrize("n", [12, 40])
def test_uniform_under_the_null(n):
    rng = np.random.default_rng(1)
    p = np.array([randomisation_test(rng.normal(0, 1, n), permutations=400, seed=i) for i in range(120)])
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert stats.binomtest(int((p <= 0.05).sum()), len(p), 0.05).pvalue > 0.01


def test_finds_a_real_difference():
    rng = np.random.default_rng(2)
    found = [randomisation_test(rng.normal(0.5, 1, 60), permutations=400, seed=i) < 0.05 for i in range(50)]
    assert np.mean(found) > 0.85


def slow_holm(p: list[float]) -> list[float]:
    """By the definition: the adjusted p of a hypothesis is the smallest level at which it is rejected."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted = [0.0] * len(p)
    for place, i in enumerate(order):
        adjusted[i] = min(1.0, max((len(p) - j) * p[order[j]] for j in range(place + 1)))
    return adjusted


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm(p):
    given_p = np.array(p, dtype=np.float64)
    adjusted = holm(given_p)
    np.testing.assert_allclose(adjusted, slow_holm(p), rtol=1e-12)
    assert (adjusted >= given_p).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(given_p, kind="stable")]) >= 0).all()


def test_interval_like_scipy():
    values = np.random.default_rng(3).exponential(1.0, 120)
    low, high = bootstrap_interval(values[:, None], np.ones(120), seed=0)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=0).confidence_interval
    assert low.item() == pytest.approx(theirs.low, abs=0.02)
    assert high.item() == pytest.approx(theirs.high, abs=0.02)


def test_interval_covers_the_truth():
    rng = np.random.default_rng(4)
    # The columns of one call are as many sets.
    low, high = bootstrap_interval((rng.random((200, 100)) < 0.3) * 1.0, np.ones(200))
    covered = int(((low <= 0.3) & (high >= 0.3)).sum())
    assert stats.binomtest(covered, len(low), 0.95).pvalue > 0.01


def test_interval_in_blocks_is_repeatable(monkeypatch):
    values = np.random.default_rng(5).random((50, 2))
    whole = bootstrap_interval(values, np.ones(50), seed=7)
    np.testing.assert_array_equal(whole, bootstrap_interval(values, np.ones(50), seed=7))
    monkeypatch.setattr("memlab.evaluate.significance.CELLS", 500)
    np.testing.assert_allclose(bootstrap_interval(values, np.ones(50), seed=7), whole, atol=0.02)


def test_one_unit_has_no_interval():
    low, high = bootstrap_interval(np.ones((1, 2)), np.ones(1))
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_resampling_scopes_is_wider_when_scopes_differ():
    scopes = np.repeat(["a", "b", "c", "d", "e"], 40)
    values = np.repeat([0.1, 0.9, 0.5, 0.2, 0.8], 40)[:, None]
    widths = []
    for unit in ("query", "scope"):
        sums, sizes = by_unit(values, scopes, unit)
        assert sums.sum() == pytest.approx(values.sum())
        assert sizes.sum() == 200
        low, high = bootstrap_interval(sums, sizes)
        widths.append((high - low).item())
    assert widths[1] > 3 * widths[0]
    with pytest.raises(DataError, match="'query' or 'scope'"):
        by_unit(values, scopes, "session")


@given(st.integers(2, 30), st.integers(0, 5))
def test_a_draw_of_the_null_is_seldom_far_from_it(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    null = rng.random((400, n))
    table = against_null(null[0], null)
    assert table["chance_low"] < table["chance"] < table["chance_high"]
    assert (table["p"] < 0.04) <= (not table["chance_low"] <= table["mean"] <= table["chance_high"])
    far = against_null(np.append(null[0] + 2, np.nan), np.pad(null, ((0, 0), (0, 1))))
    assert (far["n"], far["p"]) == (n, 1 / 401)
    assert far["mean"] == pytest.approx(null[0].mean() + 2)
