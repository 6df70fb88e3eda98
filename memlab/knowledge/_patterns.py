"""The patterns and the words of the rules that read messages, from ``reading.toml``."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

from memlab.language.people import PERSONS, PETS
from memlab.language.words import MONTHS, WEEKDAYS

_FILE = tomllib.loads(files("memlab.knowledge").joinpath("reading.toml").read_text(encoding="utf-8"))
W: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _FILE["words"].items()}
"""Lists of words by name."""
KIN = PERSONS | W["kin"]
PART: dict[str, str] = {
    "PET": "|".join(sorted(PETS)),
    "MONTH": "|".join(MONTHS),
    "DAY": "(?:" + "|".join(f"{day}s?" for day in WEEKDAYS) + "|weekends|weekdays)",
    "KINFOLK": "|".join(sorted(W["he"] | W["she"])),
}
"""Parts of patterns by name."""


def _whole(pattern: str) -> str:
    return re.sub(r"\{([A-Z_]+)\}", lambda match: PART[match[1]], pattern)


for _name, _part in _FILE["parts"].items():
    PART[_name] = _whole(_part)
P: dict[str, re.Pattern[str]] = {
    name: re.compile(_whole(pattern))
    for section in ("phrase", "attributes", "reading", "replies")
    for name, pattern in _FILE[section].items()
}
"""Patterns by name."""
CHANGES: dict[str, re.Pattern[str]] = {name: re.compile(pattern) for name, pattern in _FILE["changes"].items()}
"""What tells that a group of relations has changed."""
