"""Keys under which a record says when it was written, however a tool spells them."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from memlab.datasets.record_fields import JsonObject, JsonValue
from memlab.datasets.time_forms import unwrap_time_object

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MOMENTS = frozenset(
    ("time", "timestamp", "date", "datetime", "ts", "tstamp", "stamp", "epoch", "utc", "when")
)
_WRITTEN = frozenset(
    ("create", "created", "creation", "send", "sent", "post", "posted", "write", "written")
)
_STORED = frozenset(
    (
        *("insert", "inserted", "receive", "received", "record", "recorded", "save", "saved"),
        *("publish", "published", "submit", "submitted", "log", "logged", "add", "added"),
        *("start", "started", "begin", "began"),
    )
)
_ENDS = frozenset(("at", "on"))
_BESIDE = frozenset(
    (
        *("message", "msg", "chat", "turn", "event", "entry", "row", "request", "conversation"),
        *("session", "thread", "dialog", "dialogue"),
        *("server", "client", "local", "unix", "iso", "gmt", "ms", "millis", "seconds", "sec", "s"),
    )
)
_KNOWN = _MOMENTS | _WRITTEN | _STORED | _ENDS | _BESIDE
_EARLIEST_SECONDS = 1e8
"""Of 1973: a smaller number is a duration or a count."""


def find_time_under_other_key(raw_record: JsonObject) -> JsonValue:
    """Give the time of a record under a key that says when it was written; ``None`` without one.

    A key that says when it was sent or created comes before one that says when it was stored. A
    date of something else, such as a birthday or an edit, is none.

    >>> dated = {"editedDate": "2026-02-02", "createdDate": "2026-02-01T10:00:00Z"}
    >>> find_time_under_other_key(dated)
    '2026-02-01T10:00:00Z'
    >>> find_time_under_other_key({"generation_time": 2.5, "release_date": "2025-01-01"})
    """
    time_key = find_time_key(raw_record)
    return None if time_key is None else unwrap_time_object(raw_record[time_key])


def find_time_key(raw_record: JsonObject) -> str | None:
    """Give the key of the time that :func:`find_time_under_other_key` gives."""
    for time_key in _time_keys_best_first(tuple(raw_record)):
        if _may_be_time(unwrap_time_object(raw_record[time_key])):
            return time_key
    return None


@lru_cache(1 << 12)
def _time_keys_best_first(record_keys: tuple[str, ...]) -> list[str]:
    """Give the keys of a record that say when it was written, the best first."""
    ranked_keys = list[tuple[int, str]]()
    for key in record_keys:
        key_words = {word.lower() for word in _WORD.findall(str(key))}
        if not key_words or not key_words <= _KNOWN or not _are_words_of_a_moment(key_words):
            continue
        key_rank = 1
        if key_words & _WRITTEN:
            key_rank = 0
        elif key_words & _STORED:
            key_rank = 2
        ranked_keys.append((key_rank, key))
    return [key for _, key in sorted(ranked_keys)]


def _are_words_of_a_moment(key_words: set[str]) -> bool:
    if key_words & _MOMENTS:
        return True
    return bool(key_words & _ENDS) and bool(key_words & (_WRITTEN | _STORED))


def _may_be_time(value: JsonValue) -> bool:
    if isinstance(value, str):
        text = value.strip()
        if not text.isdecimal():
            return re.search(r"\d", text) is not None
        value = int(text[:20])
    if isinstance(value, bool):
        return False
    if isinstance(value, (int, float)):
        return value >= _EARLIEST_SECONDS
    return isinstance(value, datetime)
