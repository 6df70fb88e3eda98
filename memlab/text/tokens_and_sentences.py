"""The tokeniser and the sentence splitter with offsets, normal forms of words, and the stemmer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import regex

if TYPE_CHECKING:
    from Stemmer import Stemmer

# "don't", "1,250.50", "3pm" are one each, "well-known" is two.
_WORD = regex.compile(r"\p{N}+(?:[.,]\p{N}+)+\p{L}*|[\p{L}\p{N}\p{M}]+(?:['’]\p{L}+)*")

WORD_OR_SIGN = r"\w+|[^\w\s]"
"""Pattern of a word or a punctuation mark: a token where there is no tokenizer of a model."""


class Span(Protocol):
    """A part of a text, at ``text[start:end]``."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


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

    >>> from memlab.text.tokens_and_sentences import tokens
    >>> [token.text for token in tokens("I don't pay $1,250 for a well-known café.")]
    ['I', "don't", 'pay', '1,250', 'for', 'a', 'well', 'known', 'café']
    """
    return [Token(match[0], *match.span()) for match in _WORD.finditer(text)]


def words(text: str) -> list[str]:
    """Give the words of a text in the form in which they are compared.

    >>> from memlab.text.tokens_and_sentences import words
    >>> words("Mel’s dog DIDN’T eat.")
    ['mel', 'dog', "didn't", 'eat']
    """
    return [normalize_word(word) for word in _WORD.findall(text)]


def normalize_word(word: str) -> str:
    """Write a word as it is compared: lower case, straight apostrophe, no possessive ending."""
    return word.lower().replace("’", "'").removesuffix("'s")


def bare_word(word: str) -> str:
    """Write a word in lower case, without accents and what follows an apostrophe.

    "They're" is "they".
    """
    letters = unicodedata.normalize("NFKD", re.split("['’]", word)[0])
    return (
        "".join(character for character in letters if not unicodedata.combining(character)).lower()
        or word.lower()
    )


def normalize_characters(text: str) -> str:
    """Normalise apostrophes, digits and letters of a text (NFKC)."""
    return unicodedata.normalize("NFKC", text).replace("’", "'")


def blank_out(text: str, spans: Iterable[Span]) -> str:
    """Overwrite spans of a text with NUL, from ``start`` to ``end``, so that offsets stay."""
    for span in spans:
        text = text[: span.start] + "\0" * (span.end - span.start) + text[span.end :]
    return text


def stem(words: Iterable[str], language: str = "en") -> list[str]:
    """Stem lower-case words by Snowball.

    :param language: a code of ISO 639-1 that Snowball has a stemmer for.

    >>> from memlab.text.tokens_and_sentences import stem
    >>> stem(["doctors", "visited"])
    ['doctor', 'visit']
    """
    return list(_stemmer(language).stemWords(list(words)))


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Stemmer:
    import Stemmer as snowball

    return snowball.Stemmer(language)


_CODE = re.compile(r"(```.*?(?:```|\Z))", re.S)
# A line that goes on in lower case was only wrapped.
_LINE = re.compile(r"\s*\n\s*(?![a-z])|(?<=[.!?:;])\s*\n\s*")
# sentencex 1.0.32 reads written prose. In chats a sentence ends in three more places: behind marks
# that are repeated though lower case follows ("yay!!! we won"), behind the answer "no." where no
# number follows, and before the pronoun "I", which is taken for a Roman number ("told me. I left").
_CHAT_ENDS = regex.compile(
    r"(?<=[!?]{2})\s+(?=\p{Ll})"
    r"|(?<=\b[Nn]o\.)\s+(?=\p{L})"
    r"|(?<=\p{Ll}\.)\s+(?=I(?:['’]\p{Ll}+)?\s+\p{Ll})"
)
# It goes on behind abbreviations of messages and behind the number of an item ("1. call mum").
_GOES_ON = re.compile(
    r"(?:^|[\s(])(?:appt|apt|approx|dept|mon|tues?|wed|thurs?|thu|fri|sat)\.$|^\d{1,2}[.)]$", re.I
)
_TRAILING_OFF = re.compile(r"(?:\.\.|…)$")
_WORD_CHARACTER = re.compile(r"\w")
# Emoji before the first word belong to what was said before them.
_LEADING_EMOJI = regex.compile(r"[\p{So}\p{Sk}\p{Cf}\p{Mn}]+(?=\s)")


def sentences(text: str) -> list[str]:
    """Split a text into sentences; nothing but white space between them is lost.

    Lines are sentences of their own, code between fences stays whole, and what has no word (an
    emoji, "!!") stays with the sentence before it.

    >>> from memlab.text.tokens_and_sentences import sentences
    >>> sentences("I met Dr. Lee at 3 p.m. today. It cost $1,250! 😊")
    ['I met Dr. Lee at 3 p.m. today.', 'It cost $1,250! 😊']
    """
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Give start and end of each sentence of a text: ``text[start:end]``."""
    found_spans: list[tuple[int, int]] = []
    search_start = 0
    for segment_text in _split_into_segments(text):
        segment_start = text.index(segment_text, search_start)
        search_start = segment_start + len(segment_text)
        if found_spans and _continues_sentence_before(
            text, found_spans[-1], segment_start, segment_text
        ):
            found_spans[-1] = found_spans[-1][0], search_start
        else:
            found_spans.append((segment_start, search_start))
    return found_spans


def _continues_sentence_before(
    text: str, sentence_span: tuple[int, int], segment_start: int, segment_text: str
) -> bool:
    """Say whether a part is no sentence of its own but the end of the one before it."""
    if not _WORD_CHARACTER.search(segment_text):
        return True
    sentence = text[slice(*sentence_span)]
    between = text[sentence_span[1] : segment_start]
    if segment_text[0].islower() and _TRAILING_OFF.search(sentence):
        return True
    return "\n" not in between and _GOES_ON.search(sentence) is not None


def _split_into_segments(text: str) -> Iterator[str]:
    """Split a text at its lines and at the ends of sentences."""
    from sentencex import segment

    for text_block in _CODE.split(text):
        if text_block.startswith("```"):
            yield text_block
            continue
        for text_line in _LINE.split(text_block):
            sentence_parts = [
                sentence_piece
                for raw_sentence in segment("en", text_line)
                for sentence_piece in _CHAT_ENDS.split(raw_sentence)
            ]
            yield from filter(None, map(str.strip, sentence_parts[:1]))
            for sentence in sentence_parts[1:]:
                yield from _split_leading_emoji(sentence.strip())


def _split_leading_emoji(sentence: str) -> Iterator[str]:
    emoji = _LEADING_EMOJI.match(sentence)
    if emoji:
        yield emoji[0]
        sentence = sentence[emoji.end() :].strip()
    if sentence:
        yield sentence
