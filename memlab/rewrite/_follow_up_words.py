"""How people ask on: openings that name a thing, and the same questions with the thing left out."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple


class Talk(NamedTuple):
    """How one kind of synthetic event is asked about.

    :param opens: asks whether it happened, by name.
    :param lists: asks for all of them.
    :param amount: asks for its amount; ``{x}`` is the thing, or what stands for it.
    :param when: asks for its day.
    :param article: before its name.
    :param place: the preposition of a thing that one is *at* or *in*.
    :param pronoun: what stands for it.
    """

    opens: str
    lists: str
    when: str
    amount: str = ""
    article: str = "the "
    place: str = ""
    pronoun: str = "it"

    def named(self, name: str) -> str:
        """Give the thing by its name."""
        return f"{self.place}{self.article}{name}"

    def pointed(self, words: str) -> str:
        """Give the thing by words that point at it."""
        return f"{self.place}{words}"


_DATA: dict[str, Any] = tomllib.loads(files("memlab.rewrite").joinpath("follow_ups.toml").read_text(encoding="utf-8"))
EVENTS = {name: Talk(**fields) for name, fields in _DATA["events"].items()}
"""By predicate of :func:`memlab.datasets.synthetic.facts`."""
AMOUNTS: dict[str, list[str]] = _DATA["amounts"]
STATES: dict[str, list[str]] = _DATA["states"]
PEOPLE = {who: pronoun for pronoun, persons in _DATA["people"].items() for who in persons.split()}
WHENS, OTHERS, ORDINALS, SAME, BEFORES, YES = (
    _DATA[name] for name in ("whens", "others", "ordinals", "same", "befores", "yes")
)
