"""Simulated facts with known hazards, to fit decay curves on: values that change at a known rate, and what held when.

Each person has one value at a time of each predicate. Its changes are a Poisson process whose rate, the hazard, is
known. A person states the present value at times that do not depend on its changes, so that the chance that the value
stated last is still true is exponential in the age of that statement. Values are opaque keys.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import polars as pl

from memlab.errors import DataError
from memlab.records import TIMESTAMP, Fact, frame

START = datetime(2023, 1, 1, 8, tzinfo=UTC)
HAZARDS: Mapping[str, float] = MappingProxyType({"lives in": 0.5, "works at": 1.0, "drives": 1.5, "phone number is": 4})
"""Predicate → changes a year."""
_DAYS = 900.0
_SCOPE = 8  # people of a scope
_STATED = 60.0  # mean days between statements
_DAY_US = 86_400_000_000
_TRUTH = {"fact_id": pl.String(), "slot": pl.String(), "value": pl.String(), "from": TIMESTAMP, "until": TIMESTAMP}


def simulate(
    n: int = 10_000, *, seed: int = 0, hazards: Mapping[str, float] = HAZARDS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draw ``n`` statements about people over 900 days, and the truth behind each.

    The present value of each person and predicate is stated every 60 days on average.

    :param hazards: predicate → changes a year.
    :returns: rows of :class:`memlab.records.Fact`, and for each its ``slot`` (person and predicate), ``value``, and
        when it held: ``from`` and ``until`` (which may lie after the last day).
    :raises DataError: for no statements, no predicate, or a hazard that is not above zero.

    >>> from memlab.knowledge import simulated
    >>> facts, truth = simulated.simulate(200, seed=1)
    >>> facts.height, truth.columns
    (200, ['fact_id', 'slot', 'value', 'from', 'until'])
    """
    if n < 1:
        raise DataError(f"n is {n}; draw at least one statement")
    if not hazards or min(hazards.values()) <= 0:
        raise DataError(f"hazards is {dict(hazards)}; give changes a year above 0 for at least one predicate")
    draw, facts, truth, person = random.Random(seed), list[Fact](), list[tuple[object, ...]](), 0
    while len(facts) < n:
        scope, name = f"u{person // _SCOPE}", f"Person {person}"
        for predicate, hazard in hazards.items():
            for day, value, begins, ends in _stated(draw, hazard):
                fact, times = f"f{len(facts)}", [START + timedelta(days=each) for each in (day, begins, ends)]
                turn = f"{scope}/s{int(day)}/{len(facts)}"
                facts.append(Fact(fact, scope, name, predicate, value, "stated", [turn], times[0], times[0], name))
                truth.append((fact, f"{name}/{predicate}", value, *times[1:]))
        person += 1
    return frame(Fact, facts[:n]), pl.DataFrame(truth[:n], schema=_TRUTH, orient="row")


def _stated(draw: random.Random, hazard: float) -> Iterator[tuple[float, str, float, float]]:
    """Draw the statements of one person and predicate: the day, the value, and the days on which it began and ends."""
    day, begins, ends = draw.expovariate(1 / _STATED), 0.0, 0.0
    while day < _DAYS:
        while ends <= day:
            begins, ends, value = ends, ends + draw.expovariate(hazard / 365), f"K{draw.randrange(10**8):08d}"
        yield day, value, begins, ends
        day += draw.expovariate(1 / _STATED)


def observations(facts: pl.DataFrame, truth: pl.DataFrame, *, dates: Sequence[datetime]) -> pl.DataFrame:
    """Look at the value stated last on some dates: the age of each of its statements, and whether it is still true.

    A value that is looked at on several dates is one ``fact_id``.

    :returns: the columns :data:`memlab.knowledge.tuning.LABELS`.

    >>> from memlab.knowledge import simulated
    >>> facts, truth = simulated.simulate(200, seed=1)
    >>> seen = simulated.observations(facts, truth, dates=[facts["asserted_at"].max()])
    >>> seen.columns, seen.height
    (['fact_id', 'predicate', 'age_days', 'accesses_days', 'still_true'], 14)
    """
    said = truth.join(facts.select("fact_id", "predicate", "asserted_at"), on="fact_id", maintain_order="left")
    on = pl.DataFrame({"date": dates}, schema={"date": TIMESTAMP})
    said = said.join(on, how="cross", maintain_order="right_left").filter(pl.col("asserted_at") <= pl.col("date"))
    last = said.filter(pl.col("from") == pl.col("from").max().over("date", "slot"))
    ages = (pl.col("date") - pl.col("asserted_at")).dt.total_microseconds() / _DAY_US
    seen = last.group_by("date", "slot", "value", "predicate", "until", maintain_order=True).agg(
        age_days=ages.min(), accesses_days=ages.sort()
    )
    fact, true = pl.format("{}/{}", "slot", "value"), pl.col("until") > pl.col("date")
    return seen.select(fact.alias("fact_id"), "predicate", "age_days", "accesses_days", still_true=true)
