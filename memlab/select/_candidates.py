"""Rankings as padded arrays, so that a selector works on many queries at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.retrieve.bench import Bench

CHUNK = 64


@dataclass(frozen=True)
class Candidates:
    """The first candidates of some queries, padded to one width.

    :param at: (q, c) place of each candidate among the bench's documents; 0 where padded.
    :param held: (q, c) whether there is a candidate.
    :param relevance: (q, c) scores scaled to [0, 1] within each query; 0 where padded.
    """

    at: np.ndarray
    held: np.ndarray
    relevance: np.ndarray


def chunks(run: Run, bench: Bench, n: int) -> Iterator[tuple[np.ndarray, Candidates]]:
    """Go through a run's queries, some at a time: numbers of the queries, and their first ``n`` candidates.

    :raises DataError: when ``n`` is not positive.
    """
    if n < 1:
        raise DataError(f"candidates is {n}; a selector needs at least one")
    first = run.frame.filter(pl.col("rank") <= n)
    places = bench.documents(run.level).at(first["doc_id"])
    query = first["query_id"].rle_id().to_numpy()
    scores = first["score"].to_numpy()
    rank = first["rank"].to_numpy() - 1
    for start in range(0, int(query[-1]) + 1 if len(query) else 0, CHUNK):
        inside = (query >= start) & (query < start + CHUNK)
        row, column = query[inside] - start, rank[inside]
        shape = (int(row.max()) + 1, int(column.max()) + 1)
        at, mask, relevance = np.zeros(shape, np.int64), np.zeros(shape, bool), np.full(shape, np.nan)
        at[row, column], mask[row, column], relevance[row, column] = places[inside], True, scores[inside]
        low = np.nanmin(relevance, axis=1, keepdims=True)
        spread = np.nanmax(relevance, axis=1, keepdims=True) - low
        scaled = np.divide(relevance - low, spread, out=np.ones(shape), where=spread > 0)
        yield start + np.arange(shape[0]), Candidates(at, mask, np.where(mask, scaled, 0.0))


def reordered(run: Run, bench: Bench, places: list[np.ndarray]) -> Run:
    """Give the run with some candidates of each query in front, in a new order, and the rest behind as they were.

    Scores become 1 / rank, since those of the old order no longer fit.

    :param places: for each query of the run, the ranks (from 0) of the chosen candidates in their new order.
    """
    query = run.frame["query_id"].rle_id().to_numpy()
    start = np.flatnonzero(np.r_[True, query[1:] != query[:-1]]) if len(query) else np.zeros(0, np.int64)
    key = run.frame["rank"].to_numpy().astype(np.int64) + len(query)
    for first, chosen in zip(start, places, strict=True):
        key[first + chosen] = np.arange(len(chosen))
    order = np.lexsort((key, query))
    ids, ranks = run.frame["query_id"].to_numpy(), run.frame["rank"].to_numpy()
    ranked = run_from_scores(
        ids, run.frame["doc_id"].to_numpy()[order], 1.0 / ranks, level=run.level, k=int(ranks.max(initial=1))
    )
    return replace(bench.show(ranked), name=run.name, provenance=run.provenance)
