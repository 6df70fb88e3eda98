"""The timeline of statements: each repeats, closes or stands beside what was said before it.

The rules follow ids, keys and dates alone; no text is parsed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from memlab.knowledge.fact_statements import LASTING, Meaning, Statement
from memlab.knowledge.supersession_rules import (
    EFFECT_RULES,
    end_by_effect,
    lasting_closed_by,
    takes_back_closings,
)
from memlab.knowledge.validity_intervals import (
    AFFIRMED,
    ENDED,
    REPLACED,
    Closing,
    Interval,
    has_come,
)

Undone = Collection[tuple[Meaning, Meaning]]
"""Pairs of meanings: the second does not close the first."""
Effect = tuple[str, str, str]
"""A fact id, what the fact does, and to what."""


@dataclass
class Timeline:
    """The intervals while statements are read in order.

    :param undone: closings that the user took back.
    :param voided: ids of statements that close no state and no rule.
    :param intervals: all of them, in the order of their first statements.
    :param idle: effects on what is unknown, was said later, or was over.
    """

    undone: Undone
    voided: Collection[str]
    intervals: list[Interval] = field(default_factory=list)
    idle: set[Effect] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._holders: dict[str, Interval] = {}
        self._meanings: dict[str, Meaning] = {}
        self._latest: dict[str, Interval] = {}
        self._by_meaning_id: defaultdict[str, list[Interval]] = defaultdict(list)
        self._by_meaning: defaultdict[Meaning, list[Interval]] = defaultdict(list)
        self._by_slot: defaultdict[tuple[str, ...], list[Interval]] = defaultdict(list)
        self._just_closed: list[Interval] = []

    def add(self, statement: Statement) -> None:
        """Add the next statement to the interval that it repeats, else begin one; close others."""
        self._just_closed.clear()
        own_interval = self._holders.get(statement.id)
        if own_interval is not None:
            # A correction, which was read in the place of what was wrong: its effects are left.
            self._apply_effects(statement, own_interval)
            return
        own_interval = self._find_repeated(statement)
        if own_interval is not None:
            own_interval.add(statement)
            self._register(statement, own_interval)
            self._put_off_endings(statement, own_interval)
            self._apply_effects(statement, own_interval)
            return
        own_interval = Interval.of(statement)
        self.intervals.append(own_interval)
        self._register(statement, own_interval)
        affected_intervals = self._apply_effects(statement, own_interval)
        if statement.kind == "event" or statement.is_past:
            return
        self._close_opposite(statement, own_interval, affected_intervals)
        if statement.is_one_of_a_kind:
            self._close_other_values(statement, own_interval, affected_intervals)

    def find_wrong(self, statement: Statement) -> list[Interval]:
        """Find the intervals that a statement says never held, also where they are over."""
        wrong_intervals: list[Interval] = []
        for affected_id in statement.affected_by("was_wrong"):
            old_interval = self.find_open(affected_id, statement)
            if old_interval is None:
                old_interval = self._holders.get(affected_id, self._latest.get(affected_id))
            if old_interval is None:
                self.idle.add((statement.id, "was_wrong", affected_id))
            elif old_interval not in wrong_intervals and not self._is_undone(
                old_interval, statement
            ):
                wrong_intervals.append(old_interval)
        return wrong_intervals

    def find_taken_back(self) -> list[Interval]:
        """Find what never came into force of the intervals that the last statement closed."""
        return [
            old_interval for old_interval in self._just_closed if takes_back_closings(old_interval)
        ]

    def find_open(
        self, affected: str, statement: Statement, *, besides: Interval | None = None
    ) -> Interval | None:
        """Find the latest open interval that an effect names.

        Where the interval of a fact is over, another one of its meaning that is open counts.

        :param affected: the id of a fact, or of what facts state.
        :param besides: an interval that does not count.
        """
        holding_interval = self._holders.get(affected)
        if holding_interval is None:
            intervals = self._by_meaning_id[affected]
        elif holding_interval.is_open(statement.placed_at):
            return holding_interval
        else:
            intervals = self._by_meaning[self._meanings[affected]]
        for interval in _open(intervals, statement.placed_at):
            if interval is not besides:
                return interval
        return None

    def _register(self, statement: Statement, own_interval: Interval) -> None:
        self._holders[statement.id] = own_interval
        self._meanings[statement.id] = statement.meaning
        self._latest[statement.meaning_id] = own_interval
        interval_lists = [
            self._by_meaning_id[statement.meaning_id],
            self._by_meaning[statement.meaning],
        ]
        if own_interval.holds:
            interval_lists.append(self._by_slot[statement.slot])
        for intervals in interval_lists:
            if own_interval not in intervals[-1:]:
                intervals.append(own_interval)

    def _find_repeated(self, statement: Statement) -> Interval | None:
        """Find the open interval that a statement repeats: named by it, or of equal meaning.

        What it names in another slot is heard again, and it states something beside that.
        """
        for affected_id in statement.affected_by("repeats"):
            named_interval = self.find_open(affected_id, statement)
            if named_interval is None:
                self.idle.add((statement.id, "repeats", affected_id))
            elif named_interval.is_reworded_by(statement):
                return named_interval
            else:
                named_interval.heard.append(statement)
        for interval in _open(self._by_meaning[statement.meaning], statement.placed_at):
            if interval.is_repeated_by(statement):
                return interval
        return None

    def _apply_effects(self, statement: Statement, own_interval: Interval) -> list[Interval]:
        """Close what a statement closes by its effects; give the intervals that it affects."""
        closed_intervals: list[Interval] = []
        wrong_ids = statement.affected_by("was_wrong")
        for effect, rule in EFFECT_RULES.items():
            for affected_id in statement.affected_by(effect):
                if affected_id in wrong_ids:
                    continue
                old_interval = self.find_open(affected_id, statement, besides=own_interval)
                if old_interval is None and not _is_named(affected_id, closed_intervals):
                    self.idle.add((statement.id, effect, affected_id))
                if (
                    old_interval is None
                    or old_interval is own_interval
                    or old_interval in closed_intervals
                ):
                    continue
                ended_at = end_by_effect(effect, old_interval, statement)
                if ended_at is not None:
                    closed_intervals.append(old_interval)
                    self._close(old_interval, statement, ended_at, rule, own_interval)
        return closed_intervals

    def _put_off_endings(self, statement: Statement, own_interval: Interval) -> None:
        """Let what a plan is to end go on until another day, if the plan is repeated with one."""
        if statement.kind != "plan":
            return
        if statement.since is None:
            return
        for old_interval in lasting_closed_by(own_interval):
            assert old_interval.closed
            if old_interval.is_open(statement.placed_at):
                self._close(
                    old_interval,
                    statement,
                    statement.since.start,
                    old_interval.closed.rule,
                    own_interval,
                )

    def _close_opposite(
        self, statement: Statement, own_interval: Interval, affected: list[Interval]
    ) -> None:
        """Close the denial of what is stated, or what is denied."""
        rule = ENDED
        if statement.meaning.holds:
            rule = AFFIRMED
        for old_interval in _open(
            self._by_meaning[statement.meaning.opposite], statement.placed_at
        ):
            if old_interval not in affected:
                self._close(old_interval, statement, statement.begins, rule, own_interval)

    def _close_other_values(
        self, statement: Statement, own_interval: Interval, affected: list[Interval]
    ) -> None:
        """Close the other values of the slot, except what the same turn states beside it."""
        for old_interval in _open(self._by_slot[statement.slot], statement.placed_at):
            if old_interval is own_interval:
                continue
            if old_interval in affected:
                continue
            if not old_interval.said_in.isdisjoint(statement.evidence):
                # "I live with Ann and Bo" may be two facts.
                continue
            if not statement.is_over_by(old_interval.begins):
                self._close(old_interval, statement, statement.begins, REPLACED, own_interval)

    def _close(
        self, old: Interval, statement: Statement, at: datetime, rule: str, own_interval: Interval
    ) -> None:
        """Close an interval, never before its beginning, unless it ends earlier anyway."""
        if statement.id in self.voided and old.kind in LASTING:
            return
        if self._is_undone(old, statement):
            return
        at = max(at, old.begins)
        if has_come(old.ends, at):
            return
        closing_before = old.closed
        if (
            closing_before is not None
            and closing_before.at <= at
            and closing_before.within is not own_interval
        ):
            return
        old.closed = Closing(statement, at, statement.says_when, rule, own_interval)
        own_interval.made.append(old)
        self._just_closed.append(old)

    def _is_undone(self, old: Interval, new: Statement) -> bool:
        """Whether the user took back that one meaning closes the other."""
        if not self.undone:
            return False
        return any((meaning, new.meaning) in self.undone for meaning in old.meanings)


def _open(intervals: list[Interval], moment: datetime) -> list[Interval]:
    """Give the intervals that are open at a time, the latest first, and forget the others.

    Statements are read in the order of time, so that what is over stays over.
    """
    intervals[:] = [interval for interval in intervals if interval.is_open(moment)]
    return intervals[::-1]


def _is_named(affected: str, intervals: list[Interval]) -> bool:
    """Whether one of several intervals has a statement of an id, or of a meaning with that id."""
    for interval in intervals:
        for statement in interval.statements:
            if affected in (statement.id, statement.meaning_id):
                return True
    return False
