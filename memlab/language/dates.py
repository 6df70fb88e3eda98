"""Dates in a text: "May 3rd, 2023", "the week before 9 June 2023", "last Friday" seen from a day."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import NamedTuple

from memlab.language.calendar import MONTH_NAME, month, stepped
from memlab.language.numbers import quantities
from memlab.language.tokens import without
from memlab.language.words import AUXILIARIES, CONJUNCTIONS, MONTHS, PREPOSITIONS, PRONOUNS, WEEKDAYS

_MONTH = rf"(?P<month>{MONTH_NAME})\b(?:\.(?= ?[\d,]))?"
_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    *("twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
    *("twentieth", "twenty-first", "twenty-second", "twenty-third", "twenty-fourth", "twenty-fifth", "twenty-sixth"),
    *("twenty-seventh", "twenty-eighth", "twenty-ninth", "thirtieth", "thirty-first"),
)
_DAY = rf"(?:(?P<day>\d{{1,2}})(?P<th>st|nd|rd|th)?|(?P<word>{'|'.join(reversed(_ORDINALS))}))\b(?!:|\.\d|,\d{{3}}\b)"
_YEAR = r"(?:(?:,? of|,)? *(?P<year>[12]\d{3})\b(?!:)|,? ?['’](?P<short>\d\d)\b)"
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_ON = rf"(?:{_WEEKDAY.replace('?P<weekday>', '?:')}[,.]? (?:the )?)?"
# Names, a verb and an auxiliary: months only behind a word of time.
_DOUBTFUL = ("march", "april", "may", "june", "august")
_IN = (
    "(?:in|since|until|till|by|before|after|during|throughout|early|late|mid|last|next|every|each|"
    "(?:end|middle|start|beginning|week|weekend|\\w+day) of)"
)
_SEASON = "(?:spring|summer|autumn|fall|winter)"

_FULL = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\b{_ON}(?:the )?{_DAY}(?: of|,)? {_MONTH}{_YEAR}?",
        rf"\b{_ON}{_MONTH},? (?:the )?{_DAY}{_YEAR}?",
        rf"\b{_MONTH}{_YEAR}",
    )
)
_NUMERIC = (
    re.compile(
        r"(?<![\d/.-])(?P<year>[12]\d{3})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?)(?![\d/-])(?: ?\([A-Z][a-z]{2}\))?"
    ),
    re.compile(r"(?<![\d/.-])(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>[12]\d{3})(?![\d/-])"),
    re.compile(r"(?<![\d/.-])(?P<one>\d\d?)([/-])(?P<two>\d\d?)\2(?P<year>[12]\d{3}|\d\d)(?![\d/-])"),
    re.compile(r"(?<![\d/.-])(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9])(?![\d/-])"),
)
_MONTH_ALONE = re.compile(rf"(?P<lead>\b{_IN}[ -])?\b{_MONTH}", re.I)
_YEAR_ALONE = re.compile(
    rf"\b(?:{_IN}|{_SEASON}(?: of)?|class of|year)[ -](?P<year>(?:19|20)\d\d)\b(?![%:/'’-]|[.,]\d)", re.I
)
_YEARS = re.compile(r"\b(?:from|between) (?P<year>(?:19|20)\d\d) (?:to|and|until) (?P<to>(?:19|20)\d\d)\b", re.I)
_WEEKDAY_ALONE = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"(?:(?<=on |by )|(?<=last |next |this ))(?-i:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun))\b",
    re.I,
)
_LONGER = re.compile(r"\b(?:day|week|month|year)s? and $", re.I)
_AGO = re.compile(r" (?:ago|from (?:now|today))\b", re.I)
_REMARKS = (
    (re.compile(r"\bthe day before yesterday\b", re.I), -2),
    (re.compile(r"\bthe day after tomorrow\b", re.I), 2),
    (re.compile(r"(?<!before )\b(?:yesterday|last night)\b(?! of\b)", re.I), -1),
    (re.compile(r"(?<!after )\btomorrow\b", re.I), 1),
    (re.compile(r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", re.I), 0),
)
_NEAR = re.compile(
    r"\b(?P<way>last|this past|this coming|coming|this|next) "
    rf"(?:(?:(?P<unit>week|weekend|month|year)\b|{_WEEKDAY})(?! of\b)|{_MONTH})",
    re.I,
)
_WAYS = {"last": -1, "this past": -1, "before": -1, "this": 0, "of": 0}
_ANCHORED = re.compile(
    rf"\b(?:the )?(?:(?P<unit>day|week|weekend|month|year)|{_WEEKDAY}) (?P<way>before|after|of) (?:the )?$", re.I
)
_TIMED = re.compile(r" (?P<way>before|after) (?:the )?$", re.I)
_WORTH_READING = re.compile(
    rf"\d|day|week|month|year|last|next|night|morrow|evening|noon|morning|(?<!\w)(?:{MONTH_NAME})(?!\w)|fri|sat|sun|mon|tue|wed|thu",
    re.I,
)
_FUNCTION_WORDS = AUXILIARIES | CONJUNCTIONS | PREPOSITIONS | PRONOUNS | {"a", "an", "the", "this", "that"}
_DAY_BEFORE = re.compile(r"\d(?:st|nd|rd|th)?(?: of)? $")
_NEXT_WORD = re.compile(r" ([^\W\d_]+)")
_YEAR_DIGITS, _THIS_CENTURY = 4, 70


class Date(NamedTuple):
    """A date in a text, as precise as it is said.

    :param value: a day ``2023-05-07``, a month ``2023-05``, a year ``2023``, a week ``2023-W18`` (ISO 8601), a weekend
        ``2023-05-06/2023-05-07``; without a year ``05-07`` and ``05``; a weekday alone ``sun``.
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
    readers: list[Callable[[str], Iterator[Date | None]]] = [partial(_numeric, pattern) for pattern in _NUMERIC]
    readers += [partial(_full, pattern) for pattern in _FULL]
    if now is not None:
        readers += [partial(_remarks, pattern, apart, now) for pattern, apart in _REMARKS]
        readers += [partial(_near, now), partial(_ago, now)]
    rows: list[Date] = []
    for read in (*readers, _years, _months, _weekdays):
        for row in [row for row in read(text) if row is not None]:
            rows.append(row)
            text = without(text, [row])
    return sorted(rows, key=lambda row: row.start)


def _numeric(pattern: re.Pattern[str], text: str) -> Iterator[Date | None]:
    for match in pattern.finditer(text):
        parts = match.groupdict()
        if "one" in parts:
            n, day = int(parts["one"]), int(parts["two"])
            n, day = (day, n) if n > len(MONTHS) else (n, day)
        else:
            n, day = int(parts["month"]), int(parts.get("day") or 0)
        yield _dated(text, match, _year(parts["year"]), n, day)


def _full(pattern: re.Pattern[str], text: str) -> Iterator[Date | None]:
    for match in pattern.finditer(text):
        parts = match.groupdict()
        word, year = parts.get("word"), _year(parts["year"] or parts["short"])
        day = _ORDINALS.index(word.lower()) + 1 if word else int(parts.get("day") or 0)
        if not day and _DAY_BEFORE.search(text[: match.start()]):
            continue
        said = match["month"].lower()
        if said not in ("may", "march") or year or word or parts.get("th") or _is_month(text, match):
            yield _dated(text, match, year, month(said) or 0, day)


def _year(digits: str | None) -> int:
    """Read a year; one of two digits is of the last or of this century, and 0 is none."""
    if digits is None or len(digits) == _YEAR_DIGITS:
        return int(digits or 0)
    return int(digits) + (2000 if int(digits) < _THIS_CENTURY else 1900)


def _is_month(text: str, match: re.Match[str]) -> bool:
    """Tell "5 May" and "March 10" from "5 may be enough" and "march 10 miles"."""
    if re.search(r"\b(?:on|by|since|until|before|after|of) $", text[: match.start()], re.I):
        return True
    if match["month"].islower() and match.start("month") > match.start("day") > -1:
        return not _NEXT_WORD.match(text, match.end())
    return not _counted(text, match.end()) and (match["month"][0].isupper() or not _NEXT_WORD.match(text, match.end()))


def _counted(text: str, end: int) -> bool:
    """Say whether a number is followed by what it may count: a word in lower case that tells something."""
    following = _NEXT_WORD.match(text, end)
    return following is not None and following[1].islower() and following[1] not in _FUNCTION_WORDS


def _dated(text: str, match: re.Match[str], year: int, month: int, day: int) -> Date | None:
    try:
        date(year or 2000, month, day or 1)
    except ValueError:
        return None
    value = "-".join([f"{year:04d}"] * bool(year) + [f"{month:02d}"] + [f"{day:02d}"] * bool(day))
    row = Date(value, match[0], *match.span())
    return _anchored(text, row, date(year, month, day)) or row if year and day else row


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


def _remarks(pattern: re.Pattern[str], apart: int, now: date, text: str) -> Iterator[Date | None]:
    for match in pattern.finditer(text):
        yield _meant(text, *match.span(), now, apart, "day")


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
        if not after or _LONGER.search(text[: quantity.start]):
            continue
        if quantity.n == int(quantity.n) and quantity.unit not in ("second", "minute", "hour"):
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
    except (OverflowError, ValueError):
        # Before the first year of the calendar.
        return None


def _years(text: str) -> Iterator[Date]:
    for match in _YEARS.finditer(text):
        for name in ("year", "to"):
            yield Date(match[name], match[name], *match.span(name))
    text = _YEARS.sub(lambda match: "\0" * len(match[0]), text)
    for match in _YEAR_ALONE.finditer(text):
        if not _counted(text, match.end()):
            yield Date(match["year"], match["year"], *match.span("year"))


def _months(text: str) -> Iterator[Date]:
    for match in _MONTH_ALONE.finditer(text):
        name, lead = match["month"].lower(), (match["lead"] or "").lower().strip(" -")
        if _DAY_BEFORE.search(text[: match.start()]):
            continue
        if name in _DOUBTFUL or name not in MONTHS:
            sure = match["month"][0].isupper() or lead in ("in", "since", "until", "during", "early", "late", "mid")
            alone = not text[: match.start()].strip() and not text[match.end() :].strip(" .")
            if not sure or not (lead or alone):
                continue
        yield Date(f"{month(name):02d}", match["month"], *match.span("month"))


def _weekdays(text: str) -> Iterator[Date]:
    for match in _WEEKDAY_ALONE.finditer(text):
        yield Date(match[0][:3].lower(), match[0], *match.span())
