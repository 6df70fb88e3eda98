"""The numbers, dates and names of a text in one list, as values that can be compared: "3 May" and "May 3rd" are one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memlab.language.dates import dates
from memlab.language.numbers import numbers
from memlab.language.tokens import plain, without

_NAME = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_OPENING = re.compile(r"""(?:^|[.!?:;…"“”()*\[\]•–—\n|-])[\s"“”'‘(*]*$""")
_BEFORE = 8

LOOSE = frozenset({"1"})
"""Said too loosely to be compared: "one of them", "at first"."""


class Mention(NamedTuple):
    """A value in a text.

    :param kind: ``number``, ``date`` or ``name``.
    :param value: a number in digits; a date as :class:`memlab.language.dates.Date` has it; a name in lower case.
    :param text: as it is written.
    :param start: where it begins in the plain text; ``end`` where it ends.
    :param opens: whether it begins a sentence, so that its capital says nothing.
    """

    kind: str
    value: str
    text: str
    start: int
    end: int
    opens: bool = False


def mentions(text: str) -> list[Mention]:
    """List the values of a text: dates, then numbers outside of these, then capitals.

    :param text: read as :func:`memlab.language.tokens.plain` writes it.

    >>> from memlab.language.mentions import mentions
    >>> [m.value for m in mentions("on May 3rd Mel paid $1,250 for twenty-five cups in Oslo.")]
    ['05-03', '1250', '25', 'mel', 'oslo']
    """
    text = plain(text)
    rows = [Mention("date", read.value, read.text, read.start, read.end) for read in dates(text)]
    text = without(text, rows)
    rows += [
        Mention("number", f"{read.value:.12g}", read.text, read.start, read.end)
        for read in numbers(text, ordinals=True)
    ]
    return [*rows, *_names(without(text, rows))]


def _names(text: str) -> Iterator[Mention]:
    for match in _NAME.finditer(text):
        word = match[0]
        if word[0].isupper() and len(word) > 1 and "'" not in word[:2]:
            opens = bool(_OPENING.search(text[max(0, match.start() - _BEFORE) : match.start()]))
            yield Mention("name", word.casefold().removesuffix("'s"), word, *match.span(), opens or not match.start())
