"""The language of the synthetic generator: a small phrase grammar, read from the text files beside this module.

A line is a template: ``[a|b|]`` takes one of its parts, ``{rule}`` takes one line of a rule, ``{name}`` is bound by
the caller, and ``{x:cap}``, ``{x:a}``, ``{x:s}`` capitalise, put an article before, or make a plural. Templates are
compiled once into nested tuples, so that saying one costs microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from memlab.errors import DataError
from memlab.language import words

Random = Callable[[], float]
Env = Mapping[str, str]


class Slot(NamedTuple):
    """A place in a template: a bound name, or the lines of a rule, with a modifier."""

    name: str
    lines: list[tuple[Any, ...]] | None
    modifier: str


_TOKEN = re.compile(r"[\[\]|]|\{[^}]*\}|[^\[\]|{]+")


@dataclass
class Entry:
    """One ``==`` block of a text file: single values by key, and repeated lines compiled."""

    kind: str
    name: str
    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    lets: list[tuple[str, list[tuple[Any, ...]]]] = field(default_factory=list)


@dataclass(frozen=True)
class Item:
    """One countable thing with its own mentions: name, what a question calls it, mentions."""

    name: str
    ref: str
    say: list[tuple[Any, ...]]


@dataclass
class Thread:
    """What people ask about one subject, and the advice they get."""

    name: str
    asks: list[tuple[Any, ...]]
    tips: list[tuple[Any, ...]]


@dataclass
class Language:
    """Everything that can be said."""

    rules: dict[str, list[tuple[Any, ...]]]
    topics: dict[str, list[Thread]]
    collections: list[Entry]
    states: list[Entry]
    details: list[Entry]
    replies: list[Entry]
    tastes: list[Entry]

    def collection(self, name: str) -> Entry:
        """Find a collection of countable things."""
        return next(c for c in self.collections if c.name == name)


def compile_line(text: str, rules: dict[str, list[tuple[Any, ...]]]) -> tuple[Any, ...]:
    """Compile a template; names that are no rule stay open for the caller to bind."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text:
        raise DataError(f"template {text!r}: a brace is not closed; close it")
    parts, rest = _sequence(tokens, 0, rules, nested=False)
    if rest != len(tokens):
        raise DataError(f"template {text!r}: a bracket is closed that was not opened; remove it")
    return parts


def _sequence(
    tokens: list[str], at: int, rules: dict[str, list[tuple[Any, ...]]], *, nested: bool
) -> tuple[tuple[Any, ...], int]:
    parts: list[Any] = []
    while at < len(tokens) and not (nested and tokens[at] in "|]"):
        token = tokens[at]
        if token == "]":
            break
        at += 1
        if token == "[":
            choices = []
            while True:
                choice, at = _sequence(tokens, at, rules, nested=True)
                choices.append(choice)
                at += 1
                if at > len(tokens):
                    raise DataError(f"template {''.join(tokens)!r}: a bracket is not closed; close it")
                if tokens[at - 1] == "]":
                    break
            parts.append(choices)
        elif token[0] == "{":
            name, _, modifier = token[1:-1].partition(":")
            lines = rules.get(name)
            parts.append(lines if lines is not None and not modifier else Slot(name, lines, modifier))
        else:
            parts.append(token)
    return tuple(parts), at


def say(lines: list[tuple[Any, ...]], random: Random, env: Env) -> str:
    """Say one of the lines."""
    out: list[str] = []
    _emit(lines[int(random() * len(lines))], random, env, out)
    return "".join(out)


def _emit(parts: tuple[Any, ...], random: Random, env: Env, out: list[str]) -> None:
    for part in parts:
        kind = part.__class__
        if kind is str:
            out.append(part)
        elif kind is list:
            chosen = part[int(random() * len(part))]
            if len(chosen) == 1 and chosen[0].__class__ is str:
                out.append(chosen[0])
            elif chosen:
                _emit(chosen, random, env, out)
        else:
            text = env[part.name] if part.lines is None else say(part.lines, random, env)
            out.append(_MODIFIERS[part.modifier](text))


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
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DAYS = [name.title() for name in words.WEEKDAYS]
MONTHS = [name.title() for name in words.MONTHS]


def ordinal(n: int) -> str:
    """Write a day of the month: ``1st``, ``12th``, ``23rd``."""
    return f"{n}{'th' if 10 < n < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


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
    lag = (spoken_at.date() - event).days
    dated = f"{MONTHS[event.month - 1]} {event.day}"
    if since:
        options = {0: ("as of today", "since this morning"), 1: ("since yesterday",)}.get(lag)
        recent = f"since {_DAYS[event.weekday()]}" if lag < 7 else f"since {dated}"
        options = options or (recent, f"since the {ordinal(event.day)} of {MONTHS[event.month - 1]}")
    elif lag < 2:
        options = (("today", "earlier today", "today"), ("yesterday", "yesterday", "a day ago"))[lag]
    elif lag < 7:
        count = _WORDS[lag]
        options = (f"on {_DAYS[event.weekday()]}", f"{count} days ago", f"on the {ordinal(event.day)}")
    else:
        count = "a week ago today" if lag == 7 else f"{number_word(lag)} days ago"
        options = (f"on {dated}", count, f"on the {ordinal(event.day)} of {MONTHS[event.month - 1]}")
    return options[int(random() * len(options))]


def number_word(n: int) -> str:
    """Write a number up to twelve as a word."""
    return _WORDS[n] if n < len(_WORDS) else str(n)


def amount_phrase(value: int, unit: str, random: Random) -> str:
    """Say an amount with its unit; small counts as a word half of the time."""
    if unit == "money":
        return (f"${value}", f"${value}", f"{value} dollars", f"{value} bucks")[int(random() * 4)]
    if unit == "km":
        return (f"{value} km", f"{value} kilometres")[int(random() * 2)]
    return f"{number_word(value) if random() < 0.6 else value} {unit}"


def amount_answer(value: int, unit: str) -> str:
    """Write an amount as an answer does."""
    return f"${value}" if unit == "money" else f"{value} {unit}"


def _text(name: str) -> list[str]:
    path = files("memlab.datasets").joinpath("synthetic_text", f"{name}.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


def _rules() -> dict[str, list[tuple[Any, ...]]]:
    raw: dict[str, list[str]] = {}
    name = ""
    for line in _text("rules"):
        if line.startswith("= "):
            name = line[2:]
            raw[name] = []
        else:
            raw[name].append(line)
    rules: dict[str, list[tuple[Any, ...]]] = {name: [] for name in raw}
    for name, lines in raw.items():
        rules[name].extend(compile_line(line, rules) for line in lines)
    return rules


def _topics(rules: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[Thread]]:
    topics: dict[str, list[Thread]] = {}
    threads: list[Thread] = []
    for line in _text("talk"):
        mark, _, text = line.partition(" ")
        if mark == "==":
            threads = topics[text] = []
        elif mark == "=":
            threads.append(Thread(text, [], []))
        else:
            (threads[-1].asks if mark == "?" else threads[-1].tips).append(compile_line(text, rules))
    return topics


_SINGLE = ("topic", "unit", "label", "repeat", "hazard", "value", "trend", "format", "show", "a", "name", "ref")


def _entries(name: str, rules: dict[str, list[tuple[Any, ...]]]) -> list[Entry]:
    entries: list[Entry] = []
    for line in _text(name):
        if line.startswith("== "):
            kind, _, title = line[3:].rpartition(" ")
            entries.append(Entry(kind or "collection", title))
        elif line.startswith("- "):
            thing, ref, *mentions = line[2:].split(" ~ ")
            entries[-1].items.append(Item(thing, ref, [compile_line(m, rules) for m in mentions]))
        else:
            key, _, text = line.partition(": ")
            if key == "let":
                names = re.split(r"(?:^| )(\w+)=", text)[1:]
                pairs = zip(names[::2], names[1::2], strict=True)
                entries[-1].lets = [(n, [compile_line(v, rules)]) for n, v in pairs]
                continue
            if key in _SINGLE:
                entries[-1].values[key] = text
            text = f"[{text}]" if key == "value" else text
            for part in text.split(" ~~ ") if key == "split" else (text,):
                entries[-1].lines.setdefault(key, []).append(compile_line(part, rules))
    return entries


@cache
def language() -> Language:
    """Read and compile the text files, once."""
    rules = _rules()
    facts = _entries("facts", rules)
    kinds = {k: [e for e in facts if e.kind == k] for k in ("state", "detail", "reply", "taste")}
    return Language(rules, _topics(rules), _entries("collections", rules), *kinds.values())
