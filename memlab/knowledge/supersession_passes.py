"""Readings: the statements of a scope are read in order, and again where one takes another out.

A correction says that something never held, and a plan that is called off never came into force.
What stands after such a thing may then repeat or close something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from memlab.knowledge.fact_statements import Statement
from memlab.knowledge.supersession_timeline import Effect, Timeline, Undone
from memlab.knowledge.validity_intervals import CORRECTED, Closing, Interval

_Node = tuple[str, ...]


@dataclass
class Outcome:
    """What statements come to.

    :param intervals: all intervals, with those that were corrected.
    :param idle: effects on what is unknown, was said later, or was over.
    """

    intervals: list[Interval] = field(default_factory=list)
    idle: set[Effect] = field(default_factory=set)

    def add(self, other: Outcome) -> None:
        self.intervals += other.intervals
        self.idle |= other.idle


def resolve_statements(statements: list[Statement], undone: Undone) -> Outcome:
    """Give the intervals of the statements of one scope, in the order in which they were said.

    :param undone: pairs of meanings: the second does not close the first.

    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.supersession_passes import resolve_statements
    >>> from memlab.knowledge.fact_statements import place_facts, read_statements
    >>> values = {"f1": "Oslo", "f2": "Rome"}
    >>> facts = [Fact(i, "u", "Ann", "home", v, "stated", [], None) for i, v in values.items()]
    >>> statements = read_statements(place_facts(frame(Fact, facts)), None)
    >>> oslo, rome = resolve_statements(statements, undone=()).intervals
    >>> oslo.closed.by.id, rome.closed
    ('f2', None)
    """
    outcome = Outcome()
    for group in _connected_groups(statements):
        outcome.add(_Readings(group, undone).read_all())
    return outcome


def _connected_groups(statements: list[Statement]) -> Iterable[list[Statement]]:
    """Split statements so that no rule reaches from one group into another.

    Statements of one slot of a subject are connected, and each with those that its effects name, so
    that a correction has few of them read again.
    """
    parents: dict[_Node, _Node] = {}
    for statement in statements:
        slot_node = statement.meaning.parts[:3]
        _connect(parents, (statement.id,), slot_node)
        _connect(parents, (statement.meaning_id,), slot_node)
        for _, affected_id in statement.effects:
            _connect(parents, (affected_id,), slot_node)
    groups: dict[_Node, list[Statement]] = {}
    for statement in statements:
        groups.setdefault(_root(parents, (statement.id,)), []).append(statement)
    return groups.values()


def _connect(parents: dict[_Node, _Node], one: _Node, two: _Node) -> None:
    parents[_root(parents, one)] = _root(parents, two)


def _root(parents: dict[_Node, _Node], node: _Node) -> _Node:
    """Find the node that stands for all that are connected, and shorten the way to it."""
    while parents.setdefault(node, node) != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@dataclass
class _Readings:
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
    undone: Undone
    settled: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    wrong: list[Interval] = field(default_factory=list)
    idle: set[Effect] = field(default_factory=set)

    def read_all(self) -> Outcome:
        """Read the statements until nothing is taken out any more."""
        while True:
            timeline = Timeline(self.undone, self.voided)
            if self._read(timeline):
                return Outcome(self.wrong + timeline.intervals, self.idle | timeline.idle)

    def _read(self, timeline: Timeline) -> bool:
        """Read the statements in order; whether all of them were read, and nothing taken out."""
        for statement in self.stream:
            if statement.id not in self.settled:
                wrong_intervals = timeline.find_wrong(statement)
                if wrong_intervals:
                    self._keep_idle(statement, timeline)
                    self._correct(statement, wrong_intervals)
                    return False
            timeline.add(statement)
            taken_back = timeline.find_taken_back()
            if taken_back:
                self.voided.update(_fact_ids(taken_back))
                return False
        return True

    def _keep_idle(self, statement: Statement, timeline: Timeline) -> None:
        """Keep which of its corrections reach nothing: later readings do not look for them."""
        for effect in timeline.idle:
            if effect[:2] == (statement.id, "was_wrong"):
                self.idle.add(effect)

    def _correct(self, statement: Statement, wrong: list[Interval]) -> None:
        """Take out what a statement says never held, and put the statement in its place.

        An event has no value to put there: it stays where it is.
        """
        self.settled.add(statement.id)
        # What was wrong may have been the reason.
        self.voided.clear()
        for interval in wrong:
            interval.closed = Closing(
                statement, interval.begins, interval.is_dated, CORRECTED, None
            )
        self.wrong += wrong
        dropped_ids = _fact_ids(wrong)
        kept_statements: list[Statement] = []
        is_placed = statement.kind == "event"
        for stream_statement in self.stream:
            if stream_statement.id not in dropped_ids:
                kept_statements.append(stream_statement)
            elif not is_placed:
                is_placed = True
                kept_statements.append(_put_in_place(statement, stream_statement, wrong))
        self.stream = kept_statements


def _put_in_place(statement: Statement, old: Statement, wrong: list[Interval]) -> Statement:
    """Put a correction in the place of the first wrong statement.

    It holds from when that began, unless it says a date itself; a plan from when that was said.
    """
    repeat_effects = [
        effect_pair for effect_pair in statement.effects if effect_pair[0] == "repeats"
    ]
    moved_statement = replace(statement, placed_at=old.placed_at, effects=tuple(repeat_effects))
    wrong_interval = next(interval for interval in wrong if interval.first is old)
    if not wrong_interval.is_dated:
        return moved_statement
    if statement.kind == "plan":
        return replace(moved_statement, begins=old.placed_at, is_dated=True)
    if statement.since is not None:
        return moved_statement
    return replace(moved_statement, begins=wrong_interval.begins, is_dated=True)


def _fact_ids(intervals: list[Interval]) -> set[str]:
    return {statement.id for interval in intervals for statement in interval.statements}
