"""Tables of chat-log records: JSON, CSV or Parquet, a row a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memlab.datasets.importers.export_messages import (
    Message,
    read_role_and_name_and_count_guess,
    remember_id_if_newest_version,
)
from memlab.datasets.importers.loose_json import JsonValue, first_field_text
from memlab.datasets.importers.message_branches import contains_parent_key
from memlab.datasets.importers.unknown_message_layouts import (
    TIMES,
    comparable_version_text_or_empty,
    find_key_where_ids_restart,
    find_message_time,
    normalise_known_column_names,
    pick_id_fields,
    read_forwarded_writer_or_empty,
    read_message_id_or_empty,
    read_speaker_name_or_empty,
    with_known_columns_normalised,
)
from memlab.datasets.importers.user_and_thread_fields import (
    SessionFinder,
    find_and_note_outer_conversation_key_or_empty,
    names_several_threads,
    read_user_and_thread,
    read_user_and_thread_within,
)
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
    if contains_parent_key(file.first_keys) and "scope" not in file.first_keys:
        return False  # a tree, of which one branch is read
    if file.columns:
        return _are_keys_of_message_rows(normalise_known_column_names(file.columns))
    if file.head.lstrip()[:1] == "[" and "text" in file.keys and file.keys & {"scope", "sender"}:
        return "qa" not in file.keys
    # A chat log is one by its scopes, or by its header.
    return _are_keys_of_message_rows(file.first_keys) and file.keys.isdisjoint(_NO_ROW)


def _are_keys_of_message_rows(column_names: set[str]) -> bool:
    """Say whether a row with these keys is a message, and says who wrote it."""
    return "text" in column_names and not column_names.isdisjoint({"sender", "role"})


def read_table_of_messages(source: Source) -> Iterator[Message]:
    """Read every row of JSON, a CSV or a Parquet file.

    Those that name no scope, user or tenant are of one, named by the file.
    """
    session_finder = SessionFinder()
    divider: str | None = None
    outer_key = ""
    stem_counts = Counter(file.path.stem for file in source.members)
    for file, number, raw_row in source.stream_numbered_member_values():
        if number == 1:
            session_finder.forget_speakers_of_unnamed_thread()
            divider = _find_and_note_column_where_ids_restart(source, file, raw_row)
            outer_key = _find_and_note_outer_conversation_or_empty(source, file, raw_row)
        file_scope = file.path.stem
        if stem_counts[file_scope] > 1:
            file_scope = file.stem
        with file.record(f"row {number}", raw_row):
            plain_row = raw_row
            if file.columns:
                plain_row = with_known_columns_normalised(raw_row)
            if divider:
                plain_row = {"session_id": first_field_text(plain_row, divider)} | plain_row
            message = _read_row_or_count_drop(
                source, file_scope, Record(plain_row, f"row {number}"), session_finder, outer_key
            )
            if message is not None:
                yield message


def _find_and_note_column_where_ids_restart(
    source: Source, file: Source, first_row: JsonValue
) -> str | None:
    """Find the column within whose values the ids of rows begin anew; ``None`` if none is needed.

    :param first_row: the first row, which names its conversation or has no id where none is.
    """
    if (
        not isinstance(first_row, dict)
        or "session" in first_row
        or not read_message_id_or_empty(first_row)
    ):
        return None
    if any(read_user_and_thread(first_row).thread):
        return None
    id_rows = [pick_id_fields(raw_row) for _, raw_row in file.values() if isinstance(raw_row, dict)]
    divider = find_key_where_ids_restart(id_rows)
    if divider:
        finding = f"ids that begin anew with each {divider!r}"
        source.note("export", finding, "each is read as a conversation")
    return divider


def _find_and_note_outer_conversation_or_empty(
    source: Source, file: Source, first_row: JsonValue
) -> str:
    """Find the column within whose values the names of sessions begin anew; empty without one.

    The file is read once more only where its first row names its conversation under two keys.
    """
    if not names_several_threads(first_row):
        return ""
    return find_and_note_outer_conversation_key_or_empty(
        source, (raw_row for _, raw_row in file.values())
    )


def _read_row_or_count_drop(
    source: Source,
    default_scope: str,
    row: Record,
    session_finder: SessionFinder,
    outer_key: str,
) -> Message | None:
    """Read a row with the fields of a chat log, or what stands for them.

    ``None`` for an older version of a row.

    :param default_scope: of a row that names none.
    :param outer_key: the column of conversations within which a session has its name, or empty.
    """
    message = {column: row[column] for column in _FIELDS if column in row}
    if message.get("text") is None:
        message["text"] = ""
    silent_source = Source(source.path, people=source.people)
    role, speaker = read_role_and_name_and_count_guess(silent_source, "", row, row)
    if role == "assistant":
        message["text"], thoughts = cut_and_count_thoughts(str(message["text"]))
        source.drop("thoughts", "", thoughts)
    names = read_user_and_thread(row)
    if outer_key:
        names = read_user_and_thread_within(row, outer_key)
        message.pop("session", None)
    user, session = session_finder.find_and_remember_scope_and_session(
        names, is_asking=role != "assistant"
    )
    if not user:
        user = default_scope
    usual_columns: dict[str, str | None] = {
        "scope": user,
        "session": session,
        "id": read_message_id_or_empty(row),
    }
    if read_speaker_name_or_empty(row):
        usual_columns["sender"] = speaker
        message.pop("sender", None)
    elif silent_source.report.guessed:
        role = None  # a name alone says it, of which the chat log tells
    if turn_role_of_word(row.get("role")) is None:
        # A role that is none is the name of a person.
        usual_columns["role"] = role
        if first_field_text(row, "role"):
            source.keep("messages of other roles", "", "kept as those of persons")
            message["role"] = None
            if role is None:
                role = "user"
            usual_columns |= {"role": role, "sender": speaker}
    for column, usual_value in usual_columns.items():
        if usual_value and message.get(column) is None:
            message[column] = usual_value
    forwarder = read_forwarded_writer_or_empty(row)
    if forwarder:
        message["forwarded_from"] = forwarder
    if message.get("timestamp") is None:
        message["timestamp"] = find_message_time(row)
    read_text = f"{message['text']}\n{message.get('caption') or ''}\n{message['timestamp']}"
    read_keys = {*_FIELDS, *TIMES}
    count_unread_texts(source, "", row, read_keys, read_text)
    if message.get("id") is None:
        return message
    message["id"] = remember_id_if_newest_version(
        source, message, comparable_version_text_or_empty(row)
    )
    if message["id"] is None:
        source.drop("repeated messages")
        return None
    return message
