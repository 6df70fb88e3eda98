"""ShareGPT: conversations of ``from`` and ``value``, and its kin with ``role`` and ``content`` or with pairs.

Layout: axolotl's page on conversation data sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.importers.common import Export, Message, decoded, dig, name
from memlab.datasets.importers.files import Member
from memlab.datasets.importers.openai_messages import conversation

_LISTS = ("conversations", "conversation", "items")
_ASKED, _ANSWERED = (
    ("human", "user", "input", "instruction", "prompt"),
    ("gpt", "assistant", "output", "response", "bot"),
)
_TURNS = {f"{a}.{b}" for a in _LISTS for b in ("from", "value", "role", *_ASKED, *_ANSWERED)}


def matches(member: Member) -> bool:
    keys = member.keys
    return (bool(keys & _TURNS) and "evidence_items" not in keys) or {"from", "value"} <= keys


def read(source: Export) -> Iterator[Message]:
    """Read every conversation as a session of one scope."""
    for member in source.members:
        for number, raw in member.values():
            listed = next((found for key in _LISTS if isinstance(found := decoded(dig(raw, key)), list)), None)
            if listed is None:
                yield from conversation(source, {}, [raw], PurePosixPath(member.name).stem)
                continue
            if name(raw.get("system"), raw.get("system_prompt")):
                source.drop("system messages", "me")
            session = name(raw.get("id"), raw.get("conversation_id"), raw.get("conversation_hash")) or source.numbered(
                member, number
            )
            yield from conversation(source, raw, [turn for each in listed for turn in _turns(each)], session)


def _turns(raw: Any) -> Iterator[Any]:
    """Take a pair of question and answer apart; anything else is one turn."""
    if not isinstance(raw, dict) or {"from", "role", "value", "content"} & raw.keys():
        yield raw
        return
    for role, keys in (("user", _ASKED), ("assistant", _ANSWERED)):
        if said := next((raw[key] for key in keys if isinstance(raw.get(key), str)), None):
            yield {"role": role, "content": said}
