"""Dates in a text: "May 3rd, 2023", "the week before 9 June 2023", "last Friday" seen from a day."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import NamedTuple

from memlab.language.calendar import MONTH_NAME, month, stepped, written
from memlab.language.numbers import quantities
from memlab.language.tokens import without
from memlab.language.words import AUXILIARIES, CONJUNCTIONS, MONTHS, PREPOSITIONS, PRONOUNS, WEEKDAYS

_TO_NINETEENTH = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    *("twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
)
_ORDINALS = (
    *(*_TO_NINETEENTH, "twentieth", *(f"twenty-{word}" for word in _TO_NINETEENTH[:9]), "thirtieth", "thirty-first"),
)
_MONTH = rf"(?P<month>{MONTH_NAME})\b(?:\.(?= ?[\d,]))?"
_DAY = rf"(?:(?P<day>\d{{1,2}})(?P<th>st|nd|rd|th)?|(?P<word>{'|'.join(reversed(_ORDINALS))}))\b(?!:|\.\d|,\d{{3}}\b)"
_YEAR = r"(?:(?:,? of|,)? *(?P<year>[12]\d{3})\b(?!:)|,? ?['’](?P<short>\d\d)\b)"
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_ON = rf"(?:{_WEEKDAY.replace('?P<weekday>', '?:')}[,.]? (?:the )?)?"
_IN = (
    "(?:in|since|until|till|by|before|after|during|throughout|early|late|mid|last|next|every|each|"
    "(?:end|middle|start|beginning|week|weekend|\\w+day) of)"
)
# Names, a verb and an auxiliary: months only behind a word of time.
_DOUBTFUL = ("march", "april", "may", "june", "august")
_FUNCTION_WORDS = AUXILIARIES | CONJUNCTIONS | PREPOSITIONS | PRONOUNS | {"a", "an", "the", "this", "that"}


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.I) for pattern in patterns)


_FULL = _compiled(
    r"(?<![\d/.-])(?P<year>[12]\d{3})([-/.])(?P<n>\d\d?)\2(?P<day>\d\d?)(?![\d/-])(?: ?\((?-i:[A-Z][a-z]{2})\))?",
    r"(?<![\d/.-])(?P<day>\d\d?)\.(?P<n>\d\d?)\.(?P<year>[12]\d{3})(?![\d/-])",
    r"(?<![\d/.-])(?P<n>\d\d?)([/-])(?P<day>\d\d?)\2(?P<year>[12]\d{3}|\d\d)(?![\d/-])",
    r"(?<![\d/.-])(?P<year>(?:19|20)\d\d)-(?P<n>0[1-9])(?![\d/-])",
    rf"\b{_ON}(?:the )?{_DAY}(?: of|,)? {_MONTH}{_YEAR}?",
    rf"\b{_ON}{_MONTH},? (?:the )?{_DAY}{_YEAR}?",
    rf"\b{_MONTH}{_YEAR}",
)
_RELATIVE, _NEAR, _ANCHORED, _TIMED, _AGO, _LONGER = _compiled(
    r"\bthe day before yesterday\b|\bthe day after tomorrow\b|(?<!before )\b(?:yesterday|last night)\b(?! of\b)|"
    r"(?<!after )\btomorrow\b|\b(?:today|tonight|this (?:morning|afternoon|evening))\b",
    r"\b(?P<way>last|this past|this coming|coming|this|next) "
    rf"(?:(?:(?P<unit>week|weekend|month|year)\b|{_WEEKDAY})(?! of\b)|{_MONTH})",
    rf"\b(?:the )?(?:(?P<unit>day|week|weekend|month|year)|{_WEEKDAY}) (?P<way>before|after|of) (?:the )?$",
    r" (?P<way>before|after) (?:the )?$",
    r" (?:ago|from (?:now|today))\b",
    r"\b(?:day|week|month|year)s? and $",
)
_DAYS_AWAY = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1}
_DAYS_AWAY["the day after tomorrow"] = 2
_WAYS = {"last": -1, "this past": -1, "before": -1, "this": 0, "of": 0}
_YEARS, _YEAR_ALONE, _MONTH_ALONE, _WEEKDAY_ALONE = _compiled(
    r"\b(?:from|between) (?P<year>(?:19|20)\d\d) (?:to|and|until) (?P<to>(?:19|20)\d\d)\b",
    rf"\b(?:{_IN}|(?:spring|summer|autumn|fall|winter)(?: of)?|class of|year)[ -](?P<year>(?:19|20)\d\d)\b"
    r"(?![%:/'’-]|[.,]\d)",
    rf"(?P<lead>\b{_IN}[ -])?\b{_MONTH}",
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"(?:(?<=on |by )|(?<=last |next |this ))(?-i:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun))\b",
)
_WORTH_READING, _AFTER_ON, _DAY_BEFORE, _NEXT_WORD, _GOES_ON = _compiled(
    rf"\d|day|week|month|year|last|next|night|morrow|evening|noon|morning|(?<!\w)(?:{MONTH_NAME})(?!\w)|"
    "fri|sat|sun|mon|tue|wed|thu",
    r"\b(?:on|by|since|until|before|after|of) $",
    r"\d(?:st|nd|rd|th)?(?: of)? $",
    r" ([^\W\d_]+)",
    r"['’]s\b| of\b",  # "yesterday's", "last week of May"
)


class Date(NamedTuple):
    """A date in a text, as precise as it is said.

    :param value: see :mod:`memlab.language.calendar`.
    :param text: as it is written.
    :param start: where it begins; ``end`` where it ends.
    :param offset: of one that is only meant: how many of which unit after ``now``, or after the date it names.
    """

    value: str
    text: str
    start: int
    end: int
    offset: tuple[int, str] | None = None


def dates(text: str, now: date | None = None) -> list[Date]:
    """List the dates of a text, in order.

    "7/5/2023" is read month first, as American texts write it, unless the first number is no month; "7.5.2023" day
    first. Names that are also words ("may", "march", "April") are months only with a day, a year or behind a word of
    time. Words that only mean a date ("last Friday", "two weeks ago") are read where ``now`` is given; what the
    calendar does not decide ("recently", "a few days ago", "in two weeks") never is.

    :param now: the day on which the text was said.

    >>> from datetime import date
    >>> from memlab.language.dates import dates
    >>> [d.value for d in dates("May I come on May 3rd, or in June? We ran 12 marathons, 2023.")]
    ['05-03', '06']
    >>> [d.value for d in dates("last Friday, two weeks ago, the week before 9 June 2023", date(2023, 5, 8))]
    ['2023-05-05', '2023-W17', '2023-W22']
    """
    if not _WORTH_READING.search(text):
        return []
    readers: list[Callable[[str], Iterator[Date | None]]] = [partial(_full, pattern) for pattern in _FULL]
    readers += [] if now is None else [partial(_relative, now), partial(_near, now), partial(_ago, now)]
    rows: list[Date] = []
    for read in (*readers, _years, _months, _weekdays):
        found = [row for row in read(text) if row is not None]
        rows += found
        text = without(text, found)
    return sorted(rows, key=lambda row: row.start)


def dated(text: str, day: date) -> str:
    """Write the date behind words that only mean it, seen from the day on which they were said.

    Only what the calendar decides is written: days (yesterday, tomorrow, two days ago, last Friday) as days, months and
    years (last month, three years ago) as such, and of weeks the one that they are before or after. "Recently" or "the
    other day" stay as they are. "Last Friday" is the latest before the day, "next Friday" the first after it, which
    people do not always mean.

    >>> from datetime import date
    >>> from memlab.language.dates import dated
    >>> dated("We met yesterday and moved last month.", date(2023, 1, 1))
    'We met yesterday (31 December 2022) and moved last month (December 2022).'
    >>> dated("She left two weeks ago, not last Friday.", date(2023, 5, 8))
    'She left two weeks ago (2 weeks before 8 May 2023), not last Friday (5 May 2023).'
    """
    for read in reversed(dates(text, day)):
        n, unit = read.offset or (0, "")
        # Others are counted from a date that the text names.
        if n and not _GOES_ON.match(text, read.end) and stepped(day, n, unit) == read.value:
            year, *rest = read.value.split("-")
            if unit in ("week", "weekend"):
                counted = "the" if read.text.lower().startswith(("last", "next", "this", "coming")) else str(abs(n))
                way = "before" if n < 0 else "after"
                meant = f"{counted} {unit}{'s' * (abs(n) > 1)} {way} {written(day)}"
            elif unit == "day":
                meant = written(date.fromisoformat(read.value))
            else:
                meant = " ".join([*(MONTHS[int(number) - 1].title() for number in rest), str(int(year))])
            text = f"{text[: read.end]} ({meant}){text[read.end :]}"
    return text


def _full(pattern: re.Pattern[str], text: str) -> Iterator[Date | None]:
    """Read dates of a day or a year, and what is counted from them."""
    for match in pattern.finditer(text):
        parts = match.groupdict()
        word, digits = parts.get("word"), parts["year"] or parts.get("short") or "0"
        year = int(digits) + (0 if len(digits) != 2 else 2000 if int(digits) < 70 else 1900)
        day = _ORDINALS.index(word.lower()) + 1 if word else int(parts.get("day") or 0)
        if "n" in parts:
            n = int(parts["n"])
            n, day = (day, n) if n > len(MONTHS) and day and "." not in match[0] else (n, day)
        else:
            n = month(parts["month"]) or 0
            if not day and _DAY_BEFORE.search(text[: match.start()]):
                continue
            sure = parts["month"].lower() not in ("may", "march") or year or word or parts.get("th")
            if not sure and not _is_month(text, match):
                continue
        try:
            date(year or 2000, n, day or 1)
        except ValueError:
            continue
        value = "-".join([f"{year:04d}"] * bool(year) + [f"{n:02d}"] + [f"{day:02d}"] * bool(day))
        row = Date(value, match[0], *match.span())
        yield _anchored(text, row, date(year, n, day)) or row if year and day else row


def _is_month(text: str, match: re.Match[str]) -> bool:
    """Tell "5 May" and "March 10" from "5 may be enough" and "march 10 miles"."""
    if _AFTER_ON.search(text[: match.start()]):
        return True
    if match["month"].islower() and match.start("month") > match.start("day") > -1:
        return not _NEXT_WORD.match(text, match.end())
    return not _counted(text, match.end()) and (match["month"][0].isupper() or not _NEXT_WORD.match(text, match.end()))


def _counted(text: str, end: int) -> bool:
    """Say whether a number is followed by what it may count: a word in lower case that tells something."""
    following = _NEXT_WORD.match(text, end)
    return following is not None and following[1].islower() and following[1] not in _FUNCTION_WORDS


def _anchored(text: str, row: Date, now: date) -> Date | None:
    """Read "the week before 9 June 2023", "two days after 9 June 2023"."""
    before = text[: row.start]
    if match := _ANCHORED.search(before):
        way, unit = _way(match), (match["unit"] or "day").lower()
        n = _days_to(now, match["weekday"], way) if match["weekday"] else way
        return _meant(text, match.start(), row.end, now, n, unit) if way or unit in ("week", "weekend") else None
    if match := _TIMED.search(before):
        for quantity in quantities(before):
            if quantity.end == match.start():
                return _meant(text, quantity.start, row.end, now, int(_way(match) * quantity.n), quantity.unit)
    return None


def _relative(now: date, text: str) -> Iterator[Date | None]:
    for match in _RELATIVE.finditer(text):
        yield _meant(text, *match.span(), now, _DAYS_AWAY.get(match[0].lower(), 0), "day")


def _near(now: date, text: str) -> Iterator[Date | None]:
    """Read "last week", "this past Friday", "next May"; "this Friday" and "this May" say no more than their names."""
    for match in _NEAR.finditer(text):
        way = _way(match)
        if match["unit"]:
            yield _meant(text, *match.span(), now, way, match["unit"].lower())
        elif way and match["weekday"]:
            yield _meant(text, *match.span(), now, _days_to(now, match["weekday"], way), "day")
        elif way:
            apart = (month(match["month"]) or 0) - now.month
            apart -= 12 * (way < 0 <= apart) - 12 * (way > 0 >= apart)
            yield _meant(text, *match.span(), now, apart, "month")


def _ago(now: date, text: str) -> Iterator[Date | None]:
    for quantity in quantities(text):
        after = _AGO.match(text, quantity.end)
        exact = quantity.n.is_integer() and quantity.unit not in ("second", "minute", "hour")
        if after and exact and not _LONGER.search(text[: quantity.start]):
            n = int(-quantity.n if after[0].lower() == " ago" else quantity.n)
            yield _meant(text, quantity.start, after.end(), now, n, quantity.unit)


def _way(match: re.Match[str]) -> int:
    return _WAYS.get(match["way"].lower(), 1)


def _days_to(now: date, weekday: str, way: int) -> int:
    """Count the days to the latest such weekday before a day, or the first after it."""
    wanted = next(n for n, name in enumerate(WEEKDAYS) if name.startswith(weekday.lower()[:3]))
    return (wanted - now.weekday() - 1) % 7 + 1 if way > 0 else -((now.weekday() - wanted - 1) % 7 + 1)


def _meant(text: str, start: int, end: int, now: date, n: int, unit: str) -> Date | None:
    try:
        return Date(stepped(now, n, unit), text[start:end], start, end, (n, unit))
    except (OverflowError, ValueError):  # before the first year of the calendar
        return None


def _years(text: str) -> Iterator[Date]:
    for match in _YEARS.finditer(text):
        yield from (Date(match[name], match[name], *match.span(name)) for name in ("year", "to"))
    text = _YEARS.sub(lambda match: "\0" * len(match[0]), text)
    for match in _YEAR_ALONE.finditer(text):
        if not _counted(text, match.end()):
            yield Date(match["year"], match["year"], *match.span("year"))


def _months(text: str) -> Iterator[Date]:
    for match in _MONTH_ALONE.finditer(text):
        name, lead = match["month"].lower(), (match["lead"] or "").lower().strip(" -")
        alone = not text[: match.start()].strip() and not text[match.end() :].strip(" .")
        sure = match["month"][0].isupper() or lead in ("in", "since", "until", "during", "early", "late", "mid")
        plain = name in MONTHS and name not in _DOUBTFUL
        if (plain or (sure and (lead or alone))) and not _DAY_BEFORE.search(text[: match.start()]):
            yield Date(f"{month(name):02d}", match["month"], *match.span("month"))


def _weekdays(text: str) -> Iterator[Date]:
    for match in _WEEKDAY_ALONE.finditer(text):
        yield Date(match[0][:3].lower(), match[0], *match.span())
