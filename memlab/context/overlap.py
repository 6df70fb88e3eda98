"""Whether a line says what stands in a context already."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from memlab.context.lines import MESSAGES, Line
from memlab.language import tokens
from memlab.language.words import NEGATED, NEGATIONS

TURN_THERE, NEAR_IDENTICAL = "its turn is there", "near-identical"

_ALIKE = 0.9
_FEWEST = 4


@lru_cache(maxsize=100_000)
def words(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Give the words of a text, and which there are."""
    order = tuple(tokens.words(text))
    return order, frozenset(order)


def alike(a: frozenset[str], b: frozenset[str]) -> bool:
    """Say whether two texts are near-identical: nine of ten different words are shared, numbers and negations all.

    >>> from memlab.context.overlap import alike, words
    >>> alike(words("I paid $50 for the lamp.")[1], words("I paid $60 for the lamp.")[1])
    False
    """
    fewer, more = sorted((len(a), len(b)))
    if fewer < _FEWEST or fewer < _ALIKE * more or len(a & b) < _ALIKE * len(a | b):
        return False
    return not any(word in NEGATIONS or word in NEGATED or any(c.isdigit() for c in word) for word in a ^ b)


@dataclass
class Seen:
    """What a context says so far.

    :param turns: turns that are quoted, also in part; ``whole``: the words of those that are quoted in full.
    :param texts: the words of every line, in their order, and which there are.
    """

    turns: set[str] = field(default_factory=set)
    whole: dict[str, frozenset[str]] = field(default_factory=dict)
    texts: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)

    def reason(self, line: Line) -> str:
        """Say why a line would repeat what is there; empty where it would not."""
        if line.source in MESSAGES:
            if self.turns.intersection(line.turns):
                return TURN_THERE
        elif line.turns and all(turn in self.whole for turn in line.turns):
            quoted = frozenset[str]().union(*(self.whole[turn] for turn in line.turns))
            # A fact may say more than its turn in the same words: who "I" is.
            if line.source != "facts" or quoted.issuperset(words(line.text)[1]):
                return TURN_THERE
        order, own = words(line.written)
        near = order in self.texts or any(alike(own, other) for other in self.texts.values())
        return NEAR_IDENTICAL if order and near else ""

    def add(self, line: Line) -> None:
        """Note a line that was taken."""
        order, own = words(line.written)
        self.texts[order] = own
        if line.source in MESSAGES:
            self.turns.update(line.turns)
            if not line.cut:
                self.whole.update(dict.fromkeys(line.turns, own))
