"""What a clause says about somebody or something else: "my sister", "Anna", "a dog named Max"."""

from __future__ import annotations

import re

from memlab.knowledge._objects import EDGE, Claim, hedged, owning, value, with_verb
from memlab.knowledge._reading import Statement, ability
from memlab.language.names import POINTERS
from memlab.language.people import PERSONS, PETS, PLURAL_PERSONS
from memlab.language.statements import ADVERBS, wordlist
from memlab.language.verbs import forms

_NAME = r"(?!(?:I|The|My|And|But|So|Is|It|He|She|We|They|You|Mom|Dad)\b)[A-Z][\w'-]+"
_ROLE = "|".join(sorted((re.escape(w) for w in PERSONS | PETS), key=len, reverse=True))
_NAMINGS = (
    re.compile(
        rf"\b(?i:my|our) (?P<kind>(?:[a-z'-]+ ){{0,2}}(?:{_ROLE}))(?P<comma>,)? (?P<name>{_NAME}(?: {_NAME})?)"
        r"(?(comma)(?=[,.!?]|$))"
    ),
    re.compile(
        rf"\b(?i:my|our) (?P<kind>(?:[a-z'-]+ ){{0,2}}(?:{_ROLE}))(?:'s name is|(?: is|,| was)? (?:called|named)) "
        rf"(?P<name>{_NAME}(?: {_NAME})?)"
    ),
    re.compile(
        rf"\b(?i:i|we) (?:have|got|adopted|own) an? (?P<kind>(?:[a-z'-]+ ){{0,2}}(?:{_ROLE})),? (?:called|named) "
        rf"(?P<name>{_NAME}(?: {_NAME})?)"
    ),
)
_OTHER_OWNER = re.compile(r"(?:'s|s')$")
_IDIOMS = wordlist("idioms")
_NO_NOUN = POINTERS | wordlist("after_noun")
_COPULAS = ("is", "are", "was", "were")


def namings(sentence: str) -> list[Statement]:
    """Read who is called how.

    >>> from memlab.knowledge._others import namings
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
            named[name] = Statement("", f"has {article} {' '.join(words)} named", name)
    return list(named.values())


def read_possessed(words: list[str]) -> list[Statement]:
    """Read what follows "my": "API key is now X", "dog Max loves the beach".

    >>> from memlab.knowledge._others import read_possessed
    >>> read_possessed("favourite colour is blue".split())
    [Statement(subject='favourite colour', predicate='is', object='blue', own=True)]
    """
    at = _end_of_noun([w.casefold().strip(EDGE) for w in words])
    if not at or at + 1 >= len(words):
        return []
    noun = [w.strip(EDGE) for w in words[:at] if w.casefold() not in ADVERBS or w == "first"]
    low = [w.casefold() for w in noun]
    if (
        not low
        or any(w.endswith(",") for w in words[: at - 1])
        or low[-1] in _IDIOMS
        or set(low) & _NO_NOUN
        or any(w.endswith(("n't", "'m", "'re")) for w in low)
    ):
        return []
    plural = low[-1] in PLURAL_PERSONS or low[-1].endswith("s")
    claim = _claim(words[at:], plural=plural)
    if not claim or not claim.object or (claim.predicate in ("is called", "is named") and low[-1] in PERSONS | PETS):
        return []
    subject, own = " ".join(noun), True
    roles = [i for i, w in enumerate(low) if w.strip(",") in PERSONS | PETS]
    if roles and roles[0] + 1 < len(noun) and all(w[:1].isupper() for w in noun[roles[0] + 1 :]):
        subject, own = " ".join(noun[roles[0] + 1 :]), False
    return [Statement(subject, claim.predicate, claim.object, own)]


def read_named(words: list[str], people: dict[str, str]) -> list[Statement]:
    """Read "Anna works at Acme" for known names.

    :param people: each name in lower case → how it is written best.
    """
    for length in (3, 2, 1):
        name = people.get(" ".join(words[:length]).casefold())
        if name and len(words) > length + 1 and words[0][:1].isupper():
            claim = _claim(words[length:], plural=False)
            if claim and claim.object:
                return [Statement(name, claim.predicate, claim.object, own=False)]
    return []


def about_others(statement: Statement) -> bool:
    """Say whether the statement is about somebody else than who makes it."""
    if not statement.subject:
        return False
    kinds = PERSONS | PLURAL_PERSONS | PETS
    return not statement.own or statement.subject.split()[-1].casefold() in kinds


def _end_of_noun(low: list[str]) -> int:
    """Find the verb after a noun of at most five words."""
    known = forms()
    for at in range(1, min(len(low), 6)):
        word = low[at]
        if word in _COPULAS or word in ("has", "have", "can"):
            return at
        form = known.get(word)
        # "my favourite play", "my paint brush": only forms that are no noun.
        if form and (
            (form.tense & {"third"} and form.state) or (form.tense == {"past"}) or form.tense >= {"past", "participle"}
        ):
            return at
        if form and form.tense == {"present"} and form.state and low[at - 1] in PLURAL_PERSONS | PETS:
            return at
    return 0


def _claim(words: list[str], *, plural: bool) -> Claim | None:
    word, rest = words[0].casefold(), words[1:]
    if hedged(words[:3]):
        return None
    group = ""
    if word in ("no", "used") and rest[:1] in (["longer"], ["to"]) and len(rest) > 2:
        group, word, rest = f"{word} {rest[0]}", rest[1].casefold(), rest[2:]
    if word in _COPULAS:
        return _is(word, rest)
    if word == "can":
        return ability(rest)
    if word in ("has", "have"):
        form = forms().get(rest[0].casefold()) if rest else None
        if rest[:1] in (["been"], ["not"], ["to"]):
            return None
        if form and "participle" in form.tense and len(rest) > 1:
            return with_verb(f"has {rest[0].casefold()}", rest[1:], True)
        return owning("have" if plural else "has", rest)
    form = forms().get(word)
    if form is None or not rest or (word == "had" and rest[0].casefold() in ("to", "been")):
        return None
    return with_verb(f"{group} {word}".strip(), rest, "past" in form.tense)


def _is(be: str, rest: list[str]) -> Claim | None:
    for mark in ("not", "now", "no longer", "currently", "still"):
        length = len(mark.split())
        if " ".join(rest[:length]).casefold() == mark and len(rest) > length:
            be, rest = f"{be} {mark}", rest[length:]
    form = forms().get(rest[0].casefold()) if rest else None
    if form and form.tense & {"ing"} and len(rest) > 1:
        return with_verb(f"{be} {rest[0].casefold()}", rest[1:], False)
    if rest and rest[0].casefold() in ("called", "named", "from", "in", "at", "into", "about") and len(rest) > 1:
        obj = value(rest[1:])
        return Claim(f"{be} {rest[0].casefold()}", obj) if obj else None
    obj = value(rest)
    return Claim(be, obj) if obj else None
