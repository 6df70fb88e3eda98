"""Rollups in time: sessions become days or weeks, these months."""

from __future__ import annotations

from datetime import tzinfo
from typing import NamedTuple

import polars as pl

from memlab.errors import DataError
from memlab.records import Node, frame
from memlab.rollup.nodes import as_nodes, parents, pool_of_nodes, sentences_of
from memlab.rollup.questions import asked_and_closed
from memlab.rollup.summarisers import Extractive, Summariser
from memlab.rollup.trees import session_nodes
from memlab.summarize import decisions

PERIODS = ("day", "week")
UNDATED = "undated"

_THURSDAY = 3


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
    a week belongs to the month of its Thursday, as ISO counts it to the year. A session without a date goes with the
    one before it, the first ones with the one after; a scope without any date is one period and one month, whose
    ``method`` says ``undated``.

    Topics of a session are read off its turns, those of a period off the sentences below it. Decisions are those of all
    its turns. Open questions are those that nobody has answered up to its end, also of earlier periods: each is carried
    on until a later turn answers it, see :func:`memlab.rollup.questions.asked_and_closed`.

    With ``previous``, a node whose sources have not changed keeps its sentences and topics: a new session costs one
    call of the summariser for itself, one for its period and one for its month. The result is the same as without.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param sessions: rows of :class:`memlab.records.Session`, for dates of sessions whose turns have none.
    :param period: ``week`` or ``day``.
    :param tz: name of the time zone in which days begin, as ``Europe/Oslo``.
    :param summariser: what writes the nodes; ``None`` for :class:`memlab.rollup.Extractive`.
    :param previous: nodes of an earlier call. What a summariser wrote in another's place is written anew.
    :returns: rows of :class:`memlab.records.Node`: sessions (level 0), then periods, then months, each by scope and
        time.
    :raises DataError: for another period, or a time zone that nobody knows.

    >>> import memlab
    >>> from memlab.rollup import rollup
    >>> turns = memlab.datasets.synthetic.generate(turns=60, seed=0).turns
    >>> rollup(turns)["kind"].unique(maintain_order=True).to_list()
    ['session', 'week', 'month']
    """
    if period not in PERIODS:
        raise DataError(f"period is {period!r}; choose from {', '.join(PERIODS)}")
    _zone(tz)
    if not turns.height:
        return frame(Node)
    writer = summariser or Extractive()
    order = _ordered(turns, sessions, period, tz)
    turns = turns.join(order.select("session_id", "place"), on="session_id", how="left", maintain_order="left")
    turns = turns.sort("place", maintain_order=True).drop("place")
    below = _dated(session_nodes(turns, writer, previous=previous), order)
    layers = [below]
    for level, kind in enumerate((period, "month"), 1):
        grouping = _Grouping(kind, level, f"{kind}s ({tz})")
        below = _above(below, order, turns, grouping, writer, previous)
        layers.append(below)
    return _told(layers, order, turns)


class _Grouping(NamedTuple):
    kind: str
    level: int
    method: str


def _zone(tz: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(tz)
    except (KeyError, ValueError, OSError) as error:
        raise DataError(f"tz is {tz!r}, which is no time zone; write one as 'UTC' or 'Europe/Oslo'") from error


def _ordered(turns: pl.DataFrame, sessions: pl.DataFrame | None, period: str, tz: str) -> pl.DataFrame:
    """Put the sessions in order of time and name their periods.

    :returns: ``session_id``, ``scope``, ``start``, ``end``, ``place`` (over all scopes), ``period`` and ``month``
        (numbers of the groups; ascending with ``place``) and ``dated``.
    """
    ordered = turns.group_by("session_id", maintain_order=True).agg(
        pl.col("scope").first(), start=pl.col("timestamp").min(), end=pl.col("timestamp").max()
    )
    if sessions is not None:
        known = sessions.select("session_id", known_start="start", known_end="end")
        ordered = ordered.join(known, on="session_id", how="left", maintain_order="left").with_columns(
            start=pl.coalesce("start", "known_start"), end=pl.coalesce("end", "known_end", "known_start")
        )
    near = pl.col("start").forward_fill().over("scope")
    scopes = ordered.select("scope").unique(maintain_order=True).with_row_index("scope_place")
    ordered = (
        ordered.with_columns(near=near)
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


def _dated(nodes: pl.DataFrame, order: pl.DataFrame) -> pl.DataFrame:
    """Give session nodes their dates and the places of their groups; they stand in the order of the sessions."""
    return nodes.with_columns(order["start"], order["end"], order["place"], order["period"], order["month"])


def _above(
    below: pl.DataFrame,
    order: pl.DataFrame,
    turns: pl.DataFrame,
    grouping: _Grouping,
    summariser: Summariser,
    previous: pl.DataFrame | None,
) -> pl.DataFrame:
    """Write the nodes of one level, and set the parents of the nodes below."""
    column = "month" if grouping.level == 2 else "period"
    edges = below.select(
        "node_id", "scope", "start", "end", "turns", "place", "month", group=pl.col(column).cast(pl.String)
    )
    undated = order.filter(~pl.col("dated"))["scope"].implode()
    about = edges.group_by("group", maintain_order=True).agg(
        pl.col("scope", "month").first(),
        pl.col("place").max(),
        pl.col("turns").list.explode(keep_nulls=False, empty_as_null=False),
        children="node_id",
        start=pl.col("start").min(),
        end=pl.col("end").max(),
    )
    about = about.with_columns(
        level=pl.lit(grouping.level),
        kind=pl.lit(grouping.kind),
        method=pl.when(pl.col("scope").is_in(undated)).then(pl.lit(UNDATED)).otherwise(pl.lit(grouping.method)),
    )
    pool = pool_of_nodes(edges.with_columns(kind=pl.lit(grouping.kind)), below, turns)
    made = parents(about, pool, summariser=summariser, previous=previous)
    return made.with_columns(about["place"], about["month"])


def _told(layers: list[pl.DataFrame], order: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Set parents, decisions and open questions."""
    child = pl.concat([layer.select(pl.col("children").alias("node_id"), parent="node_id") for layer in layers])
    above = child.explode("node_id").drop_nulls("node_id")
    nodes = pl.concat([layer.select(*frame(Node).columns, "place") for layer in layers])
    nodes = nodes.drop("parent").join(above, on="node_id", how="left", maintain_order="left")
    sentences = sentences_of(turns)
    places = order.select("session_id", "scope", "place")
    asked = asked_and_closed(sentences, places)
    # A session has its own questions, a period all that are open at its end.
    open_now = (
        nodes.select("node_id", "kind", "scope", last="place")
        .join(asked, on="scope")
        .filter(pl.col("asked") <= pl.col("last"))
        .filter(pl.col("closed").is_null() | (pl.col("closed") > pl.col("last")))
        .filter((pl.col("kind") != "session") | (pl.col("asked") == pl.col("last")))
        .sort("line")
        .group_by("node_id")
        .agg(open_questions="spoken", open_question_evidence=pl.concat_list("turn_id"))
    )
    made = decisions(sentences).select("turn_id", "spoken").with_row_index("row")
    decided = (
        nodes.select("node_id", turn_id="turns")
        .explode("turn_id")
        .join(made, on="turn_id")
        .sort("row")
        .group_by("node_id")
        .agg(decisions="spoken", decision_evidence=pl.concat_list("turn_id"))
    )
    names = ("decisions", "decision_evidence", "open_questions", "open_question_evidence")
    return (
        nodes.drop(names)
        .join(decided, on="node_id", how="left", maintain_order="left")
        .join(open_now, on="node_id", how="left", maintain_order="left")
        .pipe(as_nodes)
    )
