"""Reading of the index: resolved facts, the report of a pass, and the reason why a scope has nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from memlab.embed import Encoder
from memlab.knowledge import Resolved, patterns, recall, resolve
from memlab.store import MemoryStore, cache_encoder
from memlab.terminal import shorten_line

_FACT_DIGEST = re.compile(r".*/(f[0-9a-f]{12})")
_MAX_LISTED = 8


def resolved_facts(
    store: MemoryStore,
    dataset: str,
    *,
    scopes: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    as_of: datetime | None = None,
) -> Resolved:
    """Read the facts of a dataset and resolve them, without the supersessions that were undone.

    :param encoder: matches near-equal values too; see :func:`memlab.knowledge.resolve`.
    :param as_of: only what had reached the memory by then counts.
    """
    facts = store.knowledge.rows("facts", dataset, scopes=scopes)
    pairs = map_undos_to_current_facts(store, dataset, facts).values()
    return resolve(facts, encoder=cache_encoder(store, encoder) if encoder else None, as_of=as_of, undone=pairs)


def map_undos_to_current_facts(
    store: MemoryStore, dataset: str, facts: pl.DataFrame
) -> dict[tuple[str, str], tuple[str, str]]:
    """Give for each undo, a pair of fact ids, the current facts of its scope that state the same.

    :returns: noted pair → current pair; an id is empty where no fact states it any more.
    """
    rows = facts.select("scope", "fact_id").rows()
    known = {(scope, _FACT_DIGEST.sub(r"\1", fact)): fact for scope, fact in rows} | {row: row[1] for row in rows}

    def current(scope: str, fact: str) -> str:
        return known.get((scope, fact)) or known.get((scope, _FACT_DIGEST.sub(r"\1", fact)), "")

    noted = store.knowledge.undone(dataset).select("scope", "old", "new").iter_rows()
    return {(old, new): (current(scope, old), current(scope, new)) for scope, old, new in noted}


def cache_vectors(store: MemoryStore, dataset: str, encoder: Encoder, *, progress: bool = False) -> None:
    """Encode the summaries and facts of the index into the store's cache of vectors."""
    facts = resolved_facts(store, dataset, encoder=encoder).facts.filter(pl.col("status") != "repeat")
    if texts := [*store.knowledge.rows("summaries", dataset)["summary"], *recall.fact_statements(facts)]:
        store.encode(encoder, texts, progress=progress)


def report_lines(store: MemoryStore, dataset: str, events: pl.DataFrame) -> list[str]:
    """Report in lines what a pass did, what the index holds, which sessions failed and which no model answered.

    :param events: what :func:`memlab.indexing.index` gave.
    """
    numbers = Counter(events["kind"])
    counted = [f"{numbers[kind]:,} {kind}" for kind in ("created", "updated", "fallback", "failed") if numbers[kind]]
    holds = [f"{store.knowledge.rows(table, dataset).height:,} {table}" for table in ("summaries", "entities")]
    known = resolved_facts(store, dataset).facts
    facts = known.filter(~pl.col("status").is_in(["repeat", "closing"]))
    holds.append(f"{facts.height:,} facts, of which {facts.filter(status='active').height:,} hold")
    lines = [f"{dataset}: {', '.join(counted) or 'nothing was due'}; the index holds {', '.join(holds)}"]
    failed = events.filter(kind="failed").select("session_id", "reason")
    lines += [
        f"  {session}: failed: {shorten_line(reason or '')}" for session, reason in failed.head(_MAX_LISTED).iter_rows()
    ]
    if failed.height > _MAX_LISTED:
        lines.append(f"  … and {failed.height - _MAX_LISTED:,} more; all of them: store.knowledge.events")
    alone = events.filter(service="extractive")
    if alone.height:
        why = "".join(f" ({shorten_line(reason)})" for reason in alone["reason"].drop_nulls().head(1))
        lines.append(
            f"  {alone.height:,} of {events.height:,} sessions came from no model{why}: summaries of their own "
            f"sentences, and {patterns.RECALL_NOTE}; --service NAME asks a model"
        )
    gone = [noted for noted, pair in map_undos_to_current_facts(store, dataset, known).items() if "" in pair]
    return lines + [f"  undone: {new} ends {old}: what it names is no longer said" for old, new in gone]


def empty_reason(store: MemoryStore, dataset: str, scope: str) -> str:
    """Say why a scope has nothing to list: it is not indexed, its sessions failed, or nothing was found."""
    states = store.knowledge.states(dataset).filter(scope=scope)
    if states.is_empty():
        return "is not indexed; memlab index does that"
    reasons = states["reason"].drop_nulls().unique(maintain_order=True).head(3).to_list()
    why = f" ({'; '.join(map(shorten_line, reasons))})" if reasons else ""
    failed = (states["status"] == "failed").all()
    return f"has no session that was indexed{why}" if failed else f"is indexed, and nothing was found{why}"
