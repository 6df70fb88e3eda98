"""Weeks and months: summaries of the summaries of sessions, with what goes on from the period before."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

import polars as pl

from memlab.errors import DataError
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
    :param summaries: rows of :class:`memlab.records.Summary`, one a session; made of the turns where not given.
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
    if summaries is None:
        summaries = summarize(turns, service=service, progress=progress)
    sessions = _sessions(turns, summaries, tz)
    weeks = _layer("week", sessions, tz, service, progress=progress)
    months = _layer("month", weeks, tz, service, progress=progress)
    return _frame([*sessions, *weeks, *months], turns)


def period(
    turns: pl.DataFrame, kind: str, day: date, *, summaries: pl.DataFrame, tz: str = "UTC", service: Writer = None
) -> pl.DataFrame:
    """Write the one week or month of a scope that a day lies in, as :func:`rollup` writes it.

    :param kind: ``week`` or ``month``.
    :returns: a row of :class:`memlab.records.Node`.
    :raises DataError: when the scope has no session in it.
    """
    sessions = _sessions(turns, summaries, tz)
    wanted = day.replace(day=1) if kind == "month" else _monday(day)
    there = list(dict.fromkeys(row[kind] for row in sessions))
    if wanted not in there:
        dated = [each for each in there if each is not None]
        known = f"its {kind}s go from {dated[0]} to {dated[-1]}" if dated else "its sessions have no dates"
        raise DataError(f"there is no session in the {kind} of {day}; {known}")
    if kind == "week":
        return _frame(_layer("week", sessions, tz, service, only=[wanted]), turns)
    needed = there[max(there.index(wanted) - 1, 0) : there.index(wanted) + 1]
    weeks = _layer("week", sessions, tz, service, only={row["week"] for row in sessions if row["month"] in needed})
    return _frame(_layer("month", weeks, tz, service, only=[wanted]), turns)


def _sessions(turns: pl.DataFrame, summaries: pl.DataFrame, tz: str) -> list[Row]:
    """Give summaries as rows of nodes in order of scope and time, each with the dates of its ``week`` and ``month``."""
    try:
        ZoneInfo(tz)
    except (KeyError, ValueError, OSError) as error:
        raise DataError(f"tz is {tz!r}, which is no time zone; write one as 'UTC' or 'Europe/Oslo'") from error
    fill = pl.col("start").forward_fill().over("scope")
    ids = turns.group_by("session_id").agg(turns="turn_id")
    rows = (
        summaries.join(ids, on="session_id", maintain_order="left")
        .with_columns(near=fill)
        .with_columns(near=pl.col("near").backward_fill().over("scope"), place=pl.col("scope").rle_id())
        .sort("place", "near", maintain_order=True)
        .with_columns(day=pl.col("near").dt.convert_time_zone(tz).dt.date())
    )
    made = []
    for row in rows.iter_rows(named=True):
        week = None if row["day"] is None else _monday(row["day"])
        month = None if week is None else (week + timedelta(days=3)).replace(day=1)
        about = {"node_id": row["session_id"], "level": 0, "kind": "session", "method": "session", "parent": None}
        dated = {"week": week, "month": month, "text": row["summary"]}
        made.append({**EMPTY, "dropped": 0, "reason": "", **row, **about, **dated})
    return made


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
