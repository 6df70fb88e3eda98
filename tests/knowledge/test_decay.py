"""Decay curves: bounds, half-lives, and the distributions that they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.errors import DataError
from memlab.knowledge.decay import BOUNDS, FAMILIES, AnyCurve, BaseLevel, Exponential, PlateauLinear, PowerLaw, Weibull

CURVES = [kind() for kind in FAMILIES.values()]


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.family)
@given(ages=st.lists(st.floats(0, 40_000), min_size=1, max_size=20))
def test_it_falls_from_one_within_bounds(curve: AnyCurve, ages: list[float]) -> None:
    left = curve.retention(np.sort(ages))
    assert ((left >= 0) & (left <= 1)).all()
    assert (np.diff(left) <= 1e-12).all()
    assert curve.retention(np.array([0.0])).tolist() == [1.0]


def test_families_agree_with_scipys_survival_functions() -> None:
    ages = np.array([1.0, 50.0, 400.0])
    assert Exponential(100).retention(ages) == pytest.approx(stats.expon(scale=100 / np.log(2)).sf(ages))
    scale = 100 / np.log(2) ** (1 / 1.7)
    assert Weibull(100, 1.7).retention(ages) == pytest.approx(stats.weibull_min(1.7, scale=scale).sf(ages))
    lomax = stats.lomax(1.3, scale=100 / (2 ** (1 / 1.3) - 1))
    assert PowerLaw(100, 1.3).retention(ages) == pytest.approx(lomax.sf(ages))
    assert BaseLevel(100, 1.3).retention(ages) == pytest.approx(stats.fisk(1.3, scale=100).sf(ages))


def test_bad_parameters_are_named_and_each_has_bounds() -> None:
    for name, kind, values in (
        ("half_life_days", Exponential, (0,)), ("shape", Weibull, (10, -1)), ("plateau_days", PlateauLinear, (40, 30)),
        ("floor", PlateauLinear, (1, 2, 3)), ("half_life_days", PowerLaw, (float("inf"),)),
    ):  # fmt: skip
        with pytest.raises(DataError, match=name):
            kind(*values)
    assert all(set(curve.parameters) <= set(BOUNDS) for curve in CURVES)
