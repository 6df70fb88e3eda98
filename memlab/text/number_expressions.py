"""Numbers in a text, in digits or in words, read by the library text2num."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import regex
from text_to_num import Token, find_numbers

from memlab.text.tokens_and_sentences import blank_out

_SCALE = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_NUMERAL = regex.compile(
    r"(?<![\w.])(?P<digits>\d+(?:,\d{3})+|\d+)(?P<decimals>\.\d+)?(?P<th>st|nd|rd|th)?"
    r"(?: ?(?P<scale>k|thousand|million|billion)\b)?",
    regex.I,
)
_QUANTITIES = {"twice": 2.0, "thrice": 3.0, "couple": 2.0, "dozen": 12.0}
_QUANTITY = regex.compile(r"\b(?P<half>half an? )?(?P<word>twice|thrice|couple|dozen)\b", regex.I)
_SURROGATE = regex.compile(r"[\ud800-\udfff]")
_TOKEN = regex.compile(r"\w+|[^\w\s]|\s+")
# "one" counts what follows or stands alone; behind and before these words it is a pronoun.
_ONE = regex.compile(
    r"(?<=^\s*)one[ .!]*\Z|"
    r"(?<!\b(?:no|some|any|every|each|this|that|the|which|other|another|a|an|my|your|our)"
    r"\s+(?:\w+\s+)?)one[ -]"
    r"(?!(?:of|another|or|who|that|which|is|was|has|had|can|could|may|might|must|should|will|would|"
    r"for|in|on|at|to|and|but|with|from|by|as|if|when|where|because|so|i|we|he|she|you|they|it)\b)"
    r"[^\W\d_]",
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

    >>> from memlab.text.number_expressions import numbers
    >>> text = "Two hundred and fifty of 1,250 cost $1.5 million; one of them came first."
    >>> [n.value for n in numbers(text)]
    [250.0, 1250.0, 1500000.0]
    >>> [n.text for n in numbers("in nineteen ninety-nine we had one dog")]
    ['nineteen ninety-nine', 'one']
    """
    found_numbers = [_read_numeral(match) for match in _NUMERAL.finditer(text)]
    remaining_text = blank_out(text, found_numbers)
    found_numbers += [
        number
        for number in _spelled_numbers(remaining_text)
        if _is_number_in_context(number, remaining_text)
    ]
    found_numbers += [_read_quantity_word(match) for match in _QUANTITY.finditer(remaining_text)]
    if not ordinals:
        found_numbers = [number for number in found_numbers if not number.ordinal]
    return sorted(found_numbers, key=attrgetter("start"))


def _read_numeral(match: regex.Match[str]) -> Number:
    digits = match["digits"].replace(",", "") + (match["decimals"] or "")
    scale = _SCALE.get((match["scale"] or "").lower(), 1)
    number_value = float(digits) * scale
    is_ordinal = match["th"] is not None
    return Number(number_value, match[0], match.start(), match.end(), is_ordinal)


def _read_quantity_word(match: regex.Match[str]) -> Number:
    number_value = _QUANTITIES[match["word"].lower()]
    if match["half"]:
        number_value /= 2
    return Number(number_value, match[0], *match.span())


def _is_number_in_context(candidate: Number, text: str) -> bool:
    """Say whether words are a number: a plural ("hundreds") is none, and "one" may be a pronoun."""
    if candidate.text.endswith("s"):
        return False
    if candidate.text.lower() != "one":
        return True
    return _ONE.match(text, candidate.start) is not None


def _spelled_numbers(text: str) -> list[Number]:
    """Read numbers in words.

    "Nineteen ninety-nine" is a year, although text2num reads two numbers.
    """
    text = _SURROGATE.sub(" ", text)  # text2num panics over half a character
    word_tokens = list(_TOKEN.finditer(text))
    found_numbers: list[Number] = []
    for spelled_number in find_numbers(
        [_Word(token[0]) for token in word_tokens], "en", threshold=0
    ):
        span_start = word_tokens[spelled_number.start].start()
        span_end = word_tokens[spelled_number.end - 1].end()
        number_value = spelled_number.value
        if found_numbers and _is_spoken_year(
            found_numbers[-1], number_value, text[found_numbers[-1].end : span_start]
        ):
            century = found_numbers.pop()
            span_start = century.start
            number_value += century.value * 100
        found_numbers.append(
            Number(
                number_value,
                text[span_start:span_end],
                span_start,
                span_end,
                spelled_number.is_ordinal,
            )
        )
    return found_numbers


def _is_spoken_year(century: Number, years_in_century: float, text_between: str) -> bool:
    if text_between not in (" ", "-"):
        return False
    return century.value in (19, 20) and 10 <= years_in_century < 100
