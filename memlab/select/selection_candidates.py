"""The first candidates of each query, and rankings with the chosen ones in front."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.errors import check_at_least
from memlab.records import Run
from memlab.records.rankings import RUN_SCHEMA, make_strictly_decreasing
from memlab.retrieve.bench import Bench


class QueryCandidates(NamedTuple):
    """The candidates of one query, best first.

    :param places: (c,) among the bench's documents.
    :param relevance: (c,) scores in [0, 1].
    """

    places: np.ndarray
    relevance: np.ndarray


def candidates_by_query(
    run: Run, bench: Bench, max_candidates: int | None = None
) -> Iterator[QueryCandidates]:
    """Go through the queries of a run, in its order.

    :param max_candidates: how many of each query's first documents; ``None`` for all.
    :returns: for each query, best first: places among the bench's documents (c,), and scores scaled
        to [0, 1] (c,), all 1 where they are equal.
    :raises DataError: when ``max_candidates`` is not positive, or for a document that the bench
        does not hold.
    """
    if max_candidates is not None:
        check_at_least(1, candidates=max_candidates)
        run = run.top(max_candidates)
    places = bench.documents(run.level).at(run.frame["doc_id"])
    for query_places, scores in _split_columns_by_query(run, places, run.frame["score"].to_numpy()):
        score_spread = _score_range_or_zero_if_tied(scores)
        relevance = np.ones(len(query_places))
        if score_spread > 0:
            relevance = (scores - scores[-1]) / score_spread
        yield QueryCandidates(query_places, relevance)


def similarity_vectors(run: Run, bench: Bench, *, centred: bool) -> np.ndarray:
    """Give what the documents of a run's level are compared with each other by: (n, d) float32 unit
    rows.

    :param centred: without what the turns of their speaker have in common, see
        :mod:`memlab.embed.speaker_centring`; else as they are encoded.
    :raises DataError: when the bench was made without an encoder.
    """
    documents = bench.documents(run.level)
    if centred:
        return documents.speaker_centred()
    return documents.vectors()


def put_chosen_first(run: Run, bench: Bench, chosen_ranks: Iterable[np.ndarray]) -> Run:
    """Give the run with some documents of each query in front, in a new order, and the rest behind
    as they were.

    Scores become 1 / rank, since those of the old order no longer fit.

    :param chosen_ranks: for each query of the run, the ranks (from 0) of its choice in their new
        order.
    """
    height = run.frame.height
    order, new_rank, query_number = (np.zeros(height, np.int64) for _ in range(3))
    ranked = zip(_split_columns_by_query(run, np.arange(height)), chosen_ranks, strict=True)
    for query_index, ((query_rows,), ranks_of_query) in enumerate(ranked):
        query_slice = slice(query_rows[0], query_rows[0] + len(query_rows))
        order[query_slice] = np.concatenate(
            [query_rows[ranks_of_query], np.delete(query_rows, ranks_of_query)]
        )
        new_rank[query_slice] = np.arange(1, len(query_rows) + 1)
        query_number[query_slice] = query_index
    reordered_columns = {
        "query_id": run.frame["query_id"],
        "doc_id": run.frame["doc_id"].gather(order),
        "rank": new_rank,
        "score": make_strictly_decreasing(1 / new_rank, query_number),
    }
    reordered = Run(pl.DataFrame(reordered_columns, schema=RUN_SCHEMA), run.level)
    return replace(bench.show(reordered), name=run.name, provenance=run.provenance)


def _split_columns_by_query(run: Run, *columns: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Cut columns of a run's rows into those of each query."""
    query_starts = np.flatnonzero(run.frame["rank"].to_numpy() == 1)[1:]
    if run.frame.height:
        yield from zip(*(np.split(column, query_starts) for column in columns), strict=True)


def _score_range_or_zero_if_tied(scores_best_first: np.ndarray) -> float:
    """Give the distance from the first to the last score, and 0 where all are equal.

    A run lowers equal scores by the smallest float32 step each, so that their order is strict: what
    such steps alone explain is no spread.

    :param scores_best_first: (c,) of one query, best first.
    """
    score_spread = float(scores_best_first[0] - scores_best_first[-1])
    float_step = float(np.spacing(np.float32(np.abs(scores_best_first).max())))
    if score_spread <= float_step * (len(scores_best_first) - 1):
        return 0.0
    return score_spread
