"""Confidence: base by source, reinforcement, and retention by age, which is a survival function."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from memlab.errors import DataError
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.decay import FAMILIES, BaseLevel, Exponential, PowerLaw, Weibull

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def facts(*rows: tuple[str, int, float | None, bool]) -> pl.DataFrame:
    """Rows of source, repetitions, age in days and whether superseded."""
    frame = pl.DataFrame(rows, schema=["source", "n_reinforced", "age", "superseded"], orient="row")
    ages = [None if age is None else NOW - timedelta(days=age) for *_, age, _ in rows]
    return frame.drop("age").with_columns(last_access=pl.Series(ages, dtype=pl.Datetime("us", "UTC")))


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


def test_it_is_the_product_clipped() -> None:
    rows = {
        ("system", 0, 5, False): 0.9, ("observed", 2, 0, False): 0.84, ("inferred", 9, 0, False): 0.75,
        ("stated", 3, 365, False): 0.65, ("stated", 9, 0, False): 1.0, ("stated", 9, 0, True): 0.0,
        ("stated", 0, -40, False): 1.0, ("stated", 0, None, False): 1.0,
    }  # fmt: skip
    scored = score(facts(*rows), now=NOW)
    assert scored["confidence"].to_list() == pytest.approx(list(rows.values()))
    assert scored["age_days"].to_list()[-2:] == [0.0, None]


@settings(max_examples=25)
@given(age=st.floats(0, 40_000), more=st.floats(0, 5000), name=st.sampled_from(sorted(FAMILIES)), n=st.integers(0, 9))
def test_it_falls_with_age_and_rises_with_repetition(age: float, more: float, name: str, n: int) -> None:
    table = facts(("stated", n, age, False), ("stated", n, age + more, False), ("stated", n + 1, age, False))
    young, old, repeated = score(table, now=NOW, settings=ConfidenceSettings(decay=FAMILIES[name]()))["confidence"]
    assert 0 <= old <= young <= repeated <= 1


@pytest.mark.parametrize(
    ("word", "wrong"),
    [
        ("reinforcement", {"reinforcement": 2}),
        ("base.stated", {"base": {"stated": 2}}),
        ("half_life", {"decay": {"family": "exponential", "half_life_days": 0}}),
        ("plateau_days", {"decay": {"family": "plateau_linear", "plateau_days": 40, "end_days": 30}}),
        ("superseded", facts(("stated", 0, 0, False)).drop("superseded")),
        ("gossip", facts(("gossip", 0, 0, False))),
        ("time zone", facts(("stated", 0, 0, False)).with_columns(pl.col("last_access").dt.replace_time_zone(None))),
    ],
)
def test_what_is_wrong_is_named(word: str, wrong: Any) -> None:
    with pytest.raises(DataError, match=word):
        score(wrong, now=NOW) if isinstance(wrong, pl.DataFrame) else ConfidenceSettings.from_table(wrong)
