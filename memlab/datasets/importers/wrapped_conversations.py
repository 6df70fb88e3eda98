"""Conversations that stand deep within an object: an export with its version, users with their chats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memlab.datasets.importers.loose_json import list_or_empty
from memlab.datasets.importers.message_fields import CONTENT, SPEAKERS, find_content
from memlab.datasets.json_values import key_paths
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import holds_words

_PLAIN = frozenset(
    (
        *("messages", "turns", "utterances", "history", "chat_history", "log", "transcript"),
        *("dialog", "dialogue", "data", "chat", "thread", "session", "conversation", "items"),
        *("results", "records", "entries", "content", "list", "body", "response"),
    )
)
"""Keys of messages that name no conversation."""
_TEXTS = frozenset((*CONTENT, "utterance"))
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
    if file.head.lstrip()[:1] not in ("{", "["):
        return False
    speaking, saying = set[str](), set[str]()
    for key in key_paths(file.head, depth=_MOST_DEEP):
        around, _, last = key.rpartition(".")
        if around and last in SPEAKERS:
            speaking.add(around)
        elif around and last in _TEXTS:
            saying.add(around)
    return not speaking.isdisjoint(saying)


def find_conversations(raw: dict[str, Any]) -> list[Wrapped]:
    """Find the conversations within an object, in their order.

    >>> said = [{"role": "user", "content": "Hi"}]
    >>> found = find_conversations({"version": 1, "users": [{"user": "ann", "chats": {"s1": said}}]})
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
        named: dict[str, Any] = {}
        if key and key not in _PLAIN and "id" not in about:
            named["id"] = key
        yield Wrapped(".".join(path), {**about, **named, "messages": messages})
    elif isinstance(value, dict):
        own = _describe(value)
        if key and key not in _PLAIN and not own.get("id"):
            own = {"id": key} | own
        inherited = {name: said for name, said in about.items() if name not in ("id", "title")}
        for inner_key, inner in value.items():
            yield from _walk(inner, inherited | own, (*path, str(inner_key)), str(inner_key))
    else:
        for inner in list_or_empty(value):
            yield from _walk(inner, about, path, "")


def _list_messages(value: Any) -> list[dict[str, Any]]:
    """Give a list of messages, or those in an object by their ids; none of anything else."""
    listed = list_or_empty(value)
    if isinstance(value, dict):
        listed = list(value.values())
    if any(map(_is_message, listed)) and all(isinstance(each, dict) for each in listed):
        return listed
    return []


def _is_message(value: Any) -> bool:
    """Say whether an object says who says what."""
    if not isinstance(value, dict) or SPEAKERS.isdisjoint(value):
        return False
    return find_content(value)[0] != ""


def _describe(value: dict[str, Any]) -> dict[str, Any]:
    """Give what an object says about its conversations, without texts, which are counted elsewhere."""
    about: dict[str, Any] = {}
    for key, said in value.items():
        is_text = isinstance(said, str) and holds_words(said)
        if not is_text and (not isinstance(said, (dict, list)) or key in ("metadata", "meta")):
            about[key] = said
    return about
