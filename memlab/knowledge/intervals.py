"""Intervals: the time in which what a fact states holds, with its statements and what closed it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from memlab.knowledge.periods import Period
from memlab.knowledge.statements import Meaning, Statement

REPLACED, ENDED, AFFIRMED = "another value", "said to be over", "said to be so"
CAME_ABOUT, CANCELLED, CORRECTED = "came about", "cancelled", "corrected"
"""Rules by which a statement closes the interval of an earlier one."""

_STATUSES = {
    REPLACED: "superseded",
    AFFIRMED: "superseded",
    CAME_ABOUT: "superseded",
    ENDED: "ended",
    CANCELLED: "ended",
    CORRECTED: "corrected",
}
_OVER = ("superseded", "corrected", "ended")


class Closing(NamedTuple):
    """What closed an interval.

    :param by: the statement; ``within``: the interval that holds it, ``None`` for a correction.
    :param at: when the closed one stopped to hold; ``is_dated``: whether anybody said so.
    """

    by: Statement
    at: datetime
    is_dated: bool
    rule: str
    within: Interval | None


class State(NamedTuple):
    """The state of a fact; the columns that ``resolve`` adds."""

    status: str
    superseded: bool
    superseded_by: str | None
    repeats: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    n_reinforced: int
    last_access: datetime | None


@dataclass(eq=False)
class Interval:
    """The time in which what a statement states holds.

    :param statements: the statement that began it and those that repeat it, in the order in which they
        were read.
    :param begins: from when it holds; ``is_dated``: whether anybody said so.
    :param until: the time until the end of which it holds; ``None``: nobody said.
    :param due: of a plan the time that it is for.
    :param meanings: what its statements state; ``said_in``: ids of the turns in which they were said.
    :param made: the intervals that its statements closed.
    """

    statements: list[Statement]
    begins: datetime
    is_dated: bool
    until: Period | None
    due: Period | None
    meanings: set[Meaning]
    said_in: set[str]
    closed: Closing | None
    made: list[Interval]

    @classmethod
    def of(cls, first: Statement) -> Interval:
        """Begin the interval of a statement."""
        begins, is_dated = first.begins, first.is_dated
        interval = cls([], begins, is_dated, None, None, set(), set(), None, [])
        interval.add(first)
        return interval

    @property
    def first(self) -> Statement:
        return self.statements[0]

    @property
    def kind(self) -> str:
        return self.first.kind

    @property
    def holds(self) -> bool:
        return self.first.meaning.holds

    @property
    def ends(self) -> datetime | None:
        """When it ends by what was said of it itself: the end of ``until`` of a state or a rule."""
        if self.until is None or self.kind in ("event", "plan"):
            return None
        return max(self.until.end, self.begins)

    def is_open(self, at: datetime) -> bool:
        """Whether it still goes on at a time, as far as what was read says.

        One that is closed from a later date on is open before it, unless it never came into force.
        """
        ends = self.ends
        if ends is not None and ends <= at:
            return False
        if self.closed is None:
            return True
        return self.closed.at > max(at, self.begins)

    def is_repeated_by(self, statement: Statement) -> bool:
        """Whether a statement of equal meaning is about this interval, not about another time."""
        if self.kind == "event":
            return _is_same_date(self.first.fact["since"], statement.fact["since"])
        if self.kind == "plan" or statement.until is None:
            return True
        return statement.until.end > self.begins

    def add(self, statement: Statement) -> None:
        """Add a statement: the one that begins it, or one that repeats it and may date it better."""
        self.statements.append(statement)
        self.meanings.add(statement.meaning)
        self.said_in.update(statement.evidence)
        if statement.until is not None:
            self.until = statement.until
        if self.kind == "plan":
            self.due = statement.until or statement.since or self.due
        elif statement.since is not None:
            self._begin_by(statement.since.start)
        ends = self.ends
        if ends is not None and self.closed is not None and self.closed.at >= ends:
            self.closed = None

    def _begin_by(self, start: datetime) -> None:
        """Begin at the date that a statement says, if that is earlier or the first that is said."""
        if self.is_dated and start >= self.begins:
            return
        if self.closed is not None and start > self.closed.at:
            return
        self.begins = start
        self.is_dated = True

    def states(self, present: datetime | None) -> list[State]:
        """Give the state of each of its statements.

        :param present: the time at which the status is asked for; ``None`` where no fact has a date.
        """
        closed = self.closed
        if closed is not None and closed.rule == CORRECTED:
            return [_corrected(each, closed.by.id) for each in self.statements]
        closer = None
        if closed is not None and self._is_in_force(closed, present):
            status = _STATUSES[closed.rule]
            closer = closed.by.id
        else:
            status = self._status_by_dates(present)
        is_over = status in _OVER
        begins = self.begins if self.is_dated else None
        ends = self._valid_to()
        last = self._last_access()
        n_reinforced = self._count_turns() - 1
        head = State(status, is_over, closer, None, begins, ends, n_reinforced, last)
        again = State("repeat", is_over, closer, self.first.id, begins, ends, 0, last)
        return [head] + [again] * (len(self.statements) - 1)

    def log_row(self) -> dict[str, Any]:
        """Give the row of the log for what closed it."""
        assert self.closed
        closing = self.closed
        old, new = self.first.fact, closing.by.fact
        reached = [fact["recorded_at"] for fact in (old, new) if fact["recorded_at"]]
        rule = closing.rule
        if self.first.said_at and closing.by.said_at and old["recorded_at"] > new["recorded_at"]:
            rule += " (the old arrived late)"
        return {
            "scope": old["scope"],
            "about": old["about"],
            "slot": old["slot"],
            "old": self.first.id,
            "new": closing.by.id,
            "old_value": old["value"],
            "new_value": new["value"],
            "at": closing.at if closing.is_dated else None,
            "recorded_at": max(reached, default=None),
            "rule": rule,
            "by": new["said_by"] or new["source"],
            "evidence": new["evidence"],
        }

    def _status_by_dates(self, present: datetime | None) -> str:
        """Give the status of an interval that nothing has closed by now."""
        if present is None:
            return "active"
        if self.ends is not None and self.ends <= present:
            return "ended"
        if self.due is not None and self.due.end <= present:
            return "due"
        if self.begins > present and self.kind != "event":
            return "upcoming"
        return "active"

    def _is_in_force(self, closed: Closing, present: datetime | None) -> bool:
        """Whether a closing counts by now: its date has come, or the interval never came into force."""
        if present is None:
            return True
        return closed.at <= max(present, self.begins)

    def _valid_to(self) -> datetime | None:
        if self.closed is None:
            return self.ends
        if self.is_dated and self.closed.is_dated:
            return self.closed.at
        return None

    def _last_access(self) -> datetime | None:
        dated = [each.said_at for each in self.statements if each.said_at is not None]
        return max(dated, default=None)

    def _count_turns(self) -> int:
        """Count the turns that state it: several statements that were read from one are one."""
        return len({next(iter(each.evidence), each.id) for each in self.statements})


def _corrected(statement: Statement, closer: str) -> State:
    said_at = statement.said_at
    return State("corrected", True, closer, None, said_at, said_at, 0, said_at)


def _is_same_date(one: str | None, two: str | None) -> bool:
    """Whether two dates may be one: equal, one more precise, or one not given."""
    if not one or not two:
        return True
    return one.startswith(two) or two.startswith(one)
