"""The polarity of a statement, and the words by which two wordings of one statement are compared."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from memlab.language.numbers import numbers
from memlab.language.tokens import plain, stem, words
from memlab.language.verbs import base
from memlab.language.words import ARTICLES, DEMONSTRATIVES, HAVE, NEGATIONS, POSSESSIVES, wordset

MANNERS = ("is", "not", "plan", "was")
OWNED = ARTICLES | POSSESSIVES | DEMONSTRATIVES
"""Words before a noun that say whose or which it is."""

_ENDING = wordset(
    """stop quit leave cease end drop cancel abandon refuse avoid former ex off over resign break separate divorce
    split lose sell"""
)
_HOPED = wordset(
    """plan want wish hope think consider intend dream try might maybe perhaps possibly probably if whether suppose
    expect could may must shall should will would"""
)
_PAST = wordset(
    """was were had lived worked studied taught loved liked hated adored played drove owned stayed served ran kept
    drank ate smoked knew sang wore led sat slept dated used formerly previously once"""
)
_UNDER_WAY = re.compile(
    r"\b(?:am|is|are|'s|'m|'re|be)\s+(?:\w+ly\s+)?(?:going|moving|leaving|planning|coming|flying)\b"
)
_GIVEN_UP = re.compile(r"\b(?:give|gives|gave|given|giving) up\b")
_NOT = re.compile(r"\bn't\b|n't\b|\bcannot\b", re.I)
_CONTRASTED = (
    re.compile(r"\bnot\s+[^,;]+?(?:,?\s+but|,)\s+", re.I),  # "not Oslo but Bergen"
    re.compile(r"\bfrom\s+.+?\s+(?=to\b)", re.I),  # "from Oslo to Bergen"
    re.compile(r"(?:,\s*not|\binstead of|\brather than|\bno longer at)\b.*$", re.I),
)


@lru_cache(maxsize=65536)
def bases(text: str) -> tuple[str, ...]:
    """Give the words of a text in the form in which wordings are compared: base forms, stems, numerals; no articles.

    >>> from memlab.language.manner import bases
    >>> bases("She's got a third cat, isn't it?"), bases("twenty-one cats")
    (('she', 'get', '3', 'cat', 'be', 'not', 'it'), ('21', 'cat'))
    """
    text = _NOT.sub(" not", plain(text))
    for number in reversed(numbers(text, ordinals=True)):
        if number.value.is_integer() and not text[: number.start].endswith((".", ":", "-")):
            text = f"{text[: number.start]}{int(number.value)}{text[number.end :]}"
    return tuple(stem("1" if word == "one" else base(word) for word in words(text) if word not in ARTICLES))


def told(text: str) -> str:
    """Leave out what a value is contrasted with: "not Oslo but Bergen", "from Oslo to Bergen", "tea instead of coffee".

    >>> from memlab.language.manner import told
    >>> [told(t).strip() for t in ("not Oslo but Bergen", "from Oslo to Bergen", "tea instead of coffee")]
    ['Bergen', 'to Bergen', 'tea']
    """
    for pattern in _CONTRASTED:
        text = pattern.sub("", text)
    return text


def manner(predicate: str, value: str, *, relation: frozenset[str] = frozenset()) -> str:
    """Give the polarity of a statement: ``is``, ``not`` (never, or no longer), ``plan`` (or wish, or perhaps), ``was``.

    :param relation: stems that are the relation itself: "broke up with" ends nothing where that is what is asked.

    >>> from memlab.language.manner import manner
    >>> manner("works at", "Acme"), manner("no longer works at", "Acme"), manner("has", "no dog")
    ('is', 'not', 'not')
    >>> manner("might move to", "Bergen"), manner("used to live in", "Bergen"), manner("moved to", "Bergen")
    ('plan', 'was', 'is')
    """
    said = words(_NOT.sub(" not", plain(predicate)))
    stems = stem(base(word) for word in said)
    opens = words(_NOT.sub(" not", plain(told(value))))[:1]
    ended = not (ending() - relation).isdisjoint(stems) or _GIVEN_UP.search(predicate.lower())
    denied = not NEGATIONS.isdisjoint(said) or not (NEGATIONS - {"none", "nothing"}).isdisjoint(opens)
    if ended or denied:
        return "not"
    if _UNDER_WAY.search(plain(predicate).lower()) or not _hoped().isdisjoint({*said, *stems}):
        return "plan"
    perfect = len(said) > 1 and said[0] in (HAVE - {"had"}) | {"'ve"}
    return "was" if not perfect and not _PAST.isdisjoint(said) else "is"


@cache
def _hoped() -> frozenset[str]:
    return _HOPED | frozenset(stem(_HOPED))


@cache
def ending() -> frozenset[str]:
    """Give the stems that say that something is over."""
    return frozenset(stem(_ENDING))
