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
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField
from memlab.datasets.importers.loose_json import (
    first_field,
    first_text,
    first_time,
    get_nested,
    list_or_empty,
    list_with_metadata,
)
from memlab.datasets.time_keys import find_other_time
from memlab.datasets.unread_texts import holds_words

_WRITTEN = (
    *("timestamp", "created_at", "create_time", "createdAt", "created", "ts", "sent_at", "sentAt"),
    *("date", "datetime", "time"),
)
_CHANGED = ("update_time", "updated_at", "updatedAt")
_WRITTEN_KEYS, _CHANGED_KEYS = frozenset(_WRITTEN), frozenset(_CHANGED)
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


def list_plain_columns(columns: Iterable[str]) -> set[str]:
    """Give the columns of a table, those that stand for a known key written as it is."""
    return set(map(_plain_column, columns))


def with_plain_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Give a row with its known columns written as their keys are.

    >>> with_plain_columns({"Role": "user", "Text": "Hi", "Session ID": "s1"})
    {'role': 'user', 'text': 'Hi', 'Session ID': 's1'}
    """
    plain = dict[str, Any]()
    for column, cell in row.items():
        key = _plain_column(column)
        if key in row:
            key = column
        plain[key] = cell
    return plain


@lru_cache(1 << 12)
def _plain_column(column: str) -> str:
    key = re.sub(r"[\s-]+", "_", column.strip()).lower()
    if key in _COLUMNS:
        return key
    return column


def read_flagged_role(raw: dict[str, Any]) -> str:
    """Give the role that a flag of the message, or of its sender, says; empty where none does.

    >>> read_flagged_role({"sender": "GPT-4o", "isCreatedByUser": False})
    'assistant'
    >>> read_flagged_role({"author": {"name": "Claude", "bot": "false"}})
    'user'
    """
    for about in (raw, *_list_senders(raw)):
        for key, says_user in _find_flags(tuple(about)):
            flag = _TRUTHS.get(str(about[key]).strip().lower())
            if flag is None:
                continue
            if flag == says_user:
                return "user"
            return "assistant"
    return ""


@lru_cache(1 << 12)
def _find_flags(keys: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Give the keys of flags that say who speaks, and whether they say it of a user."""
    flags = list[tuple[str, bool]]()
    for key in keys:
        plain = re.sub(r"[\s_-]", "", str(key)).lower()
        asked = re.sub("^is|(?<=sender|author)is", "", plain)
        if asked == plain and plain not in _BARE_FLAGS:
            continue  # an object or a name stands under the bare word for a user
        if asked in _IS_USER:
            flags.append((key, True))
        elif asked in _IS_BOT:
            flags.append((key, False))
    return flags


def _list_senders(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """List the objects that say who speaks."""
    senders = [raw.get(key) for key in _OBJECTS]
    return [sender for sender in senders if isinstance(sender, dict)]


def list_role_types(raw: dict[str, Any]) -> list[str]:
    """List what a message says of the kind of its speaker beside ``role``.

    The role may be a name then.
    """
    role_types = list[str]()
    if not _ROLE_TYPE_KEYS.isdisjoint(raw):
        role_types += [first_field(raw, key) for key in _ROLE_TYPES]
    role_types.append(first_field(raw, "content.role"))
    for sender in _list_senders(raw):
        role_types += [first_field(sender, key) for key in _ROLES_OF_OBJECTS]
    return list(filter(None, role_types))


def read_name(raw: dict[str, Any]) -> str:
    """Give the name of who speaks; empty where none stands beside the role.

    >>> read_name({"sender": {"display_name": "Ann"}, "role": "user"})
    'Ann'
    """
    name = first_field(raw, *NAMES)
    for sender in _list_senders(raw):
        if not name:
            name = first_field(sender, *_NAMES_OF_OBJECTS)
    return name


def has_words(value: Any) -> bool:
    """Say whether a value may hold what somebody said."""
    if isinstance(value, str):
        return bool(value.strip())
    if not isinstance(value, (list, dict)):
        return False
    return bool(value)


def find_content(raw: dict[str, Any]) -> tuple[str, Any]:
    """Find what a message says: under a key that is known, or under one that is called like one.

    :returns: the key, and what stands there; empty and ``None`` without.
    """
    for known_key in CONTENT:
        if has_words(raw.get(known_key)):
            return known_key, raw[known_key]
    transcript = get_nested(raw, "audio.transcript")
    if has_words(transcript):
        return "audio", transcript
    for key, value in raw.items():
        if isinstance(value, dict) or not has_words(value):
            continue
        if _CALLED.search(key) and not _is_no_content(key):
            return key, value
    return "", None


def _is_no_content(key: str) -> bool:
    return key in THOUGHTS or _NO_CONTENT.search(key) is not None


def holds_unknown_words(raw: dict[str, Any]) -> bool:
    """Say whether a message without content has three words or more under some key."""
    texts = [value for value in raw.values() if isinstance(value, str)]
    return any(map(holds_words, texts))


def read_forwarder(raw: dict[str, Any]) -> str:
    """Give whose words a message passes on; ``unknown`` where it only says that it does.

    >>> read_forwarder({"forwarded_from": {"name": "Bo"}}), read_forwarder({"is_forwarded": 1})
    ('Bo', 'unknown')
    """
    if _OF_FORWARDED.isdisjoint(raw):
        return ""
    for key in _FORWARDERS:
        writer = raw.get(key)
        if isinstance(writer, dict):
            writer = first_field(writer, *_NAMES_OF_OBJECTS, "first_name", "title")
        called = first_text(writer)
        if called:
            return called
    for key in _FORWARDED:
        if _TRUTHS.get(str(raw.get(key)).strip().lower()):
            return "unknown"
    return ""


def list_quotations(raw: dict[str, Any], text: str) -> list[str]:
    """List the parts of a text that the message says to be others' words."""
    quoted = raw.get("quoted")
    if isinstance(quoted, str):
        quoted = [quoted]
    stated = map(first_text, list_or_empty(quoted))
    return [part for part in stated if part and part in text]


def is_flagged_thought(raw: dict[str, Any]) -> bool:
    """Say whether a flag says that a part, or a message, is thought and not said, as Gemini's do.

    >>> is_flagged_thought({"text": "Six, I guess.", "thought": True})
    True
    """
    return any(raw.get(key) is True for key in _THOUGHT_FLAGS)


def has_thoughts(raw: dict[str, Any]) -> bool:
    """Say whether a message brings thoughts under a key of their own."""
    return any(map(has_words, map(raw.get, THOUGHTS)))


def read_message_id(raw: Any) -> str:
    """Give the id of a message; empty without one."""
    return first_field(raw, *_IDS)


def pick_ids(raw: dict[str, Any]) -> dict[str, Any]:
    """Give what :func:`find_dividing_key` looks at in a message."""
    picked = dict[str, Any]()
    for key, value in raw.items():
        if key in _IDS or _OTHER_ID.fullmatch(str(key)) is not None:
            picked[key] = value
    return picked


def find_dividing_key(listed: list[Any]) -> str:
    """Find the key of an id within whose values the ids of messages begin anew.

    It is empty where no id comes twice, or no such key tells its messages apart.

    >>> first = [{"id": 1, "desk_id": "a"}, {"id": 2, "desk_id": "a"}]
    >>> find_dividing_key([*first, {"id": 1, "desk_id": "b"}])
    'desk_id'
    """
    identified = [message for message in listed if read_message_id(message)]
    own_ids = Counter(map(read_message_id, identified))
    if len(own_ids) == len(identified):
        return ""
    shared = set.intersection(*[set(message) for message in identified])
    best, fewest = "", len(identified)
    for key in filter(shared.__contains__, identified[0]):
        if key in _IDS or _OTHER_ID.fullmatch(str(key)) is None:
            continue
        values = [first_text(message[key]) for message in identified]
        places = set(zip(values, map(read_message_id, identified), strict=True))
        number = len(set(values))
        if all(values) and len(places) == len(identified) and number < fewest:
            best, fewest = key, number
    return best


def read_time_value(raw: Any) -> Any:
    """Give the time of a message as it is written; ``None`` without one.

    It stands in the message or in what it says about itself. When it was changed is its time only
    where it says no other.

    >>> read_time_value({"updated_at": "2026-02-02", "Created On": "2026-02-01"})
    '2026-02-01'
    """
    if not isinstance(raw, dict):
        return None
    for about in list_with_metadata(raw):
        written = None
        if not _WRITTEN_KEYS.isdisjoint(about):
            written = first_time(*map(about.get, _WRITTEN))
        if written is None:
            written = find_other_time(about)
        if written is not None:
            return written
    if _CHANGED_KEYS.isdisjoint(raw):
        return None
    return first_time(*map(raw.get, _CHANGED))


def has_unreadable_time(raw: dict[str, Any]) -> bool:
    """Say whether a message without a time has something that is none where its time should be.

    >>> has_unreadable_time({"date": [2026, 2, 1]}), has_unreadable_time({"date": None})
    (True, False)
    """
    return any(map(raw.get, TIMES)) and read_time_value(raw) is None


def describe_version(raw: Any) -> str:
    """Give a text by which versions of one message are compared.

    It holds the number of its version, and when it was edited; of neither it is empty.

    >>> describe_version({"version": 2}) > describe_version({"version": 1}) > describe_version({})
    True
    """
    if not isinstance(raw, dict) or _OF_VERSIONS.isdisjoint(raw):
        return ""
    version = _read_version_number(raw)
    edited = 0.0
    with suppress(BadField, ValueError, OverflowError, OSError):
        changed = fields.parse_time(first_time(*map(raw.get, _EDITED)), "edited")
        edited = fields.place_in_zone(changed, UTC, None).timestamp()
    if version or edited:
        return f"{version:020d} {edited:020.6f}"
    return ""


def _read_version_number(raw: dict[str, Any]) -> int:
    """Give the number of a message's version; 0 where it has none, or something else there."""
    for key in _VERSIONS:
        number = raw.get(key)
        if number is None:
            continue
        if isinstance(number, str) and number.isdecimal() and len(number) < 20:
            return int(number)  # as tables have it
        if type(number) is int:
            return number
        return 0
    return 0
