"""Common verbs, their forms and bases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from memlab.language.words import BE, DO, HAVE, lists


class Form(NamedTuple):
    """A form of a verb, with its base."""

    base: str


@cache
def forms() -> dict[str, Form]:
    """Give every form of the known verbs; one that two verbs share ("found") belongs to the first.

    >>> from memlab.language.verbs import forms
    >>> [forms()[word].base for word in ("bought", "teaches", "studied", "driving")]
    ['buy', 'teach', 'study', 'drive']
    """
    table: dict[str, Form] = {}
    for entry in lists()["verbs"].split():
        for word in _conjugated(*entry.split(":")):
            table.setdefault(word, Form(entry.split(":")[0]))
    return table


def base(word: str) -> str:
    """Give the base of a verb form, auxiliaries too; any other word itself.

    >>> from memlab.language.verbs import base
    >>> base("sold"), base("were"), base("tea")
    ('sell', 'be', 'tea')
    """
    for auxiliary, own in (("be", BE | {"'m", "'re"}), ("have", HAVE), ("do", DO), ("keep", {"kept", "keeps"})):
        if word in own:
            return auxiliary
    known = forms().get(word)
    return known.base if known else word


def _conjugated(base: str, past: str = "", participle: str = "", ing: str = "") -> Iterator[str]:
    """Give the forms of a verb: base, third person, past, participle and -ing."""
    consonant_y = base.endswith("y") and base[-2:-1] not in "aeiou"
    stem = base[:-1] + "ie" if consonant_y else base
    past = past or stem + ("d" if stem.endswith("e") else "ed")
    third = "has" if base == "have" else stem + ("es" if base.endswith(("s", "x", "ch", "sh", "o")) else "s")
    yield from (base, third, past, participle or past)
    yield ing or (base[:-1] if base.endswith("e") else base) + "ing"
