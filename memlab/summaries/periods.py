"""Weeks and months: summaries of the summaries of sessions, with what goes on from the period before."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

import polars as pl

from memlab.errors import DataError
from memlab.records import Summary, frame
from memlab.summaries.asking import PERIOD, Group
from memlab.summaries.nodes import EMPTY, NODES, Row, above, items, with_topics
from memlab.summaries.sessions import summarize
from memlab.summaries.writing import Writer, write


def rollup(
    turns: pl.DataFrame,
    *,
    summaries: pl.DataFrame | None = None,
    tz: str = "UTC",
    service: Writer = None,
    progress: str = "",
) -> pl.DataFrame:
    """Summarise sessions, weeks of them, and months of these.

    A session belongs to the week in which it starts where the memory's owner lives, a week (from Monday) to the month
    of its Thursday. A session without a date goes with the one in front of it, the first ones with the one behind; a
    scope without any date is one week and one month, whose ``method`` is ``undated``. With a service that has
    ``record``, a period is asked for again only when its summaries or those of the period before have changed.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param summaries: rows of :class:`memlab.records.Summary`; sessions that have none are summarised.
    :param tz: name of the time zone in which days begin, as ``Europe/Oslo``.
    :param service: see :func:`memlab.summaries.summarize`.
    :returns: rows of :class:`memlab.records.Node`: sessions, then weeks, then months, each by scope and time.
    :raises DataError: for an unknown time zone.
    :raises ModelError: when the service cannot be asked at all.

    >>> import memlab
    >>> from datetime import UTC, datetime
    >>> said = ["I moved to Oslo.", "I found a flat by the harbour."]
    >>> days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2)]
    >>> turns = [memlab.Turn(f"u/{n}/1", "u", f"u/{n}", 1, "Mel", "user", said[n], None, days[n]) for n in (0, 1)]
    >>> nodes = memlab.summaries.rollup(memlab.records.frame(memlab.Turn, turns))
    >>> nodes["kind"].to_list()
    ['session', 'session', 'week', 'week', 'month', 'month']
    """
    sessions = _sessions(_dated(turns, tz), turns, summaries, service, progress)
    weeks = _layer("week", sessions, tz, service, progress=progress)
    months = _layer("month", weeks, tz, service, progress=progress)
    return _frame([*sessions, *weeks, *months], turns)


def period(
    turns: pl.DataFrame,
    kind: str,
    day: date,
    *,
    summaries: pl.DataFrame | None = None,
    tz: str = "UTC",
    service: Writer = None,
) -> pl.DataFrame:
    """Write the one week or month of a scope that a day lies in, as :func:`rollup` writes it.

    :param kind: ``week`` or ``month``.
    :returns: a row of :class:`memlab.records.Node`.
    :raises DataError: when the scope has no session in it.
    """
    dated = _dated(turns, tz)
    wanted = day.replace(day=1) if kind == "month" else _monday(day)
    weeks = dated["week"].unique(maintain_order=True).to_list()
    there = dated[kind].unique(maintain_order=True).to_list()
    if wanted not in there:
        span = "its sessions have no dates" if there == [None] else f"its {kind}s go from {there[0]} to {there[-1]}"
        raise DataError(f"there is no session in the {kind} of {day}; {span}")
    needed = there[max(there.index(wanted) - 1, 0) : there.index(wanted) + 1]
    written = dated.filter(pl.col(kind).is_in(needed))["week"].unique(maintain_order=True).to_list()
    # What was carried on into the first of several weeks stands in the one in front of it.
    begin = weeks.index(written[0]) - (kind == "month")
    read = weeks[max(begin, 0) : weeks.index(written[-1]) + 1]
    below = _sessions(dated.filter(pl.col("week").is_in(read)), turns, summaries, service, "")
    if kind == "month":
        below = _layer("week", below, tz, service, only=written)
    return _frame(_layer(kind, below, tz, service, only=[wanted]), turns)


def _dated(turns: pl.DataFrame, tz: str) -> pl.DataFrame:
    """List sessions in order of scope and time: ``session_id``, ``turns``, ``week`` and ``month`` (first days)."""
    try:
        ZoneInfo(tz)
    except (KeyError, ValueError, OSError) as error:
        raise DataError(f"tz is {tz!r}, which is no time zone; write one as 'UTC' or 'Europe/Oslo'") from error
    near = pl.col("near")
    monday = near.dt.convert_time_zone(tz).dt.date()
    monday -= pl.duration(days=monday.dt.weekday() - 1)
    return (
        turns.group_by("session_id", maintain_order=True)
        .agg(pl.col("scope").first(), near=pl.col("timestamp").min(), turns="turn_id")
        .with_columns(near.forward_fill().over("scope"), place=pl.col("scope").rle_id())
        .with_columns(near.backward_fill().over("scope"))
        .sort("place", "near", maintain_order=True)
        .with_columns(week=monday)
        .with_columns(month=(pl.col("week") + pl.duration(days=3)).dt.truncate("1mo"))
        .select("session_id", "turns", "week", "month")
    )


def _sessions(
    dated: pl.DataFrame, turns: pl.DataFrame, summaries: pl.DataFrame | None, service: Writer, progress: str
) -> list[Row]:
    """Give summaries as rows of nodes with ``week`` and ``month``; sessions that have none are summarised."""
    known = frame(Summary) if summaries is None else summaries
    new = turns.join(dated.join(known, on="session_id", how="anti"), on="session_id", how="semi", maintain_order="left")
    made = pl.concat([known, summarize(new, service=service, progress=progress)], how="diagonal")
    about = {"level": 0, "kind": "session", "method": "session", "parent": None}
    return [
        {**EMPTY, **row, **about, "node_id": row["session_id"], "text": row["summary"]}
        for row in dated.join(made, on="session_id", maintain_order="left")
        .with_columns(pl.col("dropped").fill_null(0), pl.col("reason").fill_null(""))
        .iter_rows(named=True)
    ]


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _layer(
    kind: str,
    below: list[Row],
    tz: str,
    service: Writer,
    *,
    only: Collection[date | None] | None = None,
    progress: str = "",
) -> list[Row]:
    """Write the periods above some nodes, in their order; ``only``: those of these dates."""
    parts = [list(rows) for _, rows in groupby(below, key=lambda row: (row["scope"], row[kind]))]
    both = zip(parts, [[], *parts], strict=False)
    pairs = [(part, before) for part, before in both if only is None or part[0][kind] in only]
    same = [[row for row in before if row["scope"] == part[0]["scope"]] for part, before in pairs]
    groups = [Group(items(part), items(before)) for (part, _), before in zip(pairs, same, strict=True)]
    made = []
    for (part, _), written in zip(pairs, write(PERIOD, groups, service, progress=progress), strict=True):
        method = f"{kind}s ({tz})" if part[0][kind] else "undated"
        made.append(above(part, written, kind=kind, method=method) | {"month": part[0]["month"]})
        for row in part:
            row["parent"] = written["node_id"]
    return made


def _frame(rows: list[Row], turns: pl.DataFrame) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=NODES)
    return pl.concat([with_topics(part, turns) for part in frame.partition_by("kind", maintain_order=True)] or [frame])
