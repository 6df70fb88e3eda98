"""Looking through all turns of a large scope for what BM25, vectors and late interaction find, without reading them.

For every word and every token of the scope it is kept in which turns it stands, and of every turn's vector its signs.
BM25 is then what it is, and a cosine about what it is; late interaction takes for a token of a turn the mean of all
tokens of that number in the scope. That the best match of a question's token is no better than usual says nothing, so
only what is above the usual counts.

Source: candidates of late interaction by inverted lists of centroids: Santhanam et al., PLAID (CIKM 2022), section 4;
here the tokens of one number are a centroid, so that nothing has to be learned. Signs of vectors: Gao and Long, RaBitQ
(SIGMOD 2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from memlab.embed.tokens import TokenVectors, rotated, signs, token_cosines
from memlab.records import Level
from memlab.retrieve.bm25 import OF_SESSIONS
from memlab.retrieve.index import ScopeWords, Whole, rarity
from memlab.store.postings import Posting, Shared

NEIGHBOURS, COMMON = 16, 0.1
"""Numbers of tokens that are looked up for a token of a question, none of which stands in more of the turns."""

BLOCK = 1 << 15
"""Turns whose signs are compared at a time, few enough to stay in the processor's cache."""


def nearest(vector: np.ndarray, codes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the turns of a scope that are nearest by meaning, by the signs of their vectors.

    :param vector: (1, d) of the question.
    :param codes: (w, n) of the turns, see :class:`memlab.store.postings.Shared`.
    :returns: their places, k or more where some are as near, and about their cosines.
    """
    width = -(-vector.shape[1] // 8)
    asked = np.pad(signs(vector)[0], (0, -width % 8)).view(np.uint64)
    apart = np.zeros(codes.shape[1], np.uint16)
    for start in range(0, len(apart), BLOCK):
        part = slice(start, start + BLOCK)
        for own, row in zip(asked, codes, strict=True):
            apart[part] += np.bitwise_count(row[part] ^ own)
    least = int(np.searchsorted(np.cumsum(np.bincount(apart)), k))  # so far apart that there are k
    places = np.flatnonzero(apart <= least)
    near = np.ascontiguousarray(codes[:, places].T).view(np.uint8)[:, :width]
    return places, token_cosines(vector, near)[0]


def by_words(
    level: Level, words: Sequence[str], found: Mapping[str, Posting], lengths: np.ndarray, whole: Whole
) -> np.ndarray:
    """Score all turns or sessions of a scope by BM25: (n,) float32.

    :param words: of a question.
    :param found: the postings of those that the scope has, by ``level:word``.
    :param lengths: (n,) words of each turn or session.
    """
    counted = ScopeWords.of([], whole=whole.words[level])
    n, mean = counted.n, counted.mean_length
    k1, b = counted.normalisation if level == "turn" else OF_SESSIONS
    scores = np.zeros(len(lengths), np.float32)
    for word in words:
        if (posting := found.get(f"{level}:{word}")) is not None:
            _, at, counts = posting
            norm = k1 * (1 - b + b * lengths[at] / mean)
            scores[at] += rarity(np.array(float(len(at))), n) * counts / (counts + norm)
    return scores


def words_at(
    level: Level, words: Sequence[str], found: Mapping[str, Posting], places: np.ndarray, lengths: np.ndarray,
    whole: Whole,
) -> ScopeWords:  # fmt: skip
    """Give the statistics of some words in some turns or sessions of a scope, without splitting their texts.

    :param found: as for :func:`by_words`.
    :param places: (m,) of these turns or sessions in the scope.
    """
    from scipy.sparse import csr_array

    number = {word: i for i, word in enumerate(dict.fromkeys(words))}
    counts = np.zeros((len(number), len(places)))
    for word, row in number.items():
        if (posting := found.get(f"{level}:{word}")) is not None:
            at = np.minimum(np.searchsorted(posting[1], places), len(posting[1]) - 1)
            counts[row] = np.where(posting[1][at] == places, posting[2][at], 0)
    return ScopeWords(number, csr_array(counts), lengths[places], np.ones(len(places)), whole.words[level])


def standard(scores: np.ndarray) -> np.ndarray:
    """Standardise: (n,)."""
    made = scores - scores.mean()
    made /= max(float(scores.std()), 1e-9)
    return made


class Lookup:
    """Which numbers of tokens come near to those of a question.

    :param asked: the tokens of one question.
    :param shared: of the scope, with its tokens and their means.
    """

    def __init__(self, asked: TokenVectors, shared: Shared, whole: Whole) -> None:
        n, there = whole.words["turn"].n, shared.tokens
        share = np.minimum(whole.tokens[there] / n, 1.0)
        weights = rarity(whole.tokens, n)[np.minimum(asked.ids, len(whole.tokens) - 1)]
        self.near: list[tuple[float, np.ndarray, np.ndarray]] = []
        cosines = rotated(asked.vectors) @ shared.means[:, : asked.vectors.shape[1]].T
        for weight, row in zip(weights / max(weights.sum(), 1e-9), cosines, strict=True):
            order = np.argsort(-row)
            each, best = share[order], row[order]
            # The mean of the best match in a turn, as if tokens stood in turns independently of each other.
            usual = float(best * each @ np.r_[1.0, np.cumprod(1 - each)[:-1]])
            first = np.flatnonzero((each <= COMMON) & (best > usual))[:NEIGHBOURS]
            self.near.append((float(weight), there[order[first]], best[first] - usual))

    def terms(self) -> list[str]:
        """Name the terms that are looked up."""
        return [f"token:{token}" for token in {int(t) for _, tokens, _ in self.near for t in tokens}]

    def scores(self, found: Mapping[str, Posting], n: int) -> np.ndarray:
        """Score all n turns by how much better than usual their tokens match: (n,) float32."""
        scores, best = np.zeros(n, np.float32), np.zeros(n, np.float32)
        weighed = np.empty_like(best)  # one place for all: to ask for new ones takes longer than to fill them
        for weight, tokens, gains in self.near:
            for token, gain in zip(reversed(tokens), reversed(gains), strict=True):  # the nearest last
                if f"token:{token}" in found:
                    best[found[f"token:{token}"][1]] = gain
            scores += np.multiply(best, np.float32(weight), out=weighed)  # sooner than to sort out which were touched
            best[:] = 0.0
        return scores
