"""Checks of the fields of a record: each gives the value, or raises :class:`Bad` with what was found and expected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from memlab.language.calendar import month as month_number

T = TypeVar("T")
D = TypeVar("D")
MISSING: Any = object()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROLES = {"human": "user", "person": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
_ROLES |= {role: role for role in ("user", "assistant", "system", "other")}
_ASSISTANTS = {
    "ai assistant",
    "assistant",
    "bard",
    "chatgpt",
    "claude",
    "copilot",
    "deepseek",
    "gemini",
    "github copilot",
}
_ASSISTANTS |= {"gpt", "grok", "le chat", "meta ai", "microsoft copilot", "perplexity"}


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


as_list: Callable[[Any, str], list[Any]] = _of_type(list, "a list […]")
as_flag = _of_type(bool, "true or false")
_as_whole = _of_type(int, "a whole number")


class Record(dict[str, Any]):
    """An object whose fields are checked as they are read; one with a default may be null or left out.

    :param where: its place, which messages put before the names of its fields.

    >>> from memlab.datasets._fields import Record
    >>> Record({"text": "Hello", "role": None}).text("text"), Record({}).name("role", "user")
    ('Hello', 'user')
    >>> Record({"text": 1}, "messages[0]").text("text")
    Traceback (most recent call last):
        ...
    memlab.datasets._fields.Bad: messages[0].text: found 1 (a number), expected a string
    """

    __slots__ = ("where",)

    def __init__(self, raw: Any, where: str = "") -> None:
        if not isinstance(raw, dict):
            raise Bad(where, show(raw), "an object {…}")
        super().__init__(raw)
        self.where = where

    def read(self, name: str, check: Callable[[Any, str], T], default: D = MISSING) -> T | D:
        value = self.get(name, MISSING)
        if default is not MISSING and (value is None or value is MISSING):
            return default
        return check(value, f"{self.where}.{name}" if self.where else name)

    def text(self, name: str, default: D = MISSING) -> str | D:
        return self.read(name, as_text, default)

    def name(self, name: str, default: D = MISSING) -> str | D:
        return self.read(name, as_name, default)

    def names(self, name: str, default: D = MISSING) -> list[str] | D:
        return self.read(name, as_names, default)

    def object(self, name: str) -> Record:
        return self.read(name, Record)

    def listed(self, name: str, default: D = MISSING) -> list[Any] | D:
        return self.read(name, as_list, default)

    def answer(self, name: str, default: None = MISSING) -> str | None:
        return self.read(name, as_answer, default)

    def time(self, name: str) -> tuple[int | None, bool]:
        return self.read(name, as_time, (None, True))


def as_text(value: Any, where: str) -> str:
    """Check a string; text that no Unicode encoding or C string can hold is refused rather than changed."""
    if not isinstance(value, str):
        raise Bad(where, show(value), "a string")
    if "\x00" in value:
        raise Bad(where, f"a NUL character at {value.index(chr(0))}", "text without it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        lone = f"a lone surrogate \\u{ord(value[error.start]):04x} at {error.start}"
        raise Bad(where, lone, "valid Unicode text (a surrogate pair for an emoji)") from None
    return value


def as_name(value: Any, where: str) -> str:
    """Check what names a record: a string that is not blank, or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = as_text(value, where)
    if not text or text.isspace():
        raise Bad(where, show(value), "a name")
    return text


def as_names(value: Any, where: str) -> list[str]:
    """Check a list of names."""
    return [as_name(name, f"{where}[{i}]") for i, name in enumerate(as_list(value, where))]


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


def is_assistant(sender: str, named: Collection[str] = ()) -> bool:
    """Say whether a sender is an assistant: one that was named, or one whose name says so.

    >>> from memlab.datasets._fields import is_assistant
    >>> is_assistant("ChatGPT"), is_assistant("Ann"), is_assistant("Ann", ["ann"])
    (True, False, True)
    """
    name = sender.strip().casefold()
    return name in _ASSISTANTS or name in (other.strip().casefold() for other in named)


def micros(moment: datetime) -> int:
    """Give the microseconds since 1970 of a moment with a zone."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(time: int | None) -> datetime | None:
    """Undo :func:`micros`."""
    return None if time is None else _EPOCH + timedelta(microseconds=time)


def as_time(value: Any, where: str) -> tuple[int, bool]:
    """Read an ISO 8601 time or an epoch: microseconds since 1970, and whether the source gave a zone."""
    zoned = True
    # Without separators only a day is read as ISO 8601: 1701011221530 would be the year 1701.
    if isinstance(value, str) and (digits := _EPOCH_TEXT.fullmatch(value.strip())):
        value = float(digits[0]) if digits[1] else int(digits[0])
    try:
        if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) != len("20260301"):
            raise ValueError(value)
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
    number = int(month) if month.isdecimal() else month_number(month)
    return datetime(int(year), number, int(day), hours, int(minute), int(second), tzinfo=UTC)


_MILLISECONDS = 10**11
_EPOCH_TEXT = re.compile(r"[0-9]{9,13}(\.[0-9]+)?")
_FIRST, _LAST = (micros(datetime(year, 1, 2, tzinfo=UTC)) for year in (1, 9999))


def sessions_of_turns(turns: Iterable[str]) -> list[str]:
    """Give the sessions of turns, each once."""
    return list(dict.fromkeys(turn.rpartition("/")[0] for turn in turns))
