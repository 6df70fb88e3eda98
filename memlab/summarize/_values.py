"""The numbers, dates and names of a text, as values that can be compared: "3 May" and "May 3rd" are one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ONES = {word: n for n, word in enumerate(_SMALL.split(" "))}
_UNITS = _ONES | {word: 10 * n for n, word in enumerate(_TENS.split(" "), 2)}
_SINGLE = {word: n for n, word in enumerate(_ORDINALS.split(" "), 1)} | {
    "twice": 2,
    "couple": 2,
    "dozen": 12,
}
_SCALES = {"hundred": 100, "thousand": 1_000, "k": 1_000, "million": 10**6, "billion": 10**9}

_SHORT = "jan feb mar apr may jun jul aug sep oct nov dec"
_NUMBER_OF = {name: n for n, name in enumerate(_SHORT.split(" "), 1)}
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?:\.(?= ?\d))?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b(?!:|\.\d|,\d{3})"
_YEAR = r"(?:(?:,|,? of)? +(?P<year>\d{4})\b)?"
_DATES = (
    re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})\b"),
    re.compile(rf"\b{_DAY}(?: of)? +{_MONTH}{_YEAR}", re.I),
    re.compile(rf"\b{_MONTH} +(?:the +)?{_DAY}{_YEAR}", re.I),
)
_MONTH_ALONE = re.compile(
    r"\b(?:Jan|Febr?u|March|Apr|May|June|July|Aug|Sept|Octo|Nov|Dec)(?:ary|il|ust|ember|em|ber)?\b"
)
_WEEKDAY = re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:s|nes|rs|ur)?(?:days?)?\b")
_NUMERAL = re.compile(r"(?<![\w.])(\d+(?:,\d{3})+|\d+)(\.\d+)?(?: ?(k|thousand|million|billion)\b)?", re.I)
_SPELLED = re.compile(
    rf"\b(?:{'|'.join([*_UNITS, *_SCALES])})(?:[ -](?:and )?(?:{'|'.join([*_UNITS, *_SCALES])}))*\b", re.I
)
_ALONE = re.compile(rf"\b(?:{'|'.join(_SINGLE)})\b", re.I)
_NAME = re.compile(r"[^\W\d_]+(?:[’'-][^\W\d_]+)*")
_OPENING = re.compile(r"""(?:^|[.!?:;…"“”()*\[\]•–—\n|-])[\s"“”'‘’(*]*$""")

# Said too loosely to be held against a text: "one of them", "at first".
LOOSE = frozenset({"1"})


class Mention(NamedTuple):
    """A value in a text.

    :param kind: ``number``, ``date`` or ``name``.
    :param value: in normal form.
    :param written: as it stands in the text.
    :param end: where it ends.
    :param opens: whether it begins a sentence, so that its capital says nothing.
    """

    kind: str
    value: str
    written: str
    end: int
    opens: bool = False


def plain(text: str) -> str:
    """Write a text in one form of quotes, digits and letters."""
    return unicodedata.normalize("NFKC", text).replace("’", "'")


def mentions(text: str) -> list[Mention]:
    """List the values of a text.

    >>> [m.value for m in mentions("on May 3rd Mel paid $1,250 for twenty-five cups in Oslo.")]
    ['05-03', '1250', '25', 'mel', 'oslo']
    """
    text = plain(text)
    found: list[Mention] = []
    for read in (_dates, _numbers):
        for mention in read(text):
            found.append(mention)
            start = mention.end - len(mention.written)
            text = text[:start] + "#" * len(mention.written) + text[mention.end :]
    return found + list(_names(text))


def _dates(text: str) -> Iterator[Mention]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            month = match["month"]
            n = int(month) if month.isdigit() else _NUMBER_OF[month[:3].lower()]
            year = f"{match['year']}-" if match["year"] else ""
            yield Mention("date", f"{year}{n:02d}-{int(match['day']):02d}", match[0], match.end())
        text = pattern.sub(lambda m: "#" * len(m[0]), text)
    for match in _MONTH_ALONE.finditer(text):
        yield Mention("date", f"{_NUMBER_OF[match[0][:3].lower()]:02d}", match[0], match.end())
    for match in _WEEKDAY.finditer(text):
        yield Mention("date", match[1].lower(), match[0], match.end())


def _numbers(text: str) -> Iterator[Mention]:
    for match in _NUMERAL.finditer(text):
        number = float(match[1].replace(",", "") + (match[2] or ""))
        yield Mention("number", f"{number * _SCALES.get((match[3] or '').lower(), 1):.12g}", match[0], match.end())
    text = _NUMERAL.sub(lambda m: "#" * len(m[0]), text)
    for match in _SPELLED.finditer(text):
        yield Mention("number", str(_spelled(re.split(r"[ -]", match[0].lower()))), match[0], match.end())
    text = _SPELLED.sub(lambda m: "#" * len(m[0]), text)
    for match in _ALONE.finditer(text):
        yield Mention("number", str(_SINGLE[match[0].lower()]), match[0], match.end())


def _spelled(said: list[str]) -> int:
    """Read "two hundred and fifty thousand"."""
    total = held = 0
    for word in said:
        if word in _UNITS:
            held += _UNITS[word]
        elif word == "hundred":
            held = max(held, 1) * 100
        elif word in _SCALES:
            total, held = total + max(held, 1) * _SCALES[word], 0
    return total + held


def _names(text: str) -> Iterator[Mention]:
    for match in _NAME.finditer(text):
        word = match[0]
        if word[0].isupper() and (len(word) > 1 and "'" not in word[:2]):
            opens = bool(_OPENING.search(text[max(0, match.start() - 8) : match.start()]))
            opens = opens or match.start() == 0
            yield Mention("name", word.casefold().removesuffix("'s"), word, match.end(), opens)
