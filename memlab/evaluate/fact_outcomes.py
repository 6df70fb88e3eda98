"""What is counted of the facts of a chat: active facts, endings and traps, each right or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import polars as pl

from memlab.evaluate.fact_polarity import is_ahead, polarity
from memlab.evaluate.fact_verdicts import Row, falls_into, is_optional, judge_fact
from memlab.evaluate.gold_entries import Entry
from memlab.evaluate.gold_facts import Annotations
from memlab.knowledge import Resolved, active_facts

_HELD = ("active", "due", "superseded", "ended", "repeat")
"""The status of what was taken for a fact at some time."""


class Outcome(NamedTuple):
    """One thing counted.

    :param hit: whether it is right; ``kind``: what is wrong with it, or of which kind it is.
    :param what: the fact or the entry in words.
    """

    measure: str
    hit: bool
    kind: str | None
    what: str


class _Closing(NamedTuple):
    """A fact that was ended, what ended it, and when that was both said and so.

    The time is ``None`` for what ended by its own date, which was said before.
    """

    old: Row
    new: Row | None
    known_at: datetime | None


def active_outcomes(
    gold: Annotations, known: Resolved, *, name: str, when: datetime | None
) -> Iterator[Outcome]:
    """Count active facts by what they are, and active entries by whether a fact states them.

    :param name: what the measures' names begin with.
    :param when: as of when; ``None``: at the end.
    """
    stated_groups: set[str] = set()
    for row in active_facts(known, as_of=when).iter_rows(named=True):
        verdict = judge_fact(gold, row, when)
        is_right = verdict.name == "right"
        if is_right:
            stated_groups |= _groups(verdict.entries)
        if verdict.name != "neutral":
            yield Outcome(f"{name} precision", is_right, verdict.name, fact_text(row))
    active_entries = [entry for entry in gold.of_kind("fact") if gold.active(entry, when)]
    needed_entries = [entry for entry in active_entries if not is_optional(entry, when)]
    yield from _recall_outcomes(f"{name} recall", needed_entries, stated_groups)


def closing_outcomes(gold: Annotations, end: Resolved) -> Iterator[Outcome]:
    """Count what was ended by whether it is over, and what is over by whether it was ended."""
    ended_entries = [entry for entry in gold.of_kind("fact") if entry.until]
    stated_groups: set[str] = set()
    for closing in _closings(end):
        ended_here = [entry for entry in ended_entries if _is_ended_by(gold, entry, closing)]
        stated_groups |= _groups(ended_here)
        error_kind = None
        if not ended_here:
            error_kind = judge_fact(gold, closing.old).name
        if error_kind not in ("neutral", "trap"):
            fact_line = _line_from(fact_text(closing.old), closing.new)
            yield Outcome("invalidation precision", bool(ended_here), error_kind, fact_line)
    stated_groups |= _plans_past(ended_entries, end)
    yield from _recall_outcomes("invalidation recall", ended_entries, stated_groups)


def trap_outcomes(gold: Annotations, end: Resolved) -> Iterator[Outcome]:
    """Count traps by whether no fact from their message says them."""
    held_facts = end.facts.filter(pl.col("status").is_in(_HELD)).to_dicts()
    for trap in gold.of_kind("trap"):
        citing_facts = [row for row in held_facts if trap.since in row["evidence"]]
        falling_fact = next((row for row in citing_facts if falls_into(trap, row)), None)
        trap_line = _line_from(_entry_text(trap), falling_fact)
        yield Outcome("traps avoided", falling_fact is None, trap.trap, trap_line)


def fact_text(row: Row) -> str:
    """Write a fact down, with its kind and what it denies where that is not plain."""
    fact_marks = []
    if row["kind"] != "state":
        fact_marks.append(row["kind"])
    if not row["holds"]:
        fact_marks.append("not so")
    fact_line = f"{row['about']} | {row['slot']} | {row['value']}"
    if fact_marks:
        fact_line += f" ({', '.join(fact_marks)})"
    return fact_line


def _closings(end: Resolved) -> Iterator[_Closing]:
    """Give each fact that was ended by another or by its own date."""
    facts_by_id = {row["fact_id"]: row for row in end.facts.iter_rows(named=True)}
    for log_row in end.log.iter_rows(named=True):
        known_times = filter(None, (log_row["at"], log_row["recorded_at"]))
        yield _Closing(
            facts_by_id[log_row["old"]],
            facts_by_id.get(log_row["new"]),
            max(known_times, default=None),
        )
    closed_ids = set(end.log["old"])
    for fact_id, row in facts_by_id.items():
        if row["status"] != "ended" or fact_id in closed_ids:
            continue
        # What was over when it was said was never active.
        if polarity(row) != "was":
            yield _Closing(row, None, None)


def _is_ended_by(gold: Annotations, entry: Entry, closing: _Closing) -> bool:
    """Whether a fact that was ended states an entry that has ended.

    That must have been known at most a day before the chat says so; of a correction, whenever.
    """
    if closing.known_at is not None and not entry.corrected:
        stated_at = gold.times[str(entry.until)]
        if closing.known_at < stated_at - timedelta(days=1):
            return False
    return entry.matches(closing.old)


def _plans_past(ended: list[Entry], end: Resolved) -> set[str]:
    """Give the plans that are over since what was read as beginning on a later day has come."""
    plan_entries = [entry for entry in ended if entry.mode == "plan"]
    stated_groups: set[str] = set()
    for row in end.facts.iter_rows(named=True):
        if row["kind"] == "plan" or row["status"] == "upcoming":
            continue
        if is_ahead(row):
            stated_groups |= _groups(entry for entry in plan_entries if entry.matches(row))
    return stated_groups


def _recall_outcomes(measure: str, entries: list[Entry], stated: set[str]) -> Iterator[Outcome]:
    """Count entries that say the same of several subjects once, by the one that others refer to.

    :param stated: the groups of which an entry is stated.
    """
    entries_by_group: dict[str, Entry] = {}
    for entry in entries:
        if entry.same is not None:
            entries_by_group.setdefault(entry.same, entry)
    for entry in entries:
        if entry.same is None:
            entries_by_group[entry.id] = entry
    for group, entry in entries_by_group.items():
        yield Outcome(measure, group in stated, entry.mode, _entry_text(entry))


def _groups(entries: Iterable[Entry]) -> set[str]:
    return {entry.group for entry in entries}


def _line_from(line: str, row: Row | None) -> str:
    """Write a line with the fact that it comes from, where there is one."""
    if row is None:
        return line
    return f"{line} <- {fact_text(row)}"


def _entry_text(entry: Entry) -> str:
    """Write an entry down, with its mode where that is not plain."""
    entry_line = f"{entry.id}: {entry.subject}, "
    if entry.about:
        entry_line += entry.about[0]
    if entry.mode != "is":
        entry_line += f" ({entry.mode})"
    return f"{entry_line}: {entry.value[0]}"
