"""Common verbs and their forms."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from memlab.language.statements import entries


class Form(NamedTuple):
    """A verb form: its base, its tense (``present``, ``past``, ``participle``, ``ing``), whether it lasts."""

    base: str
    tense: frozenset[str]
    state: bool


@cache
def forms() -> dict[str, Form]:
    """Give every form of the known verbs.

    >>> from memlab.language.verbs import forms
    >>> forms()["bought"].base, sorted(forms()["bought"].tense), forms()["teaches"].state
    ('buy', ['participle', 'past'], True)
    """
    table: dict[str, Form] = {}
    lasting = entries("state_verbs")
    states = {entry.split(":")[0] for entry in lasting}
    for entry in (*lasting, *entries("event_verbs")):
        base, tenses = conjugated(entry)
        for word in tenses.values():
            # "read" is present and past; "found" belongs to "find".
            if word not in table or table[word].base == base:
                fitting = frozenset(tense for tense, form in tenses.items() if form == word)
                table[word] = Form(base, fitting, base in states)
    return table


def conjugated(entry: str) -> tuple[str, dict[str, str]]:
    """Give the base of a verb and its form in each tense; an entry names the irregular past, participle and -ing.

    >>> from memlab.language.verbs import conjugated
    >>> conjugated("put:put:put:putting")[1]["ing"], conjugated("park")[1]["past"]
    ('putting', 'parked')
    """
    base, *irregular = entry.split(":")
    past = irregular[0] if irregular else _past(base)
    participle = irregular[1] if len(irregular) > 1 else past
    ing = irregular[2] if len(irregular) > 2 else (base[:-1] if base.endswith("e") else base) + "ing"
    return base, {"present": base, "third": third(base), "past": past, "participle": participle, "ing": ing}


def third(base: str) -> str:
    """Put a verb into the third person.

    >>> from memlab.language.verbs import third
    >>> third("teach"), third("study"), third("play"), third("have")
    ('teaches', 'studies', 'plays', 'has')
    """
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "ch", "sh", "o")) else "s")


def infinitive(verb: str) -> str:
    """Give the infinitive of a verb in the third person.

    >>> from memlab.language.verbs import infinitive
    >>> infinitive("teaches"), infinitive("studies"), infinitive("keeps"), infinitive("is")
    ('teach', 'study', 'keep', 'be')
    """
    if verb in ("is", "has", "does"):
        return {"is": "be", "has": "have", "does": "do"}[verb]
    known = forms().get(verb)
    guesses = (verb[:-3] + "y", verb[:-2], verb[:-1])
    return known.base if known else next((guess for guess in guesses if guess and third(guess) == verb), verb)


def _past(base: str) -> str:
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return base[:-1] + "ied"
    return base + ("d" if base.endswith("e") else "ed")
