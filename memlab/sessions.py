"""Sessions: their boundaries in a stream of messages, and their rows.

A session ends where a silence is longer than a gap, thirty minutes by default, as in web analytics.
Messages whose source names the session are never regrouped.

A list, a tree or the lines of a chat say in which order things were said; a clock that steps back
does not change it. Messages are put into order by :func:`order_times`, their own times made to go
on; the times that are kept are those of the source.
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
    if missing := {"scope", "timestamp"} - set(messages.columns):
        raise DataError(
            f"messages have no column {sorted(missing)[0]!r}; they have {messages.columns}"
        )
    kept = [c for c in messages.columns if c not in ("session", "n")]
    named = pl.col("session") if "session" in messages.columns else pl.lit(None)
    timed = (
        _times_in_utc(messages).with_columns(session=named.cast(pl.String)).with_row_index("_row")
    )
    group = ["scope", "session"]
    put = pl.col("placed" if "placed" in messages.columns else "timestamp")
    placed = timed.with_columns(_time=put, _scope=pl.col("_row").min().over("scope"))
    if placed["_time"].has_nulls():
        filled = pl.col("_time").forward_fill().backward_fill().over(group)
        placed = placed.with_columns(filled)
    ordered = _sort(placed, "_scope", "_time", "_row")
    split = _number_runs(_name_sessions(ordered, gap))
    firsts = split.group_by("run", maintain_order=True).agg(
        pl.col(*group).first(),
        start=pl.col("_time").min(),
        first=pl.col("_row").min(),
        scope_first=pl.col("_scope").first(),
    )
    if firsts.select(group).is_duplicated().any():
        # Sessions that the source names may lie within each other.
        firsts = firsts.group_by(group).agg(pl.col("start", "first", "scope_first").min())
        order = _sort_sessions(firsts).with_row_index("_place").select(*group, "_place")
        split = split.join(order, on=group, how="left").sort("_place", "_time", "_row")
        split = _number_runs(split)
    else:
        order = _sort_sessions(firsts).with_row_index("_place").sort("run")
        split = split.with_columns(order["_place"].gather(split["run"]))
        split = _sort(split, "_place", "_time", "_row")
    return split.with_columns(n=_count_in_runs(split["run"])).select(*kept, "session", "n")


def _number_runs(rows: pl.DataFrame) -> pl.DataFrame:
    """Number the runs of rows of one session, from 0, as ``run``."""
    return rows.with_columns(run=pl.struct("scope", "session").rle_id())


def _count_in_runs(runs: pl.Series) -> pl.Series:
    """Give the place of each row in its run, from 1."""
    lengths = runs.rle().struct.field("len")
    return pl.select(pl.int_ranges(1, lengths + 1, dtype=pl.Int32)).to_series().explode()


def _sort(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Sort rows by some columns, nulls first; most are in order, which a part of the time shows."""
    in_order = pl.lit(value=True)
    for name in reversed(columns):
        column, before = pl.col(name), pl.col(name).shift()
        in_order = (column > before) | ((column == before) & in_order)
    if rows.select(in_order.slice(1).all(ignore_nulls=False)).item():
        return rows
    return rows.sort(columns, nulls_last=False)


def _times_in_utc(messages: pl.DataFrame) -> pl.DataFrame:
    dtype = messages.schema["timestamp"]
    time = pl.col("timestamp")
    if dtype == pl.Null:
        return messages.with_columns(time.cast(TIMESTAMP))
    if not isinstance(dtype, pl.Datetime):
        raise DataError(
            f"column 'timestamp' is {dtype}, expected Datetime; parse it with str.to_datetime or "
            "from_epoch"
        )
    zoned = (
        time.dt.replace_time_zone("UTC")
        if dtype.time_zone is None
        else time.dt.convert_time_zone("UTC")
    )
    return messages.with_columns(zoned.cast(TIMESTAMP))


def _name_sessions(ordered: pl.DataFrame, gap: timedelta) -> pl.DataFrame:
    """Number the sessions of messages that name none.

    A name that the scope uses already is skipped.
    """
    is_unnamed = ordered["session"].is_null()
    if not is_unnamed.any():
        return ordered
    unnamed = ordered.select("scope", "_time").filter(is_unnamed)
    named = ordered.select("scope", "session").filter(~is_unnamed)
    taken = set(named.unique().iter_rows())
    scope_number = pl.col("scope").rle_id()
    is_other_scope = (scope_number != scope_number.shift()).fill_null(value=True)
    is_late = (pl.col("_time").diff() > gap).fill_null(value=False)
    begins = unnamed.select(is_other_scope | is_late).to_series()
    if named.is_empty():
        return ordered.with_columns(session=_number_sessions(unnamed["scope"], begins))
    names, last = list[str](), Counter[str]()
    for scope in unnamed["scope"].filter(begins).to_list():
        last[scope] += 1
        while (scope, f"s{last[scope]:04d}") in taken:
            last[scope] += 1
        names.append(f"s{last[scope]:04d}")
    given = pl.Series(names, dtype=pl.String).gather(begins.cum_sum() - 1)
    session = ordered["session"].scatter(is_unnamed.arg_true(), given)
    return ordered.with_columns(session)


def _number_sessions(scopes: pl.Series, begins: pl.Series) -> pl.Series:
    """Give the names of sessions that are numbered within their scopes.

    :param begins: where a session begins; a scope begins with one.
    """
    started = scopes.to_frame("scope").filter(begins)
    number = pl.int_range(1, pl.len() + 1).over("scope").cast(pl.String)
    names = started.select(pl.format("s{}", number.str.zfill(4))).to_series()
    return names.gather(begins.cum_sum() - 1)


def _sort_sessions(sessions: pl.DataFrame) -> pl.DataFrame:
    """Sort sessions (``scope``, ``scope_first``, ``start``, ``first``) by scope and start; one
    without times follows the session that appears before it."""
    start = pl.col("start").forward_fill().backward_fill().over("scope")
    by_appearance = sessions.sort("scope_first", "first").with_columns(_start=start)
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
    times = pl.col("timestamp")
    rows = (
        turns.with_row_index("_row")
        .with_columns(scope_first=pl.col("_row").min().over("scope"))
        .group_by("session_id", maintain_order=True)
        .agg(
            pl.col("scope", "scope_first").first(),
            start=times.min(),
            end=times.max(),
            n_turns=pl.len().cast(pl.Int32),
            participants=pl.col("speaker").unique(maintain_order=True),
            first=pl.col("_row").min(),
        )
    )
    summary_of = dict(summaries or {})
    if unknown := summary_of.keys() - set(rows["session_id"] if summary_of else ()):
        raise DataError(
            f"a summary is given for session {min(unknown)!r}, which has no turns; drop it"
        )
    summary = pl.col("session_id").replace_strict(summary_of, default=None, return_dtype=pl.String)
    status = (
        pl.when(pl.col("summary").is_null()).then(pl.lit("closed")).otherwise(pl.lit("summarized"))
    )
    return (
        _sort_sessions(rows.with_columns(summary=summary))
        .with_columns(n=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("scope"), status=status)
        .select(*schema(Session))
    )


def order_times(messages: pl.DataFrame, *, ordered: bool) -> pl.Series:
    """Give the time by which each message is put into order: its own, or that of a message before
    it, where that is later.

    A message without a time gets that of the one before it. Of a log the order of the lines is
    taken where the clock goes on more than back; else, as in one that has the newest first, its
    times are. So they are of a chat whose times fall throughout.

    :param messages: ``scope``, ``named`` (the session, null where the source names none) and
        ``timestamp``, in the order of the source.
    :param ordered: whether the source has an order of its own, as a list of messages or a chat has.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> from memlab.sessions import order_times
    >>> times = [datetime(2026, 2, 1, 10, 0, second) for second in (5, 4, 9)]
    >>> said = pl.DataFrame({"scope": "me", "named": "trip", "timestamp": times})
    >>> order_times(said, ordered=True).dt.second().to_list()
    [5, 5, 9]
    """
    time = pl.col("timestamp").forward_fill().over(_GROUP)
    timed = messages.select(*_GROUP, time=time).with_columns(
        step=pl.col("time").diff().over(_GROUP)
    )
    if not (timed["step"] < timedelta(0)).any():
        return timed["time"]
    runs = timed.with_columns(run=_find_runs(ordered=ordered).over(_GROUP))
    going_on = pl.col("time").cum_max().over(*_GROUP, "run")
    if ordered:
        is_turned = _has_newest_first().over(_GROUP)
        return runs.select(pl.when(is_turned).then("time").otherwise(going_on)).to_series()
    trusted = _follows_clock().over(_GROUP)
    return runs.select(pl.when(trusted).then(going_on).otherwise("time")).to_series()


def _find_runs(*, ordered: bool) -> pl.Expr:
    """Number the runs of messages that a clock which steps back a little does not break."""
    furthest = _LISTED if ordered else _LOGGED
    breaks = pl.col("named").is_null() & (pl.col("step") < -furthest)
    if not ordered:
        breaks = breaks | (pl.col("step") < -_LISTED)
    return breaks.fill_null(False).cum_sum()


def _has_newest_first() -> pl.Expr:
    """Say whether the times of a chat without named sessions fall throughout, three or more."""
    step, none = pl.col("step"), pl.duration()
    falls = (step <= none).all() & (step < none).any() & (step.len() > _FEW_TIMES)
    return pl.col("named").is_null() & falls & pl.col("time").is_not_null().all()


def _follows_clock() -> pl.Expr:
    """Say whether the lines of a group are in order, but for a clock that steps back at times."""
    step, none = pl.col("step"), pl.duration()
    back = -step.filter(step < none).sum()
    forward = step.filter(step > none).sum()
    known = pl.col("time").drop_nulls()
    goes_on = ((step < none).sum() == 1) | (known.last() >= known.first())
    return (goes_on & (back <= pl.lit(_LOGGED))) | (2 * back < forward)


def count_steps_back(messages: pl.DataFrame) -> int:
    """Count the messages with a time before that of a message which stands before them.

    :param messages: ``timestamp`` and ``placed``, the times of :func:`order_times`.
    """
    return int(messages.select((pl.col("placed") > pl.col("timestamp")).sum()).item())


explain_arguments(globals())
