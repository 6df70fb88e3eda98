"""Closed classes of English words, and the lists of ``words.toml``.

Everything is lower case and written with a straight apostrophe, as
:func:`memlab.text.tokens_and_sentences.normalize_word` gives it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


def wordset(text: str) -> frozenset[str]:
    """Give the words of a text between white space."""
    return frozenset(text.split())


@cache
def read_word_lists() -> dict[str, Any]:
    """Read ``words.toml``: texts and tables of words by name."""
    return tomllib.loads(files("memlab.text").joinpath("words.toml").read_text(encoding="utf-8"))


ARTICLES = wordset("a an the")
DEMONSTRATIVES = wordset("this that these those")
POSSESSIVES = wordset("my your his her its our their")
FIRST_PERSON = wordset("i me my mine myself we us our ours ourselves")
SECOND_PERSON = wordset("you your yours yourself yourselves")
HE = wordset("he him his himself")
SHE = wordset("she her hers herself")
THIRD_PERSON = HE | SHE | wordset("it its itself they them their theirs themselves")
PRONOUNS = FIRST_PERSON | SECOND_PERSON | THIRD_PERSON

BE = wordset("be am is are was were been being")
HAVE = wordset("have has had having")
DO = wordset("do does did doing done")
MODALS = wordset("can could may might must shall should will would")
AUXILIARIES = BE | HAVE | DO | MODALS
FINITE_AUXILIARIES = AUXILIARIES - wordset("be been being having doing done")
"""Those that open a question."""

QUESTION_WORDS = wordset("what which who whom whose when where why how")
CONJUNCTIONS = wordset("and or but nor so if than then as because while")
PREPOSITIONS = wordset("of at by for with about to from in on into off out up")
NEGATIONS = wordset("no not never none nothing nobody nowhere neither nor cannot without")
CONTRACTIONS = frozenset(
    f"{word}{ending}"
    for ending, words in read_word_lists()["shortened"].items()
    for word in words.split()
)
"""All but those with 's, which a word is compared without."""

FUNCTION_WORDS = wordset("many much").union(
    *(ARTICLES, DEMONSTRATIVES, PRONOUNS, AUXILIARIES, QUESTION_WORDS, CONJUNCTIONS, PREPOSITIONS)
)
"""Words that retrieval leaves out; "how many" and "how much" ask as "how" does."""
STOP_WORDS = FUNCTION_WORDS | NEGATIONS | CONTRACTIONS | wordset(read_word_lists()["further"])
"""Words that no text is about."""

MONTHS = tuple(read_word_lists()["months"].split())
WEEKDAYS = tuple(read_word_lists()["weekdays"].split())
TIMES = frozenset({*MONTHS, *WEEKDAYS}) - {"may"} | wordset(read_word_lists()["times"])
"""Words of time; "may" is a verb, and "day" a greeting, more often than not."""
NUMBERS = wordset(read_word_lists()["numbers"])
"""Words of number and of place in an order; ``text.number_expressions`` reads their values."""
