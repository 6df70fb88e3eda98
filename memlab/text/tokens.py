"""The tokeniser with offsets, the normal forms of words, and the stemmer."""

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
"""Pattern of a word or a punctuation mark, which is counted as a token where there is no tokenizer of a model."""


class Token(NamedTuple):
    """A word of a text, at ``text[start:end]``."""

    text: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """The word in the form in which words are compared."""
        return normalize_word(self.text)


def tokens(text: str) -> list[Token]:
    """Split a text into words with offsets.

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
    return [normalize_word(word) for word in _WORD.findall(text)]


def normalize_word(word: str) -> str:
    """Give the form in which words are compared: lower case, a straight apostrophe, no possessive ending."""
    return word.lower().replace("’", "'").removesuffix("'s")


def bare_word(word: str) -> str:
    """Give a word in lower case without accents and without what follows an apostrophe: "They're" is "they"."""
    letters = unicodedata.normalize("NFKD", re.split("['’]", word)[0])
    return "".join(c for c in letters if not unicodedata.combining(c)).lower() or word.lower()


def normalize_characters(text: str) -> str:
    """Normalise apostrophes, digits and letters of a text (NFKC)."""
    return unicodedata.normalize("NFKC", text).replace("’", "'")


def blank_out(text: str, spans: Iterable[Any]) -> str:
    """Overwrite spans of a text with NUL, from ``start`` to ``end``, so that offsets stay."""
    for span in spans:
        text = text[: span.start] + "\0" * (span.end - span.start) + text[span.end :]
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
