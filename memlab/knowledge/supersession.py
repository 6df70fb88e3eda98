"""Which statements still hold: computed from all statements, with a log of what closed what; nothing is deleted."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
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
_SEVERAL = wordset(
    """sister brother son daughter kid child aunt uncle cousin niece nephew grandson granddaughter friend colleague
    coworker neighbour neighbor roommate flatmate housemate teammate bandmate sibling twin student stepson stepdaughter
    dog cat puppy pup kitten hamster rabbit bunny parrot horse pony fish goldfish bird pet"""
)
"""What one may have several of, so that another value stands beside the first."""
_COUNTING = {relation(phrase) for phrase in ("has", "teaches", "takes")}
_LASTS = {"stays at": 90, "is learning": 365, "is working on": 180, "trains for": 180, "is looking for": 120}
_DAYS = {relation(phrase): days for phrase, days in _LASTS.items()}
_PARTED, _TOGETHER = relation("broke up with"), {"company": "partner", "partner": "company"}
_SCHEDULED = {relation(f"{verb} {at}".strip()) for verb in ("is", "starts", "meets", "opens") for at in ("on", "at")}
_WHEN = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d[:.]\d\d|\b\d ?[ap]m\b", re.I)
_PLANNED_DAYS, _CORRECTED_WITHIN = 120, timedelta(days=7)
_NONE = pl.DataFrame()
_UNDONE = {"old": pl.String(), "new": pl.String(), "undone_at": TIMESTAMP, "why": pl.String()}
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
    :param undone: closings that were undone: ``old``, ``new``, ``undone_at``, ``why``.
    """

    facts: pl.DataFrame
    log: pl.DataFrame
    undone: pl.DataFrame
    _again: tuple[pl.DataFrame, list[Any], datetime | None] = field(default=(_NONE, [], None), repr=False)


def resolve(
    facts: pl.DataFrame,
    *,
    cardinality: Mapping[str, str] | None = None,
    encoder: Encoder | None = None,
    learn: bool = True,
    as_of: datetime | None = None,
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
    :param cardinality: predicate → ``one`` or ``many``, over what the table of relations and the facts say.
    :param encoder: matches near-equal wordings too (see :mod:`memlab.knowledge.merging`); ``None``: normal forms only.
    :param learn: learn the cardinality of other predicates from the facts of each scope.
    :param as_of: only what had reached the memory by then counts: what was believed on that date.
    :raises DataError: for facts without their columns, with repeated ids, or without any time.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge import active, resolve
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
    """
    wrong = [v for v in (cardinality or {}).values() if v not in (ONE, MANY)]
    if wrong:
        raise DataError(f"cardinality {wrong[0]!r} is not known; declare 'one' or 'many'")
    arrived = _checked(facts)
    if as_of is not None:
        arrived = arrived.filter(pl.col("recorded_at") <= as_of, pl.col("said_at") <= as_of)
    marks = _marks(arrived, encoder, {relation(name): v for name, v in (cardinality or {}).items()}, learn)
    return _state(arrived, marks, as_of, undone=pl.DataFrame(schema=_UNDONE))


def active(resolved: Resolved, *, as_of: datetime | None = None) -> pl.DataFrame:
    """List the facts that hold, one row for each however often it was said.

    :param as_of: what held then, by all that is known; ``None``: what holds last. For what was *believed* then,
        without what arrived or was corrected later, resolve with the same ``as_of``.
    """
    facts = resolved.facts.filter(pl.col("status").is_in(["active", "superseded", "ended", "expired"]))
    if as_of is None:
        return facts.filter(pl.col("status") == "active")
    return facts.filter(pl.col("valid_from") <= as_of, pl.col("valid_to").is_null() | (pl.col("valid_to") > as_of))


def undo(resolved: Resolved, old: str, new: str, *, now: datetime, why: str = "") -> Resolved:
    """Take back one closing: ``new`` no longer closes ``old``. Later statements still may.

    :param now: when it is undone.
    :raises DataError: when the log has no such row.
    """
    if resolved.log.filter(pl.col("old") == old, pl.col("new") == new).is_empty():
        raise DataError(f"the log has no row in which {new!r} closes {old!r}; give a pair of its columns old and new")
    row = pl.DataFrame([(old, new, now, why)], schema=_UNDONE, orient="row")
    return _state(*resolved._again, undone=resolved.undone.vstack(row))


def redo(resolved: Resolved, old: str, new: str) -> Resolved:
    """Let an undone closing count again.

    :raises DataError: when it was not undone.
    """
    rest = resolved.undone.filter((pl.col("old") != old) | (pl.col("new") != new))
    if rest.height == resolved.undone.height:
        raise DataError(f"the closing of {old!r} by {new!r} was not undone; give a pair of the frame undone")
    return _state(*resolved._again, undone=rest)


@dataclass
class _Mark:
    """A statement as it is resolved: ``single`` says whether its ``group`` has one value at a time (null: unknown)."""

    id: str
    scope: str
    said: datetime
    read: Statement
    subject: str
    relation: str
    key: str
    instead: str | None
    heard: str
    value: Value
    group: str = ""
    single: bool | None = None
    exact: bool = False


@dataclass
class _Run:
    """One value that is said to hold, from its first statement to what closes it."""

    mark: _Mark
    since: datetime
    members: list[_Mark]
    closed: tuple[str, datetime, str] | None = None
    corrected: str | None = None

    @property
    def head(self) -> str:
        return self.mark.id


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


def _marks(facts: pl.DataFrame, encoder: Encoder | None, declared: Mapping[str, str], learn: bool) -> list[_Mark]:
    """Read the statements, in the order in which they were said."""
    order = facts.with_row_index("row").sort("said_at", "recorded_at", "row")
    rows = order.select("fact_id", "scope", "said_at", pl.coalesce(pl.col("evidence").list.first(), "fact_id")).rows()
    texts = order.select("subject", "predicate", "object", "speaker", "text").rows()
    reads = [normal.read(*triple, speaker=speaker, text=text) for *triple, speaker, text in texts]
    keys = merging.keys(order["scope"].to_list(), reads, encoder)
    marks = [
        _Mark(fact, scope, said, read, *key, heard, value(read.value))
        for (fact, scope, said, heard), read, key in zip(rows, reads, keys, strict=True)
    ]
    guessed = _learned(marks) if learn else {}
    # Wordings that were merged share what is known of any of them.
    own, groups = ({(m.scope, m.relation): table[m.read.relation] for m in marks if m.read.relation in table}
                   for table in (declared, GROUPS))  # fmt: skip
    for mark in marks:
        key = (mark.scope, mark.relation)
        mark.group, mark.single = _grouped(mark, groups.get(key))
        if key in own or mark.single is None:
            choice = own.get(key) or guessed.get(key)
            mark.single, mark.exact = (None if choice is None else choice == ONE), True
    return marks


def _grouped(mark: _Mark, group: str | None) -> tuple[str, bool | None]:
    """Give the group that a statement's value is one of, and whether that has one value at a time."""
    read = mark.read
    if read.owned:
        return mark.relation, read.relation.rpartition(" ")[2] not in normal.stems(sorted(_SEVERAL))
    if read.relation in _SCHEDULED and _WHEN.search(read.value):
        return "when", True
    if group:
        return group, True
    words = mark.value.words
    if read.relation in _COUNTING and len(mark.value.exact) == 1 and words and mark.value.exact[0].isdigit():
        return f"number of {words[-1]}", True
    if read.relation == "be" and words[:1] == ("retir",):
        return "role", True
    return mark.relation, None


def _learned(marks: list[_Mark]) -> dict[tuple[str, str], str]:
    """Learn, for each relation of a scope, whether a subject has one value of it at a time, or many.

    Naive Bayes over what tells the two apart. When a value that was said before is said again, it is the latest one
    with probability .9 if there is one at a time (A, B, B, C), and .5 if there are many (A, B, A, B; people do come
    back to what is recent). Another value on the same day has probability .02 and .2; another value said to be new .3
    and .05. Mere sequences of different values say nothing. A tenth of relations are taken to have one value before
    anything is seen; a probability of .9 is sure enough. All of these are assumptions, not fits.
    """
    said: defaultdict[tuple[str, str], defaultdict[str, list[_Mark]]] = defaultdict(lambda: defaultdict(list))
    for mark in marks:
        if not mark.read.over and mark.read.mode == IS and mark.read.does in ("", UPDATE):
            said[mark.scope, mark.relation][mark.subject].append(mark)
    cardinality = {}
    for key, subjects in said.items():
        score = sum(_evidence(its) for its in subjects.values())
        odds = score + math.log(0.1 / 0.9)
        if odds >= math.log(9):
            cardinality[key] = ONE
        elif score < 0 and odds <= -math.log(9):
            cardinality[key] = MANY
    return cardinality


def _evidence(marks: list[_Mark]) -> float:
    """Sum the log-odds for one value at a time over the statements of one subject."""
    score, seen = 0.0, {marks[0].key}
    for before, mark in pairwise(marks):
        new = before.key != mark.key
        if mark.key in seen and len(seen) > 1 and (new or mark.said != before.said):
            score += math.log(0.1 / 0.5) if new else math.log(0.9 / 0.5)
        if new and before.said.date() == mark.said.date():
            score += math.log(0.02 / 0.2)
        if new and mark.read.does == UPDATE:
            score += math.log(0.3 / 0.05)
        seen.add(mark.key)
    return score


class _Scope:
    """What holds of one scope while its statements are read one after the other."""

    def __init__(self, undone: set[tuple[str, str]]) -> None:
        self.undone = undone
        self.runs: list[_Run] = []
        self.by_relation: defaultdict[tuple[str, str], list[_Run]] = defaultdict(list)
        self.by_group: defaultdict[tuple[str, str], list[_Run]] = defaultdict(list)
        self.last: dict[tuple[str, str], _Run] = {}

    def add(self, mark: _Mark) -> None:
        """Take in the next statement."""
        if mark.read.over:
            for ended in self._ended(mark):
                self._close(ended, mark, OVER)
            return
        since, closed = mark.said, None
        run: _Run | None = None
        if wrong := self._wrong(mark):
            since, closed = wrong.since, wrong.closed
            run = self._correct(wrong, mark)
        same = (r for r in self._alike(mark) if r.mark.key == mark.key and r.mark.read.mode == mark.read.mode)
        run = run or next(same, None)
        # A correction of what had ended already takes its place in the past, and replaces nothing.
        for rule, old in self._replaced(mark) if closed is None else ():
            if old is not run:
                self._close(old, mark, rule, since)
        if run is None:
            run = _Run(mark, since, [], closed)
            self.runs.append(run)
            self.by_relation[mark.subject, mark.relation].append(run)
            self.by_group[mark.subject, mark.group].append(run)
        run.members.append(mark)
        self.last[mark.subject, mark.relation] = run

    def _alike(self, mark: _Mark) -> Iterator[_Run]:
        """Give the open runs of a statement's subject and relation, the latest first."""
        return _open(self.by_relation[mark.subject, mark.relation])

    def _close(self, run: _Run, mark: _Mark, rule: str, at: datetime | None = None) -> None:
        if (run.head, mark.id) not in self.undone:
            run.closed = (mark.id, at or mark.said, rule)

    def _ended(self, mark: _Mark) -> list[_Run]:
        """Find what a statement says is over: the value that it names, in other words or fewer."""
        alike = [run for run in self._alike(mark) if run.mark.read.mode == mark.read.mode]
        same = [run for run in alike if run.mark.key == mark.key or not mark.key]
        ended = same or [run for run in alike if _nested(run.mark, mark)]
        if ended and mark.group == "job" and mark.read.mode == IS:
            # Who leaves a job leaves its boss.
            ended += list(_open(self.by_group[mark.subject, "boss"]))
        return ended

    def _wrong(self, mark: _Mark) -> _Run | None:
        """Find what a statement corrects."""
        if mark.read.does not in (CORRECT, HINT) or (mark.read.does == HINT and not mark.single):
            return None
        if mark.instead is not None:
            named = (run for run in reversed(self.by_relation[mark.subject, mark.relation]) if not run.corrected)
            run = next((run for run in named if run.mark.key == mark.instead), None)
        else:
            run = self.last.get((mark.subject, mark.relation))
            recent = run is not None and (mark.single or mark.said - run.members[-1].said <= _CORRECTED_WITHIN)
            run = run if recent else None
        if run is None or run.mark.key == mark.key or run.mark.read.mode != IS:
            return None
        return None if (run.head, mark.id) in self.undone else run

    def _correct(self, wrong: _Run, mark: _Mark) -> _Run | None:
        """Take a value out of history: what it closed is closed by its correction, or goes on if that is the same."""
        wrong.corrected, again = mark.id, None
        for run in self.by_group[mark.subject, mark.group]:
            if run.closed and run.closed[0] == wrong.head:
                if run.mark.key == mark.key:
                    run.closed, again = None, run
                else:
                    run.closed = (mark.id, *run.closed[1:])
        return again

    def _replaced(self, mark: _Mark) -> Iterator[tuple[str, _Run]]:
        """Find what a statement closes, and by which rule."""
        mode = mark.read.mode
        for run in self._alike(mark):
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
            for run in _open(self.by_group[mark.subject, mark.group]):
                if run.mark.read.mode == mode != NOT and not _beside(run.mark, mark):
                    yield ANOTHER, run
            for run in _open(self.by_group[mark.subject, _TOGETHER.get(mark.group, "")]):
                # Who lives with somebody again has not broken up with them, and the reverse.
                if run.mark.key == mark.key and _PARTED in (run.mark.relation, mark.relation):
                    yield ANOTHER, run
        elif mark.single is None and mark.read.does == UPDATE and mark.instead is None:
            before = self.last.get((mark.subject, mark.relation))
            if before and not before.closed and before.mark.key != mark.key and before.mark.read.mode == mode:
                yield NEW, before


def _open(runs: list[_Run]) -> Iterator[_Run]:
    return (run for run in reversed(runs) if run.closed is None and run.corrected is None)


def _beside(old: _Mark, new: _Mark) -> bool:
    """Whether two values of one group go together: they are one, or one says more of the other."""
    if old.relation != new.relation:
        return False
    return old.key == new.key or (not (old.exact and new.exact) and _nested(old, new))


def _nested(a: _Mark, b: _Mark) -> bool:
    return bool(a.key and b.key) and (a.value.within(b.value) or b.value.within(a.value))


def _state(facts: pl.DataFrame, marks: list[_Mark], now: datetime | None, *, undone: pl.DataFrame) -> Resolved:
    """Read the statements of every scope, and write down what came of each."""
    pairs = set(undone.select("old", "new").iter_rows())
    scopes: dict[str, _Scope] = {}
    latest: dict[str, datetime] = {}
    for mark in marks:
        scopes.setdefault(mark.scope, _Scope(pairs)).add(mark)
        latest[mark.scope] = mark.said
    states = {mark.id: _closing(mark) for mark in marks if mark.read.over}
    log = []
    for scope in scopes.values():
        for run in scope.runs:
            states |= _states(run, now or latest[run.mark.scope])
            if run.corrected:
                log.append((run.head, run.corrected, run.mark.said, CORRECTED))
            elif run.closed:
                log.append((run.head, *run.closed))
    columns = {
        "status": pl.String(), "superseded_by": pl.String(), "repeats": pl.String(), "valid_from": TIMESTAMP,
        "valid_to": TIMESTAMP, "n_reinforced": pl.Int32(), "last_access": TIMESTAMP, "accesses": pl.List(TIMESTAMP),
    }  # fmt: skip
    order = facts["fact_id"].to_list()
    made = pl.DataFrame([states[fact] for fact in order], schema=columns, orient="row")
    gone = pl.col("status").is_in(["superseded", "corrected", "ended", "closing", "expired"])
    gone |= (pl.col("status") == "repeat") & pl.col("superseded_by").is_not_null()
    resolved = facts.hstack(made).with_columns(superseded=gone)
    return Resolved(resolved, _log(facts, log), undone, (facts, marks, now))


def _closing(mark: _Mark) -> tuple[Any, ...]:
    return ("closing", None, None, mark.said, mark.said, 0, mark.said, [mark.said])


def _states(run: _Run, present: datetime) -> dict[str, tuple[Any, ...]]:
    """Give the state of each statement of a run."""
    if run.corrected:
        return {
            mark.id: ("corrected", run.corrected, None, mark.said, mark.said, 0, mark.said, [mark.said])
            for mark in run.members
        }
    heard: dict[str, datetime] = {}
    for mark in run.members:
        heard.setdefault(mark.heard, mark.said)
    accesses = sorted(heard.values())
    days = _PLANNED_DAYS if run.mark.read.mode == PLAN else _DAYS.get(run.mark.read.relation)
    until = accesses[-1] + timedelta(days=days) if days else None
    by, at, rule = run.closed or (None, None, "")
    if by is None and until is not None and until <= present:
        status, at = "expired", until
    else:
        status = "active" if by is None else "ended" if rule == OVER else "superseded"
    states: dict[str, tuple[Any, ...]] = {
        run.head: (status, by, None, run.since, at, len(accesses) - 1, accesses[-1], accesses)
    }
    for mark in run.members[1:]:
        states[mark.id] = ("repeat", by, run.head, run.since, at, 0, accesses[-1], accesses)
    return states


def _log(facts: pl.DataFrame, closings: list[tuple[str, str, datetime, str]]) -> pl.DataFrame:
    rows = pl.DataFrame(closings, schema={"old": pl.String(), "new": pl.String(), "at": TIMESTAMP, "rule": pl.String()},
                        orient="row")  # fmt: skip
    old = facts.select(old="fact_id", old_object="object", old_known="recorded_at")
    new = facts.select(
        "scope", "subject", "predicate", "evidence", new="fact_id", new_object="object", new_known="recorded_at",
        by=pl.coalesce("speaker", "source"),
    )  # fmt: skip
    late = pl.when(pl.col("old_known") > pl.col("new_known")).then(pl.lit(" (the old arrived late)"))
    log = rows.join(old, on="old", how="left").join(new, on="new", how="left")
    return log.select(
        "scope", "subject", "predicate", "old", "new", "old_object", "new_object", "at",
        pl.max_horizontal("old_known", "new_known").alias("recorded_at"), pl.col("rule") + late.otherwise(pl.lit("")),
        "by", "evidence",
    ).sort("recorded_at", "at", "old")  # fmt: skip
