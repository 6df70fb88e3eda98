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
    end_of_interval_by_effect,
    never_held_but_closed_others,
    states_and_rules_still_closed_by,
)
from memlab.knowledge.validity_intervals import (
    AFFIRMED,
    ENDED,
    REPLACED,
    Closing,
    Interval,
    has_moment_come,
)

UndoneMeaningPairs = Collection[tuple[Meaning, Meaning]]
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

    undone: UndoneMeaningPairs
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

    def add_statement_and_close_others(self, statement: Statement) -> None:
        """Add the next statement to the interval that it repeats, else begin one; close others."""
        self._just_closed.clear()
        own_interval = self._holders.get(statement.fact_id)
        if own_interval is not None:
            # A correction, which was read in the place of what was wrong: its effects are left.
            self._close_by_stated_effects_and_list(statement, own_interval)
            return
        own_interval = self._find_repeated_interval_and_note_idle(statement)
        if own_interval is not None:
            own_interval.add_statement(statement)
            self._note_interval_of_statement(statement, own_interval)
            self._postpone_planned_endings(statement, own_interval)
            self._close_by_stated_effects_and_list(statement, own_interval)
            return
        own_interval = Interval.begun_by(statement)
        self.intervals.append(own_interval)
        self._note_interval_of_statement(statement, own_interval)
        affected_intervals = self._close_by_stated_effects_and_list(statement, own_interval)
        if statement.kind == "event" or statement.was_over_when_said:
            return
        self._close_opposite_meaning(statement, own_interval, affected_intervals)
        if statement.takes_place_of_other_values:
            self._close_other_values(statement, own_interval, affected_intervals)

    def find_wrong_intervals_and_note_idle(self, statement: Statement) -> list[Interval]:
        """Find the intervals that a statement says never held, also where they are over."""
        wrong_intervals: list[Interval] = []
        for affected_id in statement.ids_affected_by("was_wrong"):
            old_interval = self.find_latest_open_interval(affected_id, statement)
            if old_interval is None:
                old_interval = self._holders.get(affected_id, self._latest.get(affected_id))
            if old_interval is None:
                self.idle.add((statement.fact_id, "was_wrong", affected_id))
            elif old_interval not in wrong_intervals and not self._is_closing_undone(
                old_interval, statement
            ):
                wrong_intervals.append(old_interval)
        return wrong_intervals

    def find_just_closed_that_never_held(self) -> list[Interval]:
        """Find what never came into force of the intervals that the last statement closed."""
        return [
            old_interval
            for old_interval in self._just_closed
            if never_held_but_closed_others(old_interval)
        ]

    def find_latest_open_interval(
        self, affected_id: str, statement: Statement, *, except_interval: Interval | None = None
    ) -> Interval | None:
        """Find the latest open interval that an effect names.

        Where the interval of a fact is over, another one of its meaning that is open counts.

        :param affected_id: the id of a fact, or of what facts state.
        :param except_interval: an interval that does not count.
        """
        holding_interval = self._holders.get(affected_id)
        if holding_interval is None:
            intervals = self._by_meaning_id[affected_id]
        elif holding_interval.is_open(statement.placed_at):
            return holding_interval
        else:
            intervals = self._by_meaning[self._meanings[affected_id]]
        for interval in _drop_closed_and_list_latest_first(intervals, statement.placed_at):
            if interval is not except_interval:
                return interval
        return None

    def _note_interval_of_statement(self, statement: Statement, own_interval: Interval) -> None:
        self._holders[statement.fact_id] = own_interval
        self._meanings[statement.fact_id] = statement.meaning
        self._latest[statement.meaning_id] = own_interval
        interval_lists = [
            self._by_meaning_id[statement.meaning_id],
            self._by_meaning[statement.meaning],
        ]
        if own_interval.holds:
            interval_lists.append(self._by_slot[statement.scope_subject_slot_and_kind])
        for intervals in interval_lists:
            if own_interval not in intervals[-1:]:
                intervals.append(own_interval)

    def _find_repeated_interval_and_note_idle(self, statement: Statement) -> Interval | None:
        """Find the open interval that a statement repeats: named by it, or of equal meaning.

        What it names in another slot is heard again, and it states something beside that.
        """
        for affected_id in statement.ids_affected_by("repeats"):
            named_interval = self.find_latest_open_interval(affected_id, statement)
            if named_interval is None:
                self.idle.add((statement.fact_id, "repeats", affected_id))
            elif named_interval.is_reworded_by(statement):
                return named_interval
            else:
                named_interval.heard.append(statement)
        for interval in _drop_closed_and_list_latest_first(
            self._by_meaning[statement.meaning], statement.placed_at
        ):
            if interval.is_repeated_by(statement):
                return interval
        return None

    def _close_by_stated_effects_and_list(
        self, statement: Statement, own_interval: Interval
    ) -> list[Interval]:
        """Close what a statement closes by its effects; give the intervals that it affects."""
        closed_intervals: list[Interval] = []
        wrong_ids = statement.ids_affected_by("was_wrong")
        for effect, rule in EFFECT_RULES.items():
            for affected_id in statement.ids_affected_by(effect):
                if affected_id in wrong_ids:
                    continue
                old_interval = self.find_latest_open_interval(
                    affected_id, statement, except_interval=own_interval
                )
                if old_interval is None and not _have_statement_with_id(
                    affected_id, closed_intervals
                ):
                    self.idle.add((statement.fact_id, effect, affected_id))
                if (
                    old_interval is None
                    or old_interval is own_interval
                    or old_interval in closed_intervals
                ):
                    continue
                ended_at = end_of_interval_by_effect(effect, old_interval, statement)
                if ended_at is not None:
                    closed_intervals.append(old_interval)
                    self._close_unless_over_or_undone(
                        old_interval, statement, ended_at, rule, own_interval
                    )
        return closed_intervals

    def _postpone_planned_endings(self, statement: Statement, own_interval: Interval) -> None:
        """Let what a plan is to end go on until another day, if the plan is repeated with one."""
        if statement.kind != "plan":
            return
        if statement.since is None:
            return
        for old_interval in states_and_rules_still_closed_by(own_interval):
            assert old_interval.closed
            if old_interval.is_open(statement.placed_at):
                self._close_unless_over_or_undone(
                    old_interval,
                    statement,
                    statement.since.start,
                    old_interval.closed.rule,
                    own_interval,
                )

    def _close_opposite_meaning(
        self, statement: Statement, own_interval: Interval, except_intervals: list[Interval]
    ) -> None:
        """Close the denial of what is stated, or what is denied."""
        rule = ENDED
        if statement.meaning.holds:
            rule = AFFIRMED
        for old_interval in _drop_closed_and_list_latest_first(
            self._by_meaning[statement.meaning.opposite_meaning], statement.placed_at
        ):
            if old_interval not in except_intervals:
                self._close_unless_over_or_undone(
                    old_interval, statement, statement.begins, rule, own_interval
                )

    def _close_other_values(
        self, statement: Statement, own_interval: Interval, except_intervals: list[Interval]
    ) -> None:
        """Close the other values of the slot, except what the same turn states beside it."""
        for old_interval in _drop_closed_and_list_latest_first(
            self._by_slot[statement.scope_subject_slot_and_kind], statement.placed_at
        ):
            if old_interval is own_interval:
                continue
            if old_interval in except_intervals:
                continue
            if not old_interval.said_in.isdisjoint(statement.evidence_turn_ids):
                # "I live with Ann and Bo" may be two facts.
                continue
            if not statement.says_it_ends_by(old_interval.begins):
                self._close_unless_over_or_undone(
                    old_interval, statement, statement.begins, REPLACED, own_interval
                )

    def _close_unless_over_or_undone(
        self,
        old_interval: Interval,
        closing_statement: Statement,
        closed_at: datetime,
        rule: str,
        closing_interval: Interval,
    ) -> None:
        """Close an interval, never before its beginning, unless it ends earlier anyway."""
        if closing_statement.fact_id in self.voided and old_interval.kind in LASTING:
            return
        if self._is_closing_undone(old_interval, closing_statement):
            return
        closed_at = max(closed_at, old_interval.begins)
        if has_moment_come(old_interval.own_end, closed_at):
            return
        closing_before = old_interval.closed
        if (
            closing_before is not None
            and closing_before.at <= closed_at
            and closing_before.within is not closing_interval
        ):
            return
        old_interval.closed = Closing(
            closing_statement, closed_at, closing_statement.has_any_date, rule, closing_interval
        )
        closing_interval.made.append(old_interval)
        self._just_closed.append(old_interval)

    def _is_closing_undone(self, old_interval: Interval, new_statement: Statement) -> bool:
        """Whether the user took back that one meaning closes the other."""
        if not self.undone:
            return False
        return any(
            (meaning, new_statement.meaning) in self.undone for meaning in old_interval.meanings
        )


def _drop_closed_and_list_latest_first(
    intervals: list[Interval], moment: datetime
) -> list[Interval]:
    """Give the intervals that are open at a time, the latest first, and forget the others.

    Statements are read in the order of time, so that what is over stays over.
    """
    intervals[:] = [interval for interval in intervals if interval.is_open(moment)]
    return intervals[::-1]


def _have_statement_with_id(affected_id: str, intervals: list[Interval]) -> bool:
    """Whether one of several intervals has a statement of an id, or of a meaning with that id."""
    for interval in intervals:
        for statement in interval.statements:
            if affected_id in (statement.fact_id, statement.meaning_id):
                return True
    return False
