"""Which statements still hold: computed from all statements, with a log of what closed what; nothing is deleted."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge import merging, normal
from memlab.knowledge.normal import CORRECT, HINT, IS, NOT, PLAN, UPDATE, Statement, Value, relation, value
from memlab.language.words import wordset
from memlab.records import TIMESTAMP, Fact, schema

ONE, MANY = "one", "many"
SOURCES = ("stated", "system", "observed", "inferred")
_SINGLE = {
    "home": ("lives in", "stays at"), "company": ("lives with",), "school": ("studies at",), "pay": ("earns",),
    "job": ("works at", "starts at", "works for"), "role": ("works as",), "boss": ("reports to",),
    "subject": ("studies",), "partner": ("is dating", "is engaged to", "is married to", "broke up with"),
    "age": ("is years old",), "vehicle": ("drives",), "birth": ("was born on",), "name": ("is named",),
    "key": ("API key",), "email": ("email address",), "phone": ("phone number",),
}  # fmt: skip
GROUPS = {relation(phrase): group for group, phrases in _SINGLE.items() for phrase in phrases}
"""Relations of which a subject has one value at a time, by normal form; those of one group replace each other."""
_SEVERAL = normal.stems(
    sorted(
        wordset(
            """sister brother son daughter kid child aunt uncle cousin niece nephew grandson granddaughter friend
            colleague coworker neighbour neighbor roommate flatmate housemate teammate bandmate sibling twin student
            stepson stepdaughter dog cat puppy pup kitten hamster rabbit bunny parrot horse pony fish goldfish bird
            pet"""
        )
    )
)
"""What one may have several of, so that another value stands beside the first."""
_COUNTED = {relation(phrase) for phrase in ("has", "teaches", "takes")}
_SCHEDULED = {relation(f"{verb} {at}".strip()) for verb in ("is", "starts", "meets", "opens") for at in ("on", "at")}
_NUMBER = re.compile(r"\d+\b")
_WHEN = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d[:.]\d\d|\b\d ?[ap]m\b", re.I)
_LASTS = {"stays at": 90, "is learning": 365, "is working on": 180, "trains for": 180, "is looking for": 120}
_DAYS = {relation(phrase): days for phrase, days in _LASTS.items()}
_PLANNED_DAYS, _CORRECTED_WITHIN = 120, timedelta(days=7)
_PARTED, _TOGETHER = relation("broke up with"), {"company": "partner", "partner": "company"}
OVER, ANOTHER, REPLACED, NEW, SO, DONE, CORRECTED = (
    "said to be over", "another value", "said to be replaced", "said to be new", "said to be so", "carried out",
    "corrected",
)  # fmt: skip


@dataclass(frozen=True)
class Resolved:
    """What holds, and why the rest does not.

    :param facts: every statement, in its order, with ``status`` (``active``; ``repeat`` of an earlier statement;
        ``superseded``, ``corrected`` or ``ended``; ``expired`` for a plan or a stay not stated again; ``closing`` for a
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

    - the same value again reinforces; another value supersedes where the relation has one value at a time;
    - where it has many, or where that is unknown, another value stands beside the old, unless the statement says that
      it replaces: "is now B" (unknown only), "B instead of A", "from A to B";
    - "no longer", "used to", "not … any more" and a denial end the value that they name;
    - "I meant B", "not A but B", "B, not A" correct: A never held, and B holds from when A was said. A bare "actually"
      corrects where there is one value. Without a named value the statement before is meant (elsewhere than with one
      value at a time: of the last seven days);
    - a plan ends when it has come about, and expires after 120 days without a word.

    An older statement that arrives late takes its place in that order, so it is superseded from the start.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param cardinality: predicate → ``one`` or ``many``, over what the table of relations says.
    :param encoder: matches near-equal wordings too (see :mod:`memlab.knowledge.merging`); ``None``: normal forms only.
    :param as_of: only what had reached the memory by then counts: what was believed on that date.
    :param undone: closings, by the columns ``old`` and ``new`` of the log, that do not count, nor when ``new`` is said
        again; another value may close the same fact later.
    :raises DataError: for facts without their columns, with repeated ids, or without any time.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge import active
    >>> march, june = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    >>> facts = frame(Fact, [
    ...     Fact("f1", "u", "my API key", "is", "sk-1111", "stated", ["u/s1/1"], march),
    ...     Fact("f2", "u", "my API key", "is now", "sk-2222", "stated", ["u/s9/4"], june),
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
    scopes: dict[str, _Scope] = {}
    for mark in _marks(arrived, encoder, single):
        scopes.setdefault(mark.scope, _Scope(frozenset(undone))).add(mark)
    return _written(arrived, list(scopes.values()), as_of)


def active(resolved: Resolved, *, as_of: datetime | None = None) -> pl.DataFrame:
    """List the facts that hold, one row for each however often it was said.

    :param as_of: what held then, by all that is known; ``None``: what holds last. For what was *believed* then,
        without what arrived or was corrected later, resolve with the same ``as_of``.
    """
    facts = resolved.facts.filter(pl.col("status").is_in(["active", "superseded", "ended", "expired"]))
    if as_of is None:
        return facts.filter(pl.col("status") == "active")
    return facts.filter(pl.col("valid_from") <= as_of, pl.col("valid_to").is_null() | (pl.col("valid_to") > as_of))


@dataclass(frozen=True)
class _Mark:
    """A statement as it is resolved.

    :param heard: the turn that it was read from.
    :param key: of its value, equal for values that are one; ``instead``: of the value that it replaces.
    :param group: what its value is one of; ``single``: whether a subject has one of these at a time, if that is known.
    """

    id: str
    scope: str
    said: datetime
    heard: str
    read: Statement
    value: Value
    subject: str
    key: str
    instead: str | None
    group: str
    single: bool | None


@dataclass
class _Run:
    """One value that is said to hold, from its first statement to what closes it: by which statement, when, why."""

    mark: _Mark
    since: datetime
    members: list[_Mark]
    closed: tuple[str, datetime, str] | None = None

    @property
    def corrected(self) -> bool:
        return self.closed is not None and self.closed[2] == CORRECTED


def _checked(facts: pl.DataFrame) -> pl.DataFrame:
    """Fill optional columns and refuse what cannot be resolved."""
    expected = schema(Fact)
    missing = [name for name in list(expected)[:8] if name not in facts.columns]
    if missing:
        raise DataError(f"facts have no column {missing[0]!r}; expected {', '.join(expected)}")
    filled = facts.with_columns(pl.lit(None, expected[n]).alias(n) for n in expected if n not in facts.columns)
    filled = filled.with_columns(pl.col(name).cast(dtype) for name, dtype in expected.items())
    said = pl.coalesce("asserted_at", "recorded_at")
    faults = {
        "fact id {!r} stands twice; ids are unique": pl.col("fact_id").is_duplicated(),
        f"fact {{!r}} has an unknown source; choose from {', '.join(SOURCES)}": ~pl.col("source").is_in(SOURCES),
        "fact {!r} has no time; give asserted_at or recorded_at": said.is_null(),
    }
    for fault, where in faults.items():
        if len(found := filled.filter(where)["fact_id"]):
            raise DataError(fault.format(found[0]))
    return filled.with_columns(said_at=said, recorded_at=pl.coalesce("recorded_at", "asserted_at"))


def _marks(facts: pl.DataFrame, encoder: Encoder | None, declared: Mapping[str, bool]) -> Iterator[_Mark]:
    """Read the statements, in the order in which they were said."""
    rows = facts.sort("said_at", "recorded_at", maintain_order=True).to_dicts()
    reads = [
        normal.read(row["subject"], row["predicate"], row["object"], speaker=row["speaker"], text=row["text"])
        for row in rows
    ]
    keys = merging.keys([row["scope"] for row in rows], reads, encoder)
    for row, read, key in zip(rows, reads, keys, strict=True):
        heard = next(iter(row["evidence"] or ()), row["fact_id"])
        its = value(read.value)
        group, single = _grouped(read, its)
        single = declared.get(read.relation, single)
        yield _Mark(row["fact_id"], row["scope"], row["said_at"], heard, read, its, *key, group, single)


def _grouped(read: Statement, its: Value) -> tuple[str, bool | None]:
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
    if read.relation == "be" and its.words[:1] == ("retir",):
        return "role", True
    return read.relation, None


class _Scope:
    """What holds of one scope while its statements are read one after the other."""

    def __init__(self, undone: frozenset[tuple[str, str]]) -> None:
        self.undone = undone
        self.marks: list[_Mark] = []
        self.runs: list[_Run] = []
        self.by_relation: defaultdict[tuple[str, str], list[_Run]] = defaultdict(list)
        self.by_group: defaultdict[tuple[str, str], list[_Run]] = defaultdict(list)
        self.last: dict[tuple[str, str], _Run] = {}

    def add(self, mark: _Mark) -> None:
        """Take in the next statement."""
        self.marks.append(mark)
        if mark.read.over:
            for ended in self._ended(mark):
                self._close(ended, mark, mark.said, OVER)
            return
        new = _Run(mark, mark.said, [])
        run: _Run | None = None
        if wrong := self._wrong(mark):
            new.since, new.closed = wrong.since, wrong.closed
            run = self._correct(wrong, mark)
        same = (old for old in self._open(mark) if old.mark.key == mark.key and old.mark.read.mode == mark.read.mode)
        run = run or next(same, new)
        # A correction of what had ended already takes its place in the past, and replaces nothing.
        for rule, old in self._replaced(mark) if new.closed is None else ():
            # What was undone stays so when the newer value is said again.
            if old is not run and (old.mark.id, run.mark.id) not in self.undone:
                self._close(old, mark, new.since, rule)
        if run is new:
            self.runs.append(run)
            self.by_relation[mark.subject, mark.read.relation].append(run)
            self.by_group[mark.subject, mark.group].append(run)
        run.members.append(mark)
        self.last[mark.subject, mark.read.relation] = run

    def _open(self, mark: _Mark, group: str | None = None) -> Iterator[_Run]:
        """Give the open runs of a statement's subject and relation (or of a group), the latest first."""
        own = self.by_relation[mark.subject, mark.read.relation]
        runs = own if group is None else self.by_group[mark.subject, group]
        return (run for run in reversed(runs) if run.closed is None)

    def _close(self, run: _Run, mark: _Mark, at: datetime, rule: str) -> None:
        if (run.mark.id, mark.id) not in self.undone:
            run.closed = (mark.id, at, rule)

    def _ended(self, mark: _Mark) -> list[_Run]:
        """Find what a statement says is over: the value that it names, in other words or fewer."""
        alike = [run for run in self._open(mark) if run.mark.read.mode == mark.read.mode]
        same = [run for run in alike if run.mark.key == mark.key or not mark.key]
        ended = same or [run for run in alike if _nested(run.mark, mark)]
        if ended and mark.group == "job" and mark.read.mode == IS:
            # Who leaves a job leaves its boss.
            ended += self._open(mark, "boss")
        return ended

    def _wrong(self, mark: _Mark) -> _Run | None:
        """Find what a statement corrects."""
        if mark.read.does not in (CORRECT, HINT) or (mark.read.does == HINT and not mark.single):
            return None
        run = self.last.get((mark.subject, mark.read.relation))
        if mark.instead is not None:
            runs = reversed(self.by_relation[mark.subject, mark.read.relation])
            run = next((run for run in runs if run.mark.key == mark.instead and not run.corrected), None)
        elif run and not mark.single and mark.said - run.members[-1].said > _CORRECTED_WITHIN:
            run = None
        if run is None or run.mark.key == mark.key or run.mark.read.mode != IS:
            return None
        return None if (run.mark.id, mark.id) in self.undone else run

    def _correct(self, wrong: _Run, mark: _Mark) -> _Run | None:
        """Take a value out of history: what it closed is closed by its correction, or goes on if that is the same.

        :returns: what goes on, if anything does.
        """
        again = None
        for run in self.by_group[mark.subject, mark.group]:
            if run.closed and run.closed[0] == wrong.mark.id and not run.corrected:
                if run.mark.key == mark.key:
                    run.closed, again = wrong.closed, run
                else:
                    run.closed = (mark.id, *run.closed[1:])
        wrong.closed = (mark.id, wrong.mark.said, CORRECTED)
        if again is None or again.closed:
            return again
        for run in [run for run in self._open(mark) if run is not again and run.mark.key == mark.key]:
            # What was said again after the wrong value had never stopped to hold.
            again.members += run.members
            for runs in (self.runs, self.by_relation[mark.subject, mark.read.relation],
                         self.by_group[mark.subject, mark.group]):  # fmt: skip
                runs.remove(run)
        return again

    def _replaced(self, mark: _Mark) -> Iterator[tuple[str, _Run]]:
        """Find what a statement closes, and by which rule."""
        mode = mark.read.mode
        for run in self._open(mark):
            other, nested = run.mark.read.mode, run.mark.key == mark.key or _nested(run.mark, mark)
            if mode == IS and other == NOT and run.mark.key == mark.key:
                yield SO, run
            elif mode == IS and other == PLAN and nested:
                yield DONE, run
            elif mode == NOT and other != NOT and nested:
                yield OVER, run
            elif mode == other == IS and mark.read.does == UPDATE and run.mark.key == mark.instead:
                yield REPLACED, run
        if mark.single:
            for run in self._open(mark, mark.group):
                if run.mark.read.mode == mode != NOT and not _beside(run.mark, mark):
                    yield ANOTHER, run
            for run in self._open(mark, _TOGETHER.get(mark.group, "")):
                # Who lives with somebody again has not broken up with them, and the reverse.
                if run.mark.key == mark.key and _PARTED in (run.mark.read.relation, mark.read.relation):
                    yield ANOTHER, run
        elif mark.single is None and mark.read.does == UPDATE and mark.instead is None:
            before = self.last.get((mark.subject, mark.read.relation))
            if before and not before.closed and before.mark.key != mark.key and before.mark.read.mode == mode:
                yield NEW, before


def _beside(old: _Mark, new: _Mark) -> bool:
    """Whether two values of one group go together: they are one, one says more of the other, or of something else."""
    if old.read.relation != new.read.relation:
        return False
    # "Her wrist is broken" says nothing against "her wrist is five weeks out of plaster".
    other = new.read.owned and bool(old.value.exact) != bool(new.value.exact)
    return other or old.key == new.key or _nested(old, new)


def _nested(a: _Mark, b: _Mark) -> bool:
    return bool(a.key and b.key) and (a.value.within(b.value) or b.value.within(a.value))


def _written(facts: pl.DataFrame, scopes: list[_Scope], now: datetime | None) -> Resolved:
    """Write down what came of each statement, and the log."""
    states: dict[str, tuple[Any, ...]] = {}
    log: list[tuple[str, str, datetime, str]] = []
    for scope in scopes:
        for mark in scope.marks:
            # What no run has for a member only ends something.
            states[mark.id] = ("closing", None, None, mark.said, mark.said, 0, mark.said, [mark.said])
        for run in scope.runs:
            states |= _states(run, now or scope.marks[-1].said)
            if run.closed:
                log.append((run.mark.id, *run.closed))
    columns = {
        "status": pl.String(), "superseded_by": pl.String(), "repeats": pl.String(), "valid_from": TIMESTAMP,
        "valid_to": TIMESTAMP, "n_reinforced": pl.Int32(), "last_access": TIMESTAMP, "accesses": pl.List(TIMESTAMP),
    }  # fmt: skip
    made = pl.DataFrame([states[fact] for fact in facts["fact_id"]], schema=columns, orient="row")
    gone = pl.col("status").is_in(["superseded", "corrected", "ended", "closing", "expired"])
    gone |= (pl.col("status") == "repeat") & pl.col("superseded_by").is_not_null()
    return Resolved(facts.hstack(made).with_columns(superseded=gone), _log(facts, log))


def _states(run: _Run, present: datetime) -> dict[str, tuple[Any, ...]]:
    """Give the state of each statement of a run."""
    by, at, rule = run.closed or (None, None, "")
    if run.corrected:
        return {m.id: ("corrected", by, None, m.said, m.said, 0, m.said, [m.said]) for m in run.members}
    heard: dict[str, datetime] = {}
    for mark in run.members:
        heard.setdefault(mark.heard, mark.said)
    accesses = sorted(heard.values())
    days = _PLANNED_DAYS if run.mark.read.mode == PLAN else _DAYS.get(run.mark.read.relation)
    until = accesses[-1] + timedelta(days=days) if days else None
    status = "active" if by is None else "ended" if rule == OVER else "superseded"
    if by is None and until is not None and until <= present:
        status, at = "expired", until
    states = {m.id: ("repeat", by, run.mark.id, run.since, at, 0, accesses[-1], accesses) for m in run.members[1:]}
    head = (status, by, None, run.since, at, len(accesses) - 1, accesses[-1], accesses)
    return {**states, run.mark.id: head}


def _log(facts: pl.DataFrame, closings: list[tuple[str, str, datetime, str]]) -> pl.DataFrame:
    columns = {"old": pl.String(), "new": pl.String(), "at": TIMESTAMP, "rule": pl.String()}
    old = facts.select(old="fact_id", old_object="object", old_known="recorded_at")
    new = facts.select(
        "scope", "subject", "predicate", "evidence", new="fact_id", new_object="object", new_known="recorded_at",
        by=pl.coalesce("speaker", "source"),
    )  # fmt: skip
    late = pl.when(pl.col("old_known") > pl.col("new_known")).then(pl.lit(" (the old arrived late)"))
    log = pl.DataFrame(closings, schema=columns, orient="row").join(old, on="old", how="left")
    return log.join(new, on="new", how="left").select(
        "scope", "subject", "predicate", "old", "new", "old_object", "new_object", "at",
        pl.max_horizontal("old_known", "new_known").alias("recorded_at"), pl.col("rule") + late.otherwise(pl.lit("")),
        "by", "evidence",
    ).sort("recorded_at", "at", "old")  # fmt: skip
