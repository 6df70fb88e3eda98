"""Simulated facts with known hazards, to fit decay curves on: values that change at a known rate, and what held when.

Each person has one value at a time of each predicate. Its changes are a Poisson process whose rate, the hazard, is
known. A person states the present value at times that do not depend on its changes, so that the chance that the value
stated last is still true is exponential in the age of that statement. Values are opaque keys.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import polars as pl

from memlab.knowledge.tuning import LABELS
from memlab.records import TIMESTAMP, Fact, frame

START = datetime(2023, 1, 1, 8, tzinfo=UTC)
HAZARDS: Mapping[str, float] = MappingProxyType({"lives in": 0.5, "works at": 1.0, "drives": 1.5, "phone number is": 4})
"""Predicate → changes a year."""
_DAYS, _SCOPE, _STATED = 900.0, 8, 60.0  # days in all, people of a scope, mean days between statements
_TRUTH = {"fact_id": pl.String(), "slot": pl.String(), "value": pl.String(), "from": TIMESTAMP, "until": TIMESTAMP}


def simulate(
    n: int = 10_000, *, seed: int = 0, hazards: Mapping[str, float] = HAZARDS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draw ``n`` statements about people over 900 days, and the truth behind each.

    The present value of each person and predicate is stated every 60 days on average.

    :param hazards: predicate → changes a year, above 0.
    :returns: rows of :class:`memlab.records.Fact`, and for each its ``slot`` (person and predicate), ``value``, and
        when it held: ``from`` and ``until`` (which may lie after the last day).

    >>> from memlab.knowledge import simulated
    >>> facts, truth = simulated.simulate(200, seed=1)
    >>> facts.height, truth.columns
    (200, ['fact_id', 'slot', 'value', 'from', 'until'])
    """
    draw, facts, truth, person = random.Random(seed), list[Fact](), list[tuple[object, ...]](), 0
    while len(facts) < n:
        scope, name = f"u{person // _SCOPE}", f"Person {person}"
        for predicate, hazard in hazards.items():
            day, begins, ends = draw.expovariate(1 / _STATED), 0.0, 0.0
            while day < _DAYS:
                while ends <= day:
                    begins, ends = ends, ends + draw.expovariate(hazard / 365)
                    value = f"K{draw.randrange(10**8):08d}"
                fact, (said, *held) = f"f{len(facts)}", (START + timedelta(days=each) for each in (day, begins, ends))
                turn = f"{scope}/s{int(day)}/{len(facts)}"
                facts.append(Fact(fact, scope, name, predicate, value, "stated", [turn], said, said, name))
                truth.append((fact, f"{name}/{predicate}", value, *held))
                day += draw.expovariate(1 / _STATED)
        person += 1
    return frame(Fact, facts[:n]), pl.DataFrame(truth[:n], schema=_TRUTH, orient="row")


def observations(facts: pl.DataFrame, truth: pl.DataFrame, *, dates: Sequence[datetime]) -> pl.DataFrame:
    """Look at the value stated last on some dates: the age of each of its statements, and whether it is still true.

    A value that is looked at on several dates is one ``fact_id``.

    :returns: the columns :data:`memlab.knowledge.tuning.LABELS`.
    """
    stated = truth.join(facts.select("fact_id", "predicate", "asserted_at"), on="fact_id", maintain_order="left")
    parts = [pl.DataFrame(schema=LABELS)]
    for date in dates:
        ages = stated.with_columns(age=(pl.lit(date) - pl.col("asserted_at")).dt.total_microseconds() / 86_400_000_000)
        ages = ages.filter(pl.col("age") >= 0).filter(pl.col("from") == pl.col("from").max().over("slot"))
        seen = ages.group_by("slot", "value", "predicate", "until", maintain_order=True).agg(
            age_days=pl.col("age").min(), accesses_days=pl.col("age").sort()
        )
        fact = pl.format("{}/{}", "slot", "value")
        parts.append(seen.with_columns(fact_id=fact, still_true=pl.col("until") > date).select(list(LABELS)))
    return pl.concat(parts)
