"""The timeline of connected statements: the rules by which one closes, repeats or corrects another.

The rules follow ids, keys and dates alone; no text is parsed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from memlab.knowledge.intervals import (
    AFFIRMED,
    CAME_ABOUT,
    CANCELLED,
    CORRECTED,
    ENDED,
    REPLACED,
    Closing,
    Interval,
)
from memlab.knowledge.statements import Meaning, Statement

_RULES = {
    "came_about": CAME_ABOUT,
    "replaces": REPLACED,
    "ends": ENDED,
    "cancelled": CANCELLED,
}
"""Effects that close an interval, with their rules; of several on one interval the first counts."""
_LASTING = ("state", "rule")

Undone = Collection[tuple[Meaning, Meaning]]
Effect = tuple[str, str, str]
"""A fact id, what the fact does, and to what."""


@dataclass
class Outcome:
    """What statements come to.

    :param intervals: all intervals, with those that were corrected.
    :param idle: effects on what is unknown, was said later, or was over.
    """

    intervals: list[Interval] = field(default_factory=list)
    idle: set[Effect] = field(default_factory=set)


def resolve_statements(statements: list[Statement], undone: Undone) -> Outcome:
    """Give the intervals of the statements of one scope, which are in the order in which they were said.

    :param undone: pairs of meanings: the second does not close the first.
    """
    outcome = Outcome()
    for group in _connected_groups(statements):
        resolved = _resolve_group(group, undone)
        outcome.intervals += resolved.intervals
        outcome.idle |= resolved.idle
    return outcome


def _connected_groups(statements: list[Statement]) -> Iterable[list[Statement]]:
    """Split statements so that no rule reaches from one group into another.

    Statements of one slot of a subject are connected, and each with those that its effects name.
    """
    parents: dict[tuple[str, ...], tuple[str, ...]] = {}

    def find(node: tuple[str, ...]) -> tuple[str, ...]:
        while parents.setdefault(node, node) != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for each in statements:
        slot = find(each.meaning.parts[:3])
        parents[find((each.id,))] = slot
        parents[find((each.meaning_id,))] = slot
        for _, affected in each.effects:
            parents[find((affected,))] = find(slot)
    groups: dict[tuple[str, ...], list[Statement]] = {}
    for each in statements:
        groups.setdefault(find((each.id,)), []).append(each)
    return groups.values()


def _resolve_group(statements: list[Statement], undone: Undone) -> Outcome:
    """Read connected statements, again after each correction and each closing that is taken back.

    A correction takes the place of what was wrong, and the statements are read without that. Each
    reading but the last settles a correction for good, or voids one more statement, so that there is an
    end.
    """
    reading = _Reading(list(statements), undone)
    while True:
        timeline = _Timeline(reading)
        if timeline.read():
            return Outcome(reading.wrong + timeline.intervals, reading.idle | timeline.idle)


@dataclass
class _Reading:
    """What one reading of statements hands on to the next.

    :param stream: the statements in order. A correction that took the place of what was wrong stands
        there without its effects, and in its own place, where its other effects count.
    :param settled: ids of the statements of which the corrections are done.
    :param voided: ids of the statements that close nothing lasting: they never came into force.
    :param wrong: the intervals that were corrected.
    """

    stream: list[Statement]
    undone: Undone
    settled: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    wrong: list[Interval] = field(default_factory=list)
    idle: set[Effect] = field(default_factory=set)

    def correct(self, statement: Statement, wrong: list[Interval]) -> None:
        """Take out what a statement says never held, and put the statement in its place.

        An event has no value to put there: it stays where it is.
        """
        self.settled.add(statement.id)
        self.voided.clear()  # by what may have been wrong
        dropped: set[str] = set()
        for interval in wrong:
            at, is_dated = interval.begins, interval.is_dated
            interval.closed = Closing(statement, at, is_dated, CORRECTED, None)
            dropped.update(each.id for each in interval.statements)
        self.wrong += wrong
        kept: list[Statement] = []
        is_placed = statement.kind == "event"
        for each in self.stream:
            if each.id not in dropped:
                kept.append(each)
            elif not is_placed:
                is_placed = True
                kept.append(_in_place_of(each, statement, wrong))
        self.stream = kept

    def is_undone(self, old: Interval, new: Statement) -> bool:
        """Whether the user took back that one meaning closes the other."""
        if not self.undone:
            return False
        return any((meaning, new.meaning) in self.undone for meaning in old.meanings)


def _in_place_of(old: Statement, statement: Statement, wrong: list[Interval]) -> Statement:
    """Put a correction in the place of a wrong statement.

    It holds from when that began, unless it says a date itself; a plan from when that was said.
    """
    moved = replace(statement, placed_at=old.placed_at, effects=())
    held = next(interval for interval in wrong if interval.first.id == old.id)
    if not held.is_dated:
        return moved
    if statement.kind == "plan":
        return replace(moved, begins=old.placed_at, is_dated=True)
    if statement.since is not None:
        return moved
    return replace(moved, begins=held.begins, is_dated=True)


class _Timeline:
    """The intervals while statements are read in order."""

    def __init__(self, reading: _Reading) -> None:
        self.reading = reading
        self.intervals: list[Interval] = []
        self.idle: set[Effect] = set()
        self.just_closed: list[Interval] = []
        self.holder: dict[str, Interval] = {}
        self.meanings: dict[str, Meaning] = {}
        self.latest: dict[str, Interval] = {}
        self.by_meaning_id: defaultdict[str, list[Interval]] = defaultdict(list)
        self.by_meaning: defaultdict[Meaning, list[Interval]] = defaultdict(list)
        self.by_slot: defaultdict[tuple[str, ...], list[Interval]] = defaultdict(list)

    def read(self) -> bool:
        """Read the statements; whether that is all, and they need not be read again."""
        for statement in self.reading.stream:
            wrong = self._find_wrong(statement)
            if wrong:
                self.reading.correct(statement, wrong)
                return False
            self._add(statement)
            if self._take_back():
                return False
        return True

    def _find_wrong(self, statement: Statement) -> list[Interval]:
        """Find what a statement says never held, also where it is over."""
        wrong: list[Interval] = []
        if statement.id in self.reading.settled:
            return wrong
        for effect, affected in statement.effects:
            if effect != "was_wrong":
                continue
            old = self._find_open(affected, statement, None) or self._find_latest(affected)
            if old is None:
                self.reading.idle.add((statement.id, effect, affected))
            elif old not in wrong and not self.reading.is_undone(old, statement):
                wrong.append(old)
        return wrong

    def _add(self, statement: Statement) -> None:
        """Add the next statement: to the interval that it repeats or to one of its own; then close others."""
        own = self.holder.get(statement.id)
        if own is None:
            own = self._find_repeated(statement)
            if own is None:
                own = Interval.of(statement)
                self.intervals.append(own)
            else:
                own.add(statement)
                self._move_endings(statement, own)
            self._register(statement, own)
            is_new = own.first is statement
        else:
            # A correction, which stands in the place of what was wrong too.
            is_new = False
        affected = self._apply_effects(statement, own)
        if is_new:
            self._close_twin(statement, own, affected)
            self._close_other_values(statement, own, affected)

    def _register(self, statement: Statement, own: Interval) -> None:
        self.holder[statement.id] = own
        self.meanings[statement.id] = statement.meaning
        self.latest[statement.meaning_id] = own
        listed = [self.by_meaning_id[statement.meaning_id], self.by_meaning[statement.meaning]]
        if own.holds:
            listed.append(self.by_slot[_slot_of(statement)])
        for intervals in listed:
            if own not in intervals[-1:]:
                intervals.append(own)

    def _find_repeated(self, statement: Statement) -> Interval | None:
        """Find the open interval that a statement repeats: named by an effect, or of equal meaning."""
        for effect, affected in statement.effects:
            if effect != "repeats":
                continue
            named = self._find_open(affected, statement, None)
            if named is None:
                self.idle.add((statement.id, effect, affected))
            elif (named.kind, named.holds) == (statement.kind, statement.meaning.holds):
                return named
        for interval in _open(self.by_meaning[statement.meaning], statement.placed_at):
            if interval.is_repeated_by(statement):
                return interval
        return None

    def _find_open(
        self, affected: str, statement: Statement, own: Interval | None
    ) -> Interval | None:
        """Find the open interval that an effect names, by the id of a fact or of what it states.

        Where the interval of the fact is over, another one of its meaning that is open counts.
        """
        holder = self.holder.get(affected)
        if holder is None:
            intervals = self.by_meaning_id[affected]
        elif holder.is_open(statement.placed_at):
            return holder
        else:
            intervals = self.by_meaning[self.meanings[affected]]
        for interval in _open(intervals, statement.placed_at):
            if interval is not own:
                return interval
        return None

    def _find_latest(self, affected: str) -> Interval | None:
        return self.holder.get(affected) or self.latest.get(affected)

    def _apply_effects(self, statement: Statement, own: Interval) -> list[Interval]:
        """Close what a statement closes by its effects; give the intervals that they are about."""
        affected_intervals: list[Interval] = []
        for effect, rule in _RULES.items():
            for name, affected in statement.effects:
                if name != effect or ("was_wrong", affected) in statement.effects:
                    continue
                old = self._find_open(affected, statement, own)
                if old is None:
                    if not _holds_named(affected_intervals, affected):
                        self.idle.add((statement.id, effect, affected))
                    continue
                if old is own or old in affected_intervals:
                    continue
                at = _end_by(effect, old, statement)
                if at is not None:
                    affected_intervals.append(old)
                    self._close(old, statement, at, rule, own)
        return affected_intervals

    def _move_endings(self, statement: Statement, own: Interval) -> None:
        """Let what a plan is to end go on until another day, where the plan is repeated with one."""
        if statement.kind != "plan" or statement.since is None:
            return
        for old in list(own.made):
            closed = old.closed
            if old.kind not in _LASTING or closed is None or closed.within is not own:
                continue
            if closed.at > statement.placed_at:
                self._close(old, statement, statement.since.start, closed.rule, own)

    def _close_twin(self, statement: Statement, own: Interval, done: list[Interval]) -> None:
        """Close the denial of what is stated, or what is denied."""
        if statement.kind == "event" or statement.is_past:
            return
        rule = AFFIRMED if statement.meaning.holds else ENDED
        for old in _open(self.by_meaning[statement.meaning.opposite], statement.placed_at):
            if old not in done:
                self._close(old, statement, statement.begins, rule, own)

    def _close_other_values(
        self, statement: Statement, own: Interval, done: list[Interval]
    ) -> None:
        """Close the other values of a slot that has one at a time."""
        if statement.kind == "event" or statement.is_past:
            return
        if statement.fact["values"] != "one" or not statement.meaning.holds:
            return
        for old in _open(self.by_slot[_slot_of(statement)], statement.placed_at):
            if old is own or old in done:
                continue
            # "I live with Ann and Bo" may be two facts.
            is_together = not old.said_in.isdisjoint(statement.evidence)
            is_before = statement.until is not None and statement.until.end <= old.begins
            if not is_together and not is_before:
                self._close(old, statement, statement.begins, REPLACED, own)

    def _close(
        self, old: Interval, statement: Statement, at: datetime, rule: str, own: Interval
    ) -> None:
        """Close an interval, never before its beginning, unless it ends earlier anyway."""
        if statement.id in self.reading.voided and old.kind in _LASTING:
            return
        if self.reading.is_undone(old, statement):
            return
        at = max(at, old.begins)
        if old.ends is not None and old.ends <= at:
            return
        before = old.closed
        if before is not None and before.at <= at and before.within is not own:
            return
        is_dated = statement.said_at is not None or statement.since is not None
        old.closed = Closing(statement, at, is_dated, rule, own)
        own.made.append(old)
        self.just_closed.append(old)

    def _take_back(self) -> bool:
        """Void what never came into force of the intervals that the last statement closed; whether any is."""
        voided = [old for old in self.just_closed if _takes_back(old)]
        self.just_closed.clear()
        for old in voided:
            self.reading.voided.update(each.id for each in old.statements)
        return bool(voided)


def _slot_of(statement: Statement) -> tuple[str, ...]:
    return (*statement.meaning.parts[:3], statement.kind)


def _open(intervals: list[Interval], at: datetime) -> list[Interval]:
    """Give the intervals that are open at a time, the latest first, and forget the others.

    Statements are read in the order of time, so that what is over stays over.
    """
    intervals[:] = [interval for interval in intervals if interval.is_open(at)]
    return intervals[::-1]


def _holds_named(intervals: list[Interval], affected: str) -> bool:
    """Whether one of several intervals has a statement of an id, or of a meaning with that id."""
    for interval in intervals:
        for each in interval.statements:
            if affected in (each.id, each.meaning_id):
                return True
    return False


def _end_by(effect: str, old: Interval, new: Statement) -> datetime | None:
    """Give when an interval ends by an effect; ``None`` where the effect does nothing to it."""
    if effect == "came_about" and old.kind != "plan":
        return None
    if old.kind == "event":
        # What happened, happened; what is to come may be called off.
        is_ahead = old.begins > new.placed_at
        if is_ahead and effect in ("replaces", "cancelled"):
            return old.begins
        return None
    if new.kind == "plan" and old.kind in _LASTING:
        # What is planned to end holds until the day of the plan, and on where it has none.
        if new.since is None:
            return None
        return new.since.start
    if effect == "cancelled":
        return min(new.begins, new.placed_at)
    return new.begins


def _takes_back(old: Interval) -> bool:
    """Whether a closing takes back what the interval had closed: it never came into force.

    That is so of a plan that did not come about, and of a state that another one replaces before its
    own beginning.
    """
    closing = old.closed
    assert closing
    if old.kind == "plan":
        is_void = closing.rule != CAME_ABOUT
    else:
        is_void = closing.by.placed_at < old.begins and closing.at <= old.begins
    if not is_void:
        return False
    for each in old.made:
        if each.kind in _LASTING and each.closed is not None and each.closed.within is old:
            return True
    return False
