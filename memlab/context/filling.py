"""Filling one context: how room is shared out, which lines are taken, and which say what is there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from memlab.context.lines import MESSAGES, Line
from memlab.context.tokens import Count
from memlab.language import tokens
from memlab.language.words import NEGATED, NEGATIONS

ORDER = ("recent", "relevant", "summaries", "facts", "rollups")
# Where room that a source does not need goes: to what helps most a token first.
FLOW = ("relevant", "summaries", "facts", "rollups", "recent")
NO_ROOM, TURN_THERE, NEAR_IDENTICAL = "no room", "its turn is there", "near-identical"

_ALIKE = 0.9
_FEWEST = 4


@dataclass
class Taken:
    """What one context is made of: lines in the order in which they were taken, and what was left out.

    :param given: tokens for each source, once room had flowed on; ``spent``: what its lines and headings cost.
    :param left: source, ref and reason.
    """

    given: dict[str, int]
    lines: list[Line] = field(default_factory=list)
    spent: dict[str, int] = field(default_factory=dict)
    left: list[tuple[str, str, str]] = field(default_factory=list)

    def take_back(self) -> None:
        """Give up the line that was taken last."""
        line = self.lines.pop()
        self.spent[line.source] -= line.size
        self.left.append((line.source, line.ref, NO_ROOM))


def fill(
    offered: Mapping[str, Sequence[Line]], wanted: Mapping[str, int], *, titles: Mapping[str, int], count: Count
) -> Taken:
    """Take lines of every source while there is room: ``wanted`` tokens each, its heading (``titles``) included."""
    taken = Taken(shares(wanted, {source: _need(offered.get(source, ()), titles[source]) for source in ORDER}, FLOW))
    seen, spare = Seen(), 0
    for source in ORDER:
        room = taken.given[source] + spare
        taken.spent[source] = _take(taken, seen, offered.get(source, ()), titles[source], room=room, count=count)
        spare = room - taken.spent[source]
    return taken


def _need(lines: Sequence[Line], title: int) -> int:
    heads = {line.head: line.head_size for line in lines}
    return sum(line.size for line in lines) + sum(heads.values()) + title if lines else 0


def shares(wanted: Mapping[str, int], needs: Mapping[str, int], flow: Sequence[str]) -> dict[str, int]:
    """Share room out: each source its share, or its need if that is less; the rest to those that need more.

    >>> shares({"a": 10, "b": 10}, {"a": 3, "b": 30}, ["b", "a"])
    {'a': 3, 'b': 17}
    """
    given = {source: min(share, needs[source]) for source, share in wanted.items()}
    rest = sum(wanted.values()) - sum(given.values())
    for source in flow:
        more = min(rest, needs[source] - given[source])
        given[source] += more
        rest -= more
    return given


def _take(taken: Taken, seen: Seen, lines: Sequence[Line], title: int, *, room: int, count: Count) -> int:
    """Take lines of one source until one has no room, and give the tokens that they cost."""
    spent, heads, full = 0, {""}, False
    for line in lines:
        reason = NO_ROOM if full else seen.reason(line) if line.written else "empty"
        if not reason:
            around = (line.head_size if line.head not in heads else 0) + (0 if spent else title)
            fitted = line.fitted(room - spent - around, count)
            full = fitted is None or fitted.cut
            if fitted is not None:
                spent += fitted.size + around
                heads.add(line.head)
                taken.lines.append(fitted)
                seen.add(fitted)
                continue
            reason = NO_ROOM
        taken.left.append((line.source, line.ref, reason))
    return spent


@lru_cache(maxsize=100_000)
def words(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Give the words of a text, and which there are."""
    order = tuple(tokens.words(text))
    return order, frozenset(order)


def alike(a: frozenset[str], b: frozenset[str]) -> bool:
    """Say whether two texts are near-identical: nine of ten different words are shared, numbers and negations all.

    >>> from memlab.context.filling import alike, words
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
