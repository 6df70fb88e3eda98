"""Lists of which some tools put the newest value first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from itertools import pairwise
from typing import Any, TypeVar

from memlab.datasets import fields
from memlab.datasets.fields import BadField

Item = TypeVar("Item")


def oldest_first(
    listed: list[Item],
    time_of: Callable[[Item], Any],
    *,
    is_answer: Callable[[Item], bool] | None = None,
) -> list[Item]:
    """Give a list in order of time where its newest value stands first; any other stays as it is.

    It is turned round and never sorted, since a question and its answer may have the same time.

    :param is_answer: says of a value whether it answers another: of a list with one time that
        begins with an answer the newest stands first.

    >>> oldest_first(["2026-02-02", "2026-02-01"], str)
    ['2026-02-01', '2026-02-02']
    """
    times = []
    for value in listed:
        with suppress(BadField):
            when = fields.parse_time(time_of(value), "")
            times.append(fields.place_in_zone(when, UTC, None))
    back = forth = 0
    for earlier, later in pairwise(times):
        back += later < earlier
        forth += later > earlier
    is_turned = back > forth
    if back == forth and listed and is_answer is not None:
        is_turned = is_answer(listed[0])
    if is_turned:
        return listed[::-1]
    return listed
