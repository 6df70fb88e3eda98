"""Numbers in a text, written in digits or in words, by the library text2num."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from text_to_num import Token, find_numbers

from memlab.language.tokens import without

_SCALE = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_NUMERAL = re.compile(
    r"(?<![\w.])(\d+(?:,\d{3})+|\d+)(\.\d+)?(?P<th>st|nd|rd|th)?(?: ?(k|thousand|million|billion)\b)?", re.I
)
_COUNT = {"twice": 2.0, "thrice": 3.0, "couple": 2.0, "dozen": 12.0}
_COUNTED = re.compile(r"\b(half an? )?(twice|thrice|couple|dozen)\b", re.I)
_TOKEN = re.compile(r"[^\W\d_]+|[^\w\s]|\d+|\s+|_")
# "thousands" and "thirds" state no number, nor do letters within a code ("5tEn9").
_IN_A_WORD = re.compile(r"^[\d_]\D|\D[\d_]$")
# "one" is a pronoun behind these, before these, and where no word follows.
_NOT_BEFORE_ONE = re.compile(
    r"\b(?:no|some|any|every|each|this|that|the|which|other|another|a|an|my|your|our)\s+(?:\w+\s+)?$", re.I
)
_NOUN_AFTER_ONE = re.compile(
    r"[ -](?!(?:of|another|or|who|that|which|is|was|has|had|can|could|may|might|must|should|will|would|for|in|on|at|to|"
    r"and|but|with|from|by|as|if|when|where|because|so|i|we|he|she|you|they|it)\b)[^\W\d_]",
    re.I,
)
_QUANTITY = re.compile(
    r"\b(?P<n>\d+(?:\.\d+)?|an?|(?:a )?couple(?: of)?|(?:[a-z]+-)?[a-z]+)(?P<half> and a half)?[ -]"
    r"(?P<unit>second|minute|hour|day|week|weekend|month|year)s?\b(?P<after> and a half)?",
    re.I,
)
_VAGUE = re.compile(r"\b(?:half|or|to|than|over|under|every|each|-|–)[ -]?$|\d-$", re.I)


class Number(NamedTuple):
    """A number in a text.

    :param value: what it is worth.
    :param text: as it is written.
    :param start: where it begins; ``end`` where it ends.
    :param ordinal: a place in a series: "third", "21st".
    """

    value: float
    text: str
    start: int
    end: int
    ordinal: bool = False


class Quantity(NamedTuple):
    """So many of a unit of time, "second" to "year"."""

    n: float
    unit: str
    text: str
    start: int
    end: int


class _Word(Token):
    """A token as text2num wants it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self) -> str:
        return self._text


def numbers(text: str, *, ordinals: bool = False) -> list[Number]:
    """List the numbers of a text, in order.

    Digits may have thousands, decimals and a scale; words are read by text2num, and so are "twice", "couple" and
    "dozen". "One" is a number only where it counts what follows, or stands alone; years may be spoken.

    :param ordinals: list "first" and "3rd" too.

    >>> from memlab.language.numbers import numbers
    >>> [n.value for n in numbers("Two hundred and fifty of 1,250 cost $1.5 million; one of them came first.")]
    [250.0, 1250.0, 1500000.0]
    >>> [n.text for n in numbers("in nineteen ninety-nine we had one dog")]
    ['nineteen ninety-nine', 'one']
    """
    rows = []
    for match in _NUMERAL.finditer(text):
        value = float(match[1].replace(",", "") + (match[2] or "")) * _SCALE.get((match[4] or "").lower(), 1)
        rows.append(Number(value, match[0], *match.span(), ordinal=bool(match["th"])))
    text = without(text, rows)
    rows += [number for number in _spelled(text) if _stated(text, number)]
    rows += (Number(_COUNT[m[2].lower()] / (2 if m[1] else 1), m[0], *m.span()) for m in _COUNTED.finditer(text))
    return sorted((number for number in rows if ordinals or not number.ordinal), key=lambda number: number.start)


def _spelled(text: str) -> list[Number]:
    """Read numbers in words; "nineteen ninety-nine" is a year, although text2num reads two numbers."""
    tokens = list(_TOKEN.finditer(text))
    rows: list[Number] = []
    for read in find_numbers([_Word(token[0]) for token in tokens], "en", threshold=0):
        start, end, value = tokens[read.start].start(), tokens[read.end - 1].end(), read.value
        if rows and text[rows[-1].end : start] in (" ", "-") and rows[-1].value in (19, 20) and 10 <= value < 100:
            before = rows.pop()
            rows.append(Number(before.value * 100 + value, text[before.start : end], before.start, end))
        else:
            rows.append(Number(value, text[start:end], start, end, read.is_ordinal))
    return rows


def _stated(text: str, number: Number) -> bool:
    """Say whether words state a number, and "one" counts something: "one dog", not "one of them", "no one"."""
    said = number.text.lower()
    if said.endswith("s") or _IN_A_WORD.search(text[max(number.start - 1, 0) : number.end + 1]):
        return False
    if said != "one" or not (text[: number.start].strip() or text[number.end :].strip(" .!")):
        return True
    return bool(_NOUN_AFTER_ONE.match(text, number.end)) and not _NOT_BEFORE_ONE.search(text[: number.start])


def quantities(text: str) -> Iterator[Quantity]:
    """List numbers of units of time, whatever they say: durations, ages, rates, and how long ago.

    >>> from memlab.language.numbers import quantities
    >>> [(q.n, q.unit) for q in quantities("I spent a year and a half there and left two weeks ago.")]
    [(1.5, 'year'), (2.0, 'week')]
    """
    for match in _QUANTITY.finditer(text):
        said = match["n"].lower()
        values = [1.0] if said in ("a", "an") else [number.value for number in numbers(said) if number.start <= 2]
        if len(values) == 1 and not _VAGUE.search(text[: match.start()]):
            n = values[0] + 0.5 * bool(match["half"] or match["after"])
            yield Quantity(n, match["unit"].lower(), match[0], *match.span())
