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
    NodeRow,
    Writer,
    citable_items,
    fill_missing_topics,
    node_frame,
    reusable_rows_by_source_digest,
    turns_as_node_rows,
    write_summaries,
)
from memlab.terminal_text import count_noun, escape_markdown

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
    counts_line = escape_markdown(describe_node(node))
    page_lines = [
        f"# {escape_markdown(node['scope'])}: {period_name(node, tz=tz)}",
        "",
        counts_line,
    ]
    for column_name, heading in HEADINGS.items():
        if node[column_name]:
            cited_sentences = zip(
                node[column_name], node[evidence_column(column_name)], strict=True
            )
            page_lines += ["", f"## {heading}", ""] if heading else [""]
            page_lines += [
                f"- {escape_markdown(text)} ({escape_markdown(', '.join(turn_ids))})"
                for text, turn_ids in cited_sentences
            ]
    return "\n".join(page_lines)


def describe_node(node: Mapping[str, Any]) -> str:
    """Say in a line what a node stands on, who wrote it, and its topics."""
    description = count_noun(len(node["turns"]), "turns")
    if node["children"]:
        children_noun = {"week": "sessions", "month": "weeks"}.get(node["kind"], "parts")
        description += f" in {count_noun(len(node['children']), children_noun)}"
    description += f"; written by: {node['service']}"
    if node["topics"]:
        description += f"; topics: {', '.join(node['topics'])}"
    return description


def period_name(node: Mapping[str, Any], *, tz: str = "UTC") -> str:
    """Write the name of a node's period.

    ``week of 2 March 2026``, ``March 2026``, ``session of 4 March 2026``
    """
    if node["start"] is None:
        return f"{node['kind']}, undated"
    start_day = node["start"].astimezone(ZoneInfo(tz)).date()
    monday = start_day - timedelta(days=start_day.weekday())
    if node["kind"] == "month":
        return f"{monday + timedelta(days=3):%B %Y}"
    first_day = monday if node["kind"] == "week" else start_day
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
    rows_by_session = dict[str, list[NodeRow]]()
    for session_id, turn_row in zip(turns["session_id"], turns_as_node_rows(turns), strict=True):
        rows_by_session.setdefault(session_id, []).append(turn_row)
    summaries = write_summaries(SESSION, [*rows_by_session.values()], service)
    session_rows = [
        {
            **turn_row,
            "session_id": session_id,
            "summary": turn_row["text"],
            "version": "",
            "n_turns": len(session_turns),
            "participants": deduplicate_texts(
                spoken_turn["speaker"] for spoken_turn in session_turns
            ),
        }
        for (session_id, session_turns), turn_row in zip(
            rows_by_session.items(), summaries, strict=True
        )
    ]
    columns = schema(Summary) | {"dropped": pl.Int64(), "reason": pl.String()}
    summary_frame = pl.DataFrame(session_rows, schema={**columns, "turns": pl.List(pl.String())})
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
    sessions = writer.write_session_rows(writer.dated_sessions)
    week_rows = writer.write_period_rows("week", sessions)
    month_rows = writer.write_period_rows("month", week_rows)
    return writer.node_frame(sessions, week_rows, month_rows)


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
    nearest_time = pl.col("near")
    return (
        turns.group_by("session_id", maintain_order=True)
        .agg(pl.col("scope").first(), near=pl.col("timestamp").min(), turns="turn_id")
        .with_columns(nearest_time.forward_fill().over("scope"), place=pl.col("scope").rle_id())
        .with_columns(nearest_time.backward_fill().over("scope"))
        .sort("place", "near", maintain_order=True)
        .with_columns(week=nearest_time.dt.convert_time_zone(tz).dt.date().dt.truncate("1w"))
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
    def dated_sessions(self) -> pl.DataFrame:
        """The sessions with their periods, see :func:`_sessions_with_periods`."""
        return _sessions_with_periods(self.turns, self.tz)

    def node_frame(self, *layers: list[NodeRow]) -> pl.DataFrame:
        """Give rows as nodes, layer by layer."""
        return pl.concat([node_frame(rows, self.turns, self.language) for rows in layers])

    def write_period(self, period_kind: str, day: date) -> pl.DataFrame:
        """Write the week or month that a day lies in, with what stands below it and in the period
        before.

        :raises DataError: when the scope has no session in it.
        """
        dated_sessions = self.dated_sessions
        first_day = self.first_day_with_sessions(period_kind, day)
        first_days = dated_sessions[period_kind].unique(maintain_order=True).to_list()
        period_place = first_days.index(first_day)
        # The period before, too: something may be carried on of it.
        periods = first_days[max(0, period_place - 1) : period_place + 1]
        near_sessions = dated_sessions.filter(pl.col(period_kind).is_in(periods))
        if period_kind == "week":
            session_rows = self.write_session_rows(near_sessions)
            return self.node_frame(
                session_rows,
                self.write_period_rows("week", session_rows, only_starting=[first_day]),
            )
        week_starts = dated_sessions["week"].unique(maintain_order=True).to_list()
        first_week = max(0, week_starts.index(near_sessions["week"][0]) - 1)
        needed_weeks = near_sessions["week"].unique(maintain_order=True).to_list()
        session_rows = self.write_session_rows(
            dated_sessions.filter(pl.col("week").is_in([week_starts[first_week], *needed_weeks]))
        )
        week_rows = self.write_period_rows("week", session_rows, only_starting=needed_weeks)
        month_rows = self.write_period_rows("month", week_rows, only_starting=[first_day])
        return self.node_frame(session_rows, week_rows, month_rows)

    def first_day_with_sessions(self, period_kind: str, day: date) -> date:
        """Give the first day of the week or month that a day lies in.

        :raises DataError: when the scope has no session in it.
        """
        first_day = _first_day_of_period(period_kind, day)
        first_days = self.dated_sessions[period_kind].unique(maintain_order=True).to_list()
        if first_day not in first_days:
            raise DataError(_message_of_period_without_session(period_kind, day, first_days))
        return first_day

    def write_session_rows(self, dated_sessions: pl.DataFrame) -> list[NodeRow]:
        """Give the summaries of sessions as rows of nodes with ``week`` and ``month``.

        Missing ones are written.
        """
        indexed_summaries = frame(Summary) if self.summaries is None else self.summaries
        new_sessions = dated_sessions.join(indexed_summaries, on="session_id", how="anti")
        source_by_session = self._source_digest_by_session(dated_sessions)
        reusable = reusable_rows_by_source_digest(self.known, self.service)
        reused_rows = {
            session_id: reusable[source_by_session[session_id]]
            for session_id in new_sessions["session_id"]
            if source_by_session[session_id] in reusable
        }
        due_sessions = new_sessions.filter(~pl.col("session_id").is_in(list(reused_rows)))
        unsummarised = self.turns.join(
            due_sessions, on="session_id", how="semi", maintain_order="left"
        )
        new_summaries = summarize_sessions(
            unsummarised, service=self.service, language=self.language
        )
        all_summaries = pl.concat([indexed_summaries, new_summaries], how="diagonal")
        joined_rows = dated_sessions.join(
            all_summaries, on="session_id", how="left", maintain_order="left"
        ).with_columns(
            pl.col("dropped").fill_null(0),
            pl.col("reason").fill_null(""),
            level=pl.lit(0),
            kind=pl.lit("session"),
            method=pl.lit("session"),
            node_id="session_id",
            text="summary",
        )
        span_by_session = {
            session_row["session_id"]: session_row
            for session_row in self._scope_and_times_of_sessions(reused_rows).to_dicts()
        }
        finished_rows = []
        for session_row in joined_rows.to_dicts():
            session_id = session_row["session_id"]
            if session_id in reused_rows:
                session_row |= reused_rows[session_id] | span_by_session[session_id]
                session_row["text"] = " ".join(session_row["sentences"])
            session_row |= {
                "made_of": source_by_session[session_id],
                "version": f"{SESSION.name} {SESSION.version}",
            }
            finished_rows.append(session_row)
        return finished_rows

    def _source_digest_by_session(self, dated_sessions: pl.DataFrame) -> dict[str, str]:
        """Give for each session the digest of what its summary is made of."""
        session_turns = self.turns.join(
            dated_sessions, on="session_id", how="semi", maintain_order="left"
        )
        rows_by_session = dict[str, list[NodeRow]]()
        for session_id, turn_row in zip(
            session_turns["session_id"], turns_as_node_rows(session_turns), strict=True
        ):
            rows_by_session.setdefault(session_id, []).append(turn_row)
        group_by_session = {
            session_id: Group(citable_items(turns_of_session))
            for session_id, turns_of_session in rows_by_session.items()
        }
        return {
            session_id: source_digest(summary_request(SESSION, group), group)
            for session_id, group in group_by_session.items()
        }

    def _scope_and_times_of_sessions(self, session_ids: Collection[str]) -> pl.DataFrame:
        """Give the scope of sessions, and the first and last time in them."""
        session_turns = self.turns.filter(pl.col("session_id").is_in(list(session_ids)))
        turn_time = pl.col("timestamp")
        return session_turns.group_by("session_id").agg(
            pl.col("scope").first(), start=turn_time.min(), end=turn_time.max()
        )

    def write_period_rows(
        self,
        period_kind: str,
        rows_below: list[NodeRow],
        *,
        only_starting: Collection[date | None] | None = None,
    ) -> list[NodeRow]:
        """Write the weeks or months above some nodes, in order.

        :param only_starting: those of these dates alone.
        """
        period_members: list[list[NodeRow]] = []
        earlier_members: list[list[NodeRow]] = []
        previous_members: list[NodeRow] = []
        for (scope, period_start), grouped_rows in groupby(
            rows_below, key=itemgetter("scope", period_kind)
        ):
            current_members = list(grouped_rows)
            if only_starting is None or period_start in only_starting:
                has_previous = len(previous_members) > 0 and previous_members[0]["scope"] == scope
                period_members.append(current_members)
                earlier_members.append(previous_members if has_previous else [])
            previous_members = current_members
        nodes = write_summaries(
            PERIOD,
            period_members,
            self.service,
            earlier_row_groups=earlier_members,
            known_nodes=self.known,
        )
        for current_members, period_node in zip(period_members, nodes, strict=True):
            period_node["kind"] = period_kind
            period_node["method"] = (
                f"{period_kind}s ({self.tz})" if current_members[0][period_kind] else "undated"
            )
            period_node["month"] = current_members[0]["month"]
            for member_row in current_members:
                member_row["parent"] = period_node["node_id"]
        return nodes


def _first_day_of_period(period_kind: str, day: date) -> date:
    """Give the first day of the week or month of a day."""
    if period_kind == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday())


def _message_of_period_without_session(
    period_kind: str, day: date, first_days: list[date | None]
) -> str:
    """Say that a period has no session, and which have."""
    span_text = f"its {period_kind}s go from {first_days[0]} to {first_days[-1]}"
    if first_days == [None]:
        span_text = "its sessions have no dates"
    weeks_note = ""
    if period_kind == "month":
        weeks_note = ", where a week belongs to the month of its Thursday"
    return f"there is no session in the {period_kind} of {day}{weeks_note}; {span_text}"


def period_boxes(nodes: pl.DataFrame) -> pl.DataFrame:
    """Give the months and weeks of a memory with their topics, for
    :func:`memlab.figures.icicle.icicle`.

    :param nodes: of one scope, of :func:`memlab.summaries.summary_tree` over weeks.
    :returns: ``node_id``, ``parent``, ``kind``, ``label`` and ``n_turns``.
    """
    period_nodes = nodes.filter(pl.col("kind") != "session")
    labels = [
        f"{period_name(node_row)}: {', '.join(node_row['topics'])}"
        for node_row in period_nodes.to_dicts()
    ]
    label_column = pl.Series(labels, dtype=pl.String)
    n_turns = pl.col("turns").list.len()
    return period_nodes.select("node_id", "parent", "kind", label=label_column, n_turns=n_turns)
