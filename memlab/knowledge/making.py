"""A fact of what turns say: its id, its source and its sentence."""

from __future__ import annotations

import hashlib
from typing import Any

from memlab.language.lemmas import bases
from memlab.language.sentences import sentences
from memlab.records import Fact


def fact_id(turn_id: str, subject: str, predicate: str, object: str) -> str:
    """Name a fact by the turn that says it first and by what it says: other turns and other facts change no id.

    >>> from memlab.knowledge.making import fact_id
    >>> fact_id("ann/m1", "Ann", "lives in", "Oslo")
    'ann/m1/f80c5bc2cc648'
    """
    said = "\x1f".join((subject, predicate, object.casefold()))
    return f"{turn_id}/f{hashlib.blake2b(said.encode(), digest_size=6).hexdigest()}"


def make(turns: list[dict[str, Any]], said: tuple[str, str, str], *, source: str, near: str) -> Fact:
    """Make a fact of what turns say: subject, predicate and object; its text is the sentence nearest to a value."""
    first = turns[0]
    system = all(turn["role"] == "system" for turn in turns)
    words = set(bases(near))
    text = max(
        sentences(first["text"]) or [first["text"]], key=lambda sentence: len(words.intersection(bases(sentence)))
    )
    return Fact(
        fact_id(first["turn_id"], *said), first["scope"], *said, "system" if system else source,
        [turn["turn_id"] for turn in turns], first["timestamp"], None, None if system else first["speaker"], text,
        first["session_id"],
    )  # fmt: skip
