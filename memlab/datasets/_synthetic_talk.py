"""Writes the turns of a planned scope: small talk, questions and advice around the statements it has to hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from memlab.datasets._synthetic_language import Thread, capital, say
from memlab.datasets._synthetic_world import Placed, World


class Spoken(NamedTuple):
    """One written turn: session number from 0, role, text, time."""

    session: int
    role: str
    text: str
    timestamp: datetime


def write_turns(world: World) -> Iterator[Spoken]:
    """Write the scope's turns in order; user and assistant take turns, the user begins."""
    for session in range(len(world.sizes)):
        yield from _session(world, session)


class _Deck:
    """Hands out the lines of a list in random order, again from the start when it is empty."""

    __slots__ = ("left", "lines", "random")

    def __init__(self, world: World, lines: list[Any]) -> None:
        self.random, self.lines, self.left = world.random, lines, list(lines)

    def draw(self) -> Any:
        if not self.left:
            self.left = list(self.lines)
        return self.left.pop(int(self.random() * len(self.left)))


def _session(world: World, session: int) -> Iterator[Spoken]:
    size, now, random = world.sizes[session], world.starts[session], world.random
    topics = world.language.topics
    threads = _Deck(world, topics[world.topics[session]])
    thread: Thread = threads.draw()
    asks, tips = _Deck(world, thread.asks), _Deck(world, thread.tips)
    since_switch = 0
    for place in range(0, size, 2):
        statement = world.placed.get((session, place))
        turn_to = topics[statement.topic] if statement and statement.topic else None
        if turn_to or (since_switch and random() < 0.22 * since_switch):
            thread = turn_to[world.pick(len(turn_to))] if turn_to else threads.draw()
            asks, tips, since_switch = _Deck(world, thread.asks), _Deck(world, thread.tips), 0
        env = {"thread": thread.name}
        ending = place == size - 1
        yield Spoken(session, "user", _user(world, statement, place, ending, asks, env), now)
        now += timedelta(seconds=8 + int(random() * 40))
        if not ending:
            yield Spoken(session, "assistant", _assistant(world, statement, tips, env), now)
            now += timedelta(seconds=25 + int(random() * 400))
        since_switch += 1


def _chat(world: World, place: int, ending: bool, asks: _Deck, env: dict[str, str], *, alone: bool) -> str:
    """A turn's ordinary talk: a greeting, a reaction, a question on the thread; more of it where no statement follows,
    so that length does not give statements away.
    """
    rules, random = world.language.rules, world.random
    if ending:
        return say(rules["bye"], random, env)
    parts = []
    if place == 0:
        if random() < 0.6:
            parts.append(say(rules["hello"], random, env))
    elif random() < 0.5:
        parts.append(say(rules["react"], random, env))
    context = [capital(say(rules["busy"], random, env))] if random() < (0.8 if alone else 0.08) else []
    question = _question(world, asks, env, fresh=place == 0)
    parts += [*context, question] if random() < 0.5 else [question, *context]
    return " ".join(parts)


def _question(world: World, asks: _Deck, env: dict[str, str], *, fresh: bool = False) -> str:
    """Ask something new on the thread, or follow up."""
    new = fresh or (asks.left and world.random() < 0.75)
    return capital(say([asks.draw()] if new else world.language.rules["more"], world.random, env))


def _user(world: World, statement: Placed | None, place: int, ending: bool, asks: _Deck, env: dict[str, str]) -> str:
    rules, random = world.language.rules, world.random
    if statement is not None and statement.whole:
        text = capital(statement.text)
        if random() < 0.5:
            text = f"{say(rules['react' if place else 'hello'], random, env)} {text}"
        return f"{text} {capital(say(rules['busy'], random, env))}" if random() < 0.7 else text
    talk = _chat(world, place, ending, asks, env, alone=statement is None)
    if statement is None:
        return talk
    if statement.tagged:
        return f"{talk} {capital(statement.text)}."
    if statement.leads:
        return f"{capital(statement.text)}. {say(rules['bye'], random, env) if ending else _question(world, asks, env)}"
    kind = random()
    if kind < 0.5 or ending:
        return f"{talk} {capital(say(rules['aside'], random, {'x': statement.text}))}"
    if kind < 0.72:
        return say(rules["lead_in"], random, {"x": statement.text, "y": capital(talk)})
    return f"{say(rules['react' if place else 'hello'], random, env)} {capital(statement.text)}."


_ACK = {"event": "ack_good", "state": "ack_good", "near": "ack_near", "noise": "ack_near", "detail": "ack_near"}


def _assistant(world: World, statement: Placed | None, tips: _Deck, env: dict[str, str]) -> str:
    """An answer: it takes note, advises on the thread, and often asks back; it never repeats the statement."""
    rules, random = world.language.rules, world.random
    ack = _ACK.get(statement.kind, "ack_plain") if statement else "ack_plain"
    parts = [say(rules[ack], random, env)] if random() < 0.7 else []
    if statement is not None and statement.reply is not None:
        parts.append(statement.reply)
        advice = 0 if random() < 0.5 else 1
    else:
        advice = 2 + int(random() * 2.5)
    lines = [say([tips.draw()], random, env) for _ in range(advice)]
    if advice > 2 and random() < 0.2:
        parts.append("\n" + "\n".join(f"{i}. {capital(line)}" for i, line in enumerate(lines, 1)) + "\n")
    else:
        parts += [capital(say(rules["glue"], random, {"x": x}) if i else x) for i, x in enumerate(lines)]
    if random() < 0.3:
        parts.append(say(rules["elaborate"], random, env))
    if random() < 0.5:
        parts.append(say(rules["close"], random, env))
    return " ".join(parts).replace(" \n", "\n").replace("\n ", "\n").strip()
