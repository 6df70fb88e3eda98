"""Tables of chat-log records: JSON, CSV or Parquet, a row a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from memlab.datasets.fields import Record
from memlab.datasets.importers.branches import holds_parent_key
from memlab.datasets.importers.conversation_rows import RowPlaces, read_row_names
from memlab.datasets.importers.export_messages import (
    Message,
    keep_newest_version,
    read_role,
)
from memlab.datasets.importers.loose_json import first_field
from memlab.datasets.importers.message_fields import (
    TIMES,
    describe_version,
    find_dividing_key,
    list_plain_columns,
    pick_ids,
    read_forwarder,
    read_message_id,
    read_name,
    read_time_value,
    with_plain_columns,
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
    if holds_parent_key(file.first_keys) and "scope" not in file.first_keys:
        return False  # a tree, of which one branch is read
    if file.columns:
        return _names_speakers(list_plain_columns(file.columns))
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
    divider = ""
    stem_counts = Counter(file.path.stem for file in source.members)
    for file, number, raw in source.member_values():
        if number == 1:
            places.begin_file()
            divider = _find_divider(source, file, raw)
        file_scope = file.path.stem
        if stem_counts[file_scope] > 1:
            file_scope = file.stem
        with file.record(f"row {number}", raw):
            row = raw
            if file.columns:
                row = with_plain_columns(raw)
            if divider:
                row = {"session_id": first_field(row, divider)} | row
            message = _read_row(source, file_scope, Record(row, f"row {number}"), places)
            if message is not None:
                yield message


def _find_divider(source: Source, file: Source, first: Any) -> str:
    """Find the column within whose values the ids of rows begin anew; empty where none is needed.

    :param first: the first row, which names its conversation or has no id where none is.
    """
    if not isinstance(first, dict) or "session" in first or not read_message_id(first):
        return ""
    if any(read_row_names(first).thread):
        return ""
    rows = [pick_ids(raw) for _, raw in file.values() if isinstance(raw, dict)]
    divider = find_dividing_key(rows)
    if divider:
        found = f"ids that begin anew with each {divider!r}"
        source.note("export", found, "each is read as a conversation")
    return divider


def _read_row(source: Source, scope: str, record: Record, places: RowPlaces) -> Message | None:
    """Read a row with the fields of a chat log, or what stands for them.

    ``None`` for an older version of a row.

    :param scope: of a row that names none.
    """
    message = {column: record[column] for column in _FIELDS if column in record}
    if message.get("text") is None:
        message["text"] = ""
    quiet = Source(source.path, people=source.people)
    role, speaker = read_role(quiet, "", record, record)
    if role == "assistant":
        message["text"], thoughts = cut_thoughts(str(message["text"]))
        source.drop("thoughts", "", thoughts)
    user, session = places.place(read_row_names(record), asks=role != "assistant")
    if not user:
        user = scope
    replaced = {"scope": user, "session": session, "id": read_message_id(record)}
    if read_name(record):
        replaced["sender"] = speaker
        message.pop("sender", None)
    elif quiet.report.guessed:
        role = None  # a name alone says it, of which the chat log tells
    if turn_role(record.get("role")) is None:
        # A role that is none is the name of a person.
        replaced["role"] = role
        if first_field(record, "role"):
            source.keep("messages of other roles", "", "kept as those of persons")
            message["role"] = None
            if role is None:
                role = "user"
            replaced |= {"role": role, "sender": speaker}
    for column, written in replaced.items():
        if written and message.get(column) is None:
            message[column] = written
    forwarder = read_forwarder(record)
    if forwarder:
        message["forwarded_from"] = forwarder
    if message.get("timestamp") is None:
        message["timestamp"] = read_time_value(record)
    spoken = f"{message['text']}\n{message.get('caption') or ''}\n{message['timestamp']}"
    read_keys = {*_FIELDS, *TIMES}
    count_unread_texts(source, "", record, read_keys, spoken)
    if message.get("id") is None:
        return message
    message["id"] = keep_newest_version(source, message, describe_version(record))
    if message["id"] is None:
        source.drop("repeated messages")
        return None
    return message
