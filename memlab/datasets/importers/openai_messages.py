"""Messages as the OpenAI API takes them: a conversation a line or record, or one list of messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from memlab.datasets.importers.common import Message, any_of, conversation, decoded, dig, place
from memlab.datasets.reading import Source


def detect(file: Source) -> bool:
    keys = file.keys
    if keys & {"agents", "run_type", "scope"}:
        return False
    return {"messages.role", "messages.content"} <= keys or "body.messages.role" in keys or {"role", "content"} <= keys


def records(source: Source) -> Iterator[Message]:
    """Read every conversation as a session; a list of single messages is one."""
    for file in source.members:
        for number, raw in file.values():
            listed = decoded(dig(raw, "messages") or dig(raw, "body", "messages"))
            if isinstance(listed, list):
                session = any_of(raw, "conversation_id", "thread_id", "session_id", "custom_id", "id")
                yield from conversation(source, raw, listed, session or place(source, file, number))
            elif isinstance(raw, list):
                yield from conversation(source, {}, raw, place(source, file, number))
            else:
                yield from conversation(source, {}, [raw], PurePosixPath(file.name).stem)
