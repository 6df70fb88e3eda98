"""Dates in a text and the days they cover: "May 3rd, 2023", "the week before 9 June", "last
Friday".

A value is as precise as the date: a day ``2023-05-07``, a month ``2023-05``, a year ``2023``, a
week ``2023-W18`` (ISO 8601) or a weekend ``2023-05-06/2023-05-07``; without a year ``05-07`` and
``05``.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import regex

from memlab.text.closed_word_classes import MONTHS, WEEKDAYS, read_word_lists
from memlab.text.german_spanish_dates import DATE_PATTERNS, month_number_of_name_or_digits
from memlab.text.tokens_and_sentences import blank_out

_LEAP_YEAR = 2000  # of a date without a year, which may be 29 February

_CARDINALS = read_word_lists()["cardinals"].split()
_QUANTITIES = {word: number for number, word in enumerate(_CARDINALS, 1)}
_QUANTITIES |= dict.fromkeys(("a", "an"), 1)
_QUANTITIES |= dict.fromkeys(("couple", "couple of", "a couple", "a couple of"), 2)
_ORDINALS = read_word_lists()["ordinals"].split()
# Groups are year, month and day; ``sure`` is the ending or the word of an ordinal: with it "may" is
# no verb.
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?:\.(?= ?[\d,]))?"
)
_DAY = (
    rf"(?:(?P<day>\d{{1,2}})(?P<sure>st|nd|rd|th)?|(?P<sure>{'|'.join(_ORDINALS)}))"
    r"\b(?!:|\.\d|,\d{3}\b)"
)
_YEAR = r"(?:(?:,? of|,)? *(?P<year>[12]\d{3})\b(?!:)|,? ?['’](?P<year>\d\d)\b)"
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_WEEKDAY_LEAD = rf"(?:{_WEEKDAY}[,.]? (?:the )?)?"
_NO_DAY = r"(?<!\d(?:st|nd|rd|th)?(?: of)? )"  # "30 February 2023" is no month either
# 2023-05-07 (Sun), 7.5.2023, 5/7/2023, 2023-05, Sunday the 7th of May 2023, May 7, May '23
_CALENDAR_PATTERNS = (
    r"(?<![\d/.-])(?P<year>[12]\d{3})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?)(?![\d/-])"
    r"(?: ?\((?-i:[A-Z][a-z]{2})\))?",
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
    r"\b(?P<name>the day before yesterday|(?<!before )yesterday|last night|(?<!after )tomorrow"
    r"|the day after tomorrow)\b(?! of\b)",
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
    "the day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "tomorrow": 1,
    "the day after tomorrow": 2,
}
_DIRECTIONS = {"last": -1, "before": -1, "ago": -1, "of": 0, "after": 1, "next": 1, "coming": 1}
_TIME_LEAD = (
    r"\b(?:in|since|until|till|by|before|after|during|throughout|early|late|mid|last|next|every"
    r"|each|"
    r"(?:end|middle|start|beginning|week|weekend|\w+day) of)[ -]"
)
_YEAR_PATTERN = (
    rf"(?<={_TIME_LEAD}|\b(?:spring|summer|autumn|fall|winter)(?: of)? |\b(?:class of|year|from"
    r"|between) |"
    r"\b(?:19|20)\d\d (?:to|and|until) )(?P<year>(?:19|20)\d\d)\b(?![%:/'’-]|[.,]\d)"
)
_MONTH_PATTERN = (
    rf"(?P<lead>{_TIME_LEAD})?\b{_NO_DAY}(?<!\d(?:st|nd|rd|th)?(?: of)? {_TIME_LEAD}){_MONTH}"
)
_CERTAIN_LEADS = ("in", "since", "until", "during", "early", "late", "mid")
# Names and verbs too: months only behind a word of time.
_AMBIGUOUS_MONTHS = ("march", "april", "may", "june", "august")
_DAY_PREPOSITION = regex.compile(r"\b(?:on|by|since|until|before|after|of) $", regex.I)
_CONTINUATION = regex.compile(r"['’]s\b| of\b", regex.I)  # "yesterday's", "last week of May"
_START = attrgetter("start")


class Date(NamedTuple):
    """A date in a text, at ``text[start:end]``.

    :param value: see :mod:`memlab.text.date_expressions`.
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
    >>> from memlab.text.date_expressions import dates
    >>> [d.value for d in dates("am 24. Dezember, seit Oktober 2023", language="de")]
    ['12-24', '2023-10']
    >>> [d.value for d in dates("May I come on May 3rd, or in June? We ran 12 marathons, 2023.")]
    ['05-03', '06']
    >>> text = "last Friday, two weeks ago, the week before 9 June 2023"
    >>> [d.value for d in dates(text, date(2023, 5, 8))]
    ['2023-05-05', '2023-W17', '2023-W22']
    """
    if language in DATE_PATTERNS:
        return _dates_of_german_or_spanish_text(text, language)
    found_dates: list[Date] = []
    for pattern, read_match in _READERS:
        # A later pattern reads nothing where an earlier one has found a date.
        readings = [read_match(match, now) for match in pattern.finditer(text)]
        valid_readings = [reading for reading in readings if reading is not None]
        found_dates += valid_readings
        text = blank_out(text, valid_readings)
    return sorted(found_dates, key=_START)


def _dates_of_german_or_spanish_text(text: str, language: str) -> list[Date]:
    """List the dates of a German or Spanish text that name a day, a month or a year."""
    found_dates: list[Date] = []
    for pattern in _compiled_date_patterns(language):
        readings = []
        for match in pattern.finditer(text):
            value = _date_value_of_parts_or_empty(match.groupdict(), language)
            readings.append(Date(value, match[0], *match.span()))
        found_dates += readings
        text = blank_out(text, readings)
    # "30. Februar" is no day, and its month is not read alone.
    valid_readings = [reading for reading in found_dates if reading.value]
    return sorted(valid_readings, key=_START)


@cache
def _compiled_date_patterns(language_code: str) -> tuple[regex.Pattern[str], ...]:
    return tuple(regex.compile(pattern, regex.I) for pattern in DATE_PATTERNS[language_code])


def _date_value_of_parts_or_empty(date_parts: dict[str, str | None], language: str) -> str:
    """Write the value of a date by its year, month and day.

    It is empty where the calendar has no such day.
    """
    year_digits = date_parts.get("year") or ""
    if len(year_digits) == len("23"):
        year_digits = str(_add_century(int(year_digits)))
    month_value = 0
    month_name = date_parts.get("month")
    if month_name:
        month_value = month_number_of_name_or_digits(month_name, language)
    day_value = int(date_parts.get("day") or 0)
    if date_parts.get("first"):
        day_value = 1
    try:
        date(int(year_digits or _LEAP_YEAR), month_value or 1, day_value or 1)
    except ValueError:
        return ""
    values = [year_digits]
    values += [f"{number:02d}" for number in (month_value, day_value) if number]
    return "-".join(filter(None, values))


def _add_century(two_digit_year: int) -> int:
    """Add the century to a year of two digits: 1970 to 2069."""
    if two_digit_year < 70:
        return two_digit_year + 2000
    return two_digit_year + 1900


def annotate_dates(text: str, day: date) -> str:
    """Write the date behind each relative date of a text: "yesterday (7 May 2023)".

    Days are written as days, months and years as such, and weeks as the week before or after a day.
    "Last Friday" is the latest before the day, "next Friday" the first after it.

    :param day: the day on which the text was written.

    >>> from datetime import date
    >>> from memlab.text.date_expressions import annotate_dates
    >>> annotate_dates("We met yesterday and moved last month.", date(2023, 1, 1))
    'We met yesterday (31 December 2022) and moved last month (December 2022).'
    >>> annotate_dates("She left two weeks ago, not last Friday.", date(2023, 5, 8))
    'She left two weeks ago (2 weeks before 8 May 2023), not last Friday (5 May 2023).'
    """
    # From the end, so that the places before it stay right.
    for found_date in reversed(dates(text, day)):
        if found_date.offset is None:
            continue
        count, unit = found_date.offset
        if count == 0 or _CONTINUATION.match(text, found_date.end):
            continue
        written_date = _describe_relative_date(found_date, count, unit, day)
        text = f"{text[: found_date.end]} ({written_date}){text[found_date.end :]}"
    return text


def _describe_relative_date(found_date: Date, unit_count: int, unit: str, day: date) -> str:
    """Write the date that words mean: "7 May 2023", "May 2023", "2 weeks before 8 May 2023"."""
    if unit in ("week", "weekend"):
        return _describe_weeks_from_day(found_date, unit_count, unit, day)
    if unit == "day":
        return format_day(date.fromisoformat(found_date.value))
    year_digits, *months = found_date.value.split("-")
    month_names = [MONTHS[int(month) - 1].title() for month in months]
    return " ".join([*month_names, str(int(year_digits))])


def _describe_weeks_from_day(found_date: Date, unit_count: int, unit: str, day: date) -> str:
    direction = "before" if unit_count < 0 else "after"
    count_text = str(abs(unit_count))
    if found_date.text.lower().startswith(("last", "next", "coming")):
        count_text = "the"
    if abs(unit_count) > 1:
        unit += "s"
    return f"{count_text} {unit} {direction} {format_day(day)}"


def format_day(day: date) -> str:
    """Write a day in full: ``7 May 2023``."""
    return f"{day.day} {MONTHS[day.month - 1].title()} {day.year}"


def date_range(date_value: str) -> tuple[date, date] | None:
    """Find the first and the last day of a date's value; ``None`` for one without a year.

    >>> from memlab.text.date_expressions import date_range
    >>> [str(day) for day in date_range("2023-05")]
    ['2023-05-01', '2023-05-31']
    >>> date_range("05"), date_range("05-07")
    (None, None)
    """
    if len(date_value) < len("2023") or not date_value[:4].isdigit():
        return None
    if "W" in date_value:
        return date.fromisoformat(f"{date_value}-1"), date.fromisoformat(f"{date_value}-7")
    first_part, _, last_part = date_value.partition("/")
    if len(first_part) == len("2023-05-07"):
        return date.fromisoformat(first_part), date.fromisoformat(last_part or first_part)
    year_number, *month_numbers = map(int, date_value.split("-"))
    first_month = 1
    last_month = len(MONTHS)
    if month_numbers:
        first_month = month_numbers[0]
        last_month = month_numbers[0]
    last_day = monthrange(year_number, last_month)[1]
    return date(year_number, first_month, 1), date(year_number, last_month, last_day)


def _date_value_after_units(start_day: date, unit_count: int, unit: str) -> str:
    """Write the value of the day, week, weekend, month or year that lies some units from a day.

    The last weekend is over by the day, the next is yet to come, and this one is the nearest that
    is not over.
    """
    if unit == "day":
        return (start_day + timedelta(unit_count)).isoformat()
    if unit == "week":
        target_year, week_number, _ = (start_day + timedelta(7 * unit_count)).isocalendar()
        return f"{target_year}-W{week_number:02d}"
    if unit == "weekend":
        # In the week from Monday to Sunday, of which the weekend is the next while it is ahead.
        is_ahead = start_day.weekday() < 5
        n_weeks = unit_count
        if unit_count > 0 and is_ahead:
            n_weeks -= 1
        saturday = start_day + timedelta(5 - start_day.weekday() + 7 * n_weeks)
        return f"{saturday}/{saturday + timedelta(1)}"
    if unit == "month":
        target_year, target_month = divmod(
            start_day.year * 12 + start_day.month - 1 + unit_count, 12
        )
        return date(target_year, target_month + 1, 1).isoformat()[: len("2023-05")]
    return date(start_day.year + unit_count, start_day.month, 1).isoformat()[: len("2023")]


def _read_calendar_date(match: regex.Match[str], _: date | None) -> Date | None:
    """Read a date with a day or a year, and one that is relative to it.

    Such as "the week before 9 June 2023".
    """
    year_number, month_value, day_value = _year_month_and_day_or_zero(match)
    if _is_month_name_a_verb(match, has_year=year_number > 0):
        return None
    try:
        date(year_number or _LEAP_YEAR, month_value, day_value or 1)
    except ValueError:
        return None
    if year_number and day_value:
        anchor_match = _ANCHOR.search(match.string[: match.start()])
        if anchor_match:
            relative_date = _read_anchored_date(
                anchor_match, date(year_number, month_value, day_value), match
            )
            if relative_date is not None:
                return relative_date
    date_value = f"{month_value:02d}"
    if year_number:
        date_value = f"{year_number:04d}-{date_value}"
    if day_value:
        date_value = f"{date_value}-{day_value:02d}"
    return Date(date_value, match[0], *match.span())


def _year_month_and_day_or_zero(match: regex.Match[str]) -> tuple[int, int, int]:
    """Read year, month and day of a match; 0 for a year or a day that it does not name."""
    named_groups = match.groupdict()
    year_digits = named_groups["year"] or "0"
    year_number = int(year_digits)
    if len(year_digits) == len("23"):
        year_number = _add_century(year_number)
    month_name = named_groups["month"]
    month_value = int(month_name) if month_name.isdigit() else _number_of_english_month(month_name)
    day_value = int(named_groups.get("day") or 0)
    ordinal = (named_groups.get("sure") or "").lower()
    if ordinal in _ORDINALS:
        day_value = _ORDINALS.index(ordinal) + 1
    # The month stands first, unless it is none: "13/5/2023".
    if month_value > len(MONTHS) and "." not in match[0]:
        return year_number, day_value, month_value
    return year_number, month_value, day_value


def _is_month_name_a_verb(match: regex.Match[str], *, has_year: bool) -> bool:
    """Say whether the month is a verb: "5 may be enough", "march 10 miles"."""
    if match["month"] not in ("may", "march"):
        return False
    if has_year or match.groupdict().get("sure"):
        return False
    goes_on = regex.match(r" [^\W\d_]", match.string[match.end() :])
    if not goes_on:
        return False
    return not _DAY_PREPOSITION.search(match.string[: match.start()])


def _read_relative_date(match: regex.Match[str], now: date | None) -> Date | None:
    """Read a date that is relative to a day: "yesterday", "next May", "two weeks ago"."""
    if now is None:
        return None
    unit_count, unit = _read_unit_count_and_unit(match, now)
    try:
        date_value = _date_value_after_units(now, unit_count, unit)
    except (OverflowError, ValueError):  # outside the years of the calendar
        return None
    return Date(date_value, match[0], match.start(), match.end(), (unit_count, unit))


def _read_anchored_date(
    anchor_match: regex.Match[str], anchor_day: date, day_match: regex.Match[str]
) -> Date | None:
    """Read a date that is relative to one beside it: "the day before" the day of the match."""
    unit_count, unit = _read_unit_count_and_unit(anchor_match, anchor_day)
    try:
        date_value = _date_value_after_units(anchor_day, unit_count, unit)
    except (OverflowError, ValueError):  # outside the years of the calendar
        return None
    span_start = anchor_match.start()
    span_end = day_match.end()
    return Date(date_value, day_match.string[span_start:span_end], span_start, span_end)


def _read_unit_count_and_unit(match: regex.Match[str], day: date) -> tuple[int, str]:
    """Read how many of which unit a date is from a day; negative before it."""
    group_texts = dict.fromkeys(("name", "way", "n", "unit", "weekday", "month"), "")
    for group, group_text in match.groupdict().items():
        group_texts[group] = (group_text or "").lower()
    direction = _DIRECTIONS.get(group_texts["way"], 0)
    unit = group_texts["unit"] or "day"
    if group_texts["name"]:
        return _DAY_OFFSETS[group_texts["name"]], unit
    if group_texts["n"]:
        return direction * _number_of_quantity_word(group_texts["n"]), unit
    if group_texts["weekday"]:
        return _days_to_weekday(group_texts["weekday"], day, direction), unit
    if group_texts["month"]:
        return _months_to_named_month(group_texts["month"], day, direction), "month"
    return direction, unit


def _number_of_quantity_word(quantity_text: str) -> int:
    if quantity_text.isdigit():
        return int(quantity_text)
    return _QUANTITIES[quantity_text]


def _days_to_weekday(wanted_weekday: str, day: date, direction: int) -> int:
    """Count the days to the next or since the last such day; it is never the day itself."""
    weekday_number = [weekday_name[:3] for weekday_name in WEEKDAYS].index(wanted_weekday[:3])
    days_ahead = weekday_number - day.weekday()
    if direction > 0:
        return (days_ahead - 1) % 7 + 1
    return -((-days_ahead - 1) % 7 + 1)


def _months_to_named_month(month_name: str, day: date, direction: int) -> int:
    """Count the months to the next or since the last such month, which is never this one."""
    months_ahead = _number_of_english_month(month_name) - day.month
    if direction < 0 <= months_ahead:
        return months_ahead - 12
    if months_ahead <= 0 < direction:
        return months_ahead + 12
    return months_ahead


def _read_year_alone(match: regex.Match[str], _: date | None) -> Date:
    return Date(match["year"], match["year"], *match.span("year"))


def _read_month_alone(match: regex.Match[str], _: date | None) -> Date | None:
    """Read a month alone; a word that may be another, or is short, needs something that says so."""
    month_name = match["month"]
    is_doubtful = month_name.lower() not in MONTHS or month_name.lower() in _AMBIGUOUS_MONTHS
    if is_doubtful and not _is_month_clear_from_context(match):
        return None
    return Date(f"{_number_of_english_month(month_name):02d}", month_name, *match.span("month"))


def _is_month_clear_from_context(match: regex.Match[str]) -> bool:
    """Say whether the words before a month, or that nothing else stands there, make it one."""
    month_name = match["month"]
    leading_word = (match["lead"] or "").lower().strip(" -")
    if month_name[0].islower():
        return leading_word in _CERTAIN_LEADS
    return leading_word != "" or match.string.strip(" .") == month_name


def _number_of_english_month(month_name: str) -> int:
    return [full_name[:3] for full_name in MONTHS].index(month_name[:3].lower()) + 1


_PATTERNS_AND_READERS: tuple[tuple[tuple[str, ...], Callable[..., Date | None]], ...] = (
    (_CALENDAR_PATTERNS, _read_calendar_date),
    (_RELATIVE_PATTERNS, _read_relative_date),
    ((_YEAR_PATTERN,), _read_year_alone),
    ((_MONTH_PATTERN,), _read_month_alone),
)
_READERS: list[tuple[Any, Callable[..., Date | None]]] = []
for _patterns, _reader in _PATTERNS_AND_READERS:
    _READERS += [(regex.compile(pattern, regex.I), _reader) for pattern in _patterns]
