"""Dates in a text: "May 3rd, 2023", "the week before 9 June 2023", "last Friday" seen from a day."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import partial
from typing import NamedTuple

from memlab.language.calendar import MONTH_NAME, month, stepped
from memlab.language.durations import quantities
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
    r"\b(?:(?P<full>mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"(?<=on |by )(?-i:(?P<short>Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun))|"
    r"(?<=last |next |this )(?-i:(?P<near>Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)))\b",
    re.I,
)
_LONGER = re.compile(r"\b(?:day|week|month|year)s? and $", re.I)
_REMARKS = (
    (re.compile(r"\bthe day before yesterday\b", re.I), -2),
    (re.compile(r"\bthe day after tomorrow\b", re.I), 2),
    (re.compile(r"(?<!before )\b(?:yesterday|last night)\b(?! of\b)", re.I), -1),
    (re.compile(r"(?<!after )\btomorrow\b", re.I), 1),
    (re.compile(r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", re.I), 0),
)
_NEAR = re.compile(
    r"\b(?P<way>last|this past|this coming|coming|this|next) (?P<unit>week|weekend|month|year)\b(?! of\b)", re.I
)
_NEAR_DAY = re.compile(rf"\b(?P<way>last|this past|this coming|coming|next) {_WEEKDAY}(?! of\b)", re.I)
_NEAR_MONTH = re.compile(rf"\b(?P<way>last|this past|this coming|coming|next) {_MONTH}", re.I)
_ANCHORED = re.compile(
    rf"\b(?:the )?(?:(?P<unit>day|week|weekend|month|year)|{_WEEKDAY}) (?P<way>before|after|of) (?:the )?$", re.I
)
_TIMED = re.compile(r"(?P<unit>) (?P<way>before|after) (?:the )?$", re.I)
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
    rows: list[Date] = []
    for read in (_named, partial(_relative, now=now), _years, _months, _weekdays):
        for row in list(read(text)):
            rows.append(row)
            text = _without(text, row)
    return sorted(rows, key=lambda row: row.start)


def _without(text: str, row: Date) -> str:
    return text[: row.start] + "\0" * (row.end - row.start) + text[row.end :]


def _named(text: str) -> Iterator[Date]:
    for read in (_numeric, _full):
        for row in list(read(text)):
            row = _anchored(text, row) or row
            yield row
            text = _without(text, row)


def _numeric(text: str) -> Iterator[Date]:
    for pattern in _NUMERIC:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            year = int(parts["year"])
            if len(parts["year"]) < _YEAR_DIGITS:
                year += 2000 if year < _THIS_CENTURY else 1900
            if "one" in parts:
                n, day = int(parts["one"]), int(parts["two"])
                n, day = (day, n) if n > len(MONTHS) else (n, day)
            else:
                n, day = int(parts["month"]), int(parts.get("day") or 0)
            if row := _dated(match, year, n, day):
                yield row
                text = _without(text, row)


def _full(text: str) -> Iterator[Date]:
    for pattern in _FULL:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            word, day = parts.get("word"), int(parts.get("day") or 0)
            year = int(parts["year"] or 0)
            if parts["short"]:
                year = int(parts["short"]) + (2000 if int(parts["short"]) < _THIS_CENTURY else 1900)
            if word:
                day = _ORDINALS.index(word.lower()) + 1
            if not day and not word and _DAY_BEFORE.search(text[: match.start()]):
                continue
            said = match["month"].lower()
            if said in ("may", "march") and not (year or word or parts.get("th")) and not _is_month(text, match):
                continue
            if row := _dated(match, year, month(said) or 0, day):
                yield row
                text = _without(text, row)


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


def _dated(match: re.Match[str], year: int, month: int, day: int) -> Date | None:
    try:
        date(year or 2000, month, day or 1)
    except ValueError:
        return None
    value = "-".join([f"{year:04d}"] * bool(year) + [f"{month:02d}"] + [f"{day:02d}"] * bool(day))
    return Date(value, match[0], *match.span())


def _anchored(text: str, row: Date) -> Date | None:
    """Read "the week before 9 June 2023", "two days after 9 June 2023"."""
    if len(row.value) != len("2023-05-07"):
        return None
    now, before = date.fromisoformat(row.value), text[: row.start]
    if match := _ANCHORED.search(before):
        way = {"before": -1, "after": 1, "of": 0}[match["way"].lower()]
        if match["weekday"]:
            return (
                _meant(text, match.start(), row.end, now, _days_to(now, match["weekday"], way), "day") if way else None
            )
        unit = match["unit"].lower()
        return _meant(text, match.start(), row.end, now, way, unit) if way or unit in ("week", "weekend") else None
    if match := _TIMED.search(before):
        for quantity in quantities(before):
            if quantity.end == match.start():
                sign = -1 if match["way"].lower() == "before" else 1
                return _meant(text, quantity.start, row.end, now, int(sign * quantity.n), quantity.unit)
    return None


def _relative(text: str, now: date | None) -> Iterator[Date]:
    if now is None:
        return
    for pattern, apart in _REMARKS:
        for match in pattern.finditer(text):
            if row := _meant(text, *match.span(), now, apart, "day"):
                yield row
                text = _without(text, row)
    for match in _NEAR.finditer(text):
        if row := _meant(text, *match.span(), now, _way(match), match["unit"].lower()):
            yield row
    for match in _NEAR_DAY.finditer(text):
        if row := _meant(text, *match.span(), now, _days_to(now, match["weekday"], _way(match)), "day"):
            yield row
    for match in _NEAR_MONTH.finditer(text):
        apart = (month(match["month"]) or 0) - now.month
        apart -= 12 * (_way(match) < 0 <= apart) - 12 * (_way(match) > 0 >= apart)
        if row := _meant(text, *match.span(), now, apart, "month"):
            yield row
    for quantity in quantities(text):
        after = re.compile(r" (?:ago|from (?:now|today))\b", re.I).match(text, quantity.end)
        if _LONGER.search(text[: quantity.start]):
            continue
        if after and quantity.n == int(quantity.n) and quantity.unit not in ("second", "minute", "hour"):
            sign = -1 if after[0].lower() == " ago" else 1
            if row := _meant(text, quantity.start, after.end(), now, sign * int(quantity.n), quantity.unit):
                yield row


def _way(match: re.Match[str]) -> int:
    way = match["way"].lower()
    return -1 if way in ("last", "this past") else 0 if way == "this" else 1


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
        text = text[: match.start()] + "\0" * len(match[0]) + text[match.end() :]
    for match in _YEAR_ALONE.finditer(text):
        if not _counted(text, match.end()):
            yield Date(match["year"], match["year"], *match.span("year"))


def _months(text: str) -> Iterator[Date]:
    for match in _MONTH_ALONE.finditer(text):
        name, lead = match["month"].lower(), (match["lead"] or "").lower().strip(" -")
        if _DAY_BEFORE.search(text[: match.start()]):
            continue
        short = name not in MONTHS or name == "may"
        if name in _DOUBTFUL or short:
            sure = match["month"][0].isupper() or lead in ("in", "since", "until", "during", "early", "late", "mid")
            alone = not text[: match.start()].strip() and not text[match.end() :].strip(" .")
            if not (lead and sure) and not (alone and sure):
                continue
        yield Date(f"{month(name):02d}", match["month"], *match.span("month"))


def _weekdays(text: str) -> Iterator[Date]:
    for match in _WEEKDAY_ALONE.finditer(text):
        yield Date((match["full"] or match["short"] or match["near"])[:3].lower(), match[0], *match.span())
