"""An answer as what a text must say: numbers and dates as values, the rest as stemmed words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from memlab.language.tokens import stem, words
from memlab.language.words import NUMBERS, STOP_WORDS
from memlab.summarize._values import mentions, plain

KINDS = ("none", "yes/no", "open", "list", "date", "number", "text")
"""What an answer may be; ``none``, ``yes/no`` and ``open`` cannot be looked for in a text."""
UNMEASURABLE = ("none", "yes/no", "open")

# A phrase of more telling words than this is phrased by the person who wrote it; no text is bound to its words.
LONGEST_ITEM = 5

_YES_NO = re.compile(r"\W*(?:(?:most )?likely |probably |presumably )*(?:yes|no)\b(?! one|thing)", re.I)
_REASONS = re.compile(r"\b(?:because|since (?!\W*(?:\d{4}|\w+ \d{4}))|so that|due to)\b", re.I)
_ACCEPTABLE = re.compile(r"([^.]+)\.([^.]+?)(?:\([^)]*\))?\s*(?:is|are) also acceptable", re.I)
_GLUED = re.compile(r"(?<=\d)(?=(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b)")
_ASIDE = re.compile(r"\([^)]*\)")
_CLAUSE = re.compile(r"[,;\n]")
_BREAK = re.compile(r"\s*(?:[,;&\n]|\band\b|\bas well as\b)\s*", re.I)
_WORD = re.compile(r"\w+(?:'\w+)*")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTH = {name: n for n, name in enumerate(_MONTHS.split(" "), 1)}
_MONTH_YEAR = re.compile(
    # Not the end of a full date.
    r"(?<!\d )(?<!\dst )(?<!\dnd )(?<!\drd )(?<!\dth )(?<!\bof )"
    r"\b(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?(?:, ?of|,| of)? +(\d{4})\b",
    re.I,
)
_DAY, _NO_YEAR, _MONTH_ONLY = 10, 5, 2
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
    numbers, dates, rest = set(), set(), text
    for match in _MONTH_YEAR.finditer(rest):
        dates.add(f"{match[2]}-{_MONTH[match[1][:3].lower()]:02d}")
    rest = _MONTH_YEAR.sub(lambda m: "#" * len(m[0]), rest)
    for mention in mentions(rest):
        if mention.kind == "number":
            numbers.add(mention.value)
        elif mention.kind == "date" and mention.value[:1].isdigit():
            dates.add(mention.value)
        else:
            continue
        start = mention.end - len(mention.written)
        rest = rest[:start] + "#" * len(mention.written) + rest[mention.end :]
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
        and all(number in line.numbers or _year(number, line.dates) for number in item.numbers)
        and all(any(same_date(date, other) for other in line.dates) for date in item.dates)
    )


def _year(number: str, dates: frozenset[str]) -> bool:
    """A year stands in every date that names it."""
    return len(number) == 4 and any(date.startswith(number + "-") for date in dates)


def same_date(wanted: str, found: str) -> bool:
    """Compare dates: what is found may be more precise than what is wanted, and may leave the year out.

    >>> same_date("2023-05", "2023-05-07"), same_date("2023-05-07", "05-07"), same_date("2023-05-07", "2023-05")
    (True, True, False)
    """
    if wanted == found or found.startswith(wanted + "-"):
        return True
    if len(wanted) == _DAY and len(found) == _NO_YEAR:
        return wanted.endswith(found)
    # A day, or a month alone, that is wanted without a year.
    if len(wanted) == _NO_YEAR:
        return len(found) == _DAY and found.endswith(wanted)
    return len(wanted) == _MONTH_ONLY and wanted in (found[:2], found[5:7])
