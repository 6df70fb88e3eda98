"""Histories of conversations, in several forms, and files of follow-up questions."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import DataError
from memlab.terminal_text import shorten_line

FOLLOW_UP = pl.Schema(
    {
        "thread": pl.String(),
        "scope": pl.String(),
        "kind": pl.String(),
        "question": pl.String(),
        "standalone": pl.String(),
        "answer": pl.String(),
        "evidence": pl.List(pl.String()),
        "history": pl.List(pl.Struct({"role": pl.String(), "content": pl.String()})),
    }
)

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
    """Read a history as messages, oldest first.

    System and tool messages and those without text are left out.

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
    history_items = [*history]
    messages: list[Message] = []
    for place, history_item in enumerate(history_items):
        messages += _parse_history_item(history_item, place, len(history_items))
    return tuple(filter(_has_role_and_text, messages))


def _has_role_and_text(message: Message) -> bool:
    """Say whether a message is of the user or the assistant, and has a text."""
    return message.role != "" and message.content.strip() != ""


def read_history(path: str | Path) -> tuple[Message, ...]:
    """Read a history from a file.

    It holds a JSON list of messages, an object with ``messages``, or one message a line.
    For a file without a message of the user or the assistant a warning is logged.

    :raises DataError: when the file cannot be read as any of these.
    """
    try:
        history = _parse_json_or_json_lines(Path(path).read_text(encoding="utf-8-sig").strip())
    except (OSError, ValueError, RecursionError) as error:
        failure_reason: object = error
        if isinstance(error, OSError):
            failure_reason = error.strerror or error
        raise DataError(
            f"{path} cannot be read as a history: {failure_reason}; write a JSON list of messages"
        ) from error
    messages = parse_messages(history)
    if not messages:
        _log.warning(
            "%s holds no message of a user or an assistant: the question stays as it is", path
        )
    return messages


def _parse_json_or_json_lines(text: str) -> Any:
    """Parse a JSON document; what is none is read line by line."""
    try:
        parsed_value = json.loads(text or "[]")
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if isinstance(parsed_value, dict):
        return parsed_value.get("messages", [parsed_value])
    return parsed_value


def read_follow_ups(path: str | Path) -> pl.DataFrame:
    """Read follow-up questions from JSON lines with the fields of :data:`FOLLOW_UP`.

    :returns: these fields with ``query_id``: the line's ``id``, else its thread and place. The
        first question of a thread has the kind ``first``.
    :raises DataError: when the file cannot be read or lacks a field.
    """
    try:
        follow_up_rows = pl.read_ndjson(Path(path), infer_schema_length=None)
        for field_name in FOLLOW_UP:
            if field_name not in follow_up_rows.columns:
                raise DataError(
                    f"{path} has no field {field_name!r}; a follow-up has {', '.join(FOLLOW_UP)}"
                )
        query_id = pl.format("{}/{}", "thread", pl.int_range(1, pl.len() + 1).over("thread"))
        if "id" in follow_up_rows.columns:
            query_id = pl.col("id")
        follow_ups = follow_up_rows.select(*FOLLOW_UP, query_id=query_id)
        return follow_ups.cast(dict(FOLLOW_UP))  # type: ignore[arg-type]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path} cannot be read as follow-ups: {error}") from error


def _parse_history_item(raw_item: Any, place: int, n_items: int) -> list[Message]:
    """Read one item of a history: one message, or two of a pair of a question and its answer."""
    if isinstance(raw_item, str):
        # Texts alternate, and the newest is from the assistant.
        is_assistant = (n_items - place) % 2 == 1
        return [Message("assistant" if is_assistant else "user", raw_item)]
    if _is_pair_beginning_with_text(raw_item):
        role_name, content = raw_item
        if role_name.lower() not in _ROLES and isinstance(content, str | None):
            return [Message("user", role_name), Message("assistant", content or "")]
    elif isinstance(raw_item, Mapping):
        role_name = raw_item.get("role")
        content = raw_item.get("content")
    else:
        raise _make_unreadable_item_error(raw_item, place)
    content_text = _join_text_parts_or_keep_content(content)
    known_role = _ROLES.get(role_name.lower()) if isinstance(role_name, str) else None
    if known_role is None or not isinstance(content_text, str):
        raise _make_unreadable_item_error(raw_item, place)
    return [Message(known_role, content_text)]


def _is_pair_beginning_with_text(raw_item: object) -> bool:
    if not isinstance(raw_item, Sequence):
        return False
    return len(raw_item) == 2 and isinstance(raw_item[0], str)


def _join_text_parts_or_keep_content(raw_content: Any) -> object:
    """Give the text of OpenAI's list of parts, one a line; any other content as it is."""
    # Of a call of a tool there is no content.
    if raw_content is None:
        return ""
    if not isinstance(raw_content, list):
        return raw_content
    part_texts = (
        content_part.get("text")
        for content_part in raw_content
        if isinstance(content_part, Mapping)
    )
    return "\n".join(text for text in part_texts if isinstance(text, str))


def _make_unreadable_item_error(raw_item: object, place: int) -> DataError:
    beginning = repr(shorten_line(raw_item, 80))
    return DataError(
        f"message {place} of a history is {beginning}; write role (user, assistant) and content, "
        "a pair, or text"
    )
