"""Common English verbs with their forms, and the words by which two wordings of one statement are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from memlab.text.numbers import numbers
from memlab.text.tokens import plain, stem, words
from memlab.text.words import ARTICLES, BE, DO, HAVE, lists

_AUXILIARIES = {
    **dict.fromkeys(BE | {"'m", "'re"}, "be"),
    **dict.fromkeys(HAVE, "have"),
    **dict.fromkeys(DO, "do"),
    **dict.fromkeys(("kept", "keeps"), "keep"),
}
_NOT = re.compile(r"n't\b|\bcannot\b", re.I)
_CONTRASTED = (
    re.compile(r"\bnot\s+[^,;]+?(?:,?\s+but|,)\s+", re.I),  # "not Oslo but Bergen"
    re.compile(r"\bfrom\s+.+?\s+(?=to\b)", re.I),  # "from Oslo to Bergen"
    re.compile(r"(?:,\s*not|\binstead of|\brather than|\bno longer at)\b.*$", re.I),
)


@cache
def forms() -> dict[str, str]:
    """Give every form of the known verbs with its base; one that two verbs share ("found") belongs to the first.

    >>> from memlab.text.lemmas import forms
    >>> [forms()[word] for word in ("bought", "teaches", "studied", "driving")]
    ['buy', 'teach', 'study', 'drive']
    """
    verbs = [entry.split(":") for entry in lists()["verbs"].split()]
    return {form: verb[0] for verb in reversed(verbs) for form in _conjugated(*verb)}


def _conjugated(base: str, past: str = "", participle: str = "", ing: str = "") -> Iterator[str]:
    """Give the forms of a verb: base, third person, past, participle and -ing."""
    stemmed = _before_ending(base)
    past = past or stemmed + ("d" if stemmed.endswith("e") else "ed")
    yield from (base, third(base), past, participle or past, ing or base.removesuffix("e") + "ing")


def base(word: str) -> str:
    """Give the base of a verb form, auxiliaries too; any other word itself.

    >>> from memlab.text.lemmas import base
    >>> base("sold"), base("were"), base("tea")
    ('sell', 'be', 'tea')
    """
    return _AUXILIARIES.get(word) or forms().get(word, word)


def third(base: str) -> str:
    """Put a verb into the third person: "teaches", "studies", "has"."""
    ending = "es" if base.endswith(("s", "x", "ch", "sh", "o")) else "s"
    return "has" if base == "have" else _before_ending(base) + ending


def infinitive(verb: str) -> str:
    """Give the infinitive of a verb in the third person.

    >>> from memlab.text.lemmas import infinitive
    >>> infinitive("teaches"), infinitive("studies"), infinitive("is")
    ('teach', 'study', 'be')
    """
    guesses = (verb[:-3] + "y", verb[:-2], verb[:-1])
    known = base(verb)
    return known if known != verb else next((guess for guess in guesses if guess and third(guess) == verb), verb)


def _before_ending(base: str) -> str:
    return base[:-1] + "ie" if base.endswith("y") and base[-2:-1] not in "aeiou" else base


@lru_cache(maxsize=65536)
def bases(text: str) -> tuple[str, ...]:
    """Give the words of a text in the form in which wordings are compared: base forms, stems, numerals; no articles.

    >>> from memlab.text.lemmas import bases
    >>> bases("She's got a third cat, isn't it?"), bases("twenty-one cats")
    (('she', 'get', '3', 'cat', 'be', 'not', 'it'), ('21', 'cat'))
    """
    text = uncontracted(text)
    for number in reversed(numbers(text, ordinals=True)):
        if number.value.is_integer() and not text[: number.start].endswith((".", ":", "-")):
            text = f"{text[: number.start]}{int(number.value)}{text[number.end :]}"
    return tuple(stem("1" if word == "one" else base(word) for word in words(text) if word not in ARTICLES))


def uncontracted(text: str) -> str:
    """Write a text in plain form, with "not" for "n't"."""
    return _NOT.sub(" not", plain(text))


def told(text: str) -> str:
    """Leave out what a value is contrasted with: "not Oslo but Bergen", "from Oslo to Bergen", "tea instead of coffee".

    >>> from memlab.text.lemmas import told
    >>> [told(t).strip() for t in ("not Oslo but Bergen", "from Oslo to Bergen", "tea instead of coffee")]
    ['Bergen', 'to Bergen', 'tea']
    """
    for pattern in _CONTRASTED:
        text = pattern.sub("", text)
    return text
