"""Lengths of time in a text: "three weeks", "a year and a half"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memlab.language.numbers import numbers

_QUANTITY = re.compile(
    r"\b(?P<n>\d+(?:\.\d+)?|an?|(?:a )?couple(?: of)?|(?:[a-z]+-)?[a-z]+)(?P<half> and a half)?[ -]"
    r"(?P<unit>second|minute|hour|day|week|weekend|month|year)(?P<s>s?)\b(?P<after> and a half)?",
    re.I,
)
_VAGUE = re.compile(r"\b(?:half|or|to|than|over|under|every|each|-|–)[ -]?$|\d-$", re.I)
_SPAN = re.compile(
    r"\b(?:for|take|takes|took|taken|in|within|after|lasts?|lasted|about|nearly|almost|another|spent) $", re.I
)
_RATE = re.compile(r"[ -]old\b|[ -]ago\b", re.I)


class Duration(NamedTuple):
    """A length of time in a text: ``n`` of a unit, "second" to "year"."""

    n: float
    unit: str
    text: str
    start: int
    end: int


def durations(text: str) -> list[Duration]:
    """List the durations of a text; neither ages ("3 years old"), nor rates ("twice a week"), nor times ("a year ago").

    >>> from memlab.language.durations import durations
    >>> [(d.n, d.unit) for d in durations("I spent a year and a half there, two weeks of it ill, and left a day ago.")]
    [(1.5, 'year'), (2.0, 'week')]
    """
    return [
        quantity
        for quantity in quantities(text)
        if not _RATE.match(text, quantity.end)
        and (quantity.n != 1 or quantity.text[:1].lower() != "a" or _SPAN.search(text[: quantity.start]))
    ]


def quantities(text: str) -> Iterator[Duration]:
    """List numbers of units of time, whatever they say: durations, ages, rates, and how long ago."""
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
        yield Duration(n, match["unit"].lower(), match[0], *match.span())
