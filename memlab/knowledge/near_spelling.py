"""Slots and values that may be the same by their spelling, found without comparing each with each.

That two texts are one takes near vectors and a near spelling. The spelling is looked at first: few
texts of a subject are spelled nearly the same, and only those need vectors.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain, combinations, product

_NEAR_SPELLING = 0.88  # "color" and "colour", "code" and "codes"; not "maximum" and "minimum"
_DIGIT = re.compile(r"\d")
_LONG = 18
"""Letters up to which words are looked up by what is left of them without some letters."""

Group = tuple[int, tuple[str, ...]]
Earlier = dict[int, list[int]]
"""The row of a text → the rows before it that it may be the same as, in order."""


def find_near_slots(slots: Sequence[str]) -> Earlier:
    """Find the slots that may be one with an earlier one: nearly the same word by word.

    Their tokens with a digit are equal.

    :param slots: folded texts, all different.

    >>> from memlab.knowledge.near_spelling import find_near_slots
    >>> find_near_slots(["door code", "gate code", "door codes", "flat 1", "flat 2"])
    {2: [0]}
    """
    split = list(map(str.split, slots))
    near = _near_words(set(chain.from_iterable(split)))
    rows_with: defaultdict[tuple[Group, int, str], list[int]] = defaultdict(list)
    found: Earlier = {}
    for row, words in enumerate(split):
        group = (len(words), _tokens_with_digits(words))
        fewest: list[int] | None = None
        for place, word in enumerate(words):
            near_here: list[int] = []
            for other in near[word]:
                near_here += rows_with[group, place, other]
            if fewest is None or len(near_here) < len(fewest):
                fewest = near_here
        for earlier in sorted(fewest or ()):
            if all(map(_are_spelled_nearly_the_same, split[earlier], words)):
                found.setdefault(row, []).append(earlier)
        for place, word in enumerate(words):
            rows_with[group, place, word].append(row)
    return found


def find_near_values(values: Sequence[str]) -> Earlier:
    """Find the values that may be one with an earlier one: one has all words of the other.

    A value of one word stays apart, and tokens with a digit are equal.

    :param values: folded texts, all different.

    >>> from memlab.knowledge.near_spelling import find_near_values
    >>> find_near_values(["a nurse", "nurse", "a good nurse", "db 7 here", "here db 9"])
    {2: [0]}
    """
    split = list(map(str.split, values))
    word_sets = list(map(frozenset, split))
    n_with = Counter(chain.from_iterable(word_sets))
    rows_with: defaultdict[tuple[tuple[str, ...], str], list[int]] = defaultdict(list)
    rows_by_rarest: defaultdict[tuple[tuple[str, ...], str], list[int]] = defaultdict(list)
    found: Earlier = {}
    for row, words in enumerate(word_sets):
        if len(words) < 2:
            continue
        digits = _tokens_with_digits(split[row])
        rarest = min(sorted(words), key=n_with.__getitem__)
        # What has all of its words has the rarest; what it has all words of, has its rarest here.
        near = set(filter(lambda each: words <= word_sets[each], rows_with[digits, rarest]))
        for word in words:
            for each in rows_by_rarest[digits, word]:
                if word_sets[each] <= words:
                    near.add(each)
            rows_with[digits, word].append(row)
        rows_by_rarest[digits, rarest].append(row)
        if near:
            found[row] = sorted(near)
    return found


def _tokens_with_digits(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(filter(_DIGIT.search, words)))


def _are_spelled_nearly_the_same(one: str, two: str) -> bool:
    if one == two:
        return True
    return SequenceMatcher(None, one, two).ratio() >= _NEAR_SPELLING


def _near_words(words: Collection[str]) -> dict[str, set[str]]:
    """Give for each word those that are spelled nearly the same, itself among them."""
    near: dict[str, set[str]] = {}
    for word in words:
        near[word] = {word}
    for one, two in _likely_pairs(words):
        # The ratio depends on the order of the two.
        for first, second in ((one, two), (two, one)):
            if two not in near[one] and _are_spelled_nearly_the_same(first, second):
                near[one].add(two)
                near[two].add(one)
    return near


def _likely_pairs(words: Collection[str]) -> Iterator[tuple[str, str]]:
    """Give all pairs of words that may be spelled nearly the same, and others; some twice."""
    with_rest: defaultdict[str, list[str]] = defaultdict(list)
    long: list[str] = []
    almost_long: list[str] = []
    for word in words:
        if len(word) > _LONG:
            long.append(word)
            continue
        # A word that is near to a longer one has at least 11 of 14 letters of that.
        if len(word) >= _LONG * 11 // 14:
            almost_long.append(word)
        for rest in _rests(word):
            with_rest[rest].append(word)
    for sharing in with_rest.values():
        yield from combinations(sharing, 2)
    yield from combinations(long, 2)
    yield from product(long, almost_long)


def _rests(word: str) -> set[str]:
    """Give what is left of a word without as many letters as may stand in no match.

    Of two words that are nearly the same that is .12 of all letters: 3 of 14 of a word at most,
    where all letters of the other one stand in it.
    """
    rests: set[str] = set()
    for n_left in range(len(word) - 3 * len(word) // 14, len(word) + 1):
        rests.update(map("".join, combinations(word, n_left)))
    return rests
