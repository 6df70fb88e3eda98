"""Numbers in a text, in digits or in words, read by the library text2num."""

from __future__ import annotations

from typing import NamedTuple

import regex
from text_to_num import Token, find_numbers

from memlab.text.tokens import blank_out

_SCALE = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_NUMERAL = regex.compile(
    r"(?<![\w.])(\d+(?:,\d{3})+|\d+)(\.\d+)?(?P<th>st|nd|rd|th)?(?: ?(k|thousand|million|billion)\b)?",
    regex.I,
)
_QUANTITIES = {"twice": 2.0, "thrice": 3.0, "couple": 2.0, "dozen": 12.0}
_QUANTITY = regex.compile(r"\b(half an? )?(twice|thrice|couple|dozen)\b", regex.I)
_SURROGATE = regex.compile(r"[\ud800-\udfff]")
_TOKEN = regex.compile(r"\w+|[^\w\s]|\s+")
# "one" counts what follows or stands alone; behind and before these words it is a pronoun.
_ONE = regex.compile(
    r"(?<=^\s*)one[ .!]*\Z|"
    r"(?<!\b(?:no|some|any|every|each|this|that|the|which|other|another|a|an|my|your|our)\s+(?:\w+\s+)?)one[ -]"
    r"(?!(?:of|another|or|who|that|which|is|was|has|had|can|could|may|might|must|should|will|would|for|in|on|at|to|"
    r"and|but|with|from|by|as|if|when|where|because|so|i|we|he|she|you|they|it)\b)[^\W\d_]",
    regex.I,
)


class Number(NamedTuple):
    """A number in a text, at ``text[start:end]``; ordinal: "third", "21st"."""

    value: float
    text: str
    start: int
    end: int
    ordinal: bool = False


class _Word(str, Token):
    """A token as text2num wants it."""

    def text(self) -> str:
        return str(self)


def numbers(text: str, *, ordinals: bool = False) -> list[Number]:
    """List the numbers of a text, in order.

    Digits may have thousands, decimals and a scale; words are read by text2num, and so are "twice",
    "couple" and "dozen". "One" is a number only where it counts what follows, or stands alone;
    years may be spoken.

    :param ordinals: list "first" and "3rd" too.

    >>> from memlab.text.numbers import numbers
    >>> [n.value for n in numbers("Two hundred and fifty of 1,250 cost $1.5 million; one of them came first.")]
    [250.0, 1250.0, 1500000.0]
    >>> [n.text for n in numbers("in nineteen ninety-nine we had one dog")]
    ['nineteen ninety-nine', 'one']
    """
    rows = []
    for match in _NUMERAL.finditer(text):
        value = float(match[1].replace(",", "") + (match[2] or "")) * _SCALE.get(
            (match[4] or "").lower(), 1
        )
        rows.append(Number(value, match[0], match.start(), match.end(), bool(match["th"])))
    text = blank_out(text, rows)
    words = (row for row in _spelled_numbers(text) if not row.text.endswith("s"))
    rows += (row for row in words if row.text.lower() != "one" or _ONE.match(text, row.start))
    rows += (
        Number(_QUANTITIES[m[2].lower()] / (2 if m[1] else 1), m[0], *m.span())
        for m in _QUANTITY.finditer(text)
    )
    return sorted((row for row in rows if ordinals or not row.ordinal), key=lambda row: row.start)


def _spelled_numbers(text: str) -> list[Number]:
    """Read numbers in words; "nineteen ninety-nine" is a year, although text2num reads two numbers."""
    text = _SURROGATE.sub(" ", text)  # text2num panics over half a character
    tokens = list(_TOKEN.finditer(text))
    rows: list[Number] = []
    for read in find_numbers([_Word(token[0]) for token in tokens], "en", threshold=0):
        start, end, value = tokens[read.start].start(), tokens[read.end - 1].end(), read.value
        if (
            rows
            and text[rows[-1].end : start] in (" ", "-")
            and rows[-1].value in (19, 20)
            and 10 <= value < 100
        ):
            before = rows.pop()
            start, value = before.start, before.value * 100 + value
        rows.append(Number(value, text[start:end], start, end, read.is_ordinal))
    return rows
