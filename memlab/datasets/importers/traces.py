"""What the importers of traces share: a conversation out of runs that each repeat what was said before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memlab.datasets.importers.common import Message, decoded, dig, message, turns
from memlab.datasets.reading import Source

_ASKED = (
    *("messages", "chat_history", "history", "input", "question", "query", "human_input", "prompt"),
    *("text", "content"),
)
_ANSWERED = (
    *("messages", "message", "choices", "generations", "output", "answer", "response", "result"),
    *("text", "content"),
)


@dataclass
class Step:
    """A run of a model or of a whole application.

    :param key: what it is sorted by within its conversation.
    """

    scope: str
    session: str
    key: str
    asked: Any
    answered: Any
    begun: Any = None
    ended: Any = None


def conversations(source: Source, steps: list[Step]) -> Iterator[Message]:
    """Give every message once, session by session: a run takes up what the runs before it ended with."""
    sessions: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        sessions.setdefault((step.scope, step.session), []).append(step)
    for (scope, session), runs in sessions.items():
        said: list[Message] = []
        for run in sorted(runs, key=lambda run: run.key):
            asked, answered = _messages(run.asked, _ASKED, "user"), _messages(run.answered, _ANSWERED, "assistant")
            for listed, when in ((asked, run.begun), (answered, run.ended or run.begun)):
                heard = list(turns(source, scope, listed))
                new = heard[_overlap(said, heard) :]
                said += [turn | {"timestamp": turn["timestamp"] or when} for turn in new]
        for turn in said:
            text = turn.pop("text")
            yield from message(source, scope, turn["role"], text, session=session, **turn)


def _overlap(said: list[Message], heard: list[Message]) -> int:
    """Count the first messages of a run that the conversation so far ends with."""
    old, new = [[(turn["role"], turn["text"]) for turn in each] for each in (said, heard)]
    sizes = range(min(len(old), len(new)), 0, -1)
    return next((size for size in sizes if old[-size:] == new[:size]), 0)


def _messages(value: Any, keys: tuple[str, ...], role: str) -> list[Any]:
    """Find the messages in what went into a run or came out of it; a bare text is of the role."""
    value = decoded(value)
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value.strip() else []
    if isinstance(value, list):
        texts = [each for each in value if isinstance(each, str)]
        if len(value) == len(texts) == 2:
            return [value]
        if texts:
            return [{"role": role, "content": "\n".join(texts)}]
        return [found for each in value for found in _messages(each, keys, role)]
    if not isinstance(value, dict):
        return []
    if {"role", "kwargs", "tool_calls"} & value.keys() or (value.get("type") and {"content", "data"} & value.keys()):
        return [value]
    inner = dig(value, "message") or dig(value, "kwargs")
    if isinstance(inner, dict):
        return _messages(inner, keys, role)
    found: list[Any] = []
    for key in keys:
        found += _messages(value[key], keys, role) if value.get(key) else []
        if found and value.get(key) and not key.endswith("history"):
            break
    return found
