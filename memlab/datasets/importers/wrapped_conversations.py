"""Conversations that stand deep within an object.

So has an export its version beside them, and a user the chats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memlab.datasets.importers.loose_json import list_or_empty
from memlab.datasets.importers.message_fields import CONTENT, SPEAKERS, find_content
from memlab.datasets.json_values import key_paths
from memlab.datasets.role_words import normalise_role
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import holds_words

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
class Wrapped:
    """A conversation within an object.

    :param path: the dotted keys that lead to its messages.
    :param record: its messages, with what the objects around them say about them.
    """

    path: str
    record: dict[str, Any]


def holds_conversations(file: Source) -> bool:
    """Say whether messages stand within an object at the beginning of a JSON file."""
    if not file.head.lstrip().startswith(("{", "[")):
        return False
    speaking, saying = set[str](), set[str]()
    for path in key_paths(file.head, depth=_MOST_DEEP):
        around, _, last = path.rpartition(".")
        if last in SPEAKERS:
            speaking.add(around)
        elif last in _TEXTS:
            saying.add(around)
    speaking.discard("")
    return not speaking.isdisjoint(saying)


def find_conversations(raw: dict[str, Any]) -> list[Wrapped]:
    """Find the conversations within an object, in their order.

    >>> said = [{"role": "user", "content": "Hi"}]
    >>> found = find_conversations({"users": [{"user": "ann", "chats": {"s1": said}}]})
    >>> found[0].path, found[0].record["user"], found[0].record["id"]
    ('users.chats.s1', 'ann', 's1')
    """
    return list(_walk(raw, {}, (), ""))


def _walk(value: Any, about: dict[str, Any], path: tuple[str, ...], key: str) -> Iterator[Wrapped]:
    """Find the conversations within a value.

    :param about: what the objects around it say.
    :param path: the keys that lead to it, the last of which is ``key``; empty in a list.
    """
    if len(path) > _MOST_DEEP:
        return
    messages = _list_messages(value)
    if messages:
        record = about | {"messages": messages}
        if record.get("id", key) in path:  # the name of a key gives way to that of one within
            record |= _name(key)
        yield Wrapped(".".join(path), record)
    elif isinstance(value, dict):
        around = about.copy()
        for own_key in _OWN:
            around.pop(own_key, None)
        around |= _name(key) | _describe(value)
        for inner_key, inner in value.items():
            inner_path = *path, str(inner_key)
            yield from _walk(inner, around, inner_path, inner_path[-1])
    else:
        for inner in list_or_empty(value):
            yield from _walk(inner, about, path, "")


def _name(key: str) -> dict[str, Any]:
    """Give the id of a conversation that stands under a key, unless the key names none."""
    if not key or key in _PLAIN:
        return {}
    return {"id": key}


def _list_messages(value: Any) -> list[dict[str, Any]]:
    """Give a list of messages, or those in an object by their ids; none of anything else."""
    listed = list_or_empty(value)
    if isinstance(value, dict):
        listed = list(value.values())
    if not all(isinstance(each, dict) for each in listed):
        return []
    if any(map(_is_message, listed)):
        return listed
    return []


def _is_message(value: dict[str, Any]) -> bool:
    """Say whether an object says who says what; a message of LangChain stands within one."""
    kwargs = value.get("kwargs")
    if isinstance(kwargs, dict):
        return find_content(kwargs)[0] != ""
    if SPEAKERS.isdisjoint(value) and normalise_role(value.get("type")) is None:
        return False
    return find_content(value)[0] != ""


def _describe(value: dict[str, Any]) -> dict[str, Any]:
    """Give what an object says about its conversations, without texts, which are counted
    elsewhere.
    """
    about: dict[str, Any] = {}
    for key, said in value.items():
        if isinstance(said, str):
            is_kept = not holds_words(said)
        else:
            is_kept = key in _METADATA or not isinstance(said, (dict, list))
        if is_kept:
            about[key] = said
    return about
