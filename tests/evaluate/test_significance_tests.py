"""Tests and intervals agree with scipy where it has them, and keep the laws that make them honest."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from memlab.evaluate import verdicts
from memlab.evaluate.significance_tests import (
    EXACT_UP_TO,
    bootstrap_interval,
    equivalence_p,
    holm,
    randomisation_test,
    smallest_detectable_difference,
)

DIFFERENCES = arrays(
    np.float64,
    st.integers(1, 25),
    elements=st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.1, 0.5, 1.0]),
)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n", [2, 5, EXACT_UP_TO])
def test_exact_like_scipy(seed, n):
    rng = np.random.default_rng(seed)
    differences = rng.normal(0.3, 1.0, n) if seed % 2 else rng.choice([-1.0, -0.5, 0.5, 1.0], n)
    theirs = stats.permutation_test(
        (differences, np.zeros_like(differences)), lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples", vectorized=True, n_resamples=np.inf,
    )  # fmt: skip
    assert randomisation_test(differences) == pytest.approx(theirs.pvalue, abs=1e-12)


@given(DIFFERENCES)
def test_symmetric_bounded_and_blind_to_zeros(differences):
    p = randomisation_test(differences)
    assert 0 < p <= 1
    assert randomisation_test(np.concatenate([np.zeros(3), differences])) == p
    if np.count_nonzero(differences) <= EXACT_UP_TO:
        assert randomisation_test(-differences) == p
        assert randomisation_test(differences[::-1]) == pytest.approx(p, abs=1e-12)


def test_uniform_under_the_null():
    rng = np.random.default_rng(1)
    p = np.array([randomisation_test(rng.normal(0, 1, 20), seed=i) for i in range(80)])
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert stats.binomtest(int((p <= 0.05).sum()), len(p), 0.05).pvalue > 0.01


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm(p):
    given_p = np.array(p, dtype=np.float64)
    order = np.argsort(given_p, kind="stable")
    # By the definition: the adjusted p of a hypothesis is the smallest level at which it is
    # rejected.
    rejected = [
        max((len(p) - j) * given_p[order[j]] for j in range(place + 1)) for place in range(len(p))
    ]
    np.testing.assert_allclose(holm(given_p)[order], np.minimum(1, rejected), rtol=1e-12)


def test_bootstrap_intervals_are_those_of_scipy_and_cover_the_truth():
    values = np.random.default_rng(3).exponential(1.0, 120)
    low, high = bootstrap_interval(values[:, None], seed=0)
    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=4000, rng=0
    ).confidence_interval
    assert (low.item(), high.item()) == pytest.approx((theirs.low, theirs.high), abs=0.03)
    # The columns of one call are as many sets.
    low, high = bootstrap_interval((np.random.default_rng(4).random((200, 100)) < 0.3) * 1.0)
    covered = int(((low <= 0.3) & (high >= 0.3)).sum())
    assert stats.binomtest(covered, len(low), 0.95).pvalue > 0.01


@pytest.mark.parametrize(("n", "discordant", "tests"), [(78, 0.2, 64), (300, 0.1, 5), (40, 0.0, 3)])
def test_what_is_detectable_is_detected_in_four_of_five_simulations(
    n: int, discordant: float, tests: int
) -> None:
    least = smallest_detectable_difference(n, discordant, tests=tests)
    assert least is not None
    shown = {}
    for difference in (least, least - 0.02):
        share, rng = max(discordant, difference), np.random.default_rng(0)
        pairs = rng.binomial(n, share, size=4000)
        wins = rng.binomial(pairs, (1 + difference / share) / 2)
        cases, counts = np.unique(np.stack([wins, pairs]), axis=1, return_counts=True)
        p = np.array([stats.binomtest(w, m).pvalue if m else 1.0 for w, m in cases.T])
        # A difference is shown where it is shown in its own direction.
        right = (p <= 0.05 / tests) & (2 * cases[0] > cases[1])
        shown[difference] = counts[right].sum() / 4000
    assert shown[least] > 0.78
    assert shown[least - 0.02] < 0.82


@given(st.integers(1, 60), st.integers(0, 20), st.integers(0, 20), st.floats(0.01, 0.5))
def test_equivalence_is_two_one_sided_tests(more: int, win: int, loss: int, margin: float) -> None:
    """Two z tests of the sample with a win and a loss more."""
    n = more + win + loss
    p = equivalence_p((win - loss) / n, n, win, loss, margin=margin)
    assert equivalence_p((win - loss) / n, n, win, loss, margin=margin + 0.1) < p or p == 0
    values = np.repeat([1.0, -1.0, 0.0], [win + 1, loss + 1, n - win - loss])
    mean, error = values.mean(), values.std() / np.sqrt(len(values))
    if error:
        one_sided = max(
            stats.norm.sf((mean + margin) / error), stats.norm.cdf((mean - margin) / error)
        )
        assert p == pytest.approx(one_sided)


def test_no_difference_on_few_questions_is_inconclusive_and_on_many_equivalence() -> None:
    base, other = {"system": "base", "n": 40, "mean": 0.5}, {"system": "other", "mean": 0.5}
    rows = [
        base,
        other | {"n": 40, "difference": 0.0, "p": 1.0, "win": 0, "tie": 40, "loss": 0},
        other | {"n": 4000, "difference": 0.0, "p": 1.0, "win": 40, "tie": 3920, "loss": 40},
        other | {"n": 100, "difference": 0.2, "p": 1e-6, "win": 20, "tie": 80, "loss": 0},
    ]
    judged = verdicts([pl.DataFrame(rows[:2], infer_schema_length=None), pl.DataFrame(rows[2:])])
    assert judged["verdict"].to_list() == [None, "inconclusive", "equivalent", "better"]
    assert judged["p_holm"].to_list() == [None, *holm(np.array([1, 1, 1e-6])).tolist()]
    none, few, many, better = judged["detectable"].to_list()
    assert none is None
    assert many < better < few


def test_flips_that_are_drawn_are_those_of_the_bits() -> None:
    differences = np.random.default_rng(3).normal(0.3, 1, 21)
    drawn = np.random.default_rng(5).integers(0, 256, size=(10_000, 3), dtype=np.uint8)
    signs = np.unpackbits(drawn, axis=1, count=21) * 2.0 - 1.0
    extreme = (np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9).sum()
    assert randomisation_test(differences, seed=5) == (extreme + 1) / 10_001
