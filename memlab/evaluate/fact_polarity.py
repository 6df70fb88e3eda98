"""How a row is stated: as what is so, was so or is planned, or as a denial."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from memlab.knowledge.known_facts import FactRow
from memlab.text.closed_word_classes import NEGATIONS
from memlab.text.tokens_and_sentences import words
from memlab.text.verb_lemmas import normalize_negations, strip_denied_part_of_contrast

Polarity = Literal["is", "not", "plan", "was", "event"]


def polarity_of_fact(fact: FactRow) -> Polarity:
    """Say how a row is stated.

    ``not``: it is denied, its value begins with a denial ("none", "no dog"), or it is an event that
    only tells what was cancelled. ``plan``. ``was``: it was over when it was said (``until``), or
    is an event that ends something: what is so from then on has a row of its own. ``event``: any
    other one; it supports what is and what was so. Else ``is``.

    :param fact: a row of :class:`memlab.records.Fact`, at least ``value``.

    >>> from memlab.evaluate.fact_polarity import polarity_of_fact
    >>> from datetime import datetime
    >>> said = datetime(2026, 3, 14)
    >>> job = {"about": "Ann", "slot": "employer", "value": "Acme", "asserted_at": said}
    >>> polarity_of_fact(job)
    'is'
    >>> polarity_of_fact(job | {"until": "2026-02"}), polarity_of_fact(job | {"until": "2026-03"})
    ('was', 'is')
    """
    fact_kind = fact.get("kind")
    if is_denied_fact(fact):
        return "not"
    if fact_kind == "plan":
        return "plan"
    if _ended_before_statement(fact.get("until"), fact.get("asserted_at")):
        return "was"
    if fact_kind != "event":
        return "is"
    if _is_event_with_effect(fact, "cancelled"):
        return "not"
    if _is_event_with_effect(fact, "ends"):
        return "was"
    return "event"


def is_denied_fact(fact: FactRow) -> bool:
    """Whether a row is a denial, by what it holds or by how its value begins."""
    if fact.get("holds") is False:
        return True
    plain_value = strip_denied_part_of_contrast(str(fact["value"]))
    first_word = words(normalize_negations(plain_value))[:1]
    return not NEGATIONS.isdisjoint(first_word)


def is_ending_or_cancelling_event(fact: FactRow) -> bool:
    """Whether a row is an event that ends or cancels something."""
    return _is_event_with_effect(fact, "ends") or _is_event_with_effect(fact, "cancelled")


def begins_after_day_of_statement(fact: FactRow) -> bool:
    """Whether what a row states begins on a later day than that on which it was said."""
    since_date = fact.get("since")
    asserted_at = fact.get("asserted_at")
    if not since_date or asserted_at is None:
        return False
    return str(since_date) > _iso_date_prefix(asserted_at, n_characters=len(since_date))


def contains_negation(wording: str) -> bool:
    """Whether a wording of a value has a word of denial: "no bullet points", "none"."""
    return not NEGATIONS.isdisjoint(words(normalize_negations(wording)))


def remove_negations_unless_all(wording: str) -> str:
    """Give a wording without its words of denial, or as it is where it has no other."""
    wording_words = words(normalize_negations(wording))
    other_words = [word for word in wording_words if word not in NEGATIONS]
    if not other_words:
        return wording
    return " ".join(other_words)


def _is_event_with_effect(fact: FactRow, effect: str) -> bool:
    """Whether a row is an event with an effect."""
    if fact.get("kind") != "event":
        return False
    return effect in (fact.get("effects") or ())


def _ended_before_statement(last_date: str | None, asserted_at: datetime | None) -> bool:
    """Whether a last day, month or year lies before a time; not where either is unknown."""
    if not last_date or asserted_at is None:
        return False
    return last_date < _iso_date_prefix(asserted_at, n_characters=len(last_date))


def _iso_date_prefix(moment: datetime, *, n_characters: int) -> str:
    """Give the date of a time in ISO 8601, cut to the length of another one of less precision."""
    return moment.date().isoformat()[:n_characters]
