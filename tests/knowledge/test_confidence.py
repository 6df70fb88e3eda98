"""Confidence when read: the formula, its monotonicity, and times that are missing or yet to come."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.knowledge import confidence
from memlab.knowledge.confidence import ConfidenceSettings
from memlab.knowledge.decay import FAMILIES, BaseLevel, Exponential, PlateauLinear, Weibull

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
SOURCES = {"stated": 1.0, "system": 0.9, "observed": 0.7, "inferred": 0.5}
CURVES = st.sampled_from([make() for make in FAMILIES.values()])
FACTS = st.lists(
    st.tuples(st.sampled_from(list(SOURCES)), st.integers(0, 20), st.floats(0, 3000), st.booleans()),
    min_size=1, max_size=12,
)  # fmt: skip


def ago(days: float) -> dt.datetime:
    return NOW - dt.timedelta(days=days)


def facts(rows: list[tuple[str, int, float, bool]], **more: Any) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "source": [r[0] for r in rows],
            "n_reinforced": [r[1] for r in rows],
            "last_access": [ago(r[2]) for r in rows],
            "superseded": [r[3] for r in rows],
            **more,
        },
        schema_overrides={"last_access": pl.Datetime("us", "UTC")},
    )


def read(rows: list[tuple[str, int, float, bool]], chosen: ConfidenceSettings | None = None) -> list[float]:
    return confidence.score(facts(rows), now=NOW, settings=chosen)["confidence"].to_list()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (("stated", 0, 0, False), 1.0),
        (("system", 0, 30, False), 0.9),
        (("observed", 0, 197.5, False), 0.7 * 0.75),
        (("inferred", 3, 365, False), 0.5 * 1.3 * 0.5),
        (("inferred", 5, 0, False), 0.75),
        (("inferred", 50, 0, False), 0.75),
        (("stated", 5, 0, False), 1.0),
        (("stated", 5, 4000, False), 0.75),
        (("stated", 5, 0, True), 0.0),
    ],
)
def test_it_is_the_product_clipped(row: tuple[str, int, float, bool], expected: float) -> None:
    assert read([row]) == [pytest.approx(expected)]


@settings(max_examples=30, deadline=None)
@given(rows=FACTS, curve=CURVES)
def test_it_lies_within_bounds_and_a_superseded_fact_is_nought(rows: list[Any], curve: Any) -> None:
    for row, value in zip(rows, read(rows, ConfidenceSettings(decay=curve)), strict=True):
        assert 0 <= value <= 1
        assert value == 0 or not row[3]


@settings(max_examples=30, deadline=None)
@given(rows=FACTS, curve=CURVES, older=st.floats(0, 500), more=st.integers(0, 5))
def test_it_falls_with_age_and_rises_with_repetition(rows: list[Any], curve: Any, older: float, more: int) -> None:
    chosen = ConfidenceSettings(decay=curve)
    now = read(rows, chosen)
    aged = read([(s, n, a + older, x) for s, n, a, x in rows], chosen)
    repeated = read([(s, n + more, a, x) for s, n, a, x in rows], chosen)
    for plain, old, often in zip(now, aged, repeated, strict=True):
        assert old <= plain + 1e-12
        assert often >= plain - 1e-12


@settings(max_examples=15, deadline=None)
@given(rows=FACTS, curve=CURVES, seed=st.integers(0, 99))
def test_it_does_not_depend_on_the_other_rows(rows: list[Any], curve: Any, seed: int) -> None:
    chosen = ConfidenceSettings(decay=curve, decay_by_predicate={"b": Weibull(50, 2)})
    frame = facts(rows, predicate=[["a", "b", None][i % 3] for i in range(len(rows))], id=list(range(len(rows))))
    frame = frame.with_columns(accesses=pl.concat_list("last_access", pl.col("last_access") - pl.duration(days=9)))
    whole = confidence.score(frame, now=NOW, settings=chosen)
    mixed = confidence.score(frame.sample(fraction=1, shuffle=True, seed=seed), now=NOW, settings=chosen)
    assert mixed.sort("id")["confidence"].to_list() == pytest.approx(whole["confidence"].to_list(), abs=1e-12)
    alone = confidence.score(frame[-1:], now=NOW, settings=chosen)["confidence"][0]
    assert alone == pytest.approx(whole["confidence"][-1], abs=1e-12)


def test_factors_are_there_to_be_looked_at_and_the_facts_stay() -> None:
    frame = facts([("observed", 2, 365, False)], note=["kept"])
    row = confidence.score(frame, now=NOW).row(0, named=True)
    assert row["note"] == "kept"
    assert (row["age_days"], row["base"], row["reinforcement"], row["retention"]) == (365, 0.7, 1.2, 0.5)
    assert confidence.score(frame.clear(), now=NOW).height == 0


def test_access_after_now_is_an_age_of_nought_and_no_time_is_a_setting() -> None:
    frame = facts([("stated", 0, -50, False), ("stated", 0, 0, False)])
    frame = frame.with_columns(last_access=pl.when(pl.int_range(pl.len()) == 0).then("last_access"))
    assert confidence.score(frame, now=NOW)["confidence"].to_list() == [1, 1]
    scored = confidence.score(frame, now=NOW, settings=ConfidenceSettings(undated=0.6))
    assert scored["confidence"].to_list() == [1, 0.6]
    assert scored["age_days"].to_list() == [0, None]
    never = frame.with_columns(last_access=pl.lit(None))
    assert confidence.score(never, now=NOW)["confidence"].to_list() == [1, 1]


def test_base_level_takes_all_accesses_up_to_now() -> None:
    chosen = ConfidenceSettings(decay=BaseLevel(100))
    lists = [[ago(100)], [ago(100), ago(100)], [ago(100), ago(-30)], None, []]
    frame = facts([("stated", 0, 100, False)] * 5, accesses=lists)
    once, twice, later, none, empty = confidence.score(frame, now=NOW, settings=chosen)["confidence"].to_list()
    assert once == later == none == empty == pytest.approx(0.5)
    assert twice == pytest.approx(0.8)


def test_latest_access_stands_in_for_a_missing_last_access() -> None:
    frame = facts([("stated", 0, 0, False)], accesses=[[ago(400), ago(90), ago(-3)]])
    frame = frame.with_columns(last_access=pl.lit(None, pl.Datetime("us", "UTC")))
    assert confidence.score(frame, now=NOW)["age_days"].to_list() == [90]
    early = frame.with_columns(last_access=pl.lit(ago(-3)).cast(pl.Datetime("us", "UTC")))
    assert confidence.score(early, now=NOW)["age_days"].to_list() == [90]


def test_predicate_has_its_own_curve() -> None:
    chosen = ConfidenceSettings(decay_by_predicate={"mood": Exponential(10)})
    frame = facts([("stated", 0, 10, False)] * 3, predicate=["mood", "born in", None])
    assert confidence.score(frame, now=NOW, settings=chosen)["confidence"].to_list() == [0.5, 1, 1]
    with pytest.raises(DataError, match=r"needs the column\(s\) predicate"):
        confidence.score(frame.drop("predicate"), now=NOW, settings=chosen)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (pl.lit("guessed").alias("source"), "source is 'guessed' in 2 facts; expected one of stated, system"),
        (pl.lit(None, pl.String).alias("source"), "source is None in 2 facts"),
        (pl.lit(-1).alias("n_reinforced"), "n_reinforced is -1 in 2 facts"),
        (pl.lit(None, pl.Int64).alias("n_reinforced"), "n_reinforced is None in 2 facts"),
        (pl.lit(None, pl.Boolean).alias("superseded"), "superseded is None in 2 facts; expected true or false"),
        (pl.lit("2026").alias("last_access"), "last_access is of type String; expected times"),
        (pl.col("last_access").dt.replace_time_zone(None), "last_access has no time zone and now is 2026-06-01"),
    ],
)
def test_bad_facts_are_named(change: pl.Expr, message: str) -> None:
    with pytest.raises(DataError, match=message):
        confidence.score(facts([("stated", 0, 1, False)] * 2).with_columns(change), now=NOW)


def test_settings_are_read_from_a_table() -> None:
    chosen = ConfidenceSettings.of(
        {
            "base": {"observed": 0.8},
            "reinforcement_step": 0,
            "decay_by_predicate": {"x": {"family": "weibull", "shape": 2}},
        }
    )
    assert (chosen.base.observed, chosen.base.stated) == (0.8, 1.0)
    assert chosen.decay_by_predicate == {"x": Weibull(shape=2)}
    assert ConfidenceSettings.of(chosen.model_dump()) == chosen
    assert ConfidenceSettings() == ConfidenceSettings.of({})
    assert ConfidenceSettings().decay == PlateauLinear()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"bases": {}}, r"setting 'confidence.bases': .* has base, reinforcement_step"),
        ({"base": {"stated": 2}}, "setting 'confidence.base.stated'"),
        ({"decay": {"family": "linear"}}, "setting 'confidence.decay'.*'exponential'"),
        ({"decay": {"family": "exponential", "halflife": 3}}, "setting 'confidence.decay.exponential.halflife'"),
        ({"decay": {"family": "exponential", "half_life_days": -3}}, "half_life_days of exponential is -3"),
        ({"reinforcement_limit": 0.5}, "setting 'confidence.reinforcement_limit'"),
    ],
)
def test_wrong_settings_are_named(table: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ConfidenceSettings.of(table)


def test_trajectory_is_the_score_read_day_by_day() -> None:
    curves = {"base_level": BaseLevel(80), "plateau_linear": PlateauLinear()}
    heard = [0.0, 40.0, 41.5]
    path = confidence.trajectory(curves, accesses_days=heard, source="observed", days=120)
    for family, day, n, _, value in path.filter(
        pl.col("day").is_in([0.0, 7.0, 40.0, 41.0, 41.5, 42.0, 120.0])
    ).iter_rows():
        now = NOW + dt.timedelta(days=day)
        seen = [NOW + dt.timedelta(days=d) for d in heard[: n + 1]]
        frame = facts([("observed", n, 0, False)], accesses=[seen]).with_columns(last_access=pl.lit(seen[-1]))
        expected = confidence.score(frame, now=now, settings=ConfidenceSettings(decay=curves[family]))
        assert value == pytest.approx(expected["confidence"][0])
    jump = path.filter(family="base_level", day=40.0)
    assert jump["n_reinforced"].to_list() == [0, 1]
    assert jump["confidence"][0] < jump["confidence"][1]
    with pytest.raises(DataError, match="found 0 and 'stated'"):
        confidence.trajectory(curves, accesses_days=[])
