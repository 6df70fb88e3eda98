"""Looking through all turns of a large scope for what BM25 and late interaction would find, without reading them.

For every word and every token of the scope it is kept in which turns it stands. BM25 is then what it is; late
interaction takes for a token of a turn the mean of all tokens of that number in the scope. That the best match of a
question's token is no better than usual says nothing, so only what is above the usual counts.

Source: candidates of late interaction by inverted lists of centroids: Santhanam et al., PLAID (CIKM 2022), section 4;
here the tokens of one number are a centroid, so that nothing has to be learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from memlab.embed.tokens import TokenVectors, rotated
from memlab.records import LEVELS, Level
from memlab.retrieve.arrays import starts
from memlab.retrieve.bm25 import OF_SESSIONS
from memlab.retrieve.index import ScopeWords, Whole, rarity
from memlab.retrieve.late import ScopeTokens, token_pairs
from memlab.store.postings import Posting

NEIGHBOURS, COMMON = 16, 0.1
"""Numbers of tokens that are looked up for a token of a question, none of which stands in more of the turns."""

MEAN_OF = 256
"""Tokens of a number whose mean is taken for all."""


class Gathering:
    """Where the words and tokens of a scope stand, gathered some turns at a time, in the order of the scope."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.lengths: dict[Level, np.ndarray] = {level: np.zeros(0, np.int32) for level in LEVELS}
        self._number: dict[str, int] = {}
        self._parts: dict[str, list[tuple[np.ndarray, ...]]] = {}
        self._sums, self._seen = np.zeros((0, 0), np.float32), np.zeros(0, np.int64)

    def words(self, level: Level, texts: Sequence[Sequence[str]]) -> None:
        """Add the words of turns or of sessions."""
        number, lengths = self._number, np.array([len(own) for own in texts], np.int64)
        terms = np.array([number.setdefault(word, len(number)) for own in texts for word in own], np.int64)
        size = 1 + len(number)
        pairs, counts = np.unique(np.repeat(np.arange(len(texts)), lengths) * size + terms, return_counts=True)
        self._add(level, pairs % size, len(self.lengths[level]) + pairs // size, counts)
        self.lengths[level] = np.r_[self.lengths[level], lengths.astype(np.int32)]

    def turns(self, ids: Sequence[str], read: ScopeTokens | None) -> None:
        """Add the ids of turns, and their tokens."""
        if read is not None:
            turn, token = token_pairs(read.texts, read.inverse, read.start)
            self._add("token", token, len(self.ids) + turn, np.ones(len(turn)))
            self._mean(read.texts)
        self.ids.extend(ids)

    def _add(self, kind: str, term: np.ndarray, at: np.ndarray, count: np.ndarray) -> None:
        small = term.astype(np.int32), at.astype(np.int32), np.minimum(count, 255).astype(np.uint8)
        self._parts.setdefault(kind, []).append(small)

    def _mean(self, texts: TokenVectors) -> None:
        size, width = 1 + int(texts.ids.max(initial=-1)), 8 * texts.vectors.shape[1]
        more = max(0, size - len(self._seen))
        self._seen = np.pad(self._seen, (0, more))
        self._sums = np.pad(self._sums, ((0, more), (0, width - self._sums.shape[1])))
        few = np.flatnonzero(self._seen[texts.ids] < MEAN_OF)
        if len(few):
            order = few[np.argsort(texts.ids[few], kind="stable")]
            first = starts(texts.ids[order])
            bits = np.unpackbits(texts.vectors[order], axis=1).astype(np.float32)
            self._sums[texts.ids[order[first]]] += np.add.reduceat(bits, first, axis=0)
            self._seen += np.bincount(texts.ids[order], minlength=len(self._seen))

    def means(self) -> np.ndarray:
        """Give the mean signs of the tokens of each number: (v, d) from -1 to 1; 0 for those that are not there."""
        seen = self._seen[:, None]
        return np.where(seen > 0, 2 * self._sums / np.maximum(seen, 1) - 1, 0)

    def terms(self) -> Iterator[Posting]:
        """Give each term with where it stands: ``turn:word``, ``session:word`` and ``token:number``."""
        words = list(self._number)
        for kind, parts in self._parts.items():
            term, at, count = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.argsort(term, kind="stable")
            ends = np.r_[starts(term[order]), len(order)]
            for first, end in pairwise(ends):
                of = int(term[order[first]])
                name = of if kind == "token" else words[of]
                yield f"{kind}:{name}", at[order[first:end]], count[order[first:end]]


def by_words(
    level: Level, terms: Sequence[str], found: Mapping[str, Posting], lengths: np.ndarray, whole: Whole
) -> np.ndarray:
    """Score all turns or sessions of a scope by BM25: (n,) float32.

    :param terms: of a question.
    :param found: the postings of those that the scope has.
    :param lengths: (n,) words of each turn or session.
    """
    counted = ScopeWords.of([], whole=whole.words[level])
    n, mean = counted.n, counted.mean_length
    k1, b = counted.normalisation if level == "turn" else OF_SESSIONS
    scores = np.zeros(len(lengths), np.float32)
    for term in terms:
        if term in found:
            _, at, counts = found[term]
            norm = k1 * (1 - b + b * lengths[at] / mean)
            scores[at] += rarity(np.array(float(len(at))), n) * counts / (counts + norm)
    return scores


def standard(scores: np.ndarray) -> np.ndarray:
    """Standardise: (n,)."""
    made: np.ndarray = (scores - scores.mean()) / max(float(scores.std()), 1e-9)
    return made


class Lookup:
    """Which numbers of tokens come near to those of a question.

    :param asked: the tokens of one question.
    :param means: as :meth:`Gathering.means` gives them.
    """

    def __init__(self, asked: TokenVectors, means: np.ndarray, whole: Whole) -> None:
        n = whole.words["turn"].n
        share = np.minimum(whole.tokens[: len(means)] / n, 1.0)
        weights = rarity(whole.tokens, n)[np.minimum(asked.ids, len(whole.tokens) - 1)]
        self.near: list[tuple[float, np.ndarray, np.ndarray]] = []
        there = np.flatnonzero(share)
        cosines = rotated(asked.vectors) @ means[there, : asked.vectors.shape[1]].T.astype(np.float32)
        for weight, row in zip(weights / max(weights.sum(), 1e-9), cosines, strict=True):
            order = np.argsort(-row)
            each, best = share[there[order]], row[order]
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
        for weight, tokens, gains in self.near:
            for token, gain in zip(reversed(tokens), reversed(gains), strict=True):  # the nearest last
                if f"token:{token}" in found:
                    best[found[f"token:{token}"][1]] = gain
            scores += np.float32(weight) * best  # all turns: sooner than to sort out which were touched
            best[:] = 0.0
        return scores
