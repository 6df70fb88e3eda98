"""Simulated facts with exact truth: what supersedes what, and what holds when."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.knowledge._vocabulary import PEOPLE, VOCABULARIES, Relation
from memlab.records import Fact, schema

START = datetime(2023, 1, 1, 8, tzinfo=UTC)
_DAYS = 900
_TRUTH = dict.fromkeys(("fact_id", "scope", "slot", "value", "state", "role", "fixes", "trap"), pl.String) | {
    "one": pl.Boolean
}


@dataclass
class _Writer:
    draw: random.Random
    vocabulary: str
    facts: list[tuple[Any, ...]] = field(default_factory=list)
    truth: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass(frozen=True)
class _Slot:
    scope: str
    person: str
    speaker: str
    relation: Relation


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
    out = _Writer(random.Random(seed), vocabulary)
    scope = 0
    while len(out.facts) < n:
        for slot in _slots(f"u{scope}", vocabulary):
            (_one if slot.relation.one else _many)(slot, out)
        scope += 1
    facts = pl.DataFrame(out.facts[:n], schema=schema(Fact), orient="row")
    return facts, pl.DataFrame(out.truth[:n], schema=_TRUTH, orient="row")


def _slots(scope: str, vocabulary: str) -> Iterator[_Slot]:
    people = PEOPLE[vocabulary]
    for person in people:
        for relation in VOCABULARIES[vocabulary]:
            yield _Slot(scope, person, people[0], relation)


def _one(slot: _Slot, out: _Writer) -> None:
    draw = out.draw
    day = draw.uniform(0, 200)
    value, period, before = _value(slot, out, None), 0, None
    while day < _DAYS:
        length = max(15.0, draw.expovariate(1 / 220))
        state = f"{period}"
        _say(slot, out, day, value, state, before=before)
        for _ in range(_poisson(draw, 1.3)):
            _say(slot, out, day + draw.uniform(0.05, 0.9) * length, value, state)
        if draw.random() < 0.06:
            _slip(slot, out, day + 0.93 * length, value, state)
        ended = draw.random() < 0.1 and isinstance(slot.relation.values, list)
        if ended:
            _say(slot, out, day + length, value, state, role="end")
        before = None if ended else value
        day += length + (draw.uniform(10, 40) if ended else 1)
        value, period = _value(slot, out, value), period + 1


def _many(slot: _Slot, out: _Writer) -> None:
    draw = out.draw
    seen: list[str] = []
    for period in range(draw.randint(2, 5)):
        value = _value(slot, out, None)
        if value in seen:
            continue
        seen.append(value)
        day = draw.uniform(0, _DAYS - 200)
        last = day + draw.uniform(100, _DAYS - day)
        _say(slot, out, day, value, f"{period}")
        for _ in range(_poisson(draw, 1.5)):
            _say(slot, out, draw.uniform(day + 1, last - 1), value, f"{period}")
        if draw.random() < 0.05:
            _slip(slot, out, draw.uniform(day, last - 5), value, f"{period}")
        if draw.random() < 0.2:
            _say(slot, out, last, value, f"{period}", role="end")


def _slip(slot: _Slot, out: _Writer, day: float, value: str, state: str) -> None:
    """Say it wrongly, and put it right within three days."""
    wrong = _value(slot, out, value)
    _say(slot, out, day, wrong, f"{state}-wrong-{len(out.facts)}", role="wrong")
    named = out.draw.random() < 0.5
    shape = "not {old}, but {new}" if named else "{new}"
    _say(slot, out, day + out.draw.uniform(0.02, 3), value, state, role="fix", before=wrong, shape=shape)


def _say(
    slot: _Slot, out: _Writer, day: float, value: str, state: str, *, role: str = "assert", before: str | None = None,
    shape: str | None = None,
) -> None:  # fmt: skip
    draw = out.draw
    wording = draw.choice(slot.relation.wordings)
    obj, text, predicate = _wording(slot, out, value), None, wording
    if role == "fix" and shape == "{new}":
        text = draw.choice(["Sorry, I meant {}.", "Correction: it is {}.", "I got that wrong, it is {}."]).format(obj)
    elif role == "fix":
        obj = (shape or "").format(old=_wording(slot, out, before or ""), new=obj)
    elif role == "end":
        predicate, obj = draw.choice(_endings(wording)), obj
        obj = obj + " any more" if " not " in f" {predicate} " else obj
    elif before is not None and draw.random() < 0.2:
        obj = f"{obj} instead of {_wording(slot, out, before)}"
    elif draw.random() < (0.3 if before is not None else 0.05):
        predicate = f"now {wording}" if not wording.endswith(" is") else f"{wording} now"
    said = START + timedelta(days=day)
    late = timedelta(days=draw.uniform(30, 365)) if draw.random() < 0.08 else timedelta(0)
    number = len(out.facts)
    fact_id = f"f{number}"
    out.facts.append(
        (fact_id, slot.scope, _subject(slot, out), predicate, obj, "stated", [f"{slot.scope}/s{int(day)}/1"], said,
         said + late, slot.speaker, text, None)
    )  # fmt: skip
    name = f"{slot.scope}/{slot.person}/{slot.relation.name}"
    fixes = f"f{number - 1}" if role == "fix" else None
    out.truth.append(
        (fact_id, slot.scope, name, value, f"{name}/{state}", role, fixes, slot.relation.trap, slot.relation.one)
    )


def _endings(wording: str) -> list[str]:
    first, _, rest = wording.partition(" ")
    if first == "is":
        return [f"is no longer {rest}", f"used to be {rest}", f"is not {rest}"]
    if wording.endswith(" is") or first in ("has", "can", "cannot", "booked"):
        return [f"no longer {wording}"]
    base = "study" + first[7:] if first.startswith("studies") else first.removesuffix("s")
    return [f"no longer {wording}", f"used to {base} {rest}", f"doesn't {base} {rest}"]


def _subject(slot: _Slot, out: _Writer) -> str:
    if slot.person == slot.speaker:
        return out.draw.choice(["I", "the user", slot.person, slot.person.lower()])
    if slot.person.startswith("my "):
        kin = slot.person[3:]
        return out.draw.choice([slot.person, f"{slot.speaker}'s {kin}", f"the user's {kin}"])
    return slot.person


def _value(slot: _Slot, out: _Writer, not_this: str | None) -> str:
    kind = slot.relation.values
    while True:
        value = out.draw.choice(kind)[0] if isinstance(kind, list) else _number(kind, not_this, out.draw)
        if value != not_this:
            return value


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


def _wording(slot: _Slot, out: _Writer, value: str) -> str:
    kind, draw = slot.relation.values, out.draw
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
