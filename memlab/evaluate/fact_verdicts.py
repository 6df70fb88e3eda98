"""What a fact is by the annotations of its chat: right, stale, wrong, a trap, or unlisted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from memlab.evaluate.fact_polarity import is_ahead, polarity
from memlab.evaluate.gold_entries import Entry
from memlab.evaluate.gold_facts import Annotations

Row = Mapping[str, Any]
"""A row of :class:`memlab.records.Fact`, resolved."""
_WORDS_OF_OTHERS = frozenset({"quote", "rumour"})
"""Traps into which a fact does not fall that is stated as words of others."""


class Verdict(NamedTuple):
    """What an active fact is.

    :param name: ``right``, ``stale``, ``trap``, ``wrong``, ``unlisted``, or ``neutral``, which
        counts neither way.
    :param entries: the active entries that it agrees with.
    """

    name: str
    entries: tuple[Entry, ...] = ()


@dataclass
class _Spoken:
    """The entries of a chat that a fact speaks of: their subject, relation and value.

    :param facts: all of kind ``fact`` that had been stated; ``agreeing``: those with its polarity;
        ``holding``: of these the active ones.
    """

    facts: list[Entry] = field(default_factory=list)
    agreeing: list[Entry] = field(default_factory=list)
    holding: list[Entry] = field(default_factory=list)


def judge_fact(gold: Annotations, row: Row, when: datetime | None = None) -> Verdict:
    """Say what an active fact is.

    :param when: as of when; ``None``: at the end.
    """
    spoken = _spoken_entries(gold, row, when)
    if _is_stale(row, spoken):
        return Verdict("stale")
    if spoken.holding:
        verdict_name = "right"
        if all(is_optional(entry, when) for entry in spoken.holding):
            verdict_name = "neutral"
        return Verdict(verdict_name, tuple(spoken.holding))
    cited_traps = _cited_entries(gold, row, "trap")
    matching_traps = [trap for trap in cited_traps if trap.matches_ignoring_polarity(row)]
    if any(falls_into(trap, row) for trap in matching_traps):
        return Verdict("trap")
    if _denies_what_holds(gold, row, spoken.facts, when):
        return Verdict("wrong")
    if spoken.facts or matching_traps or _is_harmless(gold, row):
        return Verdict("neutral")
    return Verdict("unlisted")


def falls_into(trap: Entry, row: Row) -> bool:
    """Whether a fact says what a trap says.

    Words of others may say what was quoted or rumoured, what is dated ahead what was planned, and
    an event what is past. What only the slot calls so is none: "Una | deputy head | Ben". An event
    is what its slot says: to view a flat is not to live in it.
    """
    if _is_spared(row, trap):
        return False
    if not trap.matches(row):
        return False
    return bool(trap.value_words(row))


def is_optional(entry: Entry, when: datetime | None) -> bool:
    """Whether an entry need not be known.

    That is what was over before it was stated, and on a date what was only said by mistake.
    """
    if entry.mode == "was":
        return True
    return entry.corrected and when is not None


def _spoken_entries(gold: Annotations, row: Row, when: datetime | None) -> _Spoken:
    """Find the entries that a fact speaks of, as of a time."""
    spoken = _Spoken()
    for entry in gold.of_kind("fact"):
        if not gold.stated(entry, when):
            continue
        if not entry.matches_ignoring_polarity(row):
            continue
        spoken.facts.append(entry)
        if not entry.matches(row):
            continue
        spoken.agreeing.append(entry)
        if gold.active(entry, when):
            spoken.holding.append(entry)
    return spoken


def _is_stale(row: Row, spoken: _Spoken) -> bool:
    """Whether a fact says of an entry that is over that it holds.

    What holds does not excuse what does not ("chemistry at the old school").
    """
    current_words: frozenset[str] = frozenset()
    for entry in spoken.holding:
        current_words |= entry.value_words(row)
    for entry in spoken.agreeing:
        if _stays_true(row, entry, spoken.holding):
            continue
        if not entry.value_words(row) <= current_words:
            return True
    return False


def _stays_true(row: Row, entry: Entry, holding: list[Entry]) -> bool:
    """Whether a fact may say what an entry says, by what holds.

    A plan beside what holds came about. An event stays true of what was so, but for what was only
    said by mistake.
    """
    if entry in holding:
        return True
    if entry.mode == "plan" and holding:
        return True
    return row["kind"] == "event" and not entry.corrected


def _is_spared(row: Row, trap: Entry) -> bool:
    """Whether a fact does not fall into a trap of this kind, by how it is stated."""
    if row["source"] == "reported" and trap.trap in _WORDS_OF_OTHERS:
        return True
    if trap.trap == "plan" and is_ahead(row):
        return True
    if row["kind"] != "event":
        return False
    return trap.trap == "past" or not trap.has_relation(row["slot"])


def _denies_what_holds(
    gold: Annotations, row: Row, facts: list[Entry], when: datetime | None
) -> bool:
    """Whether a fact denies entries that all are so at a time, none of them a denial or a plan."""
    if polarity(row) != "not":
        return False
    for entry in facts:
        if entry.mode != "is" or not gold.active(entry, when):
            return False
    return bool(facts)


def _is_harmless(gold: Annotations, row: Row) -> bool:
    """Whether a fact says what a neutral entry of its messages mentions, or only names somebody."""
    for entry in _cited_entries(gold, row, "neutral"):
        if entry.is_mentioned(row):
            return True
    return gold.only_names_person(row)


def _cited_entries(gold: Annotations, row: Row, kind: str) -> list[Entry]:
    """Give the entries of one kind that are in the messages of a fact."""
    return [entry for entry in gold.of_kind(kind) if entry.since in row["evidence"]]
