"""Whose words a statement stands on: its speaker's own, or words that the speaker only forwarded or
quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlab.text.quotations import remove_quotations
from memlab.text.tokens_and_sentences import normalize_word, words

TurnRow = Mapping[str, Any]
"""A turn as a row of :class:`memlab.records.Turn`."""


def remove_words_of_others(turn: TurnRow) -> str:
    """Keep what the speaker of a turn says themselves: nothing of what they forward or quote.

    >>> from memlab.knowledge.own_or_quoted_words import remove_words_of_others
    >>> turn = {"text": "> I ski\\nI have a boat", "quoted": ["I ski"]}
    >>> remove_words_of_others(turn).split()[-2:]
    ['a', 'boat']
    """
    if turn.get("forwarded_from"):
        return ""
    return remove_quotations(turn["text"], turn.get("quoted") or [])


def is_on_words_of_others_alone(cited_turns: Sequence[TurnRow], value: str) -> bool:
    """Say whether a statement stands on words of others alone.

    It does where each turn is forwarded, or quotes what holds a word of the value while the
    speaker's own words hold none.

    :param cited_turns: those that it cites.
    """
    return all(_is_turn_on_words_of_others(turn, value) for turn in cited_turns)


def _is_turn_on_words_of_others(turn: TurnRow, value: str) -> bool:
    if turn.get("forwarded_from"):
        return True
    if not turn.get("quoted"):
        return False
    said_text = remove_words_of_others(turn)
    if value.casefold() in said_text.casefold():
        return False
    value_words = frozenset(words(value))
    said_words = frozenset(words(said_text))
    quoted_words = frozenset(words(" ".join(turn["quoted"])))
    # A word that stands on both sides tells nothing of whose the value is.
    if value_words & (said_words - quoted_words):
        return False
    return bool(value_words & quoted_words) or not value_words & said_words


def names_a_speaker_of_turns(subject_name: str, turns: Sequence[TurnRow]) -> bool:
    """Say whether a name is that of who sent one of the turns, in full or its first part."""
    name_words = list(map(normalize_word, subject_name.split()))
    if not name_words:
        return False
    for turn in turns:
        speaker_words = list(map(normalize_word, turn["speaker"].split()))
        if name_words == speaker_words[: len(name_words)]:
            return True
    return False
