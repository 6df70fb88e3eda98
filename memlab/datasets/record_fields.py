"""Fields of records of unknown quality: :meth:`Record.read_field` gives the value or raises
:class:`BadField`.

A kind is a function of a value and its place: ``text``, ``name``, ``answer`` … Each says what it
found and expected.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from memlab.records import Issue, frame
from memlab.records.dataset import SOURCES, WRITTEN

T = TypeVar("T")
D = TypeVar("D")
MISSING: Any = object()
JsonValue = Any
"""A value of decoded JSON, whose kind nobody has checked."""
JsonObject = dict[str, Any]
"""An object of decoded JSON, the values of which nobody has checked."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime(1, 1, 2, tzinfo=UTC)
_LAST = datetime(9999, 1, 2, tzinfo=UTC)
_HIGHEST_GRADE = 2**31 - 1  # that a column of grades and trec_eval can hold
_UNITS = ((10**18, 0.001), (10**17, 1_000_000), (10**14, 1), (10**11, 1_000))
"""From which count on a number since 1970 is one of nanoseconds, of nothing, of micro-, of
milliseconds.
"""
_SLASHED = re.compile(r"\d{1,2}/\d{1,2}/\d")
_DAY_ZERO = datetime(1899, 12, 30)
SERIALS = (36_526, 73_050)
"""Days of 2000 to 2099 as spreadsheets count them.

As seconds since 1970 they would all lie on one day.
"""
_SERIAL_TEXT = re.compile(r"[3-7][0-9]{4}(?:\.[0-9]+)?")
_EPOCH_TEXT = re.compile(r"[0-9]{9,13}(\.[0-9]+)?|[0-9]{16}|[0-9]{19}")


class BadField(Exception):
    """A field that cannot be used: what was found in it and what was expected."""

    def __init__(self, where: str, found: str, expected: str) -> None:
        message = f"found {found}, expected {expected}"
        if where:
            message = f"{where}: {message}"
        super().__init__(message)


@dataclass
class Report:
    """What a load says of its files: issues one by one, and counts of what was left out or changed.

    :param counts: by action, kind in the plural, and scope.
    :param seen: the session of every message that an importer gave and a hash of what it says, by
        scope and id; ``edited`` is when it was last edited, if it was, and ``newer`` the ids of
        those that are given once more, in the form that stays.
    :param guessed: how many messages are an assistant's by the name of their sender alone.
    :param aside: the lines of each file of quarantine; ``bad`` is how many records went there.
    :param date_order: of dates such as 2/1/2026, once it was decided; ``serials``, whether a time
        was a count of days.
    """

    issues: list[Issue] = field(default_factory=list)
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    seen: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    edited: dict[tuple[str, str], str] = field(default_factory=dict)
    newer: set[str] = field(default_factory=set)
    guessed: Counter[str] = field(default_factory=Counter)
    aside: dict[Path, set[str]] = field(default_factory=dict)
    bad: int = 0
    date_order: str | None = None
    serials: bool = False

    def take_and_clear_issues(self) -> pl.DataFrame:
        """Give the issues since the last call."""
        taken_issues = frame(Issue, self.issues)
        self.issues = []
        return taken_issues


class Record(dict[str, Any]):
    """An object whose fields are checked as they are read.

    :param where: its place, which messages put before the names of its fields.

    >>> from memlab.datasets.record_fields import Record, check_name, check_text
    >>> record = Record({"text": "Hello", "role": None})
    >>> record.read_field("text", check_text), record.read_field("role", check_name, "user")
    ('Hello', 'user')
    >>> Record({"text": 1}, "messages[0]").read_field("text", check_text)
    Traceback (most recent call last):
        ...
    memlab.datasets.record_fields.BadField: messages[0].text: found 1 (a number), expected a string
    """

    __slots__ = ("where",)

    def __init__(self, raw: Any, where: str = "") -> None:
        super().__init__(_check_type(raw, where, dict, "an object {…}"))
        self.where = where

    def read_field(
        self, field_name: str, check: Callable[[JsonValue, str], T], default: D = MISSING
    ) -> T | D:
        """Give a field of a kind; one with a default may be null or left out.

        :raises BadField: when it is of another kind.
        """
        field_value = self.get(field_name, MISSING)
        if default is not MISSING and (field_value is None or field_value is MISSING):
            return default
        field_place = field_name
        if self.where:
            field_place = f"{self.where}.{field_name}"
        return check(field_value, field_place)


def describe_value(value: JsonValue) -> str:
    """Say what a value is, short enough for a message."""
    if value is MISSING:
        return "nothing (the field is missing)"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, (str, datetime)):
        value_text = str(value)
        if len(value_text) > 60:
            value_text = f"{value_text[:57]}…"
        return f"{value_text!r} (a string)"
    if isinstance(value, int) and value.bit_length() >= 400:
        return "huge (a number)"
    if isinstance(value, (int, float)):
        return f"{str(value)[:40]} (a number)"
    if isinstance(value, dict):
        return f"an object with {list(value)[:4]}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"a value of the type {type(value).__name__}"


def escape_surrogates(text: str) -> str:
    """Escape lone surrogates, which a key or a file name may hold and no terminal, frame or
    log can take.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def _check_type(value: JsonValue, field_label: str, wanted_type: type[T], expected: str) -> T:
    """Give a value of a type; a boolean is no number."""
    if not isinstance(value, wanted_type) or (isinstance(value, bool) and wanted_type is not bool):
        raise BadField(field_label, describe_value(value), expected)
    return value


check_list = partial(_check_type, wanted_type=list, expected="a list […]")
check_flag = partial(_check_type, wanted_type=bool, expected="true or false")
check_integer = partial(_check_type, wanted_type=int, expected="a whole number")


def check_text(value: JsonValue, field_label: str) -> str:
    """Check a string.

    Text that no Unicode encoding or C string can hold is refused rather than changed.
    """
    checked_text = _check_type(value, field_label, str, "a string")
    if "\x00" in checked_text:
        raise BadField(
            field_label, f"a NUL character at {checked_text.index(chr(0))}", "text without it"
        )
    try:
        checked_text.encode()
    except UnicodeEncodeError as error:
        surrogate_text = (
            f"a lone surrogate \\u{ord(checked_text[error.start]):04x} at {error.start}"
        )
        raise BadField(
            field_label, surrogate_text, "valid Unicode text (a surrogate pair for an emoji)"
        ) from None
    return checked_text


def check_name(value: JsonValue, field_label: str) -> str:
    """Check what names a record: a string that is not blank, or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    checked_text = check_text(value, field_label)
    if not checked_text or checked_text.isspace():
        raise BadField(field_label, describe_value(value), "a name")
    return checked_text


def check_names(value: JsonValue, field_label: str) -> list[str]:
    numbered_values = enumerate(check_list(value, field_label))
    return [
        check_name(list_value, f"{field_label}[{place}]") for place, list_value in numbered_values
    ]


def check_grade(value: JsonValue, field_label: str) -> int:
    """Check a grade of relevance: a whole number, which some files write as 2.0."""
    is_whole = _is_number(value, Decimal) and value == value // 1
    if not is_whole or abs(value) > _HIGHEST_GRADE:
        raise BadField(field_label, describe_value(value), "a whole number as grade")
    return int(value)


def _is_number(raw_value: JsonValue, *other_types: type) -> bool:
    """Say whether a value is a number, or of other types; a boolean is none."""
    return isinstance(raw_value, (int, float, *other_types)) and not isinstance(raw_value, bool)


def check_name_and_grade(value: JsonValue, field_label: str) -> tuple[str, int]:
    """Check a judgement: a name, which stands for grade 1, or an object of ``id`` and ``grade``."""
    if not isinstance(value, dict):
        return check_name(value, field_label), 1
    record = Record(value, field_label)
    return record.read_field("id", check_name), record.read_field("grade", check_grade, 1)


def check_and_join_answer(value: JsonValue, field_label: str) -> str | None:
    """Check an answer: a string, a number (which becomes a string), null, or a list of
    these, which is joined.
    """
    if isinstance(value, list):
        answer_parts = (
            check_and_join_answer(answer_part, f"{field_label}[{place}]")
            for place, answer_part in enumerate(value)
        )
        return "; ".join(filter(None, answer_parts)) or None
    if value is None:
        return None
    if _is_number(value):
        return str(value)
    return check_text(value, field_label)


def check_text_or_texts(value: JsonValue, field_label: str) -> list[str] | None:
    """Check the points of a rubric: one text, a list of texts, or null."""
    if value is None:
        return None
    if not isinstance(value, list):
        value = [value]
    points = [check_text(point, f"{field_label}[{place}]") for place, point in enumerate(value)]
    return points or None


def check_question_source(value: JsonValue, field_label: str) -> str | None:
    """Check who wrote a question: ``proposed`` or ``accepted``; ``written`` and an empty text are
    null.

    >>> from memlab.datasets.record_fields import check_question_source
    >>> check_question_source("proposed", "source"), check_question_source("written", "source")
    ('proposed', None)
    """
    source = check_text(value, field_label)
    if source in ("", WRITTEN):
        return None
    if source not in SOURCES:
        raise BadField(field_label, describe_value(value), f"one of {', '.join(SOURCES)}")
    return source


def dump_as_json_text(value: JsonValue, field_label: str) -> str:
    """Give any value as JSON, as a frame keeps what has no columns of its own."""
    return escape_surrogates(json.dumps(value, ensure_ascii=False, default=float))


def parse_time(value: JsonValue, field_label: str, date_order: str | None = None) -> datetime:
    """Read a time as ISO 8601 or a tool writes it, a count since 1970, or a datetime.

    One without a zone stays so.

    :param value: see :mod:`memlab.datasets.time_forms` for texts and objects; a number is seconds,
        or from its size milliseconds, microseconds or nanoseconds since 1970.
    :param date_order: ``dmy`` or ``mdy``, of dates that can be read in both ways; without it such a
        date is refused.
    """
    try:
        time_value = value
        if isinstance(value, dict):
            from memlab.datasets import time_forms

            time_value = time_forms.unwrap_time_object(value)
        if isinstance(time_value, str):
            time_value = _parse_time_or_epoch_count(
                check_text(time_value, field_label).strip(), date_order
            )
        elif isinstance(time_value, Decimal):
            time_value = float(time_value)
        elif isinstance(time_value, date) and not isinstance(time_value, datetime):
            time_value = datetime.combine(time_value, time())
        if is_spreadsheet_day_count(time_value):
            time_value = _time_of_spreadsheet_days(float(time_value))
        elif _is_number(time_value):
            time_value = _EPOCH + timedelta(
                microseconds=round(time_value * _microseconds_per_unit(abs(time_value)))
            )
        if isinstance(time_value, datetime) and _fits_every_time_zone(time_value):
            return time_value
    except (ValueError, OverflowError):
        pass
    expected = 'an ISO 8601 time such as "2026-03-01T09:00:00+01:00", '
    expected += "or seconds or milliseconds since 1970"
    if is_date_with_slashes(value):
        expected += "; date_order= says whether the day or the month stands first"
    raise BadField(field_label, describe_value(value), expected)


def is_spreadsheet_day_count(value: JsonValue) -> bool:
    """Say whether a time is a count of days, as a spreadsheet holds it.

    >>> [is_spreadsheet_day_count(value) for value in (46054.5, "46054.5", 1769940000)]
    [True, True, False]
    """
    if isinstance(value, str):
        if _SERIAL_TEXT.fullmatch(value.strip()) is None:
            return False
        value = float(value)
    return _is_number(value) and SERIALS[0] <= value <= SERIALS[1]


def _time_of_spreadsheet_days(days: float) -> datetime:
    """Give the time of a count of days, to the millisecond, which is what the count can hold."""
    return _DAY_ZERO + timedelta(milliseconds=round(days * 86_400_000))


def _fits_every_time_zone(time: datetime) -> bool:
    """Say whether a time can be changed to any zone."""
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return _FIRST <= time <= _LAST


def _parse_time_or_epoch_count(text: str, date_order: str | None) -> datetime | float | None:
    if _EPOCH_TEXT.fullmatch(text) or is_spreadsheet_day_count(text):
        return float(text)
    if not text.isdecimal():
        with suppress(ValueError):  # most are written so
            return datetime.fromisoformat(text)
    from memlab.datasets import time_forms

    return time_forms.parse_written_time(text, date_order)


def is_date_with_slashes(value: JsonValue) -> bool:
    """Say whether a time is a date such as 2/1/2026, whose day or month may stand first."""
    return isinstance(value, str) and _SLASHED.match(value.strip()) is not None


def _microseconds_per_unit(epoch_count: float) -> float:
    """Give how many microseconds one of a count since 1970 is, by the size of the count."""
    for least_count, unit_microseconds in _UNITS:
        if epoch_count >= least_count:
            return unit_microseconds
    return 1_000_000


def make_date_parser(*strptime_formats: str, example: str) -> Callable[..., datetime]:
    """Make a kind of dates as a benchmark writes them, read as UTC.

    :param strptime_formats: as of ``datetime.strptime``; the first that fits is taken.

    >>> from memlab.datasets.record_fields import make_date_parser
    >>> make_date_parser("%B-%d-%Y", example="March-15-2024")("March-15-2024").isoformat()
    '2024-03-15T00:00:00+00:00'
    """

    def parse_written_date(value: JsonValue, field_label: str = "date") -> datetime:
        written_date = check_text(value, field_label).strip()
        for date_form in strptime_formats:
            try:
                return datetime.strptime(written_date, date_form).replace(tzinfo=UTC)
            except ValueError:
                continue
        raise BadField(field_label, repr(value), f'a date such as "{example}"')

    return parse_written_date


def resolve_time_to_utc(
    time: datetime, zone_if_none: tzinfo, latest_before: datetime | None
) -> datetime:
    """Give a time in UTC.

    In the hour that comes twice when clocks are put back, it is the second one where the first lies
    more than a minute before what was said already.

    :param zone_if_none: of a time that has none.
    :param latest_before: the latest time of what stands before it.

    >>> from zoneinfo import ZoneInfo
    >>> oslo, said = ZoneInfo("Europe/Oslo"), datetime(2025, 10, 26, 0, 58, tzinfo=UTC)
    >>> twice = datetime(2025, 10, 26, 2, 2)
    >>> [resolve_time_to_utc(twice, oslo, latest).hour for latest in (None, said)]
    [0, 1]
    """
    if time.tzinfo is not None:
        return time.astimezone(UTC)
    first_moment = time.replace(tzinfo=zone_if_none, fold=0).astimezone(UTC)
    second_moment = time.replace(tzinfo=zone_if_none, fold=1).astimezone(UTC)
    if latest_before is None or first_moment == second_moment:
        return first_moment
    if timedelta(minutes=1) < latest_before - first_moment < 2 * (second_moment - first_moment):
        return second_moment
    return first_moment
