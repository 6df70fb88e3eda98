"""Words of a text and where they stand, and runs of capitals."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from memlab.language.leaning import FUNCTION_WORDS
from memlab.language.words import NAME_JOINERS

_WORD = re.compile(r"\d+(?:[.,]\d+)+(?![^\W\d_])|[^\W_]+(?:['’][^\W\d_]+)*")
_BREAK = re.compile(r"[,;:()\"“”?!\[\]]|[^\W_]{2}\.\s|\n")
_SENTENCE_END = tuple('.?!"“:\n')


class Word(NamedTuple):
    """A word as written, as compared (lower case, without accents or possessive), and its place in the text."""

    text: str
    key: str
    start: int
    end: int

    @property
    def content(self) -> bool:
        return self.key not in FUNCTION_WORDS

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()


def words(text: str) -> list[Word]:
    """Cut a text into words."""
    return [Word(m.group(), key(m.group()), m.start(), m.end()) for m in _WORD.finditer(text)]


def key(word: str) -> str:
    """Give the form in which words are compared."""
    plain = unicodedata.normalize("NFKD", re.sub(r"['’].*$", "", word))
    return "".join(c for c in plain if not unicodedata.combining(c)).lower() or word.lower()


def stem(word: str) -> str:
    """Cut the endings of plural, tense and degree, so that forms of a word meet."""
    for ending in ("ings", "ing", "ies", "ied", "es", "ed", "ly", "s", "er", "e"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            return word[: -len(ending)]
    return word


def opens_sentence(text: str, word: Word) -> bool:
    """Say whether a capital here says nothing, because a sentence or a quotation begins."""
    before = text[: word.start].rstrip()
    return not before or before.endswith(_SENTENCE_END)


def quoted(text: str, place: int) -> bool:
    """Say whether a place stands inside double quotes."""
    before = text[:place].replace("“", '"').replace("”", '"')
    return before.count('"') % 2 == 1


def names(text: str, found: list[Word]) -> list[tuple[int, int]]:
    """Find runs of capitalised words, joined by connectors such as *of the*, as ranges of word numbers."""
    runs: list[tuple[int, int]] = []
    at = 0
    while at < len(found):
        if not _begins_name(text, found, at):
            at += 1
            continue
        end = at + 1
        while (step := _goes_on(text, found, end)) > end:
            end = step
        if any(word.content for word in found[at:end]):
            runs.append((at, end))
        at = end
    return runs


def _begins_name(text: str, found: list[Word], at: int) -> bool:
    word = found[at]
    if not word.capital:
        return False
    if word.content:
        return True
    # "The Birds", but not "The birds", and not the "I" or "He" of a sentence.
    follows = at + 1 < len(found) and found[at + 1].capital and found[at + 1].content
    return follows and word.key in ("the", "a") and text[word.end : found[at + 1].start] == " "


def _goes_on(text: str, found: list[Word], end: int) -> int:
    """Give the end of a name after one more capitalised word, with what joins it; the same end when there is none."""
    after = end
    while after < len(found) and after - end < 2 and found[after].key in NAME_JOINERS and not found[after].capital:
        after += 1
    if after >= len(found):
        return end
    word, between = found[after], text[found[end - 1].end : found[after].start]
    short_number = word.text.isdigit() and len(word.text) < 3 and after == end
    if not (word.capital or short_number) or _BREAK.search(found[end - 1].text[-2:] + between):
        return end
    return after + 1


def bare(text: str) -> str:
    """Cut a possessive ending from a phrase."""
    return re.sub(r"['’]s?$", "", text)


def possessive(text: str) -> str:
    """Make *X's* of a phrase, and *the Kinks'* of a plural."""
    if text.endswith(("'s", "’s")):
        return text
    return f"{text}'" if text.endswith("s") else f"{text}'s"
