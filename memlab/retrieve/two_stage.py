"""Two-stage retrieval: the query finds sessions, then turns within them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.arrays import best_of, cosines, places, places_within, standardised
from memlab.retrieve.bench import Bench, once
from memlab.retrieve.bm25 import bm25_scores
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.ranking import rank

KEYS = ("summary", "document", "turn", "fused")


@stage
def two_stage(
    bench: Bench,
    *,
    level: Level = "turn",
    k: int = 10,
    sessions: int = 5,
    turns: int = 3,
    by: str = "fused",
    rerank: bool = True,
) -> Run:
    """Find the best sessions, then the best turns within each of them, then rank these turns together.

    A turn is worth its dense and BM25 score, standardised per query and added up. Reranking adds the score of its
    session, standardised too, at equal weight. The other turns of the scope follow by the same sum, so that a ``k``
    above ``sessions`` × ``turns`` can be compared with other retrievers.

    At session level this is the ranking of the first stage: all sessions, up to ``k``.

    :param k: places kept for each query: of turns after the reranking, or of sessions.
    :param sessions: how many sessions the first stage gives to the second.
    :param turns: how many turns each of these sessions gives at most.
    :param by: what finds a session: ``summary`` (cosine with the embedding of its summary), ``document`` (BM25 over the
        session), ``turn`` (dense and BM25 score of its best turn), or ``fused``: the sum of all of these, each
        standardised; without summaries, of the others.
    :param rerank: whether to rank the chosen turns together; if not, they come in order of session, then turn.
    :raises DataError: for a count below 1, another ``by``, ``summary`` where no session has one, or without embeddings.

    Source: Liu et al., Dense Hierarchical Retrieval for Open-Domain Question Answering (Findings of EMNLP 2021); the
    sums: Fox and Shaw, Combination of Multiple Searches (TREC-2, 1994).

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.two_stage import two_stage
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> two_stage(bench, sessions=2, turns=2).frame["rank"].max()
    10
    """
    at_least(1, sessions=sessions, turns=turns)
    if by not in KEYS:
        raise DataError(f"by is {by!r}; choose from {', '.join(KEYS)}")
    staged = partial(_staged, sessions=sessions, turns=turns, rerank=rerank)
    return rank(bench, _scored(bench, by, level, staged), level=level, k=k)


def _scored(
    bench: Bench, by: str, level: Level, staged: Callable[..., np.ndarray]
) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
    """Give the scores of each scope: rows of the queries, place of the documents, scores (q, n)."""
    summaries = summary_vectors(bench) if by in ("summary", "fused") else None
    if by == "summary" and summaries is None:
        raise DataError(f"no session of {bench.name!r} has a summary; choose by='fused', 'document' or 'turn'")
    for (rows, turns, dense), (_, _, words), (_, sessions, documents) in zip(
        dense_scores(bench, level="turn"),
        bm25_scores(bench, level="turn"),
        bm25_scores(bench, level="session"),
        strict=True,
    ):
        group, n_sessions = bench.documents("turn").session[turns] - sessions.start, sessions.stop - sessions.start
        keys = {"turn": [best_of(dense, group, n_sessions), best_of(words, group, n_sessions)], "document": [documents]}
        if summaries is not None:
            keys["summary"] = [cosines(bench.query_vectors[rows], summaries[sessions])]
        used = chain(*keys.values()) if by == "fused" else keys[by]
        of_sessions = np.sum([standardised(key) for key in used], axis=0)
        if level == "session":
            yield rows, sessions, of_sessions
        else:
            lots = bench.documents("turn").lot[turns], bench.documents("session").lot[sessions]
            yield rows, turns, staged(group, standardised(dense) + standardised(words), of_sessions, lots)


def _staged(
    group: np.ndarray, of_turns: np.ndarray, of_sessions: np.ndarray, lots: tuple[np.ndarray, np.ndarray],
    *, sessions: int, turns: int, rerank: bool,
) -> np.ndarray:  # fmt: skip
    """Give the scores of the ranking (q, n): the turns that both stages chose before the others.

    :param group: (n,) number of each turn's session within the scope.
    :param of_turns: (q, n); ``of_sessions``: (q, m).
    :param lots: (n,) and (m,) the order of those that tie.
    """
    # A session without turns has nothing to give to the second stage.
    occupied = np.isin(np.arange(of_sessions.shape[1]), group)
    session_place = places(np.where(occupied, of_sessions, -np.inf), lots[1])[:, group]
    turn_place = places_within(of_turns, group, lots[0])
    chosen = (session_place < sessions) & (turn_place < turns)
    fused = standardised(of_turns) + standardised(of_sessions)[:, group]
    value = fused if rerank else -(session_place * fused.shape[1] + turn_place).astype(np.float64)
    lowest = np.where(chosen, value, np.inf).min(axis=1, keepdims=True)
    return np.where(chosen, value - lowest + fused.max(axis=1, keepdims=True) + 1, fused)


@once
def summary_vectors(bench: Bench) -> np.ndarray | None:
    """Embed the sessions' summaries, once for a bench; a session without one has the vector of its document.

    :returns: (n sessions, d) float32 unit rows in the order of the session documents; ``None`` where no session has a
        summary.
    :raises DataError: when the bench was made without an encoder.
    """
    texts = _summaries(bench)
    present = texts != ""
    if not present.any():
        return None
    vectors = bench.documents("session").vectors().copy()
    vectors[present.to_numpy()] = bench.embedder().encode(texts.filter(present).to_list())
    return vectors


def _summaries(bench: Bench) -> pl.Series:
    """Read the summaries in the order of the session documents; empty where there is none."""
    return bench.sessions.sort("scope", "n", maintain_order=True)["summary"].fill_null("").str.strip_chars()


def summary_storage(bench: Bench) -> pl.DataFrame:
    """Count the bytes of turns and what summaries add to them: texts in UTF-8, vectors as the bench holds them.

    :returns: ``what`` (``turns``, ``summaries``), ``n``, ``text_bytes``, ``vector_bytes``, ``share`` (of the bytes of
        the turns).

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.two_stage import summary_storage
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing:64")
    >>> summary_storage(bench).select("what", "n", "vector_bytes", "share").rows()
    [('turns', ..., ..., 1.0), ('summaries', 0, 0, 0.0)]
    """
    documents = bench.documents("turn")
    summaries = _summaries(bench)
    n = np.array([len(documents.ids), (summaries != "").sum()])
    both = (pl.Series(documents.texts, dtype=pl.String), summaries)
    text_bytes = np.array([texts.str.len_bytes().sum() for texts in both])
    vector_bytes = n * (0 if documents.embeddings is None else documents.embeddings[:1].nbytes)
    total = text_bytes + vector_bytes
    columns = {"n": n, "text_bytes": text_bytes, "vector_bytes": vector_bytes, "share": total / total[0]}
    return pl.DataFrame({"what": ["turns", "summaries"], **columns})
