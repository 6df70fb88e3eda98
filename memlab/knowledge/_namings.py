"""Who is called how: "my sister Anna", "a dog named Max"."""

from __future__ import annotations

import re

from memlab.knowledge._phrase import Statement
from memlab.language.names import POINTERS
from memlab.language.people import PERSONS, PETS
from memlab.language.statements import wordlist

_NAME = r"(?!(?:I|The|My|And|But|So|Is|It|He|She|We|They|You|Mom|Dad)\b)[A-Z][\w'-]+"
_ROLE = "|".join(sorted((re.escape(w) for w in PERSONS | PETS), key=len, reverse=True))
_NAMINGS = (
    re.compile(
        rf"\b(?i:my|our) (?P<kind>(?:[a-z'-]+ ){{0,2}}(?:{_ROLE}))(?P<comma>,)? (?P<name>{_NAME}(?: {_NAME})?)"
        r"(?(comma)(?=[,.!?]|$))"
    ),
    re.compile(
        rf"\b(?i:my|our) (?P<kind>(?:[a-z'-]+ ){{0,2}}(?:{_ROLE}))(?:'s name is|(?:'s| is|,| was)? (?:called|named)) "
        rf"(?P<name>{_NAME}(?: {_NAME})?)"
    ),
    re.compile(
        rf"\b(?i:i|we) (?:have|got|adopted|own) (?:got )?an? (?P<kind>(?:[a-z'-]+ ){{0,2}}(?:{_ROLE})),?"
        r" (?:called |named |(?<=, ))"
        rf"(?P<name>{_NAME}(?: {_NAME})?)"
    ),
)
_OTHER_OWNER = re.compile(r"(?:'s|s')$")
_NO_NOUN = POINTERS | wordlist("after_noun")


def namings(sentence: str, speaker: str = "") -> list[Statement]:
    """Read who is called how.

    >>> from memlab.knowledge._namings import namings
    >>> namings("I saw my older sister Anna.")[0].predicate, namings("My dog is called Max!")[0].object
    ('has an older sister named', 'Max')
    """
    named = {}
    for pattern in _NAMINGS:
        for match in pattern.finditer(sentence):
            kind, name = match["kind"], re.sub(r"'s?$", "", match["name"])
            words = [w for w in kind.split() if w not in ("dear", "lovely", "own", "new", "amazing", "little")]
            if any(_OTHER_OWNER.search(w) for w in words) or set(words[:-1]) & (_NO_NOUN | PERSONS):
                continue
            article = "an" if words[0][0] in "aeiou" else "a"
            named[name] = Statement(speaker, f"has {article} {' '.join(words)} named", name)
    return list(named.values())
