"""The sessions of a long memory that messages which are added leave as they are.

Who adds ten messages to a hundred thousand would else put all of them into order and divide them
into sessions again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import polars as pl

from memlab.records import Dataset

LONG = 10_000
"""Turns from which it pays to look for such sessions."""


class UnchangedSessions(NamedTuple):
    """The sessions at the beginning of a memory that stay as they are, and their turns."""

    turns: pl.DataFrame
    sessions: pl.DataFrame


def find_unchanged_sessions(
    stored: Dataset, new_messages: pl.DataFrame, *, gap: timedelta
) -> UnchangedSessions:
    """Find the sessions that new messages can neither join nor divide, nor stand before.

    Those behind them, with the new messages, are what they would be with all. There are none where
    the memory is short, or is not divided as it would be now.

    :param stored: the turns and sessions of one scope; of several, none is found.
    :param new_messages: ``scope``, ``session_id``, ``turn_id`` and ``placed``, the time that puts
        each into order.
    :param gap: the silence that ends a session without a name.
    """
    n_turns = _count_turns_before_changes(stored.turns, new_messages, gap)
    turns = stored.turns[:n_turns]
    starts = _first_turns_of_sessions(turns)
    sessions = stored.sessions[: starts.height]
    is_as_now = _are_places_as_now(turns) and _are_divided_as_now(stored.turns, n_turns, gap)
    if is_as_now and _describe_turns(sessions, turns, starts):
        return UnchangedSessions(turns, sessions)
    return UnchangedSessions(turns.clear(), sessions.clear())


def _count_turns_before_changes(
    turns: pl.DataFrame, new_messages: pl.DataFrame, gap: timedelta
) -> int:
    """Count the turns of whole sessions that end before anything can change.

    The times of all must be known, and be in order.
    """
    scopes = pl.concat([turns["scope"].unique(), new_messages["scope"].unique()])
    first_time = new_messages["placed"].min()
    is_timed = not turns["timestamp"].has_nulls() and not new_messages["placed"].has_nulls()
    if turns.height < LONG or scopes.n_unique() > 1 or first_time is None or not is_timed:
        return 0
    if not turns["timestamp"].is_sorted():
        return 0
    may_change = turns.select(
        (pl.col("timestamp") >= pl.lit(first_time) - gap)
        | pl.col("session_id").is_in(new_messages["session_id"].unique().implode())
        | pl.col("turn_id").is_in(new_messages["turn_id"].implode())
    ).to_series()
    first_change = may_change.arg_max()
    if first_change is None or not may_change.any():
        return turns.height
    session_of_change = turns["session_id"][first_change]
    return (turns["session_id"] == session_of_change).arg_max() or 0


def _first_turns_of_sessions(turns: pl.DataFrame) -> pl.DataFrame:
    """Give the rows that begin a session, with their number as ``row``."""
    begins = (pl.col("session_id") != pl.col("session_id").shift()).fill_null(value=True)
    return turns.with_row_index("row").filter(begins)


def _are_places_as_now(turns: pl.DataFrame) -> bool:
    """Say whether the turns of each session are numbered from 1."""
    goes_on = pl.col("session_id") == pl.col("session_id").shift()
    place_before = pl.when(goes_on.fill_null(value=False)).then(pl.col("n").shift()).otherwise(0)
    return bool(turns.select((pl.col("n") == place_before + 1).all()).item())


def _are_divided_as_now(turns: pl.DataFrame, n_turns: int, gap: timedelta) -> bool:
    """Say whether sessions without a name begin where the silence before is longer than the gap.

    Also the first of those behind the first ``n_turns`` turns.
    """
    is_unnamed = pl.col("session_id").str.contains("/@", literal=True)
    timed_turns = turns.select("session_id", "timestamp")
    unnamed_before = timed_turns[:n_turns].filter(is_unnamed)
    first_behind = timed_turns[n_turns:].filter(is_unnamed).head(1)
    unnamed_turns = pl.concat([unnamed_before, first_behind])
    begins = pl.col("session_id") != pl.col("session_id").shift()
    is_late = pl.col("timestamp").diff() > gap
    return bool(unnamed_turns.select((begins == is_late).slice(1).all()).item())


def _describe_turns(sessions: pl.DataFrame, turns: pl.DataFrame, starts: pl.DataFrame) -> bool:
    """Say whether sessions are those of turns, named by them, and without summaries.

    :param starts: as :func:`_first_turns_of_sessions` gives them.
    """
    own_name = pl.col("turn_id").str.split("/").list.last()
    is_named = ~pl.col("session_id").str.contains("/@", literal=True)
    n_turns = pl.col("row").shift(-1, fill_value=turns.height) - pl.col("row")
    described = starts.select(
        "session_id",
        "scope",
        n=pl.int_range(1, pl.len() + 1, dtype=pl.Int32),
        start="timestamp",
        end=turns["timestamp"].gather(starts.select(pl.col("row") + n_turns - 1).to_series()),
        n_turns=n_turns.cast(pl.Int32),
        status=pl.lit("closed"),
        summary=pl.lit(None, pl.String),
    )
    has_own_name = pl.col("session_id") == pl.format("{}/@{}", "scope", own_name)
    are_named_so = starts.select((is_named | has_own_name).all()).item()
    return bool(are_named_so) and sessions.select(described.columns).equals(described)
