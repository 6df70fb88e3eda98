"""Asks about a planned scope: every answer is computed from the fact table, every piece of evidence read off it.

A question carries its :class:`Program` (an operation and the facts that it runs over), so that a test, or a reader who
doubts an answer, can derive it again from ``synthetic.facts`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from memlab.datasets._synthetic_language import MONTHS, Entry, amount_answer, capital, say, with_article
from memlab.datasets._synthetic_world import Fact, World
from memlab.records import Question

UNKNOWN = "The conversations do not say."


class Program(NamedTuple):
    """How an answer follows from facts.

    :param operation: ``count``, ``times``, ``list``, ``sum``, ``each``, ``first``, ``order``, ``between``, ``ago``,
        ``value`` or ``none``.
    :param facts: ids of the facts, in the order in which the operation needs them.
    :param since: only events from this day on belong to the question.
    """

    operation: str
    facts: list[str]
    since: datetime | None = None


@dataclass(frozen=True)
class Asked:
    """A question with the program of its answer."""

    question: Question
    program: Program


class _Draft(NamedTuple):
    kind: str
    text: str
    answer: str
    program: Program
    facts: list[Fact]


def ask(world: World) -> list[Asked]:
    """Ask about a scope: a number of questions of each kind in proportion to its turns, in random order."""
    turns = sum(world.sizes)
    asked_at = world.starts[-1].replace(hour=12, minute=0, second=0) + timedelta(days=2 + world.pick(9))
    replies = partial(_once, "reply", "single-session-assistant")
    tastes = partial(_once, "preference", "single-session-preference")
    shares: dict[Callable[[World, datetime], Iterator[_Draft]], int] = {
        _aggregations: 36, _order: 80, _updates: 85, _details: 80, replies: 95, tastes: 95, _unknown: 90,
    }  # fmt: skip
    drafts: list[_Draft] = []
    for make, turns_each in shares.items():
        drafts += world.sample(list(make(world, asked_at)), max(1, round(turns / turns_each)))
    asked = []
    for i, draft in enumerate(world.sample(drafts, len(drafts))):
        evidence = _unique(turn for fact in draft.facts for turn in fact.evidence)
        question = Question(
            query_id=f"{world.scope}/q{i}", scope=world.scope, text=draft.text, answer=draft.answer,
            question_type=draft.kind, timestamp=asked_at + timedelta(minutes=i), evidence=evidence,
            evidence_sessions=_unique(turn.rpartition("/")[0] for turn in evidence),
            abstention=draft.kind == "abstention",
        )  # fmt: skip
        asked.append(Asked(question, draft.program))
    return asked


def _unique(ids: Iterable[str]) -> list[str]:
    """Keep each id once, in order of session and turn."""
    return sorted(set(ids), key=lambda i: [(len(part), part) for part in i.split("/")])


def _ids(facts: Iterable[Fact]) -> list[str]:
    return [fact.fact_id for fact in facts]


FORMS: dict[str, Callable[[list[Fact]], str]] = {
    "count": lambda facts: str(len({f.object for f in facts})),
    "times": lambda facts: str(len(facts)),
    "list": lambda facts: ", ".join(dict.fromkeys(f.object for f in facts)),
    "sum": lambda facts: amount_answer(int(sum(f.value or 0 for f in facts)), facts[0].unit or ""),
    "each": lambda facts: ", ".join(f"{f.object}: {amount_answer(int(f.value or 0), f.unit or '')}" for f in facts),
}


def _aggregations(world: World, asked_at: datetime) -> Iterator[_Draft]:
    """How many, which all, how much in total, each; over all the time, since a month, or over two collections."""
    spending: list[tuple[str, list[Fact]]] = []
    for entry in world.language.collections:
        events = _events_of(world, entry)
        if len({f.evidence[0].rpartition("/")[0] for f in events}) < 2:
            continue
        forms = [form for form in FORMS if form in entry.lines]
        for form in world.sample(forms, 2):
            yield _aggregate(world, entry, form, events, None)
        month = events[max(1, len(events) // 3)].valid_from.replace(day=1)
        recent = [f for f in events if f.valid_from >= month]
        if 2 <= len(recent) < len(events):
            yield _aggregate(world, entry, forms[world.pick(len(forms))], recent, month)
        if events[0].unit == "money" and entry.name != "donation":
            spending.append((entry.values["label"], events))
    if len(spending) > 1:
        (label, first), (other_label, second) = world.sample(spending, 2)
        both = first + second
        text = f"How much money have I spent on {label} and {other_label} taken together?"
        yield _Draft("multi-session", text, FORMS["sum"](both), Program("sum", _ids(both)), both)


def _aggregate(world: World, entry: Entry, form: str, facts: list[Fact], since: datetime | None) -> _Draft:
    span = (
        f" since the beginning of {MONTHS[since.month - 1]} {since.year}" if since else ("", " so far")[world.pick(2)]
    )
    text = capital(say(entry.lines[form], world.random, {"span": span}))
    return _Draft("multi-session", text, FORMS[form](facts), Program(form, _ids(facts), since), facts)


def _events_of(world: World, entry: Entry) -> list[Fact]:
    return sorted(
        (f for f in world.facts if f.predicate == entry.name and f.kind == "event"), key=lambda f: f.valid_from
    )


def _single_events(world: World) -> list[Fact]:
    """Events that a question can point at: those whose thing happened once."""
    events = [f for f in world.facts if f.kind == "event"]
    names = [(f.predicate, f.object) for f in events]
    return [f for f in events if names.count((f.predicate, f.object)) == 1]


def _order(world: World, asked_at: datetime) -> Iterator[_Draft]:
    """Which first, in what order, how long between, how long ago."""
    events = _single_events(world)
    for i in range(max(4, sum(world.sizes) // 40)):
        chosen = world.sample(events, 3)
        days = sorted(f.valid_from for f in chosen)
        apart = all(b - a >= timedelta(days=2) for a, b in pairwise(days))
        if len(chosen) < 3 or not apart or len({f.evidence[0].rpartition("/")[0] for f in chosen}) < 3:
            continue
        x, y, z = chosen
        a, b, c = (world.refs[f.fact_id] for f in chosen)
        ordered = sorted(chosen, key=lambda f: f.valid_from)
        if i % 4 == 0:
            first = min(x, y, key=lambda f: f.valid_from)
            texts = (f"Which came first, {a} or {b}?", f"Did {a} happen before {b}, or was it the other way round?")
            answer = f"{capital(world.refs[first.fact_id])} came first."
            program = Program("first", _ids((x, y)))
            yield _Draft("temporal-reasoning", texts[world.pick(2)], answer, program, [x, y])
        elif i % 4 == 1:
            text = f"In what order did these happen: {a}, {b} and {c}?"
            answer = ", then ".join(world.refs[f.fact_id] for f in ordered)
            yield _Draft("temporal-reasoning", text, answer, Program("order", _ids(chosen)), [x, y, z])
        elif i % 4 == 2:
            gap = abs((x.valid_from - y.valid_from).days)
            texts = (f"How many days lay between {a} and {b}?", f"How much time passed, in days, between {a} and {b}?")
            yield _Draft(
                "temporal-reasoning", texts[world.pick(2)], f"{gap} days", Program("between", _ids((x, y))), [x, y]
            )
        else:
            ago = (asked_at.date() - x.valid_from.date()).days
            text = f"How many days ago was it: {a}?"
            yield _Draft("temporal-reasoning", text, f"{ago} days", Program("ago", [x.fact_id]), [x])


def _histories(world: World) -> Iterator[tuple[Entry, list[Fact], bool]]:
    for entry in world.language.states:
        facts = [f for f in world.facts if f.kind == "state" and f.predicate == entry.name]
        true = [f for f in facts if f.status == "true"]
        if true and true[-1].evidence:
            yield entry, true, len(true) < len(facts)


def _updates(world: World, asked_at: datetime) -> Iterator[_Draft]:
    """The current value of what changed or was corrected, and the value before it (which needs both statements)."""
    for entry, true, corrected in _histories(world):
        if len(true) > 1 or corrected:
            yield _value_question(world, entry, "now", true[-1:], "knowledge-update")
        if len(true) > 1 and true[-2].evidence and true[-2].object != true[-1].object:
            yield _value_question(world, entry, "prev", true[-2:], "knowledge-update")


def _value_question(world: World, entry: Entry, form: str, facts: list[Fact], kind: str) -> _Draft:
    text = say(entry.lines[form], world.random, {})
    return _Draft(kind, text, facts[0].object, Program("value", _ids(facts)), facts)


def _details(world: World, asked_at: datetime) -> Iterator[_Draft]:
    """What the user said once."""
    kind = "single-session-user"
    yield from _once("detail", kind, world, asked_at)
    for entry, true, corrected in _histories(world):
        if len(true) == 1 and not corrected:
            yield _value_question(world, entry, "now", true, kind)
    for fact in world.sample(_single_events(world), 3):
        price = _amount_text(world, fact.predicate, fact.object)
        if price and fact.value is not None:
            yield _Draft(
                kind, price, amount_answer(int(fact.value), fact.unit or ""), Program("sum", _ids([fact])), [fact]
            )


def _amount_text(world: World, collection: str, name: str) -> str | None:
    entry = world.language.collection(collection)
    env = {"name": name, "item": with_article(name), "the": f"the {name}"}
    return say(entry.lines["one"], world.random, env) if "one" in entry.lines else None


def _once(fact_kind: str, question_kind: str, world: World, asked_at: datetime) -> Iterator[_Draft]:
    """Ask for each fact of a kind that is said once, in the words bound to it."""
    for fact in world.facts:
        if fact.kind == fact_kind:
            entry, env = world.bound[fact.fact_id]
            text = say(entry.lines["q"], world.random, env)
            yield _Draft(question_kind, text, fact.object, Program("value", [fact.fact_id]), [fact])


def _unknown(world: World, asked_at: datetime) -> Iterator[_Draft]:
    """Near misses: the topic was talked about, another person's thing was, this was not."""
    texts: list[str | None] = []
    for fact in world.facts:
        if fact.kind in ("detail", "reply"):
            entry, env = world.bound[fact.fact_id]
            texts.append(say(entry.lines["not"], world.random, env))
    events = _single_events(world)
    for collection, names in world.strangers.items():
        texts.append(_amount_text(world, collection, names[0]) if names else None)
        entry = world.language.collection(collection)
        others = [f for f in events if f.predicate != collection]
        if names and others:
            known = world.refs[others[world.pick(len(others))].fact_id]
            refs = [i.ref for i in entry.items if i.name == names[-1]]
            unknown = refs[0] if refs else say(entry.lines["ref"], world.random, {"name": names[-1]})
            texts.append(f"How many days lay between {known} and {unknown}?")
    for asked in filter(None, texts):
        yield _Draft("abstention", asked, UNKNOWN, Program("none", []), [])
