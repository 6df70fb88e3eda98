"""ShareGPT: conversations of ``from`` and ``value``, and its kin with ``role`` and ``content`` or with pairs.

Layout: axolotl's page on conversation data sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.importers.common import ME, Message, any_of, conversation, decoded, dig, place
from memlab.datasets.reading import Source

_LISTS = ("conversations", "conversation", "items")
_PAIR = {
    "user": ("human", "user", "input", "instruction", "prompt"),
    "assistant": ("gpt", "assistant", "output", "response", "bot"),
}
_TURN = ("from", "value", "role", *_PAIR["user"], *_PAIR["assistant"])


def detect(file: Source) -> bool:
    turns = {f"{key}.{part}" for key in _LISTS for part in _TURN}
    return (bool(file.keys & turns) and "evidence_items" not in file.keys) or {"from", "value"} <= file.keys


def records(source: Source) -> Iterator[Message]:
    """Read every conversation as a session of one scope."""
    for file in source.members:
        for number, raw in file.values():
            listed = next((found for key in _LISTS if isinstance(found := decoded(dig(raw, key)), list)), None)
            if listed is None:
                yield from conversation(source, {}, [raw], PurePosixPath(file.name).stem)
                continue
            source.drop("system messages", ME, bool(any_of(raw, "system", "system_prompt")))
            session = any_of(raw, "id", "conversation_id", "conversation_hash") or place(source, file, number)
            yield from conversation(source, raw, [turn for each in listed for turn in _turns(each)], session)


def _turns(raw: Any) -> Iterator[Any]:
    """Take a pair of question and answer apart; anything else is one turn."""
    if not isinstance(raw, dict) or {"from", "role", "value", "content"} & raw.keys():
        yield raw
        return
    for role, keys in _PAIR.items():
        if said := next((raw[key] for key in keys if isinstance(raw.get(key), str)), None):
            yield {"role": role, "content": said}
