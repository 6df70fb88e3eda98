"""Which questions lean on the messages before them: a few signs of English, read off the question alone."""

from __future__ import annotations

import re

from memlab.language.tokens import tokens
from memlab.language.words import (
    HE,
    QUESTION_WORDS,
    SHE,
    STOP_WORDS,
    THIRD_PERSON,
)

SHORT = 2
"""A question with at most so many content words, and no name, is short."""

_ELLIPSIS = re.compile(r"\s*(?:and|but|or|so|also|then|now|what about|how about|why(?: not)?\s*\?|for how)\b", re.I)
_OTHER = re.compile(
    r"\b(?:else|others?|another|same|former|latter|too\s*\?)(?!\w)"
    r"|\b(?:the|that|this|which|first|second|third|last|old|new) ones?\b"
    r"|\bthe (?:first|second|third|fourth|fifth|last)\s*(?:[,?.]|$)",
    re.I,
)
_POINTING = {"this", "that", "these", "those", "there", "then"}
_ASKED_FOR = QUESTION_WORDS | {"many", "much", "long", "far", "old"}


def signs(question: str) -> list[str]:
    """Name the signs that a question does not stand alone: pronoun, demonstrative, other, ellipsis, short.

    He and she are no sign behind a name ("What did Ann say about her sister?"), a demonstrative is none behind a
    content word, where it opens a clause ("the flat that Ann got").

    >>> from memlab.conversation.gate import signs
    >>> signs("And when did she buy that?"), signs("When did Ann buy the lamp from her sister?")
    (['pronoun', 'demonstrative', 'ellipsis', 'short'], [])
    """
    words = tokens(question)
    keys = [word.key for word in words]
    named = [i for i, word in enumerate(words) if is_name(word.text, opens=i == 0)]
    before = named[0] if named else len(words)
    ends = (0, len(keys) - 1)
    pointing = [i for i, key in enumerate(keys) if key in _POINTING and (i in ends or keys[i - 1] in STOP_WORDS)]
    exists = re.search(r"\bthere (?:is|are|was|were|been|be)\b|\b(?:is|are|was|were) there\b", question, re.I)
    content = [key for key in keys if key not in STOP_WORDS and key not in _ASKED_FOR]
    found = {
        "pronoun": any(
            key in THIRD_PERSON - (HE | SHE) or (key in HE | SHE and i < before) for i, key in enumerate(keys)
        ),
        "demonstrative": bool(pointing) and not (exists and len(pointing) == 1),
        "other": _OTHER.search(question) is not None,
        "ellipsis": _ELLIPSIS.match(question) is not None,
        "short": len(content) <= SHORT and not named,
    }
    return [name for name, there in found.items() if there]


def is_name(word: str, *, opens: bool) -> bool:
    """Say whether a word of a question is a name: a capital, not of the first word, nor of *I*."""
    return word[0].isupper() and not opens and word.split("'")[0] not in ("I",)
