"""Histories of conversations, as OpenAI-style messages, pairs or texts, and files of follow-up questions."""

from __future__ import annotations

import json
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


class Message(NamedTuple):
    """One message of a conversation; ``role`` is ``user`` or ``assistant``."""

    role: str
    content: str


def parse_messages(history: Sequence[Any]) -> tuple[Message, ...]:
    """Give a history as messages, oldest first, without system and tool messages and those without text.

    :param history: dicts of ``role`` and ``content`` (a text, or OpenAI's list of parts), pairs of the two, or texts
        that alternate between user and assistant, the newest from the assistant.
    :raises DataError: for another form, naming the message.

    >>> from memlab.conversation import parse_messages
    >>> pairs = [("user", "Who painted it?"), ("assistant", "Ann did.")]
    >>> parse_messages(["Who painted it?", "Ann did."]) == parse_messages(pairs)
    True
    """
    if isinstance(history, str | Mapping) or not isinstance(history, Iterable):
        raise DataError("a history is a list of messages: dicts of role and content, pairs of them, or texts")
    items = [*history]
    parsed = [_parse_message(item, i, len(items)) for i, item in enumerate(items)]
    return tuple(message for message in parsed if message.role in ("user", "assistant") and message.content.strip())


def read_history(path: str | Path) -> tuple[Message, ...]:
    """Read a history from a file: a JSON list of messages, or one message a line.

    :raises DataError: when the file cannot be read as either.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
        given = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    except (OSError, ValueError, RecursionError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise DataError(f"{path} cannot be read as a history: {why}; write a JSON list of messages") from error
    return parse_messages(given)


def read_follow_ups(path: str | Path) -> pl.DataFrame:
    """Read follow-up questions from JSON lines with the fields of :data:`FOLLOW_UP`.

    :returns: these fields with ``query_id``: the line's ``id``, else its thread and place. The first question of a
        thread has the kind ``first``.
    :raises DataError: when the file cannot be read or lacks a field.
    """
    try:
        rows = pl.read_ndjson(Path(path), infer_schema_length=None)
        if missing := [name for name in FOLLOW_UP if name not in rows.columns]:
            raise DataError(f"{path} has no field {missing[0]!r}; a follow-up has {', '.join(FOLLOW_UP)}")
        place = pl.format("{}/{}", "thread", pl.int_range(1, pl.len() + 1).over("thread"))
        query_id = pl.col("id") if "id" in rows.columns else place
        return rows.select(*FOLLOW_UP, query_id=query_id).cast(dict(FOLLOW_UP))  # type: ignore[arg-type]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path} cannot be read as follow-ups: {error}") from error


def _parse_message(item: Any, place: int, n: int) -> Message:
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
