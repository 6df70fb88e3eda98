"""Tables of chat-log records: JSON, CSV or Parquet, a row a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memlab.datasets.fields import Record
from memlab.datasets.importers.conversation_rows import RowPlaces
from memlab.datasets.importers.export_messages import (
    Message,
    keep_newest_version,
    read_role,
)
from memlab.datasets.importers.loose_json import first_field
from memlab.datasets.importers.message_fields import (
    NAMES,
    TIMES,
    describe_version,
    read_message_id,
    read_time_value,
)
from memlab.datasets.role_words import turn_role
from memlab.datasets.source import Source
from memlab.datasets.thoughts import cut_thoughts
from memlab.datasets.unread_texts import count_unread_texts

_NO_ROW = {"scope", "memlab", "question", "content", "messages", "conversations", "parts", "qa"}
_FIELDS = (
    *("scope", "session", "id", "sender", "role", "text", "timestamp", "caption"),
    *("forwarded_from", "quoted"),
)


def is_table_of_messages(file: Source) -> bool:
    if file.columns:
        return _names_speakers(file.columns)
    if file.head.lstrip()[:1] == "[" and "text" in file.keys and file.keys & {"scope", "sender"}:
        return "qa" not in file.keys
    # A chat log is one by its scopes, or by its header.
    return _names_speakers(file.first_keys) and file.keys.isdisjoint(_NO_ROW)


def _names_speakers(keys: set[str]) -> bool:
    """Say whether a row with these keys is a message, and says who wrote it."""
    return "text" in keys and not keys.isdisjoint({"sender", "role"})


def read_table_of_messages(source: Source) -> Iterator[Message]:
    """Read every row of JSON, a CSV or a Parquet file.

    Those that name no scope, user or tenant are of one, named by the file.
    """
    places = RowPlaces()
    stems = Counter(file.path.stem for file in source.members)
    for file, number, raw in source.member_values():
        if number == 1:
            places.begin_file()
        scope = file.path.stem
        if stems[scope] > 1:
            scope = file.stem
        with file.record(f"row {number}", raw):
            row = _read_row(source, scope, Record(raw, f"row {number}"), places)
            if row is not None:
                yield row


def _read_row(source: Source, scope: str, record: Record, places: RowPlaces) -> Message | None:
    """Read a row with the fields of a chat log, or what stands for them; ``None`` for an
    older version of a row.

    :param scope: of a row that names none.
    """
    row = {key: record[key] for key in _FIELDS if key in record}
    if row.get("text") is None:
        row["text"] = ""
    quiet = Source(source.path, people=source.people)
    role, name = read_role(quiet, "", record, record)
    if role == "assistant":
        row["text"], thoughts = cut_thoughts(str(row["text"]))
        source.drop("thoughts", "", thoughts)
    user, session = places.place(record, asks=role != "assistant")
    found = {"scope": user or scope, "session": session, "id": read_message_id(record)}
    if first_field(record, *NAMES):
        found["sender"] = name
        row.pop("sender", None)
    elif quiet.report.guessed:
        role = None  # a name alone says it, of which the chat log tells
    if turn_role(record.get("role")) is None:
        # A role that is none is the name of a person.
        found["role"] = role
        if first_field(record, "role"):
            source.keep("messages of other roles", "", "kept as those of persons")
            row["role"] = None
            found |= {"role": role or "user", "sender": name}
    for key, value in found.items():
        if value and row.get(key) is None:
            row[key] = value
    if row.get("timestamp") is None:
        row["timestamp"] = read_time_value(record)
    spoken = f"{row['text']}\n{row.get('caption') or ''}"
    read = {*_FIELDS, *TIMES}
    count_unread_texts(source, "", record, read, spoken)
    if row.get("id") is None:
        return row
    row["id"] = keep_newest_version(source, row, describe_version(record))
    if row["id"] is None:
        source.drop("repeated messages")
        return None
    return row
