"""One synthetic user's conversations while they are planned: sessions, free turns, statements, facts.

Sizes, times and topics of the sessions are drawn first and statements are placed into them afterwards, at random, so
that nothing about a session or a turn's place tells whether it holds evidence.
"""

from __future__ import annotations

import hashlib
import random as stdlib_random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from memlab.datasets._synthetic_language import Entry, Language, Lines, Random, say, when_phrase

T = TypeVar("T")
_EPOCH = datetime(2023, 1, 1, tzinfo=UTC)


class Fact(NamedTuple):
    """Something true of the user for a time, and the turns that say so; the columns of ``synthetic.facts``."""

    fact_id: str
    scope: str
    kind: str
    subject: str
    predicate: str
    object: str
    value: float | None
    unit: str | None
    valid_from: datetime
    valid_to: datetime | None
    hazard_per_year: float | None
    status: str
    evidence: list[str]


@dataclass(slots=True)
class Placed:
    """A statement that a turn has to make.

    :param kind: ``event``, ``state``, ``near``, ``noise`` … : decides how the assistant takes it.
    :param whole: the text is the user's whole turn, not a remark to weave into talk.
    :param tagged: the remark begins with a heading and stands as a sentence of its own.
    :param leads: the remark follows from what was said just before, so it opens the turn.
    :param reply: what the assistant has to answer.
    :param topic: what the talk turns to with this statement.
    """

    kind: str
    text: str
    whole: bool = False
    leads: bool = False
    tagged: bool = False
    reply: str | None = None
    topic: str | None = None


@dataclass
class World:
    """One scope while it is being planned.

    :param free: of each session, its user turns that have nothing to state yet, in random order.
    :param placed: by session and place from 0.
    :param refs: what a question calls an event, by fact id.
    :param strangers: by collection, things that the user had nothing to do with.
    :param bound: by fact id, the entry that words it, and what the words were bound to.
    """

    scope: str
    user: str
    language: Language
    random: Random
    sizes: list[int]
    starts: list[datetime]
    topics: list[str] = field(default_factory=list)
    free: list[list[int]] = field(default_factory=list)
    placed: dict[tuple[int, int], Placed] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    refs: dict[str, str] = field(default_factory=dict)
    strangers: dict[str, list[str]] = field(default_factory=dict)
    bound: dict[str, tuple[Entry, dict[str, str]]] = field(default_factory=dict)

    def pick(self, n: int) -> int:
        """Draw a number below ``n``."""
        return int(self.random() * n)

    def choose(self, pool: Sequence[T]) -> T:
        """Draw a member."""
        return pool[self.pick(len(pool))]

    def sample(self, pool: Sequence[T], n: int) -> list[T]:
        """Draw up to ``n`` different members, in random order."""
        rest = list(pool)
        return [rest.pop(self.pick(len(rest))) for _ in range(min(n, len(rest)))]

    def say(self, lines: Lines | str, env: dict[str, str] | None = None, **more: str) -> str:
        """Say one of some lines, or one line of a rule."""
        return say(
            self.language.rules[lines] if isinstance(lines, str) else lines, self.random, {**(env or {}), **more}
        )

    def when(self, day: datetime, session: int, *, since: bool = False) -> str:
        """Say in a session when something was."""
        return when_phrase(day.date(), self.starts[session], self.random, since=since)

    def turn_id(self, session: int, place: int) -> str:
        """Name a turn."""
        return f"{self.scope}/s{session + 1:04d}/{place + 1}"

    def open(self) -> list[int]:
        """Give the sessions with a free turn."""
        return [session for session, free in enumerate(self.free) if free]

    def put(self, session: int, statement: Placed) -> str:
        """Place a statement at a free user turn of a session that has one; give the turn."""
        place = self.free[session].pop()
        self.placed[session, place] = statement
        return self.turn_id(session, place)

    def add(self, kind: str, predicate: str, obj: str, since: datetime, until: datetime | None, **more: object) -> Fact:
        """Record a fact; ``more`` holds the columns that this kind has."""
        name = f"{self.scope}/f{len(self.facts)}"
        columns: dict[str, Any] = {"value": None, "unit": None, "hazard_per_year": None, "status": "true", **more}
        fact = Fact(name, self.scope, kind, "user", predicate, obj, valid_from=since, valid_to=until, **columns)
        self.facts.append(fact)
        return fact


def draws(name: str) -> Random:
    """Give a generator of numbers from 0 to 1 of its own, the same for the same name."""
    digest = hashlib.sha256(f"memlab synthetic 1/{name}".encode()).digest()
    return stdlib_random.Random(int.from_bytes(digest[:8], "big")).random


def empty_world(scope: str, turns: int, seed: int, language: Language) -> World:
    """Lay out the sessions of one scope of exactly ``turns`` turns, with nothing said yet.

    The scope has its own generator, so scopes do not depend on one another.
    """
    random = draws(f"{seed}/{scope}")
    sizes = _sizes(turns, random)
    starts = _starts(sizes, random)
    world = World(scope, say(language.rules["first"], random, {}), language, random, sizes, starts)
    names = list(language.topics)
    favourites = world.sample(names, 3 + world.pick(5))
    world.topics = [world.choose(favourites if random() < 0.75 else names) for _ in sizes]
    world.free = [world.sample(range(0, size, 2), size) for size in sizes]
    return world


def _sizes(turns: int, random: Random) -> list[int]:
    sizes = []
    while turns > 24:
        size = min(4 + int(21 * random() * (0.4 + 0.6 * random())), turns - 4)
        sizes.append(size)
        turns -= size
    if turns > 14 and random() < 0.8:
        sizes.append(turns // 2)
        turns -= turns // 2
    return [*sizes, turns]


def _starts(sizes: list[int], random: Random) -> list[datetime]:
    """Uneven gaps, adding up to 3 to 18 months, or two weeks a session where there are few."""
    span = min(90 + 450 * random(), 14.0 * len(sizes))
    gaps = [0.02 + random() * random() * random() for _ in sizes]
    scale = span / sum(gaps)
    day = float(int(random() * 700))
    starts: list[datetime] = []
    for gap in gaps:
        day += gap * scale
        seconds = (7 + int(random() * 15)) * 3600 + int(random() * 3600)
        start = _EPOCH + timedelta(days=int(day), seconds=seconds)
        if starts and start < starts[-1] + timedelta(hours=4):
            start = starts[-1] + timedelta(hours=4, seconds=int(random() * 7200))
        starts.append(start)
    return starts
