"""Facts out of short texts: "home = Oslo; plan home = Rome | since:2025-09 replaces:0"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import polars as pl

from memlab.records import Fact, frame
from memlab.records.facts import EFFECTS, meaning_id

DAY0 = datetime(2025, 1, 1, tzinfo=UTC)
_FORM = re.compile(
    r"(?:(?P<kind>state|event|plan|rule) )?(?P<denied>not )?(?:(?P<about>[^:=|]+): )?"
    r"(?P<slot>[^:=|]+) = (?P<value>[^|]+?)(?: \| (?P<options>.+))?"
)


def story_facts(story: str, *, days: int = 10) -> pl.DataFrame:
    """Read facts ``f0``, ``f1`` … that are said some days apart, each in a turn of its own.

    :param story: facts with "; " between them: ``[kind] [not] [about: ]slot = value [| options]``.
        Options have blanks between them: ``many``, ``since:DATE``, ``until:DATE``, ``day:N`` (when
        it is said, from 2025-01-01), ``late:N`` (days until it is recorded), ``turn:N``,
        ``undated`` and ``EFFECT:N``, which affects fact N, or ``EFFECT:@N`` what fact N states.
    """
    made: list[Fact] = []
    for text in story.split("; "):
        made.append(_read(text, made, days))
    return frame(Fact, made)


def _read(text: str, made: list[Fact], days: int) -> Fact:
    found = _FORM.fullmatch(text)
    assert found, text
    given = dict(option.partition(":")[::2] for option in (found["options"] or "").split())
    n = len(made)
    said = DAY0 + timedelta(days=int(given.get("day", days * n)))
    effects, affected = [], []
    for option in (found["options"] or "").split():
        effect, _, place = option.partition(":")
        if effect in EFFECTS:
            effects.append(effect)
            affected.append(_affected(place, made))
    return Fact(
        fact_id=f"f{n}",
        scope="u",
        about=found["about"] or "Ann",
        slot=found["slot"],
        value=found["value"],
        source="stated",
        evidence=[f"u/s/{given.get('turn', n)}"],
        asserted_at=None if "undated" in given else said,
        recorded_at=None
        if "undated" in given
        else said + timedelta(days=int(given.get("late", 0))),
        said_by="Ann",
        kind=found["kind"] or "state",
        holds=not found["denied"],
        values="many" if "many" in given else "one",
        since=given.get("since"),
        until=given.get("until"),
        effects=effects,
        affected=affected,
    )


def _affected(place: str, made: list[Fact]) -> str:
    if not place.startswith("@"):
        return f"f{place}"
    fact = made[int(place[1:])]
    return meaning_id(fact.about, fact.slot, fact.value, kind=fact.kind, holds=fact.holds)
