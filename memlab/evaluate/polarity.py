"""The polarity of a statement: whether it says that something is, is not, is planned or was."""

from __future__ import annotations

import re
from functools import cache

from memlab.text.lemmas import base_form, expand_negations, strip_contrast
from memlab.text.tokens import normalize_text, stem, words
from memlab.text.words import HAVE, NEGATIONS, wordset

POLARITIES = ("is", "not", "plan", "was")
_ENDING_WORDS = wordset(
    """stop quit leave cease end drop cancel abandon refuse avoid former ex off over resign break separate divorce
    split lose sell"""
)
_HOPE_WORDS = wordset(
    """plan want wish hope think consider intend dream try might maybe perhaps possibly probably if whether suppose
    expect could may must shall should will would"""
)
_PAST_WORDS = wordset(
    """was were had lived worked studied taught loved liked hated adored played drove owned stayed served ran kept
    drank ate smoked knew sang wore led sat slept dated used formerly previously once"""
)
_UNDER_WAY_PATTERN = re.compile(
    r"\b(?:am|is|are|'s|'m|'re|be)\s+(?:\w+ly\s+)?(?:going|moving|leaving|planning|coming|flying)\b"
)
_GIVEN_UP_PATTERN = re.compile(r"\b(?:give|gives|gave|given|giving) up\b")


def polarity(predicate: str, value: str, *, relation: frozenset[str] = frozenset()) -> str:
    """Give the polarity of a statement: ``is``, ``not`` (never, or no longer), ``plan`` (or wish, or perhaps), ``was``.

    :param relation: stems that are the relation itself: "broke up with" ends nothing where that is what is asked.

    >>> from memlab.evaluate.polarity import polarity
    >>> polarity("works at", "Acme"), polarity("no longer works at", "Acme"), polarity("has", "no dog")
    ('is', 'not', 'not')
    >>> polarity("might move to", "Bergen"), polarity("used to live in", "Bergen"), polarity("moved to", "Bergen")
    ('plan', 'was', 'is')
    """
    said, opens = words(expand_negations(predicate)), words(expand_negations(strip_contrast(value)))[:1]
    stems = stem(base_form(word) for word in said)
    ended = not (unique_stems(_ENDING_WORDS) - relation).isdisjoint(stems) or _GIVEN_UP_PATTERN.search(
        predicate.lower()
    )
    if ended or not NEGATIONS.isdisjoint(said) or not (NEGATIONS - {"none", "nothing"}).isdisjoint(opens):
        return "not"
    hoped = _HOPE_WORDS | unique_stems(_HOPE_WORDS)
    if _UNDER_WAY_PATTERN.search(normalize_text(predicate).lower()) or not hoped.isdisjoint({*said, *stems}):
        return "plan"
    perfect = len(said) > 1 and said[0] in (HAVE - {"had"}) | {"'ve"}
    return "was" if not perfect and not _PAST_WORDS.isdisjoint(said) else "is"


def ending_stems() -> frozenset[str]:
    """Give the stems that say that something is over."""
    return unique_stems(_ENDING_WORDS)


@cache
def unique_stems(listed: frozenset[str]) -> frozenset[str]:
    """Give the stems of words."""
    return frozenset(stem(listed))
