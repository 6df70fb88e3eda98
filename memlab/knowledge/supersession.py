"""Supersession: which facts are active, computed from all facts, with a log of what replaced what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge.timeline import Statement, read_statements, resolve_subject
from memlab.records import TIMESTAMP, Fact, schema

_NO_DATE = datetime(1970, 1, 1, tzinfo=UTC)
"""The place of facts of a scope without any date, among which the order of the rows alone counts."""
_STATE_SCHEMA = {
    "status": pl.String(), "superseded": pl.Boolean(), "superseded_by": pl.String(), "repeats": pl.String(),
    "valid_from": TIMESTAMP, "valid_to": TIMESTAMP, "n_reinforced": pl.Int32(), "last_access": TIMESTAMP,
}  # fmt: skip
_LOG_SCHEMA = {
    **dict.fromkeys(("scope", "subject", "predicate", "old", "new", "old_object", "new_object"), pl.String()),
    "at": TIMESTAMP, "recorded_at": TIMESTAMP, "rule": pl.String(), "by": pl.String(), "evidence": pl.List(pl.String()),
}  # fmt: skip


@dataclass(frozen=True)
class Resolved:
    """Facts with their status, and the log of what closed them.

    :param facts: every statement, in its order, with ``status`` (``active``; ``repeat`` of an
        earlier statement; ``superseded``, ``corrected`` or ``ended``; ``expired`` for a plan not
        stated again; ``closing`` for a statement that only ends something), ``superseded`` (true
        for the last five), ``superseded_by``, ``repeats`` (the statement that it reinforces),
        ``valid_from``, ``valid_to``, ``n_reinforced`` (statements that were read from the same turn
        are one) and ``last_access``.
    :param log: one row per closing: ``old``, ``new`` (fact ids), ``at`` (when the old stopped to
        hold), ``recorded_at`` (when that could first be known), ``rule``, ``by`` (who said so),
        ``evidence`` (turn ids), and both values.
    """

    facts: pl.DataFrame
    log: pl.DataFrame


def resolve(
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None = None,
    as_of: datetime | None = None,
    undone: Collection[tuple[str, str]] = (),
) -> Resolved:
    """Find out which facts are active, and what superseded or ended the others.

    For one subject and one relation, in the order in which things were *said* (not in which they
    arrived):

    - the same value again reinforces; another value supersedes where the relation has one value at
      a time, and stands beside the old where it has many, or where that is unknown;
    - "no longer", "used to" and a denial end the value that they name;
    - "not A but B" corrects: A never held, and B holds from when A was said;
    - a plan ends when it has come about, and expires after 120 days without a word.

    An older statement that arrives late takes its place in that order, so it is superseded from the
    start.

    A fact that nobody dated (``asserted_at`` is empty) takes its place by the order of the rows, and has
    no date in what comes back: when it reached the memory says nothing of when it was said.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param encoder: matches near-equal values, see :func:`memlab.knowledge.normal_form.value_keys`;
        ``None``: none.
    :param as_of: only what had reached the memory by then counts: what was active on that date. Facts
        without a date are left out, see :func:`count_undated_facts`.
    :param undone: closings, by the columns ``old`` and ``new`` of the log, that do not count: both
        values are kept, however often and in whatever words either is said again. Another value may
        close the same fact.
    :raises DataError: for facts without their columns or with repeated ids.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge import active_facts
    >>> march, june = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    >>> facts = frame(Fact, [
    ...     Fact("f1", "u", "Ann's API key", "is", "sk-1111", "stated", ["u/s1/1"], march),
    ...     Fact("f2", "u", "Ann's API key", "is", "sk-2222", "stated", ["u/s9/4"], june),
    ... ])
    >>> resolved = resolve(facts)
    >>> active_facts(resolved)["object"].to_list()
    ['sk-2222']
    >>> active_facts(resolved, as_of=datetime(2026, 4, 1, tzinfo=UTC))["object"].to_list()
    ['sk-1111']
    >>> resolved.log.select("old", "new", "rule", "evidence").row(0)
    ('f1', 'f2', 'another value', ['u/s9/4'])
    >>> active_facts(resolve(facts, undone=[("f1", "f2")])).height
    2
    """
    arrived = _validate_facts(facts)
    if as_of is not None:
        arrived = arrived.filter(pl.col("recorded_at") <= as_of, pl.col("said_at") <= as_of)
    statements = {statement.id: statement for statement in read_statements(arrived, encoder)}
    pairs = [
        (statements[old], statements[new])
        for old, new in undone
        if old in statements and new in statements
    ]
    meanings = {(old.meaning, new.meaning) for old, new in pairs}
    subjects: defaultdict[tuple[str, str], list[Statement]] = defaultdict(list)
    for statement in statements.values():
        subjects[statement.fact["scope"], statement.subject].append(statement)
    intervals = [
        interval for stated in subjects.values() for interval in resolve_subject(stated, meanings)
    ]
    latest = dict(arrived.group_by("scope").agg(pl.col("placed_at").max()).iter_rows())
    # A statement that is in no interval only ends something.
    times = arrived.select("fact_id", "said_at").iter_rows()
    states = {fact: ("closing", True, None, None, at, at, 0, at) for fact, at in times}
    for interval in intervals:
        states |= interval.fact_states(as_of or latest[interval.first.fact["scope"]])
    log = pl.DataFrame(
        [each.log_row() for each in intervals if each.closed], schema=_LOG_SCHEMA, orient="row"
    )
    table = pl.DataFrame(list(states.values()), schema=_STATE_SCHEMA, orient="row")
    placed = arrived.drop("placed_at", "placed_by").hstack(table)
    return Resolved(placed, log.sort("recorded_at", "at", "old"))


def count_undated_facts(facts: pl.DataFrame) -> int:
    """Count the facts of which nothing says when they were stated, so that no date can choose them.

    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.supersession import count_undated_facts
    >>> count_undated_facts(frame(Fact, [Fact("f1", "u", "Ann", "lives in", "Oslo", "stated", [], None)]))
    1
    """
    return int(facts["asserted_at"].null_count())


def active_facts(resolved: Resolved, *, as_of: datetime | None = None) -> pl.DataFrame:
    """List the active facts, one row for each value, however often it was stated.

    :param as_of: what held then, by all that is known; ``None``: what holds last. For what was
        *known* then, without what arrived or was corrected later, resolve with the same ``as_of``.
    """
    if as_of is None:
        return resolved.facts.filter(pl.col("status") == "active")
    facts = resolved.facts.filter(
        pl.col("status").is_in(["active", "superseded", "ended", "expired"])
    )
    return facts.filter(
        pl.col("valid_from") <= as_of, pl.col("valid_to").is_null() | (pl.col("valid_to") > as_of)
    )


def _validate_facts(facts: pl.DataFrame) -> pl.DataFrame:
    """Fill optional columns and refuse what cannot be resolved."""
    expected = schema(Fact)
    if missing := [name for name in list(expected)[:8] if name not in facts.columns]:
        raise DataError(f"facts have no column {missing[0]!r}; expected {', '.join(expected)}")
    filled = facts.with_columns(
        pl.lit(None).alias(name) for name in expected if name not in facts.columns
    )
    filled = filled.cast(expected)  # type: ignore[arg-type]
    said_at = pl.col("asserted_at")
    # What nobody dated stands right behind what stands before it, or before all that follows.
    before, behind = (
        said_at.forward_fill().over("scope"),
        said_at.backward_fill().over("scope"),
    )
    placed_by = pl.when(said_at.is_not_null()).then(0).when(before.is_null()).then(-1).otherwise(1)
    filled = filled.with_columns(
        said_at=said_at,
        placed_at=pl.coalesce(before, behind, pl.lit(_NO_DATE)),
        placed_by=placed_by,
        recorded_at=pl.coalesce("recorded_at", "asserted_at"),
    )
    if len(repeated := filled.filter(pl.col("fact_id").is_duplicated())):
        raise DataError(f"fact id {repeated['fact_id'][0]!r} stands twice; ids are unique")
    return filled
