"""Words and patterns by which a question leans on what was said before it, by name; they stand in ``leaning.toml``."""

from __future__ import annotations

import re

from memlab.language.statements import data
from memlab.language.words import (
    ARTICLES,
    AUXILIARIES,
    DEMONSTRATIVES,
    HE,
    IT,
    PLACE_PREPOSITIONS,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    SHE,
    THEY,
    wordset,
)


def leaning(name: str) -> frozenset[str]:
    """Give a list of words.

    >>> from memlab.language.leaning import leaning
    >>> "cost" in leaning("aspects")
    True
    """
    return wordset(data("leaning")[name])


def pattern(name: str, *, case: bool = False) -> re.Pattern[str]:
    """Give a pattern.

    :param case: whether capitals count.
    """
    return re.compile(data("leaning")["patterns"][name], 0 if case else re.I)


PLACES: dict[str, int] = data("leaning")["places"]
"""The place of an item in a list, from 0; the last is -1."""

PERSONS_OF = {word: name for name, its in (("he", HE), ("she", SHE), ("they", THEY), ("it", IT)) for word in its}
"""The pronoun in its first form, by each of its forms."""

JOINING = (PREPOSITIONS | PLACE_PREPOSITIONS | leaning("prepositions")) - leaning("rare_prepositions")
HELPING = AUXILIARIES | leaning("auxiliaries")
FUNCTION_WORDS = (
    ARTICLES | DEMONSTRATIVES | PRONOUNS | QUESTION_WORDS | JOINING | HELPING | leaning("function")
) - leaning("meaning")
"""Words that a question lacks nothing without, compared without what follows an apostrophe."""
