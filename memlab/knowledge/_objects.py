"""The predicate and the object of a clause, once its verb is known; objects that say nothing are none."""

from __future__ import annotations

import re
from typing import NamedTuple

from memlab.language.names import POINTERS
from memlab.language.statements import ADVERBS, PREPOSITIONS, wordlist
from memlab.language.verbs import forms

_MAX_WORDS = 22
EDGE = ' ,.;:!?"”“*_~)('
_TIMES = re.compile(r"^(?:yesterday|today|tonight|last|this|next|lately|again|already|ago|week|night|now)$", re.I)
_REPLY = re.compile(
    r"^(?:the|these|those) (?:\w+ )?"
    r"(?:suggestion|idea|point|tip|advice|question|answer|option|plan|part|story|news|one)s?$"
)
_NOTHINGS, _UNRESOLVED, _DANGLING = wordlist("nothings"), wordlist("unresolved"), wordlist("dangling")
_HEDGES, _LIGHT, _QUANTIFIERS = wordlist("hedges"), wordlist("light"), wordlist("quantifiers")


def hedged(words: list[str]) -> bool:
    """Say whether words tell what may be rather than what is; "May" is a month."""
    return any(word.casefold() in _HEDGES and word != "May" for word in words)


class Claim(NamedTuple):
    """A predicate and its object; ``past`` where it tells what happened."""

    predicate: str
    object: str
    past: bool = False


def with_verb(predicate: str, rest: list[str], past: bool) -> Claim | None:
    """Take prepositions and, after "stopped", the verb into the predicate; the rest is the object."""
    verb = predicate.split()[-1]
    if verb in ("trying", "starting", "learning") and rest[:1] == ["to"] and len(rest) > 2:
        predicate, rest = f"{predicate} to {rest[1].casefold()}", rest[2:]
    if verb == "passed" and rest[:1] == ["away"]:
        return Claim("has", "passed away", past)
    while rest and rest[0].casefold() in ADVERBS | {"not"} and len(rest) > 1:
        if rest[0].casefold() == "not":
            return None
        rest = rest[1:]
    if verb in ("stopped", "quit", "started", "began", "tried", "stops", "kept") and rest:
        if rest[0].casefold().endswith("ing") and len(rest) > 1:
            predicate, rest = f"{predicate} {rest[0].casefold()}", rest[1:]
        elif rest[0] == "to" and len(rest) > 2:
            if verb == "tried":
                return None
            predicate, rest = f"{predicate} to {rest[1].casefold()}", rest[2:]
    if verb in ("got", "gotten", "getting") and rest:
        if rest[0].casefold() in ("married", "engaged", "divorced", "promoted", "fired", "laid", "hired", "accepted"):
            return Claim(predicate, f"{rest[0].casefold()} {value(rest[1:], 4)}".strip(), past)
        if rest[0].casefold() in ("to", "so", "really", "into", "lost", "stuck", "back", "used", "up", "through"):
            return None
    taken = 0
    if verb in ("switched", "changed", "moved", "moving", "switching") and rest[:1] == ["from"] and "to" in rest[2:]:
        taken = 2
    while rest and taken < 2 and rest[0] in PREPOSITIONS and len(rest) > 1:
        predicate, rest, taken = f"{predicate} {rest[0].casefold()}", rest[1:], taken + 1
    obj = value(rest)
    # What happened once is no update, and "for a year now" is none.
    obj = re.sub(r",? (?:just )?now$", "", obj) if past else obj
    return Claim(predicate, obj, past) if obj else None


def value(words: list[str], most: int = _MAX_WORDS) -> str:
    """Give the words as an object, or nothing where they point elsewhere."""
    words = _first_part(words)
    while words and (words[0].casefold().strip(EDGE) in ADVERBS - {"all", "first", "both", "once", "twice"}):
        words = words[1:]
    low = [w.casefold().strip(EDGE) for w in words]
    first = low[:1]
    if first and first[0] in _QUANTIFIERS and (len(low) < 2 or low[1] in POINTERS):
        return ""
    if not low or low[0] in POINTERS | {"and", "or", "but"} or not re.search(r"[^\W_]", low[0]):
        return ""
    form = forms().get(low[0])
    if (form and form.tense <= {"past", "participle"}) or " ".join(low) in _NOTHINGS or _REPLY.match(" ".join(low)):
        return ""
    if {"you", "your", "yours", "you're", "would", "if", "me"} & set(low) or _TIMES.match(low[0]):
        return ""
    if len(words) > most:
        return ""
    end = len(words)
    while end and low[end - 1] in _DANGLING:
        end -= 1
    if not end or low[end - 1] in _UNRESOLVED or (end == 1 and low[0] in PREPOSITIONS):
        return ""
    return " ".join(words[:end]).strip(" ,.;:!?")


def _first_part(words: list[str]) -> list[str]:
    """Cut at a comma that begins no list and no correction ("Oslo, not Bergen")."""
    for i, word in enumerate(words[:-1]):
        if word.endswith(","):
            later = [w.casefold() for w in words[i + 1 :]]
            listed = {"and", "or", "&"} & set(later)
            return (
                words
                if later[0] in ("not", "more", "less") or (listed and not later[0][0].isdigit())
                else words[: i + 1]
            )
    return words


def owning(predicate: str, words: list[str]) -> Claim | None:
    """Read "I have two kids", and leave out "I have no idea", "I had a great time"."""
    obj = value(words)
    if not obj:
        return None
    low = [w.casefold().strip(EDGE) for w in obj.split()]
    head = next((w for i, w in enumerate(low[:6]) if i + 1 == len(low) or low[i + 1] in PREPOSITIONS | {"and"}), "")
    determined = low[0] in {"a", "an", "the", "my", "our", "two", "three", "four", "five", "six", "several", "some",
                            "no"} or low[0].isdigit()  # fmt: skip
    if _LIGHT & {*low[1:4], head, low[0]} or not (determined or head.endswith("s")):
        return None
    return Claim(predicate, obj, predicate == "had") if low[0] != "no" else None
