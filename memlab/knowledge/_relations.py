"""The table of relations, and the statement that a verb phrase makes by it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from memlab.knowledge._patterns import P, W, whole
from memlab.knowledge._phrase import (
    FORMER,
    IT,
    PAST,
    PERFECT,
    PLAN,
    PRESENT,
    PROGRESSIVE,
    Statement,
    Verb,
    lemma,
    nominal,
    proper,
    trimmed,
)  # fmt: skip
from memlab.language.manner import bases
from memlab.language.people import PERSONS, PETS
from memlab.language.verbs import infinitive, third

_HOLDS = {
    "state": {PRESENT, PROGRESSIVE, PERFECT},
    "now": {PRESENT, PROGRESSIVE, PERFECT},
    "event": {PAST, PERFECT},
    "end": {PAST, PERFECT},
    "once": {PAST, PERFECT},
    "trip": set(),
}
"""In which tenses a relation holds, by how it is told."""
_IN_MANNER = re.compile(r"(?:is )?(?:no longer|not)\b\s*|(?:plans|used) to |does(?: not|n't) ", re.I)
_ESTATE = PETS | PERSONS | W["vehicle"] | W["estate"]


class Relation(NamedTuple):
    """A row of ``relations.toml``, for one way to tell it."""

    says: str
    base: str
    kind: str
    told: str
    one: str | None
    days: int | None
    whole: str
    there: str
    read: tuple[re.Pattern[str], ...]


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("memlab.knowledge").joinpath("relations.toml").read_text(encoding="utf-8"))


@cache
def kinds() -> dict[str, frozenset[str]]:
    """Give what each general word covers, as base forms."""
    return {bases(word)[0]: frozenset(bases(listed)) for word, listed in _table()["kinds"].items()}


@cache
def relations() -> tuple[Relation, ...]:
    """Read the table of relations."""
    return tuple(
        Relation(
            row["is"], row["base"], row["kind"], told, row.get("one"), row.get("days"), row.get("whole", ""),
            row.get("there", ""), tuple(re.compile(f"{whole(pattern)}$") for pattern in row.get(told, ())),
        )
        for row in _table()["relation"]
        for told in _HOLDS
        if told in row or told == "state"
    )  # fmt: skip


@cache
def _objects() -> dict[str, dict[str, re.Pattern[str]]]:
    rows = _table()["object"].items()
    return {kind: {rule: re.compile(whole(pattern)) for rule, pattern in row.items()} for kind, row in rows}


def told(subject: str, verb: Verb, past: bool, *, me: str = "") -> Iterator[Statement]:
    """Give the statement that a verb phrase makes of a subject, if it is one of the table of relations.

    :param past: whether it is told of long ago.
    :param me: who speaks, and so whom "with me" means.
    """
    if subject in ("?", IT):
        return
    cut = P["cut"].search(f"{verb.text} ")
    texts = dict.fromkeys((verb.text, trimmed(verb.text), trimmed(verb.text[: cut.start()] if cut else verb.text)))
    for relation in relations():
        if relation.told == "now" and not (verb.now or verb.negated == "no longer" or verb.tense == PERFECT):
            continue
        match = next((m for pattern in relation.read for text in texts if (m := pattern.match(text))), None)
        if not match:
            continue
        rest = match.groupdict().get("o")
        if rest and me and relation.kind == "who" and re.match(r"(?:me|us)\b", rest, re.I):
            rest = me
        if statement := _statement(subject, relation, verb, rest, past):
            yield statement
            if "no longer " in statement.predicate and relation.kind == "food":
                yield Statement(subject, _denied(relation), statement.object)
            there = nominal(match.groupdict().get("there") or "")
            if there and statement.predicate == relation.says:
                yield Statement(subject, relation.there, there)
            return


def _statement(subject: str, relation: Relation, verb: Verb, rest: str | None, past: bool) -> Statement | None:
    obj = _object(rest, relation, verb)
    # Whose it is, said by somebody else.
    obj = re.sub(r"^(?:my|our)\b", f"{subject}'s" if relation.kind == "who" else "the", obj)
    if not obj:
        return None
    first = verb.text.split(" ", 1)[0]
    tense = verb.tense
    if past and tense == PRESENT:
        return None
    if relation.base == "work at" and first in ("start", "begin") and tense in (PRESENT, PROGRESSIVE):
        return None if verb.negated else Statement(subject, "starts at", obj)
    if tense == PRESENT and relation.told in ("event", "once", "trip"):
        tense = PLAN
    if tense == PROGRESSIVE and relation.told in ("event", "once", "end", "trip"):
        tense = PLAN
    lasts = relation.told in ("state", "now")
    # "I am eating soup" is no habit.
    if tense == PROGRESSIVE and first in W["once"] and not verb.now and lasts:
        return None
    if tense == FORMER or (lasts and tense == PAST):
        # One dinner is no habit, and "I had a dog" says that it is over only where it is told of long ago.
        if tense == PAST and not past and first in W["once"] | {"like", "love", "enjoy", "hate", "be", "have"}:
            return None
        return None if verb.negated else Statement(subject, f"used to {relation.base}", obj)
    if tense == PLAN:
        if verb.negated or relation.kind in ("liked", "food", "state", "age", "role") or relation.told == "end":
            return None
        return Statement(subject, f"plans to {relation.base}", obj)
    if past and tense != PERFECT and relation.told != "once":
        former = tense == PAST and relation.told == "event"
        return Statement(subject, f"used to {relation.base}", obj) if former else None
    if tense not in _HOLDS[relation.told]:
        return None
    if relation.told == "end":
        return None if verb.negated else Statement(subject, over(relation.says), obj)
    if verb.negated == "no longer":
        return Statement(subject, over(relation.says), obj)
    if verb.negated:
        return None if relation.told == "event" else Statement(subject, _denied(relation), obj)
    return Statement(subject, relation.says, obj)


@cache
def listed() -> tuple[str, ...]:
    """List the relations of the table, as they are told of what is so."""
    return tuple(dict.fromkeys(row.says for row in relations() if row.says not in ("is", "has", "does not eat")))


def in_manner(relation: str, manner: str) -> str:
    """Put a relation, in the third person present, in the manner of a statement.

    :param manner: ``is``, ``not``, ``plan``, ``was`` or ``ended``.

    >>> from memlab.knowledge._relations import in_manner
    >>> [in_manner("keeps", manner) for manner in ("is", "not", "plan", "was", "ended")]
    ['keeps', 'does not keep', 'plans to keep', 'used to keep', 'no longer keeps']
    >>> in_manner("is afraid of", "not"), in_manner("has been to", "not"), in_manner("is", "ended")
    ('is not afraid of', 'has not been to', 'is no longer')
    >>> in_manner("no longer works at", "ended"), in_manner("is not", "not")
    ('no longer works at', 'is not')
    """
    if manner == "is":
        return relation
    # Whoever is asked for both may put one into the other.
    relation = _IN_MANNER.sub(lambda lead: "is " if lead[0].lower().startswith("is") else "", relation).strip()
    if manner == "ended":
        return over(relation)
    first, _, tail = relation.partition(" ")
    plain = next((row.base for row in relations() if row.says == relation), f"{infinitive(first)} {tail}".strip())
    if manner == "not":
        perfect = first == "has" and "participle" in lemma(tail.partition(" ")[0])[1]
        return f"{first} not {tail}".strip() if first == "is" or perfect else f"does not {plain}"
    return f"plans to {plain}" if manner == "plan" else f"used to {plain}"


def over(says: str) -> str:
    """Give the predicate that says that a statement is over; what is not so is over when it is so.

    >>> from memlab.knowledge._relations import over
    >>> over("works at"), over("is on"), over("plans to move to"), over("does not eat")
    ('no longer works at', 'is no longer on', 'no longer plans to move to', 'eats')
    """
    if denied := re.match(r"(?:does not (?P<does>\S+)|is not\b)(?P<tail>.*)", says):
        return f"{third(denied['does']) if denied['does'] else 'is'}{denied['tail']}"
    return re.sub(r"^is\b", "is no longer", says) if re.match(r"is\b", says) else f"no longer {says}"


def _denied(relation: Relation) -> str:
    first, _, tail = relation.says.partition(" ")
    if first == "is":
        return f"is not {tail}".strip()
    return relation.says.replace("does not", "does") if first == "does" else f"does not {relation.base}"


def _object(text: str | None, relation: Relation, verb: Verb) -> str:
    """Cut the object of a relation, and refuse what does not fit it."""
    if text is None:
        return relation.whole
    obj = nominal(text, most={"liked": 5, "food": 3}.get(relation.kind, 7))
    bare = P["article"].sub("", obj)
    if not bare or bare.lower() in ("the", "a", "an", "my", "our", "some"):
        return ""
    if relation.kind == "owned":
        return _owned(obj, bare.lower(), relation, verb)
    rules = _objects().get(relation.kind, {})
    of = obj if relation.kind in ("liked", "food", "play") else bare
    needed, refused = rules.get("need"), rules.get("refuse")
    if (needed and not needed.search(of)) or (refused and refused.search(of)):
        return ""
    return obj if relation.told != "trip" or proper(bare) else ""


def _owned(obj: str, bare: str, relation: Relation, verb: Verb) -> str:
    """Refuse what nobody would say that they own: a good time, a minute, the flu."""
    if relation.told == "end":
        return obj if set(bare.split()) & _ESTATE else ""
    obj = re.split(r"\s+(?:at|in|on) (?:the|my|our|this)\b", obj)[0]
    head = re.split(r"\s+(?:named|called|for|with|of|in|at|from|who|that|to|on|by|left)\b", bare)[0].split()
    if not head:
        return ""
    known = bool({head[-1], head[-1].removesuffix("s")} & _ESTATE)
    if verb.tense == PLAN and len(head) == 1 and known:
        return obj
    # A thing bought may be told by its make: "a Skoda".
    make = verb.tense == PAST and re.match(r"an? [A-Z]", obj) and len(head) < 3
    if not (known or make or re.search(r"(?:named|called) [A-Z]", obj)):
        return ""
    if verb.negated:
        return re.sub(r"^(?:any|no)\s+", "", obj)
    return obj if P["counted"].match(obj) else ""
