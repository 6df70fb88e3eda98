"""Dates in a text and the days they cover: "May 3rd, 2023", "the week before 9 June 2023", "last Friday".

A value is as precise as the date: a day ``2023-05-07``, a month ``2023-05``, a year ``2023``, a
week ``2023-W18`` (ISO 8601) or a weekend ``2023-05-06/2023-05-07``; without a year ``05-07`` and
``05``.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from functools import cache
from typing import Any, NamedTuple

import regex

from memlab.text.date_words import DATE_PATTERNS, month_number
from memlab.text.tokens import blank_out
from memlab.text.words import MONTHS, WEEKDAYS, word_lists

_LEAP_YEAR = 2000  # of a date without a year, which may be 29 February

_QUANTITIES = {word: n for n, word in enumerate(word_lists()["cardinals"].split(), 1)}
_QUANTITIES |= dict.fromkeys(("a", "an"), 1) | dict.fromkeys(
    ("couple", "couple of", "a couple", "a couple of"), 2
)
_ORDINALS = word_lists()["ordinals"].split()
# Groups are year, month and day; ``sure`` is the ending or the word of an ordinal: with it "may" is
# no verb.
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?:\.(?= ?[\d,]))?"
)
_DAY = rf"(?:(?P<day>\d{{1,2}})(?P<sure>st|nd|rd|th)?|(?P<sure>{'|'.join(_ORDINALS)}))\b(?!:|\.\d|,\d{{3}}\b)"
_YEAR = r"(?:(?:,? of|,)? *(?P<year>[12]\d{3})\b(?!:)|,? ?['’](?P<year>\d\d)\b)"
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_WEEKDAY_LEAD = rf"(?:{_WEEKDAY}[,.]? (?:the )?)?"
_NO_DAY = r"(?<!\d(?:st|nd|rd|th)?(?: of)? )"  # "30 February 2023" is no month either
# 2023-05-07 (Sun), 7.5.2023, 5/7/2023, 2023-05, Sunday the 7th of May 2023, May 7, May '23
_CALENDAR_PATTERNS = (
    r"(?<![\d/.-])(?P<year>[12]\d{3})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?)(?![\d/-])(?: ?\((?-i:[A-Z][a-z]{2})\))?",
    r"(?<![\d/.-])(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>[12]\d{3})(?![\d/-])",
    r"(?<![\d/.-])(?P<month>\d\d?)([/-])(?P<day>\d\d?)\2(?P<year>[12]\d{3}|\d\d)(?![\d/-])",
    r"(?<![\d/.-])(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9])(?![\d/-])",
    rf"\b{_WEEKDAY_LEAD}(?:the )?{_DAY}(?: of|,)? {_MONTH}{_YEAR}?",
    rf"\b{_WEEKDAY_LEAD}{_MONTH},? (?:the )?{_DAY}{_YEAR}?",
    rf"\b{_NO_DAY}{_MONTH}{_YEAR}",
)
_UNIT = r"(?P<unit>day|week|weekend|month|year)"
_QUANTITY = (
    r"(?<!\b(?:half|or|to|than|over|under|every|each|-|–)[ -]?|\d[-.,])\b"
    rf"(?P<n>\d+|{'|'.join(_QUANTITIES)})[ -]{_UNIT}"
)
# "the day before yesterday", "last week" or "next Friday", "two weeks ago"
_RELATIVE_PATTERNS = (
    r"\b(?P<name>the day before yesterday|(?<!before )yesterday|last night|(?<!after )tomorrow|the day after tomorrow)"
    r"\b(?! of\b)",
    rf"\b(?P<way>last|coming|next) (?:(?P<unit>week|weekend|month|year)\b|{_WEEKDAY}|{_MONTH})"
    r"(?! of\b)",
    rf"(?<!\b(?:day|week|month|year)s? and ){_QUANTITY}s? (?P<way>ago)\b",
)
# "two days before" or "the week of", before a date
_ANCHOR = regex.compile(
    rf"(?:{_QUANTITY}s|\b(?:the )?(?:{_UNIT}|{_WEEKDAY})) (?P<way>before|after) (?:the )?$|"
    r"\b(?:the )?(?P<unit>week|weekend) (?P<way>of) (?:the )?$",
    regex.I,
)
_DAY_OFFSETS = {
    "the day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1, "the day after tomorrow": 2,
}  # fmt: skip
_DIRECTIONS = {"last": -1, "before": -1, "ago": -1, "of": 0, "after": 1, "next": 1, "coming": 1}
_TIME_LEAD = (
    r"\b(?:in|since|until|till|by|before|after|during|throughout|early|late|mid|last|next|every|each|"
    r"(?:end|middle|start|beginning|week|weekend|\w+day) of)[ -]"
)
_YEAR_PATTERN = (
    rf"(?<={_TIME_LEAD}|\b(?:spring|summer|autumn|fall|winter)(?: of)? |\b(?:class of|year|from|between) |"
    r"\b(?:19|20)\d\d (?:to|and|until) )(?P<year>(?:19|20)\d\d)\b(?![%:/'’-]|[.,]\d)"
)
_MONTH_PATTERN = (
    rf"(?P<lead>{_TIME_LEAD})?\b{_NO_DAY}(?<!\d(?:st|nd|rd|th)?(?: of)? {_TIME_LEAD}){_MONTH}"
)
_CERTAIN_LEADS = ("in", "since", "until", "during", "early", "late", "mid")
_AMBIGUOUS_MONTHS = (
    "march",
    "april",
    "may",
    "june",
    "august",
)  # only behind a word of time: names, verbs
_DAY_PREPOSITION = regex.compile(r"\b(?:on|by|since|until|before|after|of) $", regex.I)
_CONTINUATION = regex.compile(r"['’]s\b| of\b", regex.I)  # "yesterday's", "last week of May"


class Date(NamedTuple):
    """A date in a text, at ``text[start:end]``.

    :param value: see :mod:`memlab.text.dates`.
    :param offset: of a date that is counted from ``now``: how many of which unit after it.
    """

    value: str
    text: str
    start: int
    end: int
    offset: tuple[int, str] | None = None


def dates(text: str, now: date | None = None, *, language: str = "en") -> list[Date]:
    """List the dates of a text, in order.

    "7/5/2023" is read month first, as American texts write it, unless the first number is no month;
    "7.5.2023" day first. Names that are also words ("may", "march", "April") are months only with a
    day, a year or behind a word of time. Relative dates ("last Friday", "two weeks ago") are read
    where ``now`` is given; what the calendar does not decide ("recently", "a few days ago", "in two
    weeks") never is.

    :param now: the day on which the text was written.
    :param language: of the text. In German and Spanish days, months and years are read, and no
        relative dates; texts in other languages are read as English.

    >>> from datetime import date
    >>> from memlab.text.dates import dates
    >>> [d.value for d in dates("am 24. Dezember, seit Oktober 2023", language="de")]
    ['12-24', '2023-10']
    >>> [d.value for d in dates("May I come on May 3rd, or in June? We ran 12 marathons, 2023.")]
    ['05-03', '06']
    >>> [d.value for d in dates("last Friday, two weeks ago, the week before 9 June 2023", date(2023, 5, 8))]
    ['2023-05-05', '2023-W17', '2023-W22']
    """
    if language in DATE_PATTERNS:
        return _read_written_dates(text, language)
    rows: list[Date] = []
    for pattern, read in _READERS:
        found_dates = [
            row for match in pattern.finditer(text) if (row := read(match, now)) is not None
        ]
        rows += found_dates
        text = blank_out(text, found_dates)
    return sorted(rows, key=lambda row: row.start)


def _read_written_dates(text: str, language: str) -> list[Date]:
    """List the dates of a German or Spanish text that name a day, a month or a year."""
    rows: list[Date] = []
    for pattern in _written_patterns(language):
        found = []
        for match in pattern.finditer(text):
            value = _written_value(match.groupdict(), language)
            found.append(Date(value, match[0], *match.span()))
        rows += found
        text = blank_out(text, found)
    # "30. Februar" is no day, and its month is not read alone.
    valid = [row for row in rows if row.value]
    return sorted(valid, key=lambda row: row.start)


@cache
def _written_patterns(language: str) -> tuple[Any, ...]:
    return tuple(regex.compile(pattern, regex.I) for pattern in DATE_PATTERNS[language])


def _written_value(parts: dict[str, str | None], language: str) -> str:
    """Give the value of a date by its year, month and day; empty where the calendar has no such day."""
    written = parts.get("year") or ""
    if len(written) == len("23"):
        written = str(_full_year(int(written)))
    month = 0
    if parts.get("month"):
        month = month_number(parts["month"] or "", language)
    day = int(parts.get("day") or 0)
    if parts.get("first"):
        day = 1
    try:
        date(int(written or _LEAP_YEAR), month or 1, day or 1)
    except ValueError:
        return ""
    values = [written]
    values += [f"{number:02d}" for number in (month, day) if number]
    return "-".join(filter(None, values))


def _full_year(year: int) -> int:
    """Give the year of two digits: 1970 to 2069."""
    return year + (2000 if year < 70 else 1900)


def annotate_dates(text: str, day: date) -> str:
    """Write the date behind each relative date of a text: "yesterday (7 May 2023)".

    Days are written as days, months and years as such, and weeks as the week before or after a day.
    "Last Friday" is the latest before the day, "next Friday" the first after it.

    :param day: the day on which the text was written.

    >>> from datetime import date
    >>> from memlab.text.dates import annotate_dates
    >>> annotate_dates("We met yesterday and moved last month.", date(2023, 1, 1))
    'We met yesterday (31 December 2022) and moved last month (December 2022).'
    >>> annotate_dates("She left two weeks ago, not last Friday.", date(2023, 5, 8))
    'She left two weeks ago (2 weeks before 8 May 2023), not last Friday (5 May 2023).'
    """
    for row in reversed(dates(text, day)):
        n, unit = row.offset or (0, "")
        if not n or _CONTINUATION.match(text, row.end):
            continue
        if unit in ("week", "weekend"):
            count = (
                "the" if row.text.lower().startswith(("last", "next", "coming")) else str(abs(n))
            )
            written = f"{count} {unit}{'s' * (abs(n) > 1)} {'before' if n < 0 else 'after'} {format_day(day)}"
        elif unit == "day":
            written = format_day(date.fromisoformat(row.value))
        else:
            year, *months = map(int, row.value.split("-"))
            written = " ".join([*(MONTHS[number - 1].title() for number in months), str(year)])
        text = f"{text[: row.end]} ({written}){text[row.end :]}"
    return text


def format_day(day: date) -> str:
    """Write a day in full: ``7 May 2023``."""
    return f"{day.day} {MONTHS[day.month - 1].title()} {day.year}"


def date_range(value: str) -> tuple[date, date] | None:
    """Give the first and the last day of a date's value; ``None`` for one without a year.

    >>> from memlab.text.dates import date_range
    >>> [str(day) for day in date_range("2023-05")]
    ['2023-05-01', '2023-05-31']
    >>> date_range("05"), date_range("05-07")
    (None, None)
    """
    if len(value) < len("2023") or not value[:4].isdigit():
        return None
    if "W" in value:
        return date.fromisoformat(f"{value}-1"), date.fromisoformat(f"{value}-7")
    first, _, last = value.partition("/")
    if len(first) == len("2023-05-07"):
        return date.fromisoformat(first), date.fromisoformat(last or first)
    year, *rest = map(int, value.split("-"))
    start, end = rest * 2 or (1, len(MONTHS))
    return date(year, start, 1), date(year, end, monthrange(year, end)[1])


def _shift_date(now: date, n: int, unit: str) -> str:
    """Give the value of the day, week, weekend, month or year that is ``n`` units from a day.

    The last weekend is over by the day, the next is yet to come, and this one is the nearest that
    is not over.
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
    year, at = divmod(now.year * 12 + now.month - 1 + n * (1 if unit == "month" else 12), 12)
    return date(year, at + 1, 1).isoformat()[: len("2023-05" if unit == "month" else "2023")]


def _read_calendar_date(match: Any, _: date | None) -> Date | None:
    """Read a date with a day or a year, and one that is relative to it ("the week before 9 June 2023")."""
    parts = match.groupdict()
    name, sure, digits = parts["month"], parts.get("sure"), parts["year"] or "0"
    year = int(digits) + (0 if len(digits) != 2 else 2000 if int(digits) < 70 else 1900)
    n = int(name) if name.isdigit() else _month_number(name)
    spelled = sure and sure.lower() in _ORDINALS
    day = _ORDINALS.index(sure.lower()) + 1 if spelled else int(parts.get("day") or 0)
    if n > len(MONTHS) and "." not in match[0]:
        n, day = day, n
    # "5 may be enough", "march 10 miles"
    goes_on = regex.match(r" [^\W\d_]", match.string[match.end() :])
    clear = sure or year or _DAY_PREPOSITION.search(match.string[: match.start()])
    if name in ("may", "march") and goes_on and not clear:
        return None
    try:
        date(year or 2000, n, day or 1)
    except ValueError:
        return None
    value = "-".join([f"{year:04d}"] * bool(year) + [f"{n:02d}"] + [f"{day:02d}"] * bool(day))
    anchor = _ANCHOR.search(match.string[: match.start()]) if year and day else None
    meant = anchor and _read_relative_date(anchor, date(year, n, day), match)
    return meant or Date(value, match[0], *match.span())


def _read_relative_date(match: Any, now: date | None, to: Any = None) -> Date | None:
    """Read a date that is relative to a day: "yesterday", "next May", "two weeks ago", "the day before ``to``"."""
    if now is None:
        return None
    parts = {name: (value or "").lower() for name, value in match.groupdict().items()}
    unit, away = parts.get("unit") or "day", _DIRECTIONS.get(parts.get("way", ""), 0)
    if name := parts.get("name"):
        away = _DAY_OFFSETS[name]
    elif count := parts.get("n"):
        away *= int(count) if count.isdigit() else _QUANTITIES[count]
    elif weekday := parts.get("weekday"):
        ahead = [name[:3] for name in WEEKDAYS].index(weekday[:3]) - now.weekday()
        away = (ahead - 1) % 7 + 1 if away > 0 else -((-ahead - 1) % 7 + 1)
    elif name := parts.get("month"):
        ahead, unit = _month_number(name) - now.month, "month"
        away = ahead - 12 * (away < 0 <= ahead) + 12 * (ahead <= 0 < away)
    start, end = match.start(), (to or match).end()
    try:
        value, offset = _shift_date(now, away, unit), None if to else (away, unit)
        return Date(value, (to or match).string[start:end], start, end, offset)
    except (OverflowError, ValueError):  # outside the years of the calendar
        return None


def _read_year(match: Any, _: date | None) -> Date:
    return Date(match["year"], match["year"], *match.span("year"))


def _read_month(match: Any, _: date | None) -> Date | None:
    name, lead = match["month"], (match["lead"] or "").lower().strip(" -")
    doubtful = name.lower() not in MONTHS or name.lower() in _AMBIGUOUS_MONTHS
    clear = (
        lead or match.string.strip(" .") == name if name[0].isupper() else lead in _CERTAIN_LEADS
    )
    return (
        None
        if doubtful and not clear
        else Date(f"{_month_number(name):02d}", name, *match.span("month"))
    )


def _month_number(name: str) -> int:
    return [full[:3] for full in MONTHS].index(name[:3].lower()) + 1


_READERS = tuple(
    (regex.compile(pattern, regex.I), read)
    for patterns, read in (
        (_CALENDAR_PATTERNS, _read_calendar_date), (_RELATIVE_PATTERNS, _read_relative_date),
        ((_YEAR_PATTERN,), _read_year), ((_MONTH_PATTERN,), _read_month),
    )
    for pattern in patterns
)  # fmt: skip
