"""Writes the turns of a planned scope: small talk, questions and advice around the statements it has to hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

from memlab.datasets._synthetic_language import Entry, Lines, capital
from memlab.datasets._synthetic_world import Placed, World, draws

T = TypeVar("T")


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


class _Deck(Generic[T]):
    """Hands out the members of a list in random order, again from the start when it is empty."""

    def __init__(self, world: World, members: list[T]) -> None:
        self.world, self.members, self.left = world, members, list(members)

    def draw(self) -> T:
        self.left = self.left or list(self.members)
        return self.left.pop(self.world.pick(len(self.left)))


class _Talk:
    """What is talked about just now: a thread of a topic, with what was not asked and advised of it yet."""

    def __init__(self, world: World, thread: Entry) -> None:
        self.world, self.env = world, {"thread": thread.name}
        self.asks, self.tips = _Deck(world, thread.lines["ask"]), _Deck(world, thread.lines["tip"])

    def say(self, lines: Lines | str) -> str:
        return self.world.say(lines, self.env)

    def question(self, *, fresh: bool = False) -> str:
        """Ask something new on the thread, or follow up."""
        new = fresh or (self.asks.left and self.world.random() < 0.75)
        return capital(self.say([self.asks.draw()] if new else "more"))

    def chat(self, place: int, *, ending: bool, alone: bool) -> str:
        """Talk as people do: a greeting, a reaction, a question; more of it where no statement follows, so that length
        does not give statements away.
        """
        if ending:
            return self.say("bye")
        random = self.world.random
        parts = [self.say("react" if place else "hello")] if random() < (0.5 if place else 0.6) else []
        context = [capital(self.say("busy"))] if random() < (0.8 if alone else 0.08) else []
        question = self.question(fresh=place == 0)
        return " ".join(parts + ([*context, question] if random() < 0.5 else [question, *context]))


def _session(world: World, session: int) -> Iterator[Spoken]:
    size, now, random = world.sizes[session], world.starts[session], world.random
    topics = world.language.topics
    threads = _Deck(world, topics[world.topics[session]])
    talk, since_switch = _Talk(world, threads.draw()), 0
    for place in range(0, size, 2):
        statement = world.placed.get((session, place))
        turn_to = topics[statement.topic] if statement and statement.topic else None
        if turn_to or (since_switch and random() < 0.22 * since_switch):
            talk, since_switch = _Talk(world, world.choose(turn_to) if turn_to else threads.draw()), 0
        ending = place == size - 1
        yield Spoken(session, "user", _user(talk, statement, place, ending=ending), now)
        now += timedelta(seconds=8 + int(random() * 40))
        if not ending:
            yield Spoken(session, "assistant", _assistant(talk, statement), now)
            now += timedelta(seconds=25 + int(random() * 400))
        since_switch += 1


def _user(talk: _Talk, statement: Placed | None, place: int, *, ending: bool) -> str:
    world, opening = talk.world, "react" if place else "hello"
    if statement is not None and statement.whole:
        text = capital(statement.text)
        if world.random() < 0.5:
            text = f"{talk.say(opening)} {text}"
        return f"{text} {capital(talk.say('busy'))}" if world.random() < 0.7 else text
    chat = talk.chat(place, ending=ending, alone=statement is None)
    if statement is None:
        return chat
    remark = capital(statement.text)
    if statement.tagged:
        return f"{chat} {remark}."
    if statement.leads:
        return f"{remark}. {talk.say('bye') if ending else talk.question()}"
    kind = world.random()
    if kind < 0.5 or ending:
        return f"{chat} {capital(world.say('aside', x=statement.text))}"
    if kind < 0.72:
        return world.say("lead_in", x=statement.text, y=capital(chat))
    return f"{talk.say(opening)} {remark}."


_ACK = {"event": "ack_good", "state": "ack_good", "near": "ack_near", "noise": "ack_near", "detail": "ack_near"}


def _assistant(talk: _Talk, statement: Placed | None) -> str:
    """An answer: it takes note, advises on the thread, and often asks back; it never repeats the statement."""
    random = talk.world.random
    ack = _ACK.get(statement.kind, "ack_plain") if statement else "ack_plain"
    parts = [talk.say(ack)] if random() < 0.7 else []
    if statement is not None and statement.reply is not None:
        parts.append(statement.reply)
        advice = int(random() >= 0.5)
    else:
        advice = 2 + int(random() * 2.5)
    lines = [talk.say([talk.tips.draw()]) for _ in range(advice)]
    if advice > 2 and random() < 0.2:
        parts.append("\n" + "\n".join(f"{i}. {capital(line)}" for i, line in enumerate(lines, 1)) + "\n")
    else:
        parts += [capital(talk.world.say("glue", x=line) if i else line) for i, line in enumerate(lines)]
    if random() < 0.3:
        parts.append(talk.say("elaborate"))
    if random() < 0.5:
        parts.append(talk.say("close"))
    return " ".join(parts).replace(" \n", "\n").replace("\n ", "\n").strip()


def drawn_out(spoken: Iterator[Spoken], world: World, characters: int, *, seed: int) -> Iterator[Spoken]:
    """Draw answers out with advice on the topic to at least so many characters; what they say stands anywhere in it.

    By draws of its own, so that all else is said as it is without.
    """
    apart = replace(world, random=draws(f"{seed}/{world.scope}/answers"))
    for turn in spoken:
        if turn.role == "assistant":
            threads, advice, length = world.language.topics[world.topics[turn.session]], list[str](), len(turn.text)
            while length < characters:
                talk = _Talk(apart, apart.choose(threads))
                advice.append(capital(talk.say([talk.tips.draw()])))
                length += 1 + len(advice[-1])
            place = apart.pick(len(advice) + 1)
            turn = turn._replace(text=" ".join([*advice[:place], turn.text, *advice[place:]]))
        yield turn
