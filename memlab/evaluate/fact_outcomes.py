"""What is counted of the facts of a chat: active facts, endings and traps, each right or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import polars as pl

from memlab.evaluate.fact_polarity import begins_after_day_of_statement, polarity_of_fact
from memlab.evaluate.fact_verdicts import fact_falls_into_trap, is_optional_to_know, judge_fact
from memlab.evaluate.gold_entries import GoldEntry
from memlab.evaluate.gold_facts import ChatAnnotations
from memlab.knowledge import Resolved, active_facts
from memlab.knowledge.known_facts import FactRow

_HELD = ("active", "due", "superseded", "ended", "repeat")
"""The status of what was taken for a fact at some time."""


class FactOutcome(NamedTuple):
    """One thing counted.

    :param hit: whether it is right; ``kind``: what is wrong with it, or of which kind it is.
    :param what: the fact or the entry in words.
    """

    measure: str
    hit: bool
    kind: str | None
    what: str


class _Invalidation(NamedTuple):
    """A fact that was ended, what ended it, and when that was both said and so.

    The time is ``None`` for what ended by its own date, which was said before.
    """

    old: FactRow
    new: FactRow | None
    known_at: datetime | None


def score_active_facts(
    gold: ChatAnnotations, resolved: Resolved, *, measure_prefix: str, as_of: datetime | None
) -> Iterator[FactOutcome]:
    """Count active facts by what they are, and active entries by whether a fact states them.

    :param measure_prefix: what the measures' names begin with.
    :param as_of: as of when; ``None``: at the end.
    """
    stated_groups: set[str] = set()
    for fact_row in active_facts(resolved, as_of=as_of).iter_rows(named=True):
        verdict = judge_fact(gold, fact_row, as_of)
        is_right = verdict.name == "right"
        if is_right:
            stated_groups |= _equivalence_group_ids_of_entries(verdict.entries)
        if verdict.name != "neutral":
            yield FactOutcome(
                f"{measure_prefix} precision", is_right, verdict.name, format_fact(fact_row)
            )
    active_entries = [
        entry for entry in gold.entries_of_kind("fact") if gold.is_active_at(entry, as_of)
    ]
    needed_entries = [entry for entry in active_entries if not is_optional_to_know(entry, as_of)]
    yield from _score_recall_by_entry_group(
        f"{measure_prefix} recall", needed_entries, stated_groups
    )


def score_invalidations(gold: ChatAnnotations, final_facts: Resolved) -> Iterator[FactOutcome]:
    """Count what was ended by whether it is over, and what is over by whether it was ended."""
    ended_entries = [entry for entry in gold.entries_of_kind("fact") if entry.until]
    stated_groups: set[str] = set()
    for invalidation in _iter_invalidations(final_facts):
        ended_here = [
            entry
            for entry in ended_entries
            if _does_invalidation_end_entry(gold, entry, invalidation)
        ]
        stated_groups |= _equivalence_group_ids_of_entries(ended_here)
        error_kind = None
        if not ended_here:
            error_kind = judge_fact(gold, invalidation.old).name
        if error_kind not in ("neutral", "trap"):
            fact_line = _append_source_fact_if_any(format_fact(invalidation.old), invalidation.new)
            yield FactOutcome("invalidation precision", bool(ended_here), error_kind, fact_line)
    stated_groups |= _group_ids_of_elapsed_plans(ended_entries, final_facts)
    yield from _score_recall_by_entry_group("invalidation recall", ended_entries, stated_groups)


def score_traps_avoided(gold: ChatAnnotations, final_facts: Resolved) -> Iterator[FactOutcome]:
    """Count traps by whether no fact from their message says them."""
    held_facts = final_facts.facts.filter(pl.col("status").is_in(_HELD)).to_dicts()
    for trap in gold.entries_of_kind("trap"):
        citing_facts = [fact_row for fact_row in held_facts if trap.since in fact_row["evidence"]]
        falling_fact = next(
            (fact_row for fact_row in citing_facts if fact_falls_into_trap(trap, fact_row)), None
        )
        trap_line = _append_source_fact_if_any(_format_entry(trap), falling_fact)
        yield FactOutcome("traps avoided", falling_fact is None, trap.trap, trap_line)


def format_fact(fact_row: FactRow) -> str:
    """Write a fact down, with its kind and what it denies where that is not plain."""
    fact_marks = []
    if fact_row["kind"] != "state":
        fact_marks.append(fact_row["kind"])
    if not fact_row["holds"]:
        fact_marks.append("not so")
    fact_line = f"{fact_row['about']} | {fact_row['slot']} | {fact_row['value']}"
    if fact_marks:
        fact_line += f" ({', '.join(fact_marks)})"
    return fact_line


def _iter_invalidations(final_facts: Resolved) -> Iterator[_Invalidation]:
    """Give each fact that was ended by another or by its own date."""
    facts_by_id = {
        fact_row["fact_id"]: fact_row for fact_row in final_facts.facts.iter_rows(named=True)
    }
    for log_row in final_facts.log.iter_rows(named=True):
        known_times = filter(None, (log_row["at"], log_row["recorded_at"]))
        yield _Invalidation(
            facts_by_id[log_row["old"]],
            facts_by_id.get(log_row["new"]),
            max(known_times, default=None),
        )
    closed_ids = set(final_facts.log["old"])
    for fact_id, fact_row in facts_by_id.items():
        if fact_row["status"] != "ended" or fact_id in closed_ids:
            continue
        # What was over when it was said was never active.
        if polarity_of_fact(fact_row) != "was":
            yield _Invalidation(fact_row, None, None)


def _does_invalidation_end_entry(
    gold: ChatAnnotations, entry: GoldEntry, invalidation: _Invalidation
) -> bool:
    """Whether a fact that was ended states an entry that has ended.

    That must have been known at most a day before the chat says so; of a correction, whenever.
    """
    if invalidation.known_at is not None and not entry.corrected:
        stated_at = gold.times[str(entry.until)]
        if invalidation.known_at < stated_at - timedelta(days=1):
            return False
    return entry.matches_with_polarity(invalidation.old)


def _group_ids_of_elapsed_plans(ended_entries: list[GoldEntry], final_facts: Resolved) -> set[str]:
    """Give the plans that are over since what was read as beginning on a later day has come."""
    plan_entries = [entry for entry in ended_entries if entry.mode == "plan"]
    stated_groups: set[str] = set()
    for fact_row in final_facts.facts.iter_rows(named=True):
        if fact_row["kind"] == "plan" or fact_row["status"] == "upcoming":
            continue
        if begins_after_day_of_statement(fact_row):
            stated_groups |= _equivalence_group_ids_of_entries(
                entry for entry in plan_entries if entry.matches_with_polarity(fact_row)
            )
    return stated_groups


def _score_recall_by_entry_group(
    measure_name: str, entries: list[GoldEntry], stated_group_ids: set[str]
) -> Iterator[FactOutcome]:
    """Count entries that say the same of several subjects once, by the one that others refer to.

    :param stated_group_ids: the groups of which an entry is stated.
    """
    entries_by_group: dict[str, GoldEntry] = {}
    for entry in entries:
        if entry.same is not None:
            entries_by_group.setdefault(entry.same, entry)
    for entry in entries:
        if entry.same is None:
            entries_by_group[entry.id] = entry
    for group, entry in entries_by_group.items():
        yield FactOutcome(measure_name, group in stated_group_ids, entry.mode, _format_entry(entry))


def _equivalence_group_ids_of_entries(entries: Iterable[GoldEntry]) -> set[str]:
    return {entry.equivalence_group_id for entry in entries}


def _append_source_fact_if_any(line: str, fact_row: FactRow | None) -> str:
    """Write a line with the fact that it comes from, where there is one."""
    if fact_row is None:
        return line
    return f"{line} <- {format_fact(fact_row)}"


def _format_entry(entry: GoldEntry) -> str:
    """Write an entry down, with its mode where that is not plain."""
    entry_line = f"{entry.id}: {entry.subject}, "
    if entry.about:
        entry_line += entry.about[0]
    if entry.mode != "is":
        entry_line += f" ({entry.mode})"
    return f"{entry_line}: {entry.value[0]}"
