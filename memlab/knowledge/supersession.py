"""Which statements still hold: computed from all statements, with a log of what closed what; nothing is deleted."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge import merging, normal
from memlab.knowledge.normal import IS, NOT, PLAN, Statement, Value, relation, value
from memlab.records import TIMESTAMP, Fact, schema
from memlab.text.words import wordset

ONE, MANY = "one", "many"
_SINGLE = {
    "home": ("lives in", "stays at"), "company": ("lives with",), "school": ("studies at",), "pay": ("earns",),
    "job": ("works at", "starts at", "works for"), "role": ("works as",), "boss": ("reports to",),
    "subject": ("studies",), "partner": ("is dating", "is engaged to", "is married to", "broke up with"),
    "age": ("is years old",), "vehicle": ("drives",), "birth": ("was born on",), "name": ("is named",),
    "key": ("API key",), "email": ("email address",), "phone": ("phone number",),
}  # fmt: skip
GROUPS = {relation(phrase): group for group, phrases in _SINGLE.items() for phrase in phrases}
"""Relations of which a subject has one value at a time, by normal form; those of one group replace each other."""
_KIN = wordset(
    """sister brother son daughter kid child aunt uncle cousin niece nephew grandson granddaughter friend colleague
    coworker neighbour neighbor roommate flatmate housemate teammate bandmate sibling twin student stepson stepdaughter
    dog cat puppy pup kitten hamster rabbit bunny parrot horse pony fish goldfish bird pet"""
)
_SEVERAL = normal.stems(sorted(_KIN))
"""What one may have several of, so that another value stands beside the first."""
_COUNTED = {relation(phrase) for phrase in ("has", "teaches", "takes")}
_SCHEDULED = {relation(f"{verb} {at}".strip()) for verb in ("is", "starts", "meets", "opens") for at in ("on", "at")}
_NUMBER = re.compile(r"\d+\b")
_WHEN = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d[:.]\d\d|\b\d ?[ap]m\b", re.I)
_PLANNED = timedelta(days=120)
_PARTED, _TOGETHER = relation("broke up with"), {"company": "partner", "partner": "company"}
OVER, ANOTHER, SO, DONE, CORRECTED = "said to be over", "another value", "said to be so", "carried out", "corrected"
_STATE = {
    "status": pl.String(), "superseded": pl.Boolean(), "superseded_by": pl.String(), "repeats": pl.String(),
    "valid_from": TIMESTAMP, "valid_to": TIMESTAMP, "n_reinforced": pl.Int32(), "last_access": TIMESTAMP,
    "accesses": pl.List(TIMESTAMP),
}  # fmt: skip
_LOG = {
    **dict.fromkeys(("scope", "subject", "predicate", "old", "new", "old_object", "new_object"), pl.String()),
    "at": TIMESTAMP, "recorded_at": TIMESTAMP, "rule": pl.String(), "by": pl.String(), "evidence": pl.List(pl.String()),
}  # fmt: skip

_What = tuple[str, str, str, str, bool, str]


@dataclass(frozen=True)
class Resolved:
    """What holds, and why the rest does not.

    :param facts: every statement, in its order, with ``status`` (``active``; ``repeat`` of an earlier statement;
        ``superseded``, ``corrected`` or ``ended``; ``expired`` for a plan not stated again; ``closing`` for a
        statement that only ends something), ``superseded`` (true for the last five), ``superseded_by``, ``repeats``
        (the statement that it reinforces), ``valid_from``, ``valid_to``, ``n_reinforced``, ``last_access`` and
        ``accesses`` (times of all its mentions: statements that were read from the same turn are one).
    :param log: one row per closing: ``old``, ``new`` (fact ids), ``at`` (when the old stopped to hold),
        ``recorded_at`` (when that could first be known), ``rule``, ``by`` (who said so), ``evidence`` (turn ids), and
        both values.
    """

    facts: pl.DataFrame
    log: pl.DataFrame


def resolve(
    facts: pl.DataFrame,
    *,
    cardinality: Mapping[str, str] | None = None,
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
    :param cardinality: predicate → ``one`` or ``many``, over what :data:`GROUPS` and the wording say.
    :param encoder: matches near-equal values too (see :mod:`memlab.knowledge.merging`); ``None``: normal forms only.
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
    wrong = [v for v in (cardinality or {}).values() if v not in (ONE, MANY)]
    if wrong:
        raise DataError(f"cardinality {wrong[0]!r} is not known; declare 'one' or 'many'")
    arrived = _checked(facts)
    if as_of is not None:
        arrived = arrived.filter(pl.col("recorded_at") <= as_of, pl.col("said_at") <= as_of)
    single = {relation(name): choice == ONE for name, choice in (cardinality or {}).items()}
    marks = list(_marks(arrived, encoder, single))
    what = {mark.id: mark.what for mark in marks}
    kept = {(what[old], what[new]) for old, new in undone if old in what and new in what}
    subjects: defaultdict[tuple[str, str], list[_Mark]] = defaultdict(list)
    for mark in marks:
        subjects[mark.fact["scope"], mark.subject].append(mark)
    runs = [run for its in subjects.values() for run in _history(its, kept)]
    present = dict(arrived.group_by("scope").agg(pl.col("said_at").max()).iter_rows())
    said = arrived.select("fact_id", "said_at").iter_rows()
    # What no run has for a member only ends something.
    states = {fact: ("closing", True, None, None, at, at, 0, at, [at]) for fact, at in said}
    states |= {fact: state for run in runs for fact, state in run.states(as_of or present[run.mark.fact["scope"]])}
    made = pl.DataFrame(list(states.values()), schema=_STATE, orient="row")
    log = pl.DataFrame([run.closing() for run in runs if run.closed], schema=_LOG, orient="row")
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


@dataclass(frozen=True, eq=False)
class _Mark:
    """A statement as it is resolved.

    :param fact: its row.
    :param key: of its value, equal for values that are one; ``instead``: of the value that it replaces.
    :param group: what its value is one of; ``single``: whether a subject has one of these at a time.
    """

    id: str
    said: datetime
    fact: dict[str, Any]
    read: Statement
    value: Value
    subject: str
    key: str
    instead: str | None
    group: str
    single: bool

    @property
    def what(self) -> _What:
        """What it says, in whatever words and whenever: what an undo is about."""
        read = self.read
        return self.fact["scope"], self.subject, read.relation, read.mode, read.over, self.key

    def nested(self, other: _Mark) -> bool:
        """Whether one of two values says all that the other says."""
        return bool(self.key and other.key) and (self.value.within(other.value) or other.value.within(self.value))

    def beside(self, old: _Mark) -> bool:
        """Whether two values of one group go together: they are one, or one says more, or another thing."""
        if old.read.relation != self.read.relation:
            return False
        # "Her wrist is broken" says nothing against "her wrist is five weeks out of plaster".
        other = self.read.owned and bool(old.value.exact) != bool(self.value.exact)
        return other or old.key == self.key or old.nested(self)


@dataclass(eq=False)
class _Run:
    """One value that is said to hold, from its first statement to what closes it: which statement, when, and why."""

    mark: _Mark
    since: datetime
    closed: tuple[_Mark, datetime, str] | None = None
    members: list[_Mark] = field(default_factory=list)

    def states(self, present: datetime) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Give the state of each statement by its id; columns as in ``_STATE``."""
        closer, at, rule = self.closed or (None, None, "")
        by = closer and closer.id
        if rule == CORRECTED:
            for m in self.members:
                yield m.id, ("corrected", True, by, None, m.said, m.said, 0, m.said, [m.said])
            return
        heard: dict[str, datetime] = {}
        for m in self.members:
            heard.setdefault(next(iter(m.fact["evidence"] or ()), m.id), m.said)
        accesses = sorted(heard.values())
        status = "active" if by is None else "ended" if rule == OVER else "superseded"
        if by is None and self.mark.read.mode == PLAN and accesses[-1] + _PLANNED <= present:
            status, at = "expired", accesses[-1] + _PLANNED
        for m in self.members[1:]:
            yield m.id, ("repeat", by is not None, by, self.mark.id, self.since, at, 0, accesses[-1], accesses)
        more = len(accesses) - 1
        yield self.mark.id, (status, status != "active", by, None, self.since, at, more, accesses[-1], accesses)

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


def _checked(facts: pl.DataFrame) -> pl.DataFrame:
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


def _marks(facts: pl.DataFrame, encoder: Encoder | None, declared: Mapping[str, bool]) -> Iterator[_Mark]:
    """Read the statements, in the order in which they were said."""
    rows = facts.sort("said_at", "recorded_at", maintain_order=True).to_dicts()
    reads = [normal.read(row["subject"], row["predicate"], row["object"]) for row in rows]
    owners = [(row["scope"], value(read.subject).key) for row, read in zip(rows, reads, strict=True)]
    texts = [(owner, text) for owner, read in zip(owners, reads, strict=True) for text in (read.value, read.instead)]
    keys: dict[Any, str] = merging.keys([(owner, text) for owner, text in texts if text is not None], encoder)
    for row, read, owner in zip(rows, reads, owners, strict=True):
        its, key, instead = value(read.value), keys[owner, read.value], keys.get((owner, read.instead))
        group, single = _grouped(read, its)
        single = declared.get(read.relation, single)
        yield _Mark(row["fact_id"], row["said_at"], row, read, its, owner[1], key, instead, group, single)


def _grouped(read: Statement, its: Value) -> tuple[str, bool]:
    """Give the group that a statement's value is one of, and whether a subject has one of these at a time."""
    if read.owned:
        return read.relation, read.relation.rpartition(" ")[2] not in _SEVERAL
    if read.relation in _SCHEDULED and _WHEN.search(read.value):
        return "when", True
    if read.relation in GROUPS:
        return GROUPS[read.relation], True
    if read.relation in _COUNTED and len(its.exact) == 1 and its.words and _NUMBER.match(normal.counted(read.value)):
        # "Seven years", not "year 7".
        return f"number of {its.words[-1]}", True
    return read.relation, False


def _history(marks: list[_Mark], undone: Collection[tuple[_What, _What]]) -> list[_Run]:
    """Give the values that a subject is said to have one after the other, and those that were corrected.

    A correction takes the place of the value that was wrong, and the statements are read again without that value.
    """
    stream: list[tuple[_Mark, datetime | None]] = [(mark, None) for mark in marks]
    corrected: list[_Run] = []
    while True:
        values = _Values(undone)
        for mark, since in stream:
            wrong = values.wrong(mark) if since is None else None
            if wrong:
                break
            values.add(mark, since or mark.said)
        else:
            return corrected + values.runs
        wrong.closed = (mark, wrong.mark.said, CORRECTED)
        corrected.append(wrong)
        gone = [*wrong.members[1:], mark]
        stream = [(mark, wrong.since) if old is wrong.mark else (old, at) for old, at in stream if old not in gone]


class _Values:
    """What holds of a subject while its statements are read."""

    def __init__(self, undone: Collection[tuple[_What, _What]]) -> None:
        self.undone = undone
        self.runs: list[_Run] = []
        self.by_relation: defaultdict[str, list[_Run]] = defaultdict(list)
        self.by_group: defaultdict[str, list[_Run]] = defaultdict(list)

    def add(self, mark: _Mark, since: datetime) -> None:
        """Take in the next statement, which holds since then."""
        if mark.read.over:
            for ended in self._ended(mark):
                self._close(ended, mark, since, OVER)
            return
        same = (old for old in self._open(mark) if old.mark.key == mark.key and old.mark.read.mode == mark.read.mode)
        new = _Run(mark, since)
        run = next(same, new)
        for rule, old in self._replaced(mark):
            if old is not run:
                self._close(old, mark, since, rule)
        if run is new:
            for runs in (self.runs, self.by_relation[mark.read.relation], self.by_group[mark.group]):
                runs.append(run)
        run.members.append(mark)

    def wrong(self, mark: _Mark) -> _Run | None:
        """Find what a statement corrects."""
        if mark.instead in (None, mark.key) or mark.read.over:
            return None
        runs = reversed(self.by_relation[mark.read.relation])
        run = next((run for run in runs if run.mark.key == mark.instead), None)
        return run if run and run.mark.read.mode == IS and (run.mark.what, mark.what) not in self.undone else None

    def _open(self, mark: _Mark, group: str | None = None) -> Iterator[_Run]:
        """Give the open runs of a statement's relation (or of a group), the latest first."""
        runs = self.by_relation[mark.read.relation] if group is None else self.by_group[group]
        return (run for run in reversed(runs) if run.closed is None)

    def _close(self, run: _Run, mark: _Mark, at: datetime, rule: str) -> None:
        """Close a run, unless that was undone."""
        if (run.mark.what, mark.what) not in self.undone:
            run.closed = (mark, at, rule)

    def _ended(self, mark: _Mark) -> list[_Run]:
        """Find what a statement says is over: the value that it names, in other words or fewer."""
        runs = [run for run in self._open(mark) if run.mark.read.mode == mark.read.mode]
        same = [run for run in runs if run.mark.key == mark.key or not mark.key]
        ended = same or [run for run in runs if run.mark.nested(mark)]
        if ended and mark.group == "job" and mark.read.mode == IS:
            # Who leaves a job leaves its boss.
            ended += self._open(mark, "boss")
        return ended

    def _replaced(self, mark: _Mark) -> Iterator[tuple[str, _Run]]:
        """Find what a statement closes, and by which rule."""
        mode = mark.read.mode
        for run in self._open(mark):
            other, nested = run.mark.read.mode, run.mark.key == mark.key or run.mark.nested(mark)
            if mode == IS and other == NOT and run.mark.key == mark.key:
                yield SO, run
            elif mode == IS and other == PLAN and nested:
                yield DONE, run
            elif mode == NOT and other != NOT and nested:
                yield OVER, run
        if mark.single:
            for run in self._open(mark, mark.group):
                if run.mark.read.mode == mode != NOT and not mark.beside(run.mark):
                    yield ANOTHER, run
            for run in self._open(mark, _TOGETHER.get(mark.group, "")):
                # Who lives with somebody again has not broken up with them, and the reverse.
                if run.mark.key == mark.key and _PARTED in (run.mark.read.relation, mark.read.relation):
                    yield ANOTHER, run
