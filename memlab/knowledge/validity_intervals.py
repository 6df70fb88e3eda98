"""Intervals: the time in which what a fact states holds, its statements, and what closed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from memlab.knowledge.date_precision import Period
from memlab.knowledge.fact_statements import LASTING, Meaning, Statement

REPLACED = "another value"
ENDED = "said to be over"
AFFIRMED = "said to be so"
CAME_ABOUT = "came about"
CANCELLED = "cancelled"
CORRECTED = "corrected"
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

    :param first: the statement that began it.
    :param begins: from when it holds; ``is_dated``: whether anybody said so.
    :param until: the time until the end of which it holds; ``None``: nobody said.
    :param due: of a plan the time that it is for.
    :param statements: the first one and those that repeat it, in the order in which they were read.
    :param meanings: what they state; ``said_in``: ids of the turns in which they were said.
    :param heard: statements of other intervals that say it again in other words.
    :param made: the intervals that they closed.
    """

    first: Statement
    begins: datetime
    is_dated: bool
    until: Period | None = None
    due: Period | None = None
    closed: Closing | None = None
    statements: list[Statement] = field(default_factory=list)
    meanings: set[Meaning] = field(default_factory=set)
    said_in: set[str] = field(default_factory=set)
    heard: list[Statement] = field(default_factory=list)
    made: list[Interval] = field(default_factory=list)

    @classmethod
    def begun_by(cls, first_statement: Statement) -> Interval:
        """Begin the interval of a statement."""
        interval = cls(first_statement, first_statement.begins, first_statement.is_dated)
        interval.add_statement(first_statement)
        return interval

    @property
    def kind(self) -> str:
        return self.first.kind

    @property
    def holds(self) -> bool:
        return self.first.meaning.holds

    @property
    def representative_statement(self) -> Statement:
        """The statement that stands for all: the first one with the wording that came last."""
        seen_meanings: set[Meaning] = set()
        last_worded = self.first
        for statement in self.statements:
            if statement.meaning not in seen_meanings:
                seen_meanings.add(statement.meaning)
                last_worded = statement
        return last_worded

    @property
    def own_end(self) -> datetime | None:
        """When it ends by what was said of it itself: the end of ``until`` of a state or a rule."""
        if self.kind not in LASTING:
            return None
        if self.until is None:
            return None
        return max(self.until.end, self.begins)

    @property
    def closed_at(self) -> datetime | None:
        """When another statement closes it; ``None`` where none does."""
        if self.closed is None:
            return None
        return self.closed.at

    def is_open(self, moment: datetime) -> bool:
        """Whether it still goes on at a time, as far as what was read says.

        One that is closed from a later date on is open before it, unless it never came into force.
        """
        if has_moment_come(self.own_end, moment):
            return False
        return not has_moment_come(self.closed_at, max(moment, self.begins))

    def is_repeated_by(self, statement: Statement) -> bool:
        """Whether a statement of equal meaning is about this interval, not about another time."""
        if self.kind == "event":
            return _may_be_same_date(self.first.fact["since"], statement.fact["since"])
        if self.kind == "plan":
            return True
        if statement.until is None:
            return True
        return statement.until.end > self.begins

    def is_reworded_by(self, statement: Statement) -> bool:
        """Whether a statement that repeats it states the same slot, in the same way."""
        if (self.kind, self.holds) != (statement.kind, statement.meaning.holds):
            return False
        return any(
            own_statement.scope_subject_slot_and_kind == statement.scope_subject_slot_and_kind
            for own_statement in self.statements
        )

    def add_statement(self, statement: Statement) -> None:
        """Add the statement that begins it, or one that repeats it and may date it better."""
        self.statements.append(statement)
        self.meanings.add(statement.meaning)
        self.said_in.update(statement.evidence_turn_ids)
        if statement.until is not None:
            self.until = statement.until
        if self.kind == "plan":
            self._set_due_period(statement)
        elif statement.since is not None:
            self._move_beginning_if_better_dated(statement.since.start)
        if self.closed_at is not None and has_moment_come(self.own_end, self.closed_at):
            # It is over before what was to close it.
            self.closed = None

    def _set_due_period(self, statement: Statement) -> None:
        if statement.until is not None:
            self.due = statement.until
        elif statement.since is not None:
            self.due = statement.since

    def _move_beginning_if_better_dated(self, start: datetime) -> None:
        """Begin at the date that a statement says, if it is earlier or the first that is said."""
        if self.is_dated and start >= self.begins:
            return
        if self.closed_at is not None and start > self.closed_at:
            return
        self.begins = start
        self.is_dated = True

    def states_by_fact_id(self, present: datetime | None) -> Iterator[tuple[str, State]]:
        """Give the state of each of its statements, beside the id of the fact.

        :param present: the time at which the status is asked for; ``None`` where no fact has a
            date.
        """
        status, closer_text = self._status_and_closing_fact_id(present)
        is_over = status in _OVER
        if status == "corrected":
            for statement in self.statements:
                said_at = statement.said_at
                yield (
                    statement.fact_id,
                    State(status, is_over, closer_text, None, said_at, said_at, 0, said_at),
                )
            return
        valid_from = self._dated_begin()
        valid_to = self._dated_end()
        last_access = self._last_time_said()
        n_reinforced = self._count_stating_turns() - 1
        head_id = self.representative_statement.fact_id
        repeat_state = State(
            "repeat", is_over, closer_text, head_id, valid_from, valid_to, 0, last_access
        )
        for statement in self.statements:
            if statement.fact_id == head_id:
                state = State(
                    status,
                    is_over,
                    closer_text,
                    None,
                    valid_from,
                    valid_to,
                    n_reinforced,
                    last_access,
                )
                yield head_id, state
            else:
                yield statement.fact_id, repeat_state

    def closing_log_row(self) -> dict[str, Any]:
        """Give the row of the log for what closed it."""
        assert self.closed
        old_fact = self.representative_statement.fact
        new_fact = self.closed.by.fact
        closed_at = None
        if self.closed.is_dated:
            closed_at = self.closed.at
        recorded_times = [
            fact["recorded_at"] for fact in (old_fact, new_fact) if fact["recorded_at"]
        ]
        return {
            "scope": old_fact["scope"],
            "about": old_fact["about"],
            "slot": old_fact["slot"],
            "old": self.representative_statement.fact_id,
            "new": self.closed.by.fact_id,
            "old_value": old_fact["value"],
            "new_value": new_fact["value"],
            "at": closed_at,
            "recorded_at": max(recorded_times, default=None),
            "rule": self.closed.rule
            + _late_arrival_text_or_empty(self.representative_statement, self.closed.by),
            "by": new_fact["said_by"] or new_fact["source"],
            "evidence": new_fact["evidence"],
        }

    def _status_and_closing_fact_id(self, present: datetime | None) -> tuple[str, str | None]:
        """Give the status and, where another statement is the reason, its id."""
        if self.closed is not None and self._is_closing_in_force(self.closed, present):
            return _STATUSES[self.closed.rule], self.closed.by.fact_id
        if present is None:
            return "active", None
        if has_moment_come(self.own_end, present):
            return "ended", None
        if self.due is not None and self.due.end <= present:
            return "due", None
        if self.kind in LASTING and self.begins > present:
            return "upcoming", None
        return "active", None

    def _is_closing_in_force(self, closing: Closing, present: datetime | None) -> bool:
        """Whether a closing counts by now: it has come, or the interval never came into force."""
        if present is None:
            return True
        if closing.rule == CORRECTED:
            return True
        return closing.at <= max(present, self.begins)

    def _dated_begin(self) -> datetime | None:
        if self.is_dated:
            return self.begins
        return None

    def _dated_end(self) -> datetime | None:
        if self.closed is None:
            return self.own_end
        if self.is_dated and self.closed.is_dated:
            return self.closed.at
        return None

    def _last_time_said(self) -> datetime | None:
        said_times = (statement.said_at for statement in (*self.statements, *self.heard))
        return max(filter(None, said_times), default=None)

    def _count_stating_turns(self) -> int:
        """Count the turns that state it: several statements that were read from one are one."""
        all_statements = (*self.statements, *self.heard)
        return len(
            {
                next(iter(statement.evidence_turn_ids), statement.fact_id)
                for statement in all_statements
            }
        )


def has_moment_come(moment: datetime | None, by_time: datetime) -> bool:
    """Whether there is a moment and it has come by a time.

    >>> from datetime import datetime
    >>> from memlab.knowledge.validity_intervals import has_moment_come
    >>> new_year = datetime(2026, 1, 1)
    >>> has_moment_come(None, new_year), has_moment_come(datetime(2025, 1, 1), new_year)
    (False, True)
    """
    return moment is not None and moment <= by_time


def _may_be_same_date(one_date: str | None, other_date: str | None) -> bool:
    """Whether two dates may be one: equal, one more precise, or one not given."""
    if not one_date:
        return True
    if not other_date:
        return True
    return one_date.startswith(other_date) or other_date.startswith(one_date)


def _late_arrival_text_or_empty(old_statement: Statement, new_statement: Statement) -> str:
    """Say that the old statement reached the memory after the new one."""
    if old_statement.said_at is None:
        return ""
    if new_statement.said_at is None:
        return ""
    if old_statement.fact["recorded_at"] <= new_statement.fact["recorded_at"]:
        return ""
    return " (the old arrived late)"
