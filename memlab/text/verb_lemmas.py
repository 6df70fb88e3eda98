"""Base forms of English verbs, and the form in which two wordings of a statement are compared."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from memlab.text.closed_word_classes import ARTICLES, BE, DO, HAVE, read_word_lists
from memlab.text.number_expressions import numbers
from memlab.text.tokens_and_sentences import normalize_characters, stem, words

_AUXILIARIES = {
    **dict.fromkeys(BE | {"'m", "'re"}, "be"),
    **dict.fromkeys(HAVE, "have"),
    **dict.fromkeys(DO, "do"),
    **dict.fromkeys(("kept", "keeps"), "keep"),
}
_CONTRACTED_NOT = re.compile(r"n't\b|\bcannot\b", re.I)
_CONTRASTED = (
    re.compile(r"\bnot\s+[^,;]+?(?:,?\s+but|,)\s+", re.I),  # "not Oslo but Bergen"
    re.compile(r"\bfrom\s+.+?\s+(?=to\b)", re.I),  # "from Oslo to Bergen"
    re.compile(r"(?:,\s*not|\binstead of|\brather than|\bno longer at)\b.*$", re.I),
)


@cache
def base_form_by_irregular_form() -> dict[str, str]:
    """List the irregular forms of verbs, each with its base form.

    >>> from memlab.text.verb_lemmas import base_form_by_irregular_form
    >>> [base_form_by_irregular_form()[word] for word in ("bought", "driven")]
    ['buy', 'drive']
    """
    base_by_form: dict[str, str] = {}
    for entry in read_word_lists()["irregular"].split():
        base_word, *inflected_forms = entry.split(":")
        base_by_form.update(dict.fromkeys(inflected_forms, base_word))
    return base_by_form


def base_form(word: str) -> str:
    """Look up the base form of an irregular form or an auxiliary; any other word is its own.

    >>> from memlab.text.verb_lemmas import base_form
    >>> base_form("sold"), base_form("were"), base_form("tea")
    ('sell', 'be', 'tea')
    """
    return _AUXILIARIES.get(word) or base_form_by_irregular_form().get(word, word)


@lru_cache(maxsize=65536)
def base_form_stems(text: str) -> tuple[str, ...]:
    """Split a text into stems of base forms, with numbers as digits and without articles.

    >>> from memlab.text.verb_lemmas import base_form_stems
    >>> base_form_stems("She's got a third cat, isn't it?"), base_form_stems("twenty-one cats")
    (('she', 'get', '3', 'cat', 'be', 'not', 'it'), ('21', 'cat'))
    """
    text = normalize_negations(text)
    # From the end, so that the places before it stay right.
    for number in reversed(numbers(text, ordinals=True)):
        preceding_text = text[: number.start]
        if number.value.is_integer() and not preceding_text.endswith((".", ":", "-")):
            text = f"{preceding_text}{int(number.value)}{text[number.end :]}"
    base_forms = [_base_form_or_digit(word) for word in words(text) if word not in ARTICLES]
    return tuple(stem(base_forms))


def _base_form_or_digit(word: str) -> str:
    if word == "one":
        return "1"
    return base_form(word)


def normalize_negations(text: str) -> str:
    """Normalise a text, and write "not" for "n't" and "cannot"."""
    return _CONTRACTED_NOT.sub(" not", normalize_characters(text))


def strip_denied_part_of_contrast(text: str) -> str:
    """Remove the other value of a contrast: "not Oslo but Bergen" is "Bergen".

    >>> from memlab.text.verb_lemmas import strip_denied_part_of_contrast
    >>> strip_denied_part_of_contrast("not Oslo but Bergen")
    'Bergen'
    >>> strip_denied_part_of_contrast("from Oslo to Bergen")
    'to Bergen'
    >>> strip_denied_part_of_contrast("tea instead of coffee")
    'tea '
    """
    for pattern in _CONTRASTED:
        text = pattern.sub("", text)
    return text
