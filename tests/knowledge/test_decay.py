"""Decay families: what every curve keeps to, golden values, and what they refuse."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.knowledge.decay import (
    FAMILIES,
    Accesses,
    AnyCurve,
    BaseLevel,
    Exponential,
    PlateauLinear,
    PowerLaw,
    Weibull,
    family,
    parameters,
)

DAYS = st.floats(0.5, 5_000)
SHAPE = st.floats(0.1, 10)
CURVES = st.one_of(
    st.builds(lambda a, b, c: PlateauLinear(a, a + b, c), st.floats(0, 400), DAYS, st.floats(0, 1)),
    st.builds(Exponential, DAYS),
    st.builds(PowerLaw, DAYS, SHAPE),
    st.builds(Weibull, DAYS, SHAPE),
    st.builds(BaseLevel, DAYS, SHAPE, st.floats(0.05, 5)),
)
AGES = st.lists(st.floats(0, 1e5), min_size=1, max_size=20)


@settings(deadline=None, max_examples=50)
@given(curve=CURVES, ages=AGES)
def test_it_falls_from_one_within_bounds(curve: AnyCurve, ages: list[float]) -> None:
    left = curve.retention(np.sort([0.0, *ages, np.inf]))
    assert left[0] == 1
    assert ((left >= 0) & (left <= 1)).all()
    assert (np.diff(left) <= 1e-12).all()


@settings(deadline=None, max_examples=50)
@given(curve=CURVES, ages=AGES)
def test_an_age_does_not_depend_on_the_others(curve: AnyCurve, ages: list[float]) -> None:
    together = curve.retention(np.array(ages))
    alone = [curve.retention(np.array([age]))[0] for age in ages]
    # The last bit of a power differs with the length of the array.
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-300)


@settings(deadline=None, max_examples=50)
@given(days=DAYS, shape=SHAPE)
def test_half_is_left_at_the_half_life(days: float, shape: float) -> None:
    for curve in (Exponential(days), PowerLaw(days, shape), Weibull(days, shape), BaseLevel(days, shape, 0.5)):
        assert curve.retention(np.array([days]))[0] == pytest.approx(0.5)


def test_weibull_of_shape_one_and_power_of_large_exponent_are_exponential() -> None:
    age = np.linspace(0, 1000, 50)
    plain = Exponential(150).retention(age)
    np.testing.assert_allclose(Weibull(150, 1).retention(age), plain)
    np.testing.assert_allclose(PowerLaw(150, 1000).retention(age), plain, atol=2e-3)


def test_families_agree_with_scipys_survival_functions() -> None:
    from scipy import stats

    age = np.array([1.0, 40.0, 300.0])
    scale = 200 / np.log(2) ** (1 / 1.5)
    np.testing.assert_allclose(Weibull(200, 1.5).retention(age), stats.weibull_min.sf(age, 1.5, scale=scale))
    scale = 150 / (2 ** (1 / 0.8) - 1)
    np.testing.assert_allclose(PowerLaw(150, 0.8).retention(age), stats.lomax.sf(age, 0.8, scale=scale))
    np.testing.assert_allclose(BaseLevel(150, 1.2).retention(age), stats.fisk.sf(age, 1.2, scale=150))


def test_base_level_is_act_rs_activation_in_its_logistic() -> None:
    ages = [[10.0], [10.0, 80.0, 300.0], [400.0, 500.0]]
    curve = BaseLevel(half_life_days=120, slope=1.4, decay=0.5)
    threshold, noise = -0.5 * np.log(120), 0.5 / 1.4
    activation = np.array([np.log(sum(age**-0.5 for age in one)) for one in ages])
    expected = 1 / (1 + np.exp(-(activation - threshold) / noise))
    left = curve.retention(np.array([one[0] for one in ages]), Accesses.of(ages))
    np.testing.assert_allclose(left, expected)


@settings(deadline=None, max_examples=50)
@given(first=DAYS, other=DAYS, slope=SHAPE, decay=st.floats(0.05, 5))
def test_one_more_access_never_hurts(first: float, other: float, slope: float, decay: float) -> None:
    curve = BaseLevel(200, slope, decay)
    once, twice = curve.retention(np.array([first] * 2), Accesses.of([[first], [first, other]]))
    assert once <= twice <= 1


@pytest.mark.parametrize("curve", [make() for make in FAMILIES.values()], ids=lambda c: c.family)
def test_it_is_frozen_named_and_takes_no_facts(curve: AnyCurve) -> None:
    assert FAMILIES[curve.family](**parameters(curve)) == curve
    assert curve.retention(np.zeros(0)).shape == (0,)
    assert curve.retention(np.array([-5.0])).tolist() == [1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.family = "other"  # type: ignore[misc]
    with pytest.raises(DataError, match="age 1 of 2 is not a number"):
        curve.retention(np.array([1.0, np.nan]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exponential(0), "half_life_days of exponential is 0; give days above 0"),
        (lambda: Exponential(float("nan")), "half_life_days of exponential is nan"),
        (lambda: Weibull(10, shape=-1), "shape of weibull is -1; give a number from 0.01 to 100"),
        (lambda: PowerLaw(10, exponent=0), "exponent of power_law is 0"),
        (lambda: BaseLevel(10, decay=0), "decay of base_level is 0"),
        (lambda: PlateauLinear(floor=1.2), "floor of plateau_linear is 1.2; give a number from 0 to 1"),
        (lambda: PlateauLinear(plateau_days=400), "end_days is 365; it must come after"),
        (lambda: PlateauLinear(plateau_days=-1), "plateau_days of plateau_linear is -1; give a number of at least 0"),
        (lambda: family("linear"), "'linear' is no decay family; there are plateau_linear, exponential"),
    ],
)
def test_bad_parameters_are_named(make: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make()  # type: ignore[operator]
