"""Simulated facts with exact truth: what supersedes what, and what holds when."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.knowledge._vocabulary import PEOPLE, VOCABULARIES, Relation
from memlab.records import Fact, schema

START = datetime(2023, 1, 1, 8, tzinfo=UTC)
_DAYS = 900
_CORRECTIONS = ["Sorry, I meant {}.", "Correction: it is {}.", "I got that wrong, it is {}."]
_TRUTH = dict.fromkeys(("fact_id", "scope", "slot", "value", "state", "role", "fixes", "trap"), pl.String) | {
    "one": pl.Boolean
}


def simulate(n: int = 10_000, *, seed: int = 0, vocabulary: str = "development") -> tuple[pl.DataFrame, pl.DataFrame]:
    """Write ``n`` statements about people, and the truth behind each.

    Each person of a scope has relations with one value at a time, whose values change at known times, and relations
    with many values. Values are repeated in other words, said late (recorded up to a year after they were said), said
    wrongly and corrected within three days, ended, and replaced by name. Traps: people who share a part of the name
    or the name of a city, values that are near but different, numbers, dates and keys that differ in one character.

    :param n: number of statements.
    :param vocabulary: ``development`` (thresholds were chosen on it) or ``held_out``.
    :returns: rows of :class:`memlab.records.Fact`, and for each its ``slot`` (person and relation), ``value``,
        ``state`` (one period of a value), ``role`` (``assert``, ``end``, ``wrong``, ``fix``), what it ``fixes``,
        ``trap`` and ``one``.
    :raises DataError: for an unknown vocabulary or no statements.

    >>> from memlab.knowledge import simulated
    >>> facts, truth = simulated.simulate(200, seed=1)
    >>> facts.height, truth["role"].unique().sort().to_list()
    (200, ['assert', 'end', 'fix', 'wrong'])
    """
    if vocabulary not in VOCABULARIES:
        raise DataError(f"vocabulary {vocabulary!r} is not known; choose from {', '.join(VOCABULARIES)}")
    if n < 1:
        raise DataError(f"n is {n}; write at least one statement")
    draw, facts, truth = random.Random(seed), list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    people = PEOPLE[vocabulary]
    for scope in itertools.count():
        for person, relation in itertools.product(people, VOCABULARIES[vocabulary]):
            slot = _Slot(f"u{scope}", person, people[0], relation, draw, facts, truth)
            slot.one_value() if relation.one else slot.many_values()
        if len(facts) >= n:
            break
    written = pl.DataFrame(facts[:n], schema=schema(Fact), orient="row")
    return written, pl.DataFrame(truth[:n], schema=_TRUTH, orient="row")


@dataclass(frozen=True)
class _Slot:
    """A relation of a person, and what writes about it."""

    scope: str
    person: str
    speaker: str
    relation: Relation
    draw: random.Random
    facts: list[tuple[Any, ...]]
    truth: list[tuple[Any, ...]]

    def one_value(self) -> None:
        draw = self.draw
        day = draw.uniform(0, 200)
        value, period, before = self._value(None), 0, None
        while day < _DAYS:
            length = max(15.0, draw.expovariate(1 / 220))
            state = f"{period}"
            self._say(day, value, state, before=before)
            for _ in range(_poisson(draw, 1.3)):
                self._say(day + draw.uniform(0.05, 0.9) * length, value, state)
            if draw.random() < 0.06:
                self._slip(day + 0.93 * length, value, state)
            ended = draw.random() < 0.1 and isinstance(self.relation.values, list)
            if ended:
                self._say(day + length, value, state, role="end")
            before = None if ended else value
            day += length + (draw.uniform(10, 40) if ended else 1)
            value, period = self._value(value), period + 1

    def many_values(self) -> None:
        draw = self.draw
        seen: list[str] = []
        for period in range(draw.randint(2, 5)):
            value = self._value(None)
            if value in seen:
                continue
            seen.append(value)
            day = draw.uniform(0, _DAYS - 200)
            last = day + draw.uniform(100, _DAYS - day)
            self._say(day, value, f"{period}")
            for _ in range(_poisson(draw, 1.5)):
                self._say(draw.uniform(day + 1, last - 1), value, f"{period}")
            if draw.random() < 0.05:
                self._slip(draw.uniform(day, last - 5), value, f"{period}")
            if draw.random() < 0.2:
                self._say(last, value, f"{period}", role="end")

    def _slip(self, day: float, value: str, state: str) -> None:
        """Say it wrongly, and put it right within three days."""
        wrong = self._value(value)
        self._say(day, wrong, f"{state}-wrong-{len(self.facts)}", role="wrong")
        named = self.draw.random() < 0.5
        self._say(day + self.draw.uniform(0.02, 3), value, state, role="fix", before=wrong if named else None)

    def _say(self, day: float, value: str, state: str, *, role: str = "assert", before: str | None = None) -> None:
        """Write a statement; a correction and a replacement may name the value ``before``."""
        draw = self.draw
        wording = draw.choice(self.relation.wordings)
        obj, text, predicate = self._wording(value), None, wording
        if role == "fix" and before is None:
            text = draw.choice(_CORRECTIONS).format(obj)
        elif role == "fix":
            obj = f"not {self._wording(before or '')}, but {obj}"
        elif role == "end":
            predicate = draw.choice(_endings(wording))
            obj = obj + " any more" if " not " in f" {predicate} " else obj
        elif before is not None and draw.random() < 0.2:
            obj = f"{obj} instead of {self._wording(before)}"
        elif draw.random() < (0.3 if before is not None else 0.05):
            predicate = f"now {wording}" if not wording.endswith(" is") else f"{wording} now"
        when = START + timedelta(days=day)
        late = timedelta(days=draw.uniform(30, 365)) if draw.random() < 0.08 else timedelta(0)
        number, name = len(self.facts), f"{self.scope}/{self.person}/{self.relation.name}"
        self.facts.append(
            (f"f{number}", self.scope, self._subject(), predicate, obj, "stated", [f"{self.scope}/s{int(day)}/1"], when,
             when + late, self.speaker, text, None)
        )  # fmt: skip
        fixes = f"f{number - 1}" if role == "fix" else None
        self.truth.append(
            (f"f{number}", self.scope, name, value, f"{name}/{state}", role, fixes, self.relation.trap,
             self.relation.one)
        )  # fmt: skip

    def _subject(self) -> str:
        if self.person == self.speaker:
            return self.draw.choice(["I", "the user", self.person, self.person.lower()])
        if self.person.startswith("my "):
            kin = self.person[3:]
            return self.draw.choice([self.person, f"{self.speaker}'s {kin}", f"the user's {kin}"])
        return self.person

    def _value(self, not_this: str | None) -> str:
        kind = self.relation.values
        while True:
            value = self.draw.choice(kind)[0] if isinstance(kind, list) else _number(kind, not_this, self.draw)
            if value != not_this:
                return value

    def _wording(self, value: str) -> str:
        kind, draw = self.relation.values, self.draw
        if isinstance(kind, list):
            return draw.choice(next(wordings for wordings in kind if wordings[0] == value))
        if kind == "amount":
            return draw.choice([f"${int(value):,}", f"{value} dollars", f"${value}.00", f"{int(value):,} USD"])
        if kind == "phone":
            return draw.choice([value, value.replace("-", " ")])
        if kind == "date":
            date = datetime.fromisoformat(value)
            return draw.choice([value, f"{date.day} {date:%B %Y}", f"{date:%B} {date.day}, {date.year}"])
        return value


def _endings(wording: str) -> list[str]:
    first, _, rest = wording.partition(" ")
    if first == "is":
        return [f"is no longer {rest}", f"used to be {rest}", f"is not {rest}"]
    if wording.endswith(" is") or first in ("has", "can", "cannot", "booked"):
        return [f"no longer {wording}"]
    base = "study" + first[7:] if first.startswith("studies") else first.removesuffix("s")
    return [f"no longer {wording}", f"used to {base} {rest}", f"doesn't {base} {rest}"]


def _number(kind: str, near: str | None, draw: random.Random) -> str:
    """Draw a value; one that follows another differs from it in a character."""
    if near is None:
        if kind == "phone":
            return f"{draw.randint(200, 999)}-{draw.randint(0, 9999):04d}"
        if kind == "key":
            return "sk-" + "".join(draw.choice("abcdefghkmnpqrstuvwxyzABCDEF23456789") for _ in range(10)) + "7"
        if kind == "amount":
            return str(draw.randint(800, 9900))
        if kind == "seat":
            return f"{draw.randint(1, 60)}{draw.choice('ABCDEF')}"
        return f"2025-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}"
    at = draw.randrange(3, len(near)) if kind == "key" else len(near) - (2 if kind == "seat" else 1)
    pool = "0123456789" if near[at].isdigit() and kind != "date" else "12345678" if kind == "date" else "ghkmnpqrstuvw"
    return near[:at] + draw.choice(pool) + near[at + 1 :]


def _poisson(draw: random.Random, mean: float) -> int:
    count, left = 0, draw.expovariate(1)
    while left < mean:
        count, left = count + 1, left + draw.expovariate(1)
    return count


def true_pairs(facts: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """List what supersedes what: ``old`` and ``new`` states, with the slot's ``trap`` and the ``kind`` of closing."""
    told = truth.join(facts.select("fact_id", "asserted_at"), on="fact_id")
    fixes = told.filter(pl.col("role") == "fix").select(new="state", fact_id="fixes")
    fixed = told.join(fixes, on="fact_id").select("trap", "new", old="state", kind=pl.lit("correction"))
    ends = told.filter(pl.col("role") == "end")
    ended = ends.select("trap", new=pl.col("state") + "/end", old="state", kind=pl.lit("end"))
    periods = (
        told.filter("one", pl.col("role").is_in(["assert", "fix"]))
        .group_by("slot", "state", "trap").agg(start=pl.col("asserted_at").min())
        .sort("slot", "start")
        .with_columns(new=pl.col("state").shift(-1).over("slot"))
        .drop_nulls("new")
        .join(ends, on="state", how="anti")
        .select("trap", "new", old="state", kind=pl.lit("update"))
    )  # fmt: skip
    columns = ["old", "new", "kind", "trap"]
    return pl.concat([part.select(columns) for part in (fixed, ended, periods)])
