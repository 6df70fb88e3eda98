"""Lists and tables of words by name; they stand in ``statements.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def data(name: str) -> dict[str, Any]:
    """Read ``NAME.toml`` of this folder."""
    return tomllib.loads(files("memlab.language").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def wordlist(name: str) -> frozenset[str]:
    """Give a list of words.

    >>> from memlab.language.statements import wordlist
    >>> "just" in wordlist("adverbs")
    True
    """
    return frozenset(entries(name))


def entries(name: str) -> tuple[str, ...]:
    """Give the entries of a list in their order; of a plain text, its words."""
    listed = data("statements")[name]
    return tuple(listed.split() if isinstance(listed, str) else listed)


def table(name: str) -> dict[str, str]:
    """Give a table of words.

    >>> from memlab.language.statements import table
    >>> table("name_endings")["person"]
    'jr sr'
    """
    return dict(data("statements")[name])
