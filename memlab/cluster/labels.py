"""What clusters are about, in a few of their own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from memlab.cluster.density import NOISE
from memlab.errors import DataError
from memlab.language.tokens import words
from memlab.language.words import COURTESY, NUMBERS, STOP_WORDS

_LEFT_OUT = STOP_WORDS | COURTESY | NUMBERS
CLUSTER_TERMS_SCHEMA = {"label": pl.Int64(), "size": pl.UInt32(), "terms": pl.List(pl.String())}


def cluster_terms(texts: Sequence[str], labels: np.ndarray, *, n_terms: int = 3, max_ngram: int = 2) -> pl.DataFrame:
    """Name each cluster by the words that set it apart: class-based TF-IDF.

    A cluster's texts count as one document; a term weighs its share of the cluster's words times
    log(1 + A / f), with f how often the term stands in all clusters and A the mean number of words in a cluster.
    English stop words, contractions, numbers and chat filler ("wow", "thanks") are left out, and a term that shares
    a word with one chosen before it ("pig" after "guinea pig") is passed over. Noise is left out.

    :param texts: n texts.
    :param labels: (n,) integers, ``NOISE`` = −1 for noise.
    :param n_terms: how many terms to give; fewer where a cluster has fewer.
    :param max_ngram: the most words in a term.
    :returns: ``label``, ``size``, ``terms`` (the best first), one row a cluster in order of label.
    :raises DataError: when the lengths differ.

    Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", 2022, section 3.3.

    >>> import numpy as np
    >>> from memlab.cluster import cluster_terms
    >>> texts = ["The cat sat.", "A cat and a dog.", "Trains run late.", "Night trains!", "noise"]
    >>> cluster_terms(texts, np.array([0, 0, 1, 1, -1]), n_terms=1)["terms"].to_list()
    [['cat'], ['trains']]
    """
    labels = np.asarray(labels)
    if len(texts) != len(labels):
        raise DataError(f"{len(texts)} texts but {len(labels)} labels; expected one label for each text")
    members = np.flatnonzero(labels != NOISE).tolist()
    clusters, place, sizes = np.unique(labels[members], return_inverse=True, return_counts=True)
    terms = _best_terms([texts[i] for i in members], place, n_terms, max_ngram)
    return pl.DataFrame({"label": clusters, "size": sizes, "terms": terms}, schema=CLUSTER_TERMS_SCHEMA, strict=False)


def _best_terms(texts: list[str], cluster: np.ndarray, n_terms: int, max_ngram: int) -> list[list[str]]:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    n_clusters = int(cluster.max(initial=-1)) + 1
    vectorizer = CountVectorizer(tokenizer=_telling, token_pattern=None, lowercase=False, ngram_range=(1, max_ngram))
    try:
        in_text = vectorizer.fit_transform(texts)
    except ValueError:  # scikit-learn's way to say that nothing but stop words is left
        return [[] for _ in range(n_clusters)]
    # Counted text by text and then summed, so that no term joins the end of one message to the start of the next.
    member = csr_array((np.ones(len(texts)), (cluster, np.arange(len(texts)))), shape=(n_clusters, len(texts)))
    counts = csr_array(member @ in_text)
    terms = vectorizer.get_feature_names_out()
    in_all = np.asarray(counts.sum(axis=0)).ravel()
    in_cluster = np.asarray(counts.sum(axis=1)).ravel()
    inverse = np.log1p(in_cluster.mean() / in_all)
    best = []
    for row, n_words in enumerate(in_cluster):
        entries = slice(counts.indptr[row], counts.indptr[row + 1])
        columns = counts.indices[entries]
        own, weights = terms[columns], counts.data[entries] / max(n_words, 1) * inverse[columns]
        best.append(_distinct(map(str, own[np.lexsort((own, -weights))]), n_terms))
    return best


def _telling(text: str) -> list[str]:
    return [word for word in words(text) if len(word) > 1 and not word.isdigit() and word not in _LEFT_OUT]


def _distinct(ranked: Iterable[str], n_terms: int) -> list[str]:
    chosen: list[str] = []
    for term in ranked:
        if len(chosen) == n_terms:
            break
        if not any(set(term.split()) & set(other.split()) for other in chosen):
            chosen.append(term)
    return chosen
