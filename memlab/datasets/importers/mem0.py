"""mem0's dumps where they hold messages: the history of its memories, or what was given to ``add``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.common import ME, Message, any_of, dig, items, message, place, time, turns
from memlab.datasets.reading import Source

_NAMES = ("memory", "old_memory", "new_memory", "memory_id")
_MEMORY = {*_NAMES, "results.memory", "results.memory_id", "results.old_memory"}
_ABOUT = {"id", "hash", "user_id", "created_at", "event", "results", "memories", "metadata"}


def detect(file: Source) -> bool:
    return bool(_MEMORY & file.keys) and bool(_ABOUT & file.keys) and "scope" not in file.keys


def records(source: Source) -> Iterator[Message]:
    """Read the messages that memories were made of; a memory alone is no message, and is counted."""
    for file in source.members:
        for number, raw in file.values():
            for entry in items(dig(raw, "results")) or items(dig(raw, "memories")) or [raw]:
                yield from _entry(source, entry, place(source, file, number))


def _entry(source: Source, entry: Any, within: str) -> Iterator[Message]:
    scope = any_of(entry, "user_id", "agent_id") or ME
    listed = items(dig(entry, "input")) or items(dig(entry, "messages"))
    source.drop("facts without their messages", scope, not listed)
    said = list(turns(source, scope, listed))
    key = scope, "\x1f".join(f"{turn['role']} {turn['text']}" for turn in said)
    if said and key in source.report.seen:  # One call makes several memories, each with its messages.
        source.drop("repeated messages", scope, len(said))
        return
    source.report.seen.add(key)
    session, when = any_of(entry, "run_id", "session_id") or within, time(dig(entry, "created_at"))
    for turn in said:
        text, turn["timestamp"] = turn.pop("text"), turn["timestamp"] or when
        yield from message(source, scope, turn["role"], text, session=session, **turn)
