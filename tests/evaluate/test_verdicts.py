"""What is claimed of a comparison, and what is not: harm, equivalence within a margin that could fail, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.errors import DataError
from memlab.evaluate import verdicts
from memlab.evaluate.confidence_intervals import newcombe_interval
from memlab.evaluate.significance_tests import compare_paired, equivalence_p


def compared(both: int, win: int, loss: int, neither: int) -> pl.DataFrame:
    """Compare a system with a baseline that so many questions tell apart."""
    ours = np.repeat([1.0, 1.0, 0.0, 0.0], [both, win, loss, neither])
    base = np.repeat([1.0, 0.0, 1.0, 0.0], [both, win, loss, neither])
    tested = compare_paired(np.stack([base, ours], axis=1), np.array([0, 0]))
    return tested.with_columns(system=pl.Series(["base", "ours"]))


def judged(*tables: pl.DataFrame, **options: Any) -> list[dict[str, Any]]:
    return verdicts(tables, **options).drop_nulls("p").to_dicts()


def test_what_is_significantly_worse_is_called_worse():
    """`by_cluster` on `combsum`, all 291 questions of the sample: 30 lost, 3 won, beside seven other tests."""
    rows = judged(compared(96, 3, 30, 162), *[compared(100, 4, 5, 182)] * 7)
    harmful = rows[0]
    assert harmful["difference"] == pytest.approx(-27 / 291)
    assert harmful["verdict"] == "worse"
    assert harmful["p_holm"] < 0.001
    assert harmful["high"] < 0
    assert harmful["level"] == pytest.approx(1 - 0.05 / 8)
    low, high = newcombe_interval(96, 3, 30, 291, level=1 - 0.05 / 8)
    assert (harmful["low"], harmful["high"]) == pytest.approx((float(low), float(high)))
    assert {row["verdict"] for row in rows[1:]} == {"equivalent"}


def test_equivalence_is_claimed_only_where_the_margin_could_have_been_missed():
    """A base of .067: ± .05 is three quarters of it, and the default a quarter."""
    table = compared(15, 12, 12, 351)
    (row,) = judged(table)
    base = 27 / 390
    assert row["margin"] == pytest.approx(base / 4)
    assert row["margin_of_base"] == pytest.approx(0.25)
    assert row["verdict"] == "inconclusive"
    (row,) = judged(table, margin=0.05)
    assert (row["margin"], row["margin_of_base"]) == (0.05, pytest.approx(0.05 / base))
    assert row["p_equal"] == pytest.approx(equivalence_p(0.0, 390, 12, 12, margin=0.05))
    assert row["verdict"] == "equivalent"
    # No loss could pass it: nothing is claimed, however near the systems are.
    for margin in (base, 0.1):
        (row,) = judged(table, margin=margin)
        assert (row["p_equal"], row["verdict"]) == (None, "inconclusive")


def test_the_default_margin_is_five_points_of_a_high_base_and_none_of_nothing():
    (row,) = judged(compared(2000, 10, 10, 1980))
    assert (row["margin"], row["verdict"]) == (0.05, "equivalent")
    (row,) = judged(compared(0, 1, 0, 3999))
    assert (row["margin"], row["margin_of_base"], row["verdict"]) == (0, None, "inconclusive")
    with pytest.raises(DataError, match="above 0"):
        judged(compared(20, 1, 1, 20), margin=0)
    with pytest.raises(DataError, match="what compare gave"):
        verdicts(pl.DataFrame({"system": ["a"]}))


def test_what_a_test_could_have_seen_stands_beside_it_at_the_corrected_level():
    (alone,) = judged(compared(100, 20, 20, 160))
    first, *_ = judged(*[compared(100, 20, 20, 160)] * 30)
    assert 0.05 < alone["detectable"] < first["detectable"] < 0.2


def test_over_scopes_verdicts_use_what_the_scopes_say():
    rng = np.random.default_rng(0)
    scopes = np.repeat(np.arange(12), 40)
    base = (rng.random(480) < 0.5) * 1.0
    ours = np.where(rng.random(480) < 0.02, 1 - base, base)
    same = compare_paired(np.stack([base, ours], axis=1), np.array([0, 0]), scopes=scopes)
    (row,) = judged(same)
    assert (row["unit"], row["units"], row["verdict"]) == ("scope", 12, "equivalent")
    assert 0 < row["detectable"] < 0.05
    # Six scopes: p is at least 1/32, which no correction for two tests passes.
    few = [
        compare_paired(
            np.stack([base, 0 * base], axis=1)[:240], np.array([0, 0]), scopes=scopes[:240]
        )
    ] * 2
    rows = judged(*few)
    assert {row["p"] for row in rows} == {1 / 32}
    assert {row["detectable"] for row in rows} == {None}
    assert {row["verdict"] for row in rows} == {"inconclusive"}
    assert "6 scopes: no p below .031" in str(verdicts(few))
    assert 'unit="question"' in str(verdicts(few))


def test_margins_of_a_table_without_means_are_points_and_claim_nothing():
    row = {"system": "b", "n": 4000, "difference": 0.0, "p": 1.0, "win": 40, "loss": 40}
    (done,) = judged(pl.DataFrame([row]))
    assert (done["margin"], done["margin_of_base"], done["verdict"]) == (0.05, None, "inconclusive")
