"""How a row is stated: as what is so, was so or is planned, or as a denial."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memlab.text.closed_word_classes import NEGATIONS
from memlab.text.tokens_and_sentences import words
from memlab.text.verb_lemmas import normalize_negations, strip_contrast


def polarity(fact: Mapping[str, Any]) -> str:
    """Say how a row is stated.

    ``not``: it is denied, its value begins with a denial ("none", "no dog"), or it is an event that
    only tells what was cancelled. ``plan``. ``was``: it was over when it was said (``until``), or
    is an event that ends something: what is so from then on has a row of its own. ``event``: any
    other one; it supports what is and what was so. Else ``is``.

    :param fact: a row of :class:`memlab.records.Fact`, at least ``value``.

    >>> from memlab.evaluate.fact_polarity import polarity
    >>> from datetime import datetime
    >>> said = datetime(2026, 3, 14)
    >>> job = {"about": "Ann", "slot": "employer", "value": "Acme", "asserted_at": said}
    >>> polarity(job), polarity(job | {"until": "2026-02"}), polarity(job | {"until": "2026-03"})
    ('is', 'was', 'is')
    """
    fact_kind = fact.get("kind")
    if denies(fact):
        return "not"
    if fact_kind == "plan":
        return "plan"
    if _is_over(fact.get("until"), fact.get("asserted_at")):
        return "was"
    if fact_kind != "event":
        return "is"
    if _has_effect(fact, "cancelled"):
        return "not"
    if _has_effect(fact, "ends"):
        return "was"
    return "event"


def denies(fact: Mapping[str, Any]) -> bool:
    """Whether a row is a denial, by what it holds or by how its value begins."""
    if fact.get("holds") is False:
        return True
    plain_value = strip_contrast(str(fact["value"]))
    first_word = words(normalize_negations(plain_value))[:1]
    return not NEGATIONS.isdisjoint(first_word)


def ends_something(fact: Mapping[str, Any]) -> bool:
    """Whether a row is an event that ends or cancels something."""
    return _has_effect(fact, "ends") or _has_effect(fact, "cancelled")


def is_ahead(fact: Mapping[str, Any]) -> bool:
    """Whether what a row states begins on a later day than that on which it was said."""
    since_date = fact.get("since")
    asserted_at = fact.get("asserted_at")
    if not since_date or asserted_at is None:
        return False
    return str(since_date) > _date_of(asserted_at, digits=len(since_date))


def is_denial(wording: str) -> bool:
    """Whether a wording of a value has a word of denial: "no bullet points", "none"."""
    return not NEGATIONS.isdisjoint(words(normalize_negations(wording)))


def without_denial(wording: str) -> str:
    """Give a wording without its words of denial, or as it is where it has no other."""
    wording_words = words(normalize_negations(wording))
    other_words = [word for word in wording_words if word not in NEGATIONS]
    if not other_words:
        return wording
    return " ".join(other_words)


def _has_effect(fact: Mapping[str, Any], effect: str) -> bool:
    """Whether a row is an event with an effect."""
    if fact.get("kind") != "event":
        return False
    return effect in (fact.get("effects") or ())


def _is_over(until: str | None, asserted_at: datetime | None) -> bool:
    """Whether a last day, month or year lies before a time; not where either is unknown."""
    if not until or asserted_at is None:
        return False
    return until < _date_of(asserted_at, digits=len(until))


def _date_of(moment: datetime, *, digits: int) -> str:
    """Give the date of a time in ISO 8601, cut to the length of another one of less precision."""
    return moment.date().isoformat()[:digits]
