"""Closed classes of English words, and the lists of ``words.toml``.

Everything is lower case and written with a straight apostrophe, as :func:`memlab.language.tokens.key` gives it.
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
def lists() -> dict[str, Any]:
    """Read the lists of words that are kept as data, by name.

    >>> from memlab.language.words import lists
    >>> sorted(lists())
    ['adverbs', 'asking', 'not_about', 'verbs']
    """
    return tomllib.loads(files("memlab.language").joinpath("words.toml").read_text(encoding="utf-8"))


ARTICLES = frozenset({"a", "an", "the"})
DEMONSTRATIVES = frozenset({"this", "that", "these", "those"})
POSSESSIVES = frozenset({"my", "your", "his", "her", "its", "our", "their"})
FIRST_PERSON = wordset("i me my mine myself we us our ours ourselves")
SECOND_PERSON = wordset("you your yours yourself yourselves")
HE = frozenset({"he", "him", "his", "himself"})
SHE = frozenset({"she", "her", "hers", "herself"})
THIRD_PERSON = HE | SHE | wordset("it its itself they them their theirs themselves")
PRONOUNS = FIRST_PERSON | SECOND_PERSON | THIRD_PERSON

BE = wordset("be am is are was were been being")
HAVE = frozenset({"have", "has", "had", "having"})
DO = frozenset({"do", "does", "did", "doing", "done"})
MODALS = wordset("can could may might must shall should will would")
AUXILIARIES = BE | HAVE | DO | MODALS
FINITE_AUXILIARIES = AUXILIARIES - {"be", "been", "being", "having", "doing", "done"}
"""Those that open a question."""

QUESTION_WORDS = wordset("what which who whom whose when where why how")
CONJUNCTIONS = wordset("and or but nor so if than then as because while")
PREPOSITIONS = wordset("of at by for with about to from in on into off out up")
NEGATIONS = wordset("no not never none nothing nobody nowhere neither nor cannot without")
NEGATED = frozenset(
    f"{stem}n't"
    for stem in wordset("is are was were has have had do does did ca could might must sha should wo would ai")
)
_SHORTENED = {
    "m": "i",
    "re": "you we they there what who where how",
    "ve": "i you we they could should would might must who",
    "ll": "i you he she it we they that there this who what",
    "d": "i you he she it we they that there who how where",
}
CONTRACTIONS = NEGATED | frozenset(f"{word}'{ending}" for ending, words in _SHORTENED.items() for word in words.split())
"""All but those with 's, which a word is compared without."""

# Indefinites, further conjunctions and prepositions, quantifiers, adverbs, and verbs that tell little alone.
_FURTHER = wordset(
    """someone somebody something anyone anybody anything everyone everybody everything one ones although though unless
    until till whereas whether since either both yet except above across after against along amid among amongst
    around before behind below beneath beside besides between beyond despite down during inside like near onto
    outside over past per regarding through throughout toward towards under upon versus via within all another any
    each enough every few fewer less least many more most much other others own same several some such again almost
    alone already also always anyhow anyway anywhere aside else elsewhere even ever everywhere further hence here
    however indeed instead just maybe meanwhile moreover mostly namely nevertheless now often once only otherwise
    perhaps quite rather really sometimes somehow somewhere still there therefore thus together too very well become
    becomes became becoming find finds found get gets got getting give gives gave go goes let put see seem seems
    seemed seeming take takes took tell know due etc eg ie latter former last next whole whatever whenever"""
)
STOP_WORDS = frozenset().union(
    *(ARTICLES, DEMONSTRATIVES, PRONOUNS, AUXILIARIES, QUESTION_WORDS, CONJUNCTIONS, PREPOSITIONS, NEGATIONS),
    *(CONTRACTIONS, _FURTHER),
)
"""Words that no text is about."""

FUNCTION_WORDS = frozenset({"many", "much"}).union(
    *(ARTICLES, DEMONSTRATIVES, PRONOUNS, AUXILIARIES, QUESTION_WORDS, CONJUNCTIONS, PREPOSITIONS)
)
"""Words that retrieval leaves out; "how many" and "how much" ask as "how" does."""

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TIMES = frozenset({*MONTHS, *WEEKDAYS}) - {"may"} | wordset(
    """week weeks month months year years today tonight tomorrow yesterday weekend morning afternoon evening night
    summer winter spring autumn fall birthday anniversary ago"""
)
"""Words of time; "may" is a verb, and "day" a greeting, more often than not."""

NUMBERS = wordset(
    """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen first second
    third fourth fifth sixth seventh eighth ninth tenth once twice half"""
)
"""Words of number and of place in an order; their values are read by :mod:`memlab.language.numbers`."""
