"""The rules of closing: when an interval ends by an effect, and what that takes back."""

from __future__ import annotations

from datetime import datetime

from memlab.knowledge.fact_statements import LASTING, Statement
from memlab.knowledge.validity_intervals import CAME_ABOUT, CANCELLED, ENDED, REPLACED, Interval

EFFECT_RULES = {
    "came_about": CAME_ABOUT,
    "replaces": REPLACED,
    "ends": ENDED,
    "cancelled": CANCELLED,
}
"""Effects that close an interval, with their rules; of several on one interval the first counts."""


def end_of_interval_by_effect(
    effect: str, old_interval: Interval, new_statement: Statement
) -> datetime | None:
    """Give when an interval ends by an effect; ``None`` where the effect does nothing to it.

    :param effect: a key of :data:`EFFECT_RULES`.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.supersession_rules import end_of_interval_by_effect
    >>> from memlab.knowledge.validity_intervals import Interval
    >>> from memlab.knowledge.fact_statements import fill_columns_and_place_in_time, read_statements
    >>> may = datetime(2026, 5, 1, tzinfo=UTC)
    >>> home = Fact("f1", "u", "Ann", "home", "Oslo", "stated", [], may)
    >>> trip = Fact("f2", "u", "Ann", "home", "Rome", "stated", [], may, kind="plan", since="2027")
    >>> placed_facts = fill_columns_and_place_in_time(frame(Fact, [home, trip]))
    >>> oslo, plan = read_statements(placed_facts, None)
    >>> str(end_of_interval_by_effect("replaces", Interval.begun_by(oslo), plan).date())
    '2027-01-01'
    """
    if old_interval.kind == "event":
        return _date_of_called_off_event(effect, old_interval, new_statement)
    if effect == "came_about" and old_interval.kind != "plan":
        return None
    if new_statement.kind == "plan" and old_interval.kind in LASTING:
        # What is planned to end holds until the day of the plan, and on where it has none.
        if new_statement.since is None:
            return None
        return new_statement.since.start
    if effect == "cancelled":
        return min(new_statement.begins, new_statement.placed_at)
    return new_statement.begins


def never_held_but_closed_others(closed_interval: Interval) -> bool:
    """Whether a closing takes back what the interval had closed itself: it never came into force.

    That is so of a plan that did not come about, and of a state that is closed before its own
    beginning.
    """
    closing = closed_interval.closed
    if closing is None:
        return False
    if closed_interval.kind == "plan":
        is_void = closing.rule != CAME_ABOUT
    else:
        is_void = (
            closing.by.placed_at < closed_interval.begins and closing.at <= closed_interval.begins
        )
    if not is_void:
        return False
    return bool(states_and_rules_still_closed_by(closed_interval))


def states_and_rules_still_closed_by(closing_interval: Interval) -> list[Interval]:
    """Give the states and rules that an interval closes, if no other one has closed them since."""
    lasting_intervals = []
    for closed_interval in closing_interval.made:
        if closed_interval.closed is None:
            continue
        if closed_interval.closed.within is closing_interval and closed_interval.kind in LASTING:
            lasting_intervals.append(closed_interval)
    return lasting_intervals


def _date_of_called_off_event(
    effect: str, old_interval: Interval, new_statement: Statement
) -> datetime | None:
    """Give the date of an event that is called off before it; what happened, happened."""
    if old_interval.begins <= new_statement.placed_at:
        return None
    if effect in ("replaces", "cancelled"):
        return old_interval.begins
    return None
