"""Rollups in time: sessions become days or weeks, these months."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import polars as pl

from memlab.errors import DataError
from memlab.language.cues import ASKS
from memlab.records import Node, frame
from memlab.rollup.nodes import as_nodes, layer_above, sentences_of, session_nodes
from memlab.rollup.summarisers import Extractive, Summariser
from memlab.summarize import decisions, open_questions, shared, words
from memlab.summarize.parts import COVERED

PERIODS = ("day", "week")
UNDATED = "undated"

_THURSDAY = 3
# Of a question's telling words, so many at least does a statement of another day need to count as its answer.
_FEWEST = 2


def rollup(
    turns: pl.DataFrame,
    *,
    sessions: pl.DataFrame | None = None,
    period: str = "week",
    tz: str = "UTC",
    summariser: Summariser | None = None,
    previous: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Roll sessions up into days or weeks, and these into months; all of a level follow each other in time.

    A session belongs to the day on which it starts, where the memory's owner lives. Weeks are ISO weeks, from Monday;
    a week belongs to the month of its Thursday. A session without a date goes with the one before it, the first ones
    with the one after; a scope without any date is one period and one month, whose ``method`` says ``undated``.

    Topics are what sets the turns of a session or period apart from the others of its level, so that they change with
    these. Decisions are those of all its turns. Open questions are those that nobody has answered up to its end, also
    of earlier periods: a statement of a later session answers one when it holds half of its telling words, and at
    least two.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param sessions: rows of :class:`memlab.records.Session`, for dates of sessions whose turns have none.
    :param period: ``week`` or ``day``.
    :param tz: name of the time zone in which days begin, as ``Europe/Oslo``.
    :param summariser: what writes the nodes; ``None`` for :class:`memlab.rollup.Extractive`.
    :param previous: nodes of an earlier call: one whose sources have not changed keeps its sentences, so that a new
        session costs three calls of the summariser. What was written in another's place is written anew.
    :returns: rows of :class:`memlab.records.Node`: sessions (level 0), then periods, then months, each by scope and
        time.
    :raises DataError: for another period, or a time zone that nobody knows.

    >>> import memlab
    >>> from memlab.rollup import rollup
    >>> turns = memlab.sample(turns=60).turns
    >>> rollup(turns)["kind"].unique(maintain_order=True).to_list()
    ['session', 'week', 'month']
    """
    if period not in PERIODS:
        raise DataError(f"period is {period!r}; choose from {', '.join(PERIODS)}")
    try:
        ZoneInfo(tz)
    except (KeyError, ValueError, OSError) as error:
        raise DataError(f"tz is {tz!r}, which is no time zone; write one as 'UTC' or 'Europe/Oslo'") from error
    if not turns.height:
        return frame(Node)
    writer = summariser or Extractive()
    order = _ordered(turns, sessions, period, tz)
    turns = turns.join(order.select("session_id", "place"), on="session_id", how="left", maintain_order="left")
    turns = turns.sort("place", maintain_order=True).drop("place")
    below = session_nodes(turns, writer, previous=previous).with_columns(order["start", "end"])
    layers, groups = [below], order.select("place", "month", "dated", group="period")
    for level, kind in enumerate((period, "month"), 1):
        method = pl.when("dated").then(pl.lit(f"{kind}s ({tz})")).otherwise(pl.lit(UNDATED))
        edges = groups.select(
            below["node_id"], pl.col("group").cast(pl.String), level=pl.lit(level), kind=pl.lit(kind), method=method
        )
        below = layer_above(edges, below, turns, summariser=writer, previous=previous)
        groups = groups.group_by("group", maintain_order=True).agg(
            pl.col("place").max(), pl.col("month", "dated").first()
        )
        layers.append(below.with_columns(groups["place"]))
        groups = groups.with_columns(group="month")
    layers[0] = layers[0].with_columns(order["place"])
    return _with_questions_and_decisions(pl.concat(layers), order, turns)


def _ordered(turns: pl.DataFrame, sessions: pl.DataFrame | None, period: str, tz: str) -> pl.DataFrame:
    """Put the sessions in order of time and name their periods.

    :returns: ``session_id``, ``scope``, ``start``, ``end``, ``place`` (over all scopes), ``period`` and ``month``
        (numbers of the groups; ascending with ``place``) and ``dated``.
    """
    ordered = turns.group_by("session_id", maintain_order=True).agg(
        pl.col("scope").first(), start=pl.col("timestamp").min(), end=pl.col("timestamp").max()
    )
    if sessions is not None:
        listed = sessions.select("session_id", listed_start="start", listed_end="end")
        ordered = ordered.join(listed, on="session_id", how="left", maintain_order="left").with_columns(
            start=pl.coalesce("start", "listed_start"), end=pl.coalesce("end", "listed_end", "listed_start")
        )
    scopes = ordered.select("scope").unique(maintain_order=True).with_row_index("scope_place")
    ordered = (
        ordered.with_columns(near=pl.col("start").forward_fill().over("scope"))
        .with_columns(pl.col("near").backward_fill().over("scope"))
        .join(scopes, on="scope", maintain_order="left")
        .sort("scope_place", "near", maintain_order=True)
    )
    day = pl.col("near").dt.convert_time_zone(tz).dt.date()
    monday = day - pl.duration(days=day.dt.weekday() - 1)
    first = monday if period == "week" else day
    in_month = monday + pl.duration(days=_THURSDAY) if period == "week" else day
    return ordered.with_columns(
        place=pl.int_range(pl.len()),
        dated=pl.col("near").is_not_null(),
        period=pl.struct("scope_place", first.alias("first")).rle_id(),
        month=pl.struct("scope_place", in_month.dt.truncate("1mo").alias("first")).rle_id(),
    )


def _with_questions_and_decisions(nodes: pl.DataFrame, order: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Set parents, decisions and open questions of nodes with their ``place``."""
    sentences = sentences_of(turns)
    above = nodes.select(node_id="children", parent="node_id").explode("node_id").drop_nulls("node_id")
    # A session has its own questions, a period all that are open at its end.
    still_open = (
        nodes.select("node_id", "kind", "scope", last="place")
        .join(_questions(sentences, order), on="scope")
        .filter(pl.col("asked") <= pl.col("last"))
        .filter(pl.col("closed").is_null() | (pl.col("closed") > pl.col("last")))
        .filter((pl.col("kind") != "session") | (pl.col("asked") == pl.col("last")))
        .sort("row")
        .group_by("node_id")
        .agg(open_questions="spoken", open_question_evidence=pl.concat_list("turn_id"))
    )
    decided = (
        nodes.select("node_id", turn_id="turns")
        .explode("turn_id")
        .join(decisions(sentences).select("turn_id", "spoken").with_row_index("row"), on="turn_id")
        .sort("row")
        .group_by("node_id")
        .agg(decisions="spoken", decision_evidence=pl.concat_list("turn_id"))
    )
    rows = nodes.drop("parent", *decided.columns[1:], *still_open.columns[1:])
    for part in (above, decided, still_open):
        rows = rows.join(part, on="node_id", how="left", maintain_order="left")
    return as_nodes(rows)


def _questions(sentences: pl.DataFrame, order: pl.DataFrame) -> pl.DataFrame:
    """List the questions that a session leaves open, and which later session answers each, if any does.

    :returns: ``row`` (of the sentence, in order of time), ``scope``, ``turn_id``, ``spoken``, ``asked`` (place of its
        session) and ``closed`` (place of the session that answers it; null where none does).
    """
    placed = sentences.join(order.select("session_id", "place"), on="session_id", maintain_order="left")
    placed = placed.with_row_index("line")
    asked = open_questions(placed).select("scope", "turn_id", "spoken", row="line", asked="place")
    # Content alone decides: who speaks next does not reply to a question of another day.
    stated = placed.filter(~pl.col("text").str.contains(ASKS)).select("scope", "place", row="line", other="line")
    answers = (
        shared(asked, stated, words(placed), by="scope")
        .filter((pl.col("shared") >= _FEWEST) & (pl.col("share") >= COVERED))
        .join(stated.select("other", "place"), on="other")
        .join(asked.select("row", "asked"), on="row")
        .filter(pl.col("place") > pl.col("asked"))
        .group_by("row")
        .agg(closed=pl.col("place").min())
    )
    return asked.join(answers, on="row", how="left")
