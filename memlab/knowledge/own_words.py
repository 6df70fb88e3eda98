"""Whose words a statement stands on: its speaker's own, or words that the speaker only forwarded or
quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlab.text.quotations import remove_quotations
from memlab.text.tokens import normalize_word, words

TurnRow = Mapping[str, Any]
"""A turn as a row of :class:`memlab.records.Turn`."""


def own_words(turn: TurnRow) -> str:
    """Keep what the speaker of a turn says themselves: nothing of what they forward or quote.

    >>> from memlab.knowledge.own_words import own_words
    >>> own_words({"text": "> I ski\\nI have a boat", "quoted": ["I ski"]}).split()[-2:]
    ['a', 'boat']
    """
    if turn.get("forwarded_from"):
        return ""
    return remove_quotations(turn["text"], turn.get("quoted") or [])


def is_reported(turns: Sequence[TurnRow], value: str) -> bool:
    """Say whether a statement stands on words of others alone.

    It does where each turn is forwarded, or quotes what holds a word of the value while the
    speaker's own words hold none.

    :param turns: those that it cites.
    """
    return all(_is_reported_by(turn, value) for turn in turns)


def _is_reported_by(turn: TurnRow, value: str) -> bool:
    if turn.get("forwarded_from"):
        return True
    if not turn.get("quoted"):
        return False
    said = own_words(turn)
    if value.casefold() in said.casefold():
        return False
    stated = frozenset(words(value))
    own = frozenset(words(said))
    quoted = frozenset(words(" ".join(turn["quoted"])))
    # A word that stands on both sides tells nothing of whose the value is.
    if stated & (own - quoted):
        return False
    return bool(stated & quoted) or not stated & own


def is_about_speaker(about: str, turns: Sequence[TurnRow]) -> bool:
    """Say whether a name is that of who sent one of the turns, in full or its first part."""
    name = [normalize_word(word) for word in about.split()]
    if not name:
        return False
    for turn in turns:
        speaker = [normalize_word(word) for word in turn["speaker"].split()]
        if name == speaker[: len(name)]:
            return True
    return False
