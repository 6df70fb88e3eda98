"""Confidence by source, reinforcement and age, whose retention is a survival function; its curves fitted to labels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binom

from memlab import config
from memlab.errors import DataError
from memlab.knowledge import decay_fitting
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.decay_curves import (
    FAMILIES,
    AnyCurve,
    BaseLevel,
    Exponential,
    PlateauLinear,
    PowerLaw,
    Weibull,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def facts(*rows: tuple[str, int, float | None, bool]) -> pl.DataFrame:
    """Rows of source, repetitions, age in days and whether superseded."""
    frame = pl.DataFrame(rows, schema=["source", "n_reinforced", "age", "superseded"], orient="row")
    ages = [None if age is None else NOW - timedelta(days=age) for *_, age, _ in rows]
    return frame.drop("age").with_columns(
        last_access=pl.Series(ages, dtype=pl.Datetime("us", "UTC"))
    )


def test_families_agree_with_scipys_survival_functions() -> None:
    ages = np.array([1.0, 50.0, 400.0])
    lomax, scale = 100 / (2 ** (1 / 1.3) - 1), 100 / np.log(2) ** (1 / 1.7)
    for curve, law in (
        (Exponential(100), stats.expon(scale=100 / np.log(2))),
        (Weibull(100, 1.7), stats.weibull_min(1.7, scale=scale)),
        (PowerLaw(100, 1.3), stats.lomax(1.3, scale=lomax)), (BaseLevel(100, 1.3), stats.fisk(1.3, scale=100)),
    ):  # fmt: skip
        assert curve.retention(ages) == pytest.approx(law.sf(ages))
    assert all(kind().retention(np.zeros(1)) == 1 for kind in FAMILIES.values())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "curve",
    [
        *(PowerLaw(365, exponent=exponent) for exponent in (5e-324, 1e-300, 0.0005, 1e300)),
        *(kind(half_life_days=5e-324) for kind in (Exponential, PowerLaw, Weibull, BaseLevel)),
        *(kind(half_life_days=1e308) for kind in (Exponential, PowerLaw, Weibull, BaseLevel)),
        *(Weibull(365, shape) for shape in (5e-324, 1e300)),
        *(BaseLevel(365, slope) for slope in (5e-324, 1e300)),
    ],
    ids=str,
)
def test_an_extreme_curve_falls_from_one_to_nothing(curve: AnyCurve) -> None:
    left = curve.retention(np.array([0.0, 1e-9, 1.0, 365.0, 1e6]))
    assert left[0] == pytest.approx(1.0)
    assert np.all(np.diff(left) <= 0)
    assert left[-1] >= 0


def test_a_tiny_exponent_is_the_limit_of_the_power_law() -> None:
    ages = np.array([1.0, 365.0, 36_500.0])
    # Beside a scale of 10^-602 days, 1 is nothing: half is left, times a power of the age.
    expected = 0.5 * (ages / 365) ** -0.0005
    assert PowerLaw(365, exponent=0.0005).retention(ages) == pytest.approx(expected)


def test_it_is_the_product_clipped() -> None:
    rows = {
        ("system", 0, 5, False): 0.9, ("observed", 2, 0, False): 0.84, ("inferred", 9, 0, False): 0.75,
        ("stated", 3, 365, False): 0.65, ("stated", 9, 0, False): 1.0, ("stated", 9, 0, True): 0.0,
        ("stated", 0, -40, False): 1.0, ("stated", 0, None, False): 0.5, ("reported", 1, 5, False): 0.44,
    }  # fmt: skip
    scored = score(facts(*rows), now=NOW)
    assert scored["confidence"].to_list() == pytest.approx(list(rows.values()))
    assert scored["age_days"].to_list()[-3:] == [0.0, None, 5.0]


@settings(max_examples=25)
@given(
    age=st.floats(0, 40_000),
    more=st.floats(0, 5000),
    name=st.sampled_from(sorted(FAMILIES)),
    n=st.integers(0, 9),
)
def test_it_falls_with_age_and_rises_with_repetition(
    age: float, more: float, name: str, n: int
) -> None:
    table = facts(
        ("stated", n, age, False), ("stated", n, age + more, False), ("stated", n + 1, age, False)
    )
    young, old, repeated = score(
        table, now=NOW, settings=ConfidenceSettings(decay=FAMILIES[name]())
    )["confidence"]
    assert 0 <= old <= young <= repeated <= 1


@pytest.mark.parametrize(
    ("word", "wrong"),
    [
        ("reinforcement", {"reinforcement": 2}),
        ("base.stated", {"base": {"stated": 2}}),
        ("half_life", {"decay": {"family": "exponential", "half_life_days": 0}}),
        (
            "plateau_days",
            {"decay": {"family": "plateau_linear", "plateau_days": 40, "end_days": 30}},
        ),
        ("superseded", facts(("stated", 0, 0, False)).drop("superseded")),
        ("gossip", facts(("gossip", 0, 0, False))),
        (
            "time zone",
            facts(("stated", 0, 0, False)).with_columns(
                pl.col("last_access").dt.replace_time_zone(None)
            ),
        ),
    ],
)
def test_what_is_wrong_is_named(word: str, wrong: Any) -> None:
    with pytest.raises(DataError, match=word):
        score(wrong, now=NOW) if isinstance(wrong, pl.DataFrame) else ConfidenceSettings.from_table(
            wrong
        )


PLATEAU = PlateauLinear(30, 365, 0.5)
OTHERS = (Exponential(200), PowerLaw(150, 1.0), BaseLevel(150, 1.5))


def simulated(curve: AnyCurve, *, n: int, seed: int = 0) -> pl.DataFrame:
    """Draw labels whose chance of "still true" is the curve."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 730, n)
    frame = pl.DataFrame(
        {"age_days": age, "still_true": rng.uniform(size=n) < curve.retention(age)}
    )
    return frame.with_row_index("fact_id")


@pytest.mark.parametrize(
    ("truth", "sets"),
    [
        pytest.param(Weibull(200, 1.5), 40, marks=pytest.mark.slow),
        *(pytest.param(truth, 100, marks=pytest.mark.nightly) for truth in OTHERS),
        pytest.param(PLATEAU, 400, marks=pytest.mark.nightly),  # of docs/evaluation/knowledge.md
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(truth: AnyCurve, sets: int) -> None:
    """As a fair 90 % would: within what a binomial of this many sets leaves to chance."""
    # Below 2,000 labels too few facts die near the end of the plateau to bound it from below.
    n = 2000 if truth == PLATEAU else 1000
    hits = dict.fromkeys(truth.parameters, 0)
    for seed in range(sets):
        fitted = decay_fitting.fit(simulated(truth, n=n, seed=seed), truth.family)
        for name, _, low, high, _ in fitted.intervals.iter_rows():
            hits[name] += low <= getattr(truth, name) <= high
    low, high = binom.ppf([0.0025, 0.9975], sets, 0.9)
    assert all(low <= count <= high for count in hits.values()), hits


def test_exponential_agrees_with_a_grid() -> None:
    frame = simulated(Exponential(120), n=400, seed=3)
    age, true = frame["age_days"].to_numpy(), frame["still_true"].to_numpy()
    grid = np.exp(np.linspace(np.log(60), np.log(240), 2_001))
    chance = np.clip(np.exp2(-age / grid[:, None]), 1e-6, 1 - 1e-6)
    loss = -np.log(np.where(true, chance, 1 - chance)).sum(axis=1)
    inside = grid[loss <= loss.min() + 2.705543 / 2]
    (row,) = decay_fitting.fit(frame, "exponential").intervals.rows()
    assert row[1:-1] == pytest.approx((grid[loss.argmin()], inside[0], inside[-1]), rel=3e-3)
    assert row[-1] == 0.9


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"age_days": [1.0] * 30}, "still_true"),
        ({"age_days": [1.0] * 30, "still_true": [True] * 30}, "30 of them still true"),
        ({"age_days": [1.0, None], "still_true": [True, False]}, "row 1"),
        ({"age_days": [1.0], "still_true": [1]}, "Int64"),
    ],
)
def test_bad_labels_are_named(columns: dict[str, list[Any]], word: str) -> None:
    with pytest.raises(DataError, match=word):
        decay_fitting.fit(pl.DataFrame(columns), "exponential")
    few = pl.DataFrame({"fact_id": range(24), "age_days": 1.0, "still_true": [True, False] * 12})
    with pytest.raises(DataError, match="give at least 25"):
        decay_fitting.recommend(few)


def test_a_group_is_never_in_both_parts() -> None:
    # A label that is a function of the group: whoever had seen the group would know it.
    group = pl.int_range(pl.len()) // 30
    labels = simulated(Exponential(100), n=300).with_columns(scope=group, still_true=group % 2 == 0)
    assert (
        decay_fitting.compare_curves(labels, families=["exponential"], group="scope")[
            "log_loss"
        ].min()
        > 0.6
    )


def test_the_recommendation_is_simple_and_can_be_pasted(tmp_path: Path) -> None:
    labels = simulated(Exponential(25), n=300)
    comparison = decay_fitting.compare_curves(labels, families=["exponential", "weibull"])
    assert comparison.sort("log_loss")["family"][-1] in (
        decay_fitting.CONSTANT,
        decay_fitting.DEFAULT,
    )
    advice = decay_fitting.recommend(labels, comparison=comparison)
    assert advice.decay["family"] == "exponential"
    (tmp_path / "memlab.toml").write_text(
        f"seed = 3\n[confidence]\nreinforcement_limit = 2.0\n{advice.settings_text()}\n"
    )
    read = config.settings(directory=tmp_path)[0]
    assert (read.seed, read.confidence) == (
        3,
        {"reinforcement_limit": 2.0, "decay": advice.decay},
    )
