"""Supersession: which facts are active, computed from all facts, with a log of closings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memlab.embed import Encoder
from memlab.knowledge.fact_statements import (
    Meaning,
    Statement,
    fill_columns_and_place_in_time,
    read_statements,
)
from memlab.knowledge.supersession_passes import (
    IntervalsAndIdleEffects,
    resolve_statements_of_scope,
)
from memlab.knowledge.validity_intervals import Interval, State
from memlab.records import TIMESTAMP
from memlab.records.dataset import in_utc

_STATE_SCHEMA = {
    "status": pl.String(),
    "superseded": pl.Boolean(),
    "superseded_by": pl.String(),
    "repeats": pl.String(),
    "valid_from": TIMESTAMP,
    "valid_to": TIMESTAMP,
    "n_reinforced": pl.Int32(),
    "last_access": TIMESTAMP,
}
_LOG_SCHEMA = {
    "scope": pl.String(),
    "about": pl.String(),
    "slot": pl.String(),
    "old": pl.String(),
    "new": pl.String(),
    "old_value": pl.String(),
    "new_value": pl.String(),
    "at": TIMESTAMP,
    "recorded_at": TIMESTAMP,
    "rule": pl.String(),
    "by": pl.String(),
    "evidence": pl.List(pl.String()),
}
_ACTIVE = ("active", "due")


@dataclass(frozen=True)
class Resolved:
    """Facts with their status, and the log of what closed them.

    :param facts: every statement, in its order, with ``status``, ``superseded`` (whether it is
        superseded, corrected or ended), ``superseded_by``, ``repeats`` (the statement that it
        reinforces), ``valid_from``, ``valid_to``, ``n_reinforced`` (statements that were read from
        the same turn are one) and ``last_access``.
    :param log: one row per closing: ``old``, ``new`` (fact ids), ``about`` and ``slot`` of the old,
        ``at`` (when the old stopped to hold; it may be to come), ``recorded_at`` (when that could
        first be known), ``rule``, ``by`` (who said so), ``evidence`` (turn ids), and both values.
    :param n_idle_effects: number of effects on what is unknown, was said later, or was over.

    ==============  ===============================================================================
    status          the fact
    ==============  ===============================================================================
    ``active``      holds; of an event: happened, or is to come
    ``due``         is a plan whose time has passed, and of which nobody said what came of it
    ``upcoming``    is a state or a rule that begins later than the present
    ``repeat``      repeats an earlier statement, whose status counts
    ``superseded``  held until another value took its place, or is a plan that came about
    ``ended``       held until it was said to be over, or until the date that was said
    ``corrected``   never held
    ==============  ===============================================================================
    """

    facts: pl.DataFrame
    log: pl.DataFrame
    n_idle_effects: int = 0


def resolve(
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None = None,
    as_of: datetime | None = None,
    now: datetime | None = None,
    undone: Collection[tuple[str, str]] = (),
) -> Resolved:
    """Find out which facts are active, and what superseded, ended or corrected the others.

    Within a scope, in the order in which things were *said* (not in which they arrived):

    - the same again (subject, slot, value, kind and whether it holds) reinforces;
    - the effects of a fact close what they name: ``replaces`` from when the new one begins,
      ``ends`` and ``cancelled`` for good, ``came_about`` a plan; what ``was_wrong`` never held, and
      the new fact holds in its place, closed by what had closed the wrong one;
    - another value of a slot that has one at a time closes the old one of the same kind without an
      effect, unless one turn states both; a denial closes what it denies, and the reverse;
    - an event never ends, but one to come may be called off. A plan ends a state from its own date
      on alone, and only while it is not called off itself;
    - what was over when it was said closes nothing without an effect.

    An older statement that arrives late takes its place in that order, so it is superseded from the
    start.

    A fact that nobody dated (``asserted_at`` is empty) takes its place by the order of the rows,
    and has no date in what comes back, unless its ``since`` or ``until`` says one: when it reached
    the memory says nothing of when it was said.

    The present is ``as_of``, else ``now`` or the last time at which something was said in the
    scope, whichever is later. By it statuses are given: what ends or begins on a later date is
    still active, or ``upcoming``.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param encoder: matches near-equal slots and values, see
        :func:`memlab.knowledge.fact_keys.make_comparison_keys`; ``None``: none.
    :param as_of: only what had reached the memory by then counts: what was active on that date.
        Facts without a date are left out, see :func:`count_undated_facts`.
    :param now: when it is asked; ``None``: when something was said last.
    :param undone: closings, by the columns ``old`` and ``new`` of the log, that do not count: both
        values are kept, however often and in whatever words either is said again. Another value may
        close the same fact.
    :raises DataError: for facts without their columns or with repeated ids, and for dates that are
        none.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge import active_facts
    >>> march, june = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    >>> facts = frame(Fact, [
    ...     Fact("f1", "u", "Ann", "API key", "sk-1111", "stated", ["u/s1/1"], march),
    ...     Fact("f2", "u", "Ann", "API key", "sk-2222", "stated", ["u/s9/4"], june),
    ... ])
    >>> resolved = resolve(facts)
    >>> active_facts(resolved)["value"].to_list()
    ['sk-2222']
    >>> active_facts(resolved, as_of=datetime(2026, 4, 1, tzinfo=UTC))["value"].to_list()
    ['sk-1111']
    >>> resolved.log.select("old", "new", "rule", "evidence").row(0)
    ('f1', 'f2', 'another value', ['u/s9/4'])
    >>> active_facts(resolve(facts, undone=[("f1", "f2")])).height
    2
    """
    placed_facts = fill_columns_and_place_in_time(facts)
    now = now and in_utc(now)
    if as_of is not None:
        as_of = in_utc(as_of)
        placed_facts = placed_facts.filter(
            pl.col("recorded_at") <= as_of, pl.col("said_at") <= as_of
        )
    statements = read_statements(placed_facts, encoder)
    outcome = _resolve_each_scope(statements, undone)
    present_by_scope = _present_time_by_scope(placed_facts, as_of, now)
    state_by_id: dict[str, State] = {}
    for interval in outcome.intervals:
        scope_present = present_by_scope[interval.first.fact["scope"]]
        state_by_id.update(interval.states_by_fact_id(scope_present))
    states_in_order = [state_by_id[fact_id] for fact_id in placed_facts["fact_id"]]
    state_table = pl.DataFrame(states_in_order, schema=_STATE_SCHEMA, orient="row")
    resolved_facts = placed_facts.drop("placed_at", "placed_by").hstack(state_table)
    return Resolved(resolved_facts, _log_of_closings(outcome.intervals), len(outcome.idle))


def count_undated_facts(facts: pl.DataFrame) -> int:
    """Count the facts of which nothing says when they were stated, so that no date can choose them.

    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.supersession import count_undated_facts
    >>> fact = Fact("f1", "u", "Ann", "home", "Oslo", "stated", [], None)
    >>> count_undated_facts(frame(Fact, [fact]))
    1
    """
    return int(facts["asserted_at"].null_count())


def active_facts(resolved: Resolved, *, as_of: datetime | None = None) -> pl.DataFrame:
    """List the active facts and the plans that are due, one row for each, however often stated.

    :param as_of: what held then, by all that is known, with the events that had been stated or had
        happened; ``None``: what holds last. For what was *known* then, without what arrived or was
        corrected later, resolve with the same ``as_of``.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge import active_facts, resolve
    >>> may = datetime(2026, 5, 1, tzinfo=UTC)
    >>> fact = Fact("f1", "u", "Ann", "ski pass", "north", "stated", [], may, until="2026-05")
    >>> resolved = resolve(frame(Fact, [fact]))
    >>> active_facts(resolved).height, active_facts(resolved, as_of=may.replace(month=6)).height
    (1, 0)
    """
    if as_of is None:
        return resolved.facts.filter(pl.col("status").is_in(_ACTIVE))
    as_of = in_utc(as_of)
    is_stated = (pl.col("kind") == "event") & (pl.col("said_at") <= as_of)
    is_going_on = pl.max_horizontal("valid_from", pl.lit(as_of)) < pl.col("valid_to")
    is_never_ended = pl.col("valid_to").is_null() & ~pl.col("superseded")
    return resolved.facts.filter(
        ~pl.col("status").is_in(["repeat", "corrected"]),
        (pl.col("valid_from") <= as_of) | is_stated,
        is_going_on | is_never_ended,
    )


def _resolve_each_scope(
    statements: list[Statement], undone_fact_pairs: Collection[tuple[str, str]]
) -> IntervalsAndIdleEffects:
    """Resolve each scope for itself; an undo is about what two facts state, however often."""
    meaning_by_id: dict[str, Meaning] = {}
    statements_by_scope: defaultdict[str, list[Statement]] = defaultdict(list)
    for statement in statements:
        meaning_by_id[statement.fact_id] = statement.meaning
        statements_by_scope[statement.fact["scope"]].append(statement)
    undone_pairs = set()
    for old_id, new_id in undone_fact_pairs:
        if old_id in meaning_by_id and new_id in meaning_by_id:
            undone_pairs.add((meaning_by_id[old_id], meaning_by_id[new_id]))
    outcome = IntervalsAndIdleEffects()
    for scope_statements in statements_by_scope.values():
        outcome.add_outcome_of(resolve_statements_of_scope(scope_statements, undone_pairs))
    return outcome


def _present_time_by_scope(
    placed_facts: pl.DataFrame, as_of: datetime | None, now: datetime | None
) -> dict[str, datetime | None]:
    """Give the present of each scope; ``None`` where nothing has any date."""
    latest_time = pl.coalesce(pl.col("said_at").max(), pl.col("recorded_at").max())
    if now is not None:
        latest_time = pl.max_horizontal(latest_time, pl.lit(now).cast(TIMESTAMP))
    present_by_scope = dict(placed_facts.group_by("scope").agg(latest_time).iter_rows())
    if as_of is not None:
        return dict.fromkeys(present_by_scope, as_of)
    return present_by_scope


def _log_of_closings(intervals: list[Interval]) -> pl.DataFrame:
    log_rows = [interval.closing_log_row() for interval in intervals if interval.closed]
    supersession_log = pl.DataFrame(log_rows, schema=_LOG_SCHEMA, orient="row")
    return supersession_log.sort("recorded_at", "at", "old")
