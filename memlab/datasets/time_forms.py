"""Times as tools write them beside ISO 8601.

These are objects, texts of e-mail, JavaScript and Go, and dates whose day or month comes first.

Whether ``2/1/2026`` is in January or February is decided over all times of a file, see
:func:`decide_date_order_and_reason`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import polars as pl

if TYPE_CHECKING:
    from memlab.datasets.record_fields import JsonObject, JsonValue
    from memlab.datasets.record_sources import Source

SLASHED = re.compile(
    r"(?P<first>\d{1,2})\\?(?P<between>[/.])(?P<second>\d{1,2})\\?[/.](?P<year>\d{4}|\d\d)(?!\d)"
    r"(?:,?[ T]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<seconds>\d\d)(?:\.\d+)?)?"
    r"(?:\s*(?P<half>[ap]\.?m\b\.?))?)?",
    re.IGNORECASE,
)
"""A date whose first number is a day or a month, with a time or without."""
_WHOLE_VALUE = re.compile(rf"(?im)(?:(?<=[\",;\t])|^){SLASHED.pattern}(?=[\",;\t\r]|$)")
_INSIDE = ("$date", "$timestamp", "$numberLong", "iso", "value")
_SECONDS = ("seconds", "_seconds", "t")
_NANOSECONDS = ("nanoseconds", "_nanoseconds", "nanos")
_GO_CLOCK = re.compile(r" m=[+-][\d.]+$")
_ZONE_NAME = re.compile(r"(?<=[\dZ])\s*\[[\w/+:-]+\]$|(?<=[+-]\d{4}) [A-Z]{2,5}$|\s*\([^()]*\)$")
_UTC_NAME = re.compile(r"(?<=\d) ?(?:UTC|GMT)$")
_SPACED_OFFSET = re.compile(r"(?<=\d) (?=[+-]\d\d:?\d\d$)")
_YEAR_FIRST = re.compile(r"(\d{4})[/.-](\d{1,2})[/.-](\d{1,2})(?=[T ]|$)")
_SHORT_CLOCK = re.compile(r"[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?!\d))?(?=$|[.Z+ -])")
_CHINESE_DATE = re.compile(r"(\d{4})[年년]\s*(\d{1,2})[月월]\s*(\d{1,2})[日일]\s*")
_NAMED_ZONE = re.compile(r"(.*\d) ?([A-Z][A-Za-z]+/[A-Za-z_/+-]+|[A-Z]{3,4})")
_ZONES = {
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EEST": 3,
    "WET": 0,
    "WEST": 1,
    "JST": 9,
    "AEST": 10,
}
"""Hours from UTC of the zones that have no second meaning in mail (RFC 2822) or in Europe."""
_MIDNIGHT = re.compile(r"(?<=[T ])24(?=:?00(?::?00(?:\.0+)?)?(?:$|[Z+-]))")
_MAIL = re.compile(
    r"(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d(?!.*\b[AaPp]\.?[Mm]\b).*"
)
_DOTNET = re.compile(r"/Date\((-?\d{1,16})(?:[+-]\d{4})?\)/")
_HALF = re.compile(r"(?i)\s*\b([ap])\.?m\b\.?|(?<=\d)([ap])\.?m\b\.?")
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.)?|[a-z]{3,9}\.?"
_NAMED_MONTH = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]* )?"
    rf"(?P<one>{_DAY})[ -](?P<two>{_DAY})(?:[ -](?P<year>\d{{4}}))?"
    r"(?: (?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
    r"(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,6})\d*)?)?(?: (?P<half>[ap])m)?"
    r"(?P<zone> ?(?:(?:GMT|UTC|Z)(?:(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d\d)?)?"
    r"|(?P<other_sign>[+-])(?P<other_hours>\d\d):?(?P<other_minutes>\d\d)))?)?"
    r"(?: (?P<last>\d{4}))?",
    re.IGNORECASE,
)
"""A time whose month is an English name, without commas.

Its year may stand at the end, as in Unix.
"""
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_MONTH_NUMBERS = dict(zip(_MONTHS, range(1, 13), strict=True))
_MONTH_NUMBERS |= {name[:3]: number for name, number in _MONTH_NUMBERS.items()}
_MONTH_NUMBERS["sept"] = 9
_MOST_KEPT = 4096
"""How many times are kept as read: what reads a message asks for its time more than once."""


def unwrap_time_object(raw_time: JsonValue) -> JsonValue:
    """Give the time in an object, as databases write it; any other value as it is.

    :returns: ``None`` for an object that holds none.

    >>> unwrap_time_object({"$date": {"$numberLong": "1769940000000"}})
    '1769940000000'
    >>> unwrap_time_object({"seconds": 5, "nanos": 0})
    5.0
    """
    if not isinstance(raw_time, dict):
        return raw_time
    for time_key in _INSIDE:
        if raw_time.get(time_key) is not None:
            return unwrap_time_object(raw_time[time_key])
    for time_key in _SECONDS:
        if isinstance(raw_time.get(time_key), (int, float, str)):
            return _seconds_with_nanoseconds(raw_time[time_key], raw_time)
    return None


def _seconds_with_nanoseconds(raw_seconds: float | str, time_object: JsonObject) -> float | None:
    try:
        timestamp = float(raw_seconds)
    except ValueError:
        return None
    for nanoseconds_key in _NANOSECONDS:
        nanoseconds = time_object.get(nanoseconds_key)
        if isinstance(nanoseconds, int):
            timestamp += nanoseconds / 1e9
    return timestamp


@lru_cache(maxsize=_MOST_KEPT)
def parse_written_time(text: str, date_order: str | None = None) -> datetime | None:
    """Read a time that is no number; one without a zone stays so, ``None`` where it is no time.

    :param date_order: ``dmy`` or ``mdy``, of dates that can be read in both ways.

    >>> parse_written_time("Sun, 01 Feb 2026 10:00:00 GMT").isoformat()
    '2026-02-01T10:00:00+00:00'
    >>> parse_written_time("2/1/2026, 10:00:00 PM", "mdy").isoformat()
    '2026-02-01T22:00:00'
    """
    text = " ".join(text.split())
    ticks = _DOTNET.fullmatch(text)
    if ticks:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(ticks[1]))
    for read_form in (
        _parse_iso_like_time,
        _parse_time_with_month_name,
        _parse_mail_time,
        _parse_time_with_zone_name,
    ):
        parsed_time = read_form(text)
        if parsed_time is not None:
            return parsed_time
    slashed_match = SLASHED.fullmatch(text)
    if slashed_match is None:
        return None
    return _parse_date_with_slashes(slashed_match, date_order)


def _zero_pad_clock(clock_match: re.Match[str]) -> str:
    """Give a time of day with two digits each."""
    return " " + ":".join(
        clock_part.zfill(2) for clock_part in clock_match.groups() if clock_part is not None
    )


def _parse_time_with_zone_name(text: str) -> datetime | None:
    """Read a time with the name of its zone behind it."""
    zone_match = _NAMED_ZONE.fullmatch(text)
    if zone_match is None:
        return None
    written_time, zone_name = zone_match.groups()
    plain_time = _parse_iso_like_time(written_time)
    if plain_time is None or plain_time.tzinfo is not None:
        return None
    if zone_name in _ZONES:
        return plain_time.replace(tzinfo=timezone(timedelta(hours=_ZONES[zone_name])))
    try:
        return plain_time.replace(tzinfo=ZoneInfo(zone_name))
    except (KeyError, ValueError, OSError):
        return None


def _parse_iso_like_time(text: str) -> datetime | None:
    cleaned = _ZONE_NAME.sub("", _GO_CLOCK.sub("", text))
    cleaned = _CHINESE_DATE.sub(r"\1-\2-\3 ", cleaned).rstrip()
    year_first = _YEAR_FIRST.match(cleaned)
    if year_first:
        year = year_first[1]
        month = year_first[2].zfill(2)
        day = year_first[3].zfill(2)
        padded_clock = _SHORT_CLOCK.sub(_zero_pad_clock, cleaned[year_first.end() :], count=1)
        cleaned = f"{year}-{month}-{day}{padded_clock}"
    cleaned = _UTC_NAME.sub("+00:00", _SPACED_OFFSET.sub("", cleaned))
    is_midnight = _MIDNIGHT.search(cleaned)
    if is_midnight:
        cleaned = _MIDNIGHT.sub("00", cleaned)
    # Without separators only a day is read as ISO 8601: 1701011221530 would be the year 1701.
    if cleaned.isdecimal() and len(cleaned) != len("20260301"):
        return None
    try:
        return datetime.fromisoformat(cleaned) + timedelta(days=bool(is_midnight))
    except (ValueError, OverflowError):
        return None


def _parse_mail_time(text: str) -> datetime | None:
    """Read a time of RFC 2822, as mail and HTTP have it."""
    if not _MAIL.fullmatch(text):
        return None
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None


def _parse_time_with_month_name(text: str) -> datetime | None:
    """Read a time whose month is an English name."""
    if not re.match(r"[A-Za-z]{3,}|\d{1,2}(?:[a-z]{2}|\.)?[ -][A-Za-z]{3}", text):
        return None
    cleaned = _ZONE_NAME.sub("", text).replace(",", " ").replace(" at ", " ")
    cleaned = " ".join(_HALF.sub(_write_half_as_am_or_pm, cleaned).split())
    month_match = _NAMED_MONTH.fullmatch(cleaned)
    if month_match is None:
        return None
    date_parts = month_match.groupdict("")
    if bool(date_parts["year"]) == bool(date_parts["last"]):
        return None
    year = int(date_parts["year"] + date_parts["last"])  # one of which is there
    month = date_parts["one"].lower()
    day = date_parts["two"].lower()
    if month[0].isdecimal():
        month, day = day, month
    month_number = _MONTH_NUMBERS.get(month.rstrip("."))
    hour = _hour_of_24_hour_day(_integer_or_zero(date_parts["hour"]), date_parts["half"])
    if month_number is None or hour is None or not day[0].isdecimal():
        return None
    day_number = int(day.rstrip("stndrh."))
    minute = _integer_or_zero(date_parts["minute"])
    second = _integer_or_zero(date_parts["second"])
    microsecond = int(date_parts["fraction"].ljust(6, "0"))
    year_month_day = year, month_number, day_number
    try:
        return datetime(
            *year_month_day,
            hour,
            minute,
            second,
            microsecond,
            tzinfo=_zone_of_date_parts(date_parts),
        )
    except ValueError:
        return None


def _integer_or_zero(digits: str) -> int:
    """Read a number; one that is not there is 0."""
    if not digits:
        return 0
    return int(digits)


def _hour_of_24_hour_day(clock_hour: int, half_of_day: str) -> int | None:
    """Give the hour of a day by its half, ``a``, ``p`` or empty.

    :returns: ``None`` where the half has no such hour.
    """
    if not half_of_day:
        return clock_hour
    if not 1 <= clock_hour <= 12:
        return None
    afternoon = {"a": 0, "p": 12}[half_of_day.lower()]
    return clock_hour % 12 + afternoon


def _zone_of_date_parts(date_parts: dict[str, str]) -> timezone | None:
    """Give the zone of a time whose month is named, ``None`` where it has none."""
    if not date_parts["zone"]:
        return None
    # Of the two forms of a zone one is there.
    hours = _integer_or_zero(date_parts["hours"] + date_parts["other_hours"])
    minutes = _integer_or_zero(date_parts["minutes"] + date_parts["other_minutes"])
    utc_offset = timedelta(hours=hours, minutes=minutes)
    if "-" in (date_parts["sign"], date_parts["other_sign"]):
        utc_offset = -utc_offset
    return timezone(utc_offset)


def _write_half_as_am_or_pm(half_match: re.Match[str]) -> str:
    letter = "".join(half_match.groups(""))
    return f" {letter}m"


def _parse_date_with_slashes(date_match: re.Match[str], date_order: str | None) -> datetime | None:
    """Read a date such as 2/1/2026; with dots the day stands first, with slashes as the order says.

    A date that only one order can read is read so.
    """
    date_parts = date_match.groupdict("")
    day = int(date_parts["first"])
    month = int(date_parts["second"])
    is_month_first = False
    if max(day, month) > 12:
        is_month_first = month > 12
    elif date_parts["between"] == "/":
        is_month_first = date_order == "mdy"
        if date_order is None and day != month:
            return None
    if is_month_first:
        day, month = month, day
    hour = _integer_or_zero(date_parts["hour"])
    if date_parts["half"]:
        hour = hour % 12
        if date_parts["half"].lower().startswith("p"):
            hour += 12
    minute = _integer_or_zero(date_parts["minute"])
    second = _integer_or_zero(date_parts["seconds"])
    year = int(date_parts["year"])
    if year < 100:
        year += 2000
    try:
        return datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None


def decide_date_order_and_reason(date_matches: Iterable[re.Match[str]]) -> tuple[str, str]:
    """Decide whether the day or the month stands first in the dates of a file, and say by what.

    :param date_matches: matches of :data:`SLASHED` in the order of the file.
    :returns: ``dmy`` or ``mdy``, and the reason: a date that only one order can read, the order of
        the times, or how the clock is written.

    >>> decide_date_order_and_reason(SLASHED.finditer("2/1/2026 2/13/2026"))
    ('mdy', 'the number 13 can only be a day')
    >>> decide_date_order_and_reason(SLASHED.finditer("2/1/2026, 10:00:00 AM"))[0]
    'mdy'
    """
    date_list = list(date_matches)
    for group_name, date_order in (("first", "dmy"), ("second", "mdy")):
        certain_days = [
            int(date_match[group_name])
            for date_match in date_list
            if int(date_match[group_name]) > 12
        ]
        if certain_days:
            return date_order, f"the number {certain_days[0]} can only be a day"
    back_by_day = _count_steps_back_in_date_order(date_list, "dmy")
    back_by_month = _count_steps_back_in_date_order(date_list, "mdy")
    if back_by_day < back_by_month:
        return "dmy", "so they stand in order of time"
    if back_by_month < back_by_day:
        return "mdy", "so they stand in order of time"
    for date_match in date_list:
        if date_match["half"] and date_match["half"].isupper():
            return "mdy", "AM and PM are written as in the United States, nothing else says it"
    return "dmy", "nothing says it"


def _count_steps_back_in_date_order(date_matches: list[re.Match[str]], date_order: str) -> int:
    read_dates = filter(
        None, [_parse_date_with_slashes(date_match, date_order) for date_match in date_matches]
    )
    return sum(later_time < earlier_time for earlier_time, later_time in pairwise(read_dates))


def find_dates_with_slashes(file: Source) -> list[re.Match[str]]:
    """Find the dates of a file that can be read with the day or the month first.

    Each is a whole value, not a part of a longer text.
    """
    if file.is_parquet:
        columns = file.read_table().select(pl.col(pl.String))
        cell_texts = filter(None, chain.from_iterable(columns.iter_rows()))
        written_dates: Iterable[re.Match[str]] = filter(None, map(SLASHED.fullmatch, cell_texts))
    else:
        with file.open() as stream:
            file_text = stream.read().decode("utf-8", "replace")
        written_dates = _WHOLE_VALUE.finditer(file_text)
    return [date_match for date_match in written_dates if date_match["between"] == "/"]


def decide_and_note_date_order(source: Source) -> str:
    """Decide whether the day or the month stands first in the dates of all that is read.

    An issue says so.
    """
    files = source.members or [source]
    written_dates = chain.from_iterable(map(find_dates_with_slashes, files))
    date_order, reason = decide_date_order_and_reason(written_dates)
    first_part = {"dmy": "the day", "mdy": "the month"}[date_order]
    action = f"read with {first_part} first; date_order= settles it"
    source.note("dates such as 2/1/2026", reason, action)
    return date_order
