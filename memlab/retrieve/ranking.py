"""Runs: from score matrices, from LanceDB's indexes, from another run by new scores, and of sessions from turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.records import Level, Run, run_from_scores, top
from memlab.retrieve.bench import Bench

if TYPE_CHECKING:
    from memlab.store import MemoryStore


def rank(bench: Bench, scored: Iterable[tuple[np.ndarray, slice, np.ndarray]], *, level: Level, k: int) -> Run:
    """Rank the documents of each scope for its queries; ties are in the order of :attr:`Documents.lot`.

    :param scored: for each scope the rows of its queries, the place of its documents, and scores (q, n).
    :raises DataError: when ``k`` is not positive.
    """
    at_least(1, k=k)
    found, lot = [], bench.documents(level).lot
    for rows, span, scores in scored:
        row, column = top(scores, k)
        order = np.lexsort((lot[span.start + column], row))
        row, column = row[order], column[order]
        found.append((rows[row], span.start + column, scores[row, column]))
    return placed(bench, found, level=level, k=k)


def placed(bench: Bench, found: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]], *, level: Level, k: int) -> Run:
    """Rank what was found for some queries and others; ties stay as they stand.

    :param found: rows of queries, places of documents and scores, (m,) each.
    """
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    rows, places, scores = (np.concatenate(parts) for parts in zip(none, *found, strict=True))
    order = np.argsort(rows, kind="stable")
    query_ids = bench.queries["query_id"].gather(rows[order])
    doc_ids = bench.documents(level).place["doc_id"].gather(places[order])
    return bench.show(run_from_scores(query_ids, doc_ids, scores[order], level=level, k=k))


def by_path(
    path: str,
    bench: Bench,
    scored: Iterable[tuple[np.ndarray, slice, np.ndarray]],
    search: Callable[[Bench, MemoryStore, int], pl.DataFrame],
    *,
    level: Level,
    k: int,
) -> Run:
    """Rank by scores (``exact``), see :func:`rank`, or through the store's indexes (``indexed``).

    Ties are in the same order on both paths.

    :param search: gives ``query`` (row of the query), ``doc_id`` and ``score``.
    :raises DataError: for another path; through indexes without a store, or for sessions, which have none of their own.
    """
    if path == "exact":
        return rank(bench, scored, level=level, k=k)
    if path != "indexed":
        raise DataError(f"path is {path!r}; choose 'exact' or 'indexed'")
    if bench.store is None:
        raise DataError("path='indexed' needs a store: make the bench with store=…")
    if level != "turn":
        raise DataError("path='indexed' ranks turns; use path='exact' for sessions")
    documents = bench.documents("turn")
    places = documents.place.with_columns(lot=pl.Series(documents.lot))
    hits = search(bench, bench.store, k).join(places, on="doc_id", how="inner").sort("query", "lot")
    ids = bench.queries["query_id"].gather(hits["query"])
    return bench.show(run_from_scores(ids, hits["doc_id"], hits["score"].to_numpy(), level=level, k=k))


def reranked(run: Run, bench: Bench, scores: pl.DataFrame, *, k: int | None = None) -> Run:
    """Rank by new scores under the run's name; ties keep the order in which they stand.

    :param scores: ``query_id``, ``doc_id``, ``score``.
    :param k: places kept for each query; all of them by default.
    """
    columns = scores["query_id"], scores["doc_id"], scores["score"].to_numpy()
    ranked = run_from_scores(*columns, level=run.level, k=max(1, scores.height) if k is None else k)
    return replace(bench.show(ranked), name=run.name, provenance=run.provenance)


def in_order(run: Run, bench: Bench, order: pl.DataFrame, *, k: int | None = None) -> Run:
    """Rank in a given order, under the run's name; the score is 1 / rank.

    :param order: ``query_id``, ``at`` (place among the bench's documents).
    :param k: as in :func:`reranked`.
    """
    scores = order.select(
        "query_id",
        doc_id=pl.Series(bench.documents(run.level).ids[order["at"].to_numpy()], dtype=pl.String),
        score=1 / pl.int_range(1, pl.len() + 1).over("query_id"),
    )
    return reranked(run, bench, scores, k=k)


def added(parts: Iterable[pl.DataFrame], *, level: Level, k: int) -> Run:
    """Rank by sums over lists.

    :param parts: ``query_id``, ``doc_id``, ``gain`` each.
    """
    total = pl.concat(parts).group_by("query_id", "doc_id", maintain_order=True).agg(pl.col("gain").sum())
    return run_from_scores(total["query_id"], total["doc_id"], total["gain"].to_numpy(), level=level, k=k)


def depth(run: Run) -> int:
    """Give how many places a run has at most, and 1 for an empty one."""
    return int(run.frame["rank"].to_numpy().max(initial=1))


def of_turns(run: Run, task: str) -> None:
    """Refuse a ranking of sessions.

    :raises DataError: naming what takes turns alone.
    """
    if run.level != "turn":
        raise DataError(f"{task} takes a ranking of turns, and the run ranks sessions; give it a ranking of turns")


def sessions_from_turns(run: Run, bench: Bench, *, k: int = 200) -> Run:
    """Rank sessions by their best turn in a ranking of turns.

    :param run: a ranking of turns, at the end of any pipeline.
    :returns: a ranking of the sessions that have a turn in it.
    :raises DataError: when the run ranks sessions already.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> retrieve.sessions_from_turns(retrieve.bm25(bench), bench).level
    'session'
    """
    of_turns(run, "sessions_from_turns")
    session = bench.documents("turn").session[bench.documents("turn").at(run.frame["doc_id"])]
    best = (
        run.frame.select("query_id", "score", doc_id=pl.Series(bench.documents("session").ids[session]))
        .group_by("query_id", "doc_id", maintain_order=True)
        .agg(pl.col("score").max())
    )
    scores = best["score"].to_numpy()
    return bench.show(run_from_scores(best["query_id"], best["doc_id"], scores, level="session", k=k))


def scaled(column: str, *, over: str = "query_id") -> pl.Expr:
    """Scale a column to [0, 1] within each query, or another group; equal scores are worth 1."""
    value = pl.col(column)
    low, high = value.min().over(over), value.max().over(over)
    return pl.when(high > low).then((value - low) / (high - low)).otherwise(1.0)
