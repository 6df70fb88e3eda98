"""Summaries of sessions, weeks and months, and their digest as Markdown.

A session is summarised by its turns; a week by the summaries of its sessions and a month by those
of its weeks, with what goes on from the period before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from memlab.errors import DataError
from memlab.records import Summary, frame, schema
from memlab.summaries.summary_prompts import (
    PERIOD,
    SESSION,
    Group,
    deduplicate_texts,
    evidence_column,
    source_digest,
    summary_request,
)
from memlab.summaries.summary_rows import (
    Row,
    Writer,
    fill_missing_topics,
    node_frame,
    reusable_rows,
    summary_items,
    turn_rows,
    write_summaries,
)
from memlab.terminal import count_noun, escape_markdown

HEADINGS = {
    "sentences": "",
    "carried_on": "Carried on from before",
    "decisions": "Decided",
    "open_questions": "Still open",
}


def to_markdown(node: Mapping[str, Any], *, tz: str = "UTC") -> str:
    """Write a row of :class:`memlab.records.Node` as Markdown, each sentence with the turns that it
    stands on.

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
    counted = escape_markdown(describe_node(node))
    lines = [f"# {escape_markdown(node['scope'])}: {period_name(node, tz=tz)}", "", counted]
    for name, head in HEADINGS.items():
        if node[name]:
            cited = zip(node[name], node[evidence_column(name)], strict=True)
            lines += ["", f"## {head}", ""] if head else [""]
            lines += [
                f"- {escape_markdown(text)} ({escape_markdown(', '.join(ids))})"
                for text, ids in cited
            ]
    return "\n".join(lines)


def describe_node(node: Mapping[str, Any]) -> str:
    """Say in a line what a node stands on, who wrote it, and its topics."""
    counted = count_noun(len(node["turns"]), "turns")
    if node["children"]:
        below = {"week": "sessions", "month": "weeks"}.get(node["kind"], "parts")
        counted += f" in {count_noun(len(node['children']), below)}"
    counted += f"; written by: {node['service']}"
    if node["topics"]:
        counted += f"; topics: {', '.join(node['topics'])}"
    return counted


def period_name(node: Mapping[str, Any], *, tz: str = "UTC") -> str:
    """Write the name of a node's period.

    ``week of 2 March 2026``, ``March 2026``, ``session of 4 March 2026``
    """
    if node["start"] is None:
        return f"{node['kind']}, undated"
    day = node["start"].astimezone(ZoneInfo(tz)).date()
    monday = day - timedelta(days=day.weekday())
    if node["kind"] == "month":
        return f"{monday + timedelta(days=3):%B %Y}"
    first_day = monday if node["kind"] == "week" else day
    return f"{node['kind']} of {first_day:%-d %B %Y}"


def summarize_sessions(
    turns: pl.DataFrame, *, service: Writer = None, language: str = "en"
) -> pl.DataFrame:
    """Summarise sessions: two to six sentences, topics, decisions, action items, open questions and
    entities.

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
    >>> said = ["I moved to Oslo in May.", "How nice! Do you like it there?"]
    >>> said.append("The harbour is lovely, the rent is not.")
    >>> turns = []
    >>> for n, text in enumerate(said):
    ...     turns.append(memlab.Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", text))
    >>> made = memlab.summaries.summarize_sessions(memlab.records.frame(memlab.Turn, turns))
    >>> made.select("summary", "evidence").row(0)
    ('Mel: I moved to Oslo in May. Mel: The harbour is lovely, the rent is not.', [['u/s/0'],
    ['u/s/2']])
    """
    parts = dict[str, list[Row]]()
    for session, row in zip(turns["session_id"], turn_rows(turns), strict=True):
        parts.setdefault(session, []).append(row)
    summaries = write_summaries(SESSION, [*parts.values()], service)
    rows = [
        {
            **row,
            "session_id": session,
            "summary": row["text"],
            "version": "",
            "n_turns": len(part),
            "participants": deduplicate_texts(each["speaker"] for each in part),
        }
        for (session, part), row in zip(parts.items(), summaries, strict=True)
    ]
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
    known: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Summarise sessions, weeks of them, and months of these.

    A session belongs to the week in which it starts where the memory's owner lives, a week (from
    Monday) to the month of its Thursday. A session without a date goes with the one in front of it,
    the first ones with the one behind; a scope without any date is one week and one month, whose
    ``method`` is ``undated``. With ``known``, or a service that has ``record``, a period is asked
    for again only when its summaries or those of the period before have changed.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param summaries: rows of :class:`memlab.records.Summary`; sessions that have none are
        summarised.
    :param tz: name of the time zone in which days begin, as ``Europe/Oslo``.
    :param service: see :func:`memlab.summaries.summarize_sessions`, as ``language``.
    :param known: rows of :class:`memlab.records.Node` of an earlier rollup: what the same model
        wrote of the same turns or summaries is taken from them.
    :returns: rows of :class:`memlab.records.Node`: sessions, then weeks, then months, each by scope
        and time.
    :raises DataError: for an unknown time zone.
    :raises ModelError: when the service cannot be asked at all.

    >>> import memlab
    >>> from datetime import UTC, datetime
    >>> said = ["I moved to Oslo.", "I found a flat by the harbour."]
    >>> days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2)]
    >>> turns = []
    >>> for n in (0, 1):
    ...     about = (f"u/{n}/1", "u", f"u/{n}", 1, "Mel", "user")
    ...     turns.append(memlab.Turn(*about, said[n], None, days[n]))
    >>> nodes = memlab.summaries.rollup(memlab.records.frame(memlab.Turn, turns))
    >>> nodes["kind"].to_list()
    ['session', 'session', 'week', 'week', 'month', 'month']
    """
    writer = PeriodWriter(turns, summaries, tz, service, language, known)
    sessions = writer.session_rows(writer.dated)
    weeks = writer.period_rows("week", sessions)
    months = writer.period_rows("month", weeks)
    return writer.node_frame(sessions, weeks, months)


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
    """Write the one week or month of a scope that a day lies in, as :func:`rollup` writes it, but
    for its topics.

    Topics that no model gave set a period apart from the scope's other periods in a rollup; here
    there are no others.

    :param kind: ``week`` or ``month``.
    :returns: a row of :class:`memlab.records.Node`.
    :raises DataError: when the scope has no session in it.
    """
    writer = PeriodWriter(turns, summaries, tz, service, language)
    return writer.write_period(kind, day).filter(kind=kind).tail(1)


def _sessions_with_periods(turns: pl.DataFrame, tz: str) -> pl.DataFrame:
    """List sessions in order of scope and time: ``session_id``, ``turns``, ``week`` and ``month``
    (first days).
    """
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


@dataclass(frozen=True)
class PeriodWriter:
    """What the summaries of sessions, weeks and months of some turns are written with.

    See :func:`rollup`.
    """

    turns: pl.DataFrame
    summaries: pl.DataFrame | None
    tz: str
    service: Writer
    language: str
    known: pl.DataFrame | None = None

    @cached_property
    def dated(self) -> pl.DataFrame:
        """The sessions with their periods, see :func:`_sessions_with_periods`."""
        return _sessions_with_periods(self.turns, self.tz)

    def node_frame(self, *layers: list[Row]) -> pl.DataFrame:
        """Give rows as nodes, layer by layer."""
        return pl.concat([node_frame(rows, self.turns, self.language) for rows in layers])

    def write_period(self, kind: str, day: date) -> pl.DataFrame:
        """Write the week or month that a day lies in, with what stands below it and in the period
        before.

        :raises DataError: when the scope has no session in it.
        """
        dated, first_day = self.dated, self.first_day(kind, day)
        first_days = dated[kind].unique(maintain_order=True).to_list()
        place = first_days.index(first_day)
        # The period before, too: something may be carried on of it.
        periods = first_days[max(0, place - 1) : place + 1]
        near = dated.filter(pl.col(kind).is_in(periods))
        if kind == "week":
            sessions = self.session_rows(near)
            return self.node_frame(sessions, self.period_rows("week", sessions, only=[first_day]))
        weeks = dated["week"].unique(maintain_order=True).to_list()
        first_week = max(0, weeks.index(near["week"][0]) - 1)
        wanted = near["week"].unique(maintain_order=True).to_list()
        sessions = self.session_rows(
            dated.filter(pl.col("week").is_in([weeks[first_week], *wanted]))
        )
        below = self.period_rows("week", sessions, only=wanted)
        months = self.period_rows("month", below, only=[first_day])
        return self.node_frame(sessions, below, months)

    def first_day(self, kind: str, day: date) -> date:
        """Give the first day of the week or month that a day lies in.

        :raises DataError: when the scope has no session in it.
        """
        first_day = _first_day(kind, day)
        first_days = self.dated[kind].unique(maintain_order=True).to_list()
        if first_day not in first_days:
            raise DataError(_nothing_in(kind, day, first_days))
        return first_day

    def session_rows(self, dated: pl.DataFrame) -> list[Row]:
        """Give the summaries of sessions as rows of nodes with ``week`` and ``month``.

        Missing ones are written.
        """
        indexed = frame(Summary) if self.summaries is None else self.summaries
        new = dated.join(indexed, on="session_id", how="anti")
        sources = self._session_sources(dated)
        taken = reusable_rows(self.known, self.service)
        before = {
            session: taken[sources[session]]
            for session in new["session_id"]
            if sources[session] in taken
        }
        due = new.filter(~pl.col("session_id").is_in(list(before)))
        unsummarised = self.turns.join(due, on="session_id", how="semi", maintain_order="left")
        written = summarize_sessions(unsummarised, service=self.service, language=self.language)
        made = pl.concat([indexed, written], how="diagonal")
        rows = dated.join(made, on="session_id", how="left", maintain_order="left").with_columns(
            pl.col("dropped").fill_null(0),
            pl.col("reason").fill_null(""),
            level=pl.lit(0),
            kind=pl.lit("session"),
            method=pl.lit("session"),
            node_id="session_id",
            text="summary",
        )
        spans = {row["session_id"]: row for row in self._session_spans(before).to_dicts()}
        finished = []
        for row in rows.to_dicts():
            session = row["session_id"]
            if session in before:
                row |= before[session] | spans[session]
                row["text"] = " ".join(row["sentences"])
            row |= {"made_of": sources[session], "version": f"{SESSION.name} {SESSION.version}"}
            finished.append(row)
        return finished

    def _session_sources(self, dated: pl.DataFrame) -> dict[str, str]:
        """Give for each session the digest of what its summary is made of."""
        own = self.turns.join(dated, on="session_id", how="semi", maintain_order="left")
        parts = dict[str, list[Row]]()
        for session, row in zip(own["session_id"], turn_rows(own), strict=True):
            parts.setdefault(session, []).append(row)
        groups = {session: Group(summary_items(part)) for session, part in parts.items()}
        return {
            session: source_digest(summary_request(SESSION, group), group)
            for session, group in groups.items()
        }

    def _session_spans(self, sessions: Collection[str]) -> pl.DataFrame:
        """Give the scope of sessions, and the first and last time in them."""
        own = self.turns.filter(pl.col("session_id").is_in(list(sessions)))
        time = pl.col("timestamp")
        return own.group_by("session_id").agg(
            pl.col("scope").first(), start=time.min(), end=time.max()
        )

    def period_rows(
        self, kind: str, below: list[Row], *, only: Collection[date | None] | None = None
    ) -> list[Row]:
        """Write the weeks or months above some nodes, in order; ``only``: those of these dates."""
        parts: list[list[Row]] = []
        before: list[list[Row]] = []
        previous: list[Row] = []
        for (scope, day), rows in groupby(below, key=itemgetter("scope", kind)):
            part = list(rows)
            if only is None or day in only:
                has_previous = len(previous) > 0 and previous[0]["scope"] == scope
                parts.append(part)
                before.append(previous if has_previous else [])
            previous = part
        nodes = write_summaries(PERIOD, parts, self.service, before=before, known=self.known)
        for part, node in zip(parts, nodes, strict=True):
            node["kind"] = kind
            node["method"] = f"{kind}s ({self.tz})" if part[0][kind] else "undated"
            node["month"] = part[0]["month"]
            for row in part:
                row["parent"] = node["node_id"]
        return nodes


def _first_day(kind: str, day: date) -> date:
    """Give the first day of the week or month of a day."""
    if kind == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday())


def _nothing_in(kind: str, day: date, first_days: list[date | None]) -> str:
    """Say that a period has no session, and which have."""
    span = f"its {kind}s go from {first_days[0]} to {first_days[-1]}"
    if first_days == [None]:
        span = "its sessions have no dates"
    weeks = ""
    if kind == "month":
        weeks = ", where a week belongs to the month of its Thursday"
    return f"there is no session in the {kind} of {day}{weeks}; {span}"


def period_boxes(nodes: pl.DataFrame) -> pl.DataFrame:
    """Give the months and weeks of a memory with their topics, for
    :func:`memlab.figures.icicle.icicle`.

    :param nodes: of one scope, of :func:`memlab.summaries.summary_tree` over weeks.
    :returns: ``node_id``, ``parent``, ``kind``, ``label`` and ``n_turns``.
    """
    above = nodes.filter(pl.col("kind") != "session")
    labels = [f"{period_name(row)}: {', '.join(row['topics'])}" for row in above.to_dicts()]
    named = pl.Series(labels, dtype=pl.String)
    turns = pl.col("turns").list.len()
    return above.select("node_id", "parent", "kind", label=named, n_turns=turns)
