"""Sessions: their boundaries in a stream of messages, and their rows.

A session ends where a silence is longer than a gap, thirty minutes by default, as in web analytics.
Messages whose source names the session are never regrouped.

A list, a tree or the lines of a chat say in which order things were said; a clock that steps back
does not change it. Messages are put into order by :func:`find_ordering_times`, their own times made
to go on; the times that are kept are those of the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

import polars as pl

from memlab.errors import DataError, explain_arguments
from memlab.records import TIMESTAMP, Session, schema

GAP = timedelta(minutes=30)
_LISTED = timedelta(hours=2)
"""How far a clock steps back within a chat: further back begins another file of the same chat."""
_LOGGED = timedelta(minutes=1)
"""How far it does in a log that names no sessions, whose lines may be in any order."""
_FEW_TIMES = 2
"""Up to which a clock that steps back each time may be that of an answer."""
_GROUP = ("scope", "named")


def sessionize(messages: pl.DataFrame, *, gap: timedelta = GAP) -> pl.DataFrame:
    """Assign every message to a session, with its place in it.

    Per scope, messages are put into order of time. A message that names its session stays there.
    The others start a new session, ``s0001``, ``s0002`` … (names that the scope uses already are
    left out), where the silence since the last of them is strictly longer than the gap. Equal times
    keep the order of the rows. A message without a time stays with the one before it in the rows
    (among those of its own named session, or among the unnamed ones), the first ones with the one
    after; a scope with no times at all is one session.

    :param messages: columns ``scope`` and ``timestamp`` (any time zone; one without a zone is taken
        as UTC), and ``session`` where messages may name theirs (null where they do not); ``placed``
        where another time than its own puts a message into order, in UTC; other columns are kept.
    :param gap: the longest silence within a session.
    :returns: the messages with ``session`` (String), ``n`` (Int32, place in the session, from 1)
        and ``timestamp`` in UTC, sorted by scope (first appearance), start of the session and
        ``n``.
    :raises DataError: when a column is missing or the gap is negative.

    >>> import polars as pl
    >>> from datetime import datetime
    >>> from memlab.sessions import sessionize
    >>> times = [datetime(2026, 3, 1, 9, m) for m in (0, 20, 51)]
    >>> sessionize(pl.DataFrame({"scope": ["a"] * 3, "timestamp": times}))["session"].to_list()
    ['s0001', 's0001', 's0002']
    """
    if gap < timedelta(0):
        raise DataError(f"gap is {gap}, expected a length of time that is not negative")
    if missing_columns := {"scope", "timestamp"} - set(messages.columns):
        raise DataError(
            f"messages have no column {sorted(missing_columns)[0]!r}; they have {messages.columns}"
        )
    kept_columns = [column for column in messages.columns if column not in ("session", "n")]
    named_session = pl.col("session") if "session" in messages.columns else pl.lit(None)
    timed_messages = (
        _convert_timestamps_to_utc(messages)
        .with_columns(session=named_session.cast(pl.String))
        .with_row_index("_row")
    )
    session_key = ["scope", "session"]
    placing_time = pl.col("placed" if "placed" in messages.columns else "timestamp")
    placed_messages = timed_messages.with_columns(
        _time=placing_time, _scope=pl.col("_row").min().over("scope")
    )
    if placed_messages["_time"].has_nulls():
        filled_time = pl.col("_time").forward_fill().backward_fill().over(session_key)
        placed_messages = placed_messages.with_columns(filled_time)
    ordered_messages = _sort_unless_in_order(placed_messages, "_scope", "_time", "_row")
    split_messages = _add_run_numbers_of_sessions(_name_unnamed_sessions(ordered_messages, gap))
    first_rows = split_messages.group_by("run", maintain_order=True).agg(
        pl.col(*session_key).first(),
        start=pl.col("_time").min(),
        first=pl.col("_row").min(),
        scope_first=pl.col("_scope").first(),
    )
    if first_rows.select(session_key).is_duplicated().any():
        # Sessions that the source names may lie within each other.
        first_rows = first_rows.group_by(session_key).agg(
            pl.col("start", "first", "scope_first").min()
        )
        session_places = (
            _sort_sessions_by_scope_and_start(first_rows)
            .with_row_index("_place")
            .select(*session_key, "_place")
        )
        split_messages = split_messages.join(session_places, on=session_key, how="left").sort(
            "_place", "_time", "_row"
        )
        split_messages = _add_run_numbers_of_sessions(split_messages)
    else:
        session_places = (
            _sort_sessions_by_scope_and_start(first_rows).with_row_index("_place").sort("run")
        )
        split_messages = split_messages.with_columns(
            session_places["_place"].gather(split_messages["run"])
        )
        split_messages = _sort_unless_in_order(split_messages, "_place", "_time", "_row")
    return split_messages.with_columns(n=_places_in_runs(split_messages["run"])).select(
        *kept_columns, "session", "n"
    )


def _add_run_numbers_of_sessions(messages: pl.DataFrame) -> pl.DataFrame:
    """Number the runs of rows of one session, from 0, as ``run``."""
    return messages.with_columns(run=pl.struct("scope", "session").rle_id())


def _places_in_runs(run_numbers: pl.Series) -> pl.Series:
    """Give the place of each row in its run, from 1."""
    run_lengths = run_numbers.rle().struct.field("len")
    return pl.select(pl.int_ranges(1, run_lengths + 1, dtype=pl.Int32)).to_series().explode()


def _sort_unless_in_order(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Sort rows by some columns, nulls first; most are in order, which a part of the time shows."""
    in_order = pl.lit(value=True)
    for name in reversed(columns):
        column = pl.col(name)
        value_before = pl.col(name).shift()
        in_order = (column > value_before) | ((column == value_before) & in_order)
    if rows.select(in_order.slice(1).all(ignore_nulls=False)).item():
        return rows
    return rows.sort(columns, nulls_last=False)


def _convert_timestamps_to_utc(messages: pl.DataFrame) -> pl.DataFrame:
    time_type = messages.schema["timestamp"]
    time = pl.col("timestamp")
    if time_type == pl.Null:
        return messages.with_columns(time.cast(TIMESTAMP))
    if not isinstance(time_type, pl.Datetime):
        raise DataError(
            f"column 'timestamp' is {time_type}, expected Datetime; parse it with str.to_datetime "
            "or from_epoch"
        )
    time_in_utc = (
        time.dt.replace_time_zone("UTC")
        if time_type.time_zone is None
        else time.dt.convert_time_zone("UTC")
    )
    return messages.with_columns(time_in_utc.cast(TIMESTAMP))


def _name_unnamed_sessions(ordered_messages: pl.DataFrame, gap: timedelta) -> pl.DataFrame:
    """Number the sessions of messages that name none.

    A name that the scope uses already is skipped.
    """
    is_unnamed = ordered_messages["session"].is_null()
    if not is_unnamed.any():
        return ordered_messages
    unnamed_messages = ordered_messages.select("scope", "_time").filter(is_unnamed)
    named_sessions = ordered_messages.select("scope", "session").filter(~is_unnamed)
    taken_names = set(named_sessions.unique().iter_rows())
    scope_number = pl.col("scope").rle_id()
    is_other_scope = (scope_number != scope_number.shift()).fill_null(value=True)
    is_late = (pl.col("_time").diff() > gap).fill_null(value=False)
    begins_session = unnamed_messages.select(is_other_scope | is_late).to_series()
    if named_sessions.is_empty():
        return ordered_messages.with_columns(
            session=_session_names_numbered_in_scopes(unnamed_messages["scope"], begins_session)
        )
    session_names = list[str]()
    last_numbers = Counter[str]()
    for scope in unnamed_messages["scope"].filter(begins_session).to_list():
        last_numbers[scope] += 1
        while (scope, f"s{last_numbers[scope]:04d}") in taken_names:
            last_numbers[scope] += 1
        session_names.append(f"s{last_numbers[scope]:04d}")
    given_names = pl.Series(session_names, dtype=pl.String).gather(begins_session.cum_sum() - 1)
    session_column = ordered_messages["session"].scatter(is_unnamed.arg_true(), given_names)
    return ordered_messages.with_columns(session_column)


def _session_names_numbered_in_scopes(scopes: pl.Series, begins_session: pl.Series) -> pl.Series:
    """Give the names of sessions that are numbered within their scopes.

    :param begins_session: where a session begins; a scope begins with one.
    """
    session_starts = scopes.to_frame("scope").filter(begins_session)
    session_number = pl.int_range(1, pl.len() + 1).over("scope").cast(pl.String)
    session_names = session_starts.select(pl.format("s{}", session_number.str.zfill(4))).to_series()
    return session_names.gather(begins_session.cum_sum() - 1)


def _sort_sessions_by_scope_and_start(sessions: pl.DataFrame) -> pl.DataFrame:
    """Sort sessions (``scope``, ``scope_first``, ``start``, ``first``) by scope and start; one
    without times follows the session that appears before it."""
    filled_start = pl.col("start").forward_fill().backward_fill().over("scope")
    by_appearance = sessions.sort("scope_first", "first").with_columns(_start=filled_start)
    return by_appearance.sort("scope_first", "_start", "first").drop("_start")


def sessions_of(turns: pl.DataFrame, *, summaries: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Give the sessions of turns; one is ``summarized`` when it has a summary, else ``closed``.

    :param turns: rows of :class:`~memlab.records.Turn`, in order of place within each session.
    :param summaries: session id to summary.
    :returns: rows of :class:`~memlab.records.Session`, by scope (first appearance) and start; equal
        starts keep the order of appearance.
    :raises DataError: when ``summaries`` names a session that the turns do not have.

    >>> from memlab.records import Turn, frame
    >>> from memlab.sessions import sessions_of
    >>> turns = frame(Turn, [Turn("a/s0001/1", "a", "a/s0001", 1, "Ann", "user", "Hello")])
    >>> sessions_of(turns).select("session_id", "n_turns", "status").row(0)
    ('a/s0001', 1, 'closed')
    """
    sent_at = pl.col("timestamp")
    session_rows = (
        turns.with_row_index("_row")
        .with_columns(scope_first=pl.col("_row").min().over("scope"))
        .group_by("session_id", maintain_order=True)
        .agg(
            pl.col("scope", "scope_first").first(),
            start=sent_at.min(),
            end=sent_at.max(),
            n_turns=pl.len().cast(pl.Int32),
            participants=pl.col("speaker").unique(maintain_order=True),
            first=pl.col("_row").min(),
        )
    )
    summary_of = dict(summaries or {})
    if unknown_sessions := summary_of.keys() - set(
        session_rows["session_id"] if summary_of else ()
    ):
        raise DataError(
            f"a summary is given for session {min(unknown_sessions)!r}, which has no turns; drop it"
        )
    summary = pl.col("session_id").replace_strict(summary_of, default=None, return_dtype=pl.String)
    status = (
        pl.when(pl.col("summary").is_null()).then(pl.lit("closed")).otherwise(pl.lit("summarized"))
    )
    return (
        _sort_sessions_by_scope_and_start(session_rows.with_columns(summary=summary))
        .with_columns(n=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("scope"), status=status)
        .select(*schema(Session))
    )


def find_ordering_times(messages: pl.DataFrame, *, is_ordered: bool) -> pl.Series:
    """Give the time by which each message is put into order: its own, or that of a message before
    it, where that is later.

    A message without a time gets that of the one before it. Of a log the order of the lines is
    taken where the clock goes on more than back; else, as in one that has the newest first, its
    times are. So they are of a chat whose times fall throughout.

    :param messages: ``scope``, ``named`` (the session, null where the source names none) and
        ``timestamp``, in the order of the source.
    :param is_ordered: whether the source has an order of its own, as a list of messages or a chat
        has.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> from memlab.sessions import find_ordering_times
    >>> times = [datetime(2026, 2, 1, 10, 0, second) for second in (5, 4, 9)]
    >>> said = pl.DataFrame({"scope": "me", "named": "trip", "timestamp": times})
    >>> find_ordering_times(said, is_ordered=True).dt.second().to_list()
    [5, 5, 9]
    """
    filled_time = pl.col("timestamp").forward_fill().over(_GROUP)
    timed_messages = messages.select(*_GROUP, time=filled_time).with_columns(
        step=pl.col("time").diff().over(_GROUP)
    )
    if not (timed_messages["step"] < timedelta(0)).any():
        return timed_messages["time"]
    numbered_runs = timed_messages.with_columns(
        run=_run_number_expr(is_ordered=is_ordered).over(_GROUP)
    )
    latest_so_far = pl.col("time").cum_max().over(*_GROUP, "run")
    if is_ordered:
        is_turned = _has_newest_first_expr().over(_GROUP)
        return numbered_runs.select(
            pl.when(is_turned).then("time").otherwise(latest_so_far)
        ).to_series()
    is_trusted = _follows_clock_expr().over(_GROUP)
    return numbered_runs.select(
        pl.when(is_trusted).then(latest_so_far).otherwise("time")
    ).to_series()


def _run_number_expr(*, is_ordered: bool) -> pl.Expr:
    """Number the runs of messages that a clock which steps back a little does not break."""
    furthest_back = _LISTED if is_ordered else _LOGGED
    breaks_run = pl.col("named").is_null() & (pl.col("step") < -furthest_back)
    if not is_ordered:
        breaks_run = breaks_run | (pl.col("step") < -_LISTED)
    return breaks_run.fill_null(False).cum_sum()


def _has_newest_first_expr() -> pl.Expr:
    """Say whether the times of a chat without named sessions fall throughout, three or more."""
    time_step = pl.col("step")
    no_time = pl.duration()
    is_falling = (
        (time_step <= no_time).all() & (time_step < no_time).any() & (time_step.len() > _FEW_TIMES)
    )
    return pl.col("named").is_null() & is_falling & pl.col("time").is_not_null().all()


def _follows_clock_expr() -> pl.Expr:
    """Say whether the lines of a group are in order, but for a clock that steps back at times."""
    time_step = pl.col("step")
    no_time = pl.duration()
    time_back = -time_step.filter(time_step < no_time).sum()
    time_forward = time_step.filter(time_step > no_time).sum()
    known_times = pl.col("time").drop_nulls()
    is_going_on = ((time_step < no_time).sum() == 1) | (known_times.last() >= known_times.first())
    return (is_going_on & (time_back <= pl.lit(_LOGGED))) | (2 * time_back < time_forward)


def count_steps_back(messages: pl.DataFrame) -> int:
    """Count the messages with a time before that of a message which stands before them.

    :param messages: ``timestamp`` and ``placed``, the times of :func:`find_ordering_times`.
    """
    return int(messages.select((pl.col("placed") > pl.col("timestamp")).sum()).item())


explain_arguments(globals())
