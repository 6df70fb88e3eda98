"""Wordings that no verb tells: attributes with their values, roles, days, pairs, counts, corrections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from memlab.knowledge._patterns import CLAUSES, KIN, SENTENCES, Form, P, W
from memlab.knowledge._phrase import Statement, nominal, trimmed

_NOBODY = W["nobody"]
_ORDINALS = {word: n for n, word in enumerate(("second", "third", "fourth", "fifth", "sixth", "seventh"), 2)}


@dataclass
class Talk:
    """Who speaks, and who was spoken of, while a session is read.

    :param names: names in lower case → as they are written.
    :param he: the person whom "he" would mean; ``she`` likewise.
    :param role: what a name is still wanted for: "my boss isn't Ingrid."
    """

    speaker: str
    names: Mapping[str, str] = field(default_factory=dict)
    he: str | None = None
    she: str | None = None
    role: str | None = None


def sentence(plain: str, talk: Talk) -> Statement | None:
    """Read what a whole sentence says: of a pair, by what it corrects, counts, or only points to.

    >>> from memlab.knowledge._attributes import Talk, sentence
    >>> sentence("me and Bram broke up", Talk("Nora")), sentence("it's 9021 now", Talk("Nora")).object
    (Statement(subject='Nora', predicate='broke up with', object='Bram'), '9021')
    """
    me, names = talk.speaker, talk.names
    if (pair := P["pair"].match(plain)) and (who := pair["who"] or pair["other"]).lower() not in _NOBODY:
        who = names.get(who.lower(), who.capitalize())
        if P["apart"].match(pair["rest"]):
            return Statement(me, "broke up with", who)
        if together := P["together"].match(pair["rest"]):
            state = together["state"].lower()
            return Statement(me, f"is {state} to" if state in ("engaged", "married") else "is dating", who)
    role, talk.role = talk.role, None
    if role and (name := P["it_is"].match(plain)) and name["who"].lower() not in _NOBODY:
        return Statement(role, "is", name["who"])
    wrong = P["is_not"].search(plain)
    talk.role = f"{me}'s {_plain(wrong['role'])}" if wrong else role
    return _formed(SENTENCES, plain, talk)


def clause(plain: str, talk: Talk) -> Statement | None:
    """Read a clause that is led by a noun: "gym code 4417", "new boss: a Joris", "bins go out on Tuesday".

    >>> from memlab.knowledge._attributes import Talk, clause
    >>> clause("my gym code is 4417", Talk("Nora"))
    Statement(subject="Nora's gym code", predicate='is', object='4417')
    """
    return attributed(plain, talk) or _scheduled(plain) or _formed(CLAUSES, plain, talk)


def attributed(plain: str, talk: Talk) -> Statement | None:
    """Read a number or a code with what it is of: "Mother's number changed, it is 040 70215"."""
    match = P["attributed"].match(plain)
    if not match or P["no_attribute"].search(match["fill"]):
        return None
    if P["no_code"].fullmatch(match["value"]) or P["no_value"].match(plain[match.end() :]):
        return None
    # "We have number 14" is a house.
    if re.search(r"\bnumber\b", match["name"], re.I) and not P["long_number"].search(match["value"]):
        return None
    # "Mum is in Elmwood, room 6" tells of her room, if of anybody's.
    other = None if (talk.he or talk.she) and "'s " not in match["name"] else talk.speaker
    owner = {"his": talk.he, "her": talk.she, "": other, "the": other}.get((match["own"] or "").lower(), talk.speaker)
    return Statement(_owned(match["name"], owner, talk.names), "is", match["value"].strip(" .")) if owner else None


def _scheduled(plain: str) -> Statement | None:
    """Read on which day something is, again and again, or when it begins."""
    day = P["scheduled"].match(plain)
    if not day or P["once_only"].search(plain[day.end() :]) or P["no_schedule"].search(day["name"]):
        return None
    # "The exam is on Tuesday" is over on Wednesday.
    if P["one_day"].search(day[0]):
        return None
    name, value = _plain(day["name"]), re.sub(r"^on ", "", day["value"])
    if re.match(r"\s*(?:has |got |was )?mov", day["verb"], re.I):
        return Statement(name, "moved to", value)
    verb = re.match(r"\s*(run|start|open|close|meet)s?\b", day["verb"], re.I)
    says = f"{verb[1].lower()}s" if verb else "are" if re.search(r"[^\Ws]s$", name) else "is"
    at = re.match(r"(?:\d[\d:.]*(?: ?[ap]m)?|noon|midnight|half .*)$", value, re.I)
    return Statement(name, f"{says} {'at' if at else 'on'}", value)


def _formed(forms: tuple[Form, ...], plain: str, talk: Talk) -> Statement | None:
    """Give the statement of the first form that fits."""
    for form in forms:
        match = form.read.search(plain)
        groups = _filled(match, talk) if match else None
        if groups:
            groups["me"] = talk.speaker
            return Statement(*(part.format(**groups).strip() for part in (form.subject, form.predicate, form.object)))
    return None


def _filled(match: re.Match[str], talk: Talk) -> dict[str, str] | None:
    """Write the groups of a form as they stand in its statement; ``None`` where one of them names nothing."""
    groups = {}
    for name, text in match.groupdict().items():
        text = text or ""
        low = text.lower()
        if name == "who":
            known = {"": talk.speaker, "i": talk.speaker, "we": talk.speaker, "he": talk.he, "she": talk.she}
            text = (known[low] or "") if low in known else "" if low in _NOBODY else talk.names.get(low, text)
        elif name in ("role", "name", "noun"):
            text = _plain(text)
        elif name == "nth":
            text = str(_ORDINALS[low])
        else:
            text = nominal(text) if name == "cut" else trimmed(text)
        if not text and name != "noun":
            return None
        groups[name] = text
    return groups


def value_of(name: str, answer: str) -> str | None:
    """Give the number or code that answers what an attribute is."""
    code = P["valued"].match(answer) if P["attribute"].search(name) else None
    return code["value"] if code else None


def _owned(name: str, holder: str, names: Mapping[str, str]) -> str:
    """Say whose an attribute is, with "code for the door" as "door code"; another's where a name stands before it."""
    name = re.sub(r"\s+(?:at|for) (?:mine|home|work|me|us)$", "", name.strip(), flags=re.I)
    name = re.sub(r"^(.+?)\s+(?:for|to|of|on|at)\s+(?:the\s+|my\s+|our\s+)?(.+)$", r"\2 \1", name, flags=re.I)
    name = re.sub(r"^(?:new|old|current|actual)\s+", "", name, flags=re.I)
    first, _, rest = name.partition(" ")
    owner = first.removesuffix("'s")
    if owner != first and rest and (owner.lower() in names or owner[:1].isupper() or owner.lower() in KIN):
        holder = f"{holder}'s {owner.lower()}" if owner.lower() in KIN else names.get(owner.lower(), owner)
        name = rest
    if name[1:].islower():
        name = name.lower()
    return f"{holder}'s {'phone number' if name.lower() == 'number' else name}"


def _plain(name: str) -> str:
    return re.sub(r"^(?:(?:the|my|our|new|current|own)\s+)+", "", name.strip(), flags=re.I).lower()
