"""The timeline of statements: each repeats, closes or stands beside what was said before it.

The rules follow ids, keys and dates alone; no text is parsed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from memlab.knowledge.closing_rules import (
    EFFECT_RULES,
    end_by_effect,
    lasting_closed_by,
    takes_back_closings,
)
from memlab.knowledge.intervals import AFFIRMED, ENDED, REPLACED, Closing, Interval, has_come
from memlab.knowledge.statements import LASTING, Meaning, Statement

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
        own = self._holders.get(statement.id)
        if own is not None:
            # A correction, which was read in the place of what was wrong: its effects are left.
            self._apply_effects(statement, own)
            return
        own = self._find_repeated(statement)
        if own is not None:
            own.add(statement)
            self._register(statement, own)
            self._put_off_endings(statement, own)
            self._apply_effects(statement, own)
            return
        own = Interval.of(statement)
        self.intervals.append(own)
        self._register(statement, own)
        affected = self._apply_effects(statement, own)
        if statement.kind == "event" or statement.is_past:
            return
        self._close_opposite(statement, own, affected)
        if statement.is_one_of_a_kind:
            self._close_other_values(statement, own, affected)

    def find_wrong(self, statement: Statement) -> list[Interval]:
        """Find the intervals that a statement says never held, also where they are over."""
        wrong: list[Interval] = []
        for affected in statement.affected_by("was_wrong"):
            old = self.find_open(affected, statement)
            if old is None:
                old = self._holders.get(affected, self._latest.get(affected))
            if old is None:
                self.idle.add((statement.id, "was_wrong", affected))
            elif old not in wrong and not self._is_undone(old, statement):
                wrong.append(old)
        return wrong

    def find_taken_back(self) -> list[Interval]:
        """Find what never came into force of the intervals that the last statement closed."""
        return [old for old in self._just_closed if takes_back_closings(old)]

    def find_open(
        self, affected: str, statement: Statement, *, besides: Interval | None = None
    ) -> Interval | None:
        """Find the latest open interval that an effect names.

        Where the interval of a fact is over, another one of its meaning that is open counts.

        :param affected: the id of a fact, or of what facts state.
        :param besides: an interval that does not count.
        """
        holder = self._holders.get(affected)
        if holder is None:
            intervals = self._by_meaning_id[affected]
        elif holder.is_open(statement.placed_at):
            return holder
        else:
            intervals = self._by_meaning[self._meanings[affected]]
        for interval in _open(intervals, statement.placed_at):
            if interval is not besides:
                return interval
        return None

    def _register(self, statement: Statement, own: Interval) -> None:
        self._holders[statement.id] = own
        self._meanings[statement.id] = statement.meaning
        self._latest[statement.meaning_id] = own
        listed = [self._by_meaning_id[statement.meaning_id], self._by_meaning[statement.meaning]]
        if own.holds:
            listed.append(self._by_slot[statement.slot])
        for intervals in listed:
            if own not in intervals[-1:]:
                intervals.append(own)

    def _find_repeated(self, statement: Statement) -> Interval | None:
        """Find the open interval that a statement repeats: named by it, or of equal meaning.

        What it names in another slot is heard again, and it states something beside that.
        """
        for affected in statement.affected_by("repeats"):
            named = self.find_open(affected, statement)
            if named is None:
                self.idle.add((statement.id, "repeats", affected))
            elif named.is_reworded_by(statement):
                return named
            else:
                named.heard.append(statement)
        for interval in _open(self._by_meaning[statement.meaning], statement.placed_at):
            if interval.is_repeated_by(statement):
                return interval
        return None

    def _apply_effects(self, statement: Statement, own: Interval) -> list[Interval]:
        """Close what a statement closes by its effects; give the intervals that it affects."""
        closed: list[Interval] = []
        wrong = statement.affected_by("was_wrong")
        for effect, rule in EFFECT_RULES.items():
            for affected in statement.affected_by(effect):
                if affected in wrong:
                    continue
                old = self.find_open(affected, statement, besides=own)
                if old is None and not _is_named(affected, closed):
                    self.idle.add((statement.id, effect, affected))
                if old is None or old is own or old in closed:
                    continue
                at = end_by_effect(effect, old, statement)
                if at is not None:
                    closed.append(old)
                    self._close(old, statement, at, rule, own)
        return closed

    def _put_off_endings(self, statement: Statement, own: Interval) -> None:
        """Let what a plan is to end go on until another day, if the plan is repeated with one."""
        if statement.kind != "plan":
            return
        if statement.since is None:
            return
        for old in lasting_closed_by(own):
            assert old.closed
            if old.is_open(statement.placed_at):
                self._close(old, statement, statement.since.start, old.closed.rule, own)

    def _close_opposite(
        self, statement: Statement, own: Interval, affected: list[Interval]
    ) -> None:
        """Close the denial of what is stated, or what is denied."""
        rule = ENDED
        if statement.meaning.holds:
            rule = AFFIRMED
        for old in _open(self._by_meaning[statement.meaning.opposite], statement.placed_at):
            if old not in affected:
                self._close(old, statement, statement.begins, rule, own)

    def _close_other_values(
        self, statement: Statement, own: Interval, affected: list[Interval]
    ) -> None:
        """Close the other values of the slot, except what the same turn states beside it."""
        for old in _open(self._by_slot[statement.slot], statement.placed_at):
            if old is own:
                continue
            if old in affected:
                continue
            if not old.said_in.isdisjoint(statement.evidence):
                # "I live with Ann and Bo" may be two facts.
                continue
            if not statement.is_over_by(old.begins):
                self._close(old, statement, statement.begins, REPLACED, own)

    def _close(
        self, old: Interval, statement: Statement, at: datetime, rule: str, own: Interval
    ) -> None:
        """Close an interval, never before its beginning, unless it ends earlier anyway."""
        if statement.id in self.voided and old.kind in LASTING:
            return
        if self._is_undone(old, statement):
            return
        at = max(at, old.begins)
        if has_come(old.ends, at):
            return
        before = old.closed
        if before is not None and before.at <= at and before.within is not own:
            return
        old.closed = Closing(statement, at, statement.says_when, rule, own)
        own.made.append(old)
        self._just_closed.append(old)

    def _is_undone(self, old: Interval, new: Statement) -> bool:
        """Whether the user took back that one meaning closes the other."""
        if not self.undone:
            return False
        return any((meaning, new.meaning) in self.undone for meaning in old.meanings)


def _open(intervals: list[Interval], at: datetime) -> list[Interval]:
    """Give the intervals that are open at a time, the latest first, and forget the others.

    Statements are read in the order of time, so that what is over stays over.
    """
    intervals[:] = [interval for interval in intervals if interval.is_open(at)]
    return intervals[::-1]


def _is_named(affected: str, intervals: list[Interval]) -> bool:
    """Whether one of several intervals has a statement of an id, or of a meaning with that id."""
    for interval in intervals:
        for each in interval.statements:
            if affected in (each.id, each.meaning_id):
                return True
    return False
