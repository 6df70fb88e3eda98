"""Each interval against a reference: scipy, published tables, statsmodels, and how often it covers the truth."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from threadpoolctl import threadpool_limits

from memlab.errors import DataError
from memlab.evaluate.confidence_intervals import (
    bootstrap_interval,
    change_levels,
    clustered_interval,
    clustered_share_interval,
    clustering_scopes,
    difference_intervals,
    mean_intervals,
    newcombe_interval,
    wilson_interval,
)
from memlab.evaluate.significance_tests import compare_paired, compare_with_null

# Newcombe, Statistics in Medicine 17 (1998), Table III, method 10, as transcribed alike in several
# public test suites: e, f, g, h (both, first alone, second alone, neither) and the limits.
TABLE_3 = [
    ((36, 12, 2, 0), (0.0569, 0.3404)),
    ((20, 12, 2, 16), (0.0562, 0.3292)),
    ((18, 12, 2, 18), (0.0562, 0.3290)),
    ((36, 14, 0, 0), (0.1528, 0.4167)),
    ((35, 14, 0, 1), (0.1461, 0.4175)),
    ((18, 14, 0, 18), (0.1441, 0.3963)),
    ((2, 97, 1, 0), (0.8721, 0.9854)),
    ((0, 29, 1, 0), (0.6666, 0.9882)),
    ((2, 98, 0, 0), (0.9178, 0.9945)),
    ((1, 98, 0, 1), (0.9171, 0.9916)),
    ((0, 30, 0, 0), (0.8395, 1.0)),
    ((54, 0, 0, 0), (-0.0664, 0.0664)),
    ((53, 0, 0, 1), (-0.0729, 0.0729)),
    ((30, 0, 0, 24), (-0.0358, 0.0358)),
    ((29, 0, 0, 25), (-0.0354, 0.0354)),
    ((28, 0, 0, 26), (-0.0352, 0.0352)),
    ((27, 0, 0, 27), (-0.0351, 0.0351)),
    # 0.8736 in the table; by the formula 0.87367.
    ((1, 97, 1, 1), (0.87367, 0.9850)),
    # Cavo et al. 2012, in the tests of the R package contingencytables (chapter 8).
    ((59, 6, 16, 80), (-0.1186, -0.0046)),
]


@pytest.mark.parametrize(("counts", "limits"), TABLE_3)
def test_paired_shares_have_the_limits_of_newcombes_table(counts, limits):
    both, win, loss, _ = counts
    low, high = newcombe_interval(both, win, loss, sum(counts))
    assert (float(low), float(high)) == pytest.approx(limits, abs=5.1e-5)
    # Who stands first is a matter of sign alone.
    mirrored = newcombe_interval(both, loss, win, sum(counts))
    assert [-float(end) for end in mirrored] == pytest.approx([high, low], abs=1e-12)


def test_paired_shares_have_the_limits_of_fagerlands_example():
    """Fagerland, Lydersen & Laake 2014, Table V: Bentur's counts 1, 1, 7, 12 give −.507 to −.026."""
    low, high = newcombe_interval(1, 1, 7, 21)
    assert (float(low), float(high)) == pytest.approx((-0.507, -0.026), abs=5e-4)


@given(st.integers(1, 200), st.integers(0, 200), st.sampled_from([0.8, 0.9, 0.95, 0.9974]))
def test_shares_have_scipys_wilson_interval(n, hits, level):
    hits = min(hits, n)
    theirs = stats.binomtest(hits, n).proportion_ci(level, "wilson")
    low, high = wilson_interval(hits, n, level=level)
    assert (float(low), float(high)) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_five_of_five_is_no_certainty_and_one_of_one_nothing():
    row = mean_intervals(np.ones((5, 1))).row(0, named=True)
    assert (row["low"], row["high"]) == (pytest.approx(0.5655, abs=1e-4), 1.0)
    assert (row["level"], row["unit"], row["units"], row["method"]) == (
        0.95,
        "question",
        5,
        "Wilson",
    )
    for values in (np.ones((1, 1)), np.full((1, 1), 0.3), np.full((9, 1), 0.3)):
        assert mean_intervals(values).select("low", "high").row(0) == (None, None)
    assert mean_intervals(np.ones((5, 1)), shares=[False])["low"].item() is None
    scopes = np.array(["a"] * 5)
    assert mean_intervals(np.eye(5)[:, :1], scopes=scopes)["low"].item() is None
    # Two systems that never differ: an interval of few questions, none of other measures.
    same = np.array([[1.0, 1.0], [0.0, 0.0]] * 10)
    low, high = difference_intervals(same, np.array([0, 0])).select("low", "high").row(1)
    assert -high == pytest.approx(low)
    assert 0.05 < high < 0.2
    assert difference_intervals(same / 2, np.array([0, 0]))["low"].to_list() == [None, None]


def test_columns_get_the_method_that_their_values_ask_for():
    rng = np.random.default_rng(0)
    values = np.stack([rng.random(50) < 0.4, rng.random(50)], axis=1) * 1.0
    both = mean_intervals(values, seed=3)
    assert both["method"].to_list() == ["Wilson", "bootstrap"]
    low, high = wilson_interval(values[:, 0].sum(), 50)
    assert both.row(0)[:2] == (float(low), float(high))
    low, high = bootstrap_interval(values[:, 1:], seed=3)
    assert both.row(1)[:2] == (low[0], high[0])
    assert difference_intervals(values, np.array([1, 1]))["method"].to_list() == ["bootstrap"] * 2


def test_a_bootstrap_at_another_level_is_near_scipys():
    values = np.random.default_rng(3).exponential(1.0, 120)
    for level in (0.9, 0.99):
        low, high = bootstrap_interval(values[:, None], level=level)
        theirs = stats.bootstrap(
            (values,), np.mean, confidence_level=level, method="percentile", rng=0
        ).confidence_interval
        assert (low.item(), high.item()) == pytest.approx((theirs.low, theirs.high), abs=0.04)


def test_a_bootstrap_does_not_depend_on_the_number_of_threads():
    values = np.random.default_rng(4).random((217, 6))
    ends = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            ends.append(np.stack(bootstrap_interval(values)).tobytes())
    assert ends[0] == ends[1]


def test_scopes_are_the_unit_from_five_on_where_one_has_several_questions():
    four, five = np.repeat(np.arange(4), 3), np.repeat(np.arange(5), 3)
    assert clustering_scopes(four) is None
    assert clustering_scopes(five) is not None
    assert clustering_scopes(np.arange(9)) is None
    assert clustering_scopes(np.arange(9), "scope") is not None
    assert clustering_scopes(four, "scope") is not None
    for unit in ("question", "query"):
        assert clustering_scopes(five, unit) is None
    with pytest.raises(DataError, match="expected 'auto', 'question' or 'scope'"):
        clustering_scopes(five, "word")


def test_means_over_scopes_have_the_clustered_interval_of_statsmodels():
    """OLS(values, 1).fit(cov_type="cluster", cov_kwds={"groups": scopes}, use_t=True) of statsmodels 0.15.0."""
    scopes = np.repeat(np.arange(6), [3, 5, 2, 7, 4, 6])
    values = np.arange(27) * 7 % 10 / 10
    low, high = clustered_interval(values[:, None], scopes)
    assert (low.item(), high.item()) == pytest.approx((0.3783657, 0.48830097), abs=1e-7)
    row = mean_intervals(values[:, None], scopes=scopes).row(0, named=True)
    assert (row["unit"], row["units"], row["method"]) == ("scope", 6, "t over scopes")
    # One question a scope: the t interval of their mean.
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    ends = clustered_interval(values[:, None], np.arange(27), level=0.9)
    assert [end.item() for end in ends] == pytest.approx([theirs.low, theirs.high])
    # The difference of two columns is a mean of its own.
    other = np.stack([values, np.roll(values, 3)], axis=1)
    ends = difference_intervals(other, np.array([1, 1]), scopes=scopes).select("low", "high").row(0)
    own = clustered_interval(other[:, :1] - other[:, 1:], scopes)
    assert ends == pytest.approx([end.item() for end in own])


def test_shares_over_scopes_count_scopes_where_no_variance_is_seen():
    scopes = np.repeat(np.arange(6), 30)
    low, high = clustered_share_interval(np.ones((180, 1)), scopes)
    quantile = stats.t.ppf(0.975, 5)
    assert high.item() == 1
    assert low.item() == pytest.approx(6 / (6 + quantile**2))
    # With the same share everywhere no question is worth more than one.
    even = np.tile([1.0, 0.0], 90)[:, None]
    low, high = clustered_share_interval(even, scopes)
    assert low.item() == pytest.approx(wilson_interval(90, 180, quantile=quantile)[0])


@pytest.mark.parametrize("n_scopes", [6, 10])
def test_shares_over_scopes_cover_the_truth(n_scopes):
    """Thirty questions a scope, intraclass correlation .1: beta-binomial draws, 3,000 sets each."""
    rng, scopes = np.random.default_rng(0), np.repeat(np.arange(n_scopes), 30)
    for share in (0.1, 0.3, 0.5, 0.8):
        rates = rng.beta(9 * share, 9 * (1 - share), size=(n_scopes, 3000))
        values = (rng.random((len(scopes), 3000)) < rates[scopes]) * 1.0
        low, high = clustered_share_interval(values, scopes)
        assert ((low <= share) & (share <= high)).mean() >= 0.93
        # Questions taken as independent would miss it in every third set.
        low, high = wilson_interval(values.sum(axis=0), len(scopes))
        assert ((low <= share) & (share <= high)).mean() < 0.75


def test_beside_a_corrected_p_stands_an_interval_at_bonferronis_level():
    rng = np.random.default_rng(1)
    values = (rng.random((80, 4)) < [0.3, 0.4, 0.5, 0.6]) * 1.0
    for scopes in (None, np.repeat(np.arange(8), 10)):
        done = compare_paired(values, np.zeros(4, dtype=int), scopes=scopes)
        assert done["level"].to_list() == [None, *[1 - 0.05 / 3] * 3]
        assert done["mean_level"].to_list() == [0.95] * 4
        wider = difference_intervals(values, np.zeros(4, int), scopes=scopes, level=1 - 0.05 / 12)
        again = change_levels(done, 1 - 0.05 / 12)
        assert again["level"].to_list() == [None, *[1 - 0.05 / 12] * 3]
        ends = [table[1:].select("low", "high").to_numpy() for table in (wider, again)]
        np.testing.assert_allclose(*ends, atol=1e-12)
    halves = compare_paired(values / 2 + rng.random((80, 4)) / 9, np.zeros(4, dtype=int), seed=2)
    again = change_levels(halves, 0.999)
    widths = [(table["high"] - table["low"])[1:].to_numpy() for table in (halves, again)]
    ratio = stats.norm.ppf(0.9995) / stats.norm.ppf(1 - 0.025 / 3)
    np.testing.assert_allclose(widths[1] / widths[0], ratio)


def test_the_unit_of_the_test_is_that_of_the_interval():
    scopes = np.repeat(np.arange(6), 10)
    values = np.stack([np.zeros(60), np.ones(60)], axis=1)
    values[::10, 1] = 0
    over_scopes = compare_paired(values, np.array([0, 0]), scopes=scopes).row(1, named=True)
    assert (over_scopes["p"], over_scopes["unit"], over_scopes["units"]) == (2 / 2**6, "scope", 6)
    over_questions = compare_paired(values, np.array([0, 0])).row(1, named=True)
    assert over_questions["p"] < 0.001
    assert (over_questions["unit"], over_questions["units"]) == ("question", 60)


def test_a_mean_beside_its_null_says_what_its_interval_is():
    observed, null = np.array([0.2, 0.4, 0.6, np.nan]), np.random.default_rng(0).random((99, 4))
    found = compare_with_null(observed, null)
    assert (found["n"], found["level"], found["unit"], found["units"]) == (3, 0.95, "question", 3)
    scopes = np.array(["a", "b", "c", "c"])
    over = compare_with_null(observed, null, scopes=scopes)
    assert (over["unit"], over["units"], over["p"]) == ("scope", 3, found["p"])
    assert compare_with_null(observed[:1], null[:, :1])["low"] is None
    assert pl.DataFrame([found, over])["high"].dtype == pl.Float64


QUANTILES = """
import sys
from memlab.evaluate.confidence_intervals import normal_quantile, t_quantile
levels = [0.8, 0.95, *(1 - 0.05 / tests for tests in range(2, 30))]
found = [(normal_quantile(level), t_quantile(level, 7)) for level in levels]
print("scipy.special" in sys.modules)
from scipy import special
ends = [(1 + level) / 2 for level in levels]
print(found == [(special.ndtri(end), special.stdtrit(6, end)) for end in ends])
print(special.ndtri is sys.modules["scipy.special._ufuncs"].ndtri, special.softmax([0]).item())
"""


def test_quantiles_are_those_of_scipy_without_its_package():
    run = subprocess.run(
        [sys.executable, "-c", QUANTILES], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", "True", "True", "1.0"]
