"""The words of a text with their places, the form in which words are compared, and the stemmer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import regex

# "don't", "1,250.50", "3pm" are one each, "well-known" is two.
_WORD = regex.compile(r"\p{N}+(?:[.,]\p{N}+)+\p{L}*|[\p{L}\p{N}\p{M}]+(?:['’]\p{L}+)*")

WORD_OR_SIGN = r"\w+|[^\w\s]"
"""A word or a sign: what a budget of tokens counts where no model does."""


class Token(NamedTuple):
    """A word as it is written and where it stands: ``text[start:end]``."""

    text: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """The form in which it is compared."""
        return compared_form(self.text)


def tokens(text: str) -> list[Token]:
    """Cut a text into words with their places.

    >>> from memlab.text.tokens import tokens
    >>> [token.text for token in tokens("I don't pay $1,250 for a well-known café.")]
    ['I', "don't", 'pay', '1,250', 'for', 'a', 'well', 'known', 'café']
    """
    return [Token(match[0], *match.span()) for match in _WORD.finditer(text)]


def words(text: str) -> list[str]:
    """Give the words of a text in the form in which they are compared.

    >>> from memlab.text.tokens import words
    >>> words("Mel’s dog DIDN’T eat.")
    ['mel', 'dog', "didn't", 'eat']
    """
    return [compared_form(word) for word in _WORD.findall(text)]


def compared_form(word: str) -> str:
    """Give the form in which words are compared: lower case, a straight apostrophe, no possessive ending."""
    return word.lower().replace("’", "'").removesuffix("'s")


def bare_word(word: str) -> str:
    """Give a word in lower case without accents and without what follows an apostrophe: "They're" is "they"."""
    letters = unicodedata.normalize("NFKD", re.split("['’]", word)[0])
    return "".join(c for c in letters if not unicodedata.combining(c)).lower() or word.lower()


def normalize_text(text: str) -> str:
    """Write a text in one form of apostrophes, digits and letters (NFKC)."""
    return unicodedata.normalize("NFKC", text).replace("’", "'")


def blank_out(text: str, read: Iterable[Any]) -> str:
    """Overwrite what was read with NUL, from each ``start`` to its ``end``, so that places stay."""
    for place in read:
        text = text[: place.start] + "\0" * (place.end - place.start) + text[place.end :]
    return text


def stem(words: Iterable[str], language: str = "en") -> list[str]:
    """Stem lower-case words by Snowball.

    :param language: a code of ISO 639-1 that Snowball has a stemmer for.

    >>> from memlab.text.tokens import stem
    >>> stem(["doctors", "visited"])
    ['doctor', 'visit']
    """
    return list(_stemmer(language).stemWords(list(words)))


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language)
