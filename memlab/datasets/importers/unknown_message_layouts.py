"""Who says what in one message of a tool whose layout is not known.

That is its role, its name, its content, its time and its version.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC
from functools import lru_cache
from typing import Any, NamedTuple

from memlab.datasets import record_fields
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    RawTime,
    first_field_text,
    first_non_empty_text,
    first_possible_time,
    get_nested,
    list_or_empty,
    list_record_and_its_metadata,
)
from memlab.datasets.record_fields import BadField
from memlab.datasets.time_keys import find_time_under_other_key
from memlab.datasets.unread_texts import has_three_words

_WRITTEN = (
    *("timestamp", "created_at", "create_time", "createdAt", "created", "ts", "sent_at", "sentAt"),
    *("date", "datetime", "time"),
)
_CHANGED = ("update_time", "updated_at", "updatedAt")
_WRITTEN_KEYS = frozenset(_WRITTEN)
_CHANGED_KEYS = frozenset(_CHANGED)
TIMES = (*_WRITTEN, *_CHANGED)
CONTENT = (
    *("content", "value", "text", "parts", "refusal", "contentParts", "content_parts"),
    *("contentChunks", "contentBlocks", "content_blocks", "body", "message", "output_text"),
)
_CALLED = re.compile(r"(?i)text|content|message|body|utterance|parts|blocks|chunks")
_NO_CONTENT = re.compile(r"(?i)id$|ids$|type$|count|parent|version|model|status|tokens|index")
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thoughts")
_FORWARDERS = (
    *("forwarded_from", "forwardedFrom", "forward_from", "fwd_from", "forward_sender_name"),
    *("original_sender", "originalSender"),
)
_FORWARDED = ("is_forwarded", "isForwarded", "forwarded")
_THOUGHT_FLAGS = ("thought", "isThought", "is_thought", "isThinking", "is_thinking")
_IDS = ("id", "uuid", "messageId", "message_id", "msg_id", "_id", "_id.$oid")
_OTHER_ID = re.compile(r"(?i)(?!.*(?:parent|reply|version|revision)).*(?:id|uuid|number|key|_no)")
"""Keys of ids beside that of a message, but for those of the message before it."""
_EDITED = ("edited_at", "editedAt", "updated_at", "updatedAt", "update_time", "modified_at")
_VERSIONS = ("version", "revision", "rev", "version_number", "versionNumber", "edit_count")
_OF_VERSIONS = frozenset((*_EDITED, *_VERSIONS))
_OF_FORWARDED = frozenset((*_FORWARDERS, *_FORWARDED))
_OBJECTS = ("sender", "author", "from", "speaker", "participant")
"""Keys under which who speaks may be an object."""
_ROLE_TYPES = (
    *("role_type", "roleType", "sender_type", "senderType", "author_type", "authorType"),
    *("user_type", "userType", "participant_type", "participantType", "speaker_type"),
)
_ROLE_TYPE_KEYS = frozenset(_ROLE_TYPES)
_ROLES_OF_OBJECTS = ("role", "type")
_IS_USER = frozenset(("createdbyuser", "user", "human", "fromuser", "fromhuman"))
_IS_BOT = frozenset(("bot", "frombot", "ai", "fromai", "assistant", "senderbot", "authorbot"))
_BARE_FLAGS = frozenset(("fromuser", "fromhuman", "bot", "frombot", "fromai"))
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
"""What tables write for a flag."""
SPEAKERS = frozenset(("role", "sender", "author", "from", "speaker"))
_COLUMNS = SPEAKERS.union(
    (*CONTENT, *_IDS, "name", "sender_name", "role_type", "messages", "conversations"),
    ("prompt", "completion", "response", "instruction", "input", "output", "question", "answer"),
    ("system", "caption", "session", "scope"),
)
"""Keys that tables also write with capitals or spaces, as headings."""
NAMES = ("name", "sender_name", "senderName", "author_name", "authorName", "speaker_name")
_NAMES_OF_OBJECTS = (
    *("name", "display_name", "displayName", "full_name", "username", "user_name", "nickname"),
    *("email", "id"),
)


class _RoleFlag(NamedTuple):
    """The key of a flag that says who speaks, and whether it says so of a user or a model."""

    key: str
    says_user: bool


def normalise_known_column_names(column_names: Iterable[str]) -> set[str]:
    """Give the columns of a table, those that stand for a known key written as it is."""
    return set(map(_normalise_column_if_known, column_names))


def with_known_columns_normalised(table_row: JsonObject) -> JsonObject:
    """Give a row with its known columns written as their keys are.

    >>> with_known_columns_normalised({"Role": "user", "Text": "Hi", "Session ID": "s1"})
    {'role': 'user', 'text': 'Hi', 'Session ID': 's1'}
    """
    plain_row = dict[str, Any]()
    for column, cell in table_row.items():
        plain_key = _normalise_column_if_known(column)
        if plain_key in table_row:
            plain_key = column
        plain_row[plain_key] = cell
    return plain_row


@lru_cache(1 << 12)
def _normalise_column_if_known(column_name: str) -> str:
    plain_key = re.sub(r"[\s-]+", "_", column_name.strip()).lower()
    if plain_key in _COLUMNS:
        return plain_key
    return column_name


def read_role_from_flags_or_empty(raw_message: JsonObject) -> str:
    """Give the role that a flag of the message, or of its sender, says; empty where none does.

    >>> read_role_from_flags_or_empty({"sender": "GPT-4o", "isCreatedByUser": False})
    'assistant'
    >>> read_role_from_flags_or_empty({"author": {"name": "Claude", "bot": "false"}})
    'user'
    """
    for flag_holder in (raw_message, *_list_sender_objects(raw_message)):
        for flag_key, says_user in _find_role_flags(tuple(flag_holder)):
            flag_value = _TRUTHS.get(str(flag_holder[flag_key]).strip().lower())
            if flag_value is None:
                continue
            if flag_value == says_user:
                return "user"
            return "assistant"
    return ""


@lru_cache(1 << 12)
def _find_role_flags(message_keys: tuple[str, ...]) -> list[_RoleFlag]:
    """Give the keys of flags that say who speaks, and whether they say it of a user."""
    flags = list[_RoleFlag]()
    for key in message_keys:
        plain_key = re.sub(r"[\s_-]", "", str(key)).lower()
        flag_word = re.sub("^is|(?<=sender|author)is", "", plain_key)
        if flag_word == plain_key and plain_key not in _BARE_FLAGS:
            continue  # an object or a name stands under the bare word for a user
        if flag_word in _IS_USER:
            flags.append(_RoleFlag(key, says_user=True))
        elif flag_word in _IS_BOT:
            flags.append(_RoleFlag(key, says_user=False))
    return flags


def _list_sender_objects(raw_message: JsonObject) -> list[JsonObject]:
    """List the objects that say who speaks."""
    senders = [raw_message.get(key) for key in _OBJECTS]
    return [sender for sender in senders if isinstance(sender, dict)]


def list_stated_speaker_types(raw_message: JsonObject) -> list[str]:
    """List what a message says of the kind of its speaker beside ``role``.

    The role may be a name then.
    """
    role_types = list[str]()
    if not _ROLE_TYPE_KEYS.isdisjoint(raw_message):
        role_types += [first_field_text(raw_message, type_key) for type_key in _ROLE_TYPES]
    role_types.append(first_field_text(raw_message, "content.role"))
    for sender in _list_sender_objects(raw_message):
        role_types += [first_field_text(sender, type_key) for type_key in _ROLES_OF_OBJECTS]
    return list(filter(None, role_types))


def read_speaker_name_or_empty(raw_message: JsonObject) -> str:
    """Give the name of who speaks; empty where none stands beside the role.

    >>> read_speaker_name_or_empty({"sender": {"display_name": "Ann"}, "role": "user"})
    'Ann'
    """
    name = first_field_text(raw_message, *NAMES)
    for sender in _list_sender_objects(raw_message):
        if not name:
            name = first_field_text(sender, *_NAMES_OF_OBJECTS)
    return name


def may_hold_words(json_value: JsonValue) -> bool:
    """Say whether a value may hold what somebody said."""
    if isinstance(json_value, str):
        return bool(json_value.strip())
    if not isinstance(json_value, (list, dict)):
        return False
    return bool(json_value)


def find_content_key_and_value_or_empty(raw_message: JsonObject) -> tuple[str, JsonValue]:
    """Find what a message says: under a key that is known, or under one that is called like one.

    :returns: the key, and what stands there; empty and ``None`` without.
    """
    for known_key in CONTENT:
        if may_hold_words(raw_message.get(known_key)):
            return known_key, raw_message[known_key]
    transcript = get_nested(raw_message, "audio.transcript")
    if may_hold_words(transcript):
        return "audio", transcript
    for content_key, value in raw_message.items():
        if isinstance(value, dict) or not may_hold_words(value):
            continue
        if _CALLED.search(content_key) and not _is_key_of_other_than_content(content_key):
            return content_key, value
    return "", None


def _is_key_of_other_than_content(key: str) -> bool:
    return key in THOUGHTS or _NO_CONTENT.search(key) is not None


def has_sentence_under_any_key(raw_message: JsonObject) -> bool:
    """Say whether a message without content has three words or more under some key."""
    texts = [value for value in raw_message.values() if isinstance(value, str)]
    return any(map(has_three_words, texts))


def read_forwarded_writer_or_empty(raw_message: JsonObject) -> str:
    """Give whose words a message passes on; ``unknown`` where it only says that it does.

    >>> read_forwarded_writer_or_empty({"forwarded_from": {"name": "Bo"}})
    'Bo'
    >>> read_forwarded_writer_or_empty({"is_forwarded": 1})
    'unknown'
    """
    if _OF_FORWARDED.isdisjoint(raw_message):
        return ""
    for forward_key in _FORWARDERS:
        writer = raw_message.get(forward_key)
        if isinstance(writer, dict):
            writer = first_field_text(writer, *_NAMES_OF_OBJECTS, "first_name", "title")
        writer_name = first_non_empty_text(writer)
        if writer_name:
            return writer_name
    for forward_key in _FORWARDED:
        if _TRUTHS.get(str(raw_message.get(forward_key)).strip().lower()):
            return "unknown"
    return ""


def list_quotations_in_text(raw_message: JsonObject, text: str) -> list[str]:
    """List the parts of a text that the message says to be others' words."""
    quoted = raw_message.get("quoted")
    if isinstance(quoted, str):
        quoted = [quoted]
    stated_quotations = map(first_non_empty_text, list_or_empty(quoted))
    return [quotation for quotation in stated_quotations if quotation and quotation in text]


def is_flagged_as_thought(raw_message_or_part: JsonObject) -> bool:
    """Say whether a flag says that a part, or a message, is thought and not said, as Gemini's do.

    >>> is_flagged_as_thought({"text": "Six, I guess.", "thought": True})
    True
    """
    return any(raw_message_or_part.get(key) is True for key in _THOUGHT_FLAGS)


def has_separate_thoughts(raw_message: JsonObject) -> bool:
    """Say whether a message brings thoughts under a key of their own."""
    return any(map(may_hold_words, map(raw_message.get, THOUGHTS)))


def read_message_id_or_empty(raw_message: JsonValue) -> str:
    """Give the id of a message; empty without one."""
    return first_field_text(raw_message, *_IDS)


def pick_id_fields(raw_message: JsonObject) -> JsonObject:
    """Give what :func:`find_key_where_ids_restart` looks at in a message."""
    picked_fields = dict[str, Any]()
    for key, value in raw_message.items():
        if key in _IDS or _OTHER_ID.fullmatch(str(key)) is not None:
            picked_fields[key] = value
    return picked_fields


def find_key_where_ids_restart(raw_messages: list[JsonValue]) -> str | None:
    """Find the key of an id within whose values the ids of messages begin anew.

    It is ``None`` where no id comes twice, or no such key tells its messages apart.

    >>> first = [{"id": 1, "desk_id": "a"}, {"id": 2, "desk_id": "a"}]
    >>> find_key_where_ids_restart([*first, {"id": 1, "desk_id": "b"}])
    'desk_id'
    """
    identified_messages = [message for message in raw_messages if read_message_id_or_empty(message)]
    own_ids = Counter(map(read_message_id_or_empty, identified_messages))
    if len(own_ids) == len(identified_messages):
        return None
    shared_keys = set.intersection(*[set(message) for message in identified_messages])
    best_key = None
    fewest_values = len(identified_messages)
    for shared_key in filter(shared_keys.__contains__, identified_messages[0]):
        if shared_key in _IDS or _OTHER_ID.fullmatch(str(shared_key)) is None:
            continue
        key_values = [first_non_empty_text(message[shared_key]) for message in identified_messages]
        value_and_id = set(
            zip(key_values, map(read_message_id_or_empty, identified_messages), strict=True)
        )
        n_values = len(set(key_values))
        if (
            all(key_values)
            and len(value_and_id) == len(identified_messages)
            and n_values < fewest_values
        ):
            best_key = shared_key
            fewest_values = n_values
    return best_key


def find_message_time(raw_message: JsonValue) -> RawTime | None:
    """Give the time of a message as it is written; ``None`` without one.

    It stands in the message or in what it says about itself. When it was changed is its time only
    where it says no other.

    >>> find_message_time({"updated_at": "2026-02-02", "Created On": "2026-02-01"})
    '2026-02-01'
    """
    if not isinstance(raw_message, dict):
        return None
    for time_holder in list_record_and_its_metadata(raw_message):
        written_time = None
        if not _WRITTEN_KEYS.isdisjoint(time_holder):
            written_time = first_possible_time(*map(time_holder.get, _WRITTEN))
        if written_time is None:
            written_time = find_time_under_other_key(time_holder)
        if written_time is not None:
            return written_time
    if _CHANGED_KEYS.isdisjoint(raw_message):
        return None
    return first_possible_time(*map(raw_message.get, _CHANGED))


def has_unreadable_time(raw_message: JsonObject) -> bool:
    """Say whether a message without a time has something that is none where its time should be.

    >>> has_unreadable_time({"date": [2026, 2, 1]}), has_unreadable_time({"date": None})
    (True, False)
    """
    return any(map(raw_message.get, TIMES)) and find_message_time(raw_message) is None


def comparable_version_text_or_empty(raw_message: JsonValue) -> str:
    """Give a text by which versions of one message are compared.

    It holds the number of its version, and when it was edited; of neither it is empty.

    >>> versions = [{"version": 2}, {}, {"version": 1}]
    >>> sorted(versions, key=comparable_version_text_or_empty)
    [{}, {'version': 1}, {'version': 2}]
    """
    if not isinstance(raw_message, dict) or _OF_VERSIONS.isdisjoint(raw_message):
        return ""
    version = _version_number_or_zero(raw_message)
    edited_seconds = 0.0
    with suppress(BadField, ValueError, OverflowError, OSError):
        changed_at = record_fields.parse_time(
            first_possible_time(*map(raw_message.get, _EDITED)), "edited"
        )
        edited_seconds = record_fields.resolve_time_to_utc(changed_at, UTC, None).timestamp()
    if version or edited_seconds:
        return f"{version:020d} {edited_seconds:020.6f}"
    return ""


def _version_number_or_zero(raw_message: JsonObject) -> int:
    """Give the number of a message's version; 0 where it has none, or something else there."""
    for version_key in _VERSIONS:
        number = raw_message.get(version_key)
        if number is None:
            continue
        if isinstance(number, str) and number.isdecimal() and len(number) < 20:
            return int(number)  # as tables have it
        if type(number) is int:
            return number
        return 0
    return 0
