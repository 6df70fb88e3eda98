"""Facts as a model states them in its answer about a session."""

from __future__ import annotations

from typing import Any

_USUAL = {
    "kind": "state",
    "holds": True,
    "values": "one",
    "since": "",
    "until": "",
    "effects": [],
    "said_by": "",
    "source": "stated",
}


def stated_fact(
    about: str, slot: str, value: str, *, sentence: str, turns: list[int], **parts: Any
) -> dict[str, Any]:
    """Give a fact of an answer.

    :param turns: numbers of the turns that state it, from 1.
    :param parts: what of it is not as usual: ``kind``, ``holds``, ``effects`` …
    """
    stated = {"about": about, "slot": slot, "value": value, "sentence": sentence, "turns": turns}
    return _USUAL | stated | parts


def facts_answer(*facts: dict[str, Any]) -> dict[str, Any]:
    """Give the answer that states some facts, and names no entities."""
    return {"facts": [*facts], "entities": [], "relations": []}
