"""Runs: from score matrices, from places that were found, from another run, and of sessions from
turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.errors import DataError, check_at_least
from memlab.records import Level, Run, run_from_scores
from memlab.retrieve.bench import Bench


class ScopeScores(NamedTuple):
    """The scores of one scope: rows of its queries (q,), its n documents, and scores (q, n)."""

    query_rows: np.ndarray
    documents: slice
    scores: np.ndarray


class ScoredPairs(NamedTuple):
    """Rows of queries, places of documents and the score of each pair: (m,) each."""

    query_rows: np.ndarray
    document_places: np.ndarray
    scores: np.ndarray


def rank_scope_scores(
    bench: Bench, scope_scores: Iterable[ScopeScores], *, level: Level, k: int
) -> Run:
    """Rank the documents of each scope for its queries.

    Ties are in the order of :attr:`Documents.tie_order`.

    :raises DataError: when ``k`` is not positive.
    """
    check_at_least(1, k=k)
    tie_order = bench.documents(level).tie_order
    scored_pairs = []
    for query_rows, document_span, scores in scope_scores:
        columns_in_tie_order = np.argsort(tie_order[document_span])
        best_columns, best_scores = _best_columns_and_scores(scores[:, columns_in_tie_order], k)
        document_places = document_span.start + columns_in_tie_order[best_columns]
        scored_pairs.append(
            ScoredPairs(
                np.repeat(query_rows, best_columns.shape[1]),
                document_places.ravel(),
                best_scores.ravel(),
            )
        )
    return rank_scored_pairs(bench, scored_pairs, level=level, k=k)


def _best_columns_and_scores(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the k best columns of each row, the best first, and of equal ones the first.

    :param scores: (q, n).
    :returns: columns and scores, both (q, min(k, n)).
    :raises DataError: when a score is not finite.
    """
    if not np.isfinite(scores).all():
        raise DataError("a score is not a finite number")
    n_rows, n_columns = scores.shape
    if k >= n_columns:
        columns = np.broadcast_to(np.arange(n_columns), scores.shape)
    else:
        threshold = np.partition(scores, n_columns - k, axis=1)[:, n_columns - k, None]
        is_best = scores >= threshold
        if np.count_nonzero(is_best) > n_rows * k:
            is_tied = scores == threshold
            n_free_places = k - np.count_nonzero(scores > threshold, axis=1)[:, None]
            is_best &= ~is_tied | (np.cumsum(is_tied, axis=1) <= n_free_places)
        columns = np.nonzero(is_best)[1].reshape(n_rows, k)
    chosen_scores = np.take_along_axis(scores, columns, axis=1)
    best_first = np.argsort(-chosen_scores, axis=1, kind="stable")
    return (
        np.take_along_axis(columns, best_first, axis=1),
        np.take_along_axis(chosen_scores, best_first, axis=1),
    )


def rank_scored_pairs(
    bench: Bench,
    scored_pairs: Iterable[ScoredPairs],
    *,
    level: Level,
    k: int,
) -> Run:
    """Rank what was found for some queries and others; ties stay as they stand.

    :param scored_pairs: as many of each query as there are.
    """
    no_pairs = ScoredPairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    query_rows, document_places, scores = (
        np.concatenate(parts) for parts in zip(no_pairs, *scored_pairs, strict=True)
    )
    query_order = np.argsort(query_rows, kind="stable")
    query_ids = bench.queries["query_id"].gather(query_rows[query_order])
    doc_ids = bench.documents(level).place_of_id["doc_id"].gather(document_places[query_order])
    return bench.show(run_from_scores(query_ids, doc_ids, scores[query_order], level=level, k=k))


def rerank_by_scores(run: Run, bench: Bench, new_scores: pl.DataFrame) -> Run:
    """Rank by new scores under the run's name; ties keep the order in which they stand.

    :param new_scores: ``query_id``, ``doc_id``, ``score``.
    """
    columns = new_scores["query_id"], new_scores["doc_id"], new_scores["score"].to_numpy()
    ranked = run_from_scores(*columns, level=run.level, k=max(1, new_scores.height))
    return replace(bench.show(ranked), name=run.name, provenance=run.provenance)


def rerank_in_order(run: Run, bench: Bench, ordered_places: pl.DataFrame) -> Run:
    """Rank in a given order, under the run's name; the score is 1 / rank.

    :param ordered_places: ``query_id``, ``at`` (place among the bench's documents).
    """
    doc_ids = bench.documents(run.level).place_of_id["doc_id"].gather(ordered_places["at"])
    rank_scores = 1 / pl.int_range(1, pl.len() + 1).over("query_id")
    return rerank_by_scores(
        run, bench, ordered_places.select("query_id", doc_id=doc_ids, score=rank_scores)
    )


def deepest_rank_or_one(run: Run) -> int:
    """Give how many places a run has at most, and 1 for an empty one."""
    return int(run.frame["rank"].to_numpy().max(initial=1))


def refuse_session_run(run: Run, stage_name: str) -> None:
    """Refuse a ranking of sessions.

    :raises DataError: naming what takes turns alone.
    """
    if run.level != "turn":
        raise DataError(
            f"{stage_name} takes a ranking of turns, and the run ranks sessions; give it a "
            "ranking of turns"
        )


def sessions_from_turns(run: Run, bench: Bench, *, k: int = 200) -> Run:
    """Rank the sessions that have a turn in a ranking of turns, by their best turn.

    :raises DataError: when the run ranks sessions already.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> retrieve.sessions_from_turns(retrieve.bm25(bench), bench).level
    'session'
    """
    refuse_session_run(run, "sessions_from_turns")
    session_of_hit = bench.documents("turn").session[
        bench.documents("turn").at(run.frame["doc_id"])
    ]
    session_ids = bench.documents("session").place_of_id["doc_id"].gather(session_of_hit)
    session_hits = run.frame.select("query_id", "score", doc_id=session_ids)
    best_hits = session_hits.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    scores = best_hits["score"].to_numpy()
    return bench.show(
        run_from_scores(best_hits["query_id"], best_hits["doc_id"], scores, level="session", k=k)
    )


def min_max_scaled_expr(column: str, *, group_column: str = "query_id") -> pl.Expr:
    """Scale a column to [0, 1] within each query, or another group; equal scores are worth 1."""
    value = pl.col(column)
    lowest = value.min().over(group_column)
    highest = value.max().over(group_column)
    return pl.when(highest > lowest).then((value - lowest) / (highest - lowest)).otherwise(1.0)
