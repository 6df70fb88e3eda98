"""The words of one scope's documents: how often each stands where, its idf, and BM25's weights from both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

PASSAGE_K1, PASSAGE_B = 0.9, 0.4

# Questions that are scored at a time, so that sparse products stay small.
_BLOCK = 256


def idf(frequency: np.ndarray, n: float) -> np.ndarray:
    """Give the inverse document frequency of words, as BM25 has it.

    :param frequency: in how many of the ``n`` documents each word stands.

    >>> import numpy as np
    >>> from memlab.retrieve.word_statistics import idf
    >>> idf(np.array([1.0, 9.0]), 9).round(2).tolist()
    [1.9, 0.05]
    """
    values: np.ndarray = np.log1p((n - frequency + 0.5) / (frequency + 0.5))
    return values


def assign_word_ids(texts: Iterable[Sequence[str]], number: dict[str, int]) -> np.ndarray:
    """Give the numbers of all words of texts, one text after the other: (t,) int64; new words get the next ones."""
    words = list(chain.from_iterable(texts))
    for word in dict.fromkeys(words):
        number.setdefault(word, len(number))
    return np.fromiter(map(number.__getitem__, words), np.int64, len(words))


def count_words(texts: Sequence[Sequence[str]], number: Mapping[str, int]) -> Any:
    """Count the numbered words in each text: (texts, v) sparse."""
    from scipy.sparse import csr_array

    numbers = [[number[word] for word in words if word in number] for words in texts]
    rows = np.repeat(np.arange(len(numbers)), [len(words) for words in numbers])
    columns = np.array(list(chain.from_iterable(numbers)), dtype=np.int64)
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(numbers), len(number)))


@dataclass(frozen=True, eq=False)
class ScopeWords:
    """The words of one scope's n documents.

    :param number: word → its row.
    :param counts: (v, n) sparse: how often each word stands in each document.
    :param lengths: (n,) words of each document.
    :param weight: (n,) how many documents each stands for.
    """

    number: Mapping[str, int]
    counts: Any
    lengths: np.ndarray
    weight: np.ndarray
    _weights: dict[tuple[float, float], Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], weight: np.ndarray | None = None) -> ScopeWords:
        """Count the words of texts that are split already."""
        number: dict[str, int] = {}
        assign_word_ids(texts, number)
        lengths = np.array([len(words) for words in texts], dtype=np.int64)
        counts = count_words(texts, number).T.tocsr()
        return cls(number, counts, lengths, np.ones(len(texts)) if weight is None else weight)

    @cached_property
    def n(self) -> float:
        """How many documents there are."""
        return float(self.weight.sum())

    @cached_property
    def mean_length(self) -> float:
        """The words of a document on average; 1 where there are none."""
        return float(self.lengths @ self.weight / self.n) if self.lengths.any() else 1.0

    @cached_property
    def frequency(self) -> np.ndarray:
        """In how many documents each word stands: (v,)."""
        frequency: np.ndarray = np.add.reduceat(
            np.r_[self.weight[self.counts.indices], 0], self.counts.indptr[:-1]
        )
        return frequency

    @cached_property
    def idf(self) -> np.ndarray:
        """Each word's inverse document frequency: (v,); see :func:`idf`."""
        return idf(self.frequency, self.n)

    @cached_property
    def normalisation(self) -> tuple[float, float]:
        """BM25's k1 and b for turns of such lengths.

        Turns of people who chat are all short, and their length says little. Where an assistant
        writes pages between them, its turns hold every word, and must be read against their length.
        So b is the squared coefficient of variation of the lengths, from the usual b of passages
        (0.4) to 1, where lengths spread as wide as their mean.

        Source: k1 and the least b: the usual ones for passages (Anserini); why texts that are long
        by verbosity need normalisation: Robertson and Walker (SIGIR 1994).
        """
        variance = (self.lengths - self.mean_length) ** 2 @ self.weight / self.n
        return PASSAGE_K1, min(1.0, max(PASSAGE_B, float(variance / self.mean_length**2)))

    def matches(self, k1: float, b: float) -> Any:
        """Say how well each document matches each word, from 0 (absent) towards 1, as BM25 counts it: (v, n) sparse.

        :param k1: how soon further occurrences stop to count.
        :param b: how much a long document loses.
        """
        norm = k1 * (1 - b + b * self.lengths / self.mean_length)
        matches = self.counts.copy()
        matches.data = matches.data / (matches.data + norm[matches.indices])
        return matches

    def weights(self, k1: float, b: float) -> Any:
        """Give each document's BM25 score for each word alone: (v, n) sparse float64."""
        if (k1, b) not in self._weights:
            weights = self.matches(k1, b)
            weights.data *= np.repeat(self.idf, np.diff(weights.indptr))
            self._weights[k1, b] = weights
        return self._weights[k1, b]

    def scores(self, texts: Sequence[Sequence[str]], k1: float, b: float) -> np.ndarray:
        """Score every document for questions by BM25 (Lucene's variant): (q, n) float32."""
        asked, weights = count_words(texts, self.number), self.weights(k1, b)
        scores = np.zeros((len(texts), len(self.lengths)), np.float32)
        for start in range(0, len(scores), _BLOCK):
            scores[start : start + _BLOCK] = (asked[start : start + _BLOCK] @ weights).toarray()
        return scores
