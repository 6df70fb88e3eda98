"""BM25 over turns or session documents, each scope with its own statistics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve._indexed import from_store
from memlab.retrieve._rank import rank
from memlab.retrieve.bench import Bench, Documents

if TYPE_CHECKING:
    from memlab.store import MemoryStore

# Short turns say little by their length, long session documents say more: the usual settings for passages (Anserini)
# and for documents (Robertson and Zaragoza 2009).
DEFAULTS: dict[Level, tuple[float, float]] = {"turn": (0.9, 0.4), "session": (1.5, 0.75)}


@stage
def bm25(
    bench: Bench,
    *,
    level: Level = "turn",
    k: int = 200,
    k1: float | None = None,
    b: float | None = None,
    path: str = "exact",
) -> Run:
    """Rank documents by BM25 (Lucene's variant) over stemmed English words without stop words.

    Document frequencies are those of the scope: a memory knows nothing of other people's. Documents without a word
    of the query follow at score 0 in order of time, so that the ranking reaches ``k`` places where there are as many.

    :param k1: term frequency saturation; by default 0.9 for turns, 1.5 for sessions.
    :param b: length normalisation; by default 0.4 for turns, 0.75 for sessions.
    :param path: ``exact`` by ``bm25s``, ``indexed`` by LanceDB's full-text index: turns only, its own k1 and b,
        document frequencies of the whole table, and only documents that hold a word of the query.
    :raises DataError: for k1 or b that BM25 or the path cannot use, or for another path.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009); Lù, BM25S (2024).

    >>> from memlab import datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder=None)
    >>> retrieve.bm25(bench, k=3).frame["rank"].max()
    3
    """
    if path == "indexed":
        if (k1, b) != (None, None):
            raise DataError("path='indexed' has the index's own k1 and b; leave them out, or use path='exact'")
        return from_store(bench, _search, level=level, k=k)
    if path != "exact":
        raise DataError(f"path is {path!r}; choose 'exact' or 'indexed'")
    return rank(bench, bm25_scores(bench, level=level, k1=k1, b=b), level=level, k=k)


def bm25_scores(
    bench: Bench, *, level: Level, k1: float | None = None, b: float | None = None
) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
    """Give the BM25 scores of each scope: rows of the queries, place of the documents, scores (q, n) float32."""
    k1 = DEFAULTS[level][0] if k1 is None else k1
    b = DEFAULTS[level][1] if b is None else b
    if k1 < 0 or not 0 <= b <= 1:
        raise DataError(f"k1={k1}, b={b}; BM25 needs k1 ≥ 0 and 0 ≤ b ≤ 1")
    queries = tokenize(bench.queries["text"].to_list())
    for rows, span in bench.by_scope(level):
        scores = np.zeros((len(rows), span.stop - span.start), np.float32)
        index = index_of(bench.documents(level), span, k1, b)
        if index is not None:
            for i, row in enumerate(rows):
                known = [token for token in queries[row] if token in index.vocab_dict]
                if known:
                    scores[i] = index.get_scores(known)
        yield rows, span, scores


def index_of(documents: Documents, span: slice, k1: float, b: float) -> Any:
    """Build the index of one scope, once; ``None`` where its documents hold no word."""
    import bm25s

    key = (k1, b, span.start)
    if key not in documents.indexes:
        corpus = tokenize(documents.texts[span])
        index = bm25s.BM25(k1=k1, b=b, method="lucene") if any(corpus) else None
        if index is not None:
            index.index(corpus, show_progress=False)
        documents.indexes[key] = index
    return documents.indexes[key]


def tokenize(texts: list[str], *, stem: bool = True) -> list[list[str]]:
    """Split texts into stemmed words without stop words, the same way for documents and queries.

    >>> from memlab.retrieve.bm25 import tokenize
    >>> tokenize(["How many doctors did I see?"])
    [['doctor', 'did']]
    """
    import bm25s

    stemmer = _stemmer() if stem else None
    return bm25s.tokenize(texts, stopwords=_stop_words(), stemmer=stemmer, return_ids=False, show_progress=False)


@lru_cache(maxsize=1)
def _stop_words() -> list[str]:
    # bm25s' own 33 words leave "what", "how" and "did" in: the words that every question has and no answer needs.
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return sorted(ENGLISH_STOP_WORDS)


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def _search(bench: Bench, store: MemoryStore, k: int) -> pl.DataFrame:
    # The index stems by itself, but its few stop words leave "how" and "did" in.
    texts = [" ".join(words) for words in tokenize(bench.queries["text"].to_list(), stem=False)]
    return store.search.by_text(texts, dataset=bench.name, scopes=bench.queries["scope"].to_list(), k=k)
