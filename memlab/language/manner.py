"""How a statement is meant, and the words by which two wordings of one statement are compared."""

from __future__ import annotations

import re
from functools import lru_cache

from memlab.language.numbers import numbers
from memlab.language.tokens import plain, stem, words
from memlab.language.verbs import forms
from memlab.language.words import ARTICLES, BE, DEMONSTRATIVES, DO, HAVE, MODALS, NEGATIONS, POSSESSIVES, wordset

MANNERS = ("is", "not", "plan", "was")
ENDING = wordset(
    """stop quit leave cease end drop cancel abandon refuse avoid former ex off over resign break separate divorce
    split lose sell"""
)
"""Base forms that say that something is over."""
_HOPED = wordset(
    """plan want wish hope think consider intend dream try might maybe perhaps possibly probably if whether suppose
    expect"""
) | (MODALS - {"can"})
_PAST = wordset(
    """was were had lived worked studied taught loved liked hated adored played drove owned stayed served ran kept
    drank ate smoked knew sang wore led sat slept dated used formerly previously once"""
)
_UNDER_WAY = re.compile(
    r"\b(?:am|is|are|'s|'m|'re|be)\s+(?:\w+ly\s+)?(?:going|moving|leaving|planning|coming|flying)\b"
)
_GIVEN_UP = re.compile(r"\b(?:give|gives|gave|given|giving) up\b")
_PARTS = re.compile(r"\bn't\b|n't\b|\bcannot\b", re.I)
_OTHER = (
    re.compile(r"\bnot\s+[^,;]+?(?:,?\s+but|,)\s+", re.I),  # "not Oslo but Bergen"
    re.compile(r"\bfrom\s+.+?\s+(?=to\b)", re.I),  # "from Oslo to Bergen"
    re.compile(r"(?:,\s*not|\binstead of|\brather than|\bno longer at)\b.*$", re.I),
)
_IRREGULAR = {
    "one": "1",
    **dict.fromkeys(BE | {"'m", "'re"}, "be"),
    **dict.fromkeys(HAVE, "have"),
    **dict.fromkeys(DO, "do"),
    **dict.fromkeys(("goes", "went", "gone", "going"), "go"),
    **dict.fromkeys(("left", "leaves", "leaving"), "leave"),
    **dict.fromkeys(("got", "gotten", "gets", "getting"), "get"),
    **dict.fromkeys(("broke", "broken", "breaks", "breaking"), "break"),
    **dict.fromkeys(("kept", "keeps", "keeping"), "keep"),
    **dict.fromkeys(("lost", "loses", "losing"), "lose"),
    **dict.fromkeys(("sold", "sells", "selling"), "sell"),
}  # fmt: skip


@lru_cache(maxsize=65536)
def bases(text: str) -> tuple[str, ...]:
    """Give the words of a text in the form in which wordings are compared: base forms, stems, numerals; no articles.

    >>> from memlab.language.manner import bases
    >>> bases("She's got a third cat, isn't it?"), bases("twenty-one cats")
    (('she', 'get', '3', 'cat', 'be', 'not', 'it'), ('21', 'cat'))
    """
    text = _PARTS.sub(" not", plain(text))
    for number in reversed(numbers(text, ordinals=True)):
        if number.value.is_integer() and not text[: number.start].endswith((".", ":", "-")):
            text = f"{text[: number.start]}{int(number.value)}{text[number.end :]}"
    given = (word for word in words(text) if word not in ARTICLES)
    return tuple(stem(base(word) for word in given))


def base(word: str) -> str:
    """Give the base of a verb form; of any other word itself."""
    known = forms().get(word)
    return _IRREGULAR.get(word) or (known.base if known else word)


def told(text: str) -> str:
    """Leave out what a value is set against: "not Oslo but Bergen", "from Oslo to Bergen", "tea instead of coffee".

    >>> from memlab.language.manner import told
    >>> [told(t).strip() for t in ("not Oslo but Bergen", "from Oslo to Bergen", "tea instead of coffee")]
    ['Bergen', 'to Bergen', 'tea']
    """
    for pattern in _OTHER:
        text = pattern.sub("", text)
    return text


def manner(predicate: str, value: str, *, relation: frozenset[str] = frozenset()) -> str:
    """Say how a statement is meant: ``is``, ``not`` (never, or no longer), ``plan`` (or wish, or perhaps), ``was``.

    :param relation: stems that are the relation itself: "broke up with" ends nothing where that is what is asked.

    >>> from memlab.language.manner import manner
    >>> manner("works at", "Acme"), manner("no longer works at", "Acme"), manner("has", "no dog")
    ('is', 'not', 'not')
    >>> manner("might move to", "Bergen"), manner("used to live in", "Bergen"), manner("moved to", "Bergen")
    ('plan', 'was', 'is')
    """
    said = words(_PARTS.sub(" not", plain(predicate)))
    stems = [stem([base(word)])[0] for word in said]
    negative = [word for word in said if word in NEGATIONS]
    opens = words(_PARTS.sub(" not", plain(told(value))))[:1]
    ends = [s for s in stems if s in ending() and s not in relation] or _GIVEN_UP.search(predicate.lower())
    if negative or ends or (opens and opens[0] in NEGATIONS and opens[0] not in ("none", "nothing")):
        return "not"
    if _UNDER_WAY.search(plain(predicate).lower()) or not _hoped().isdisjoint({*said, *stems}):
        return "plan"
    perfect = any(word in HAVE or word == "'ve" for word in said[:1]) and len(said) > 1 and said[0] != "had"
    return "was" if not perfect and any(word in _PAST for word in said) else "is"


@lru_cache(maxsize=1)
def _hoped() -> frozenset[str]:
    return _HOPED | frozenset(stem(_HOPED))


@lru_cache(maxsize=1)
def ending() -> frozenset[str]:
    """Give the stems of :data:`ENDING`."""
    return frozenset(stem(ENDING))


OWNED = ARTICLES | POSSESSIVES | DEMONSTRATIVES
"""Words before a noun that say whose or which it is."""
