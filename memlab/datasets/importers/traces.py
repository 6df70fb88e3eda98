"""What the importers of traces share: a conversation out of runs that each repeat what was said before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memlab.datasets.importers.common import Export, Message, decoded, dig, turns

_ASKED = (
    "messages",
    "chat_history",
    "history",
    "input",
    "question",
    "query",
    "human_input",
    "prompt",
    "text",
    "content",
)
_ANSWERED = (
    "messages",
    "message",
    "choices",
    "generations",
    "output",
    "answer",
    "response",
    "result",
    "text",
    "content",
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


def conversations(export: Export, steps: list[Step]) -> Iterator[Message]:
    """Give every message once, session by session: a run takes up what the runs before it ended with."""
    sessions: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        sessions.setdefault((step.scope, step.session), []).append(step)
    for (scope, session), runs in sessions.items():
        said: list[Message] = []
        for run in sorted(runs, key=lambda run: run.key):
            for listed, when in ((_asked(run.asked), run.begun), (_answered(run.answered), run.ended or run.begun)):
                heard = list(turns(export, scope, listed))
                new = heard[_overlap(said, heard) :]
                said += [turn | {"timestamp": turn["timestamp"] or when} for turn in new]
        for turn in said:
            text = turn.pop("text")
            yield from export.message(scope, turn["role"], text, session=session, **turn)


def _overlap(said: list[Message], heard: list[Message]) -> int:
    """Count the first messages of a run that the conversation so far ends with."""
    old, new = [[(turn["role"], turn["text"]) for turn in each] for each in (said, heard)]
    for size in range(min(len(old), len(new)), 0, -1):
        if old[-size:] == new[:size]:
            return size
    return 0


def _asked(inputs: Any) -> list[Any]:
    return _messages(inputs, _ASKED, "user")


def _answered(outputs: Any) -> list[Any]:
    return _messages(outputs, _ANSWERED, "assistant")


def _messages(value: Any, keys: tuple[str, ...], role: str) -> list[Any]:
    """Find the messages in what went into a run or came out of it; a bare text is of the role."""
    value = decoded(value)
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value.strip() else []
    if isinstance(value, list):
        if len(value) == 2 and all(isinstance(each, str) for each in value):
            return [value]
        if any(isinstance(each, str) for each in value):
            return [{"role": role, "content": "\n".join(each for each in value if isinstance(each, str))}]
        return [message for each in value for message in _messages(each, keys, role)]
    if not isinstance(value, dict):
        return []
    if {"role", "kwargs", "tool_calls"} & value.keys() or (value.get("type") and {"content", "data"} & value.keys()):
        return [value]
    inner = dig(value, "message") or dig(value, "kwargs")
    if isinstance(inner, dict):
        return _messages(inner, keys, role)
    found: list[Any] = []
    for key in keys:
        if value.get(key) and (found := [*found, *_messages(value[key], keys, role)]) and not key.endswith("history"):
            break
    return found
