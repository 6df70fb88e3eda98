"""Lists of which some tools put the newest value first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median_low
from typing import NamedTuple, TypeVar

from memlab.datasets import record_fields
from memlab.datasets.importers.loose_json import RawTime
from memlab.datasets.record_fields import BadField

Item = TypeVar("Item")


def reverse_if_newest_first(
    items: list[Item],
    time_of: Callable[[Item], RawTime | None],
    *,
    is_answer: Callable[[Item], bool] | None = None,
) -> list[Item]:
    """Give a list in order of time where its newest value stands first; any other stays as it is.

    It is turned round and never sorted, since a question and its answer may have the same time.

    :param is_answer: says of a value whether it answers another: of a list with one time that
        begins with an answer the newest stands first. A question before its answer stays there.

    >>> reverse_if_newest_first(["2026-02-02", "2026-02-01"], str)
    ['2026-02-01', '2026-02-02']
    """
    time_order = measure_time_order(items, time_of)
    is_turned = time_order.is_newest_first
    if is_answer is not None and _is_question_then_answer(items, is_answer):
        return items
    if time_order.back == time_order.forth and items and is_answer is not None:
        is_turned = is_answer(items[0])
    if is_turned:
        return items[::-1]
    return items


def _is_question_then_answer(items: list[Item], is_answer: Callable[[Item], bool]) -> bool:
    """Say whether a list is a question before its answer, which may have another clock."""
    return len(items) == 2 and is_answer(items[1]) and not is_answer(items[0])


class TimeOrder(NamedTuple):
    """In which order the times of a list stand.

    A clock that steps back now and then, or whenever an answer is stamped by another one, does not
    make a list one with the newest first: most steps must lead back, and the first half of the
    list must be the later one.

    :param known: how many values have a time.
    :param back: how many of them are older than the one before them; ``forth``, how many are newer.
    :param fall: by how much the median of the first half is later than that of the second.
    """

    known: int
    back: int
    forth: int
    fall: timedelta

    @property
    def is_newest_first(self) -> bool:
        return self.back > self.forth and self.fall > timedelta()


def measure_time_order(items: list[Item], time_of: Callable[[Item], RawTime | None]) -> TimeOrder:
    """Find the order of a list; values without a time that can be read are passed over.

    :param time_of: gives the time of a value, ``None`` without one, or raises ``BadField``.

    >>> clocks = ["10:00:05", "10:00:04", "10:07:05", "10:07:04"]
    >>> skewed = measure_time_order(clocks, "2026-02-01T{}".format)
    >>> skewed.back, skewed.forth, skewed.is_newest_first
    (2, 1, False)
    """
    known_times = list[datetime]()
    for value in items:
        with suppress(BadField):
            written_time = time_of(value)
            if written_time is not None:
                parsed_time = record_fields.parse_time(written_time, "")
                known_times.append(record_fields.resolve_time_to_utc(parsed_time, UTC, None))
    time_fall = timedelta()
    half_of_times = len(known_times) // 2
    if half_of_times:
        time_fall = median_low(known_times[:half_of_times]) - median_low(
            known_times[-half_of_times:]
        )
    steps_back = steps_forth = 0
    for earlier_time, later_time in pairwise(known_times):
        if later_time < earlier_time:
            steps_back += 1
        elif later_time > earlier_time:
            steps_forth += 1
    return TimeOrder(len(known_times), steps_back, steps_forth, time_fall)
