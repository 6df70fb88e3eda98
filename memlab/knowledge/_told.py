"""A statement as it is remembered: in which manner it says what relation, of which one value holds at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from memlab.knowledge._patterns import P
from memlab.knowledge._relations import relations
from memlab.language.manner import bases

PLANNED = "plans to "
_MANNERS = {
    "no longer ": "end", "is no longer ": "end", "used to ": "was", PLANNED: "plan", "does not ": "not",
    "is not ": "not",
}  # fmt: skip
PARTED = "broke up with"
WILD = frozenset({"gave up", "has left", "is off", PARTED})
"""Predicates that end whatever has their value."""
_VALUE_ONLY = frozenset(
    f"{verb} {place}".strip()
    for verb in ("is", "are", "runs", "starts", "opens", "closes", "meets")
    for place in ("", "on", "at")
) | {"is now", "moved to"}
SCHEDULES = frozenset(predicate for predicate in _VALUE_ONLY if predicate.endswith((" on", " at", " to")))
_COUNTING = frozenset({"have", "teach", "take"})
PLAIN = frozenset(
    bases("it is now the a an to and i my you me we be been have has new not that this of in on for from so they all")
)


@dataclass
class Told:
    """A statement that may still hold.

    :param attribute: what of its owner the subject is: "gym code" of "Nora's gym code".
    :param fresh: whether the message says that it is so from now on.
    """

    id: str
    subject: str
    manner: str
    relation: str
    one: str | None
    predicate: str
    object: str
    words: frozenset[str]
    attribute: frozenset[str]
    speaker: str | None
    context: frozenset[str]
    fresh: bool
    closed: bool = False

    def same(self, other: Told) -> bool:
        """Whether the values are one, or one is a part of the other."""
        return self.words == other.words or bool(
            self.words and other.words and (self.words <= other.words or other.words <= self.words)
        )


def still_open(memory: list[Told]) -> Iterator[Told]:
    """Give what was told in a scope and may still hold, the latest first."""
    return (one for one in reversed(memory) if not one.closed)


@cache
def _table() -> dict[str, tuple[str, str | None]]:
    """Give the base and the group of each predicate of the table of relations, in every manner."""
    return {form: (row.base, row.one) for row in relations() for form in (row.says, row.base)}


def _known(predicate: str) -> tuple[str, str, str | None] | None:
    """Give manner, base and group of a predicate of the table."""
    lead = next((lead for lead in _MANNERS if predicate.startswith(lead)), "")
    rest = predicate.removeprefix(lead)
    hit = _table().get(rest) or (_table().get(f"is {rest}".strip()) if lead else None)
    return (_MANNERS.get(lead, "is"), *hit) if hit else None


def read(fact_id: str, subject: str, predicate: str, obj: str, speaker: str | None, text: str) -> Told | None:
    """Read a statement; nothing where its predicate is not one of the rules'."""
    known = _known(predicate)
    if predicate in WILD:
        manner, base, one = "is" if predicate == PARTED else "end", predicate, None
    elif (predicate in _VALUE_ONLY and known is None) or (predicate == "is" and attribute_of(subject)):
        manner, base, one = "is", "is", "value"
    elif known:
        manner, base, one = known
        if base == "be":
            # "Is vegan" and "is married" are told by one verb, and are two kinds of thing.
            groups = (r.one for r in relations() if r.says == "is" and any(p.match(f"be {obj}") for p in r.read))
            one = next(groups, None)
        if base in _COUNTING:
            one = _counted(obj) or one
    else:
        return None
    # "Living in the city, I miss the woods" carries out no plan.
    fresh = bool(P["renewed"].search(text) or P["begun"].search(text))
    words, attribute, context = (frozenset(bases(said)) for said in (obj, attribute_of(subject), text))
    return Told(fact_id, subject, manner, base, one, predicate, obj, words, attribute, speaker, context, fresh)


def attribute_of(subject: str) -> str:
    """Give what of its owner a subject is, if it is that: "gym code" of "Nora's gym code"."""
    _, found, rest = subject.rpartition("'s ")
    return rest if found else ""


def _counted(obj: str) -> str | None:
    """Name what is counted: "two grey cats" and "3 cats" count cats."""
    words = list(bases(re.split(r"\s+(?:named|called|for|with|of|in|at|from|left|on|by)\b", obj)[0]))
    return f"number of {words[-1]}" if len(words) > 1 and any(word.isdigit() for word in words[:2]) else None


def shape(value: str) -> str:
    """Write a value as a pattern: digits, words, names, mixtures."""
    value = value.strip()
    if re.fullmatch(r"[A-ZÀ-Þ][\w'-]+(?:\s+[A-ZÀ-Þ][\w'-]+)*", value):
        return "name"
    if re.fullmatch(r"[\d ()+-]{7,}", value) and sum(c.isdigit() for c in value) > 6:
        return "phone"
    if value.isdigit():
        return f"digits{len(value)}"
    return "code" if re.search(r"\d", value) else "word"


def shares(one: Told, value: str) -> bool:
    """Say whether a value names what a statement says, or of whom, in other words or fewer."""
    words, told = frozenset(bases(value)) - PLAIN, one.words - PLAIN
    return bool(words) and (words <= one.words | frozenset(bases(one.subject)) or (bool(told) and told <= words))
