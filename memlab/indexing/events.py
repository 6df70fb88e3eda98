"""What the index did, in words."""

from __future__ import annotations

from collections import Counter

import polars as pl

from memlab.indexing.known import dangling
from memlab.store import MemoryStore
from memlab.store.registry import INDEX_TABLES
from memlab.terminal import short

KINDS = ("created", "updated", "fallback", "failed", "skipped")
TOLD = 8


def report(store: MemoryStore, dataset: str, events: pl.DataFrame) -> list[str]:
    """Say in lines what a pass did, what the index holds now, and why sessions failed: the first :data:`TOLD`.

    :param events: what :func:`memlab.indexing.index` gave.
    """
    numbers = Counter(events["kind"])
    counted = [f"{numbers[kind]:,} {kind}" for kind in KINDS if numbers[kind]]
    rows = [f"{store.knowledge.rows(table, dataset).height:,} {table}" for table in INDEX_TABLES]
    lines = [f"{dataset}: {', '.join(counted) or 'nothing was due'}; the index holds {', '.join(rows)}"]
    told = events.filter(pl.col("kind").is_in(["failed", "fallback"])).select("session_id", "kind", "reason")
    lines += [f"  {session}: {kind}: {short(reason)}" for session, kind, reason in told.head(TOLD).iter_rows()]
    lines += [f"  undone: {new} ends {old}: what it names is no longer said" for old, new in dangling(store, dataset)]
    more = told.height - TOLD
    return [*lines, f"  … and {more:,} more; all of them: store.knowledge.events"] if more > 0 else lines


def nothing_made(dataset: str, events: pl.DataFrame) -> str | None:
    """Say of a pass that made nothing what failed or was skipped, how often, and the first reason of each.

    :param events: what :func:`memlab.indexing.index` gave.
    :returns: ``None`` where something was made, or nothing was due.

    >>> from memlab.indexing import nothing_made
    >>> from memlab.records import IndexEvent, frame
    >>> event = IndexEvent("e", "a/s1", "a", "failed", None, 2.0, "lab", "1", "timed out")
    >>> nothing_made("log", frame(IndexEvent, [event]))
    'log: nothing was made: 1 of 1 sessions failed, the first (a/s1): timed out'
    """
    if events.is_empty() or not set(events["kind"]) <= {"failed", "skipped"}:
        return None
    told = events.group_by("kind", maintain_order=True).agg(pl.col("session_id", "reason").first(), n=pl.len())
    parts = [
        f"{n:,} of {events.height:,} sessions {'were skipped' if kind == 'skipped' else kind}, the first ({session}): "
        f"{short(reason)}"
        for kind, n, session, reason in told.sort("kind").select("kind", "n", "session_id", "reason").iter_rows()
    ]
    return f"{dataset}: nothing was made: {'; '.join(parts)}"
