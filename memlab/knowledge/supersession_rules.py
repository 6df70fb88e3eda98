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


def end_by_effect(effect: str, old: Interval, new: Statement) -> datetime | None:
    """Give when an interval ends by an effect; ``None`` where the effect does nothing to it.

    :param effect: a key of :data:`EFFECT_RULES`.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.supersession_rules import end_by_effect
    >>> from memlab.knowledge.validity_intervals import Interval
    >>> from memlab.knowledge.fact_statements import place_facts, read_statements
    >>> may = datetime(2026, 5, 1, tzinfo=UTC)
    >>> home = Fact("f1", "u", "Ann", "home", "Oslo", "stated", [], may)
    >>> trip = Fact("f2", "u", "Ann", "home", "Rome", "stated", [], may, kind="plan", since="2027")
    >>> oslo, plan = read_statements(place_facts(frame(Fact, [home, trip])), None)
    >>> str(end_by_effect("replaces", Interval.of(oslo), plan).date())
    '2027-01-01'
    """
    if old.kind == "event":
        return _end_of_event(effect, old, new)
    if effect == "came_about" and old.kind != "plan":
        return None
    if new.kind == "plan" and old.kind in LASTING:
        # What is planned to end holds until the day of the plan, and on where it has none.
        if new.since is None:
            return None
        return new.since.start
    if effect == "cancelled":
        return min(new.begins, new.placed_at)
    return new.begins


def takes_back_closings(old: Interval) -> bool:
    """Whether a closing takes back what the interval had closed itself: it never came into force.

    That is so of a plan that did not come about, and of a state that is closed before its own
    beginning.
    """
    closing = old.closed
    if closing is None:
        return False
    if old.kind == "plan":
        is_void = closing.rule != CAME_ABOUT
    else:
        is_void = closing.by.placed_at < old.begins and closing.at <= old.begins
    if not is_void:
        return False
    return bool(lasting_closed_by(old))


def lasting_closed_by(closer: Interval) -> list[Interval]:
    """Give the states and rules that an interval closes, if no other one has closed them since."""
    lasting_intervals = []
    for closed_interval in closer.made:
        if closed_interval.closed is None:
            continue
        if closed_interval.closed.within is closer and closed_interval.kind in LASTING:
            lasting_intervals.append(closed_interval)
    return lasting_intervals


def _end_of_event(effect: str, old: Interval, new: Statement) -> datetime | None:
    """Give the date of an event that is called off before it; what happened, happened."""
    if old.begins <= new.placed_at:
        return None
    if effect in ("replaces", "cancelled"):
        return old.begins
    return None
