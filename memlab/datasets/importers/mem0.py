"""mem0's dumps where they hold messages: the history of its memories, or what was given to ``add``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.common import ME, Export, Message, dig, items, name, time, turns
from memlab.datasets.importers.files import Member

_MEMORY = {
    "memory",
    "old_memory",
    "new_memory",
    "memory_id",
    "results.memory",
    "results.memory_id",
    "results.old_memory",
}


def matches(member: Member) -> bool:
    keys = member.keys
    known = {"id", "hash", "user_id", "created_at", "event", "results", "memories", "metadata"}
    return bool(_MEMORY & keys) and bool(known & keys) and "scope" not in keys


def read(source: Export) -> Iterator[Message]:
    """Read the messages that memories were made of; a memory alone is no message, and is counted."""
    for member in source.members:
        for number, raw in member.values():
            for entry in items(dig(raw, "results")) or items(dig(raw, "memories")) or [raw]:
                yield from _entry(source, entry, source.numbered(member, number))


def _entry(source: Export, entry: Any, place: str) -> Iterator[Message]:
    scope = name(dig(entry, "user_id"), dig(entry, "agent_id")) or ME
    listed = items(dig(entry, "input")) or items(dig(entry, "messages"))
    if not listed:
        source.drop("facts without their messages", scope)
    when = time(dig(entry, "created_at"))
    said = list(turns(source, scope, listed))
    key = "\x1f".join(f"{turn['role']} {turn['text']}" for turn in said)
    if said and (scope, key) in source.seen:  # One call makes several memories, each with its messages.
        source.drop("repeated messages", scope, len(said))
        return
    source.seen.add((scope, key))
    for turn in said:
        text = turn.pop("text")
        turn["timestamp"] = turn["timestamp"] or when
        session = name(dig(entry, "run_id"), dig(entry, "session_id")) or place
        yield from source.message(scope, turn["role"], text, session=session, **turn)
