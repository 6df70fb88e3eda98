"""The keys by which facts are compared: folded parts, near-equal ones joined by an encoder."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from memlab.embed import Encoder

SAME_SLOT_COSINE = 0.90
SAME_VALUE_COSINE = 0.95
_NEAR_SPELLING = 0.88  # "color" and "colour", "code" and "codes"; not "maximum" and "minimum"
_CACHE_SIZE = 100_000  # texts of which the folded form is remembered
_OPENING = " \"'“”„‚‘«‹([{「『《<¿¡"
_CLOSING = " \"'“”‘’»›)]}」』》>.,;:。、…"
_EXCLAMATIONS = "!?"
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"\S*\d\S*")

Joined = dict[tuple[Hashable, str], str]
"""Owner and folded text → key of the text among those of its owner."""


class Parts(NamedTuple):
    """The keys of the parts of a fact, beside its scope: equal keys mean the same."""

    scope: str
    about: str
    slot: str
    value: str


@lru_cache(maxsize=_CACHE_SIZE)
def fold(text: str) -> str:
    """Fold the characters, the case, the blanks and the outer punctuation of a text.

    An exclamation or question mark behind a token that has a digit stays where that is the whole
    text: it may belong to a password.

    >>> from memlab.knowledge.keys import fold
    >>> fold(" “ACME,  Inc.” "), fold("Ｏｓｌｏ！"), fold("hunter2!"), fold("C#")
    ('acme, inc', 'oslo', 'hunter2!', 'c#')
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    closing = _CLOSING
    if not _CODE.fullmatch(plain):
        closing += _EXCLAMATIONS
    return plain.lstrip(_OPENING).rstrip(closing) or plain


def part_keys(rows: list[dict[str, Any]], encoder: Encoder | None) -> list[Parts]:
    """Give the keys of the parts of facts.

    Without an encoder they are the folded texts. With one, a slot has the key of the first slot of
    its subject whose cosine with it reaches 0.90, and a value that of the first value of its
    subject and slot at 0.95. As vectors of "every Monday in the office" and "every Tuesday in the
    office" are as near as that, the texts must agree too: slots word by word but for a letter
    ("door codes"), values but for words that one has beside those of the other ("a nurse"). Texts
    that differ in a token with a digit stay apart, and so does a value of one token.

    :param rows: facts with ``scope``, ``about``, ``slot`` and ``value``, in the order in which they
        were said.

    >>> from memlab.knowledge.keys import part_keys
    >>> part_keys([{"scope": "u", "about": "Mel", "slot": "Door code", "value": "12u34."}], None)
    [Parts(scope='u', about='mel', slot='door code', value='12u34')]
    """
    subjects = [(row["scope"], fold(row["about"])) for row in rows]
    slot_texts = [row["slot"] for row in rows]
    slots = _join(zip(subjects, slot_texts, strict=True), encoder, SAME_SLOT_COSINE, _may_be_slots)
    owners = []
    for subject, text in zip(subjects, slot_texts, strict=True):
        owners.append((*subject, slots[subject, fold(text)]))
    value_texts = [row["value"] for row in rows]
    values = _join(zip(owners, value_texts, strict=True), encoder, SAME_VALUE_COSINE, _may_be_equal)
    parts = []
    for owner, text in zip(owners, value_texts, strict=True):
        parts.append(Parts(*owner, values[owner, fold(text)]))
    return parts


def _join(
    texts: Iterable[tuple[Hashable, str]],
    encoder: Encoder | None,
    threshold: float,
    may_join: Callable[[str, str], bool],
) -> Joined:
    """Give each text of an owner the key of the first one near it, else its own."""
    owned: dict[Hashable, dict[str, str]] = {}
    for owner, text in texts:
        owned.setdefault(owner, {}).setdefault(fold(text), text)
    keys: Joined = {}
    for owner, spellings in owned.items():
        for folded in spellings:
            keys[owner, folded] = folded
    if encoder is None:
        return keys
    several = {owner: spellings for owner, spellings in owned.items() if len(spellings) > 1}
    wanted: dict[str, int] = {}
    for spellings in several.values():
        for text in spellings.values():
            wanted.setdefault(text, len(wanted))
    if not wanted:
        return keys
    vectors = encoder.encode(list(wanted), progress=False)
    for owner, spellings in several.items():
        own = vectors[[wanted[text] for text in spellings.values()]]
        joined = _join_rows(list(spellings), own @ own.T >= threshold, may_join)
        for folded, key in joined.items():
            keys[owner, folded] = key
    return keys


def _join_rows(
    texts: list[str], is_near: np.ndarray, may_join: Callable[[str, str], bool]
) -> dict[str, str]:
    """Give each text the key of the first near one before it; ``is_near``: texts × texts."""
    keys: dict[str, str] = {}
    for row, text in enumerate(texts):
        keys[text] = text
        for column in is_near[row, :row].nonzero()[0]:
            earlier = texts[column]
            if may_join(earlier, text):
                keys[text] = keys[earlier]
                break
    return keys


def _may_be_slots(one: str, two: str) -> bool:
    """Whether two slots may be one: word by word, they are spelled nearly the same."""
    if _tokens_with_digits(one) != _tokens_with_digits(two):
        return False
    ours, theirs = one.split(), two.split()
    if len(ours) != len(theirs):
        return False
    return all(map(_are_spelled_nearly_the_same, ours, theirs))


def _are_spelled_nearly_the_same(one: str, two: str) -> bool:
    return SequenceMatcher(None, one, two).ratio() >= _NEAR_SPELLING


def _may_be_equal(one: str, two: str) -> bool:
    """Whether two values may be one: the words of one are among those of the other."""
    ours, theirs = set(one.split()), set(two.split())
    if min(len(ours), len(theirs)) == 1:
        return False
    if _tokens_with_digits(one) != _tokens_with_digits(two):
        return False
    return ours <= theirs or theirs <= ours


def _tokens_with_digits(text: str) -> list[str]:
    return sorted(filter(_DIGIT.search, text.split()))
