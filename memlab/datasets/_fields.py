"""Checks of the fields of a record: each gives the value, or raises :class:`Bad` with what was found and expected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from memlab.language import calendar

T = TypeVar("T")
MISSING: Any = object()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROLES = {"human": "user", "person": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
_ROLES |= {role: role for role in ("user", "assistant", "system", "other")}


class Bad(Exception):
    """A field that cannot be used: what was found in it and what was expected."""

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(f"{where}{': ' * bool(where)}found {found}, expected {expected}")


def show(value: Any) -> str:
    """Say what a value is, short enough for a message."""
    if value is MISSING:
        return "nothing (the field is missing)"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return f"{value if len(value) <= 60 else value[:57] + '…'!r} (a string)"
    if isinstance(value, (int, float)):
        return f"{str(value)[:40] if isinstance(value, float) or value.bit_length() < 400 else 'huge'} (a number)"
    return f"a list of {len(value)}" if isinstance(value, list) else f"an object with {list(value)[:4]}"


def _of_type(kind: type[T], expected: str) -> Callable[[Any, str], T]:
    def check(value: Any, where: str) -> T:
        if not isinstance(value, kind):
            raise Bad(where, show(value), expected)
        return value

    return check


as_object: Callable[[Any, str], dict[str, Any]] = _of_type(dict, "an object {…}")
as_list: Callable[[Any, str], list[Any]] = _of_type(list, "a list […]")
as_flag = _of_type(bool, "true or false")
_as_whole = _of_type(int, "a whole number")
_as_string = _of_type(str, "a string")


def get(record: dict[str, Any], name: str, check: Callable[[Any, str], T], where: str = "") -> T:
    """Check a field that has to be there; ``where`` is what it is called where that is not its name."""
    return check(record.get(name, MISSING), where or name)


def maybe(record: dict[str, Any], name: str, check: Callable[[Any, str], T]) -> T | None:
    """Check a field that may be null or left out."""
    value = record.get(name)
    return None if value is None else check(value, name)


def as_text(value: Any, where: str) -> str:
    """Check a string; text that no Unicode encoding or C string can hold is refused rather than changed."""
    text = _as_string(value, where)
    if "\x00" in text:
        raise Bad(where, f"a NUL character at {text.index(chr(0))}", "text without it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        lone = f"a lone surrogate \\u{ord(text[error.start]):04x} at {error.start}"
        raise Bad(where, lone, "valid Unicode text (a surrogate pair for an emoji)") from None
    return text


def as_name(value: Any, where: str) -> str:
    """Check what names a record: a string that is not blank, or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = as_text(value, where)
    if not text or text.isspace():
        raise Bad(where, show(value), "a name")
    return text


def as_number(value: Any, where: str) -> int:
    """Check a whole number."""
    if isinstance(value, bool):
        raise Bad(where, show(value), "a whole number")
    return _as_whole(value, where)


def as_answer(value: Any, where: str) -> str | None:
    """Check an answer: a string, a number (which becomes a string) or null."""
    if value is None:
        return None
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else as_text(value, where)


def as_answers(value: Any, where: str) -> str | None:
    """Check an answer, or several in a list, which are joined."""
    if not isinstance(value, list):
        return as_answer(value, where)
    parts = (as_answer(part, f"{where}[{i}]") for i, part in enumerate(value))
    return "; ".join(part for part in parts if part) or None


def as_rubric(value: Any, where: str) -> list[str] | None:
    """Check the points of a rubric: one text, a list of texts, or null."""
    points = [] if value is None else value if isinstance(value, list) else [value]
    return [as_text(point, f"{where}[{i}]") for i, point in enumerate(points)] or None


def as_role(role: str) -> str:
    return _ROLES.get(role.strip().lower(), "other")


def micros(moment: datetime) -> int:
    """Give the microseconds since 1970 of a moment with a zone."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(time: int | None) -> datetime | None:
    """Undo :func:`micros`."""
    return None if time is None else _EPOCH + timedelta(microseconds=time)


def as_time(value: Any, where: str) -> tuple[int | None, bool]:
    """Read an ISO 8601 time or an epoch: microseconds since 1970, and whether the source gave a zone."""
    zoned = True
    try:
        if value is None:
            return None, True
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            time = round(value * (1_000 if abs(value) >= _MILLISECONDS else 1_000_000))
        else:
            read = datetime.fromisoformat(as_text(value, where).strip())
            zoned = read.tzinfo is not None
            time = micros(read if zoned else read.replace(tzinfo=UTC))
        if _FIRST <= time <= _LAST:
            return time, zoned
    except (ValueError, OverflowError):
        pass
    expected = 'an ISO 8601 time such as "2026-03-01T09:00:00+01:00", or seconds or milliseconds since 1970'
    raise Bad(where, show(value), expected)


def date_check(form: str, example: str) -> Callable[..., datetime]:
    r"""Make a check of dates as a benchmark writes them; they are read as UTC.

    :param form: a regular expression whose groups ``year``, ``month`` (a number or a name), ``day``, ``hour``,
        ``minute``, ``second`` and ``half`` (``a`` or ``p``, of twelve hours each) name the parts.

    >>> from memlab.datasets._fields import date_check
    >>> check = date_check(r"(?P<month>[a-z]+)-(?P<day>\d+)-(?P<year>\d+)", "March-15-2024")
    >>> check("March-15-2024", "time_anchor").isoformat()
    '2024-03-15T00:00:00+00:00'
    """
    pattern = re.compile(rf"\s*{form}\s*", re.IGNORECASE)

    def check(value: Any, where: str = "date") -> datetime:
        match = pattern.fullmatch(as_text(value, where))
        try:
            if match is not None:
                return _moment(**match.groupdict("0"))
        except ValueError:
            pass
        raise Bad(where, repr(value), f'a date such as "{example}"')

    return check


def _moment(
    year: str, month: str, day: str, hour: str = "0", minute: str = "0", second: str = "0", half: str = ""
) -> datetime:
    hours = int(hour)
    if half:
        if not 1 <= hours <= 12:
            raise ValueError(hour)
        hours = hours % 12 + 12 * (half.lower() == "p")
    number = int(month) if month.isdecimal() else calendar.month(month) or 0
    return datetime(int(year), number, int(day), hours, int(minute), int(second), tzinfo=UTC)


_MILLISECONDS = 10**11
_FIRST, _LAST = (micros(datetime(year, 1, 2, tzinfo=UTC)) for year in (1, 9999))


def sessions_of_turns(turns: Iterable[str]) -> list[str]:
    """Give the sessions of turns, each once."""
    return list(dict.fromkeys(turn.rpartition("/")[0] for turn in turns))
