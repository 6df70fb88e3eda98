"""Tables of chat-log records: JSON, CSV or Parquet, a row a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.export_messages import (
    Message,
    keep_newest_version,
    read_role,
)
from memlab.datasets.importers.loose_json import first_field
from memlab.datasets.importers.message_branches import holds_parent_key
from memlab.datasets.importers.unknown_message_layouts import (
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
from memlab.datasets.importers.user_and_thread_fields import RowPlaces, read_row_names
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source
from memlab.datasets.role_words import turn_role_of_word
from memlab.datasets.thinking_tags import cut_and_count_thoughts
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
    row_places = RowPlaces()
    divider = ""
    stem_counts = Counter(file.path.stem for file in source.members)
    for file, number, raw_row in source.member_values():
        if number == 1:
            row_places.begin_file()
            divider = _find_divider(source, file, raw_row)
        file_scope = file.path.stem
        if stem_counts[file_scope] > 1:
            file_scope = file.stem
        with file.record(f"row {number}", raw_row):
            plain_row = raw_row
            if file.columns:
                plain_row = with_plain_columns(raw_row)
            if divider:
                plain_row = {"session_id": first_field(plain_row, divider)} | plain_row
            message = _read_row(source, file_scope, Record(plain_row, f"row {number}"), row_places)
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
    id_rows = [pick_ids(raw_row) for _, raw_row in file.values() if isinstance(raw_row, dict)]
    divider = find_dividing_key(id_rows)
    if divider:
        finding = f"ids that begin anew with each {divider!r}"
        source.note("export", finding, "each is read as a conversation")
    return divider


def _read_row(source: Source, scope: str, record: Record, places: RowPlaces) -> Message | None:
    """Read a row with the fields of a chat log, or what stands for them.

    ``None`` for an older version of a row.

    :param scope: of a row that names none.
    """
    message = {column: record[column] for column in _FIELDS if column in record}
    if message.get("text") is None:
        message["text"] = ""
    silent_source = Source(source.path, people=source.people)
    role, speaker = read_role(silent_source, "", record, record)
    if role == "assistant":
        message["text"], thoughts = cut_and_count_thoughts(str(message["text"]))
        source.drop("thoughts", "", thoughts)
    user, session = places.place(read_row_names(record), asks=role != "assistant")
    if not user:
        user = scope
    usual_columns = {"scope": user, "session": session, "id": read_message_id(record)}
    if read_name(record):
        usual_columns["sender"] = speaker
        message.pop("sender", None)
    elif silent_source.report.guessed:
        role = None  # a name alone says it, of which the chat log tells
    if turn_role_of_word(record.get("role")) is None:
        # A role that is none is the name of a person.
        usual_columns["role"] = role
        if first_field(record, "role"):
            source.keep("messages of other roles", "", "kept as those of persons")
            message["role"] = None
            if role is None:
                role = "user"
            usual_columns |= {"role": role, "sender": speaker}
    for column, usual_value in usual_columns.items():
        if usual_value and message.get(column) is None:
            message[column] = usual_value
    forwarder = read_forwarder(record)
    if forwarder:
        message["forwarded_from"] = forwarder
    if message.get("timestamp") is None:
        message["timestamp"] = read_time_value(record)
    read_text = f"{message['text']}\n{message.get('caption') or ''}\n{message['timestamp']}"
    read_keys = {*_FIELDS, *TIMES}
    count_unread_texts(source, "", record, read_keys, read_text)
    if message.get("id") is None:
        return message
    message["id"] = keep_newest_version(source, message, describe_version(record))
    if message["id"] is None:
        source.drop("repeated messages")
        return None
    return message
