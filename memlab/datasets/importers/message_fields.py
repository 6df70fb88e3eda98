"""Who says what in one message of a tool whose layout is not known.

That is its role, its name, its content, its time and its version.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField
from memlab.datasets.importers.loose_json import (
    first_field,
    first_time,
    get_nested,
    list_with_metadata,
)
from memlab.datasets.importers.time_keys import find_other_time
from memlab.datasets.unread_texts import holds_words

_WRITTEN = (
    *("timestamp", "created_at", "create_time", "createdAt", "created", "ts", "sent_at", "sentAt"),
    *("date", "datetime", "time"),
)
_CHANGED = ("update_time", "updated_at", "updatedAt")
TIMES = (*_WRITTEN, *_CHANGED)
_CONTENT = (
    *("content", "value", "text", "parts", "refusal", "contentParts", "content_parts"),
    *("contentChunks", "contentBlocks", "content_blocks", "body", "message", "output_text"),
)
_CALLED = re.compile(r"(?i)text|content|message|body|utterance|parts|blocks|chunks")
_NO_CONTENT = re.compile(r"(?i)id$|ids$|type$|count|parent|version|model|status|tokens|index")
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thoughts")
_THOUGHT_FLAGS = ("thought", "isThought", "is_thought", "isThinking", "is_thinking")
_IDS = ("id", "uuid", "messageId", "message_id", "msg_id")
_EDITED = ("edited_at", "editedAt", "updated_at", "updatedAt", "update_time", "modified_at")
_VERSIONS = ("version", "revision", "rev", "version_number", "versionNumber", "edit_count")
_ROLE_TYPES = ("role_type", "roleType", "sender_type", "senderType", "author_type", "author.role")
_FLAGS = {
    "isCreatedByUser": ("user", "assistant"),
    "is_created_by_user": ("user", "assistant"),
    "is_user": ("user", "assistant"),
    "isUser": ("user", "assistant"),
    "fromUser": ("user", "assistant"),
    "is_human": ("user", "assistant"),
    "is_bot": ("assistant", "user"),
    "isBot": ("assistant", "user"),
}
"""What a flag says of the role: where it is true, and where it is false."""
NAMES = ("name", "sender_name", "senderName", "author_name", "authorName", "author.name")


def read_flagged_role(raw: dict[str, Any]) -> str:
    """Give the role that a flag of the message says; empty where none does.

    >>> read_flagged_role({"sender": "GPT-4o", "isCreatedByUser": False})
    'assistant'
    """
    for key, (if_true, if_false) in _FLAGS.items():
        flagged = raw.get(key)
        if flagged is True:
            return if_true
        if flagged is False:
            return if_false
    return ""


def list_role_types(raw: dict[str, Any]) -> list[str]:
    """List what a message says of the kind of its speaker beside ``role``.

    The role may be a name then.
    """
    role_types = [first_field(raw, path) for path in _ROLE_TYPES]
    return list(filter(None, role_types))


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
    for known_key in _CONTENT:
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


def read_time_value(raw: Any) -> Any:
    """Give the time of a message as it is written; ``None`` without one.

    It stands in the message or in what it says about itself. When it was changed is its time only
    where it says no other.

    >>> read_time_value({"updated_at": "2026-02-02", "Created On": "2026-02-01"})
    '2026-02-01'
    """
    if not isinstance(raw, dict):
        return None
    written = first_time(*map(raw.get, _WRITTEN))
    if written is not None:
        return written
    for about in list_with_metadata(raw):
        written = first_time(*map(about.get, _WRITTEN))
        if written is None:
            written = find_other_time(about)
        if written is not None:
            return written
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
    if not isinstance(raw, dict):
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
