"""The order of messages where their source and their clocks disagree.

A list, a tree or the lines of a chat say in which order things were said; a clock that steps back
does not change it. Messages are put into order by :func:`order_times`, their own times made to go
on; the times that are kept are those of the source.
"""

from __future__ import annotations

from datetime import timedelta

import polars as pl

_LISTED = timedelta(hours=2)
"""How far a clock steps back within a chat: further back begins another file of the same chat."""
_LOGGED = timedelta(minutes=1)
"""How far it does in a log that names no sessions, whose lines may be in any order."""
_GROUP = ("scope", "named")


def order_times(messages: pl.DataFrame, *, ordered: bool) -> pl.Series:
    """Give the time by which each message is put into order: its own, or that of a message before it, where that is
    later.

    A message without a time gets that of the one before it. Of a log the order of the lines is
    taken where the clock goes on more than back; else, as in one that has the newest first, its
    times are.

    :param messages: ``scope``, ``named`` (the session, null where the source names none) and
        ``timestamp``, in the order of the source.
    :param ordered: whether the source has an order of its own, as a list of messages or a chat has.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> from memlab.datasets.message_order import order_times
    >>> times = [datetime(2026, 2, 1, 10, 0, second) for second in (5, 4, 9)]
    >>> said = pl.DataFrame({"scope": "me", "named": "trip", "timestamp": times})
    >>> order_times(said, ordered=True).dt.second().to_list()
    [5, 5, 9]
    """
    time = pl.col("timestamp").forward_fill().over(_GROUP)
    timed = messages.select(*_GROUP, time=time).with_columns(
        step=pl.col("time").diff().over(_GROUP)
    )
    runs = timed.with_columns(run=_find_runs(ordered=ordered).over(_GROUP))
    going_on = pl.col("time").cum_max().over(*_GROUP, "run")
    if ordered:
        return runs.select(going_on).to_series()
    trusted = _follows_clock().over(_GROUP)
    return runs.select(pl.when(trusted).then(going_on).otherwise("time")).to_series()


def _find_runs(*, ordered: bool) -> pl.Expr:
    """Number the runs of messages that a clock which steps back a little does not break."""
    furthest = _LISTED if ordered else _LOGGED
    breaks = pl.col("named").is_null() & (pl.col("step") < -furthest)
    if not ordered:
        breaks = breaks | (pl.col("step") < -_LISTED)
    return breaks.fill_null(False).cum_sum()


def _follows_clock() -> pl.Expr:
    """Say whether the lines of a group are in order but for a clock that steps back now and then."""
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
