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
_TOKEN = re.compile(r"[^\W\d_]+|[^\w\s]|\d+|\s+|_")
_IN_A_WORD = re.compile(r"^[\d_]\D|\D[\d_]$")
_COUNTED = re.compile(r"\b(?:half an? )?(twice|thrice|couple|dozen)\b", re.I)
_COUNT = {"twice": 2.0, "thrice": 3.0, "couple": 2.0, "dozen": 12.0}
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
    rows = list(_written(text))
    text = without(text, rows)
    rows += _spelled(text)
    rows += (Number(_COUNT[m[1].lower()] / (1 + (m[0] != m[1])), m[0], *m.span()) for m in _COUNTED.finditer(text))
    return sorted((number for number in rows if ordinals or not number.ordinal), key=lambda number: number.start)


def _written(text: str) -> Iterator[Number]:
    for match in _NUMERAL.finditer(text):
        value = float(match[1].replace(",", "") + (match[2] or "")) * _SCALE.get((match[4] or "").lower(), 1)
        yield Number(value, match[0], *match.span(), ordinal=bool(match["th"]))


def _spelled(text: str) -> Iterator[Number]:
    tokens = list(_TOKEN.finditer(text))
    rows: list[Number] = []
    for occurrence in find_numbers([_Word(token[0]) for token in tokens], "en", threshold=0):
        start, end = tokens[occurrence.start].start(), tokens[occurrence.end - 1].end()
        number = Number(occurrence.value, text[start:end], start, end, occurrence.is_ordinal)
        before = rows[-1] if rows else None
        joined = before is not None and text[before.end : start] in (" ", "-")
        if before and joined and before.value in (19, 20) and 10 <= number.value < 100:
            rows[-1] = Number(before.value * 100 + number.value, text[before.start : end], before.start, end)
        else:
            rows.append(number)
    for number in rows:
        said = number.text.lower()
        # "thousands" and "thirds" tell no number, nor do letters within a code ("5tEn9").
        if said.endswith("s") or _IN_A_WORD.search(text[max(number.start - 1, 0) : number.end + 1]):
            continue
        if said != "one" or _counts(text, number):
            yield number


def _counts(text: str, one: Number) -> bool:
    """Say whether "one" counts something: "one dog", not "one of them", "no one", "the one"."""
    if not text[: one.start].strip() and not text[one.end :].strip(" .!"):
        return True
    return bool(_NOUN_AFTER_ONE.match(text, one.end)) and not _NOT_BEFORE_ONE.search(text[: one.start])


def quantities(text: str) -> Iterator[Quantity]:
    """List numbers of units of time, whatever they say: durations, ages, rates, and how long ago.

    >>> from memlab.language.numbers import quantities
    >>> [(q.n, q.unit) for q in quantities("I spent a year and a half there and left two weeks ago.")]
    [(1.5, 'year'), (2.0, 'week')]
    """
    for match in _QUANTITY.finditer(text):
        said = match["n"].lower()
        if said in ("a", "an"):
            n = 1.0
        else:
            values = numbers(said)
            if len(values) != 1 or values[0].start > 2:
                continue
            n = values[0].value
        if _VAGUE.search(text[: match.start()]):
            continue
        n += 0.5 * bool(match["half"] or match["after"])
        yield Quantity(n, match["unit"].lower(), match[0], *match.span())
