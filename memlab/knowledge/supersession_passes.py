"""Readings: the statements of a scope are read in order, and again where one takes another out.

A correction says that something never held, and a plan that is called off never came into force.
What stands after such a thing may then repeat or close something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from memlab.knowledge.fact_statements import Statement
from memlab.knowledge.supersession_timeline import Effect, Timeline, UndoneMeaningPairs
from memlab.knowledge.validity_intervals import CORRECTED, Closing, Interval

_Node = tuple[str, ...]


@dataclass
class IntervalsAndIdleEffects:
    """What statements come to.

    :param intervals: all intervals, with those that were corrected.
    :param idle: effects on what is unknown, was said later, or was over.
    """

    intervals: list[Interval] = field(default_factory=list)
    idle: set[Effect] = field(default_factory=set)

    def add_outcome_of(self, other: IntervalsAndIdleEffects) -> None:
        self.intervals += other.intervals
        self.idle |= other.idle


def resolve_statements_of_scope(
    statements: list[Statement], undone_meaning_pairs: UndoneMeaningPairs
) -> IntervalsAndIdleEffects:
    """Give the intervals of the statements of one scope, in the order in which they were said.

    :param undone_meaning_pairs: pairs of meanings: the second does not close the first.

    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.supersession_passes import resolve_statements_of_scope
    >>> from memlab.knowledge.fact_statements import fill_columns_and_place_in_time, read_statements
    >>> values = {"f1": "Oslo", "f2": "Rome"}
    >>> facts = [Fact(i, "u", "Ann", "home", v, "stated", [], None) for i, v in values.items()]
    >>> statements = read_statements(fill_columns_and_place_in_time(frame(Fact, facts)), None)
    >>> oslo, rome = resolve_statements_of_scope(statements, undone_meaning_pairs=()).intervals
    >>> oslo.closed.by.fact_id, rome.closed
    ('f2', None)
    """
    outcome = IntervalsAndIdleEffects()
    for group in _split_into_connected_groups(statements):
        outcome.add_outcome_of(
            _RepeatedStatementReading(group, undone_meaning_pairs).read_until_nothing_changes()
        )
    return outcome


def _split_into_connected_groups(statements: list[Statement]) -> Iterable[list[Statement]]:
    """Split statements so that no rule reaches from one group into another.

    Statements of one slot of a subject are connected, and each with those that its effects name, so
    that a correction has few of them read again.
    """
    parents: dict[_Node, _Node] = {}
    for statement in statements:
        slot_node = statement.meaning.parts[:3]
        _connect_nodes(parents, (statement.fact_id,), slot_node)
        _connect_nodes(parents, (statement.meaning_id,), slot_node)
        for _, affected_id in statement.effects:
            _connect_nodes(parents, (affected_id,), slot_node)
    groups: dict[_Node, list[Statement]] = {}
    for statement in statements:
        groups.setdefault(_find_root_and_shorten_path(parents, (statement.fact_id,)), []).append(
            statement
        )
    return groups.values()


def _connect_nodes(parent_by_node: dict[_Node, _Node], one_node: _Node, other_node: _Node) -> None:
    parent_by_node[_find_root_and_shorten_path(parent_by_node, one_node)] = (
        _find_root_and_shorten_path(parent_by_node, other_node)
    )


def _find_root_and_shorten_path(parent_by_node: dict[_Node, _Node], node: _Node) -> _Node:
    """Find the node that stands for all that are connected, and shorten the way to it."""
    while parent_by_node.setdefault(node, node) != node:
        parent_by_node[node] = parent_by_node[parent_by_node[node]]
        node = parent_by_node[node]
    return node


@dataclass
class _RepeatedStatementReading:
    """The readings of connected statements.

    Each but the last settles a correction for good or, between two of these, voids one more
    statement, so that there is an end.

    :param stream: the statements in order. A correction stands in the place of what was wrong, and
        again in its own, where its other effects count.
    :param settled: ids of the statements of which the corrections are done.
    :param voided: ids of the statements that never came into force, and close no state and no rule.
    :param wrong: the intervals that were corrected.
    """

    stream: list[Statement]
    undone: UndoneMeaningPairs
    settled: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    wrong: list[Interval] = field(default_factory=list)
    idle: set[Effect] = field(default_factory=set)

    def read_until_nothing_changes(self) -> IntervalsAndIdleEffects:
        """Read the statements until nothing is taken out any more."""
        while True:
            timeline = Timeline(self.undone, self.voided)
            if self._read_all_or_until_first_change(timeline):
                return IntervalsAndIdleEffects(
                    self.wrong + timeline.intervals, self.idle | timeline.idle
                )

    def _read_all_or_until_first_change(self, timeline: Timeline) -> bool:
        """Read the statements in order; whether all of them were read, and nothing taken out."""
        for statement in self.stream:
            if statement.fact_id not in self.settled:
                wrong_intervals = timeline.find_wrong_intervals_and_note_idle(statement)
                if wrong_intervals:
                    self._note_idle_corrections(statement, timeline)
                    self._replace_wrong_statements_by_correction(statement, wrong_intervals)
                    return False
            timeline.add_statement_and_close_others(statement)
            taken_back = timeline.find_just_closed_that_never_held()
            if taken_back:
                self.voided.update(_fact_ids_of_intervals(taken_back))
                return False
        return True

    def _note_idle_corrections(self, statement: Statement, timeline: Timeline) -> None:
        """Keep which of its corrections reach nothing: later readings do not look for them."""
        for effect in timeline.idle:
            if effect[:2] == (statement.fact_id, "was_wrong"):
                self.idle.add(effect)

    def _replace_wrong_statements_by_correction(
        self, correction: Statement, wrong_intervals: list[Interval]
    ) -> None:
        """Take out what a statement says never held, and put the statement in its place.

        An event has no value to put there: it stays where it is.
        """
        self.settled.add(correction.fact_id)
        # What was wrong may have been the reason.
        self.voided.clear()
        for interval in wrong_intervals:
            interval.closed = Closing(
                correction, interval.begins, interval.is_dated, CORRECTED, None
            )
        self.wrong += wrong_intervals
        dropped_ids = _fact_ids_of_intervals(wrong_intervals)
        kept_statements: list[Statement] = []
        is_placed = correction.kind == "event"
        for stream_statement in self.stream:
            if stream_statement.fact_id not in dropped_ids:
                kept_statements.append(stream_statement)
            elif not is_placed:
                is_placed = True
                kept_statements.append(
                    _move_correction_to_wrong_one(correction, stream_statement, wrong_intervals)
                )
        self.stream = kept_statements


def _move_correction_to_wrong_one(
    correction: Statement, wrong_statement: Statement, wrong_intervals: list[Interval]
) -> Statement:
    """Put a correction in the place of the first wrong statement.

    It holds from when that began, unless it says a date itself; a plan from when that was said.
    """
    repeat_effects = [
        effect_pair for effect_pair in correction.effects if effect_pair[0] == "repeats"
    ]
    moved_statement = replace(
        correction, placed_at=wrong_statement.placed_at, effects=tuple(repeat_effects)
    )
    wrong_interval = next(
        interval for interval in wrong_intervals if interval.first is wrong_statement
    )
    if not wrong_interval.is_dated:
        return moved_statement
    if correction.kind == "plan":
        return replace(moved_statement, begins=wrong_statement.placed_at, is_dated=True)
    if correction.since is not None:
        return moved_statement
    return replace(moved_statement, begins=wrong_interval.begins, is_dated=True)


def _fact_ids_of_intervals(intervals: list[Interval]) -> set[str]:
    return {statement.fact_id for interval in intervals for statement in interval.statements}
