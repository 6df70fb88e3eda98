"""Dates in a text: "May 3rd, 2023", "the week before 9 June 2023", "last Friday" seen from a day."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

import regex

from memlab.text.calendar import MONTH_NAME, month, stepped, written
from memlab.text.numbers import numbers
from memlab.text.tokens import without
from memlab.text.words import AUXILIARIES, CONJUNCTIONS, MONTHS, PREPOSITIONS, PRONOUNS, WEEKDAYS

# Groups are year, month and day; ``sure`` is the ending or the word of an ordinal: with it "may" is no verb.
_MONTH = rf"(?P<month>{MONTH_NAME})\b(?:\.(?= ?[\d,]))?"
_ORDINAL = r"(?!(?:and|august|last)\b)[a-z-]+(?<=st|nd|rd|th)"
_DAY = rf"(?:(?P<day>\d{{1,2}})(?P<sure>st|nd|rd|th)?|(?P<sure>{_ORDINAL}))\b(?!:|\.\d|,\d{{3}}\b)"
_YEAR = r"(?:(?:,? of|,)? *(?P<year>[12]\d{3})\b(?!:)|,? ?['’](?P<year>\d\d)\b)"
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_ON = rf"(?:{_WEEKDAY}[,.]? (?:the )?)?"
_NO_DAY = r"(?<!\d(?:st|nd|rd|th)?(?: of)? )"  # "30 February 2023" is no month either
# 2023-05-07 (Sun), 7.5.2023, 5/7/2023, 2023-05, Sunday the 7th of May 2023, May 7, May '23
_CALENDAR = (
    r"(?<![\d/.-])(?P<year>[12]\d{3})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?)(?![\d/-])(?: ?\((?-i:[A-Z][a-z]{2})\))?",
    r"(?<![\d/.-])(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>[12]\d{3})(?![\d/-])",
    r"(?<![\d/.-])(?P<month>\d\d?)([/-])(?P<day>\d\d?)\2(?P<year>[12]\d{3}|\d\d)(?![\d/-])",
    r"(?<![\d/.-])(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9])(?![\d/-])",
    rf"\b{_ON}(?:the )?{_DAY}(?: of|,)? {_MONTH}{_YEAR}?",
    rf"\b{_ON}{_MONTH},? (?:the )?{_DAY}{_YEAR}?",
    rf"\b{_NO_DAY}{_MONTH}{_YEAR}",
)
_UNIT = r"(?P<unit>day|week|weekend|month|year)"
_COUNTED = (
    r"(?<!\b(?:half|or|to|than|over|under|every|each|-|–)[ -]?|\d[-.,])\b"
    rf"(?P<n>\d+|an?|(?:a )?couple(?: of)?|(?:[a-z]+-)?[a-z]+)[ -]{_UNIT}"
)
# "the day before yesterday", "last week" or "next Friday", "two weeks ago"
_RELATIVE = (
    r"\bthe day before yesterday\b|\bthe day after tomorrow\b|(?<!before )\b(?:yesterday|last night)\b(?! of\b)|"
    r"(?<!after )\btomorrow\b|\b(?:today|tonight|this (?:morning|afternoon|evening))\b",
    r"\b(?:(?P<way>last|this past|this coming|coming|this|next) (?P<unit>week|weekend|month|year)\b(?! of\b)|"
    rf"(?P<way>last|this past|this coming|coming|next) (?:{_WEEKDAY}(?! of\b)|{_MONTH}))",
    rf"(?<!\b(?:day|week|month|year)s? and ){_COUNTED}s? (?P<way>ago|from (?:now|today))\b",
)
# "two days before" or "the week of", before a date
_ANCHOR = regex.compile(
    rf"(?:{_COUNTED}s|\b(?:the )?(?:{_UNIT}|{_WEEKDAY})) (?P<way>before|after) (?:the )?$|"
    r"\b(?:the )?(?P<unit>week|weekend) (?P<way>of) (?:the )?$",
    regex.I,
)
_DAYS_AWAY = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1}
_DAYS_AWAY["the day after tomorrow"] = 2
_WAYS = {"last": -1, "this past": -1, "before": -1, "ago": -1, "this": 0, "of": 0}
_IN = (
    r"\b(?:in|since|until|till|by|before|after|during|throughout|early|late|mid|last|next|every|each|"
    r"(?:end|middle|start|beginning|week|weekend|\w+day) of)[ -]"
)
_A_YEAR = r"(?:19|20)\d\d"
_YEAR_ALONE = (
    rf"(?:(?<={_IN}|\b(?:(?:spring|summer|autumn|fall|winter)(?: of)?|class of|year)[ -])"
    rf"|(?<=\b(?:from|between) )(?= *{_A_YEAR} (?:to|and|until) {_A_YEAR}\b)"
    rf"|(?<=\b(?:from|between) {_A_YEAR} (?:to|and|until) ))(?P<year>{_A_YEAR})\b(?![%:/'’-]|[.,]\d)"
)
_MONTH_ALONE = rf"(?P<lead>{_IN})?\b{_NO_DAY}(?<!\d(?:st|nd|rd|th)?(?: of)? {_IN}){_MONTH}"
_WEEKDAY_ALONE = (
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"(?<=on |by |last |next |this )(?-i:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun))\b"
)
# Names, a verb and an auxiliary: months only behind a word of time.
_DOUBTFUL = ("march", "april", "may", "june", "august")
_FUNCTION_WORDS = AUXILIARIES | CONJUNCTIONS | PREPOSITIONS | PRONOUNS | {"a", "an", "the", "this", "that"}
_AFTER_ON = regex.compile(r"\b(?:on|by|since|until|before|after|of) $", regex.I)
_NEXT_WORD = regex.compile(r" ([^\W\d_]+)")
_GOES_ON = regex.compile(r"['’]s\b| of\b", regex.I)  # "yesterday's", "last week of May"


class Date(NamedTuple):
    """A date in a text.

    :param value: see :mod:`memlab.text.calendar`.
    :param text: as it is written.
    :param start: where it begins; ``end`` where it ends.
    :param offset: of a relative date: how many of which unit after ``now``, or after the date that it names.
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
    time. Relative dates ("last Friday", "two weeks ago") are read where ``now`` is given; what the calendar does not
    decide ("recently", "a few days ago", "in two weeks") never is.

    :param now: the day on which the text was written.

    >>> from datetime import date
    >>> from memlab.text.dates import dates
    >>> [d.value for d in dates("May I come on May 3rd, or in June? We ran 12 marathons, 2023.")]
    ['05-03', '06']
    >>> [d.value for d in dates("last Friday, two weeks ago, the week before 9 June 2023", date(2023, 5, 8))]
    ['2023-05-05', '2023-W17', '2023-W22']
    """
    rows: list[Date] = []
    for pattern, read in _READERS:
        found = [row for match in pattern.finditer(text) if (row := read(match, now)) is not None]
        rows += found
        text = without(text, found)
    return sorted(rows, key=lambda row: row.start)


def dated(text: str, day: date) -> str:
    """Write the date behind relative dates, seen from the day on which the text was written.

    Days (yesterday, two days ago, last Friday) are written as days, months and years as such, and weeks as the week
    before or after a day. "Last Friday" is the latest before the day, "next Friday" the first after it, which people
    do not always mean.

    >>> from datetime import date
    >>> from memlab.text.dates import dated
    >>> dated("We met yesterday and moved last month.", date(2023, 1, 1))
    'We met yesterday (31 December 2022) and moved last month (December 2022).'
    >>> dated("She left two weeks ago, not last Friday.", date(2023, 5, 8))
    'She left two weeks ago (2 weeks before 8 May 2023), not last Friday (5 May 2023).'
    """
    for row in reversed(dates(text, day)):
        n, unit = row.offset or (0, "")
        # Others are counted from a date that the text names.
        if n and not _GOES_ON.match(text, row.end) and stepped(day, n, unit) == row.value:
            year, *rest = row.value.split("-")
            if unit in ("week", "weekend"):
                count = "the" if row.text.lower().startswith(("last", "next", "this", "coming")) else str(abs(n))
                meant = f"{count} {unit}{'s' * (abs(n) > 1)} {'before' if n < 0 else 'after'} {written(day)}"
            elif unit == "day":
                meant = written(date.fromisoformat(row.value))
            else:
                meant = " ".join([*(MONTHS[int(number) - 1].title() for number in rest), str(int(year))])
            text = f"{text[: row.end]} ({meant}){text[row.end :]}"
    return text


def _calendar(match: Any, _: date | None) -> Date | None:
    """Read a date with a day or a year, and what is counted from it."""
    parts = match.groupdict()
    name, sure, digits = parts["month"], parts.get("sure"), parts["year"] or "0"
    year = int(digits) + (0 if len(digits) != 2 else 2000 if int(digits) < 70 else 1900)
    n, day = int(name) if name.isdigit() else month(name), int(parts.get("day") or 0)
    if sure and not parts["day"]:
        day = next((int(number.value) for number in numbers(sure, ordinals=True) if number.text == sure), 0)
        if not day:
            return None
    if n > len(MONTHS) and "." not in match[0]:
        n, day = day, n
    if name.lower() in ("may", "march") and not (year or sure) and not _is_month(match):
        return None
    try:
        date(year or 2000, n, day or 1)
    except ValueError:
        return None
    value = "-".join([f"{year:04d}"] * bool(year) + [f"{n:02d}"] + [f"{day:02d}"] * bool(day))
    anchor = _ANCHOR.search(match.string[: match.start()]) if year and day else None
    meant = anchor and _relative(anchor, date(year, n, day), match)
    return meant or Date(value, match[0], *match.span())


def _is_month(match: Any) -> bool:
    """Tell "5 May" and "March 10" from "5 may be enough" and "march 10 miles"."""
    if not _NEXT_WORD.match(match.string, match.end()) or _AFTER_ON.search(match.string[: match.start()]):
        return True
    return match["month"][0].isupper() and not _counts(match)


def _counts(match: Any) -> bool:
    """Say whether a number is followed by what it may count: a content word in lower case."""
    following = _NEXT_WORD.match(match.string, match.end())
    return following is not None and following[1].islower() and following[1] not in _FUNCTION_WORDS


def _relative(match: Any, now: date | None, to: Any = None) -> Date | None:
    """Read a date that is counted from a day: "yesterday", "next May", "two weeks ago", "the day before ``to``"."""
    parts = match.groupdict()
    if now is None:
        return None
    n, unit = _DAYS_AWAY.get(match[0].lower(), 0), (parts.get("unit") or "day").lower()
    if "way" in parts:
        n = _WAYS.get(parts["way"].lower(), 1)
    if parts.get("n"):
        values = [number.value for number in numbers(parts["n"]) if number.start <= 2]
        if len(values) != 1 and parts["n"].lower() not in ("a", "an"):
            return None
        n *= int(sum(values)) or 1
    elif parts.get("weekday"):
        away = [name[:3] for name in WEEKDAYS].index(parts["weekday"].lower()[:3]) - now.weekday()
        n = (away - 1) % 7 + 1 if n > 0 else -((-away - 1) % 7 + 1)
    elif parts.get("month"):
        apart, unit = month(parts["month"]) - now.month, "month"
        n = apart - 12 * (n < 0 <= apart) + 12 * (apart <= 0 < n)
    start, end = match.start(), (to or match).end()
    try:
        return Date(stepped(now, n, unit), (to or match).string[start:end], start, end, (n, unit))
    except (OverflowError, ValueError):  # outside the years of the calendar
        return None


def _year_alone(match: Any, _: date | None) -> Date | None:
    return None if _counts(match) else Date(match["year"], match["year"], *match.span())


def _month_alone(match: Any, _: date | None) -> Date | None:
    name, lead = match["month"], (match["lead"] or "").lower().strip(" -")
    alone = match.string.strip(" .") == name
    sure = name[0].isupper() or lead in ("in", "since", "until", "during", "early", "late", "mid")
    if (name.lower() in set(MONTHS).difference(_DOUBTFUL)) or (sure and (lead or alone)):
        return Date(f"{month(name):02d}", name, *match.span("month"))
    return None


def _weekday_alone(match: Any, _: date | None) -> Date:
    return Date(match[0][:3].lower(), match[0], *match.span())


_READERS = tuple(
    (regex.compile(pattern, regex.I), read)
    for patterns, read in (
        (_CALENDAR, _calendar),
        (_RELATIVE, _relative),
        ((_YEAR_ALONE,), _year_alone),
        ((_MONTH_ALONE,), _month_alone),
        ((_WEEKDAY_ALONE,), _weekday_alone),
    )
    for pattern in patterns
)
