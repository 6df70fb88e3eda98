"""BM25 over some documents of a scope, with the statistics of all of them, is BM25 over all."""

from __future__ import annotations

import numpy as np

from memlab.text.bm25_formula import ScopeWords, WordStatistics

RNG = np.random.default_rng(0)
VOCABULARY = np.array(["tea", "train", "rain", "piano", "soup", "salt", "book", "lamp"])
CHANCES = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
TEXTS = [RNG.choice(VOCABULARY, n, p=CHANCES).tolist() for n in RNG.integers(1, 9, 400)]
ASKED = [["tea", "book"], ["lamp"], ["piano", "rain", "rain"], ["unknown"]]


def test_some_documents_score_as_among_all() -> None:
    every, some = ScopeWords.of(TEXTS), ScopeWords.of(TEXTS[:60], WordStatistics.of(TEXTS))
    assert every.k1_and_b == some.k1_and_b
    assert every.mean_n_words_or_one == some.mean_n_words_or_one
    assert some.n == 400
    norm = every.k1_and_b
    np.testing.assert_allclose(
        some.scores(ASKED, *norm), every.scores(ASKED, *norm)[:, :60], rtol=1e-6
    )
    words = [*VOCABULARY, "unknown"]
    assert every.document_frequency_of(words).tolist() == some.document_frequency_of(words).tolist()


def test_the_scores_of_documents_that_are_not_at_hand_are_estimated() -> None:
    whole = WordStatistics.of(TEXTS)
    some, norm = ScopeWords.of(TEXTS[:60], whole), ScopeWords.of(TEXTS).k1_and_b
    mean, square = some.mean_and_mean_square_of_absent_scores(ASKED, *norm)
    others = ScopeWords.of(TEXTS).scores(ASKED, *norm)[:, 60:].astype(np.float64)
    np.testing.assert_allclose(mean[:, 0], others.mean(axis=1), rtol=0.1, atol=1e-9)
    np.testing.assert_allclose(square[:, 0], (others**2).mean(axis=1), rtol=0.2, atol=1e-9)


def test_statistics_follow_documents_that_come_and_go() -> None:
    changed = WordStatistics.of(TEXTS[:300]).changed(
        WordStatistics.of(TEXTS[300:]), WordStatistics.of(TEXTS[:100])
    )
    expected = WordStatistics.of(TEXTS[100:])
    assert (changed.n, changed.length, changed.squares) == (
        expected.n,
        expected.length,
        expected.squares,
    )
    assert +changed.frequency == expected.frequency
    lengths = [len(words) for words in TEXTS[100:]]
    np.testing.assert_allclose(changed.mean_n_words_or_one, np.mean(lengths))
    np.testing.assert_allclose(changed.variance_of_n_words, np.var(lengths))
