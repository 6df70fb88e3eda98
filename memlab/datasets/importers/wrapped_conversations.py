"""Conversations that stand deep within an object.

So has an export its version beside them, and a user the chats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memlab.datasets.importers.loose_json import JsonObject, JsonValue, list_or_empty
from memlab.datasets.importers.unknown_message_layouts import (
    CONTENT,
    SPEAKERS,
    find_content_key_and_value_or_empty,
)
from memlab.datasets.json_streaming import keys
from memlab.datasets.record_sources import Source
from memlab.datasets.role_words import normalise_role
from memlab.datasets.unread_texts import has_three_words

_PLAIN = frozenset(
    (
        *("messages", "turns", "utterances", "history", "chat_history", "log", "transcript"),
        *("dialog", "dialogue", "data", "chat", "thread", "session", "conversation", "items"),
        *("results", "records", "entries", "content", "list", "body", "response", "values"),
    )
)
"""Keys of messages that name no conversation."""
_TEXTS = frozenset((*CONTENT, "utterance", "blocks"))
_OWN = ("id", "uuid", "title")
"""Keys of an object that are not of those within it."""
_METADATA = ("metadata", "meta")
_MOST_DEEP = 8


@dataclass
class NestedConversation:
    """A conversation within an object.

    :param path: the dotted keys that lead to its messages.
    :param record: its messages, with what the objects around them say about them.
    """

    path: str
    record: JsonObject


def may_hold_nested_conversations(file: Source) -> bool:
    """Say whether messages stand within an object at the beginning of a JSON file."""
    if not file.head.lstrip().startswith(("{", "[")):
        return False
    speaking_paths = set[str]()
    saying_paths = set[str]()
    for path in keys(file.head, max_depth=_MOST_DEEP):
        outer_path, _, last_key = path.rpartition(".")
        if last_key in SPEAKERS:
            speaking_paths.add(outer_path)
        elif last_key in _TEXTS:
            saying_paths.add(outer_path)
    speaking_paths.discard("")
    return not speaking_paths.isdisjoint(saying_paths)


def find_nested_conversations(raw_object: JsonObject) -> list[NestedConversation]:
    """Find the conversations within an object, in their order.

    >>> said = [{"role": "user", "content": "Hi"}]
    >>> found = find_nested_conversations({"users": [{"user": "ann", "chats": {"s1": said}}]})
    >>> found[0].path, found[0].record["user"], found[0].record["id"]
    ('users.chats.s1', 'ann', 's1')
    """
    return list(_find_conversations_below(raw_object, {}, (), ""))


def _find_conversations_below(
    json_value: JsonValue, outer_fields: JsonObject, key_path: tuple[str, ...], last_key: str
) -> Iterator[NestedConversation]:
    """Find the conversations within a value.

    :param outer_fields: what the objects around it say.
    :param key_path: the keys that lead to it, the last of which is ``last_key``; empty in a list.
    """
    if len(key_path) > _MOST_DEEP:
        return
    messages = _list_messages_in_value(json_value)
    if messages:
        record = outer_fields | {"messages": messages}
        if (
            record.get("id", last_key) in key_path
        ):  # the name of a key gives way to that of one within
            record |= _id_field_of_key_or_empty(last_key)
        yield NestedConversation(".".join(key_path), record)
    elif isinstance(json_value, dict):
        inner_fields = outer_fields.copy()
        for own_key in _OWN:
            inner_fields.pop(own_key, None)
        inner_fields |= _id_field_of_key_or_empty(last_key) | _fields_without_prose(json_value)
        for inner_key, inner_value in json_value.items():
            inner_path = *key_path, str(inner_key)
            yield from _find_conversations_below(
                inner_value, inner_fields, inner_path, inner_path[-1]
            )
    else:
        for inner_value in list_or_empty(json_value):
            yield from _find_conversations_below(inner_value, outer_fields, key_path, "")


def _id_field_of_key_or_empty(key: str) -> dict[str, str]:
    """Give the id of a conversation that stands under a key, unless the key names none."""
    if not key or key in _PLAIN:
        return {}
    return {"id": key}


def _list_messages_in_value(json_value: JsonValue) -> list[JsonObject]:
    """Give a list of messages, or those in an object by their ids; none of anything else."""
    value_list = list_or_empty(json_value)
    if isinstance(json_value, dict):
        value_list = list(json_value.values())
    if not all(isinstance(list_value, dict) for list_value in value_list):
        return []
    if any(map(_is_message_with_speaker, value_list)):
        return value_list
    return []


def _is_message_with_speaker(json_object: JsonObject) -> bool:
    """Say whether an object says who says what; a message of LangChain stands within one."""
    kwargs = json_object.get("kwargs")
    if isinstance(kwargs, dict):
        return find_content_key_and_value_or_empty(kwargs)[0] != ""
    if SPEAKERS.isdisjoint(json_object) and normalise_role(json_object.get("type")) is None:
        return False
    return find_content_key_and_value_or_empty(json_object)[0] != ""


def _fields_without_prose(json_object: JsonObject) -> JsonObject:
    """Give what an object says about its conversations, without texts, which are counted
    elsewhere.
    """
    kept_fields: dict[str, Any] = {}
    for key, field_value in json_object.items():
        if isinstance(field_value, str):
            is_kept = not has_three_words(field_value)
        else:
            is_kept = key in _METADATA or not isinstance(field_value, (dict, list))
        if is_kept:
            kept_fields[key] = field_value
    return kept_fields
