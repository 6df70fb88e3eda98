"""Dates in German and Spanish: how a day, a month and a year are written there.

Each pattern has groups ``year``, ``month`` and ``day``, of which it may leave some out. A month is
a number, or one of the names of :data:`MONTH_NAMES`.
"""

from __future__ import annotations

from collections.abc import Mapping

MONTH_NAMES: Mapping[str, tuple[str, ...]] = {
    "de": (
        "januar jänner jan",
        "februar feber feb",
        "märz mär",
        "april apr",
        "mai",
        "juni jun",
        "juli jul",
        "august aug",
        "september sept sep",
        "oktober okt",
        "november nov",
        "dezember dez",
    ),
    "es": (
        "enero ene",
        "febrero feb",
        "marzo mar",
        "abril abr",
        "mayo",
        "junio jun",
        "julio jul",
        "agosto ago",
        "septiembre setiembre sept sep",
        "octubre oct",
        "noviembre nov",
        "diciembre dic",
    ),
}
"""The names of the months, January first: in full, other names, and short ones."""

_SHORT = 4
"""Letters of a short name at most.

"Mai" and "juli" are short in full, and stand first in their rows.
"""


def _alternation_longest_first(names: list[str]) -> str:
    longest_first = sorted(names, key=len, reverse=True)
    return "|".join(longest_first)


def _month_pattern(language: str, *, with_short: bool) -> str:
    """Give a pattern of the months' names.

    :param with_short: whether short names count too, which are words or the beginnings of
        others where no day or year stands beside them: "mar" is the sea.
    """
    month_names: list[str] = []
    for name_row in MONTH_NAMES[language]:
        full_name, *other_names = name_row.split()
        long_names = [
            other_name for other_name in other_names if with_short or len(other_name) > _SHORT
        ]
        month_names += [full_name, *long_names]
    return rf"(?P<month>{_alternation_longest_first(month_names)})\b"


_DAY_FIRST = (
    r"(?<![\d/.-])(?P<day>\d\d?)([/.-])(?P<month>\d\d?)\2(?P<year>[12]\d{3}|\d\d)(?![\d/-]|\.\d)"
)
_YEAR_FIRST = r"(?<![\d/.-])(?P<year>[12]\d{3})-(?P<month>\d\d?)(?:-(?P<day>\d\d?))?(?![\d/-])"

DATE_PATTERNS: Mapping[str, tuple[str, ...]] = {
    "de": (
        _YEAR_FIRST,
        _DAY_FIRST,
        # am 24.9., den 24. September 2025, Ersten Mai
        r"(?<=\b(?:am|vom|zum|den|dem|der|bis|ab|seit|vor|nach|und) )"
        r"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?!\d)",
        r"\b(?:(?P<day>\d\d?)\.?|(?P<first>erste[rn]?)) "
        rf"{_month_pattern('de', with_short=True)}\.?(?: (?P<year>[12]\d{{3}})\b)?",
        rf"\b{_month_pattern('de', with_short=True)}\.? (?P<year>[12]\d{{3}})\b",
        r"(?<=\b(?:in|jahre?s?|seit|bis|ab|vor|nach|von|anfang|mitte|ende|frühling|frühjahr|sommer"
        r"|herbst|winter) )(?P<year>(?:19|20)\d\d)\b(?![%:/-]|[.,]\d| jahren\b)",
        rf"\b{_month_pattern('de', with_short=False)}",
    ),
    "es": (
        _YEAR_FIRST,
        _DAY_FIRST,
        # 24 de septiembre de 2025, 1º de mayo, primero de mayo del 2024
        r"\b(?:(?P<day>\d\d?)[º°]?|(?P<first>primero)) (?:de )?"
        rf"{_month_pattern('es', with_short=True)}\.?(?:,?(?: del?)? (?P<year>[12]\d{{3}})\b)?",
        rf"\b{_month_pattern('es', with_short=True)}\.?(?: del?)? (?P<year>[12]\d{{3}})\b",
        r"(?<=\b(?:en|desde|hasta|del?|año|entre|primavera|verano|otoño|invierno|(?:19"
        r"|20)\d\d [ay])"
        r" )(?P<year>(?:19|20)\d\d)\b(?![%:/-]|[.,]\d| años\b)",
        # Abril and Julio are names of people, too; months have no capital there.
        rf"\b(?:(?<=\b(?:en|desde|hasta|del?|este|para|mes de) )|(?-i:(?=\p{{Ll}})))"
        rf"{_month_pattern('es', with_short=False)}",
    ),
}
"""How dates are written, the most precise first: what one pattern has read is not read again."""


def month_number_of_name_or_digits(name_or_digits: str, language: str) -> int:
    """Give the number of a month that is named by a word of its language, or by its number.

    >>> from memlab.text.german_spanish_dates import month_number_of_name_or_digits
    >>> month_number_of_name_or_digits("Okt", "de")
    10
    >>> month_number_of_name_or_digits("05", "es")
    5
    """
    if name_or_digits.isdigit():
        return int(name_or_digits)
    for month_place, name_row in enumerate(MONTH_NAMES[language], start=1):
        if name_or_digits.lower() in name_row.split():
            return month_place
    raise KeyError(name_or_digits)
