"""What the index knows, ready to be used: facts resolved, summaries beside their sessions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl

from memlab.embed import Encoder
from memlab.knowledge import Resolved, resolve, undo
from memlab.knowledge.people import People, join_people
from memlab.knowledge.search import candidates, summary_texts
from memlab.records import Dataset
from memlab.store import CachedEncoder, MemoryStore


def resolved(
    store: MemoryStore,
    dataset: str,
    *,
    scopes: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    as_of: datetime | None = None,
    people: People | None = None,
) -> Resolved:
    """Read the facts of a dataset and find out which still hold, without the supersessions that were undone.

    :param encoder: matches near-equal wordings too; see :func:`memlab.knowledge.resolve`.
    :param as_of: only what had reached the memory by then counts.
    :param people: who goes by several names.
    """
    caching = CachedEncoder(store, encoder) if encoder is not None else None
    facts = join_people(store.knowledge.rows("facts", dataset, scopes=scopes), people or {})
    state = resolve(facts, encoder=caching, as_of=as_of)
    for _, *pair, when, why in store.knowledge.undone(dataset, scopes=scopes).iter_rows():
        old, new = (standing(state.facts, fact) for fact in pair)
        if old and new and state.log.filter(pl.col("old") == old, pl.col("new") == new).height:
            state = undo(state, old, new, now=when, why=why or "")
    return state


def standing(facts: pl.DataFrame, fact: str) -> str | None:
    """Find what now stands for a fact that an undo names: the first saying of it; another where its turn is gone.

    :param facts: rows of :class:`memlab.records.Fact` with ``repeats``, as in :class:`memlab.knowledge.Resolved`.
    """
    turn, _, said = fact.rpartition("/")
    same = facts.filter(pl.col("fact_id") == fact)
    if same.is_empty() and _SAID.fullmatch(said):
        same = facts.filter(
            pl.col("scope") == turn.partition("/")[0], pl.col("fact_id").str.ends_with(f"/{said}")
        ).sort(~pl.col("evidence").list.contains(turn), maintain_order=True)
    return None if same.is_empty() else str(same.select(pl.coalesce("repeats", "fact_id"))[0, 0])


_SAID = re.compile(r"f[0-9a-f]{12}")


def dangling(store: MemoryStore, dataset: str) -> list[tuple[str, str]]:
    """List the undone pairs, old and new, of which one is no longer said anywhere."""
    undone = store.knowledge.undone(dataset).select("old", "new").rows()
    if not undone:
        return []
    facts = store.knowledge.rows("facts", dataset).with_columns(repeats=None)
    return [pair for pair in undone if not all(standing(facts, fact) for fact in pair)]


def attached(store: MemoryStore, data: Dataset) -> Dataset:
    """Give a dataset with the summaries of the index on the sessions that have none, for retrieval by summaries.

    >>> import tempfile, memlab
    >>> from memlab.indexing import attached, index
    >>> from memlab.store import MemoryStore
    >>> data = memlab.sample(turns=60)
    >>> store = MemoryStore.open(tempfile.mkdtemp())
    >>> _ = store.ingest(data), index(store, data.name)
    >>> attached(store, data).sessions["summary"].null_count()
    0
    """
    texts = store.knowledge.rows("summaries", data.name).select("session_id", made="summary")
    sessions = data.sessions.join(texts, on="session_id", how="left", maintain_order="left")
    return replace(data, sessions=sessions.with_columns(summary=pl.coalesce("summary", "made")).drop("made"))


def remember(
    store: MemoryStore, dataset: str, encoder: Encoder, *, summaries: bool, facts: bool, progress: bool = False
) -> None:
    """Put vectors of what the index holds into the store's cache, so that the first question finds them there."""
    texts = summary_texts(store.knowledge.rows("summaries", dataset)) if summaries else []
    if facts and (known := resolved(store, dataset, encoder=encoder).facts).height:
        texts += candidates(known, superseded=True)["statement"].to_list()
    if texts:
        store.encode(encoder, texts, progress=progress)
