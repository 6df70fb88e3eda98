"""The words of the simulated facts, from ``simulated.toml``."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple


class Relation(NamedTuple):
    """A relation: its wordings, and its values, each a list of wordings, or the name of a kind of value to draw.

    ``trap`` names what a resolver may fall for.
    """

    name: str
    one: bool
    trap: str
    wordings: tuple[str, ...]
    values: list[list[str]] | str


def _relation(row: dict[str, Any]) -> Relation:
    values = row["values"]
    listed = values if isinstance(values, str) else [value.split(" = ") for value in values]
    return Relation(row["name"], row["one"], row["trap"], tuple(row["wordings"]), listed)


_WORDS = tomllib.loads(files("memlab.knowledge").joinpath("simulated.toml").read_text(encoding="utf-8"))
PEOPLE: dict[str, list[str]] = _WORDS["people"]
VOCABULARIES = {name: [_relation(row) for row in _WORDS[name]] for name in PEOPLE}
