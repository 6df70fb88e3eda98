"""Dates of reduced precision and the time that they cover: a year, a month or a day, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from memlab.errors import DataError

_PATTERN = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_LAST = datetime.max.replace(tzinfo=UTC)


class Period(NamedTuple):
    """The time from ``start`` to just before ``end``."""

    start: datetime
    end: datetime


@lru_cache(maxsize=10_000)
def parse_date_period(date_text: str) -> Period:
    """Give the time that a date of ISO 8601 covers.

    :param date_text: ``2026``, ``2026-03`` or ``2026-03-14``.
    :raises DataError: for any other text, and for a day that no calendar has.

    >>> from memlab.knowledge.date_precision import parse_date_period
    >>> start, end = parse_date_period("2026-02")
    >>> str(start.date()), str(end.date())
    ('2026-02-01', '2026-03-01')
    """
    date_match = _PATTERN.fullmatch(date_text)
    if date_match is None:
        raise DataError(f"{date_text!r} is no date; expected YYYY, YYYY-MM or YYYY-MM-DD")
    year, month, day = date_match.groups()
    try:
        period_start = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
    except ValueError as error:
        raise DataError(f"{date_text!r} is no date: {error}") from error
    return Period(period_start, _end_of_year_month_or_day(period_start, month, day))


def _end_of_year_month_or_day(
    period_start: datetime, month_text: str | None, day_text: str | None
) -> datetime:
    """Give the first moment after a year, a month or a day, or the last one there is."""
    try:
        if day_text is not None:
            return period_start + timedelta(days=1)
        if month_text is None:
            return period_start.replace(year=period_start.year + 1)
        if period_start.month == 12:
            return period_start.replace(year=period_start.year + 1, month=1)
        return period_start.replace(month=period_start.month + 1)
    except (ValueError, OverflowError):
        return _LAST
