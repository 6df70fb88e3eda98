"""Summaries of sessions, weeks and months, and their digest as Markdown.

A session is summarised by its turns; a week by the summaries of its sessions and a month by those
of its weeks, with what goes on from the period before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from memlab.errors import DataError
from memlab.records import Summary, frame, schema
from memlab.summaries.summary_prompts import PERIOD, SESSION, deduplicate_texts, evidence_column
from memlab.summaries.summary_rows import (
    Row,
    Writer,
    fill_missing_topics,
    node_frame,
    turn_rows,
    write_summaries,
)
from memlab.terminal import count_noun, escape_markdown

_HEADINGS = {
    "sentences": "", "carried_on": "Carried on from before", "decisions": "Decided", "open_questions": "Still open",
}  # fmt: skip


def to_markdown(node: Mapping[str, Any], *, tz: str = "UTC") -> str:
    """Write a row of :class:`memlab.records.Node` as Markdown, each sentence with the turns that it stands on.

    :param tz: as the node was made with.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "I moved to *Oslo*.")
    >>> nodes = memlab.summaries.rollup(memlab.records.frame(memlab.Turn, [turn]))
    >>> print(memlab.summaries.to_markdown(nodes.row(1, named=True)))
    # u: week, undated
    <BLANKLINE>
    1 turn in 1 session; written by: extractive; topics: Oslo
    <BLANKLINE>
    - Mel: I moved to \\*Oslo\\*. (u/s/1)
    """
    below = {"week": "sessions", "month": "weeks"}.get(node["kind"], "parts")
    counted = (
        f"{count_noun(len(node['turns']), 'turns')} in {count_noun(len(node['children']), below)}"
    )
    counted += f"; written by: {node['service']}"
    if topics := escape_markdown(", ".join(node["topics"])):
        counted += f"; topics: {topics}"
    lines = [f"# {escape_markdown(node['scope'])}: {period_name(node, tz=tz)}", "", counted]
    for name, head in _HEADINGS.items():
        if node[name]:
            cited = zip(node[name], node[evidence_column(name)], strict=True)
            lines += ["", f"## {head}", ""] if head else [""]
            lines += [
                f"- {escape_markdown(text)} ({escape_markdown(', '.join(ids))})"
                for text, ids in cited
            ]
    return "\n".join(lines)


def period_name(node: Mapping[str, Any], *, tz: str = "UTC") -> str:
    """Give the name of a node's period: ``week of 2 March 2026``, ``March 2026``, ``session of 4 March 2026``."""
    if node["start"] is None:
        return f"{node['kind']}, undated"
    day = node["start"].astimezone(ZoneInfo(tz)).date()
    monday = day - timedelta(days=day.weekday())
    if node["kind"] == "month":
        return f"{monday + timedelta(days=3):%B %Y}"
    return f"{node['kind']} of {monday if node['kind'] == 'week' else day:%-d %B %Y}"


def summarize_sessions(
    turns: pl.DataFrame, *, service: Writer = None, language: str = "en"
) -> pl.DataFrame:
    """Summarise sessions: two to six sentences, topics, decisions, action items, open questions and entities.

    Without a model, and where it gives no answer that stands on the session's turns, the sentences
    are those of the session itself, and there are topics, but no decisions, action items, open
    questions or entities.

    :param turns: rows of :class:`memlab.records.Turn`, whole sessions, in order of time.
    :param service: see :func:`memlab.llm.ask`; ``None`` for no model.
    :param language: of the turns, ISO 639-1; the topics are found by it.
    :returns: rows of :class:`memlab.records.Summary` in the order of the sessions, with ``dropped``
        (sentences of the model that name turns that are not there) and ``reason`` (why a row is
        extractive though a model was asked; empty otherwise).
    :raises ModelError: when the service cannot be asked at all.

    >>> import memlab
    >>> said = ["I moved to Oslo in May.", "How nice! Do you like it there?", "The harbour is lovely, the rent is not."]
    >>> turns = [memlab.Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", text) for n, text in enumerate(said)]
    >>> made = memlab.summaries.summarize_sessions(memlab.records.frame(memlab.Turn, turns))
    >>> made.select("summary", "evidence").row(0)
    ('Mel: I moved to Oslo in May. Mel: The harbour is lovely, the rent is not.', [['u/s/0'], ['u/s/2']])
    """
    parts = dict[str, list[Row]]()
    for session, row in zip(turns["session_id"], turn_rows(turns), strict=True):
        parts.setdefault(session, []).append(row)
    summaries = write_summaries(SESSION, [*parts.values()], service)
    rows = [
        {**row, "session_id": session, "summary": row["text"], "version": "", "n_turns": len(part),
         "participants": deduplicate_texts(each["speaker"] for each in part)}
        for (session, part), row in zip(parts.items(), summaries, strict=True)
    ]  # fmt: skip
    columns = schema(Summary) | {"dropped": pl.Int64(), "reason": pl.String()}
    summary_frame = pl.DataFrame(rows, schema={**columns, "turns": pl.List(pl.String())})
    return fill_missing_topics(summary_frame, turns, language).select(*columns)


def rollup(
    turns: pl.DataFrame,
    *,
    summaries: pl.DataFrame | None = None,
    tz: str = "UTC",
    service: Writer = None,
    language: str = "en",
) -> pl.DataFrame:
    """Summarise sessions, weeks of them, and months of these.

    A session belongs to the week in which it starts where the memory's owner lives, a week (from
    Monday) to the month of its Thursday. A session without a date goes with the one in front of it,
    the first ones with the one behind; a scope without any date is one week and one month, whose
    ``method`` is ``undated``. With a service that has ``record``, a period is asked for again only
    when its summaries or those of the period before have changed.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param summaries: rows of :class:`memlab.records.Summary`; sessions that have none are
        summarised.
    :param tz: name of the time zone in which days begin, as ``Europe/Oslo``.
    :param service: see :func:`memlab.summaries.summarize_sessions`, as ``language``.
    :returns: rows of :class:`memlab.records.Node`: sessions, then weeks, then months, each by scope
        and time.
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
    sessions = _session_rows(_sessions_with_periods(turns, tz), turns, summaries, service, language)
    weeks = _period_rows("week", sessions, tz, service)
    months = _period_rows("month", weeks, tz, service)
    return pl.concat([node_frame(rows, turns, language) for rows in (sessions, weeks, months)])


def summarize_period(
    turns: pl.DataFrame,
    kind: str,
    day: date,
    *,
    summaries: pl.DataFrame | None = None,
    tz: str = "UTC",
    service: Writer = None,
    language: str = "en",
) -> pl.DataFrame:
    """Write the one week or month of a scope that a day lies in, as :func:`rollup` writes it, but for its topics.

    Topics that no model gave set a period apart from the scope's other periods in a rollup; here
    there are no others.

    :param kind: ``week`` or ``month``.
    :returns: a row of :class:`memlab.records.Node`.
    :raises DataError: when the scope has no session in it.
    """
    dated = _sessions_with_periods(turns, tz)
    first_day = day.replace(day=1) if kind == "month" else day - timedelta(days=day.weekday())
    first_days = dated[kind].unique(maintain_order=True).to_list()
    if first_day not in first_days:
        span = f"its {kind}s go from {first_days[0]} to {first_days[-1]}"
        span = "its sessions have no dates" if first_days == [None] else span
        weeks = ", where a week belongs to the month of its Thursday" * (kind == "month")
        raise DataError(f"there is no session in the {kind} of {day}{weeks}; {span}")
    below = _session_rows(
        dated.filter(pl.col(kind) <= first_day), turns, summaries, service, language
    )
    if kind == "month":
        # The month before, too: something may be carried on of it.
        both = first_days[: first_days.index(first_day) + 1][-2:]
        below = _period_rows(
            "week",
            below,
            tz,
            service,
            only=dated.filter(pl.col(kind).is_in(both))["week"].to_list(),
        )
    return node_frame(_period_rows(kind, below, tz, service, only=[first_day]), turns, language)


def _sessions_with_periods(turns: pl.DataFrame, tz: str) -> pl.DataFrame:
    """List sessions in order of scope and time: ``session_id``, ``turns``, ``week`` and ``month`` (first days)."""
    try:
        ZoneInfo(tz)
    except (KeyError, ValueError, OSError) as error:
        raise DataError(
            f"tz is {tz!r}, which is no time zone; write one as 'UTC' or 'Europe/Oslo'"
        ) from error
    near = pl.col("near")
    return (
        turns.group_by("session_id", maintain_order=True)
        .agg(pl.col("scope").first(), near=pl.col("timestamp").min(), turns="turn_id")
        .with_columns(near.forward_fill().over("scope"), place=pl.col("scope").rle_id())
        .with_columns(near.backward_fill().over("scope"))
        .sort("place", "near", maintain_order=True)
        .with_columns(week=near.dt.convert_time_zone(tz).dt.date().dt.truncate("1w"))
        .with_columns(month=(pl.col("week") + pl.duration(days=3)).dt.truncate("1mo"))
        .select("session_id", "turns", "week", "month")
    )


def _session_rows(
    dated: pl.DataFrame,
    turns: pl.DataFrame,
    summaries: pl.DataFrame | None,
    service: Writer,
    language: str,
) -> list[Row]:
    """Give the sessions' summaries as rows of nodes with ``week`` and ``month``; missing ones are written."""
    known = frame(Summary) if summaries is None else summaries
    new = dated.join(known, on="session_id", how="anti")
    unsummarised = turns.join(new, on="session_id", how="semi", maintain_order="left")
    made = pl.concat(
        [known, summarize_sessions(unsummarised, service=service, language=language)],
        how="diagonal",
    )
    rows = dated.join(made, on="session_id", maintain_order="left").with_columns(
        pl.col("dropped").fill_null(0), pl.col("reason").fill_null(""), level=pl.lit(0), kind=pl.lit("session"),
        method=pl.lit("session"), node_id="session_id", text="summary",
    )  # fmt: skip
    return rows.to_dicts()


def _period_rows(
    kind: str,
    below: list[Row],
    tz: str,
    service: Writer,
    *,
    only: Collection[date | None] | None = None,
) -> list[Row]:
    """Write the weeks or months above some nodes, in order; ``only``: those of these dates."""
    parts = [list(rows) for _, rows in groupby(below, key=lambda row: (row["scope"], row[kind]))]
    pairs = [
        (part, before if before and before[0]["scope"] == part[0]["scope"] else [])
        for part, before in zip(parts, [[], *parts], strict=False)
        if only is None or part[0][kind] in only
    ]
    nodes = write_summaries(
        PERIOD, [part for part, _ in pairs], service, before=[before for _, before in pairs]
    )
    for (part, _), node in zip(pairs, nodes, strict=True):
        method = f"{kind}s ({tz})" if part[0][kind] else "undated"
        node |= {"kind": kind, "method": method, "month": part[0]["month"]}
        for row in part:
            row["parent"] = node["node_id"]
    return nodes


def period_boxes(nodes: pl.DataFrame) -> pl.DataFrame:
    """Give the months and weeks of a memory with their topics, for :func:`memlab.figures.icicle.icicle`.

    :param nodes: of one scope, of :func:`memlab.summaries.summary_tree` over weeks.
    :returns: ``node_id``, ``parent``, ``kind``, ``label`` and ``n_turns``.
    """
    above = nodes.filter(pl.col("kind") != "session")
    labels = [f"{period_name(row)}: {', '.join(row['topics'])}" for row in above.to_dicts()]
    named = pl.Series(labels, dtype=pl.String)
    turns = pl.col("turns").list.len()
    return above.select("node_id", "parent", "kind", label=named, n_turns=turns)
