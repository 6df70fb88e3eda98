"""BM25 over turns or session documents, each scope with its own statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.language.analysis import tokenize
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve._indexed import from_store
from memlab.retrieve.bench import Bench
from memlab.retrieve.index import ScopeWords
from memlab.retrieve.ranking import rank

if TYPE_CHECKING:
    from memlab.store import MemoryStore

K1: dict[Level, float] = {"turn": 0.9, "session": 1.5}
PASSAGE_B = 0.4
DOCUMENT_B = 0.75


def normalisation(words: ScopeWords, level: Level) -> tuple[float, float]:
    """Choose k1 and b for the documents of a scope.

    Turns of people who chat are all short, and their length says little. Where an assistant writes pages between them,
    its turns hold every word, and must be read against their length. So b for turns is the squared coefficient of
    variation of their lengths, from the usual b of passages (0.4), which holds where people talk to each other (about
    0.25), to 1, where lengths spread as wide as their mean. Sessions have the usual b of documents.

    Source: k1 and b of turns: the usual ones for passages (Anserini); k1 and b of sessions: Robertson and Zaragoza
    (2009); why texts that are long by verbosity need normalisation and others do not: Robertson and Walker (SIGIR
    1994). The rule for b was measured over k1 from 0.5 to 3 and b from 0.2 to 1, turns all@10, against k1 = 0.9 and
    b = 0.4: LoCoMo (spread .29) and pooled LongMemEval (.24), whose people write alike, are as they were; LoCoMo with
    one speaker's turns drawn out to 500 characters (.7) .571 → .576 and to 3,000 (1.3) .487 → .513, LongMemEval with
    long answers between (1.1) .478 → .659.
    """
    if level == "session":
        return K1[level], DOCUMENT_B
    lengths = words.lengths
    spread = float(lengths.var() / lengths.mean() ** 2) if lengths.any() else 0.0
    return K1[level], min(1.0, max(PASSAGE_B, spread))


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
    """Rank documents by BM25 (Lucene's variant) over stemmed words without stop words, in the dataset's language.

    Document frequencies are those of the scope: a memory knows nothing of other people's. Documents without a word
    of the query follow at score 0 in order of time, so that the ranking reaches ``k`` places where there are as many.

    :param k1: term frequency saturation; by default 0.9 for turns, 1.5 for sessions.
    :param b: length normalisation; by default 0.75 for sessions, and for turns what their lengths in the scope ask for,
        see :func:`normalisation`.
    :param path: ``exact`` by sparse products, ``indexed`` by LanceDB's full-text index: turns only, its own k1 and b,
        document frequencies of the whole table, and only documents that hold a word of the query.
    :raises DataError: for k1 or b that BM25 or the path cannot use, or for another path.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009); Kamphuis, de Vries, Boytsov and Lin,
    Which BM25 Do You Mean? (ECIR 2020), for Lucene's variant.

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
    if (k1 is not None and k1 < 0) or (b is not None and not 0 <= b <= 1):
        raise DataError(f"k1={k1}, b={b}; BM25 needs k1 ≥ 0 and 0 ≤ b ≤ 1")
    for rows, span in bench.by_scope(level):
        words = bench.documents(level).words_in(span)
        chosen = normalisation(words, level)
        queries = [bench.query_words[row] for row in rows]
        yield rows, span, words.scores(queries, chosen[0] if k1 is None else k1, chosen[1] if b is None else b)


def _search(bench: Bench, store: MemoryStore, k: int) -> pl.DataFrame:
    # The index stems by itself, but its few stop words leave "how" and "did" in.
    split = tokenize(bench.queries["text"].to_list(), language=bench.language, stem=False)
    texts = [" ".join(words) for words in split]
    return store.search.by_text(texts, dataset=bench.name, scopes=bench.queries["scope"].to_list(), k=k)
