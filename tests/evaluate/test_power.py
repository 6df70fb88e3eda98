"""What a comparison could have seen, and equivalence, against simulation and scipy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm, ttest_1samp

from memlab.errors import DataError
from memlab.evaluate import Comparison, detectable, equivalence, holm, verdicts


@pytest.mark.parametrize(("n", "discordant", "tests"), [(78, 0.2, 1), (78, 0.2, 64), (300, 0.1, 5), (40, 0.0, 3)])
def test_what_is_detectable_is_detected_in_four_of_five_simulations(n: int, discordant: float, tests: int) -> None:
    least = detectable(n, discordant, tests=tests)
    assert least is not None
    shown = {}
    for difference in (least, least - 0.02):
        share = max(discordant, difference)
        rng = np.random.default_rng(0)
        pairs = rng.binomial(n, share, size=4000)
        wins = rng.binomial(pairs, (1 + difference / share) / 2)
        cases, counts = np.unique(np.stack([wins, pairs]), axis=1, return_counts=True)
        p = np.array([binomtest(w, m).pvalue if m else 1.0 for w, m in cases.T])
        # A difference is shown where it is shown in its own direction.
        right = (p <= 0.05 / tests) & (2 * cases[0] > cases[1])
        shown[difference] = counts[right].sum() / 4000
    assert shown[least] > 0.78
    assert shown[least - 0.02] < 0.82


def test_with_64_tests_twelve_questions_must_agree() -> None:
    assert binomtest(11, 11).pvalue > 0.05 / 64 > binomtest(12, 12).pvalue
    assert detectable(11, 0.0, tests=64) is None
    assert detectable(12, 0.0, tests=64) == 0.985  # (0.985)¹² > .8


@settings(max_examples=10)
@given(st.integers(5, 100), st.floats(0, 0.5), st.integers(1, 20))
def test_more_questions_see_more_and_more_tests_less(n: int, discordant: float, tests: int) -> None:
    here, more, corrected = (
        detectable(n, discordant, tests=tests) or 2,
        detectable(4 * n, discordant, tests=tests) or 2,
        detectable(n, discordant, tests=2 * tests) or 2,
    )
    assert more <= here <= corrected


@given(st.integers(1, 60), st.integers(0, 20), st.integers(0, 20), st.floats(0.01, 0.5))
def test_equivalence_is_two_one_sided_tests(more: int, win: int, loss: int, margin: float) -> None:
    """Two z tests of the sample with a win and a loss more."""
    n = more + win + loss
    p = equivalence((win - loss) / n, n, win, loss, margin=margin)
    assert 0 <= p <= 1
    assert p == pytest.approx(equivalence((loss - win) / n, n, loss, win, margin=margin))
    assert equivalence((win - loss) / n, n, win, loss, margin=margin + 0.1) < p or p == 0
    values = np.repeat([1.0, -1.0, 0.0], [win + 1, loss + 1, n - win - loss])
    mean, error = values.mean(), values.std() / np.sqrt(len(values))
    if error:
        one_sided = max(norm.sf((mean + margin) / error), norm.cdf((mean - margin) / error))
        assert p == pytest.approx(one_sided)


def test_equivalence_agrees_with_two_t_tests_where_many_were_asked() -> None:
    win, loss, n = 60, 45, 2000
    differences = np.repeat([1.0, -1.0, 0.0], [win, loss, n - win - loss])
    golden = max(
        ttest_1samp(differences, bound, alternative=side).pvalue for bound, side in ((-0.02, "greater"), (0.02, "less"))
    )
    assert equivalence((win - loss) / n, n, win, loss, margin=0.02) == pytest.approx(golden, abs=0.003)


def test_no_difference_on_few_questions_is_open_and_on_many_as_good() -> None:
    def table(n: int, **row: float) -> pl.DataFrame:
        rows = [{"system": "base", "n": n, "mean": 0.5}, {"system": "other", "n": n, "mean": 0.5, **row}]
        return pl.DataFrame(rows, infer_schema_length=None)

    few = table(40, difference=0.0, low=0.0, high=0.0, p=1.0, p_holm=1.0, win=0, tie=40, loss=0)
    many = table(4000, difference=0.0, low=-0.01, high=0.01, p=1.0, p_holm=1.0, win=40, tie=3920, loss=40)
    better = table(100, difference=0.2, low=0.12, high=0.28, p=1e-6, p_holm=1e-6, win=20, tie=80, loss=0)
    judged = verdicts([few, many, better])
    assert isinstance(judged, Comparison)
    assert judged["verdict"].to_list() == [None, "open", None, "as good", None, "better"]
    assert judged["p_holm"].to_list()[1::2] == holm(np.array([1, 1, 1e-6])).tolist()
    assert judged["p_holm"].to_list()[::2] == judged["detectable"].to_list()[::2] == [None] * 3
    seen = judged["detectable"].to_list()
    assert seen[3] < seen[5] < seen[1]


def test_they_refuse() -> None:
    with pytest.raises(DataError, match="expected counts of 1 and more"):
        detectable(0, 0.1)
    with pytest.raises(DataError, match="expected a positive margin"):
        equivalence(0.0, 10, 6, 6)
