"""What the index did, counted."""

from __future__ import annotations

import polars as pl

from memlab.indexing.known import dangling
from memlab.store import MemoryStore
from memlab.store.registry import INDEX_TABLES
from memlab.terminal import short

KINDS = ("created", "updated", "fallback", "failed", "skipped")


def counters(events: pl.DataFrame) -> pl.DataFrame:
    """Count events by kind, with their latencies.

    :param events: rows of :class:`memlab.records.IndexEvent`.
    :returns: ``kind`` (every one of :data:`KINDS`), ``n``, ``seconds_median``, ``seconds_p95``, ``seconds_total`` and
        ``reasons`` (how many different ones).

    >>> from memlab.indexing import counters
    >>> from memlab.records import IndexEvent, frame
    >>> event = IndexEvent("e", "a/s1", "a", "failed", None, 2.0, "lab", "1", "timed out")
    >>> counters(frame(IndexEvent, [event])).filter(n=1).select("kind", "seconds_median", "reasons").row(0)
    ('failed', 2.0, 1)
    """
    seconds = pl.col("seconds")
    counted = events.group_by("kind").agg(
        n=pl.len(),
        seconds_median=seconds.median(),
        seconds_p95=seconds.quantile(0.95, "linear"),
        seconds_total=seconds.sum(),
        reasons=pl.col("reason").drop_nulls().n_unique(),
    )
    kinds = pl.DataFrame({"kind": KINDS})
    return kinds.join(counted, on="kind", how="left", maintain_order="left").with_columns(
        pl.col("n", "reasons").fill_null(0), pl.col("seconds_total").fill_null(0.0)
    )


def report(store: MemoryStore, dataset: str, events: pl.DataFrame, *, most: int = 8) -> list[str]:
    """Say in lines what a pass did, what the index holds now, and why sessions failed.

    :param events: what :func:`memlab.indexing.index` gave.
    :param most: of how many sessions the reason is told.
    """
    counted = [f"{n:,} {kind}" for kind, n in counters(events).select("kind", "n").iter_rows() if n]
    rows = [f"{store.knowledge.rows(table, dataset).height:,} {table}" for table in INDEX_TABLES]
    lines = [f"{dataset}: {', '.join(counted) or 'nothing was due'}; the index holds {', '.join(rows)}"]
    told = events.filter(pl.col("kind").is_in(["failed", "fallback"])).select("session_id", "kind", "reason")
    lines += [f"  {session}: {kind}: {short(reason)}" for session, kind, reason in told.head(most).iter_rows()]
    lines += [f"  undone: {new} ends {old}: what it names is no longer said" for old, new in dangling(store, dataset)]
    more = told.height - most
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
