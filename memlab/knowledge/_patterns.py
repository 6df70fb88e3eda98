"""The patterns and the words of the rules that read messages, from ``reading.toml``."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import NamedTuple

from memlab.language.people import PERSONS, PETS
from memlab.language.words import MONTHS, WEEKDAYS

_FILE = tomllib.loads(files("memlab.knowledge").joinpath("reading.toml").read_text(encoding="utf-8"))
W: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _FILE["words"].items()}
"""Lists of words by name."""
KIN = PERSONS | W["kin"]
_PARTS: dict[str, str] = {
    name.upper(): "|".join(sorted(words, key=lambda word: (-len(word), word)))
    for name, words in {
        **W,
        "kin": KIN,
        "pet": PETS,
        "month": MONTHS,
        "weekday": WEEKDAYS,
        "kinfolk": W["he"] | W["she"],
    }.items()
} | {"DAY": "(?:" + "|".join(f"{day}s?" for day in WEEKDAYS) + "|weekends|weekdays)"}


def whole(pattern: str) -> str:
    """Write the parts of a pattern out: a list of words or a row of ``[parts]`` by its name in capitals."""
    return re.sub(r"\{([A-Z_]+)\}", lambda match: _PARTS[match[1]], pattern)


for _name, _part in _FILE["parts"].items():
    _PARTS[_name] = whole(_part)
P: dict[str, re.Pattern[str]] = {
    name: re.compile(whole(pattern))
    for section in ("phrase", "attributes", "reading", "discourse", "replies")
    for name, pattern in _FILE[section].items()
}
"""Patterns by name."""


class Form(NamedTuple):
    """A wording of a whole clause, and the statement that it makes; the groups of the pattern stand in it by name."""

    read: re.Pattern[str]
    subject: str
    predicate: str
    object: str


def _forms(kind: str) -> tuple[Form, ...]:
    return tuple(
        Form(re.compile(whole(row["read"])), *(row.get(part, usual) for part, usual in _USUAL.items()))
        for row in _FILE[kind]
    )


_USUAL = {"subject": "{me}", "predicate": "is", "object": "{value}"}
SENTENCES, CLAUSES = _forms("sentence"), _forms("clause")
