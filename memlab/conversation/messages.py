"""Histories in the forms that people have them in: messages of an OpenAI-style chat, pairs, or texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memlab.errors import DataError

READ = 6
"""Messages before a question that are read."""


class Message(NamedTuple):
    """One message: who wrote it (``user`` or ``assistant``) and what."""

    role: str
    content: str


def messages(history: Sequence[Any]) -> tuple[Message, ...]:
    """Read a history, oldest message first; system and tool messages and those without text are left out.

    :param history: dicts of ``role`` and ``content`` (a text, or OpenAI's list of parts), pairs of the two, or texts
        that alternate between user and assistant, the newest from the assistant.
    :raises DataError: for another form, naming the message.

    >>> from memlab.conversation import messages
    >>> messages(["Who painted it?", "Ann did."]) == messages([("user", "Who painted it?"), ("assistant", "Ann did.")])
    True
    """
    if isinstance(history, str | Mapping) or not isinstance(history, Iterable):
        raise DataError("a history is a list of messages: dicts of role and content, pairs of them, or texts")
    given = [*history]
    read = [_message(item, i, len(given)) for i, item in enumerate(given)]
    return tuple(message for message in read if message.role in ("user", "assistant") and message.content.strip())


def _message(item: Any, place: int, n: int) -> Message:
    if isinstance(item, str):
        return Message("assistant" if (n - place) % 2 else "user", item)
    if isinstance(item, Mapping):
        item = item.get("role"), item.get("content")
    if isinstance(item, Sequence) and len(item) == 2 and isinstance(item[0], str):
        role, content = item
        if isinstance(content, list):
            content = "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and "text" in part)
        # Of a call of a tool there is no content.
        if isinstance(content, str) or content is None:
            return Message(role, content or "")
    raise DataError(f"message {place} of a history is {str(item)[:80]!r}; write role and content, a pair, or a text")
