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
EarlierRows = dict[int, list[int]]
"""The row of a text → the rows before it that it may be the same as, in order."""


def find_similarly_spelled_slots(folded_slots: Sequence[str]) -> EarlierRows:
    """Find the slots that may be one with an earlier one: nearly the same word by word.

    Their tokens with a digit are equal.

    :param folded_slots: folded texts, all different.

    >>> from memlab.knowledge.near_spelling import find_similarly_spelled_slots
    >>> find_similarly_spelled_slots(["door code", "gate code", "door codes", "flat 1", "flat 2"])
    {2: [0]}
    """
    slot_words = list(map(str.split, folded_slots))
    near_words = _similarly_spelled_by_word(set(chain.from_iterable(slot_words)))
    rows_with: defaultdict[tuple[Group, int, str], list[int]] = defaultdict(list)
    earlier_by_row: EarlierRows = {}
    for row, own_words in enumerate(slot_words):
        word_group = (
            len(own_words),
            _sorted_tokens_with_digits(own_words),
        )
        fewest_rows: list[int] | None = None
        for word_place, own_word in enumerate(own_words):
            near_rows: list[int] = []
            for near_word in near_words[own_word]:
                near_rows += rows_with[word_group, word_place, near_word]
            if fewest_rows is None or len(near_rows) < len(fewest_rows):
                fewest_rows = near_rows
        for earlier_row in sorted(fewest_rows or ()):
            if all(map(_are_spelled_similarly, slot_words[earlier_row], own_words)):
                earlier_by_row.setdefault(row, []).append(earlier_row)
        for word_place, own_word in enumerate(own_words):
            rows_with[word_group, word_place, own_word].append(row)
    return earlier_by_row


def find_values_containing_one_another(folded_values: Sequence[str]) -> EarlierRows:
    """Find the values that may be one with an earlier one: one has all words of the other.

    A value of one word stays apart, and tokens with a digit are equal.

    :param folded_values: folded texts, all different.

    >>> from memlab.knowledge.near_spelling import find_values_containing_one_another
    >>> values = ["a nurse", "nurse", "a good nurse", "db 7 here", "here db 9"]
    >>> find_values_containing_one_another(values)
    {2: [0]}
    """
    value_words = list(map(str.split, folded_values))
    word_sets = list(map(frozenset, value_words))
    rows_of_word = Counter(chain.from_iterable(word_sets))
    rows_with: defaultdict[tuple[tuple[str, ...], str], list[int]] = defaultdict(list)
    rows_by_rarest: defaultdict[tuple[tuple[str, ...], str], list[int]] = defaultdict(list)
    earlier_by_row: EarlierRows = {}
    for row, word_set in enumerate(word_sets):
        if len(word_set) < 2:
            continue
        digits = _sorted_tokens_with_digits(value_words[row])
        rarest_word = min(sorted(word_set), key=rows_of_word.__getitem__)
        # What has all of its words has the rarest; what it has all words of, has its rarest here.
        near_rows = set(
            filter(
                lambda earlier_row: word_set <= word_sets[earlier_row],
                rows_with[digits, rarest_word],
            )
        )
        for own_word in word_set:
            for earlier_row in rows_by_rarest[digits, own_word]:
                if word_sets[earlier_row] <= word_set:
                    near_rows.add(earlier_row)
            rows_with[digits, own_word].append(row)
        rows_by_rarest[digits, rarest_word].append(row)
        if near_rows:
            earlier_by_row[row] = sorted(near_rows)
    return earlier_by_row


def _sorted_tokens_with_digits(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(filter(_DIGIT.search, words)))


def _are_spelled_similarly(one_word: str, other_word: str) -> bool:
    if one_word == other_word:
        return True
    return SequenceMatcher(None, one_word, other_word).ratio() >= _NEAR_SPELLING


def _similarly_spelled_by_word(words: Collection[str]) -> dict[str, set[str]]:
    """Give for each word those that are spelled nearly the same, itself among them."""
    near_by_word: dict[str, set[str]] = {}
    for word in words:
        near_by_word[word] = {word}
    for first_word, second_word in _candidate_word_pairs(words):
        # The ratio depends on the order of the two.
        for compared_word, other_word in ((first_word, second_word), (second_word, first_word)):
            if second_word not in near_by_word[first_word] and _are_spelled_similarly(
                compared_word, other_word
            ):
                near_by_word[first_word].add(second_word)
                near_by_word[second_word].add(first_word)
    return near_by_word


def _candidate_word_pairs(words: Collection[str]) -> Iterator[tuple[str, str]]:
    """Give all pairs of words that may be spelled nearly the same, and others; some twice."""
    words_by_rest: defaultdict[str, list[str]] = defaultdict(list)
    long_words: list[str] = []
    almost_long_words: list[str] = []
    for word in words:
        if len(word) > _LONG:
            long_words.append(word)
            continue
        # A word that is near to a longer one has at least 11 of 14 letters of that.
        if len(word) >= _LONG * 11 // 14:
            almost_long_words.append(word)
        for word_rest in _forms_with_letters_left_out(word):
            words_by_rest[word_rest].append(word)
    for sharing in words_by_rest.values():
        yield from combinations(sharing, 2)
    yield from combinations(long_words, 2)
    yield from product(long_words, almost_long_words)


def _forms_with_letters_left_out(word: str) -> set[str]:
    """Give what is left of a word without as many letters as may stand in no match.

    Of two words that are nearly the same that is .12 of all letters: 3 of 14 of a word at most,
    where all letters of the other one stand in it.
    """
    word_rests: set[str] = set()
    for n_left in range(len(word) - 3 * len(word) // 14, len(word) + 1):
        word_rests.update(map("".join, combinations(word, n_left)))
    return word_rests
