"""The numbers and dates of a text in one list, as values that can be compared: "3 May" and "May 3rd" are one."""

from __future__ import annotations

from typing import NamedTuple

from memlab.language.dates import dates
from memlab.language.numbers import numbers
from memlab.language.tokens import plain, without


class Mention(NamedTuple):
    """A value in a text.

    :param kind: ``number`` or ``date``.
    :param value: a number in digits; a date as :class:`memlab.language.dates.Date` has it.
    :param text: as it is written.
    :param start: where it begins in the plain text; ``end`` where it ends.
    """

    kind: str
    value: str
    text: str
    start: int
    end: int


def mentions(text: str) -> list[Mention]:
    """List the values of a text: dates, then the numbers outside of these.

    :param text: read as :func:`memlab.language.tokens.plain` writes it.

    >>> from memlab.language.mentions import mentions
    >>> [m.value for m in mentions("On May 3rd Mel paid $1,250 for twenty-five cups.")]
    ['05-03', '1250', '25']
    """
    text = plain(text)
    read = dates(text)
    counted = numbers(without(text, read), ordinals=True)
    rows = [Mention("date", one.value, one.text, one.start, one.end) for one in read]
    return rows + [Mention("number", f"{one.value:.12g}", one.text, one.start, one.end) for one in counted]
