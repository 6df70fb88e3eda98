"""What a fact is by the annotations of its chat: right, stale, wrong, a trap, or unlisted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from memlab.evaluate.fact_polarity import begins_after_day_of_statement, polarity_of_fact
from memlab.evaluate.gold_entries import GoldEntry
from memlab.evaluate.gold_facts import ChatAnnotations
from memlab.knowledge.known_facts import FactRow

_WORDS_OF_OTHERS = frozenset({"quote", "rumour"})
"""Traps into which a fact does not fall that is stated as words of others."""


class Verdict(NamedTuple):
    """What an active fact is.

    :param name: ``right``, ``stale``, ``trap``, ``wrong``, ``unlisted``, or ``neutral``, which
        counts neither way.
    :param entries: the active entries that it agrees with.
    """

    name: str
    entries: tuple[GoldEntry, ...] = ()


@dataclass
class _SpokenEntries:
    """The entries of a chat that a fact speaks of: their subject, relation and value.

    :param facts: all of kind ``fact`` that had been stated; ``agreeing``: those with its polarity;
        ``holding``: of these the active ones.
    """

    facts: list[GoldEntry] = field(default_factory=list)
    agreeing: list[GoldEntry] = field(default_factory=list)
    holding: list[GoldEntry] = field(default_factory=list)


def judge_fact(gold: ChatAnnotations, fact_row: FactRow, as_of: datetime | None = None) -> Verdict:
    """Say what an active fact is.

    :param as_of: as of when; ``None``: at the end.
    """
    spoken = _entries_fact_speaks_of(gold, fact_row, as_of)
    if _is_stale_fact(fact_row, spoken):
        return Verdict("stale")
    if spoken.holding:
        verdict_name = "right"
        if all(is_optional_to_know(entry, as_of) for entry in spoken.holding):
            verdict_name = "neutral"
        return Verdict(verdict_name, tuple(spoken.holding))
    cited_traps = _entries_of_kind_in_cited_turns(gold, fact_row, "trap")
    matching_traps = [trap for trap in cited_traps if trap.matches_ignoring_polarity(fact_row)]
    if any(fact_falls_into_trap(trap, fact_row) for trap in matching_traps):
        return Verdict("trap")
    if _denies_only_active_entries(gold, fact_row, spoken.facts, as_of):
        return Verdict("wrong")
    if spoken.facts or matching_traps or _is_neutral_entry_or_only_names_person(gold, fact_row):
        return Verdict("neutral")
    return Verdict("unlisted")


def fact_falls_into_trap(trap: GoldEntry, fact_row: FactRow) -> bool:
    """Whether a fact says what a trap says.

    Words of others may say what was quoted or rumoured, what is dated ahead what was planned, and
    an event what is past. What only the slot calls so is none: "Una | deputy head | Ben". An event
    is what its slot says: to view a flat is not to live in it.
    """
    if _is_excused_from_trap_of_its_kind(fact_row, trap):
        return False
    if not trap.matches_with_polarity(fact_row):
        return False
    return bool(trap.value_stems_stated_by(fact_row))


def is_optional_to_know(entry: GoldEntry, as_of: datetime | None) -> bool:
    """Whether an entry need not be known.

    That is what was over before it was stated, and on a date what was only said by mistake.
    """
    if entry.mode == "was":
        return True
    return entry.corrected and as_of is not None


def _entries_fact_speaks_of(
    gold: ChatAnnotations, fact_row: FactRow, as_of: datetime | None
) -> _SpokenEntries:
    """Find the entries that a fact speaks of, as of a time."""
    spoken = _SpokenEntries()
    for entry in gold.entries_of_kind("fact"):
        if not gold.was_entry_stated_until(entry, as_of):
            continue
        if not entry.matches_ignoring_polarity(fact_row):
            continue
        spoken.facts.append(entry)
        if not entry.matches_with_polarity(fact_row):
            continue
        spoken.agreeing.append(entry)
        if gold.is_active_at(entry, as_of):
            spoken.holding.append(entry)
    return spoken


def _is_stale_fact(fact_row: FactRow, spoken: _SpokenEntries) -> bool:
    """Whether a fact says of an entry that is over that it holds.

    What holds does not excuse what does not ("chemistry at the old school").
    """
    current_words: frozenset[str] = frozenset()
    for entry in spoken.holding:
        current_words |= entry.value_stems_stated_by(fact_row)
    for entry in spoken.agreeing:
        if _may_still_state_entry(fact_row, entry, spoken.holding):
            continue
        if not entry.value_stems_stated_by(fact_row) <= current_words:
            return True
    return False


def _may_still_state_entry(
    fact_row: FactRow, entry: GoldEntry, active_entries: list[GoldEntry]
) -> bool:
    """Whether a fact may say what an entry says, by what holds.

    A plan beside what holds came about. An event stays true of what was so, but for what was only
    said by mistake.
    """
    if entry in active_entries:
        return True
    if entry.mode == "plan" and active_entries:
        return True
    return fact_row["kind"] == "event" and not entry.corrected


def _is_excused_from_trap_of_its_kind(fact_row: FactRow, trap: GoldEntry) -> bool:
    """Whether a fact does not fall into a trap of this kind, by how it is stated."""
    if fact_row["source"] == "reported" and trap.trap in _WORDS_OF_OTHERS:
        return True
    if trap.trap == "plan" and begins_after_day_of_statement(fact_row):
        return True
    if fact_row["kind"] != "event":
        return False
    return trap.trap == "past" or not trap.is_slot_within_relation(fact_row["slot"])


def _denies_only_active_entries(
    gold: ChatAnnotations, fact_row: FactRow, entries: list[GoldEntry], as_of: datetime | None
) -> bool:
    """Whether a fact denies entries that all are so at a time, none of them a denial or a plan."""
    if polarity_of_fact(fact_row) != "not":
        return False
    for entry in entries:
        if entry.mode != "is" or not gold.is_active_at(entry, as_of):
            return False
    return bool(entries)


def _is_neutral_entry_or_only_names_person(gold: ChatAnnotations, fact_row: FactRow) -> bool:
    """Whether a fact says what a neutral entry of its messages mentions, or only names somebody."""
    for entry in _entries_of_kind_in_cited_turns(gold, fact_row, "neutral"):
        if entry.subject_and_value_occur_in(fact_row):
            return True
    return gold.fact_only_names_person(fact_row)


def _entries_of_kind_in_cited_turns(
    gold: ChatAnnotations, fact_row: FactRow, entry_kind: str
) -> list[GoldEntry]:
    """Give the entries of one kind that are in the messages of a fact."""
    return [
        entry for entry in gold.entries_of_kind(entry_kind) if entry.since in fact_row["evidence"]
    ]
