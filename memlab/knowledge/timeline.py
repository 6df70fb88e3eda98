"""The timeline of a subject: its statements in order, and the intervals in which their values hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from memlab.embed import Encoder
from memlab.knowledge import normal_form
from memlab.knowledge.normal_form import IS, NOT, PLAN, Value, normal_relation, normal_value
from memlab.text.words import PREPOSITIONS, wordset

_SINGLE_VALUED = {
    "home": ("lives in",), "company": ("lives with",), "school": ("studies at",), "pay": ("earns",),
    "job": ("works at", "starts at", "works for"), "role": ("works as",), "boss": ("reports to",),
    "subject": ("studies",), "partner": ("is dating", "is engaged to", "is married to", "broke up with"),
    "age": ("is years old",), "birth": ("was born on",), "name": ("is named",),
    "key": ("API key",), "email": ("email address",), "phone": ("phone number",),
}  # fmt: skip
_PARALLEL_GROUPS = ("job", "role", "school", "subject")
"""Groups of which several values that one session states hold together: two jobs are common, two homes are not."""
EXCLUSIVE_GROUPS = {
    normal_relation(phrase): group
    for group, phrases in _SINGLE_VALUED.items()
    for phrase in phrases
}
"""Normal form of a relation → its group; a subject has one value of a group at a time."""
_MULTI_VALUED = normal_form.stem_words(sorted(wordset(
    """sister brother son daughter kid child aunt uncle cousin niece nephew grandson granddaughter friend colleague
    coworker neighbour neighbor roommate flatmate housemate teammate bandmate sibling twin student stepson stepdaughter
    dog cat puppy pup kitten hamster rabbit bunny parrot horse pony fish goldfish bird pet"""
)))  # fmt: skip
"""Things that one may have several of, so that another value does not replace the first."""
_COUNTED_RELATIONS = {normal_relation(phrase) for phrase in ("has", "teaches", "takes")}
_SCHEDULED_RELATIONS = {
    normal_relation(f"{verb} {at}".strip())
    for verb in ("is", "starts", "meets", "opens")
    for at in ("on", "at")
}
_NUMBER = re.compile(r"\d+\b")
_WEEKDAY_OR_HOUR = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d[:.]\d\d|\b\d ?[ap]m\b", re.I
)
_PLAN_LIFETIME = timedelta(days=120)
_BREAKUP, _OPPOSITE_GROUP = (
    normal_relation("broke up with"),
    {"company": "partner", "partner": "company"},
)
ENDED, REPLACED, AFFIRMED = "said to be over", "another value", "said to be so"
CARRIED_OUT, CORRECTED = "carried out", "corrected"
"""Rules by which a statement closes the interval of an earlier one."""

Meaning = tuple[str, str, str, str, bool, str]
"""Scope, subject, relation, mode, whether it is an ending, and key of the value of a statement."""


@dataclass(frozen=True, eq=False)
class Statement:
    """A fact with its parts in normal form.

    :param fact: its row.
    :param subject: key of its subject; ``key``: of its value; ``corrected_key``: of the value that
        it corrects. Equal keys mean the same.
    :param group: the group of values that replace each other; ``single``: whether a subject has one
        of them at a time.
    """

    fact: dict[str, Any]
    relation: str
    mode: str
    is_ending: bool
    is_possession: bool
    value: Value
    subject: str
    key: str
    corrected_key: str | None
    group: str
    single: bool

    @property
    def id(self) -> str:
        return str(self.fact["fact_id"])

    @property
    def placed_at(self) -> datetime:
        """Its place in time: when it was said, or of what nobody dated what stands before it."""
        when: datetime = self.fact["placed_at"]
        return when

    @property
    def said_at(self) -> datetime | None:
        """When it was said; ``None`` where nothing says."""
        when: datetime | None = self.fact["said_at"]
        return when

    @property
    def meaning(self) -> Meaning:
        """What it states, however it is worded and whenever it was said: an undo is about meanings."""
        return self.fact["scope"], self.subject, self.relation, self.mode, self.is_ending, self.key

    def is_nested_with(self, other: Statement) -> bool:
        """Whether one of two values has all words of the other."""
        one, two = self.value, other.value
        return bool(self.key and other.key) and (one.is_part_of(two) or two.is_part_of(one))

    def narrows(self, other: Statement) -> bool:
        """Whether its value is another with a prepositional phrase behind it: "guitar in the Ravens".

        What has a number ("118 for the ticket") names one thing, in however many words.
        """
        words, n = self.value.words, len(other.value.words)
        begins_with_other = words[:n] == other.value.words and not self.value.exact
        return begins_with_other and not PREPOSITIONS.isdisjoint(words[n : n + 1])

    def is_compatible_with(self, old: Statement) -> bool:
        """Whether two values of one group hold together: equal, one more precise, or of different things."""
        if old.relation != self.relation:
            return False
        # "Her wrist is broken" says nothing against "her wrist is five weeks out of plaster".
        different = self.is_possession and bool(old.value.exact) != bool(self.value.exact)
        return different or old.key == self.key or old.is_nested_with(self)

    @property
    def said_in(self) -> set[str]:
        """Where it was said: ids of its turns, and of a job or a school that of the session too."""
        session = self.fact["session_id"] if self.group in _PARALLEL_GROUPS else None
        return {*(self.fact["evidence"] or ()), *([session] if session else ())}


def read_statements(facts: pl.DataFrame, encoder: Encoder | None) -> Iterator[Statement]:
    """Parse the facts, in the order in which they were said."""
    arrived = pl.when(pl.col("said_at").is_not_null()).then("recorded_at")
    rows = facts.sort("placed_at", "placed_by", arrived, maintain_order=True).to_dicts()
    parsed = [
        normal_form.parse_statement(row["subject"], row["predicate"], row["object"]) for row in rows
    ]
    owners = [
        (row["scope"], normal_value(parts.subject).key)
        for row, parts in zip(rows, parsed, strict=True)
    ]
    pairs = zip(owners, parsed, strict=True)
    texts = [(owner, text) for owner, parts in pairs for text in (parts.value, parts.corrects)]
    keys: dict[Any, str] = normal_form.value_keys(
        [(owner, text) for owner, text in texts if text is not None], encoder
    )
    for row, parts, owner in zip(rows, parsed, owners, strict=True):
        value, key, corrected = (
            normal_value(parts.value),
            keys[owner, parts.value],
            keys.get((owner, parts.corrects)),
        )
        relation = (parts.relation, parts.mode, parts.is_ending, parts.is_possession)
        yield Statement(
            row, *relation, value, owner[1], key, corrected, *_value_group(parts, value)
        )


def _value_group(parts: normal_form.Statement, value: Value) -> tuple[str, bool]:
    """Give the group of a statement's value, and whether a subject has one value of it at a time."""
    if parts.is_possession:
        return parts.relation, parts.relation.rpartition(" ")[2] not in _MULTI_VALUED
    if parts.relation in _SCHEDULED_RELATIONS and _WEEKDAY_OR_HOUR.search(parts.value):
        return "when", True
    if parts.relation in EXCLUSIVE_GROUPS:
        return EXCLUSIVE_GROUPS[parts.relation], True
    one_number = parts.relation in _COUNTED_RELATIONS and len(value.exact) == 1 and value.words
    if one_number and _NUMBER.match(normal_form.numbers_as_digits(parts.value)):
        # "Seven years", not "year 7".
        return f"number of {value.words[-1]}", True
    return parts.relation, False


@dataclass(eq=False)
class Interval:
    """The time in which a value holds: its statements, and the statement, time and rule that end it."""

    first: Statement
    since: datetime
    closed: tuple[Statement, datetime, str] | None = None
    statements: list[Statement] = field(default_factory=list)
    said_in: set[str] = field(default_factory=set)

    def fact_states(self, present: datetime) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Give the state of each statement by its id; columns as in ``supersession._STATE_SCHEMA``."""
        closer, at, rule = self.closed or (None, None, "")
        by = closer and closer.id
        if rule == CORRECTED:
            yield from (
                (s.id, ("corrected", True, by, None, s.said_at, s.said_at, 0, s.said_at))
                for s in self.statements
            )
            return
        said: dict[str, datetime | None] = {}
        for each in self.statements:
            said.setdefault(next(iter(each.fact["evidence"] or ()), each.id), each.said_at)
        dated = [when for when in said.values() if when is not None]
        last = max(dated, default=None)
        status = "active" if by is None else "ended" if rule == ENDED else "superseded"
        if last and by is None and self.first.mode == PLAN and last + _PLAN_LIFETIME <= present:
            status, at = "expired", last + _PLAN_LIFETIME
        since: datetime | None = self.since
        if self.first.said_at is None:
            since = at = None
        for each in self.statements[1:]:
            yield each.id, ("repeat", by is not None, by, self.first.id, since, at, 0, last)
        yield (
            self.first.id,
            (status, status != "active", by, None, since, at, len(said) - 1, last),
        )

    def log_row(self) -> dict[str, Any]:
        """Give the row of the log for what closed it."""
        assert self.closed
        closer, placed, rule = self.closed
        old, new = self.first.fact, closer.fact
        at = placed if closer.said_at else None
        reached = [fact["recorded_at"] for fact in (old, new) if fact["recorded_at"]]
        both_dated = self.first.said_at and closer.said_at
        late = ""
        if both_dated and old["recorded_at"] > new["recorded_at"]:
            late = " (the old arrived late)"
        return {
            **{name: new[name] for name in ("scope", "subject", "predicate", "evidence")},
            "old": self.first.id, "new": closer.id, "old_object": old["object"], "new_object": new["object"], "at": at,
            "recorded_at": max(reached, default=None), "rule": f"{rule}{late}",
            "by": new["speaker"] or new["source"],
        }  # fmt: skip


def resolve_subject(
    statements: list[Statement], undone: Collection[tuple[Meaning, Meaning]]
) -> list[Interval]:
    """Give the intervals of a subject's values, with those that were corrected.

    A correction takes the place of the value that was wrong, and the statements are read again
    without that value.
    """
    stream = [(statement, statement.placed_at, True) for statement in statements]
    corrected: list[Interval] = []
    while True:
        timeline = _Timeline(undone)
        for statement, since, may_correct in stream:
            if wrong := timeline.find_corrected(statement) if may_correct else None:
                break
            timeline.add(statement, since)
        else:
            return corrected + timeline.intervals
        wrong.closed = (statement, wrong.first.placed_at, CORRECTED)
        corrected.append(wrong)
        dropped, correction = [*wrong.statements[1:], statement], (statement, wrong.since, False)
        stream = [
            correction if old[0] is wrong.first else old for old in stream if old[0] not in dropped
        ]


class _Timeline:
    """The intervals of a subject's values while its statements are read in order."""

    def __init__(self, undone: Collection[tuple[Meaning, Meaning]]) -> None:
        self.undone = undone
        self.intervals: list[Interval] = []
        self.by_relation: defaultdict[str, list[Interval]] = defaultdict(list)
        self.by_group: defaultdict[str, list[Interval]] = defaultdict(list)

    def add(self, statement: Statement, since: datetime) -> None:
        """Add the next statement: close what it ends or replaces, then begin or prolong the interval of its value."""
        ending, mode = statement.is_ending, statement.mode
        current = [
            i for i in _open_intervals(self.by_relation[statement.relation]) if i.first.mode == mode
        ]
        interval = next((old for old in current if old.first.key == statement.key), None)
        said_in = statement.said_in.union(interval.said_in if interval else ())
        for rule, old in (
            self._find_ended(statement, current)
            if ending
            else self._find_closed(statement, said_in)
        ):
            if (ending or old is not interval) and (
                old.first.meaning,
                statement.meaning,
            ) not in self.undone:
                old.closed = (statement, since, rule)
        if ending:
            return
        if interval is None:
            interval = Interval(statement, since)
            self.intervals.append(interval)
            self.by_relation[statement.relation].append(interval)
            self.by_group[statement.group].append(interval)
        interval.statements.append(statement)
        interval.said_in |= said_in

    def find_corrected(self, statement: Statement) -> Interval | None:
        """Find the latest value that a statement corrects."""
        if statement.corrected_key in (None, statement.key) or statement.is_ending:
            return None
        earlier = reversed(self.by_relation[statement.relation])
        found = next((old for old in earlier if old.first.key == statement.corrected_key), None)
        counts = (
            found
            and found.first.mode == IS
            and (found.first.meaning, statement.meaning) not in self.undone
        )
        return found if counts else None

    def _find_ended(
        self, statement: Statement, current: list[Interval]
    ) -> list[tuple[str, Interval]]:
        """Find what an ending closes, with the rule: the value that it names, in other words or fewer."""
        ended = [old for old in current if old.first.key == statement.key or not statement.key]
        nested = [old for old in current if old.first.is_nested_with(statement)]
        # Who no longer plays guitar in the Ravens may play it elsewhere; a job at Acme in Oslo is
        # the job at Acme.
        ended = ended or [
            old for old in nested if statement.single or not statement.narrows(old.first)
        ]
        if ended and statement.group == "job" and statement.mode == IS:
            # Who leaves a job leaves its boss, but not the new one of whom the same session tells.
            bosses, session = _open_intervals(self.by_group["boss"]), statement.fact["session_id"]
            ended += [
                old for old in bosses if not session or old.first.fact["session_id"] != session
            ]
        return [(ENDED, old) for old in ended]

    def _find_closed(
        self, statement: Statement, said_in: set[str]
    ) -> Iterator[tuple[str, Interval]]:
        """Find what any other statement closes, with the rule; ``said_in``: where its value was said so far."""
        mode = statement.mode
        for old in _open_intervals(self.by_relation[statement.relation]):
            same = old.first.key == statement.key
            related = same or old.first.is_nested_with(statement)
            # Who does not like red wine may like wine.
            wider = same or (related and statement.value.is_part_of(old.first.value))
            if mode == IS and old.first.mode == NOT and same:
                yield AFFIRMED, old
            elif mode == IS and old.first.mode == PLAN and related:
                yield CARRIED_OUT, old
            elif mode == NOT and old.first.mode != NOT and wider:
                yield ENDED, old
        if statement.single:
            for old in _open_intervals(self.by_group[statement.group]):
                # "I live with Ann and Bo" may be two facts, and naming one of them again leaves the
                # other.
                together = old.first.relation == statement.relation and not said_in.isdisjoint(
                    old.said_in
                )
                if (
                    old.first.mode == mode != NOT
                    and not together
                    and not statement.is_compatible_with(old.first)
                ):
                    yield REPLACED, old
            for old in _open_intervals(self.by_group[_OPPOSITE_GROUP.get(statement.group, "")]):
                # Who lives with somebody again has not broken up with them, and the reverse.
                if old.first.key == statement.key and _BREAKUP in (
                    old.first.relation,
                    statement.relation,
                ):
                    yield REPLACED, old


def _open_intervals(intervals: list[Interval]) -> Iterator[Interval]:
    """Give the intervals that nothing has closed, the latest first."""
    return (interval for interval in reversed(intervals) if interval.closed is None)
