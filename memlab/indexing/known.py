"""What the index holds, ready to be used: facts resolved, summaries beside their sessions; and what a pass did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from memlab.embed import Encoder
from memlab.knowledge import Resolved, patterns, recall, resolve
from memlab.store import CachedEncoder, MemoryStore
from memlab.terminal import short

_SAID = re.compile(r"f[0-9a-f]{12}")
_LISTED = 8


def resolved(
    store: MemoryStore,
    dataset: str,
    *,
    scopes: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    as_of: datetime | None = None,
) -> Resolved:
    """Read the facts of a dataset and find out which still hold, without the supersessions that were undone.

    :param encoder: matches near-equal wordings too; see :func:`memlab.knowledge.resolve`.
    :param as_of: only what had reached the memory by then counts.
    """
    caching = CachedEncoder(store, encoder) if encoder is not None else None
    facts = store.knowledge.rows("facts", dataset, scopes=scopes)
    state = resolve(facts, encoder=caching, as_of=as_of)
    noted = store.knowledge.undone(dataset, scopes=scopes).select("old", "new")
    pairs = [(_standing(state.facts, old), _standing(state.facts, new)) for old, new in noted.iter_rows()]
    undone = [(old, new) for old, new in pairs if old and new]
    return resolve(facts, encoder=caching, as_of=as_of, undone=undone) if undone else state


def _standing(facts: pl.DataFrame, fact: str) -> str | None:
    """Find what now stands for a fact that an undo names: the first saying of it; another where its turn is gone."""
    turn, _, said = fact.rpartition("/")
    same = facts.filter(pl.col("fact_id") == fact)
    if same.is_empty() and _SAID.fullmatch(said):
        its = pl.col("scope") == turn.partition("/")[0], pl.col("fact_id").str.ends_with(f"/{said}")
        same = facts.filter(*its).sort(~pl.col("evidence").list.contains(turn), maintain_order=True)
    return None if same.is_empty() else str(same.select(pl.coalesce("repeats", "fact_id"))[0, 0])


def remember(store: MemoryStore, dataset: str, encoder: Encoder, *, progress: bool = False) -> None:
    """Put vectors of what the index holds into the store's cache, so that the first question finds them there."""
    facts = resolved(store, dataset, encoder=encoder).facts.filter(pl.col("status") != "repeat")
    texts = [*store.knowledge.rows("summaries", dataset)["summary"], *recall.statements(facts)]
    if texts:
        store.encode(encoder, texts, progress=progress)


def report(store: MemoryStore, dataset: str, events: pl.DataFrame) -> list[str]:
    """Say in lines what a pass did, what the index holds now, why sessions failed, and what no model answered.

    :param events: what :func:`memlab.indexing.index` gave.
    """
    numbers = Counter(events["kind"])
    counted = [f"{numbers[kind]:,} {kind}" for kind in ("created", "updated", "fallback", "failed") if numbers[kind]]
    holds = [f"{store.knowledge.rows(table, dataset).height:,} {table}" for table in ("summaries", "entities")]
    known = resolved(store, dataset).facts
    facts = known.filter(~pl.col("status").is_in(["repeat", "closing"]))
    holds.append(f"{facts.height:,} facts, of which {facts.filter(status='active').height:,} hold")
    lines = [f"{dataset}: {', '.join(counted) or 'nothing was due'}; the index holds {', '.join(holds)}"]
    failed = events.filter(kind="failed").select("session_id", "reason")
    lines += [f"  {session}: failed: {short(reason or '')}" for session, reason in failed.head(_LISTED).iter_rows()]
    if failed.height > _LISTED:
        lines.append(f"  … and {failed.height - _LISTED:,} more; all of them: store.knowledge.events")
    alone = events.filter((pl.col("kind") == "fallback") | (pl.col("service") == "extractive"))
    if alone.height:
        why = "".join(f" ({short(reason)})" for reason in alone["reason"].drop_nulls().head(1))
        lines.append(
            f"  {alone.height:,} of {events.height:,} sessions came from no model{why}: summaries of their own "
            f"sentences, and {patterns.MEASURED}; --service NAME asks a model"
        )
    for old, new in store.knowledge.undone(dataset).select("old", "new").iter_rows():
        if not (_standing(known, old) and _standing(known, new)):
            lines.append(f"  undone: {new} ends {old}: what it names is no longer said")
    return lines


def why_nothing(store: MemoryStore, dataset: str, scope: str) -> str:
    """Say of a scope why there is nothing to list: it is not indexed, its sessions failed, or nothing was found."""
    states = store.knowledge.states(dataset).filter(scope=scope)
    if states.is_empty():
        return "is not indexed; memlab index does that"
    failed = states.filter(status="failed")
    if failed.height == states.height:
        return f"has no session that was indexed: {short(failed['reason'][0] or 'it failed')}"
    reasons = states["reason"].drop_nulls().unique(maintain_order=True).head(3).to_list()
    return f"is indexed, and nothing was found{' (' + '; '.join(map(short, reasons)) + ')' if reasons else ''}"
