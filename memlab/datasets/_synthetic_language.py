"""The language of the synthetic generator: a small phrase grammar, read from the text files beside this module.

A line is a template: ``[a|b|]`` takes one of its parts, ``{rule}`` takes one line of a rule, ``{name}`` is bound by
the caller, and ``{x:cap}``, ``{x:low}``, ``{x:a}``, ``{x:s}`` change the first letter, put an article before, or make a
plural. Templates are compiled once into nested tuples, so that saying one costs microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from memlab.errors import DataError
from memlab.language import words

Random = Callable[[], float]
Lines = list[tuple[Any, ...]]


class Slot(NamedTuple):
    """A place in a template: the lines of a rule, or a bound name where there is no such rule, with a modifier."""

    name: str
    lines: Lines | None
    modifier: str


class Item(NamedTuple):
    """One countable thing: its name, what a question calls it, mentions."""

    name: str
    ref: str
    say: Lines


@dataclass
class Entry:
    """One block of a text file: what stands behind each key, as it is and compiled."""

    kind: str
    name: str
    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    lets: list[tuple[str, Lines]] = field(default_factory=list)


@dataclass
class Language:
    """Everything that can be said; ``topics`` holds the threads of each topic."""

    rules: dict[str, Lines]
    topics: dict[str, list[Entry]]
    collections: list[Entry]
    states: list[Entry]
    details: list[Entry]
    replies: list[Entry]
    tastes: list[Entry]
    instructions: list[Entry]
    contradictions: list[Entry]

    def collection(self, name: str) -> Entry:
        """Find a collection of countable things."""
        return next(c for c in self.collections if c.name == name)


_TOKEN = re.compile(r"[\[\]|]|\{[^}]*\}|[^\[\]|{]+")


def _compile(text: str, rules: dict[str, Lines]) -> tuple[Any, ...]:
    open_: list[list[list[Any]]] = [[[]]]
    for token in _TOKEN.findall(text):
        if token == "[":
            open_.append([[]])
        elif token == "]" and len(open_) > 1:
            choices = open_.pop()
            open_[-1][-1].append([tuple(choice) for choice in choices])
        elif token == "|" and len(open_) > 1:
            open_[-1].append([])
        elif token[0] == "{":
            name, _, modifier = token[1:-1].partition(":")
            open_[-1][-1].append(Slot(name, rules.get(name), modifier))
        else:
            open_[-1][-1].append(token)
    if len(open_) > 1:
        raise DataError(f"template {text!r}: a bracket is not closed; close it")
    return tuple(open_[0][0])


def say(lines: Lines, random: Random, env: Mapping[str, str]) -> str:
    """Say one of the lines."""
    out: list[str] = []
    for part in lines[int(random() * len(lines))]:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, list):
            out.append(say(part, random, env))
        else:
            text = env[part.name] if part.lines is None else say(part.lines, random, env)
            out.append(_MODIFIERS[part.modifier](text))
    return "".join(out)


def capital(text: str) -> str:
    """Begin with a capital."""
    return text[:1].upper() + text[1:]


def with_article(noun: str) -> str:
    """Put "a" or "an" before a noun, and nothing before a plural.

    >>> from memlab.datasets._synthetic_language import with_article
    >>> with_article("air fryer"), with_article("EKG"), with_article("brownies")
    ('an air fryer', 'an EKG', 'brownies')
    """
    if noun.endswith("s") and not noun.endswith("ss"):
        return noun
    an = noun[0] in "aeioAEIO" or noun[:3] in ("ENT", "unc", "unu", "EKG")
    return f"{'an' if an else 'a'} {noun}"


_MODIFIERS: dict[str, Callable[[str], str]] = {
    "": str,
    "cap": capital,
    "low": lambda text: text if text[:2] in ("I ", "I'") else text[:1].lower() + text[1:],
    "a": with_article,
    "s": lambda noun: noun + ("es" if noun.endswith("s") else "s"),
}
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DAYS = [name.title() for name in words.WEEKDAYS]
MONTHS = [name.title() for name in words.MONTHS]


def when_phrase(event: date, spoken_at: datetime, random: Random, *, since: bool = False) -> str:
    """Say when something was, exactly: every phrase names one day, given the day on which it is said.

    :param since: give the form that follows a present tense ("since Tuesday", "as of today").

    >>> from datetime import date, datetime
    >>> from memlab.datasets._synthetic_language import when_phrase
    >>> when_phrase(date(2024, 5, 6), datetime(2024, 5, 7, 9), lambda: 0.0)
    'yesterday'
    >>> when_phrase(date(2024, 3, 30), datetime(2024, 5, 7, 9), lambda: 0.0, since=True)
    'since March 30'
    """
    lag, month, day = (spoken_at.date() - event).days, MONTHS[event.month - 1], event.day
    ending = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    env = {"weekday": _DAYS[event.weekday()], "month": month, "date": f"{month} {day}", "nth": f"{day}{ending}"}
    rules = {n: language().rules.get(f"{'since' if since else 'when'} {n}") for n in (0, 1, 2, 7, 8) if n <= lag}
    return say([lines for lines in rules.values() if lines][-1], random, {**env, "count": _count(lag)})


def _count(n: int) -> str:
    return _COUNTS[n] if n < len(_COUNTS) else str(n)


def amount_phrase(value: int, unit: str, random: Random) -> str:
    """Say an amount with its unit; small counts as a word more often than not."""
    rules = language().rules
    lines = rules.get(f"amount {unit}", rules["amount"])
    return say(lines, random, {"v": str(value), "count": _count(value), "unit": unit})


def amount_answer(value: float | None, unit: str | None) -> str:
    """Write an amount as an answer does."""
    return f"${int(value or 0)}" if unit == "money" else f"{int(value or 0)} {unit or ''}"


def _blocks(name: str) -> Iterator[tuple[str, list[str]]]:
    """Give title and lines of each block of a text file."""
    text = files("memlab.datasets").joinpath("synthetic_text", f"{name}.txt").read_text(encoding="utf-8")
    for block in re.split(r"^== ", re.sub(r"^# .*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)[1:]:
        title, *lines = filter(None, block.splitlines())
        yield title, lines


def _entries(file: str, rules: dict[str, Lines]) -> list[Entry]:
    entries = []
    for title, lines in _blocks(file):
        kind, _, name = title.rpartition(": ")
        entry = Entry(kind, name)
        for key, _, text in (line.partition(": ") for line in lines):
            if key == "let":
                names = re.split(r"(?:^| )(\w+)=", text)[1:]
                entry.lets = [(n, [_compile(v, rules)]) for n, v in zip(names[::2], names[1::2], strict=True)]
            elif key == "item":
                thing, ref, *mentions = text.split(" ~ ")
                entry.items.append(Item(thing, ref, [_compile(mention, rules) for mention in mentions]))
            else:
                entry.values[key] = text
                entry.lines.setdefault(key, []).extend(_compile(part, rules) for part in text.split(" ~~ "))
        entries.append(entry)
    return entries


@cache
def language() -> Language:
    """Read and compile the text files, once."""
    texts = dict(_blocks("rules"))
    rules: dict[str, Lines] = {name: [] for name in texts}
    for name, lines in texts.items():
        rules[name] += [_compile(line, rules) for line in lines]
    talk, facts = _entries("talk", rules), [*_entries("facts", rules), *_entries("standing", rules)]
    topics = {topic: [entry for entry in talk if entry.kind == topic] for topic in dict.fromkeys(e.kind for e in talk)}
    names = ("state", "detail", "reply", "taste", "instruction", "contradiction")
    kinds = ([e for e in facts if e.kind == kind] for kind in names)
    return Language(rules, topics, _entries("collections", rules), *kinds)
