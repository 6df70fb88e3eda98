"""Which statements still hold: computed from all statements, with a log of what closed what; nothing is deleted."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge import normal
from memlab.knowledge.normal import IS, NOT, PLAN, Statement, Value, normal_relation, normal_value
from memlab.records import TIMESTAMP, Fact, schema
from memlab.text.words import wordset

_SINGLE_VALUED = {
    "home": ("lives in", "stays at"), "company": ("lives with",), "school": ("studies at",), "pay": ("earns",),
    "job": ("works at", "starts at", "works for"), "role": ("works as",), "boss": ("reports to",),
    "subject": ("studies",), "partner": ("is dating", "is engaged to", "is married to", "broke up with"),
    "age": ("is years old",), "vehicle": ("drives",), "birth": ("was born on",), "name": ("is named",),
    "key": ("API key",), "email": ("email address",), "phone": ("phone number",),
}  # fmt: skip
EXCLUSIVE_GROUPS = {normal_relation(phrase): group for group, phrases in _SINGLE_VALUED.items() for phrase in phrases}
"""Relations of which a subject has one value at a time, by normal form; those of one group replace each other."""
_MULTI_VALUED = normal.stem_words(sorted(wordset(
    """sister brother son daughter kid child aunt uncle cousin niece nephew grandson granddaughter friend colleague
    coworker neighbour neighbor roommate flatmate housemate teammate bandmate sibling twin student stepson stepdaughter
    dog cat puppy pup kitten hamster rabbit bunny parrot horse pony fish goldfish bird pet"""
)))  # fmt: skip
"""What one may have several of, so that another value stands beside the first."""
_COUNTED_RELATIONS = {normal_relation(phrase) for phrase in ("has", "teaches", "takes")}
_SCHEDULED_RELATIONS = {normal_relation(f"{verb} {at}".strip()) for verb in ("is", "starts", "meets", "opens") for at in ("on", "at")}
_NUMBER = re.compile(r"\d+\b")
_WEEKDAY_OR_HOUR = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d[:.]\d\d|\b\d ?[ap]m\b", re.I)
_PLAN_LIFETIME = timedelta(days=120)
_BREAKUP, _OPPOSITE_GROUP = normal_relation("broke up with"), {"company": "partner", "partner": "company"}
ENDED, REPLACED, AFFIRMED, CARRIED_OUT, CORRECTED = "said to be over", "another value", "said to be so", "carried out", "corrected"
_STATE_SCHEMA = {
    "status": pl.String(), "superseded": pl.Boolean(), "superseded_by": pl.String(), "repeats": pl.String(),
    "valid_from": TIMESTAMP, "valid_to": TIMESTAMP, "n_reinforced": pl.Int32(), "last_access": TIMESTAMP,
}  # fmt: skip
_LOG_SCHEMA = {
    **dict.fromkeys(("scope", "subject", "predicate", "old", "new", "old_object", "new_object"), pl.String()),
    "at": TIMESTAMP, "recorded_at": TIMESTAMP, "rule": pl.String(), "by": pl.String(), "evidence": pl.List(pl.String()),
}  # fmt: skip

_Meaning = tuple[str, str, str, str, bool, str]


@dataclass(frozen=True)
class Resolved:
    """What holds, and why the rest does not.

    :param facts: every statement, in its order, with ``status`` (``active``; ``repeat`` of an earlier statement;
        ``superseded``, ``corrected`` or ``ended``; ``expired`` for a plan not stated again; ``closing`` for a
        statement that only ends something), ``superseded`` (true for the last five), ``superseded_by``, ``repeats``
        (the statement that it reinforces), ``valid_from``, ``valid_to``, ``n_reinforced`` (statements that were read
        from the same turn are one) and ``last_access``.
    :param log: one row per closing: ``old``, ``new`` (fact ids), ``at`` (when the old stopped to hold),
        ``recorded_at`` (when that could first be known), ``rule``, ``by`` (who said so), ``evidence`` (turn ids), and
        both values.
    """

    facts: pl.DataFrame
    log: pl.DataFrame


def resolve(
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None = None,
    as_of: datetime | None = None,
    undone: Collection[tuple[str, str]] = (),
) -> Resolved:
    """Find out which statements still hold.

    For one subject and one relation, in the order in which things were *said* (not in which they arrived):

    - the same value again reinforces; another value supersedes where the relation has one value at a time, and stands
      beside the old where it has many, or where that is unknown;
    - "no longer", "used to" and a denial end the value that they name;
    - "not A but B" corrects: A never held, and B holds from when A was said;
    - a plan ends when it has come about, and expires after 120 days without a word.

    An older statement that arrives late takes its place in that order, so it is superseded from the start.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param encoder: matches near-equal values (:func:`memlab.knowledge.normal.keys`); ``None``: normal forms only.
    :param as_of: only what had reached the memory by then counts: what was active on that date.
    :param undone: closings, by the columns ``old`` and ``new`` of the log, that do not count: both values are kept,
        however often and in whatever words either is said again. Another value may close the same fact.
    :raises DataError: for facts without their columns, with repeated ids, or without any time.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge import active
    >>> march, june = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    >>> facts = frame(Fact, [
    ...     Fact("f1", "u", "Ann's API key", "is", "sk-1111", "stated", ["u/s1/1"], march),
    ...     Fact("f2", "u", "Ann's API key", "is", "sk-2222", "stated", ["u/s9/4"], june),
    ... ])
    >>> resolved = resolve(facts)
    >>> active(resolved)["object"].to_list()
    ['sk-2222']
    >>> active(resolved, as_of=datetime(2026, 4, 1, tzinfo=UTC))["object"].to_list()
    ['sk-1111']
    >>> resolved.log.select("old", "new", "rule", "evidence").row(0)
    ('f1', 'f2', 'another value', ['u/s9/4'])
    >>> active(resolve(facts, undone=[("f1", "f2")])).height
    2
    """
    arrived = _validate_facts(facts)
    if as_of is not None:
        arrived = arrived.filter(pl.col("recorded_at") <= as_of, pl.col("said_at") <= as_of)
    marks = {mark.id: mark for mark in _read_statements(arrived, encoder)}
    kept = {(marks[old].says, marks[new].says) for old, new in undone if old in marks and new in marks}
    subjects: defaultdict[tuple[str, str], list[_Statement]] = defaultdict(list)
    for mark in marks.values():
        subjects[mark.fact["scope"], mark.subject].append(mark)
    runs = [run for its in subjects.values() for run in _resolve_subject(its, kept)]
    latest = dict(arrived.group_by("scope").agg(pl.col("said_at").max()).iter_rows())
    # What no run has for a member only ends something.
    said = arrived.select("fact_id", "said_at").iter_rows()
    states = {fact: ("closing", True, None, None, at, at, 0, at) for fact, at in said}
    states |= {fact: state for run in runs for fact, state in run.states(as_of or latest[run.mark.fact["scope"]])}
    log = pl.DataFrame([run.closing() for run in runs if run.closed], schema=_LOG_SCHEMA, orient="row")
    made = pl.DataFrame(list(states.values()), schema=_STATE_SCHEMA, orient="row")
    return Resolved(arrived.hstack(made), log.sort("recorded_at", "at", "old"))


def active(resolved: Resolved, *, as_of: datetime | None = None) -> pl.DataFrame:
    """List the facts that hold, one row for each however often it was said.

    :param as_of: what held then, by all that is known; ``None``: what holds last. For what was *known* then,
        without what arrived or was corrected later, resolve with the same ``as_of``.
    """
    if as_of is None:
        return resolved.facts.filter(pl.col("status") == "active")
    facts = resolved.facts.filter(pl.col("status").is_in(["active", "superseded", "ended", "expired"]))
    return facts.filter(pl.col("valid_from") <= as_of, pl.col("valid_to").is_null() | (pl.col("valid_to") > as_of))


def _validate_facts(facts: pl.DataFrame) -> pl.DataFrame:
    """Fill optional columns and refuse what cannot be resolved."""
    expected = schema(Fact)
    missing = [name for name in list(expected)[:8] if name not in facts.columns]
    if missing:
        raise DataError(f"facts have no column {missing[0]!r}; expected {', '.join(expected)}")
    filled = facts.with_columns(pl.lit(None).alias(name) for name in expected if name not in facts.columns)
    said = pl.coalesce("asserted_at", "recorded_at")
    filled = filled.cast(expected).with_columns(said_at=said, recorded_at=pl.coalesce("recorded_at", "asserted_at"))  # type: ignore[arg-type]
    if len(twice := filled.filter(pl.col("fact_id").is_duplicated())):
        raise DataError(f"fact id {twice['fact_id'][0]!r} stands twice; ids are unique")
    if len(undated := filled.filter(pl.col("said_at").is_null())):
        raise DataError(f"fact {undated['fact_id'][0]!r} has no time; give asserted_at or recorded_at")
    return filled


@dataclass(frozen=True, eq=False)
class _Statement:
    """A statement as it is resolved.

    :param fact: its row.
    :param subject: of its subject, ``key``: of its value, equal for what is one; ``instead``: of the value that it
        replaces.
    :param group: what its value is one of; ``single``: whether a subject has one of these at a time.
    """

    fact: dict[str, Any]
    read: Statement
    value: Value
    subject: str
    key: str
    instead: str | None
    group: str
    single: bool

    @property
    def id(self) -> str:
        return str(self.fact["fact_id"])

    @property
    def at(self) -> datetime:
        when: datetime = self.fact["said_at"]
        return when

    @property
    def says(self) -> _Meaning:
        """What it says, in whatever words and whenever: what an undo is about."""
        read = self.read
        return self.fact["scope"], self.subject, read.relation, read.mode, read.over, self.key

    def nested(self, other: _Statement) -> bool:
        """Whether one of two values says all that the other says."""
        return bool(self.key and other.key) and (self.value.within(other.value) or other.value.within(self.value))

    def beside(self, old: _Statement) -> bool:
        """Whether two values of one group go together: they are one, or one says more, or another thing."""
        if old.read.relation != self.read.relation:
            return False
        # "Her wrist is broken" says nothing against "her wrist is five weeks out of plaster".
        other = self.read.owned and bool(old.value.exact) != bool(self.value.exact)
        return other or old.key == self.key or old.nested(self)


def _read_statements(facts: pl.DataFrame, encoder: Encoder | None) -> Iterator[_Statement]:
    """Read the statements, in the order in which they were said."""
    rows = facts.sort("said_at", "recorded_at", maintain_order=True).to_dicts()
    reads = [normal.parse_statement(row["subject"], row["predicate"], row["object"]) for row in rows]
    owners = [(row["scope"], normal_value(read.subject).key) for row, read in zip(rows, reads, strict=True)]
    texts = [(owner, text) for owner, read in zip(owners, reads, strict=True) for text in (read.value, read.instead)]
    keys: dict[Any, str] = normal.value_keys([(owner, text) for owner, text in texts if text is not None], encoder)
    for row, read, owner in zip(rows, reads, owners, strict=True):
        its, key, instead = normal_value(read.value), keys[owner, read.value], keys.get((owner, read.instead))
        yield _Statement(row, read, its, owner[1], key, instead, *_value_group(read, its))


def _value_group(read: Statement, its: Value) -> tuple[str, bool]:
    """Give the group that a statement's value is one of, and whether a subject has one of these at a time."""
    if read.owned:
        return read.relation, read.relation.rpartition(" ")[2] not in _MULTI_VALUED
    if read.relation in _SCHEDULED_RELATIONS and _WEEKDAY_OR_HOUR.search(read.value):
        return "when", True
    if read.relation in EXCLUSIVE_GROUPS:
        return EXCLUSIVE_GROUPS[read.relation], True
    if read.relation in _COUNTED_RELATIONS and len(its.exact) == 1 and its.words and _NUMBER.match(normal.numbers_as_digits(read.value)):
        # "Seven years", not "year 7".
        return f"number of {its.words[-1]}", True
    return read.relation, False


@dataclass(eq=False)
class _Interval:
    """One value that is said to hold, from its first statement to what closes it: which statement, when, and why."""

    mark: _Statement
    since: datetime
    closed: tuple[_Statement, datetime, str] | None = None
    members: list[_Statement] = field(default_factory=list)

    def states(self, present: datetime) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Give the state of each statement by its id; columns as in ``_STATE``."""
        closer, at, rule = self.closed or (None, None, "")
        by = closer and closer.id
        if rule == CORRECTED:
            yield from ((m.id, ("corrected", True, by, None, m.at, m.at, 0, m.at)) for m in self.members)
            return
        heard: dict[str, datetime] = {}
        for m in self.members:
            heard.setdefault(next(iter(m.fact["evidence"] or ()), m.id), m.at)
        last, status = max(heard.values()), "active" if by is None else "ended" if rule == ENDED else "superseded"
        if by is None and self.mark.read.mode == PLAN and last + _PLAN_LIFETIME <= present:
            status, at = "expired", last + _PLAN_LIFETIME
        for m in self.members[1:]:
            yield m.id, ("repeat", by is not None, by, self.mark.id, self.since, at, 0, last)
        yield self.mark.id, (status, status != "active", by, None, self.since, at, len(heard) - 1, last)

    def closing(self) -> dict[str, Any]:
        """Give the row of the log."""
        assert self.closed
        closer, at, rule = self.closed
        old, new = self.mark.fact, closer.fact
        late = " (the old arrived late)" if old["recorded_at"] > new["recorded_at"] else ""
        return {
            **{name: new[name] for name in ("scope", "subject", "predicate", "evidence")},
            "old": self.mark.id, "new": closer.id, "old_object": old["object"], "new_object": new["object"], "at": at,
            "recorded_at": max(old["recorded_at"], new["recorded_at"]), "rule": f"{rule}{late}",
            "by": new["speaker"] or new["source"],
        }  # fmt: skip


def _resolve_subject(marks: list[_Statement], undone: Collection[tuple[_Meaning, _Meaning]]) -> list[_Interval]:
    """Give the values that a subject is said to have one after the other, and those that were corrected.

    A correction takes the place of the value that was wrong, and the statements are read again without that value.
    """
    stream = [(mark, mark.at, True) for mark in marks]
    corrected: list[_Interval] = []
    while True:
        values = _Timeline(undone)
        for mark, since, may_correct in stream:
            if wrong := values.wrong(mark) if may_correct else None:
                break
            values.add(mark, since)
        else:
            return corrected + values.runs
        wrong.closed = (mark, wrong.mark.at, CORRECTED)
        corrected.append(wrong)
        gone, place = [*wrong.members[1:], mark], (mark, wrong.since, False)
        stream = [place if old[0] is wrong.mark else old for old in stream if old[0] not in gone]


class _Timeline:
    """What holds of a subject while its statements are read."""

    def __init__(self, undone: Collection[tuple[_Meaning, _Meaning]]) -> None:
        self.undone = undone
        self.runs: list[_Interval] = []
        self.by_relation: defaultdict[str, list[_Interval]] = defaultdict(list)
        self.by_group: defaultdict[str, list[_Interval]] = defaultdict(list)

    def add(self, mark: _Statement, since: datetime) -> None:
        """Take in the next statement, which holds since then."""
        own = [run for run in _open_intervals(self.by_relation[mark.read.relation]) if run.mark.read.mode == mark.read.mode]
        run = next((old for old in own if old.mark.key == mark.key), None)
        closed = ((ENDED, old) for old in self._ended(mark, own)) if mark.read.over else self._replaced(mark)
        for rule, old in closed:
            if (mark.read.over or old is not run) and (old.mark.says, mark.says) not in self.undone:
                old.closed = (mark, since, rule)
        if mark.read.over:
            return
        if run is None:
            run = _Interval(mark, since)
            for runs in (self.runs, self.by_relation[mark.read.relation], self.by_group[mark.group]):
                runs.append(run)
        run.members.append(mark)

    def wrong(self, mark: _Statement) -> _Interval | None:
        """Find what a statement corrects."""
        if mark.instead in (None, mark.key) or mark.read.over:
            return None
        runs = reversed(self.by_relation[mark.read.relation])
        run = next((run for run in runs if run.mark.key == mark.instead), None)
        return run if run and run.mark.read.mode == IS and (run.mark.says, mark.says) not in self.undone else None

    def _ended(self, mark: _Statement, own: list[_Interval]) -> list[_Interval]:
        """Find what a statement says is over: the value that it names, in other words or fewer."""
        same = [run for run in own if run.mark.key == mark.key or not mark.key]
        ended = same or [run for run in own if run.mark.nested(mark)]
        # Who leaves a job leaves its boss.
        leaves = bool(ended) and mark.group == "job" and mark.read.mode == IS
        return [*ended, *(_open_intervals(self.by_group["boss"]) if leaves else ())]

    def _replaced(self, mark: _Statement) -> Iterator[tuple[str, _Interval]]:
        """Find what a statement closes, and by which rule."""
        mode = mark.read.mode
        for run in _open_intervals(self.by_relation[mark.read.relation]):
            other, nested = run.mark.read.mode, run.mark.key == mark.key or run.mark.nested(mark)
            if mode == IS and other == NOT and run.mark.key == mark.key:
                yield AFFIRMED, run
            elif mode == IS and other == PLAN and nested:
                yield CARRIED_OUT, run
            elif mode == NOT and other != NOT and nested:
                yield ENDED, run
        if mark.single:
            for run in _open_intervals(self.by_group[mark.group]):
                if run.mark.read.mode == mode != NOT and not mark.beside(run.mark):
                    yield REPLACED, run
            for run in _open_intervals(self.by_group[_OPPOSITE_GROUP.get(mark.group, "")]):
                # Who lives with somebody again has not broken up with them, and the reverse.
                if run.mark.key == mark.key and _BREAKUP in (run.mark.read.relation, mark.read.relation):
                    yield REPLACED, run


def _open_intervals(runs: list[_Interval]) -> Iterator[_Interval]:
    """Give the runs that nothing has closed, the latest first."""
    return (run for run in reversed(runs) if run.closed is None)
