"""Whether a line says what stands in a context already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil

from memlab.language import tokens
from memlab.language.words import NEGATED, NEGATIONS

MESSAGES = ("recent", "relevant")
TURN_THERE, NEAR_IDENTICAL = "its turn is there", "near-identical"

_ALIKE = 0.9
_FEWEST = 4


@lru_cache(maxsize=100_000)
def words(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Give the words of a text, and which there are."""
    order = tuple(tokens.words(text))
    return order, frozenset(order)


@lru_cache(maxsize=100_000)
def prefix(held: frozenset[str]) -> tuple[str, ...]:
    """Give the words of which two near-identical texts share at least one: the first, in an order that all texts have.

    Source: prefix filtering, Chaudhuri, Ganti and Kaushik, A primitive operator for similarity joins (ICDE 2006).
    """
    # Long words first: they are in few texts.
    return tuple(sorted(held, key=lambda word: (-len(word), word))[: len(held) - ceil(_ALIKE * len(held)) + 1])


def alike(one: frozenset[str], two: frozenset[str]) -> bool:
    """Say whether two texts are near-identical: nine of ten different words are shared, numbers and negations all.

    >>> from memlab.context._overlap import alike, words
    >>> alike(words("I paid $50 for the lamp.")[1], words("I paid $60 for the lamp.")[1])
    False
    """
    if min(len(one), len(two)) < _FEWEST or len(one & two) < _ALIKE * len(one | two):
        return False
    return not any(map(_telling, one ^ two))


def _telling(word: str) -> bool:
    return word in NEGATIONS or word in NEGATED or any(c.isdigit() for c in word)


@dataclass
class Seen:
    """What a context holds so far.

    :param turns: turns that are quoted, also in part.
    :param whole: words of the turns that are quoted in full.
    :param texts: the words of every line, in their order.
    :param by_word: lines by the words of their :func:`prefix` and their size: near-identical ones share a word, and
        are of like size.
    """

    turns: set[str] = field(default_factory=set)
    whole: dict[str, frozenset[str]] = field(default_factory=dict)
    texts: set[tuple[str, ...]] = field(default_factory=set)
    by_word: dict[tuple[str, int], list[frozenset[str]]] = field(default_factory=dict)

    def reason(self, source: str, said: str, text: str, turns: Iterable[str]) -> str:
        """Say why a line of a source would repeat what is there; empty where it would not.

        :param said: what it says; ``text``: how it is written down.
        """
        evidence = list(turns)
        if source in MESSAGES:
            if self.turns.intersection(evidence):
                return TURN_THERE
        elif evidence and all(turn in self.whole for turn in evidence):
            quoted = frozenset[str]().union(*(self.whole[turn] for turn in evidence))
            # A fact may say more than its turn in the same words: who "I" is.
            if source != "facts" or quoted.issuperset(words(said)[1]):
                return TURN_THERE
        order, mine = words(text)
        sizes = range(int(_ALIKE * len(mine)), int(len(mine) / _ALIKE) + 2)
        keys = ((word, size) for word in prefix(mine) for size in sizes)
        near = order in self.texts or any(alike(mine, other) for key in keys for other in self.by_word.get(key, ()))
        return NEAR_IDENTICAL if order and near else ""

    def add(self, source: str, text: str, turns: Iterable[str], *, cut: bool) -> None:
        """Note a line that was taken."""
        order, mine = words(text)
        self.texts.add(order)
        for word in prefix(mine):
            self.by_word.setdefault((word, len(mine)), []).append(mine)
        if source in MESSAGES:
            self.turns.update(turns)
            if not cut:
                self.whole.update(dict.fromkeys(turns, mine))
