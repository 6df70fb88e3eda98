"""Two-stage retrieval: the query finds sessions, then turns within them."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import check_at_least
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench, cache_per_bench
from memlab.retrieve.bm25 import bm25_scores
from memlab.retrieve.cosine import cosines
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.documents import best_per_group, rank_columns, standardise_rows
from memlab.retrieve.rankings_from_scores import Scored, rank


@stage
def two_stage(
    bench: Bench, *, level: Level = "turn", k: int = 10, sessions: int = 5, turns: int = 3
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
    return rank(bench, _two_stage_scores(bench, level, sessions, turns), level=level, k=k)


def _two_stage_scores(bench: Bench, level: Level, n_sessions: int, n_turns: int) -> Scored:
    summaries, documents = summary_vectors(bench), bench.documents("turn")
    scorers = (
        dense_scores(bench, level="turn"),
        bm25_scores(bench, level="turn"),
        bm25_scores(bench, level="session"),
    )
    for (rows, turns, dense), (_, _, words), (_, sessions, of_documents) in zip(
        *scorers, strict=True
    ):
        group = documents.session[turns] - sessions.start
        keys = [
            best_per_group(scores, group, of_documents.shape[1]) for scores in (dense, words)
        ] + [of_documents]
        if summaries is not None:
            keys.append(cosines(bench.query_vectors[rows], summaries[sessions]))
        of_sessions = np.sum([standardise_rows(key) for key in keys], axis=0)
        if level == "session":
            yield rows, sessions, of_sessions
            continue
        of_turns = standardise_rows(dense) + standardise_rows(words)
        # A session without turns has nothing to give to the second stage.
        occupied = np.where(np.isin(np.arange(of_sessions.shape[1]), group), of_sessions, -np.inf)
        place = np.argsort(
            rank_columns(occupied, bench.documents("session").lot[sessions]), axis=1, kind="stable"
        )
        chosen = place[:, group] < n_sessions
        chosen &= _rank_within_groups(of_turns, group, documents.lot[turns]) < n_turns
        fused = standardise_rows(of_turns) + standardise_rows(of_sessions)[:, group]
        # The lowest of the chosen comes above the highest of all.
        raised = (
            fused
            - np.where(chosen, fused, np.inf).min(axis=1, keepdims=True)
            + fused.max(axis=1, keepdims=True)
        )
        yield rows, turns, np.where(chosen, raised + 1, fused)


def _rank_within_groups(scores: np.ndarray, group: np.ndarray, lot: np.ndarray) -> np.ndarray:
    """Give the place of each column among the columns of its group, from 0 for the best: (q, n).

    :param group: (n,) ascending group numbers; ``lot`` (n,) the order of columns that tie.
    """
    order = np.lexsort((*np.broadcast_arrays(lot, -scores, group),), axis=1)
    # Sorted by group, the columns of a group fill the same places in every row.
    places, depth = np.empty_like(order), np.arange(len(group)) - np.searchsorted(group, group)
    np.put_along_axis(places, order, np.broadcast_to(depth, order.shape), axis=1)
    return places


@cache_per_bench
def summary_vectors(bench: Bench) -> np.ndarray | None:
    """Embed the sessions' summaries, once for a bench.

    A session without one has the vector of its document.

    :returns: (n sessions, d) float32 unit rows in the order of the session documents; ``None``
        where no session has a summary.
    :raises DataError: when the bench was made without an encoder.
    """
    texts = (
        bench.sessions.sort("scope", "n", maintain_order=True)["summary"]
        .fill_null("")
        .str.strip_chars()
    )
    present: pl.Series = texts != ""
    if not present.any():
        return None
    vectors = bench.documents("session").vectors().copy()
    vectors[present.to_numpy()] = bench.embedder().encode(texts.filter(present).to_list())
    return vectors
