"""Microsoft Copilot's activity history: a CSV with a row a message, the newest first.

Layout: the export of the privacy dashboard (``Conversation,Time,Author,Message``), and that of
Copilot in Microsoft 365 (``CreatedAt,MessageContent,Author,ChatName``). A question and its answer
have the same time, so that rows are turned round and never sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial

from memlab.datasets import record_fields
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_message_or_count_drop,
    normalise_role,
)
from memlab.datasets.importers.loose_json import JsonObject, first_field_text, first_non_empty_text
from memlab.datasets.importers.newest_first_lists import reverse_if_newest_first
from memlab.datasets.record_fields import BadField
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

_LAYOUTS = (
    {"conversation", "time", "author", "message"},
    {"chatname", "createdat", "author", "messagecontent"},
)
_ZONED = ("%m/%d/%Y %H:%M:%S %z", "%m/%d/%Y %I:%M:%S %p %z")
_HALVES = ("AM", "PM")
_AI = "copilot"
_READ = {"conversation", "chatname", "author", "time", "createdat"}


def is_copilot_history(file: Source) -> bool:
    columns = set(map(str.lower, file.columns))
    return any(known_layout <= columns for known_layout in _LAYOUTS)


def read_copilot_history(source: Source) -> Iterator[Message]:
    """Read every conversation, which its title names, as a session of one scope."""
    for file in source.members:
        rows = [_with_lowercase_columns(message) for _, message in file.values()]
        read_time = partial(_parse_row_time, source)
        for message in reverse_if_newest_first(rows, read_time, is_answer=_is_answer_row):
            yield from _read_row_or_count_drop(source, message)


def _with_lowercase_columns(table_row: JsonObject) -> JsonObject:
    return {column_name.strip().lower(): content for column_name, content in table_row.items()}


def _row_time_as_iso_or_as_written(table_row: JsonObject) -> str:
    """Give the time of a row as ISO 8601 writes it, where it is known which number is the month.

    With a zone, or with AM and PM, it is written as in the United States; any other stays as it is.
    """
    written = first_field_text(table_row, "time", "createdat")
    for pattern in _ZONED:
        with suppress(ValueError):
            return datetime.strptime(written, pattern).isoformat()
    if written.endswith(_HALVES):
        with suppress(BadField):
            return record_fields.parse_time(written, "time", "mdy").isoformat()
    return written


def _parse_row_time(source: Source, table_row: JsonObject) -> datetime:
    return source.parse_time(_row_time_as_iso_or_as_written(table_row), "time")


def _is_answer_row(table_row: JsonObject) -> bool:
    return _role_of_row_author(table_row) == "assistant"


def _role_of_row_author(table_row: JsonObject) -> str | None:
    author = first_field_text(table_row, "author")
    if author.lower() == _AI:
        return "assistant"
    return normalise_role(author)


def _read_row_or_count_drop(source: Source, table_row: JsonObject) -> Iterator[Message]:
    role = _role_of_row_author(table_row)
    author = first_field_text(table_row, "author")
    if role in ("system", "tool"):
        source.drop("system messages", OWNER_SCOPE)
        return
    sender = first_non_empty_text(role, author, "user")
    if role is None:  # another author is a person
        role = "user"
    columns = {
        "session": first_field_text(table_row, "conversation", "chatname"),
        "timestamp": _row_time_as_iso_or_as_written(table_row),
        "role": role,
    }
    spoken_text = first_field_text(table_row, "message", "messagecontent")
    count_unread_texts(source, OWNER_SCOPE, table_row, _READ, spoken_text)
    yield from make_message_or_count_drop(source, OWNER_SCOPE, sender, spoken_text, **columns)
