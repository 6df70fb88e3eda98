"""What the index holds, ready to be used: facts resolved; what a pass did; and why there is nothing."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import product

import polars as pl

from memlab.embed import Encoder
from memlab.knowledge import Resolved, patterns, recall, resolve
from memlab.store import MemoryStore, cached
from memlab.terminal import short

_SAID = re.compile(r".*/(f[0-9a-f]{12})")
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

    :param encoder: matches near-equal values too; see :func:`memlab.knowledge.resolve`.
    :param as_of: only what had reached the memory by then counts.
    """
    facts = store.knowledge.rows("facts", dataset, scopes=scopes)
    pairs = [pair for _, _, its in undone(store, dataset, facts) for pair in its]
    return resolve(facts, encoder=cached(store, encoder) if encoder else None, as_of=as_of, undone=pairs)


def undone(store: MemoryStore, dataset: str, facts: pl.DataFrame) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Find the facts that say what each undo names, in whatever turn of its scope they do.

    :returns: of each undo ``old``, ``new`` and the pairs of fact ids that now say so.
    """
    saying: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for scope, fact in facts.select("scope", "fact_id").iter_rows():
        saying[scope, _SAID.sub(r"\1", fact)].append(fact)
    noted = store.knowledge.undone(dataset).select("scope", "old", "new").iter_rows()
    named = [(old, new, *(saying[scope, _SAID.sub(r"\1", fact)] for fact in (old, new))) for scope, old, new in noted]
    return [(old, new, list(product(olds, news))) for old, new, olds, news in named]


def remember(store: MemoryStore, dataset: str, encoder: Encoder, *, progress: bool = False) -> None:
    """Put vectors of what the index holds into the store's cache, so that the first question finds them there."""
    facts = resolved(store, dataset, encoder=encoder).facts.filter(pl.col("status") != "repeat")
    if texts := [*store.knowledge.rows("summaries", dataset)["summary"], *recall.statements(facts)]:
        store.encode(encoder, texts, progress=progress)


def report(store: MemoryStore, dataset: str, events: pl.DataFrame) -> list[str]:
    """Say in lines what a pass did, what the index holds, why sessions failed, and what no model answered.

    :param events: what :func:`memlab.indexing.index` gave.
    """
    numbers = Counter(events["kind"])
    counted = [f"{numbers[kind]:,} {kind}" for kind in ("created", "updated", "fallback", "failed") if numbers[kind]]
    holds = [f"{store.knowledge.rows(table, dataset).height:,} {table}" for table in ("summaries", "entities")]
    known = resolved(store, dataset).facts.filter(~pl.col("status").is_in(["repeat", "closing"]))
    holds.append(f"{known.height:,} facts, of which {known.filter(status='active').height:,} hold")
    lines = [f"{dataset}: {', '.join(counted) or 'nothing was due'}; the index holds {', '.join(holds)}"]
    failed = events.filter(kind="failed").select("session_id", "reason")
    lines += [f"  {session}: failed: {short(reason or '')}" for session, reason in failed.head(_LISTED).iter_rows()]
    if failed.height > _LISTED:
        lines.append(f"  … and {failed.height - _LISTED:,} more; all of them: store.knowledge.events")
    alone = events.filter(service="extractive")
    if alone.height:
        why = "".join(f" ({short(reason)})" for reason in alone["reason"].drop_nulls().head(1))
        lines.append(
            f"  {alone.height:,} of {events.height:,} sessions came from no model{why}: summaries of their own "
            f"sentences, and {patterns.MEASURED}; --service NAME asks a model"
        )
    facts = store.knowledge.rows("facts", dataset)
    gone = [(old, new) for old, new, pairs in undone(store, dataset, facts) if not pairs]
    return lines + [f"  undone: {new} ends {old}: what it names is no longer said" for old, new in gone]


def why_nothing(store: MemoryStore, dataset: str, scope: str) -> str:
    """Say of a scope why there is nothing to list: it is not indexed, its sessions failed, or nothing was found."""
    states = store.knowledge.states(dataset).filter(scope=scope)
    if states.is_empty():
        return "is not indexed; memlab index does that"
    reasons = states["reason"].drop_nulls().unique(maintain_order=True).head(3).to_list()
    why = f" ({'; '.join(map(short, reasons))})" if reasons else ""
    failed = (states["status"] == "failed").all()
    return f"has no session that was indexed{why}" if failed else f"is indexed, and nothing was found{why}"
