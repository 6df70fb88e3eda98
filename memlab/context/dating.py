"""Days that are only meant, written out: "yesterday (7 May 2023)"."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SAID_NUMBERS = "a an one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = dict(zip(_SAID_NUMBERS.split(), (1, 1, *range(1, 13)), strict=True)) | {"a couple of": 2, "couple of": 2}
_NUMBER = r"(\d{1,2}|a couple of|" + "|".join(_SAID_NUMBERS.split()) + ")"
_WEEKDAY = r"(mon|tue(?:s)?|wed(?:nes)?|thu(?:r|rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_MONTHS_OF_YEAR = 12


def dated(text: str, day: date) -> str:
    """Write the date behind words that only mean it, seen from the day on which they were said.

    Only what the calendar decides is written: days (yesterday, tomorrow, two days ago, last Friday) as days, months and
    years (last month, three years ago) as such, and of weeks the one that they are before or after. "Recently" or "the
    other day" stay as they are. "Last Friday" is the latest before the day, "next Friday" the first after it, which
    people do not always mean.

    :param text: what was said.
    :param day: when.

    >>> from datetime import date
    >>> from memlab.context import dated
    >>> dated("We met yesterday and moved last month.", date(2023, 1, 1))
    'We met yesterday (31 December 2022) and moved last month (December 2022).'
    >>> dated("She left two weeks ago, not last Friday.", date(2023, 5, 8))
    'She left two weeks ago (2 weeks before 8 May 2023), not last Friday (5 May 2023).'
    """
    for pattern, meant in _RULES:
        text = pattern.sub(lambda match, meant=meant: _noted(match, meant, day), text)  # type: ignore[misc]
    return text


def _noted(match: re.Match[str], meant: Callable[[re.Match[str], date], str], day: date) -> str:
    try:
        return f"{match[0]} ({meant(match, day)})"
    except (OverflowError, ValueError):
        # Before the first year of the calendar.
        return match[0]


def _written(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


def _number(said: str) -> int:
    return int(said) if said.isdigit() else _NUMBERS[said.lower()]


def _weekday(match: re.Match[str], day: date) -> str:
    wanted = next(n for n, name in enumerate(_DAYS) if name.startswith(match[2].lower()[:3]))
    ahead = match[1].lower() in ("next", "this coming", "coming")
    apart = (wanted - day.weekday() - 1) % 7 + 1 if ahead else -((day.weekday() - wanted - 1) % 7 + 1)
    return _written(day + timedelta(apart))


def _months(day: date, apart: int) -> str:
    year, month = divmod(day.year * _MONTHS_OF_YEAR + day.month - 1 + apart, _MONTHS_OF_YEAR)
    return f"{date(year, month + 1, 1):%B} {year}"


def _ago(match: re.Match[str], day: date) -> str:
    n, unit = _number(match[1]), match[2].lower()
    if unit == "day":
        return _written(day - timedelta(n))
    if unit == "week":
        return f"{n} week{'s' * (n > 1)} before {_written(day)}"
    return _months(day, -n) if unit == "month" else str(date(day.year - n, 1, 1).year)


def _one(match: re.Match[str], day: date) -> str:
    apart = 1 if match[1].lower() == "next" else -1
    unit = match[2].lower()
    if unit in ("week", "weekend"):
        return f"the {unit} {'after' if apart > 0 else 'before'} {_written(day)}"
    return _months(day, apart) if unit == "month" else str(day.year + apart)


def _rule(pattern: str, meant: Callable[[re.Match[str], date], str]) -> tuple[re.Pattern[str], Callable[..., str]]:
    return re.compile(rf"\b{pattern}(?!['’]s\b| of\b)", re.I), meant


_RULES = (
    _rule(r"(?:the day before yesterday)\b", lambda _, day: _written(day - timedelta(2))),
    _rule(r"(?<!before )(?:yesterday|last night)\b", lambda _, day: _written(day - timedelta(1))),
    _rule(r"(?:tomorrow)\b", lambda _, day: _written(day + timedelta(1))),
    _rule(rf"{_NUMBER} (day|week|month|year)s? ago\b", _ago),
    _rule(rf"(last|this past|next|this coming) {_WEEKDAY}", _weekday),
    _rule(r"(last|this past|next) (week|weekend|month|year)\b", _one),
)
