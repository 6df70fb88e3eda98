"""What a clause says: its subject, predicate and object, by rule."""

from __future__ import annotations

import re
from typing import NamedTuple

from memlab.knowledge._objects import EDGE, Claim, hedged, owning, value, with_verb
from memlab.language.clauses import Clause
from memlab.language.statements import ADJECTIVES, ADVERBS, PREPOSITIONS, table, wordlist
from memlab.language.verbs import Form, forms, third

_PAST_ONLY, _VAGUE = wordlist("past_only"), wordlist("vague_kinds")
_DROPPED, _PLANS = wordlist("dropped"), table("plans")
_ABILITIES, _NEGATED, _STATES = wordlist("abilities"), wordlist("negated"), wordlist("states")
_HEDGES, _TALKING, _WORDLESS = wordlist("hedges"), wordlist("talking"), wordlist("wordless")
_NUMBER = re.compile(r"^\d{1,3}$")


class Statement(NamedTuple):
    """What a clause says. ``subject`` is ``""`` for who speaks, else what is possessed (``sister``),
    or with ``own=False`` a name."""

    subject: str
    predicate: str
    object: str
    own: bool = True


def read(clause: Clause) -> list[Statement]:
    """Read a clause of the first person; what is no statement worth keeping gives none.

    >>> from memlab.language.clauses import clauses
    >>> from memlab.knowledge._reading import read
    >>> read(*clauses("I no longer work at Acme."))
    [Statement(subject='', predicate='no longer works at', object='Acme', own=True)]
    >>> read(*clauses("I would love a dog"))
    []
    """
    if clause.hinge in _DROPPED:
        return []
    first = clause.words[0].casefold().strip(EDGE)
    if first in ("i", "we") and len(clause.words) > 2:
        claim = _spoken(clause.words[1:], plural=first == "we")
        if claim and clause.hinge in _PAST_ONLY and not claim.past:
            return []
        # "since I was a kid" tells a time.
        if claim and clause.hinge in ("since", "when") and claim.predicate.startswith("was"):
            return []
        return [Statement("", claim.predicate, claim.object)] if claim else []
    return []


def _spoken(words: list[str], *, plural: bool) -> Claim | None:
    """Read what follows "I" or "we"."""
    group, at = _lead(words)
    if at >= len(words) or hedged(words[: at + 2]):
        return None
    word, rest = words[at].casefold().strip(EDGE), words[at + 1 :]
    if "no longer" in group or "used to" in group:
        return _lexical(word, rest, group, plural=plural)
    if word in ("am", "was", "are", "were"):
        if plural and word == "are":
            return None
        return _copula("was" if word in ("was", "were") else "is", rest)
    if word in ("can",):
        return ability(rest)
    if word == "will":
        return None
    if word == "have" and not plural and len(rest) > 1 and not _is_participle(rest):
        return owning("does not have" if "not" in group else "has", rest) if rest[0].casefold() != "to" else None
    if word in ("have", "has"):
        return _perfect(rest)
    if word == "had" and rest:
        return owning("had", rest) if rest[0].casefold() not in ("to", "been") else None
    if word in _PLANS and rest[:1] == ["to"]:
        return _planned(_PLANS[word], rest[1:])
    return _lexical(word, rest, group, plural=plural)


def _lead(words: list[str]) -> tuple[str, int]:
    """Take adverbs and "no longer", "used to" … off the front: what must be kept, and where to go on."""
    group, at = "", 0
    while at < len(words):
        word = words[at].casefold().strip(EDGE)
        nxt = words[at + 1].casefold() if at + 1 < len(words) else ""
        if (word, nxt) in (("no", "longer"), ("used", "to")):
            group, at = f"{group} {word} {nxt}".strip(), at + 2
        elif word in ("do", "did") and nxt in ("not", "never"):
            group, at = f"{group} {word} not".strip(), at + 2
        elif word == "did" and nxt == "use":
            group, at = "used to", at + 3
        elif word == "never":
            group, at = "never", at + 1
        elif word in ADVERBS:
            at += 1
        else:
            break
    return group, at


def _copula(be: str, words: list[str]) -> Claim | None:
    """Read what follows "I am"."""
    negated = bool(words) and words[0].casefold() == "not"
    words = words[1:] if negated else words
    predicate = f"{be} not" if negated else be
    past = be == "was"
    group, at = _lead(words)
    predicate, words = f"{predicate} {group}".strip(), words[at:]
    while words and words[0].casefold() in ("so", "super", "very", "pretty", "quite", "too", "both", "really"):
        words = words[1:]
    if not words or words[0].casefold() in _HEDGES:
        return None
    word, rest = words[0].casefold().strip(EDGE), words[1:]
    if word in _PLANS and rest[:1] == ["to"]:
        return None if past or negated else _planned(_PLANS[word], rest[1:])
    if word in ("thinking", "considering", "planning") and rest:
        prepositions = rest[0].casefold() in ("about", "of", "on")
        obj = value(rest[prepositions:])
        start = f"{predicate} {word} {rest[0]}" if prepositions else f"{predicate} {word}"
        return Claim(start, obj, past) if obj and (prepositions or word != "thinking") else None
    if _NUMBER.match(word) and (not rest or rest[0].casefold().startswith(("year", "now"))):
        return Claim(f"{predicate} years old", word, past)
    if word in ("a", "an", "the"):
        return _kind(predicate, words, past)
    if word in ADJECTIVES and rest:
        after = ADJECTIVES[word]
        if not after:
            obj = value(rest)
            return Claim(f"{predicate} {word}", obj, past) if obj else None
        if rest[0].casefold() in after:
            if word in ("lucky", "determined"):
                return (
                    with_verb(f"{predicate} {word} to {rest[1].casefold()}", rest[2:], past) if len(rest) > 2 else None
                )
            obj = value(rest[1:])
            return Claim(f"{predicate} {word} {rest[0].casefold()}", obj, past) if obj else None
    if word in _STATES:
        return Claim(predicate, value(words, 3) or word, past)
    if word.endswith("ing") and len(word) > 4 and word not in _TALKING | {"having", "planning", "considering"}:
        return None if negated and past else with_verb(f"{predicate} {word}", rest, past)
    return None


def _kind(predicate: str, words: list[str], past: bool) -> Claim | None:
    """Read "I am a nurse", and leave out "I am a bit tired"."""
    obj = value(words)
    low = [w.casefold() for w in words]
    return Claim(predicate, obj, past) if obj and not _VAGUE & set(low[1:3]) else None


def _is_participle(words: list[str]) -> bool:
    _, at = _lead([w for w in words[:4] if w.casefold() != "not"])
    word = words[at].casefold() if at < len(words) else ""
    form = forms().get(word)
    return word in ("been", "not") or bool(form and "participle" in form.tense)


def _perfect(words: list[str]) -> Claim | None:
    """Read what follows "I have": "been working at", "lived in", "never been to"."""
    negated = bool(words) and words[0].casefold() == "not"
    words = words[1:] if negated else words
    group, at = _lead(words)
    predicate = " ".join(["has", *(["not"] if negated else []), *([group] if group else [])])
    if at >= len(words):
        return None
    word, rest = words[at].casefold(), words[at + 1 :]
    if word == "been" and rest:
        _, skip = _lead(rest)
        rest = rest[skip:]
        if not rest:
            return None
        form = forms().get(rest[0].casefold())
        if rest[0].casefold() == "to":
            obj = value(rest[1:])
            return Claim(f"{predicate} been to", obj, True) if obj else None
        if form and "ing" in form.tense:
            return with_verb(f"{predicate} been {rest[0].casefold()}", rest[1:], True)
        inner = _copula("is", rest)
        return Claim(inner.predicate.replace("is", f"{predicate} been", 1), inner.object, True) if inner else None
    form = forms().get(word)
    if form and "participle" in form.tense and not negated:
        return with_verb(f"{predicate} {word}", rest, True)
    return None


def ability(words: list[str]) -> Claim | None:
    negated = words[:1] == ["not"]
    words = words[1:] if negated else words
    _, at = _lead(words)
    if at >= len(words) or words[at].casefold() not in _ABILITIES:
        return None
    predicate = "cannot" if negated else "can"
    return with_verb(f"{predicate} {words[at].casefold()}", words[at + 1 :], False)


def _planned(predicate: str, words: list[str]) -> Claim | None:
    """Read a plan; its predicate keeps the word that says so."""
    _, at = _lead(words)
    if at + 1 >= len(words) or words[at].casefold() in _WORDLESS or not words[at].isalpha():
        return None
    return with_verb(f"{predicate} to {words[at].casefold()}", words[at + 1 :], False)


def _lexical(word: str, rest: list[str], group: str, *, plural: bool) -> Claim | None:
    """Read a verb of the lexicon."""
    form = forms().get(word)
    if not form and re.fullmatch(r"[a-z-]{3,}ed", word) and word not in _TALKING:
        form = Form(word, frozenset({"past"}), False)
    if form is None or not rest:
        return None
    past = "past" in form.tense and (not form.state or "present" not in form.tense)
    if form.base == "know" and group:
        return None
    if group in ("no longer", "used to", "never") or not group:
        if group == "used to":
            return with_verb(f"used to {word}", rest, True)
        if past:
            return with_verb(f"{group} {word}".strip(), rest, True)
        if plural and not group and word not in ("live", "own", "run"):
            return None
        if word == "read" and rest[0].casefold() in PREPOSITIONS:
            return with_verb("read", rest, True)
        if "present" in form.tense and (form.state or group == "no longer"):
            return with_verb(f"{group} {third(form.base)}".strip(), rest, False)
        return None
    if group == "do not" and form.base in _NEGATED and "present" in form.tense:
        return with_verb(f"does not {form.base}", rest, False)
    return None
