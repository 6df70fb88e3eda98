"""An answer as what a text must say: numbers and dates as values, the rest as stemmed words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from memlab.language.calendar import MONTH_NAME, says
from memlab.language.mentions import mentions, without
from memlab.language.tokens import plain, stem, words
from memlab.language.words import NUMBERS, STOP_WORDS

KINDS = ("none", "yes/no", "open", "list", "date", "number", "text")
"""What an answer may be; ``none``, ``yes/no`` and ``open`` cannot be looked for in a text."""
UNMEASURABLE = ("none", "yes/no", "open")

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


class Said(NamedTuple):
    """What a text says, or an item of an answer wants said: values in normal form and stems of words."""

    numbers: frozenset[str]
    dates: frozenset[str]
    words: frozenset[str]
    text: str = ""


class Wanted(NamedTuple):
    """An answer: its kind, and alternatives, each of items that are all needed."""

    kind: str
    alternatives: tuple[tuple[Said, ...], ...]


@lru_cache(maxsize=200_000)
def said(text: str) -> Said:
    """Read the values and words of a text.

    >>> sorted(said("Two of them cost $1,250 on May 7, 2023.").numbers)
    ['1250', '2']
    """
    text = _GLUED.sub(" ", plain(text))
    values = [mention for mention in mentions(text) if mention.kind != "name" and mention.value[:1].isdigit()]
    # A year alone is told by every date of it, and by the bare number.
    dates = {mention.value for mention in values if mention.kind == "date" and len(mention.value) != _YEAR}
    numbers = {mention.value for mention in values if mention.kind == "number" or len(mention.value) == _YEAR}
    rest = without(text, values)
    telling = [word for word in words(rest) if word not in _UNTELLING and (len(word) > 1 or word.isdigit())]
    return Said(frozenset(numbers), frozenset(dates), frozenset(stem(telling)) - _UNITS, text.casefold())


@lru_cache(maxsize=50_000)
def wanted(answer: str | None) -> Wanted:
    """Read an answer: what kind it is, and what a text must say to hold it."""
    text = plain(answer or "").strip()
    if not text:
        return Wanted("none", ())
    if _YES_NO.match(text):
        return Wanted("yes/no", ())
    accepted = _ACCEPTABLE.match(text)
    sides = [accepted[1], accepted[2]] if accepted else [text]
    # "The week before 9 June" is said by its days, and by "last week" under the 9th of June.
    sides += [counted for side in sides if (counted := _COUNTED_FROM.sub(r"\1:", side)) != side]
    alternatives = tuple(_items(side) for side in sides)
    first = alternatives[0]
    phrases = (phrase for side in sides for phrase in _CLAUSE.split(_ASIDE.sub(" ", side)))
    if _REASONS.search(text) or any(len(said(phrase).words) > LONGEST_ITEM for phrase in phrases):
        return Wanted("open", alternatives)
    if len(first) > 1:
        return Wanted("list", alternatives)
    if first[0].dates:
        return Wanted("date", alternatives)
    return Wanted("number" if first[0].numbers else "text", alternatives)


def _items(text: str) -> tuple[Said, ...]:
    """Split a list into its items, not within a date or an amount; an aside in brackets is not asked for."""
    outside = _ASIDE.sub(" ", text)
    text = outside if _WORD.search(outside) else text
    # "21 August, 2022" and "$1,250" are one value each.
    text = re.sub(r"(?<=\w),(?= ?\d{4}\b)", "", _GLUED.sub(" ", text))
    parts = [part for part in _BREAK.split(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)) if _WORD.search(part)]
    if not any(said(part).words or said(part).numbers or said(part).dates for part in parts):
        return (said(text),)
    return tuple(item for item in map(said, parts) if item.words or item.numbers or item.dates)


def has(line: Said, item: Said) -> bool:
    """Say whether a text says an item: all its values and words."""
    if not (item.words or item.numbers or item.dates):
        return bool(re.search(rf"(?<!\w){re.escape(item.text.strip(' .'))}(?!\w)", line.text))
    return (
        item.words <= line.words
        and all(number in line.numbers or _in_year(number, line.dates) for number in item.numbers)
        and all(any(says(date, wanted) for date in line.dates) for wanted in item.dates)
    )


def _in_year(number: str, dates: frozenset[str]) -> bool:
    return len(number) == _YEAR and any(date.startswith(f"{number}-") for date in dates)
