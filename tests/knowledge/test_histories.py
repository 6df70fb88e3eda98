"""Random histories: the resolver gives what the rules give, read one by one without any index.

The oracle below states the rules a second time. It keeps plain lists, looks through all of them for
every question, and is computed from scratch for each date.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from fact_stories import DAY0

from memlab.knowledge.supersession import Resolved, active_facts, resolve
from memlab.records import Fact, frame
from memlab.records.facts import meaning_id

N_DAYS = 60
RULES = {
    "came_about": "came about", "replaces": "another value", "ends": "said to be over",
    "cancelled": "cancelled",
}  # fmt: skip
STATUS = {
    "another value": "superseded", "said to be so": "superseded", "came about": "superseded",
    "said to be over": "ended", "cancelled": "ended", "corrected": "corrected",
}  # fmt: skip


def start_of(date: str | None) -> datetime | None:
    if date is None:
        return None
    return datetime.fromisoformat((date + "-01-01")[:10]).replace(tzinfo=UTC)


def end_of(date: str | None) -> datetime | None:
    """Go on day by day until the date no longer begins with the text."""
    if date is None:
        return None
    moment = start_of(date)
    while moment.isoformat().startswith(date):
        moment += timedelta(days=1)
    return moment


@dataclass(eq=False)
class Said:
    """A fact in its place; ``begins`` and ``dated`` as a correction moved them."""

    fact: Fact
    placed: datetime
    begins: datetime
    dated: bool
    moved: bool = False

    @property
    def means(self) -> tuple:
        fact = self.fact
        texts = (" ".join(text.lower().split()) for text in (fact.about, fact.slot, fact.value))
        return (*texts, fact.kind, fact.holds)

    @property
    def past(self) -> bool:
        return self.fact.until is not None and end_of(self.fact.until) <= self.placed


@dataclass(eq=False)
class Span:
    """A time in which something holds."""

    said: list[Said]
    begins: datetime
    dated: bool
    until: datetime | None = None
    due: datetime | None = None
    closing: tuple[Said, datetime, str, Span | None] | None = None

    @property
    def kind(self) -> str:
        return self.said[0].fact.kind

    @property
    def over(self) -> datetime | None:
        lasting = self.kind in ("state", "rule") and self.until is not None
        return max(self.until, self.begins) if lasting else None

    def open(self, at: datetime) -> bool:
        if self.over is not None and self.over <= at:
            return False
        return self.closing is None or (self.closing[1] > at and self.closing[1] > self.begins)

    def join(self, new: Said) -> None:
        fact = new.fact
        self.said.append(new)
        if fact.until is not None:
            self.until = end_of(fact.until)
        if fact.kind == "plan":
            self.due = end_of(fact.until) or end_of(fact.since) or self.due
        elif fact.since is not None:
            start = start_of(fact.since)
            before_end = self.closing is None or start <= self.closing[1]
            if start < self.begins or (not self.dated and before_end):
                self.begins, self.dated = start, True
        if self.closing and self.over is not None and self.closing[1] >= self.over:
            self.closing = None


class Again(Exception):
    """The story has to be read again."""


@dataclass
class Oracle:
    """All spans of the facts of one scope."""

    facts: list[Said]
    undone: set[tuple]
    corrected: list[Span] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    void: set[str] = field(default_factory=set)
    spans: list[Span] = field(default_factory=list)
    closed: list[Span] = field(default_factory=list)

    def run(self) -> list[Span]:
        while True:
            self.spans = []
            try:
                for new in self.facts:
                    self.correct(new)
                    self.closed = []
                    self.tell(new)
                    self.take_back()
            except Again:
                continue
            return self.corrected + self.spans

    def holding(self, fact_id: str) -> Span | None:
        found = [
            span for span in self.spans if fact_id in [said.fact.fact_id for said in span.said]
        ]
        return found[0] if found else None

    def spans_of(self, means: tuple) -> list[Span]:
        """The spans that state something, in the order in which they were last said to."""
        dated = []
        for span in self.spans:
            places = [
                n for n, old in enumerate(self.facts) if old in span.said and old.means == means
            ]
            if places:
                dated.append((places[-1], span))
        return [span for _, span in sorted(dated, key=lambda pair: pair[0])]

    def named(self, name: str, new: Said, *, but: Span | None = None) -> Span | None:
        """The open span that an effect names."""
        span = self.holding(name)
        if span is not None and span.open(new.placed):
            return span
        if span is not None:
            (said,) = (said for said in span.said if said.fact.fact_id == name)
            spans = self.spans_of(said.means)
        else:
            spans = self.spans_by_id(name)
        spans = [span for span in spans if span.open(new.placed) and span is not but]
        return spans[-1] if spans else None

    def spans_by_id(self, name: str) -> list[Span]:
        means = {
            said.means for span in self.spans for said in span.said if id_of(said.fact) == name
        }
        return self.spans_of(means.pop()) if means else []

    def correct(self, new: Said) -> None:
        if new.moved or new.fact.fact_id in self.settled:
            return
        wrong: list[Span] = []
        for effect, name in zip(new.fact.effects, new.fact.affected, strict=True):
            if effect == "was_wrong":
                span = self.named(name, new) or self.holding(name) or self.last_said(name)
                if span and span not in wrong and not self.is_undone(span, new):
                    wrong.append(span)
        if not wrong:
            return
        self.settled.add(new.fact.fact_id)
        self.void = set()
        self.corrected += wrong
        gone = {said.fact.fact_id for span in wrong for said in span.said}
        for span in wrong:
            span.closing = (new, span.begins, "corrected", None)
        places = [n for n, old in enumerate(self.facts) if old.fact.fact_id in gone]
        first = self.facts[places[0]]
        (span,) = (span for span in wrong if first in span.said)
        moved = replace(new, placed=first.placed, moved=True)
        if span.dated and new.fact.kind == "plan":
            moved.begins, moved.dated = first.placed, True
        elif span.dated and new.fact.since is None:
            moved.begins, moved.dated = span.begins, True
        if new.fact.kind != "event":
            self.facts[places[0]] = moved
        self.facts = [old for old in self.facts if old is moved or old.fact.fact_id not in gone]
        raise Again

    def last_said(self, name: str) -> Span | None:
        last = [said for said in self.read if id_of(said.fact) == name]
        return self.holding(last[-1].fact.fact_id) if last else None

    @property
    def read(self) -> list[Said]:
        read = [said for span in self.spans for said in span.said]
        return [said for said in self.facts if said in read]

    def is_undone(self, old: Span, new: Said) -> bool:
        return any((said.means, new.means) in self.undone for said in old.said)

    def tell(self, new: Said) -> None:
        own = self.holding(new.fact.fact_id)
        begun = False
        if own is None:
            own = self.repeated(new)
            if own is None:
                own, begun = Span([], new.begins, new.dated), True
                self.spans.append(own)
                own.join(new)
            else:
                own.join(new)
                self.put_off(new, own)
        done = [] if new.moved else self.effects(new, own)
        if begun and new.fact.kind != "event" and not new.past:
            self.replace_others(new, own, done)

    def repeated(self, new: Said) -> Span | None:
        fact = new.fact
        for effect, name in zip(fact.effects, fact.affected, strict=True):
            if effect == "repeats":
                span = self.named(name, new)
                worded = [said.means[:2] + said.means[3:] for said in span.said] if span else []
                if new.means[:2] + new.means[3:] in worded:
                    return span
        for span in reversed(self.spans_of(new.means)):
            if not span.open(new.placed):
                continue
            if fact.kind == "event":
                one, two = span.said[0].fact.since or "", fact.since or ""
                fits = one.startswith(two) or two.startswith(one)
            else:
                fits = fact.kind == "plan" or not fact.until or end_of(fact.until) > span.begins
            if fits:
                return span
        return None

    def put_off(self, new: Said, own: Span) -> None:
        if new.fact.kind != "plan" or new.fact.since is None:
            return
        for old in self.spans:
            lasting = old.kind in ("state", "rule") and old.closing is not None
            if lasting and old.closing[3] is own and old.open(new.placed):
                self.close(old, new, start_of(new.fact.since), old.closing[2], own)

    def effects(self, new: Said, own: Span) -> list[Span]:
        done: list[Span] = []
        pairs = list(zip(new.fact.effects, new.fact.affected, strict=True))
        for wanted in RULES:
            for effect, name in pairs:
                if effect != wanted or ("was_wrong", name) in pairs:
                    continue
                old = self.named(name, new, but=own)
                if old is None or old is own or old in done:
                    continue
                at = self.end_by(effect, old, new)
                if at is not None:
                    done.append(old)
                    self.close(old, new, at, RULES[effect], own)
        return done

    def end_by(self, effect: str, old: Span, new: Said) -> datetime | None:
        if old.kind == "event":
            ahead = old.begins > new.placed and effect in ("replaces", "cancelled")
            return old.begins if ahead else None
        if effect == "came_about":
            return new.begins if old.kind == "plan" else None
        if new.fact.kind == "plan" and old.kind != "plan":
            return start_of(new.fact.since)
        return min(new.begins, new.placed) if effect == "cancelled" else new.begins

    def replace_others(self, new: Said, own: Span, done: list[Span]) -> None:
        fact = new.fact
        about, slot, value, kind, holds = new.means
        rule = "said to be so" if holds else "said to be over"
        for old in reversed(self.spans_of((about, slot, value, kind, not holds))):
            if old.open(new.placed) and old not in done:
                self.close(old, new, new.begins, rule, own)
        if fact.values != "one" or not holds:
            return
        for old in self.spans:
            in_slot = [said for said in old.said if said.means[:2] == (about, slot)]
            if old is own or old in done or old.kind != kind or not in_slot:
                continue
            turns = {turn for said in old.said for turn in said.fact.evidence}
            together = turns & set(fact.evidence)
            before = fact.until is not None and end_of(fact.until) <= old.begins
            if old.said[0].fact.holds and old.open(new.placed) and not together and not before:
                self.close(old, new, new.begins, "another value", own)

    def close(self, old: Span, new: Said, at: datetime, rule: str, own: Span) -> None:
        lasting = old.kind in ("state", "rule")
        if self.is_undone(old, new) or (lasting and new.fact.fact_id in self.void):
            return
        at = max(at, old.begins)
        if old.over is not None and old.over <= at:
            return
        if old.closing and old.closing[1] <= at and old.closing[3] is not own:
            return
        old.closing = (new, at, rule, own)
        self.closed.append(old)

    def take_back(self) -> None:
        """What a plan that failed or a state that never began had closed goes on."""
        before = set(self.void)
        for old in self.closed:
            new, at, rule, _ = old.closing
            failed = old.kind == "plan" and rule != "came about"
            unbegun = old.kind != "plan" and new.placed < old.begins and at <= old.begins
            mine = [span for span in self.spans if span.closing and span.closing[3] is old]
            if (failed or unbegun) and any(span.kind in ("state", "rule") for span in mine):
                self.void |= {said.fact.fact_id for said in old.said}
        if self.void != before:
            raise Again


def id_of(fact: Fact) -> str:
    return meaning_id(fact.about, fact.slot, fact.value, kind=fact.kind, holds=fact.holds)


def in_order(facts: list[Fact]) -> list[Said]:
    """Dated facts by when they were said; undated ones behind the one before, else first."""
    placed: list[tuple] = []
    for n, fact in enumerate(facts):
        before = [old.asserted_at for old in facts[:n] if old.asserted_at]
        after = [new.asserted_at for new in facts[n:] if new.asserted_at]
        if fact.asserted_at:
            place = (fact.asserted_at, 0, fact.recorded_at, n)
        elif before:
            place = (before[-1], 1, DAY0, n)
        elif after:
            place = (after[0], -1, DAY0, n)
        else:
            place = (datetime(1970, 1, 1, tzinfo=UTC), -1, DAY0, n)
        placed.append((place, fact))
    return [first_reading(fact, place[0]) for place, fact in sorted(placed, key=lambda p: p[0])]


def first_reading(fact: Fact, placed: datetime) -> Said:
    dated = fact.asserted_at is not None
    if fact.since and fact.kind != "plan":
        return Said(fact, placed, start_of(fact.since), True)
    lasting = fact.kind in ("state", "rule")
    if lasting and fact.until and end_of(fact.until) <= placed:
        return Said(fact, placed, end_of(fact.until), False)
    return Said(fact, placed, placed, dated)


def expected(
    facts: list[Fact], as_of: datetime | None, undone: set[tuple[str, str]]
) -> tuple[dict[str, tuple], set[tuple]]:
    """The state of each fact, and the rows of the log."""
    known = facts
    if as_of is not None:
        known = [f for f in facts if f.asserted_at and max(f.recorded_at, f.asserted_at) <= as_of]
    states: dict[str, tuple] = {}
    log: set[tuple] = set()
    means = {f.fact_id: Said(f, DAY0, DAY0, True).means for f in known}
    for scope in {f.scope for f in known}:
        mine = [f for f in known if f.scope == scope]
        pairs = set()
        for old, new in undone:
            if {old, new} <= set(means) and old[0] == scope:
                pairs.add((means[old], means[new]))
        dates = [f.asserted_at for f in mine if f.asserted_at]
        present = as_of or max(dates, default=None)
        for span in Oracle(in_order(mine), pairs).run():
            states |= dict(states_of(span, present))
            log |= set(log_of(span))
    return states, log


def states_of(span: Span, present: datetime | None) -> Iterator[tuple[str, tuple]]:
    """Status, closer, head, valid_from and valid_to of each fact of a span."""
    closer, at, rule, _ = span.closing or (None, None, None, None)
    if rule == "corrected":
        for said in span.said:
            when = said.fact.asserted_at
            yield said.fact.fact_id, ("corrected", closer.fact.fact_id, None, when, when, True)
        return
    status, by = "active", None
    if closer and (present is None or at <= present or at <= span.begins):
        status, by = STATUS[rule], closer.fact.fact_id
    elif present is None:
        pass
    elif span.over and span.over <= present:
        status = "ended"
    elif span.kind == "plan" and span.due and span.due <= present:
        status = "due"
    elif span.kind != "event" and span.begins > present:
        status = "upcoming"
    ends = at if closer else span.over
    if closer and not (span.dated and (closer.fact.asserted_at or closer.fact.since)):
        ends = None
    begins = span.begins if span.dated else None
    over = status in ("superseded", "ended")
    head = head_of(span)
    for said in span.said:
        if said is head:
            yield head.fact.fact_id, (status, by, None, begins, ends, over)
        else:
            yield said.fact.fact_id, ("repeat", by, head.fact.fact_id, begins, ends, over)


def head_of(span: Span) -> Said:
    """The first one of the wording that came last."""
    means = [said.means for said in span.said]
    return span.said[max(means.index(each) for each in means)]


def log_of(span: Span) -> Iterator[tuple]:
    if span.closing:
        closer, at, rule, _ = span.closing
        old, new = head_of(span).fact, closer.fact
        if old.asserted_at and new.asserted_at and old.recorded_at > new.recorded_at:
            rule += " (the old arrived late)"
        dated = new.asserted_at or new.since
        if span.closing[2] == "corrected":
            dated = span.dated
        yield old.fact_id, new.fact_id, at if dated else None, rule


def given(resolved: Resolved) -> tuple[dict[str, tuple], set[tuple]]:
    columns = ("status", "superseded_by", "repeats", "valid_from", "valid_to", "superseded")
    rows = resolved.facts.select("fact_id", *columns).rows()
    log = resolved.log.select("old", "new", "at", "rule").rows()
    assert len(log) == len(set(log))
    return {fact_id: tuple(state) for fact_id, *state in rows}, set(log)


@dataclass(frozen=True)
class Topics:
    """What a random history is about, and how often its facts have a date."""

    subjects: tuple[str, ...] = ("Ann", "Ann", "Bea")
    slots: tuple[str, ...] = ("home", "home", "job")
    values: tuple[str, ...] = ("Oslo", "Rome", "Rome", "ROME", "Turku")
    kinds: tuple[str, ...] = ("state", "state", "state", "event", "plan", "rule")
    dated: float = 0.35
    undated: float = 0.1
    effects: tuple[str, ...] = (*RULES, "was_wrong", "repeats")


WIDE = Topics()
NARROW = Topics(
    ("Ann",), ("home",), ("Oslo", "Rome", "Turku"), ("state", "state", "plan", "plan", "event"),
    0.6, 0.02, ("replaces", "replaces", "replaces", "ends", "cancelled", "came_about", "repeats"),
)  # fmt: skip


def random_date(draw: random.Random, share: float) -> str | None:
    """Now and then a day, a month or a year around the time in which all is said."""
    if draw.random() >= share:
        return None
    day = DAY0 + timedelta(days=draw.randint(-30, N_DAYS + 40))
    return day.date().isoformat()[: draw.choice((4, 7, 7, 10, 10, 10))]


def random_effects(
    draw: random.Random, made: list[Fact], scope: str, topics: Topics
) -> tuple[list[str], list[str]]:
    effects, affected = [], []
    for _ in range(draw.choice((0, 0, 1, 1, 2))):
        effects.append(draw.choice(topics.effects))
        names = [f"{scope}{len(made) + 1}", "f00000"]
        for old in made[-5:]:
            names += [old.fact_id, old.fact_id, id_of(old)]
        affected.append(draw.choice(names))
    return effects, affected


def random_fact(draw: random.Random, made: list[Fact], scope: str, topics: Topics) -> Fact:
    n = len(made)
    said = DAY0 + timedelta(days=draw.randint(0, N_DAYS))
    if draw.random() < 0.6 and made and made[-1].asserted_at:
        said = made[-1].asserted_at + timedelta(days=draw.choice((0, 1, 5)))
    late = timedelta(days=draw.choice((0, 0, 0, 20)))
    undated = draw.random() < topics.undated
    effects, affected = random_effects(draw, made, scope, topics)
    return Fact(
        fact_id=f"{scope}{n}",
        scope=scope,
        about=draw.choice(topics.subjects),
        slot=draw.choice(topics.slots),
        value=draw.choice(topics.values),
        source="stated",
        evidence=[f"t{draw.randint(max(0, n - 1), n)}"],
        asserted_at=None if undated else said,
        recorded_at=None if undated else said + late,
        kind=draw.choice(topics.kinds),
        holds=draw.random() < 0.85,
        values="one" if draw.random() < 0.75 else "many",
        since=random_date(draw, topics.dated),
        until=random_date(draw, topics.dated / 3),
        effects=effects,
        affected=affected,
    )


def random_facts(draw: random.Random) -> list[Fact]:
    facts: list[Fact] = []
    topics = draw.choice((WIDE, NARROW))
    for scope in draw.choice(("u", "u", "uv")):
        made: list[Fact] = []
        for _ in range(draw.randint(1, 14)):
            made.append(random_fact(draw, made, scope, topics))
        facts += made
    return facts


def check(seed: int) -> None:
    draw = random.Random(seed)
    facts = random_facts(draw)
    table = frame(Fact, facts)
    resolved = resolve(table)
    assert given(resolved) == expected(facts, None, set()), seed
    closed = resolved.facts.filter("superseded")
    assert closed.filter(closed["valid_to"] < closed["valid_from"]).is_empty(), seed
    undone = set(resolved.log.select("old", "new").sample(fraction=0.3, seed=seed).rows())
    assert given(resolve(table, undone=undone)) == expected(facts, None, undone), seed
    for as_of in (DAY0 + timedelta(days=draw.randint(0, N_DAYS), hours=1), facts[-1].asserted_at):
        if as_of is None:
            continue
        then = resolve(table, as_of=as_of)
        assert given(then) == expected(facts, as_of, set()), (seed, as_of)
        # What is active by its status is so by its dates, and the reverse.
        by_status = active_facts(then).filter(pl.col("valid_from").is_not_null())
        by_dates = active_facts(then, as_of=as_of)
        assert by_dates["fact_id"].to_list() == by_status["fact_id"].to_list(), (seed, as_of)


@pytest.mark.parametrize("chunk", range(2))
def test_random_histories(chunk: int) -> None:
    for seed in range(30 * chunk, 30 * chunk + 30):
        check(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("chunk", range(10))
def test_many_random_histories(chunk: int) -> None:
    for seed in range(1_000 + 1_000 * chunk, 2_000 + 1_000 * chunk):
        check(seed)
