"""An answer as what a text must say: numbers and dates as values, the rest as stemmed words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from memlab.language.calendar import MONTH_NAME, says
from memlab.language.mentions import mentions
from memlab.language.tokens import plain, stem, without, words
from memlab.language.words import NUMBERS, STOP_WORDS

UNMEASURABLE = ("none", "yes/no", "open")
"""Kinds of answers that cannot be looked for in a text."""

# A phrase of more telling words than this is phrased by the person who wrote it; no text is bound to its words.
LONGEST_ITEM = 5

_YES_NO = re.compile(r"\W*(?:(?:most )?likely |probably |presumably )*(?:yes|no)\b(?! one|thing)", re.I)
_REASONS = re.compile(r"\b(?:because|since (?!\W*(?:\d{4}|\w+ \d{4}))|so that|due to)\b", re.I)
_ACCEPTABLE = re.compile(r"([^.]+)\.([^.]+?)(?:\([^)]*\))?\s*(?:is|are) also acceptable", re.I)
_GLUED = re.compile(rf"(?<=\d)(?={MONTH_NAME}\b)", re.I)
_COUNTED_FROM = re.compile(r"\b(before|after|of)(?= [^,;]*\d)", re.I)
_ASIDE = re.compile(r"\([^)]*\)")
_CLAUSE = re.compile(r"[,;\n]")
_BREAK = re.compile(r"\s*(?:[,;&\n]|\band\b|\bas well as\b)\s*", re.I)
_WORD = re.compile(r"\w")
_YEAR = 4
_UNTELLING = STOP_WORDS | NUMBERS
_UNITS = frozenset(("dollar", "usd", "buck", "percent", "time"))


class Content(NamedTuple):
    """What a text says, or an item of an answer asks for: values in normal form and stems of words."""

    numbers: frozenset[str]
    dates: frozenset[str]
    words: frozenset[str]
    text: str = ""

    @property
    def tells(self) -> bool:
        """Whether there is anything beside words that tell nothing."""
        return bool(self.words or self.numbers or self.dates)

    def has(self, item: Content) -> bool:
        """Say whether it says an item: all its values and words."""
        if not item.tells:
            return bool(re.search(rf"(?<!\w){re.escape(item.text.strip(' .'))}(?!\w)", self.text))
        return (
            item.words <= self.words
            and all(number in self.numbers or self._names_year(number) for number in item.numbers)
            and all(any(says(date, asked) for date in self.dates) for asked in item.dates)
        )

    def _names_year(self, number: str) -> bool:
        return len(number) == _YEAR and any(date.startswith(f"{number}-") for date in self.dates)


class Answer(NamedTuple):
    """An answer: its kind, and alternatives, each of items that are all needed.

    Its kind is ``list``, ``date``, ``number`` or ``text``; or one of :data:`UNMEASURABLE`, where ``open`` is one that
    gives reasons or has a phrase of more than five telling words, so that a context need not say it in those words.
    """

    kind: str
    alternatives: tuple[tuple[Content, ...], ...] = ()


@lru_cache(maxsize=200_000)
def content(text: str) -> Content:
    """Read the values and words of a text.

    >>> sorted(content("Two of them cost $1,250 on May 7, 2023.").numbers)
    ['1250', '2']
    """
    text = _GLUED.sub(" ", plain(text))
    values = [mention for mention in mentions(text) if mention.kind != "name" and mention.value[:1].isdigit()]
    # A year alone is told by every date of it, and by the bare number.
    dates = {mention.value for mention in values if mention.kind == "date" and len(mention.value) != _YEAR}
    numbers = {mention.value for mention in values if mention.kind == "number" or len(mention.value) == _YEAR}
    rest = words(without(text, values))
    telling = [word for word in rest if word not in _UNTELLING and (len(word) > 1 or word.isdigit())]
    return Content(frozenset(numbers), frozenset(dates), frozenset(stem(telling)) - _UNITS, text.casefold())


@lru_cache(maxsize=50_000)
def answer_content(answer: str | None) -> Answer:
    """Read an answer: what kind it is, and what a text must say to hold it.

    >>> [answer_content(a).kind for a in ("May 2023", "rock climbing, fishing", "Likely no", "twice", None)]
    ['date', 'list', 'yes/no', 'number', 'none']
    """
    text = plain(answer or "").strip()
    if not text:
        return Answer("none")
    if _YES_NO.match(text):
        return Answer("yes/no")
    accepted = _ACCEPTABLE.match(text)
    sides = [accepted[1], accepted[2]] if accepted else [text]
    # "The week before 9 June" is said by its days, and by "last week" under the 9th of June.
    sides += [counted for side in sides if (counted := _COUNTED_FROM.sub(r"\1:", side)) != side]
    alternatives = tuple(_items(side) for side in sides)
    phrases = (phrase for side in sides for phrase in _CLAUSE.split(_ASIDE.sub(" ", side)))
    if _REASONS.search(text) or any(len(content(phrase).words) > LONGEST_ITEM for phrase in phrases):
        return Answer("open", alternatives)
    first = alternatives[0]
    kind = "list" if len(first) > 1 else "date" if first[0].dates else "number" if first[0].numbers else "text"
    return Answer(kind, alternatives)


def _items(text: str) -> tuple[Content, ...]:
    """Split a list into its items, not within a date or an amount; an aside in brackets is not asked for."""
    outside = _ASIDE.sub(" ", text)
    text = outside if _WORD.search(outside) else text
    # "21 August, 2022" and "$1,250" are one value each.
    text = re.sub(r"(?<=\w),(?= ?\d{4}\b)", "", _GLUED.sub(" ", text))
    parts = (content(part) for part in _BREAK.split(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)) if _WORD.search(part))
    return tuple(item for item in parts if item.tells) or (content(text),)
