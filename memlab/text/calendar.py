"""Dates as values, which are as precise as they are known: months by name, steps from a day, and what a date spans.

A value is a day ``2023-05-07``, a month ``2023-05``, a year ``2023``, a week ``2023-W18`` (ISO 8601) or a weekend
``2023-05-06/2023-05-07``; without a year ``05-07`` and ``05``; or a weekday ``sun``.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta

from memlab.text.words import MONTHS, WEEKDAYS

MONTH_NAME = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
"""A pattern of the names of months and their abbreviations."""


def written(day: date) -> str:
    """Write a day in full: ``7 May 2023``."""
    return f"{day.day} {MONTHS[day.month - 1].title()} {day.year}"


def month(name: str) -> int:
    """Give the number of a month by its name or abbreviation, in any case; 0 for another word."""
    known = re.fullmatch(MONTH_NAME, name.removesuffix("."), re.I)
    return [full[:3] for full in MONTHS].index(name[:3].lower()) + 1 if known else 0


def stepped(now: date, n: int, unit: str) -> str:
    """Give the day, week, weekend, month or year that is ``n`` units from a day, as a value.

    The last weekend is over by the day, the next is yet to come, and this one is the nearest that is not over.

    :raises ValueError: outside the years 1 to 9999; ``OverflowError`` too.

    >>> from datetime import date
    >>> from memlab.text.calendar import stepped
    >>> [stepped(date(2023, 5, 8), -1, unit) for unit in ("day", "week", "weekend", "month")]
    ['2023-05-07', '2023-W18', '2023-05-06/2023-05-07', '2023-04']
    """
    if unit == "day":
        return (now + timedelta(n)).isoformat()
    if unit == "week":
        year, week, _ = (now + timedelta(7 * n)).isocalendar()
        return f"{year}-W{week:02d}"
    if unit == "weekend":
        ahead = n > 0 and now.weekday() < 5  # in the week from Monday to Sunday
        saturday = now + timedelta(5 - now.weekday() + 7 * (n - ahead))
        return f"{saturday}/{saturday + timedelta(1)}"
    if unit == "month":
        year, at = divmod(now.year * 12 + now.month - 1 + n, 12)
        return f"{date(year, at + 1, 1):%Y-%m}"
    return f"{date(now.year + n, 1, 1):%Y}"


def days(value: str) -> tuple[date, date] | None:
    """Give the first and the last day of a date; ``None`` for one without a year.

    >>> from memlab.text.calendar import days
    >>> [str(day) for day in days("2023-05")]
    ['2023-05-01', '2023-05-31']
    """
    if not value[:4].isdigit() or len(value) < 4:
        return None
    if "W" in value:
        return date.fromisoformat(f"{value}-1"), date.fromisoformat(f"{value}-7")
    first, _, last = value.partition("/")
    if len(first) == len("2023-05-07"):
        return date.fromisoformat(first), date.fromisoformat(last or first)
    year, *rest = map(int, value.split("-"))
    start, end = rest * 2 or (1, len(MONTHS))
    return date(year, start, 1), date(year, end, monthrange(year, end)[1])


def says(stated: str, wanted: str) -> bool:
    """Say whether a date states another: it may be more precise, and may leave out the year of a day.

    >>> from memlab.text.calendar import says
    >>> says("2023-05-07", "2023-05"), says("05-07", "2023-05-07"), says("2023-05", "2023-05-07")
    (True, True, False)
    >>> says("2023-05-07", "2023-W18"), says("2023-05-07", "05"), says("2023-05-07", "sun")
    (True, True, True)
    """
    inner, outer = days(stated), days(wanted)
    if inner and outer:
        return outer[0] <= inner[0] and inner[1] <= outer[1]
    if outer:
        return outer[0] == outer[1] and stated == f"{outer[0]:%m-%d}"
    if inner is None:
        return stated == wanted or stated.startswith(f"{wanted}-")
    first, last = inner
    if first == last and wanted in (f"{first:%m-%d}", WEEKDAYS[first.weekday()][:3]):
        return True
    return wanted == f"{first:%m}" == f"{last:%m}"
