"""The indexed path: rankings that LanceDB's indexes give, in the shape of the exact ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Level, Run, run_from_scores
from memlab.retrieve.bench import Bench

if TYPE_CHECKING:
    from memlab.store import MemoryStore


def from_store(bench: Bench, search: Callable[[Bench, MemoryStore, int], pl.DataFrame], *, level: Level, k: int) -> Run:
    """Rank through the store; ties are put in the scope's order of time, as on the exact path.

    :param search: gives ``query`` (row of the query), ``doc_id`` and ``score``.
    :raises DataError: without a store, or for sessions, which have no index of their own.
    """
    if bench.store is None:
        raise DataError("path='indexed' needs a store: make the bench with store=…")
    if level != "turn":
        raise DataError("path='indexed' ranks turns; use path='exact' for sessions")
    documents = bench.documents("turn")
    found = search(bench, bench.store, k).join(documents.place, on="doc_id", how="inner").sort("query", "at")
    ids = bench.queries["query_id"].to_numpy()[found["query"].to_numpy().astype(np.int64)]
    run = run_from_scores(ids, found["doc_id"].to_numpy(), found["score"].to_numpy(), level=level, k=k)
    return bench.show(run)
