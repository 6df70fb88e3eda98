"""Two-stage retrieval: the query finds sessions, then turns within them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from memlab.errors import check_at_least
from memlab.records import Level, Run
from memlab.registry import Count, stage
from memlab.retrieve.bench import Bench, cache_per_bench
from memlab.retrieve.bm25 import bm25_scores
from memlab.retrieve.cosine import cosines
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.documents import best_score_per_group, columns_best_first, standardise_rows
from memlab.retrieve.rankings_from_scores import ScopeScores, rank_scope_scores


@stage
def two_stage(
    bench: Bench, *, level: Level = "turn", k: Count = 10, sessions: Count = 5, turns: Count = 3
) -> Run:
    """Find the best sessions, then the best turns within each of them, then rank these turns
    together.

    A session is worth BM25 over its document, the dense and BM25 scores of its best turn and, where
    sessions have summaries, the cosine with its summary; a turn is worth its dense and BM25 scores.
    All are standardised per query and added up. The chosen turns are ranked by the sum of both, and
    so are the other turns of the scope, which follow: a ``k`` above ``sessions`` × ``turns`` can be
    compared with other retrievers.

    At session level this is the ranking of the first stage: all sessions, up to ``k``.

    :param k: places kept for each query: of turns, or of sessions.
    :param sessions: how many sessions the first stage gives to the second.
    :param turns: how many turns each of these sessions gives at most.
    :raises DataError: for a count below 1, or without embeddings.

    Source: Liu et al., Dense Hierarchical Retrieval for Open-Domain Question Answering (Findings of
    EMNLP 2021); the sums: Fox and Shaw, Combination of Multiple Searches (TREC-2, 1994).

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.two_stage import two_stage
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> two_stage(bench, sessions=2, turns=2).frame["rank"].max()
    10
    """
    check_at_least(1, sessions=sessions, turns=turns)
    return rank_scope_scores(
        bench, _two_stage_scores(bench, level, sessions, turns), level=level, k=k
    )


def _two_stage_scores(
    bench: Bench, level: Level, n_sessions: int, n_turns: int
) -> Iterator[ScopeScores]:
    summary_vectors = session_summary_vectors(bench)
    turn_documents = bench.documents("turn")
    scorers = (
        dense_scores(bench, level="turn"),
        bm25_scores(bench, level="turn"),
        bm25_scores(bench, level="session"),
    )
    for (query_rows, turn_span, dense_of_turns), (_, _, bm25_of_turns), (
        _,
        session_span,
        bm25_of_sessions,
    ) in zip(*scorers, strict=True):
        session_of_column = turn_documents.session[turn_span] - session_span.start
        session_scores = [
            best_score_per_group(scores, session_of_column, bm25_of_sessions.shape[1])
            for scores in (dense_of_turns, bm25_of_turns)
        ] + [bm25_of_sessions]
        if summary_vectors is not None:
            session_scores.append(
                cosines(bench.require_query_vectors()[query_rows], summary_vectors[session_span])
            )
        summed_session_scores = np.sum(
            [standardise_rows(one_score) for one_score in session_scores], axis=0
        )
        if level == "session":
            yield ScopeScores(query_rows, session_span, summed_session_scores)
            continue
        summed_turn_scores = standardise_rows(dense_of_turns) + standardise_rows(bm25_of_turns)
        # A session without turns has nothing to give to the second stage.
        scores_with_turns = np.where(
            np.isin(np.arange(summed_session_scores.shape[1]), session_of_column),
            summed_session_scores,
            -np.inf,
        )
        session_ranks = np.argsort(
            columns_best_first(
                scores_with_turns, bench.documents("session").tie_order[session_span]
            ),
            axis=1,
            kind="stable",
        )
        is_chosen = session_ranks[:, session_of_column] < n_sessions
        is_chosen &= (
            _ranks_within_groups_from_zero(
                summed_turn_scores, session_of_column, turn_documents.tie_order[turn_span]
            )
            < n_turns
        )
        fused_scores = (
            standardise_rows(summed_turn_scores)
            + standardise_rows(summed_session_scores)[:, session_of_column]
        )
        # The lowest of the chosen comes above the highest of all.
        raised_scores = (
            fused_scores
            - np.where(is_chosen, fused_scores, np.inf).min(axis=1, keepdims=True)
            + fused_scores.max(axis=1, keepdims=True)
        )
        yield ScopeScores(
            query_rows, turn_span, np.where(is_chosen, raised_scores + 1, fused_scores)
        )


def _ranks_within_groups_from_zero(
    scores: np.ndarray, group_of_column: np.ndarray, tie_order: np.ndarray
) -> np.ndarray:
    """Give the place of each column among the columns of its group, from 0 for the best: (q, n).

    :param group_of_column: (n,) ascending group numbers; ``tie_order`` (n,) the order of columns
        that tie.
    """
    column_order = np.lexsort((*np.broadcast_arrays(tie_order, -scores, group_of_column),), axis=1)
    # Sorted by group, the columns of a group fill the same places in every row.
    ranks_in_group = np.empty_like(column_order)
    rank_of_slot = np.arange(len(group_of_column)) - np.searchsorted(
        group_of_column, group_of_column
    )
    np.put_along_axis(
        ranks_in_group, column_order, np.broadcast_to(rank_of_slot, column_order.shape), axis=1
    )
    return ranks_in_group


@cache_per_bench
def session_summary_vectors(bench: Bench) -> np.ndarray | None:
    """Embed the sessions' summaries, once for a bench.

    A session without one has the vector of its document.

    :returns: (n sessions, d) float32 unit rows in the order of the session documents; ``None``
        where no session has a summary.
    :raises DataError: when the bench was made without an encoder.
    """
    summary_texts = (
        bench.sessions.sort("scope", "n", maintain_order=True)["summary"]
        .fill_null("")
        .str.strip_chars()
    )
    has_summary: pl.Series = summary_texts != ""
    if not has_summary.any():
        return None
    session_vectors = bench.documents("session").vectors().copy()
    session_vectors[has_summary.to_numpy()] = bench.embedder().encode(
        summary_texts.filter(has_summary).to_list()
    )
    return session_vectors
