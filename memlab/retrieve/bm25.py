"""BM25 over turns or session documents, each scope with its own statistics."""

from __future__ import annotations

from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import Scored, rank

OF_SESSIONS = 1.5, 0.75
"""k1 and b of documents, Robertson and Zaragoza (2009)."""


@stage
def bm25(bench: Bench, *, level: Level = "turn", k: int = 200) -> Run:
    """Rank documents by BM25 (Lucene's variant) over stemmed words without stop words, in the dataset's language.

    Document frequencies are those of the scope: a memory knows nothing of other people's. Documents without a word
    of the query follow at score 0, so that the ranking reaches ``k`` places where there are as many. Sessions have
    k1 = 1.5 and b = 0.75; turns k1 = 0.9 and the b that their lengths ask for, see
    :attr:`memlab.retrieve.index.ScopeWords.normalisation`.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009); Kamphuis, de Vries, Boytsov and Lin,
    Which BM25 Do You Mean? (ECIR 2020), for Lucene's variant.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> retrieve.bm25(bench, k=3).frame["rank"].max()
    3
    """
    return rank(bench, bm25_scores(bench, level=level), level=level, k=k)


def bm25_scores(bench: Bench, *, level: Level) -> Scored:
    """Give the BM25 scores of each scope: rows of the queries, place of the documents, scores (q, n) float32."""
    for rows, span in bench.by_scope(level):
        words = bench.documents(level).words_in(span)
        norm = words.normalisation if level == "turn" else OF_SESSIONS
        yield rows, span, words.scores([bench.query_words[row] for row in rows], *norm)
