"""What happens to one synthetic user: sessions, events, changing attributes, and where each is said.

Sizes, times and topics of the sessions are drawn first and statements are placed into them afterwards, at random, so
that nothing about a session or a turn's place tells whether it holds evidence.
"""

from __future__ import annotations

import hashlib
import random as stdlib_random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from memlab.datasets._synthetic_language import (
    Entry,
    Item,
    Language,
    Random,
    amount_phrase,
    say,
    when_phrase,
    with_article,
)

EPOCH = datetime(2023, 1, 1, tzinfo=UTC)
DAY = 86_400
_COUNTS = (2, 2, 3, 3, 4, 4, 5, 6)
_LAGS = (0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 9, 11)


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
    :param leads: the remark follows from what was said just before, so it opens the turn.
    :param reply: what the assistant has to answer.
    :param topic: what the talk turns to with this statement.
    """

    kind: str
    text: str
    whole: bool = False
    leads: bool = False
    reply: str | None = None
    topic: str | None = None


@dataclass
class World:
    """One scope while it is being planned."""

    scope: str
    user: str
    language: Language
    random: Random
    sizes: list[int]
    starts: list[datetime]
    topics: list[str]
    free: list[list[int]]
    placed: dict[tuple[int, int], Placed] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    refs: dict[str, str] = field(default_factory=dict)
    strangers: dict[str, list[str]] = field(default_factory=dict)
    bound: dict[str, tuple[Entry, dict[str, str]]] = field(default_factory=dict)

    def pick(self, n: int) -> int:
        """Draw a number below ``n``."""
        return int(self.random() * n)

    def sample(self, pool: list, n: int) -> list:  # type: ignore[type-arg]
        """Draw up to ``n`` different members, in random order."""
        held = list(pool)
        return [held.pop(self.pick(len(held))) for _ in range(min(n, len(held)))]

    def turn_id(self, session: int, place: int) -> str:
        """Name a turn."""
        return f"{self.scope}/s{session + 1:04d}/{place + 1}"

    def put(self, session: int, statement: Placed) -> str | None:
        """Place a statement at a free user turn of a session; ``None`` when the session is full."""
        if not self.free[session]:
            return None
        place = self.free[session].pop()
        self.placed[session, place] = statement
        return self.turn_id(session, place)

    def add(self, kind: str, predicate: str, obj: str, when: tuple[datetime, datetime | None], **more: object) -> Fact:
        """Record a fact; ``more`` holds the columns that this kind has."""
        columns = {"value": None, "unit": None, "hazard_per_year": None, "status": "true", "evidence": [], **more}
        name = f"{self.scope}/f{len(self.facts)}"
        fact = Fact(name, self.scope, kind, "user", predicate, obj, valid_from=when[0], valid_to=when[1], **columns)  # type: ignore[arg-type]
        self.facts.append(fact)
        return fact


def build(scope: str, turns: int, seed: int, hazard_per_year: float, language: Language) -> World:
    """Plan one scope of exactly ``turns`` turns; its own generator, so scopes do not depend on one another."""
    digest = hashlib.sha256(f"memlab synthetic 1/{seed}/{scope}".encode()).digest()
    random = stdlib_random.Random(int.from_bytes(digest[:8], "big")).random
    sizes = _sizes(turns, random)
    starts = _starts(sizes, random)
    names = list(language.topics)
    world = World(scope, say(language.rules["first"], random, {}), language, random, sizes, starts, [], [])
    favourites = world.sample(names, 3 + world.pick(5))
    world.topics = [pool[world.pick(len(pool))] for pool in (favourites if random() < 0.75 else names for _ in sizes)]
    world.free = [world.sample(list(range(0, size, 2)), size) for size in sizes]
    _events(world, max(1, round(turns / 55)))
    _states(world, max(1, round(turns / 42)), hazard_per_year)
    _singles(world, turns)
    _look_alikes(world, round(turns / 12))
    for _ in range(round(turns / 18)):
        _anywhere(world, Placed("noise", say(language.rules["noise"], random, {})))
    return world


def _sizes(turns: int, random: Random) -> list[int]:
    sizes = []
    while turns > 24:
        size = 4 + int(21 * random() * (0.4 + 0.6 * random()))
        size = min(size, turns - 4)
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
        start = EPOCH + timedelta(days=int(day), seconds=seconds)
        if starts and start < starts[-1] + timedelta(hours=4):
            start = starts[-1] + timedelta(hours=4, seconds=int(random() * 7200))
        starts.append(start)
    return starts


def _session_for(world: World, topic: str, used: set[int]) -> int | None:
    """Choose a session with room, a third of the time one on the same topic: most facts are side remarks."""
    open_ = [s for s, free in enumerate(world.free) if free and s not in used]
    same = [s for s in open_ if world.topics[s] == topic]
    pool = same if same and world.random() < 0.33 else open_
    return pool[world.pick(len(pool))] if pool else None


def _near(world: World, session: int, days: int) -> set[int]:
    """Give the sessions that the next event of a collection must leave out: this one, and those too close to it."""
    start, margin = world.starts[session], timedelta(days=days)
    return {session} | {s for s, other in enumerate(world.starts) if abs(other - start) < margin}


def _made_up(world: World, collection: Entry, n: int) -> list[Item]:
    """Choose ``n`` different things of a collection, inventing names where it has a rule for them."""
    if collection.items:
        return world.sample(collection.items, n)
    names: dict[str, None] = {}
    while len(names) < n:
        names[say(collection.lines["name"], world.random, {})] = None
    ref = collection.lines["ref"]
    return [Item(name, say(ref, world.random, {"name": name}), collection.lines["say"]) for name in names]


def _item_env(world: World, item: Item, unit: str) -> tuple[dict[str, str], int | None]:
    env = {"name": item.name, "item": with_article(item.name), "the": f"the {item.name}"}
    if not unit:
        return env, None
    kind, low, high = unit.split()
    value = int(low) + world.pick(int(high) - int(low) + 1)
    return env | {"amt": amount_phrase(value, kind, world.random)}, value


def _events(world: World, n: int) -> None:
    """Let countable things happen: each is stated once, in a session of its own within its collection."""
    for collection in world.sample(world.language.collections, n):
        count = min(_COUNTS[world.pick(len(_COUNTS))], len(world.sizes))
        items = _made_up(world, collection, count + 4)
        used: set[int] = set()
        happening = items[:count]
        if collection.values.get("repeat") and count > 2 and world.random() < 0.6:
            happening = [*happening, happening[0]]
        for item in happening:
            session = _session_for(world, collection.values["topic"], used)
            if session is not None:
                used |= _near(world, session, 10 if "nights" in collection.values.get("unit", "") else 0)
                _event(world, collection, item, session)
        world.strangers[collection.name] = [item.name for item in items[count:]]


def _tagged(world: World, entry: Entry, text: str) -> str:
    """Head some remarks with their subject, look-alikes as often as true ones."""
    if "tag" in entry.lines and world.random() < 0.4:
        return f"{say(entry.lines['tag'], world.random, {})}: {text}"
    return text


def _event(world: World, collection: Entry, item: Item, session: int) -> None:
    said = world.starts[session]
    lag = _LAGS[world.pick(len(_LAGS))]
    day = (said - timedelta(days=lag)).replace(hour=0, minute=0, second=0, microsecond=0)
    env, value = _item_env(world, item, collection.values.get("unit", ""))
    env["when"] = when_phrase(day.date(), said, world.random)
    env["since"] = when_phrase(day.date(), said, world.random, since=True)
    splits = collection.lines.get("split")
    pair = [p for p in world.free[session] if p + 2 in world.free[session]] if splits else []
    if splits and pair and world.random() < 0.25:
        at, which = pair[world.pick(len(pair))], 2 * world.pick(len(splits) // 2)
        for place, line, whole in ((at, which, True), (at + 2, which + 1, False)):
            world.free[session].remove(place)
            text = say([splits[line]], world.random, env)
            world.placed[session, place] = Placed(
                "ask" if whole else "event", text, whole, not whole, topic=collection.values["topic"] if whole else None
            )
        evidence = [world.turn_id(session, at), world.turn_id(session, at + 2)]
    else:
        text = _tagged(world, collection, say(item.say, world.random, env))
        evidence = [str(world.put(session, Placed("event", text)))]
    unit = collection.values.get("unit", "").partition(" ")[0] or None
    fact = world.add(
        "event", collection.name, item.name, (day, day), value=value, unit=unit, evidence=evidence
    )
    world.refs[fact.fact_id] = item.ref


def exponential(random: Random) -> float:
    """Draw from the exponential distribution with mean 1 by comparisons only (von Neumann 1951).

    No logarithm, whose last digit differs between machines, so that the same seed gives the same bytes everywhere.
    """
    whole = 0
    while True:
        first = previous = random()
        run = 1
        while (drawn := random()) < previous:
            previous, run = drawn, run + 1
        if run % 2:
            return whole + first
        whole += 1


def _value(world: World, state: Entry, seen: list[str], raw: list[int]) -> str:
    """Draw the next value of an attribute: another than all before, where there are enough."""
    spec = state.values["value"].split()
    for _ in range(60):
        if len(spec) == 2 and spec[0].isdigit() and spec[1].isdigit():
            low, high = int(spec[0]), int(spec[1])
            if raw and "trend" in state.values:
                least, most = map(int, state.values["trend"].split())
                number = raw[-1] + least + world.pick(most - least + 1)
            else:
                low, high = (low, high) if "trend" not in state.values else ((low + high) // 2, high)
                number = low + world.pick(high - low + 1)
            text = f"{number // 60}:{number % 60:02d}" if "format" in state.values else str(number)
        else:
            number, text = 0, say(state.lines["value"], world.random, {})
        text = state.values.get("show", "{v}").replace("{v}", text)
        if text not in seen:
            break
    if seen and text == seen[-1]:
        text = next(value for value in reversed(seen) if value != text)
    seen.append(text)
    raw.append(number)
    return text


def _states(world: World, n: int, hazard_per_year: float) -> None:
    """Give attributes values that change as a Poisson process from their first statement to the last session."""
    early = max(1, (2 * len(world.sizes)) // 5)
    end = world.starts[-1]
    for state in world.sample(world.language.states, n):
        session = world.pick(early)
        if not world.free[session]:
            continue
        rate = float(state.values["hazard"]) * hazard_per_year
        times = [world.starts[session]]
        while rate > 0:
            wait = timedelta(seconds=int(exponential(world.random) / rate * 365.25 * DAY))
            if times[-1] + wait >= end:
                break
            times.append(times[-1] + wait)
        seen: list[str] = []
        raw: list[int] = []
        for i, begin in enumerate(times):
            until = times[i + 1] if i + 1 < len(times) else None
            _state(world, state, (begin, until), rate, (seen, raw))


def _state(
    world: World, state: Entry, when: tuple[datetime, datetime | None], rate: float, past: tuple[list[str], list[int]]
) -> None:
    """State one value: at the first session with room while it holds; now and then wrongly, and then corrected."""
    begin, until = when
    first = not past[0]
    value = _value(world, state, *past)
    holds = [s for s, t in enumerate(world.starts) if t >= begin and (until is None or t < until)]
    room = [s for s in holds if world.free[s]]
    evidence: list[str] = []
    said = value
    if room:
        later = [s for s in room[1:] if s > room[0]][:5]
        if later and "trend" not in state.values and world.random() < 0.12:
            said = _value(world, state, past[0], past[1])
            past[0][-1], past[0][-2] = past[0][-2], past[0][-1]
        env = {"v": said, "since": when_phrase(begin.date(), world.starts[room[0]], world.random, since=True)}
        stated = world.put(room[0], Placed("state", say(state.lines["say" if first else "change"], world.random, env)))
        evidence = [str(stated)]
        if said != value:
            slip = {"status": "retracted", "hazard_per_year": rate, "evidence": evidence}
            world.add("state", state.name, said, (begin, begin), **slip)
            env = {"v": value, "old": said, "label": state.values["label"]}
            fixing = later[world.pick(len(later))]
            evidence = [
                str(world.put(fixing, Placed("state", say(world.language.rules["correct"], world.random, env))))
            ]
    world.add("state", state.name, value, (begin, until), hazard_per_year=rate, evidence=evidence)


def _anywhere(world: World, statement: Placed) -> str | None:
    open_ = [s for s, free in enumerate(world.free) if free]
    return world.put(open_[world.pick(len(open_))], statement) if open_ else None


def _bind(world: World, entry: Entry) -> dict[str, str]:
    """Bind an entry's ``let`` names, each to a value of its own."""
    env: dict[str, str] = {}
    for name, lines in entry.lets:
        text = say(lines, world.random, env)
        while text in env.values():
            text = say(lines, world.random, env)
        env[name] = text
    return env


def _singles(world: World, turns: int) -> None:
    """Place what is said in one session only: details, what the assistant answered, and preferences."""
    always = (world.starts[0], None)
    for detail in world.sample(world.language.details, max(1, round(turns / 60))):
        env = _bind(world, detail)
        if stated := _anywhere(world, Placed("detail", say(detail.lines["say"], world.random, env))):
            fact = world.add("detail", detail.name, env["v"], always, evidence=[stated])
            world.bound[fact.fact_id] = (detail, env)
    for reply in world.sample(world.language.replies, max(1, round(turns / 80))):
        _reply(world, reply)
    for taste in world.sample(world.language.tastes, max(1, round(turns / 90))):
        roomy = [s for s, free in enumerate(world.free) if len(free) > 1]
        if not roomy:
            continue
        session = roomy[world.pick(len(roomy))]
        hints = [say(taste.lines[key], world.random, {}) for key in ("say", "also")]
        evidence = [
            str(world.put(session, Placed("detail", hint, topic=taste.values["topic"]))) for hint in hints
        ]
        fact = world.add("preference", taste.name, taste.values["a"], always, evidence=evidence)
        world.bound[fact.fact_id] = (taste, {})


def _reply(world: World, reply: Entry) -> None:
    """Let the user ask, and the assistant answer with something that only this answer holds."""
    places = [(s, p) for s, free in enumerate(world.free) for p in free if p + 1 < world.sizes[s]]
    if not places:
        return
    session, place = places[world.pick(len(places))]
    world.free[session].remove(place)
    env = _bind(world, reply)
    ask, tell = (say(reply.lines[key], world.random, env) for key in ("ask", "tell"))
    world.placed[session, place] = Placed("ask", ask, True, reply=tell, topic=reply.values["topic"])
    said = world.starts[session]
    answer = say(reply.lines["a"], world.random, env)
    evidence = [world.turn_id(session, place + 1)]
    fact = world.add("reply", reply.name, answer, (said, None), evidence=evidence)
    world.bound[fact.fact_id] = (reply, env)


def _look_alikes(world: World, n: int) -> None:
    """Say things that look like facts of the user and are none: other people's, cancelled, only wished for."""
    language = world.language
    own = {(f.predicate, f.object) for f in world.facts}
    mine = [c for c in language.collections if c.name in world.strangers]
    states = [e for e in (*language.states, *language.details) if any(e.name == p for p, _ in own)]
    for _ in range(n):
        if states and world.random() < 0.2:
            entry = states[world.pick(len(states))]
            env = _bind(world, entry)
            if entry.kind == "state":
                env["v"] = _value(world, entry, [], [])
            if (entry.name, env["v"]) in own:
                continue
        else:
            entry = mine[world.pick(len(mine))] if world.random() < 0.75 else None or language.collections[
                world.pick(len(language.collections))
            ]
            known = world.strangers.get(entry.name)
            names = {i.name: i for i in entry.items}
            if known:
                name = known[world.pick(len(known))]
                item = names.get(name) or Item(name, "", [])
            elif known is None:
                item = _made_up(world, entry, 1)[0]
            else:
                continue
            env, _ = _item_env(world, item, entry.values.get("unit", ""))
        _anywhere(world, Placed("near", _tagged(world, entry, say(entry.lines["near"], world.random, env))))
