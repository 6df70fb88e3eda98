"""BM25 over turns or session documents, each scope with its own statistics."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.registry import Count, Share, Weight, stage
from memlab.retrieve.bench import Bench, rank_or_reuse
from memlab.retrieve.documents import MeanAndMeanSquare
from memlab.retrieve.rankings_from_scores import ScopeScores, rank_scope_scores
from memlab.text.bm25_formula import ScopeWords

OF_SESSIONS = 1.5, 0.75
"""k1 and b of documents, Robertson and Zaragoza (2009)."""


@stage
def bm25(
    bench: Bench,
    *,
    level: Level = "turn",
    k: Count = 200,
    k1: Weight | None = None,
    b: Share | None = None,
) -> Run:
    """Rank documents by BM25 (Lucene's variant) over stemmed words without stop words.

    The words are those of the dataset's language.

    Document frequencies are those of the scope: a memory knows nothing of other people's. Documents
    without a word of the query follow at score 0, so that the ranking reaches ``k`` places where
    there are as many.

    :param k1: term frequency saturation; by default 0.9 for turns, 1.5 for sessions.
    :param b: length normalisation; by default 0.75 for sessions, and for turns what their lengths
        in the scope ask for, see :attr:`memlab.text.bm25_formula.ScopeWords.k1_and_b`.
    :raises DataError: for a k1 or b that BM25 cannot use.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009); Kamphuis, de
    Vries, Boytsov and Lin, Which BM25 Do You Mean? (ECIR 2020), for Lucene's variant.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> retrieve.bm25(bench, k=3).frame["rank"].max()
    3
    """

    def rank() -> Run:
        scope_scores = bm25_scores(bench, level=level, k1=k1, b=b)
        return rank_scope_scores(bench, scope_scores, level=level, k=k)

    return rank_or_reuse(bench, ("bm25", level, k, k1, b), rank)


def bm25_scores(
    bench: Bench, *, level: Level, k1: float | None = None, b: float | None = None
) -> Iterator[ScopeScores]:
    """Score the documents of each scope by BM25: a block of scores each."""
    is_k1_valid = k1 is None or k1 >= 0
    is_b_valid = b is None or 0 <= b <= 1
    if not is_k1_valid or not is_b_valid:
        raise DataError(f"k1={k1}, b={b}; BM25 needs k1 ≥ 0 and 0 ≤ b ≤ 1")
    for query_rows, document_span in bench.by_scope(level):
        scope_words = bench.documents(level).words_in(document_span)
        scope_k1, scope_b = default_k1_and_b(scope_words, level)
        if k1 is not None:
            scope_k1 = k1
        if b is not None:
            scope_b = b
        queries = [bench.query_words[query_row] for query_row in query_rows]
        yield ScopeScores(query_rows, document_span, scope_words.scores(queries, scope_k1, scope_b))


def default_k1_and_b(scope_words: ScopeWords, level: Level) -> tuple[float, float]:
    """Choose k1 and b of a scope, where none are given."""
    if level == "session":
        return OF_SESSIONS
    return scope_words.k1_and_b


def estimate_absent_bm25_scores(
    bench: Bench, query_rows: np.ndarray, candidate_span: slice, *, level: Level
) -> MeanAndMeanSquare | None:
    """Estimate the BM25 scores of a scope's documents that are not among the candidates in a bench.

    :param query_rows: (q,) of the questions; ``candidate_span`` is where the candidates are.
    :returns: ``None`` where all documents are there.
    """
    documents = bench.documents(level)
    if not documents.n_absent:
        return None
    scope_words = documents.words_in(candidate_span)
    queries = [bench.query_words[query_row] for query_row in query_rows]
    return scope_words.mean_and_mean_square_of_absent_scores(
        queries, *default_k1_and_b(scope_words, level)
    )
