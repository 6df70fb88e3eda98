"""Common verbs, their forms and bases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from memlab.language.words import BE, DO, HAVE, lists


@cache
def forms() -> dict[str, str]:
    """Give every form of the known verbs with its base; one that two verbs share ("found") belongs to the first.

    >>> from memlab.language.verbs import forms
    >>> [forms()[word] for word in ("bought", "teaches", "studied", "driving")]
    ['buy', 'teach', 'study', 'drive']
    """
    table: dict[str, str] = {}
    for entry in lists()["verbs"].split():
        for word in _conjugated(*entry.split(":")):
            table.setdefault(word, entry.split(":")[0])
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
    return forms().get(word, word)


def third(base: str) -> str:
    """Put a verb into the third person.

    >>> from memlab.language.verbs import third
    >>> third("teach"), third("study"), third("play"), third("have")
    ('teaches', 'studies', 'plays', 'has')
    """
    return "has" if base == "have" else _stem(base) + ("es" if base.endswith(("s", "x", "ch", "sh", "o")) else "s")


def infinitive(verb: str) -> str:
    """Give the infinitive of a verb in the third person.

    >>> from memlab.language.verbs import infinitive
    >>> infinitive("teaches"), infinitive("studies"), infinitive("keeps"), infinitive("is")
    ('teach', 'study', 'keep', 'be')
    """
    guesses = (verb[:-3] + "y", verb[:-2], verb[:-1])
    known = base(verb)
    return known if known != verb else next((guess for guess in guesses if guess and third(guess) == verb), verb)


def _stem(base: str) -> str:
    return base[:-1] + "ie" if base.endswith("y") and base[-2:-1] not in "aeiou" else base


def _conjugated(base: str, past: str = "", participle: str = "", ing: str = "") -> Iterator[str]:
    """Give the forms of a verb: base, third person, past, participle and -ing."""
    past = past or _stem(base) + ("d" if _stem(base).endswith("e") else "ed")
    yield from (base, third(base), past, participle or past)
    yield ing or (base[:-1] if base.endswith("e") else base) + "ing"
