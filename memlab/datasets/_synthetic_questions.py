"""Asks about a planned scope: every answer is computed from the fact table, every piece of evidence read off it.

Beside a question stands how its answer follows from facts (:class:`Draft`), so that a test, or a reader who doubts an
answer, can derive it again from ``synthetic.facts`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from memlab.datasets._synthetic_language import MONTHS, Entry, amount_answer, capital
from memlab.datasets._synthetic_plan import item_names
from memlab.datasets._synthetic_world import Fact, World
from memlab.records import Question

UNKNOWN = "The conversations do not say."


class Draft(NamedTuple):
    """What is asked, and how the answer follows from facts.

    :param operation: ``count``, ``times``, ``list``, ``sum``, ``each``, ``first``, ``order``, ``between``, ``ago``,
        ``value``, ``sequence``, ``summary`` or ``none``.
    :param facts: in the order in which the operation needs them.
    :param since: only events from this day on belong to the question.
    """

    kind: str
    text: str
    answer: str
    operation: str
    facts: list[Fact]
    since: datetime | None = None


def ask(world: World, *, beam: bool = False) -> list[tuple[Question, Draft]]:
    """Ask about a scope: a number of questions of each kind in proportion to its turns, in random order.

    :param beam: also what BEAM asks beyond LongMemEval.
    """
    turns = sum(world.sizes)
    asked_at = world.starts[-1].replace(hour=12, minute=0, second=0) + timedelta(days=2 + world.pick(9))
    kinds: dict[Callable[[World], Iterator[Draft]], int] = {
        _aggregations: 36,
        partial(_order, asked_at=asked_at): 80,
        _updates: 85,
        _details: 80,
        partial(_single, kind="reply", question_type="single-session-assistant"): 95,
        partial(_single, kind="preference", question_type="single-session-preference"): 95,
        _unknown: 90,
    }
    if beam:
        kinds |= {
            partial(_single, kind="instruction", question_type="instruction-following"): 90,
            partial(_single, kind="contradiction", question_type="contradiction-resolution"): 90,
            _sequences: 90,
            _summaries: 90,
        }
    drafts: list[Draft] = []
    for make, turns_each in kinds.items():
        drafts += world.sample(list(make(world)), max(1, round(turns / turns_each)))
    return [
        (_question(world.scope, i, draft, asked_at + timedelta(minutes=i)), draft)
        for i, draft in enumerate(world.sample(drafts, len(drafts)))
    ]


def _question(scope: str, i: int, draft: Draft, asked_at: datetime) -> Question:
    evidence = _unique(turn for fact in draft.facts for turn in fact.evidence)
    return Question(
        query_id=f"{scope}/q{i}",
        scope=scope,
        text=draft.text,
        answer=draft.answer,
        question_type=draft.kind,
        timestamp=asked_at,
        evidence=evidence,
        evidence_sessions=_unique(turn.rpartition("/")[0] for turn in evidence),
        abstention=draft.kind == "abstention",
    )


def _unique(ids: Iterable[str]) -> list[str]:
    """Keep each id once, in order of session and turn."""
    return sorted(set(ids), key=lambda i: [(len(part), part) for part in i.split("/")])


def _session(fact: Fact) -> str:
    return fact.evidence[0].rpartition("/")[0]


FORMS: dict[str, Callable[[list[Fact]], str]] = {
    "count": lambda facts: str(len({f.object for f in facts})),
    "times": lambda facts: str(len(facts)),
    "list": lambda facts: ", ".join(dict.fromkeys(f.object for f in facts)),
    "sum": lambda facts: amount_answer(sum(f.value or 0 for f in facts), facts[0].unit),
    "each": lambda facts: ", ".join(f"{f.object}: {amount_answer(f.value, f.unit)}" for f in facts),
}


def _aggregations(world: World) -> Iterator[Draft]:
    """How many, which all, how much in total, each; over all the time, since a month, or over two collections."""
    spending: list[tuple[str, list[Fact]]] = []
    for entry in world.language.collections:
        events = [f for f in world.facts if f.predicate == entry.name and f.kind == "event"]
        events.sort(key=lambda f: f.valid_from)
        if len({_session(f) for f in events}) < 2:
            continue
        forms = [form for form in FORMS if form in entry.lines]
        for form in world.sample(forms, 2):
            yield _aggregate(world, entry, form, events, None)
        month = events[max(1, len(events) // 3)].valid_from.replace(day=1)
        recent = [f for f in events if f.valid_from >= month]
        if 2 <= len(recent) < len(events):
            yield _aggregate(world, entry, world.choose(forms), recent, month)
        if events[0].unit == "money" and entry.name != "donation":
            spending.append((entry.values["label"], events))
    if len(spending) > 1:
        (label, first), (other_label, second) = world.sample(spending, 2)
        text = f"How much money have I spent on {label} and {other_label} taken together?"
        yield Draft("multi-session", text, FORMS["sum"](first + second), "sum", first + second)


def _aggregate(world: World, entry: Entry, form: str, facts: list[Fact], since: datetime | None) -> Draft:
    begin = f" since the beginning of {MONTHS[since.month - 1]} {since.year}" if since else None
    text = capital(world.say(entry.lines[form], span=begin or world.choose(("", " so far"))))
    return Draft("multi-session", text, FORMS[form](facts), form, facts, since)


def _single_events(world: World) -> list[Fact]:
    """Events that a question can point at: those whose thing happened once."""
    events = [f for f in world.facts if f.kind == "event"]
    names = [(f.predicate, f.object) for f in events]
    return [f for f, name in zip(events, names, strict=True) if names.count(name) == 1]


def _order(world: World, asked_at: datetime) -> Iterator[Draft]:
    """Which first, in what order, how long between, how long ago."""
    events = _single_events(world)
    for i in range(max(4, sum(world.sizes) // 40)):
        chosen = world.sample(events, 3)
        ordered = sorted(chosen, key=lambda f: f.valid_from)
        apart = all(later.valid_from - f.valid_from >= timedelta(days=2) for f, later in pairwise(ordered))
        if len(chosen) < 3 or not apart or len({_session(f) for f in chosen}) < 3:
            continue
        refs = dict(zip("abc", (world.refs[f.fact_id] for f in chosen), strict=True))
        pair, form = chosen[:2], ("first", "order", "between", "ago")[i % 4]
        if form == "first":
            first = min(pair, key=lambda f: f.valid_from)
            text, answer = world.say("ask first", refs), f"{capital(world.refs[first.fact_id])} came first."
        elif form == "order":
            text = "In what order did these happen: {a}, {b} and {c}?".format(**refs)
            answer = ", then ".join(world.refs[f.fact_id] for f in ordered)
        elif form == "between":
            days = abs((pair[0].valid_from - pair[1].valid_from).days)
            text, answer = world.say("ask between", refs), f"{days} days"
        else:
            days = (asked_at.date() - chosen[0].valid_from.date()).days
            text, answer = f"How many days ago was it: {refs['a']}?", f"{days} days"
        facts = {"order": chosen, "ago": chosen[:1]}.get(form, pair)
        yield Draft("temporal-reasoning", text, answer, form, facts)


def _courses(world: World) -> Iterator[tuple[Entry, list[Fact]]]:
    """Give each collection of which three things or more happened, each on a day of its own, in order of time."""
    for entry in world.language.collections:
        events = [f for f in _single_events(world) if f.predicate == entry.name]
        events.sort(key=lambda f: f.valid_from)
        if len(events) > 2 and len({f.valid_from for f in events}) == len(events):
            yield entry, events


def _sequences(world: World) -> Iterator[Draft]:
    """In which order the things of a collection happened."""
    for entry, events in _courses(world):
        text = capital(world.say(entry.lines["list"], span=" so far"))
        text = f"{text} {world.choose(('Put them in order of time.', 'In the order in which it happened, please.'))}"
        yield Draft("event-ordering", text, ", then ".join(f.object for f in events), "sequence", events)


def _summaries(world: World) -> Iterator[Draft]:
    """What became of an attribute, or what there was of a collection, over the whole time."""
    for entry, events in _courses(world):
        text = world.say("ask summary", label=entry.values.get("label", entry.name))
        yield Draft("summarization", text, _summary(events), "summary", events)
    for entry, true, _ in _histories(world):
        told = [f for f in true if f.evidence]
        if len(told) > 2:
            text = world.say("ask course", label=entry.values["label"])
            yield Draft("summarization", text, _summary(told), "summary", told)


def _summary(facts: list[Fact]) -> str:
    """Say what there was when, in order of time."""
    return "; ".join(
        f"{f.valid_from:%-d} {MONTHS[f.valid_from.month - 1]} {f.valid_from.year}: {f.object}" for f in facts
    )


def _histories(world: World) -> Iterator[tuple[Entry, list[Fact], bool]]:
    """Give each attribute, its true values, and whether one was corrected."""
    for entry in world.language.states:
        facts = [f for f in world.facts if f.kind == "state" and f.predicate == entry.name]
        true = [f for f in facts if f.status == "true"]
        if true and true[-1].evidence:
            yield entry, true, len(true) < len(facts)


def _updates(world: World) -> Iterator[Draft]:
    """The current value of what changed or was corrected, and the value before it (which needs both statements)."""
    for entry, true, corrected in _histories(world):
        if len(true) > 1 or corrected:
            yield _value_question(world, entry, "now", true[-1:], "knowledge-update")
        if len(true) > 1 and true[-2].evidence and true[-2].object != true[-1].object:
            yield _value_question(world, entry, "prev", true[-2:], "knowledge-update")


def _value_question(world: World, entry: Entry, form: str, facts: list[Fact], kind: str) -> Draft:
    return Draft(kind, world.say(entry.lines[form]), facts[0].object, "value", facts)


def _details(world: World) -> Iterator[Draft]:
    """What the user said once."""
    kind = "single-session-user"
    yield from _single(world, "detail", kind)
    for entry, true, corrected in _histories(world):
        if len(true) == 1 and not corrected:
            yield _value_question(world, entry, "now", true, kind)
    for fact in world.sample(_single_events(world), 3):
        price = _amount_text(world, fact.predicate, fact.object)
        if price and fact.value is not None:
            yield Draft(kind, price, amount_answer(fact.value, fact.unit), "sum", [fact])


def _amount_text(world: World, collection: str, name: str) -> str | None:
    lines = world.language.collection(collection).lines.get("one")
    return world.say(lines, item_names(name)) if lines else None


def _single(world: World, kind: str, question_type: str) -> Iterator[Draft]:
    """Ask for each fact of a kind that is said once, in the words bound to it."""
    for fact in world.facts:
        if fact.kind == kind:
            entry, env = world.bound[fact.fact_id]
            yield Draft(question_type, world.say(entry.lines["q"], env), fact.object, "value", [fact])


def _unknown(world: World) -> Iterator[Draft]:
    """Near misses: the topic was talked about, another person's thing was, this was not."""
    texts: list[str | None] = []
    for fact in world.facts:
        if fact.kind in ("detail", "reply"):
            entry, env = world.bound[fact.fact_id]
            texts.append(world.say(entry.lines["not"], env))
    events = _single_events(world)
    for collection, names in world.strangers.items():
        texts.append(_amount_text(world, collection, names[0]) if names else None)
        entry = world.language.collection(collection)
        others = [f for f in events if f.predicate != collection]
        if names and others:
            happened = world.refs[world.choose(others).fact_id]
            refs = [item.ref for item in entry.items if item.name == names[-1]]
            stranger = refs[0] if refs else world.say(entry.lines["ref"], name=names[-1])
            texts.append(f"How many days lay between {happened} and {stranger}?")
    for text in filter(None, texts):
        yield Draft("abstention", text, UNKNOWN, "none", [])
