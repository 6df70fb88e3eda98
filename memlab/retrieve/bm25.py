"""BM25 over turns or session documents, each scope with its own statistics."""

from __future__ import annotations

import numpy as np

from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.documents import Moments
from memlab.retrieve.rankings_from_scores import Scored, rank
from memlab.text.bm25_formula import ScopeWords

OF_SESSIONS = 1.5, 0.75
"""k1 and b of documents, Robertson and Zaragoza (2009)."""


@stage
def bm25(
    bench: Bench,
    *,
    level: Level = "turn",
    k: int = 200,
    k1: float | None = None,
    b: float | None = None,
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
    return rank(bench, bm25_scores(bench, level=level, k1=k1, b=b), level=level, k=k)


def bm25_scores(
    bench: Bench, *, level: Level, k1: float | None = None, b: float | None = None
) -> Scored:
    """Score the documents of each scope by BM25: a block of scores each."""
    is_k1_valid = k1 is None or k1 >= 0
    is_b_valid = b is None or 0 <= b <= 1
    if not is_k1_valid or not is_b_valid:
        raise DataError(f"k1={k1}, b={b}; BM25 needs k1 ≥ 0 and 0 ≤ b ≤ 1")
    for rows, span in bench.by_scope(level):
        words = bench.documents(level).words_in(span)
        scope_k1, scope_b = usual_parameters(words, level)
        if k1 is not None:
            scope_k1 = k1
        if b is not None:
            scope_b = b
        queries = [bench.query_words[row] for row in rows]
        yield rows, span, words.scores(queries, scope_k1, scope_b)


def usual_parameters(words: ScopeWords, level: Level) -> tuple[float, float]:
    """Choose k1 and b of a scope, where none are given."""
    if level == "session":
        return OF_SESSIONS
    return words.k1_and_b


def absent_bm25_scores(
    bench: Bench, rows: np.ndarray, span: slice, *, level: Level
) -> Moments | None:
    """Estimate the BM25 scores of a scope's documents that are not among the candidates in a bench.

    :param rows: (q,) of the questions; ``span`` is where the candidates are.
    :returns: ``None`` where all documents are there.
    """
    documents = bench.documents(level)
    if not documents.absent:
        return None
    words = documents.words_in(span)
    queries = [bench.query_words[row] for row in rows]
    return words.mean_and_mean_square_of_absent_scores(queries, *usual_parameters(words, level))
