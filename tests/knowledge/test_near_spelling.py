"""Slots and values are joined as if each were compared with each."""

from __future__ import annotations

import random
from collections.abc import Callable
from difflib import SequenceMatcher

import pytest

from memlab.knowledge.near_spelling import (
    EarlierRows,
    find_similarly_spelled_slots,
    find_values_containing_one_another,
)

WORDS = (
    *("color", "code", "address", "appointment", "is", "the", "b7", "room12345", "weiß"),
    *("internationalisation", "donaudampfschifffahrt", "maximum", "駅前の駐輪場"),
)


def misspelled(word: str, draw: random.Random) -> str:
    """Give a word with up to three letters left out, added or exchanged."""
    letters = list(word)
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
        place = draw.randrange(len(letters))
        change = draw.choice(("out", "in", "other"))
        if change == "out" and len(letters) > 1:
            del letters[place]
        elif change == "in":
            letters.insert(place, draw.choice("aes7"))
        else:
            letters[place] = draw.choice("aes7")
    return "".join(letters)


def drawn_texts(seed: int) -> list[str]:
    draw = random.Random(seed)
    few = draw.sample(WORDS, 3)
    vocabulary = [misspelled(draw.choice(few), draw) for _ in range(draw.choice((4, 12, 40)))]
    texts = {}
    for _ in range(draw.choice((2, 20, 60))):
        texts[" ".join(draw.choices(vocabulary, k=draw.choice((1, 1, 2, 4))))] = None
    return list(texts)


def digits(text: str) -> list[str]:
    return sorted(word for word in text.split() if any(letter.isdecimal() for letter in word))


def may_be_slots(one: str, two: str) -> bool:
    ours, theirs = one.split(), two.split()
    if digits(one) != digits(two) or len(ours) != len(theirs):
        return False
    pairs = zip(ours, theirs, strict=True)
    return all(SequenceMatcher(None, *pair).ratio() >= 0.88 for pair in pairs)


def may_be_values(one: str, two: str) -> bool:
    ours, theirs = set(one.split()), set(two.split())
    if digits(one) != digits(two) or min(len(ours), len(theirs)) == 1:
        return False
    return ours <= theirs or theirs <= ours


def each_with_each(texts: list[str], may_join: Callable[[str, str], bool]) -> EarlierRows:
    found = {}
    for row, text in enumerate(texts):
        earlier = [place for place in range(row) if may_join(texts[place], text)]
        if earlier:
            found[row] = earlier
    return found


@pytest.mark.parametrize(
    ("find", "may_join"),
    [
        (find_similarly_spelled_slots, may_be_slots),
        (find_values_containing_one_another, may_be_values),
    ],
)
def test_what_is_near_is_what_comparing_each_with_each_finds(
    find: Callable[[list[str]], EarlierRows], may_join: Callable[[str, str], bool]
) -> None:
    n_near = 0
    for seed in range(60):
        texts = drawn_texts(seed)
        near = find(texts)
        assert near == each_with_each(texts, may_join), texts
        n_near += len(near)
    assert n_near > 50


def test_texts_of_no_words_and_of_long_ones() -> None:
    long, longer = "x" * 18 + "abc", "x" * 18 + "abcde"
    assert find_similarly_spelled_slots(["", long, longer, longer + " y"]) == {2: [1]}
    assert find_similarly_spelled_slots([longer[:-6], longer[:-4]]) == {1: [0]}
    assert find_values_containing_one_another(["", "a b", "b a a", "a b c"]) == {2: [1], 3: [1, 2]}
