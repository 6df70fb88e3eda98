"""Conversations that facts allow, sort by sort: an opening that names its subject, and questions that do not."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

OPENING = "opening"
Fact = dict[str, Any]


class Talk(NamedTuple):
    """How one kind of event is asked about.

    :param opens: asks whether it happened, by name.
    :param lists: asks for all of them.
    :param amount: asks for its amount; ``{x}`` is the thing, or what stands for it.
    :param when: asks for its day.
    :param article: before its name.
    :param place: the preposition of a thing that one is *at* or *in*.
    :param pronoun: what stands for it.
    """

    opens: str
    lists: str
    when: str
    amount: str = ""
    article: str = "the "
    place: str = ""
    pronoun: str = "it"

    def named(self, name: str) -> str:
        """Give the thing by its name."""
        return f"{self.place}{self.article}{name}"


_DATA: dict[str, Any] = tomllib.loads(files("memlab.rewrite").joinpath("follow_ups.toml").read_text(encoding="utf-8"))
EVENTS = {name: Talk(**fields) for name, fields in _DATA["events"].items()}
"""By predicate of the facts."""
AMOUNTS: dict[str, list[str]] = _DATA["amounts"]
STATES: dict[str, list[str]] = _DATA["states"]
PEOPLE = {who: pronoun for pronoun, persons in _DATA["people"].items() for who in persons.split()}
WHENS, OTHERS, ORDINALS, SAME, BEFORES, YES = (
    _DATA[name] for name in ("whens", "others", "ordinals", "same", "befores", "yes")
)


class Asked(NamedTuple):
    """A question of a conversation, the form of it that stands alone, and what answers it."""

    kind: str
    asked: str
    self_contained: str
    answer: str
    evidence: list[str]


def sorts(facts: list[Fact], random: Random) -> Iterator[list[list[Asked]]]:
    """Give every conversation that the facts of one scope allow, sort by sort."""
    names = [(fact["predicate"], fact["object"]) for fact in facts]
    # What happened twice has no one day and no one price.
    single = [fact for fact, name in zip(facts, names, strict=True) if names.count(name) == 1]
    events: dict[str, list[Fact]] = {}
    for fact in single:
        if fact["kind"] == "event" and fact["predicate"] in EVENTS:
            events.setdefault(fact["predicate"], []).append(fact)
    pairs = [(EVENTS[name], one, other) for name, its in events.items() for one, other in pairwise(its)]
    yield [_subject(EVENTS[name], fact, random) for name, its in events.items() for fact in its]
    yield [_same(*pair, random) for pair in pairs]
    yield [_other(*pair, random) for pair in pairs if pair[1]["valid_from"] != pair[2]["valid_from"]]
    yield [_ordinal(EVENTS[name], its, random) for name, its in events.items() if len(its) > 1]
    yield [_person(fact) for fact in single if fact["predicate"] == "gift" and " for my " in fact["object"]]
    yield _befores(facts, random)


def _amount(fact: Fact) -> str:
    value = f"{fact['value']:g}"
    return f"${value}." if fact["unit"] == "money" else f"{value} {fact['unit']}."


def _day(fact: Fact) -> str:
    return f"On {fact['valid_from'].day} {fact['valid_from']:%B %Y}."


def _ask(kind: str, talk: Talk, fact: Fact, words: str, *, when: bool = False) -> Asked:
    """Ask for the amount of a fact where it has one, otherwise for its day."""
    by_day = when or not talk.amount or fact["value"] is None
    form, answer = (talk.when, _day(fact)) if by_day else (talk.amount, _amount(fact))
    return Asked(kind, form.format(x=words), form.format(x=talk.named(fact["object"])), answer, fact["evidence"])


def _short(talk: Talk, fact: Fact, random: Random, *, when: bool = False) -> Asked:
    """Ask the same with no word for the thing at all."""
    whole = _ask("ellipsis", talk, fact, talk.pronoun, when=when)
    form = WHENS if whole.answer == _day(fact) else AMOUNTS[fact["unit"]]
    return whole._replace(asked=random.choice(form))


def _subject(talk: Talk, fact: Fact, random: Random) -> list[Asked]:
    """Name a thing, then ask for its amount and its day; by a pronoun first, or by nothing."""
    opening = re.sub(r"\ba (?=[aeiou])", "an ", talk.opens.format(fact["object"]))
    reply = random.choice(YES).format(talk.article + fact["object"])
    asks = [Asked(OPENING, opening, opening, reply, fact["evidence"])]
    kinds = random.sample([True, False], 2)
    for by_pronoun, when in zip(kinds, (False, True), strict=True):
        one = _ask("pronoun", talk, fact, talk.pronoun, when=when)
        asks.append(one if by_pronoun else _short(talk, fact, random, when=when))
    return asks if asks[1].self_contained != asks[2].self_contained else asks[:2]


def _same(talk: Talk, one: Fact, other: Fact, random: Random) -> list[Asked]:
    first, second = (_ask(OPENING, talk, fact, talk.named(fact["object"])) for fact in (one, other))
    again = random.choice(SAME).format(talk.article + other["object"])
    asks = [first, second._replace(kind="same", asked=again)]
    return [*asks, _short(talk, other, random, when=True)] if talk.amount else asks


def _other(talk: Talk, one: Fact, other: Fact, random: Random) -> list[Asked]:
    """Compare two things; the answer names one, and the other one is asked for."""
    first, later = sorted((one, other), key=lambda fact: fact["valid_from"])
    names = random.sample([talk.article + fact["object"] for fact in (one, other)], 2)
    opening = f"Which came first, {names[0]} or {names[1]}?"
    both = [*one["evidence"], *other["evidence"]]
    reply = f"{talk.article}{first['object']} came first."
    asks = [Asked(OPENING, opening, opening, reply[0].upper() + reply[1:], both)]
    return [*asks, _ask("other", talk, later, talk.place + random.choice(OTHERS))]


def _ordinal(talk: Talk, its: list[Fact], random: Random) -> list[Asked]:
    listed = sorted(its, key=lambda fact: fact["valid_from"])[: len(ORDINALS)]
    names = [talk.article + fact["object"] for fact in listed]
    reply = f"{', '.join(names[:-1])} and {names[-1]}."
    evidence = [turn for fact in listed for turn in fact["evidence"]]
    place = random.randrange(len(listed))
    opening = Asked(OPENING, talk.lists, talk.lists, reply[0].upper() + reply[1:], evidence)
    return [opening, _ask("ordinal", talk, listed[place], talk.place + ORDINALS[place])]


def _person(fact: Fact) -> list[Asked]:
    thing, _, who = fact["object"].partition(" for my ")
    them = PEOPLE.get(who, "them")
    opening, spent = f"Have I bought my {who} a present?", f"What did I spend on the {thing} for my {who}?"
    return [
        Asked(OPENING, opening, opening, f"Yes, the {thing}.", fact["evidence"]),
        Asked("person", f"What did I spend on {them}?", spent, _amount(fact), fact["evidence"]),
    ]


def _befores(facts: list[Fact], random: Random) -> list[list[Asked]]:
    """Ask for a value, then for the one before it: as in the dataset's own questions, both statements are evidence."""
    threads = []
    for name, (now, prev) in STATES.items():
        values = [fact for fact in facts if fact["kind"] == "state" and fact["predicate"] == name]
        if len(values) < 2 or values[-1]["object"] == values[-2]["object"] or values[-1]["valid_to"] is not None:
            continue
        old, new = values[-2:]
        opening = Asked(OPENING, now, now, f"{new['object']}.", new["evidence"])
        both = [*old["evidence"], *new["evidence"]]
        whole = prev.format(new["object"])
        threads.append([opening, Asked("before", random.choice(BEFORES), whole, f"{old['object']}.", both)])
    return threads
