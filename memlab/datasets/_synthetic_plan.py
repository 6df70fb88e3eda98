"""What happens to one synthetic user, and where it is said: events, attributes that change at a known hazard rate,
details, answers, preferences, look-alikes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import zip_longest

from memlab.datasets._synthetic_language import Entry, Item, Language, Random, amount_phrase, with_article
from memlab.datasets._synthetic_world import Placed, World, empty_world

_COUNTS = (2, 2, 2, 3, 3, 4, 5, 6)
_LAGS = (0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 9, 11)


def build(
    scope: str, turns: int, seed: int, hazard_per_year: float, language: Language, *, standing: bool = False
) -> World:
    """Plan one scope: how much of each kind is said grows with its turns.

    :param standing: with instructions and contradictions.
    """
    world = empty_world(scope, turns, seed, language)
    _events(world, max(1, round(turns / 55)))
    _states(world, max(1, round(turns / 42)), hazard_per_year)
    _singles(world, turns)
    _look_alikes(world, round(turns / 11))
    for _ in range(round(turns / 16)):
        if (session := _session_for(world)) is not None:
            text = world.say("noise", when=world.when(_recent_day(world, session), session))
            world.put(session, Placed("noise", text))
    if standing:
        _standing(world, turns)
    return world


def _session_for(world: World, topic: str = "", barred: frozenset[int] = frozenset()) -> int | None:
    """Choose a session with room, a third of the time one on the same topic: most facts are side remarks."""
    open_ = [s for s in world.open() if s not in barred]
    same = [s for s in open_ if world.topics[s] == topic]
    pool = same if same and world.random() < 0.33 else open_
    return world.choose(pool) if pool else None


def _items(world: World, collection: Entry, n: int) -> list[Item]:
    """Choose ``n`` different things of a collection, inventing names where it has a rule for them."""
    if collection.items:
        return world.sample(collection.items, n)
    names: dict[str, None] = {}
    while len(names) < n:
        names[world.say(collection.lines["name"])] = None
    return [Item(n, world.say(collection.lines["ref"], name=n), collection.lines["say"]) for n in names]


def item_names(name: str) -> dict[str, str]:
    """Bind the names under which templates speak of a thing."""
    return {"name": name, "item": with_article(name), "the": f"the {name}"}


def _item_env(world: World, name: str, unit: str) -> tuple[dict[str, str], int | None]:
    env = item_names(name)
    if not unit:
        return env, None
    kind, low, high = unit.split()
    value = int(low) + world.pick(int(high) - int(low) + 1)
    return env | {"amt": amount_phrase(value, kind, world.random)}, value


def _events(world: World, n: int) -> None:
    """Let countable things happen: each is stated once, in a session of its own within its collection."""
    for collection in world.sample(world.language.collections, n):
        count = min(world.choose(_COUNTS), len(world.sizes))
        items = _items(world, collection, count + 4)
        happening = items[:count]
        if "repeat" in collection.values and count > 2 and world.random() < 0.6:
            happening = [*happening, happening[0]]
        margin = timedelta(days=10 if "nights" in collection.values.get("unit", "") else 0)
        barred: frozenset[int] = frozenset()
        for item in happening:
            session = _session_for(world, collection.values["topic"], barred)
            if session is not None:
                start = world.starts[session]
                barred |= {session, *(s for s, other in enumerate(world.starts) if abs(other - start) < margin)}
                _event(world, collection, item, session)
        world.strangers[collection.name] = [item.name for item in items[count:]]


def _tagged(world: World, entry: Entry, kind: str, text: str) -> Placed:
    """Head some remarks with their subject, look-alikes as often as true ones."""
    if "tag" in entry.lines and world.random() < 0.45:
        return Placed(kind, f"{world.say(entry.lines['tag'])}: {text}", tagged=True)
    return Placed(kind, text)


def _recent_day(world: World, session: int) -> datetime:
    """Choose the day that a remark is about: that of the session or one of the eleven before."""
    day = world.starts[session] - timedelta(days=world.choose(_LAGS))
    return day.replace(hour=0, minute=0, second=0, microsecond=0)


def _event(world: World, collection: Entry, item: Item, session: int) -> None:
    day, unit, topic = _recent_day(world, session), collection.values.get("unit", ""), collection.values["topic"]
    env, value = _item_env(world, item.name, unit)
    env |= {"when": world.when(day, session)}
    env |= {"since": world.when(day, session, since=True)}
    splits, free = collection.lines.get("split"), world.free[session]
    pair = [p for p in free if p + 2 in free] if splits else []
    if splits and pair and world.random() < 0.25:
        at, line = world.choose(pair), 2 * world.pick(len(splits) // 2)
        first, second = world.say([splits[line]], env), world.say([splits[line + 1]], env)
        free.remove(at)
        free.remove(at + 2)
        world.placed[session, at] = Placed("ask", first, whole=True, topic=topic)
        world.placed[session, at + 2] = Placed("event", second, leads=True)
        evidence = [world.turn_id(session, at), world.turn_id(session, at + 2)]
    else:
        evidence = [world.put(session, _tagged(world, collection, "event", world.say(item.say, env)))]
    amount = {"value": value, "unit": unit.partition(" ")[0] or None}
    fact = world.add("event", collection.name, item.name, day, day, **amount, evidence=evidence)
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


class _Course:
    """The values of an attribute, one after the other."""

    def __init__(self, world: World, state: Entry) -> None:
        self.world, self.state = world, state
        self.values: list[str] = []
        self.number: int | None = None

    def _draw(self) -> tuple[str, int | None]:
        world, spec, trend = self.world, self.state.values["value"].split(), self.state.values.get("trend")
        if not all(part.isdigit() for part in spec):
            return world.say(self.state.lines["value"]), None
        low, high = map(int, spec)
        if trend and self.number is not None:
            low, high = (self.number + int(step) for step in trend.split())
        elif trend:
            low = (low + high) // 2
        number = low + world.pick(high - low + 1)
        return f"{number // 60}:{number % 60:02d}" if "format" in self.state.values else str(number), number

    def next(self) -> str:
        """Draw the next value: another than all before, where there are enough."""
        for _ in range(60):
            text, number = self._draw()
            value = self.state.values.get("show", "{v}").replace("{v}", text)
            if value not in self.values:
                break
        if self.values and value == self.values[-1]:
            value = next(other for other in reversed(self.values) if other != value)
        self.values.append(value)
        self.number = number
        return value


def _states(world: World, n: int, hazard_per_year: float) -> None:
    """Give attributes values that change as a Poisson process from their first statement to the last session."""
    early = max(1, (2 * len(world.sizes)) // 5)
    for state in world.sample(world.language.states, n):
        session = world.pick(early)
        if not world.free[session]:
            continue
        rate = float(state.values["hazard"]) * hazard_per_year
        change = world.starts[session]
        times = [change]
        while rate > 0:
            change += timedelta(seconds=int(exponential(world.random) / rate * 365.25 * 86_400))
            if change >= world.starts[-1]:
                break
            times.append(change)
        course = _Course(world, state)
        for since, until in zip_longest(times, times[1:]):
            _state(world, course, since, until, rate)


def _state(world: World, course: _Course, since: datetime, until: datetime | None, rate: float) -> None:
    """State one value: at the first session with room while it holds; now and then wrongly, and then corrected."""
    state, first = course.state, not course.values
    value = mention = course.next()
    room = [s for s in world.open() if world.starts[s] >= since and (until is None or world.starts[s] < until)]
    evidence: list[str] = []
    if room:
        if room[1:] and "trend" not in state.values and world.random() < 0.12:
            mention = course.next()
            course.values[-2:] = [mention, value]
        text = world.say(
            state.lines["say" if first else "change"], v=mention, since=world.when(since, room[0], since=True)
        )
        evidence = [world.put(room[0], Placed("state", text))]
        if mention != value:
            slip = {"status": "retracted", "hazard_per_year": rate, "evidence": evidence}
            world.add("state", state.name, mention, since, since, **slip)
            session = world.choose(room[1:6])
            text = world.say("correct", v=value, old=mention, label=state.values["label"])
            evidence = [world.put(session, Placed("state", text))]
    world.add("state", state.name, value, since, until, hazard_per_year=rate, evidence=evidence)


def _bind(world: World, entry: Entry) -> dict[str, str]:
    """Bind an entry's ``let`` names, each to a value of its own."""
    env: dict[str, str] = {}
    for name, lines in entry.lets:
        text = world.say(lines, env)
        while text in env.values():
            text = world.say(lines, env)
        env[name] = text
    return env


def _singles(world: World, turns: int) -> None:
    """Place what is said in one session only: details, what the assistant answered, and preferences."""
    begin = world.starts[0]
    for detail in world.sample(world.language.details, max(1, round(turns / 60))):
        env = _bind(world, detail)
        text = world.say(detail.lines["say"], env)
        if open_ := world.open():
            evidence = [world.put(world.choose(open_), Placed("detail", text))]
            fact = world.add("detail", detail.name, env["v"], begin, None, evidence=evidence)
            world.bound[fact.fact_id] = (detail, env)
    for reply in world.sample(world.language.replies, max(1, round(turns / 80))):
        _reply(world, reply)
    for taste in world.sample(world.language.tastes, max(1, round(turns / 90))):
        roomy = [s for s, free in enumerate(world.free) if len(free) > 1]
        if not roomy:
            continue
        session = world.choose(roomy)
        hints = [world.say(taste.lines[key]) for key in ("say", "also")]
        if world.random() < 0.5:
            hints = [f"{hints[0]}, and {hints[1]}"]
        evidence = [world.put(session, Placed("detail", hint, topic=taste.values["topic"])) for hint in hints]
        fact = world.add("preference", taste.name, taste.values["a"], begin, None, evidence=evidence)
        world.bound[fact.fact_id] = (taste, {})


def _reply(world: World, reply: Entry) -> None:
    """Let the user ask, and the assistant answer with something that only this answer holds."""
    places = [(s, p) for s, free in enumerate(world.free) for p in free if p + 1 < world.sizes[s]]
    if not places:
        return
    session, place = world.choose(places)
    world.free[session].remove(place)
    env = _bind(world, reply)
    ask, tell, answer = (world.say(reply.lines[key], env) for key in ("ask", "tell", "a"))
    world.placed[session, place] = Placed("ask", ask, whole=True, reply=tell, topic=reply.values["topic"])
    evidence = [world.turn_id(session, place + 1)]
    fact = world.add("reply", reply.name, answer, world.starts[session], None, evidence=evidence)
    world.bound[fact.fact_id] = (reply, env)


def _standing(world: World, turns: int) -> None:
    """Place instructions, each given once and beside somebody else's ways, and statements that cannot both be true."""
    for entry in world.sample(world.language.instructions, max(1, round(turns / 90))):
        _told(world, entry, ["say"])
        _hearsay(world, entry, {})
    for entry in world.sample(world.language.contradictions, max(1, round(turns / 90))):
        _told(world, entry, world.sample(["yes", "no"], 2))


def _told(world: World, entry: Entry, keys: list[str]) -> None:
    """Say lines of an entry in sessions of their own, in order of time."""
    sessions = sorted(world.sample(world.open(), len(keys)))
    if len(sessions) == len(keys):
        texts = [Placed("detail", world.say(entry.lines[key]), topic=entry.values["topic"]) for key in keys]
        evidence = [world.put(session, text) for session, text in zip(sessions, texts, strict=True)]
        fact = world.add(entry.kind, entry.name, entry.values["a"], world.starts[0], None, evidence=evidence)
        world.bound[fact.fact_id] = (entry, {})


def _look_alikes(world: World, n: int) -> None:
    """Say things that look like facts of the user and are none: other people's, cancelled, only wished for."""
    language = world.language
    own = {(f.predicate, f.object) for f in world.facts}
    mine = [c for c in language.collections if c.name in world.strangers]
    stated = {predicate for predicate, _ in own}
    states = [e for e in (*language.states, *language.details) if e.name in stated]
    for _ in range(n):
        if states and world.random() < 0.2:
            entry = world.choose(states)
            env = _bind(world, entry)
            if entry.kind == "state":
                env["v"] = _Course(world, entry).next()
            if (entry.name, env["v"]) in own:
                continue
        else:
            entry = world.choose(mine if world.random() < 0.75 else language.collections)
            strangers = world.strangers.get(entry.name)
            if strangers == []:
                continue
            name = world.choose(strangers) if strangers else _items(world, entry, 1)[0].name
            env, _ = _item_env(world, name, entry.values.get("unit", ""))
        _hearsay(world, entry, env)


def _hearsay(world: World, entry: Entry, env: dict[str, str]) -> None:
    """Say a look-alike, often with a day, as true events have one."""
    session = _session_for(world, entry.values["topic"])
    if session is not None:
        text = world.say(entry.lines["near"], env)
        if text.startswith("my ") and world.random() < 0.6:
            text = f"I heard {world.when(_recent_day(world, session), session)} that {text}"
        world.put(session, _tagged(world, entry, "near", text))
