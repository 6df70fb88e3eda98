"""Attributes of a synthetic user that change at a known hazard rate: their true course, and what is said of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from memlab.datasets._synthetic_language import Entry, Random, say, when_phrase
from memlab.datasets._synthetic_world import Placed, World

_DAY = 86_400


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


def next_value(world: World, state: Entry, seen: list[str], raw: list[int]) -> str:
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


def place_states(world: World, n: int, hazard_per_year: float) -> None:
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
            wait = timedelta(seconds=int(exponential(world.random) / rate * 365.25 * _DAY))
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
    value = next_value(world, state, *past)
    holds = [s for s, t in enumerate(world.starts) if t >= begin and (until is None or t < until)]
    room = [s for s in holds if world.free[s]]
    evidence: list[str] = []
    mention = value
    if room:
        later = [s for s in room[1:] if s > room[0]][:5]
        if later and "trend" not in state.values and world.random() < 0.12:
            mention = next_value(world, state, past[0], past[1])
            past[0][-1], past[0][-2] = past[0][-2], past[0][-1]
        env = {"v": mention, "since": when_phrase(begin.date(), world.starts[room[0]], world.random, since=True)}
        stated = world.put(room[0], Placed("state", say(state.lines["say" if first else "change"], world.random, env)))
        evidence = [str(stated)]
        if mention != value:
            slip = {"status": "retracted", "hazard_per_year": rate, "evidence": evidence}
            world.add("state", state.name, mention, (begin, begin), **slip)
            env = {"v": value, "old": mention, "label": state.values["label"]}
            fixing = later[world.pick(len(later))]
            evidence = [
                str(world.put(fixing, Placed("state", say(world.language.rules["correct"], world.random, env))))
            ]
    world.add("state", state.name, value, (begin, until), hazard_per_year=rate, evidence=evidence)
