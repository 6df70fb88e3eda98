"""Runs: from score matrices, from places that were found, from another run, and of sessions from
turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from memlab.errors import DataError, check_at_least
from memlab.records import Level, Run, run_from_scores, top_columns
from memlab.retrieve.bench import Bench

Scored = Iterator[tuple[np.ndarray, slice, np.ndarray]]
"""The scores of each scope: rows of its queries (q,), the place of its n documents, scores (q, n).
"""


def rank(bench: Bench, scored: Scored, *, level: Level, k: int) -> Run:
    """Rank the documents of each scope for its queries.

    Ties are in the order of :attr:`Documents.lot`.

    :raises DataError: when ``k`` is not positive.
    """
    check_at_least(1, k=k)
    found, lot = [], bench.documents(level).lot
    for rows, span, scores in scored:
        row, column = top_columns(scores, k)
        order = np.lexsort((lot[span.start + column], row))
        row, column = row[order], column[order]
        found.append((rows[row], span.start + column, scores[row, column]))
    return rank_scored_pairs(bench, found, level=level, k=k)


def rank_scored_pairs(
    bench: Bench,
    found: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]],
    *,
    level: Level,
    k: int,
) -> Run:
    """Rank what was found for some queries and others; ties stay as they stand.

    :param found: rows of queries, places of documents and scores, (m,) each.
    """
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    rows, at, scores = (np.concatenate(parts) for parts in zip(none, *found, strict=True))
    order = np.argsort(rows, kind="stable")
    query_ids = bench.queries["query_id"].gather(rows[order])
    doc_ids = bench.documents(level).place["doc_id"].gather(at[order])
    return bench.show(run_from_scores(query_ids, doc_ids, scores[order], level=level, k=k))


def rerank_by_scores(run: Run, bench: Bench, scores: pl.DataFrame) -> Run:
    """Rank by new scores under the run's name; ties keep the order in which they stand.

    :param scores: ``query_id``, ``doc_id``, ``score``.
    """
    columns = scores["query_id"], scores["doc_id"], scores["score"].to_numpy()
    ranked = run_from_scores(*columns, level=run.level, k=max(1, scores.height))
    return replace(bench.show(ranked), name=run.name, provenance=run.provenance)


def rank_in_order(run: Run, bench: Bench, order: pl.DataFrame) -> Run:
    """Rank in a given order, under the run's name; the score is 1 / rank.

    :param order: ``query_id``, ``at`` (place among the bench's documents).
    """
    doc_id = bench.documents(run.level).place["doc_id"].gather(order["at"])
    score = 1 / pl.int_range(1, pl.len() + 1).over("query_id")
    return rerank_by_scores(run, bench, order.select("query_id", doc_id=doc_id, score=score))


def run_depth(run: Run) -> int:
    """Give how many places a run has at most, and 1 for an empty one."""
    return int(run.frame["rank"].to_numpy().max(initial=1))


def require_turn_run(run: Run, task: str) -> None:
    """Refuse a ranking of sessions.

    :raises DataError: naming what takes turns alone.
    """
    if run.level != "turn":
        raise DataError(
            f"{task} takes a ranking of turns, and the run ranks sessions; give it a ranking of "
            "turns"
        )


def sessions_from_turns(run: Run, bench: Bench, *, k: int = 200) -> Run:
    """Rank the sessions that have a turn in a ranking of turns, by their best turn.

    :raises DataError: when the run ranks sessions already.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> retrieve.sessions_from_turns(retrieve.bm25(bench), bench).level
    'session'
    """
    require_turn_run(run, "sessions_from_turns")
    session = bench.documents("turn").session[bench.documents("turn").at(run.frame["doc_id"])]
    ids = bench.documents("session").place["doc_id"].gather(session)
    ranked = run.frame.select("query_id", "score", doc_id=ids)
    best = ranked.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    scores = best["score"].to_numpy()
    return bench.show(
        run_from_scores(best["query_id"], best["doc_id"], scores, level="session", k=k)
    )


def min_max_scale(column: str, *, over: str = "query_id") -> pl.Expr:
    """Scale a column to [0, 1] within each query, or another group; equal scores are worth 1."""
    value = pl.col(column)
    low, high = value.min().over(over), value.max().over(over)
    return pl.when(high > low).then((value - low) / (high - low)).otherwise(1.0)
