"""What happens to one synthetic user, and where it is said: events, details, answers, preferences, look-alikes."""

from __future__ import annotations

from datetime import datetime, timedelta

from memlab.datasets._synthetic_language import (
    Entry,
    Item,
    Language,
    amount_phrase,
    say,
    when_phrase,
    with_article,
)
from memlab.datasets._synthetic_states import next_value, place_states
from memlab.datasets._synthetic_world import Placed, World, empty_world

_COUNTS = (2, 2, 2, 3, 3, 4, 5, 6)
_LAGS = (0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 9, 11)


def build(scope: str, turns: int, seed: int, hazard_per_year: float, language: Language) -> World:
    """Plan one scope: how much of each kind is said grows with its turns."""
    world = empty_world(scope, turns, seed, language)
    _events(world, max(1, round(turns / 55)))
    place_states(world, max(1, round(turns / 42)), hazard_per_year)
    _singles(world, turns)
    _look_alikes(world, round(turns / 11))
    for _ in range(round(turns / 16)):
        _noise(world)
    return world


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


def _tagged(world: World, entry: Entry, kind: str, text: str) -> Placed:
    """Head some remarks with their subject, look-alikes as often as true ones."""
    if "tag" in entry.lines and world.random() < 0.45:
        return Placed(kind, f"{say(entry.lines['tag'], world.random, {})}: {text}", tagged=True)
    return Placed(kind, text)


def _some_day(world: World, spoken_at: datetime) -> datetime:
    """Choose the day that a remark is about: the same or one of the eleven before."""
    day = spoken_at - timedelta(days=_LAGS[world.pick(len(_LAGS))])
    return day.replace(hour=0, minute=0, second=0, microsecond=0)


def _event(world: World, collection: Entry, item: Item, session: int) -> None:
    spoken_at = world.starts[session]
    day = _some_day(world, spoken_at)
    env, value = _item_env(world, item, collection.values.get("unit", ""))
    env["when"] = when_phrase(day.date(), spoken_at, world.random)
    env["since"] = when_phrase(day.date(), spoken_at, world.random, since=True)
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
        text = say(item.say, world.random, env)
        evidence = [str(world.put(session, _tagged(world, collection, "event", text)))]
    unit = collection.values.get("unit", "").partition(" ")[0] or None
    fact = world.add("event", collection.name, item.name, (day, day), value=value, unit=unit, evidence=evidence)
    world.refs[fact.fact_id] = item.ref


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
        if world.random() < 0.5:
            hints = [f"{hints[0]}, and {hints[1]}"]
        evidence = [str(world.put(session, Placed("detail", hint, topic=taste.values["topic"]))) for hint in hints]
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
    spoken_at = world.starts[session]
    answer = say(reply.lines["a"], world.random, env)
    evidence = [world.turn_id(session, place + 1)]
    fact = world.add("reply", reply.name, answer, (spoken_at, None), evidence=evidence)
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
                env["v"] = next_value(world, entry, [], [])
            if (entry.name, env["v"]) in own:
                continue
        else:
            pool = mine if world.random() < 0.75 else language.collections
            entry = pool[world.pick(len(pool))]
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
        _hearsay(world, entry, env)


def _noise(world: World) -> None:
    """Say something of no consequence, now and then with a day, too."""
    session = _session_for(world, "", set())
    if session is not None:
        spoken_at = world.starts[session]
        env = {"when": when_phrase(_some_day(world, spoken_at).date(), spoken_at, world.random)}
        world.put(session, Placed("noise", say(world.language.rules["noise"], world.random, env)))


def _hearsay(world: World, entry: Entry, env: dict[str, str]) -> None:
    """Say a look-alike, often with a day, as true events have one."""
    session = _session_for(world, entry.values["topic"], set())
    if session is None:
        return
    text = say(entry.lines["near"], world.random, env)
    if text.startswith("my ") and world.random() < 0.6:
        spoken_at = world.starts[session]
        text = f"I heard {when_phrase(_some_day(world, spoken_at).date(), spoken_at, world.random)} that {text}"
    world.put(session, _tagged(world, entry, "near", text))
