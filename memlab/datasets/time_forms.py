"""Times as tools write them beside ISO 8601: objects, texts of e-mail, JavaScript and Go, and days that come first or
months.

Whether ``2/1/2026`` is in January or February is decided over all times of a file, see
:func:`decide_date_order`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from memlab.datasets.source import Source

SLASHED = re.compile(
    r"(?P<first>\d{1,2})\\?(?P<between>[/.])(?P<second>\d{1,2})\\?[/.](?P<year>\d{4}|\d\d)(?!\d)"
    r"(?:,?[ T]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<seconds>\d\d)(?:\.\d+)?)?"
    r"(?:\s*(?P<half>[ap]\.?m\b\.?))?)?",
    re.IGNORECASE,
)
"""A date whose first number is a day or a month, with a time or without."""
_WHOLE_VALUE = re.compile(rf"(?im)(?:(?<=[\",;\t])|^){SLASHED.pattern}(?=[\",;\t\r]|$)")
_INSIDE = ("$date", "$numberLong", "iso", "value")
_SECONDS = ("seconds", "_seconds")
_NANOSECONDS = ("nanoseconds", "_nanoseconds", "nanos")
_GO_CLOCK = re.compile(r" m=[+-][\d.]+$")
_ZONE_NAME = re.compile(r"(?<=[\dZ])\s*\[[\w/+:-]+\]$|(?<=[+-]\d{4}) [A-Z]{2,5}$|\s*\([^()]*\)$")
_UTC_NAME = re.compile(r"(?<=\d) ?(?:UTC|GMT)$")
_SPACED_OFFSET = re.compile(r"(?<=\d) (?=[+-]\d\d:?\d\d$)")
_YEAR_FIRST = re.compile(r"(\d{4})[/.-](\d{1,2})[/.-](\d{1,2})(?=[T ]|$)")
_SHORT_HOUR = re.compile(r"^[T ](?=\d:)")
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
"""A time whose month is an English name, without commas; its year may stand at the end, as in Unix."""
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_MONTH_NUMBERS = dict(zip(_MONTHS, range(1, 13), strict=True))
_MONTH_NUMBERS |= {name[:3]: number for name, number in _MONTH_NUMBERS.items()}
_MONTH_NUMBERS["sept"] = 9
_MOST_KEPT = 4096
"""How many times are kept as read: what reads a message asks for its time more than once."""


def unwrap_time(value: Any) -> Any:
    """Give the time in an object, as databases write it; ``None`` where it holds none, any other value as it is.

    >>> unwrap_time({"$date": {"$numberLong": "1769940000000"}}), unwrap_time({"seconds": 5, "nanos": 0})
    ('1769940000000', 5.0)
    """
    if not isinstance(value, dict):
        return value
    for key in _INSIDE:
        if value.get(key) is not None:
            return unwrap_time(value[key])
    for key in _SECONDS:
        if isinstance(value.get(key), (int, float, str)):
            return _add_nanoseconds(value[key], value)
    return None


def _add_nanoseconds(seconds: Any, about: dict[str, Any]) -> float | None:
    try:
        whole = float(seconds)
    except ValueError:
        return None
    for key in _NANOSECONDS:
        if isinstance(about.get(key), int):
            whole += about[key] / 1e9
    return whole


@lru_cache(maxsize=_MOST_KEPT)
def read_written_time(text: str, order: str | None = None) -> datetime | None:
    """Read a time that is no number; one without a zone stays so, ``None`` where it is no time.

    :param order: ``dmy`` or ``mdy``, of dates that can be read in both ways.

    >>> read_written_time("Sun, 01 Feb 2026 10:00:00 GMT").isoformat()
    '2026-02-01T10:00:00+00:00'
    >>> read_written_time("2/1/2026, 10:00:00 PM", "mdy").isoformat()
    '2026-02-01T22:00:00'
    """
    text = " ".join(text.split())
    ticks = _DOTNET.fullmatch(text)
    if ticks:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(ticks[1]))
    for read in (_read_iso, _read_named_month, _read_mail):
        found = read(text)
        if found is not None:
            return found
    slashed = SLASHED.fullmatch(text)
    return None if slashed is None else _read_slashed(slashed, order)


def _read_iso(text: str) -> datetime | None:
    plain = _ZONE_NAME.sub("", _GO_CLOCK.sub("", text))
    year_first = _YEAR_FIRST.match(plain)
    if year_first:
        year, month, day = year_first[1], year_first[2].zfill(2), year_first[3].zfill(2)
        plain = f"{year}-{month}-{day}{_SHORT_HOUR.sub(' 0', plain[year_first.end() :])}"
    plain = _UTC_NAME.sub("+00:00", _SPACED_OFFSET.sub("", plain))
    ended = _MIDNIGHT.search(plain)
    if ended:
        plain = _MIDNIGHT.sub("00", plain)
    # Without separators only a day is read as ISO 8601: 1701011221530 would be the year 1701.
    if plain.isdecimal() and len(plain) != len("20260301"):
        return None
    try:
        return datetime.fromisoformat(plain) + timedelta(days=bool(ended))
    except (ValueError, OverflowError):
        return None


def _read_mail(text: str) -> datetime | None:
    """Read a time of RFC 2822, as mail and HTTP have it."""
    if not _MAIL.fullmatch(text):
        return None
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None


def _read_named_month(text: str) -> datetime | None:
    """Read a time whose month is an English name."""
    if not re.match(r"[A-Za-z]{3,}|\d{1,2}(?:[a-z]{2}|\.)?[ -][A-Za-z]{3}", text):
        return None
    plain = _ZONE_NAME.sub("", text).replace(",", " ").replace(" at ", " ")
    plain = " ".join(_HALF.sub(_spell_half, plain).split())
    found = _NAMED_MONTH.fullmatch(plain)
    if found is None or (found["year"] is None) == (found["last"] is None):
        return None
    month, day = found["one"].lower(), found["two"].lower()
    if month[0].isdecimal():
        month, day = day, month
    number = _MONTH_NUMBERS.get(month.rstrip("."))
    hour = _read_hour(int(found["hour"] or 0), found["half"] or "")
    if number is None or hour is None or not day[0].isdecimal():
        return None
    date = int(found["year"] or found["last"]), number, int(day.rstrip("stndrh."))
    fraction = (found["fraction"] or "").ljust(6, "0")
    clock = hour, int(found["minute"] or 0), int(found["second"] or 0), int(fraction)
    try:
        return datetime(*date, *clock, tzinfo=_read_zone(found))
    except ValueError:
        return None


def _read_hour(hour: int, half: str) -> int | None:
    """Give the hour of a day by its half, ``a``, ``p`` or empty; ``None`` where the half has no such hour."""
    if not half:
        return hour
    if not 1 <= hour <= 12:
        return None
    afternoon = {"a": 0, "p": 12}[half.lower()]
    return hour % 12 + afternoon


def _read_zone(found: re.Match[str]) -> timezone | None:
    """Give the zone of a time whose month is named, ``None`` where it has none."""
    if not found["zone"]:
        return None
    hours = int(found["hours"] or found["other_hours"] or 0)
    minutes = int(found["minutes"] or found["other_minutes"] or 0)
    shift = timedelta(hours=hours, minutes=minutes)
    if "-" in (found["sign"], found["other_sign"]):
        shift = -shift
    return timezone(shift)


def _spell_half(half: re.Match[str]) -> str:
    return f" {half[1] or half[2]}m"


def _read_slashed(slashed: re.Match[str], order: str | None) -> datetime | None:
    """Read a date such as 2/1/2026; with dots the day stands first, with slashes as the order says.

    A date that only one order can read is read so.
    """
    day, month = int(slashed["first"]), int(slashed["second"])
    month_first = order == "mdy" and slashed["between"] == "/"
    if max(day, month) > 12:
        month_first = month > 12
    elif order is None and slashed["between"] == "/" and day != month:
        return None
    if month_first:
        day, month = month, day
    hour, half = int(slashed["hour"] or 0), (slashed["half"] or "").lower()
    if half:
        hour = hour % 12
        if half.startswith("p"):
            hour += 12
    year = int(slashed["year"])
    if year < 100:
        year += 2000
    try:
        return datetime(
            year, month, day, hour, int(slashed["minute"] or 0), int(slashed["seconds"] or 0)
        )
    except ValueError:
        return None


def decide_date_order(dates: Iterable[re.Match[str]]) -> tuple[str, str]:
    """Decide whether the day or the month stands first in the dates of a file, and say by what.

    :param dates: matches of :data:`SLASHED` in the order of the file.
    :returns: ``dmy`` or ``mdy``, and the reason: a date that only one order can read, the order of
        the times, or how the clock is written.

    >>> decide_date_order(SLASHED.finditer("2/1/2026 2/13/2026"))
    ('mdy', 'the number 13 can only be a day')
    >>> decide_date_order(SLASHED.finditer("2/1/2026, 10:00:00 AM"))[0]
    'mdy'
    """
    listed = list(dates)
    for place, order in (("first", "dmy"), ("second", "mdy")):
        days = [int(date[place]) for date in listed if int(date[place]) > 12]
        if days:
            return order, f"the number {days[0]} can only be a day"
    back = {order: _count_steps_back(listed, order) for order in ("dmy", "mdy")}
    if back["dmy"] != back["mdy"]:
        return min(back, key=back.__getitem__), "so they stand in order of time"
    if any((date["half"] or "").isupper() for date in listed):
        return "mdy", "AM and PM are written as in the United States, nothing else says it"
    return "dmy", "nothing says it"


def _count_steps_back(dates: list[re.Match[str]], order: str) -> int:
    times = [time for date in dates if (time := _read_slashed(date, order))]
    return sum(later < earlier for earlier, later in pairwise(times))


def find_written_dates(file: Source) -> list[re.Match[str]]:
    """Find the dates of a file that can be read with the day or the month first, where they are a whole value."""
    if file.is_parquet:
        cells = file.read_table().select(pl.col(pl.String)).iter_rows()
        texts = (cell for row in cells for cell in row if cell)
        found = [date for text in texts if (date := SLASHED.fullmatch(text))]
    else:
        with file.open() as stream:
            found = list(_WHOLE_VALUE.finditer(stream.read().decode("utf-8", "replace")))
    return [date for date in found if date["between"] == "/"]


def decide_order_of_files(source: Source) -> str:
    """Decide whether the day or the month stands first in the dates of all that is read, which an issue says."""
    dates = [date for file in source.members or [source] for date in find_written_dates(file)]
    order, why = decide_date_order(dates)
    first = {"dmy": "the day", "mdy": "the month"}[order]
    action = f"read with {first} first; date_order= settles it"
    source.note("dates such as 2/1/2026", why, action)
    return order
