"""Histories of conversations, as OpenAI-style messages, pairs or texts, and files of follow-up questions."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import DataError

FOLLOW_UP = pl.Schema({
    "thread": pl.String(), "scope": pl.String(), "kind": pl.String(), "question": pl.String(),
    "standalone": pl.String(), "answer": pl.String(), "evidence": pl.List(pl.String()),
    "history": pl.List(pl.Struct({"role": pl.String(), "content": pl.String()})),
})  # fmt: skip


_ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "gpt", "model"), "assistant"),
    **dict.fromkeys(("system", "developer", "tool", "function"), ""),
}
_log = logging.getLogger("memlab")


class Message(NamedTuple):
    """One message of a conversation; ``role`` is ``user`` or ``assistant``."""

    role: str
    content: str


def parse_messages(history: Sequence[Any]) -> tuple[Message, ...]:
    """Give a history as messages, oldest first, without system and tool messages and those without text.

    :param history: dicts of ``role`` and ``content`` (a text, or OpenAI's list of parts), pairs of
        the two, pairs of a question and its answer, or texts that alternate between user and
        assistant, the newest from the assistant. ``human`` is the user; ``ai``, ``bot``, ``gpt``
        and ``model`` are the assistant.
    :raises DataError: for another form or role, naming the message.

    >>> from memlab.conversation import parse_messages
    >>> pairs = [("user", "Who painted it?"), ("assistant", "Ann did.")]
    >>> parse_messages(["Who painted it?", "Ann did."]) == parse_messages(pairs)
    True
    """
    if isinstance(history, str | Mapping) or not isinstance(history, Iterable):
        raise DataError(
            "a history is a list of messages: dicts of role and content, pairs of them, or texts"
        )
    items = [*history]
    parsed = [
        message for i, item in enumerate(items) for message in _parse_message(item, i, len(items))
    ]
    return tuple(message for message in parsed if message.role and message.content.strip())


def read_history(path: str | Path) -> tuple[Message, ...]:
    """Read a history from a file: a JSON list of messages, an object with ``messages``, or one message a line.

    For a file without a message of the user or the assistant a warning is logged.

    :raises DataError: when the file cannot be read as any of these.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig").strip()
        try:
            given = json.loads(text or "[]")
            given = given.get("messages", [given]) if isinstance(given, dict) else given
        except ValueError:
            given = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise DataError(
            f"{path} cannot be read as a history: {why}; write a JSON list of messages"
        ) from error
    messages = parse_messages(given)
    if not messages:
        _log.warning(
            "%s holds no message of a user or an assistant: the question stays as it is", path
        )
    return messages


def read_follow_ups(path: str | Path) -> pl.DataFrame:
    """Read follow-up questions from JSON lines with the fields of :data:`FOLLOW_UP`.

    :returns: these fields with ``query_id``: the line's ``id``, else its thread and place. The
        first question of a thread has the kind ``first``.
    :raises DataError: when the file cannot be read or lacks a field.
    """
    try:
        rows = pl.read_ndjson(Path(path), infer_schema_length=None)
        if missing := [name for name in FOLLOW_UP if name not in rows.columns]:
            raise DataError(
                f"{path} has no field {missing[0]!r}; a follow-up has {', '.join(FOLLOW_UP)}"
            )
        place = pl.format("{}/{}", "thread", pl.int_range(1, pl.len() + 1).over("thread"))
        query_id = pl.col("id") if "id" in rows.columns else place
        return rows.select(*FOLLOW_UP, query_id=query_id).cast(dict(FOLLOW_UP))  # type: ignore[arg-type]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path} cannot be read as follow-ups: {error}") from error


def _parse_message(item: Any, place: int, n: int) -> list[Message]:
    if isinstance(item, str):
        return [Message("assistant" if (n - place) % 2 else "user", item)]
    is_pair = isinstance(item, Sequence) and len(item) == 2 and isinstance(item[0], str)
    if is_pair and item[0].lower() not in _ROLES and isinstance(item[1], str | None):
        return [Message("user", item[0]), Message("assistant", item[1] or "")]
    role, content = (
        item
        if is_pair
        else (item.get("role"), item.get("content"))
        if isinstance(item, Mapping)
        else ("", 0)
    )
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = "\n".join(part for part in parts if isinstance(part, str))
    # Of a call of a tool there is no content.
    if isinstance(role, str) and role.lower() in _ROLES and isinstance(content, str | None):
        return [Message(_ROLES[role.lower()], content or "")]
    shown = repr(str(item)[:80])
    raise DataError(
        f"message {place} of a history is {shown}; write role (user, assistant) and content, a pair, or text"
    )
