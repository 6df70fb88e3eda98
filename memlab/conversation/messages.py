"""Histories in the forms that people have them in: messages of an OpenAI-style chat, pairs, or texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memlab.errors import DataError


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


def read_history(path: str | Path) -> tuple[Message, ...]:
    """Read a history from a file: a JSON list of messages, or one message a line.

    :raises DataError: when the file cannot be read as either.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
        given = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as a history: {error}; write a JSON list of messages") from error
    return messages(given)


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
