"""BM25: the words of one scope's documents, how often each stands where, and its weight there.

The documents at hand may be some of many: then the statistics of all of them are given, and the
weights are those that BM25 over all of them would give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PASSAGE_K1, PASSAGE_B = 0.9, 0.4

# Questions that are scored at a time, so that sparse products stay small.
_BLOCK = 256


def idf(document_frequency: np.ndarray, n_documents: float) -> np.ndarray:
    """Give the inverse document frequency of words, as BM25 has it.

    :param document_frequency: in how many of the ``n_documents`` documents each word stands.

    >>> import numpy as np
    >>> from memlab.text.bm25_formula import idf
    >>> idf(np.array([1.0, 9.0]), 9).round(2).tolist()
    [1.9, 0.05]
    """
    values: np.ndarray = np.log1p(
        (n_documents - document_frequency + 0.5) / (document_frequency + 0.5)
    )
    return values


def number_words_and_extend_ids(
    texts: Iterable[Sequence[str]], id_by_word: dict[str, int]
) -> np.ndarray:
    """Number all words of texts, one text after the other: (t,) int64.

    New words get the next numbers.
    """
    words = list(chain.from_iterable(texts))
    for word in dict.fromkeys(words):
        id_by_word.setdefault(word, len(id_by_word))
    return np.fromiter(map(id_by_word.__getitem__, words), np.int64, len(words))


def count_known_words(texts: Sequence[Sequence[str]], id_by_word: Mapping[str, int]) -> csr_array:
    """Count the numbered words in each text: (texts, v) sparse."""
    numbers = [[id_by_word[word] for word in words if word in id_by_word] for words in texts]
    columns = np.array(list(chain.from_iterable(numbers)), dtype=np.int64)
    return _count_word_ids(columns, np.array(list(map(len, numbers)), np.int64), len(id_by_word))


def _count_word_ids(word_ids: np.ndarray, text_lengths: np.ndarray, n_words: int) -> csr_array:
    """Count the numbers of words in each text: (texts, n_words) sparse.

    :param word_ids: (t,) of all texts, one after the other; ``text_lengths`` (texts,) of each.
    """
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(len(text_lengths)), text_lengths)
    return csr_array((np.ones(len(rows)), (rows, word_ids)), shape=(len(text_lengths), n_words))


@dataclass(frozen=True, eq=False)
class WordStatistics:
    """What BM25 has to know of all documents of a scope, where only some of them are at hand.

    :param n: how many documents there are.
    :param length: their words, added up.
    :param squares: the squares of their numbers of words, added up.
    :param frequency: in how many of them each word stands.

    >>> from memlab.text.bm25_formula import WordStatistics
    >>> two = WordStatistics.of([["red", "shoe", "red"], ["shoe"]])
    >>> two.n, two.mean_n_words_or_one, two.variance_of_n_words, dict(two.frequency)
    (2, 2.0, 1.0, {'red': 1, 'shoe': 2})
    """

    n: int = 0
    length: int = 0
    squares: int = 0
    frequency: Counter[str] = field(default_factory=Counter, repr=False)

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> WordStatistics:
        """Count the words of texts that are split already."""
        lengths = []
        frequency = Counter[str]()
        for words in texts:
            lengths.append(len(words))
            frequency.update(list(dict.fromkeys(words)))
        sum_of_squares = sum(length * length for length in lengths)
        return cls(len(lengths), sum(lengths), sum_of_squares, frequency)

    def changed(self, added: WordStatistics, removed: WordStatistics) -> WordStatistics:
        """Give the statistics after some documents came and others went."""
        frequency = self.frequency.copy()
        frequency.update(added.frequency)
        frequency.subtract(removed.frequency)
        return WordStatistics(
            self.n + added.n - removed.n,
            self.length + added.length - removed.length,
            self.squares + added.squares - removed.squares,
            frequency,
        )

    @property
    def mean_n_words_or_one(self) -> float:
        """The words of a document on average; 1 where there are none."""
        return self.length / self.n if self.length else 1.0

    @property
    def variance_of_n_words(self) -> float:
        """The variance of the documents' numbers of words."""
        return self.squares / self.n - self.mean_n_words_or_one**2


@dataclass(frozen=True, eq=False)
class ScopeWords:
    """The words of one scope's documents, or of some of them.

    :param number: word → its row.
    :param counts: (v, n) sparse: how often each word stands in each document.
    :param lengths: (n,) words of each document.
    :param whole: the statistics of all documents of the scope, where these are some of them.
    """

    number: Mapping[str, int]
    counts: csr_array
    lengths: np.ndarray
    whole: WordStatistics | None = None
    _weights: dict[tuple[float, float], csr_array] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], whole: WordStatistics | None = None) -> ScopeWords:
        """Count the words of texts that are split already."""
        number: dict[str, int] = {}
        numbers = number_words_and_extend_ids(texts, number)
        lengths = np.array(list(map(len, texts)), np.int64)
        counts = _count_word_ids(numbers, lengths, len(number))
        return cls(number, counts.T.tocsr(), lengths, whole)

    @cached_property
    def n(self) -> int:
        """How many documents the scope has."""
        return len(self.lengths) if self.whole is None else self.whole.n

    @cached_property
    def mean_n_words_or_one(self) -> float:
        """The words of a document of the scope on average; 1 where there are none."""
        if self.whole is not None:
            return self.whole.mean_n_words_or_one
        return float(self.lengths.sum() / self.n) if self.lengths.any() else 1.0

    @cached_property
    def frequency(self) -> np.ndarray:
        """In how many documents of the scope each word stands: (v,)."""
        if self.whole is None:
            return np.diff(self.counts.indptr).astype(np.float64)
        return self.document_frequency_of(self.number)

    def document_frequency_of(self, words: Iterable[str]) -> np.ndarray:
        """Say in how many documents of the scope each of some words stands: (words,)."""
        if self.whole is not None:
            return np.array([self.whole.frequency[word] for word in words], np.float64)
        word_numbers = np.array([self.number.get(word, -1) for word in words], np.int64)
        return np.r_[self.frequency, 0.0][word_numbers]

    @cached_property
    def idf(self) -> np.ndarray:
        """Each word's inverse document frequency: (v,); see :func:`idf`."""
        return idf(self.frequency, self.n)

    @cached_property
    def k1_and_b(self) -> tuple[float, float]:
        """BM25's k1 and b for turns of such lengths.

        Turns of people who chat are all short, and their length says little. Where an assistant
        writes pages between them, its turns hold every word, and must be read against their length.
        So b is the squared coefficient of variation of the lengths, from the usual b of passages
        (0.4) to 1, where lengths spread as wide as their mean.

        Source: k1 and the least b: the usual ones for passages (Anserini); why texts that are long
        by verbosity need normalisation: Robertson and Walker (SIGIR 1994).
        """
        if self.whole is not None:
            variance_of_n_words = self.whole.variance_of_n_words
        else:
            variance_of_n_words = float(
                ((self.lengths - self.mean_n_words_or_one) ** 2).sum() / self.n
            )
        return PASSAGE_K1, min(
            1.0, max(PASSAGE_B, variance_of_n_words / self.mean_n_words_or_one**2)
        )

    def match_by_word_and_document(self, k1: float, b: float) -> csr_array:
        """Say how well each document matches each word: (v, n) sparse, from 0 (absent) towards 1.

        As BM25 counts it.

        :param k1: how soon further occurrences stop to count.
        :param b: how much a long document loses.
        """
        length_norms = k1 * (1 - b + b * self.lengths / self.mean_n_words_or_one)
        match_weights = self.counts.copy()
        match_weights.data = match_weights.data / (
            match_weights.data + length_norms[match_weights.indices]
        )
        return match_weights

    def score_by_word_and_document(self, k1: float, b: float) -> csr_array:
        """Give each document's BM25 score for each word alone: (v, n) sparse float64."""
        if (k1, b) not in self._weights:
            weights = self.match_by_word_and_document(k1, b)
            weights.data *= np.repeat(self.idf, np.diff(weights.indptr))
            self._weights[k1, b] = weights
        return self._weights[k1, b]

    def mean_and_mean_square_of_absent_scores(
        self, tokenized_questions: Sequence[Sequence[str]], k1: float, b: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Estimate mean and mean square of the scores of the scope's other documents: (q, 1) each.

        How many of them have a word is known. They are taken to match it as those at hand do that
        have it, and to have words independently.
        """
        question_counts = count_known_words(tokenized_questions, self.number)
        match_weights = self.match_by_word_and_document(k1, b)
        n_present = np.diff(match_weights.indptr)
        mean_scores = self.idf * match_weights.sum(axis=1) / np.maximum(n_present, 1)
        absent_shares = (self.frequency - n_present) / max(1, self.n - len(self.lengths))
        expected = question_counts @ (mean_scores * absent_shares)
        expected_square = expected**2 + question_counts.power(2) @ (
            mean_scores**2 * absent_shares * (1 - absent_shares)
        )
        return expected[:, None], expected_square[:, None]

    def scores(
        self, tokenized_questions: Sequence[Sequence[str]], k1: float, b: float
    ) -> np.ndarray:
        """Score every document for questions by BM25 (Lucene's variant): (q, n) float32."""
        question_counts = count_known_words(tokenized_questions, self.number)
        word_weights = self.score_by_word_and_document(k1, b)
        score_matrix = np.zeros((len(tokenized_questions), len(self.lengths)), np.float32)
        for block_start in range(0, len(score_matrix), _BLOCK):
            score_matrix[block_start : block_start + _BLOCK] = (
                question_counts[block_start : block_start + _BLOCK] @ word_weights
            ).toarray()
        return score_matrix
