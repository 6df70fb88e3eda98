"""Messages as the OpenAI API takes them: a conversation a line or record, or one list of messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.importers.common import ME, Export, Message, decoded, dig, items, name, time, turns
from memlab.datasets.importers.files import Member


def matches(member: Member) -> bool:
    keys = member.keys
    if "agents" in keys or "run_type" in keys or "scope" in keys:
        return False
    return {"messages.role", "messages.content"} <= keys or "body.messages.role" in keys or {"role", "content"} <= keys


def read(source: Export) -> Iterator[Message]:
    """Read every conversation as a session; a list of single messages is one."""
    for member in source.members:
        stem = PurePosixPath(member.name).stem
        for number, raw in member.values():
            listed = decoded(dig(raw, "messages") or dig(raw, "body", "messages"))
            if isinstance(listed, list):
                session = name(
                    *(raw.get(key) for key in ("conversation_id", "thread_id", "session_id", "custom_id", "id"))
                )
                yield from conversation(source, raw, listed, session or source.numbered(member, number))
            elif isinstance(raw, list):
                yield from conversation(source, {}, raw, source.numbered(member, number))
            else:
                yield from conversation(source, {}, [raw], stem)


def conversation(source: Export, about: dict[str, Any], listed: list[Any], session: str) -> Iterator[Message]:
    """Give the messages of one conversation; its time is that of messages without one."""
    scope = name(about.get("user_id"), about.get("user"), dig(about, "metadata", "user_id")) or ME
    when = time(about.get("created_at")) or time(about.get("created")) or time(about.get("timestamp"))
    for turn in turns(source, scope, items(listed)):
        text = turn.pop("text")
        turn["timestamp"] = turn["timestamp"] or when
        yield from source.message(scope, turn["role"], text, session=session, **turn)
