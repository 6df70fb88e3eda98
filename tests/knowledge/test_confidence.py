"""Confidence: base by source, reinforcement, retention by age."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.knowledge import confidence
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.decay import FAMILIES, Exponential

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def facts(*rows: tuple[str, int, float | None, bool]) -> pl.DataFrame:
    """Rows of source, repetitions, age in days and whether superseded."""
    frame = pl.DataFrame(rows, schema=["source", "n_reinforced", "age", "superseded"], orient="row")
    ages = [None if age is None else NOW - timedelta(days=age) for *_, age, _ in rows]
    return frame.drop("age").with_columns(last_access=pl.Series(ages, dtype=pl.Datetime("us", "UTC")))


def test_it_is_the_product_clipped() -> None:
    rows = {
        ("stated", 0, 0, False): 1.0, ("system", 0, 5, False): 0.9, ("observed", 2, 0, False): 0.84,
        ("inferred", 9, 0, False): 0.75, ("stated", 0, 365, False): 0.5, ("stated", 3, 365, False): 0.65,
        ("stated", 9, 0, False): 1.0, ("stated", 9, 0, True): 0.0,
    }  # fmt: skip
    assert score(facts(*rows), now=NOW)["confidence"].to_list() == pytest.approx(list(rows.values()))


@settings(max_examples=25, deadline=None)
@given(age=st.floats(0, 5000), more=st.floats(0, 5000), name=st.sampled_from(sorted(FAMILIES)), n=st.integers(0, 9))
def test_it_falls_with_age_and_rises_with_repetition(age: float, more: float, name: str, n: int) -> None:
    chosen = ConfidenceSettings(decay=FAMILIES[name]())
    table = facts(("stated", n, age, False), ("stated", n, age + more, False), ("stated", n + 1, age, False))
    young, old, repeated = score(table, now=NOW, settings=chosen)["confidence"]
    assert 0 <= old <= young <= repeated <= 1


def test_what_is_yet_to_come_and_what_has_no_time_does_not_decay() -> None:
    table = facts(("stated", 0, -40, False), ("stated", 0, None, False))
    scored = score(table, now=NOW, settings=ConfidenceSettings(decay=Exponential(1)))
    assert scored["confidence"].to_list() == [1.0, 1.0]
    assert scored["age_days"].to_list() == [0.0, None]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"reinforcement": 2}, "reinforcement"),
        ({"base": {"stated": 2}}, "base.stated"),
        ({"decay": {"family": "cliff"}}, "decay"),
        ({"decay": {"family": "exponential", "half_life_days": 0}}, "half_life_days"),
    ],
)
def test_wrong_settings_are_named(table: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ConfidenceSettings.from_table(table)


def test_bad_facts_are_named() -> None:
    table = facts(("stated", 0, 0, False))
    with pytest.raises(DataError, match="superseded"):
        score(table.drop("superseded"), now=NOW)
    with pytest.raises(DataError, match="gossip"):
        score(table.with_columns(source=pl.lit("gossip")), now=NOW)
    with pytest.raises(DataError, match="time zone"):
        score(table.with_columns(pl.col("last_access").dt.replace_time_zone(None)), now=NOW)


def test_a_trajectory_is_the_score_read_day_by_day() -> None:
    curves = {name: kind() for name, kind in FAMILIES.items()}
    path = confidence.trajectory(curves, accesses_days=(0, 60), source="observed", days=120)
    jump = path.filter(family="exponential", day=60)
    assert jump["n_reinforced"].to_list() == [0, 1]
    assert jump["confidence"][0] < jump["confidence"][1] == pytest.approx(0.77)
    assert np.all(np.diff(path.filter(pl.col("day") > 60, family="weibull")["retention"]) <= 0)
