"""Looking through all turns of a large scope for what BM25 and late interaction would find, without reading them.

For every word and every token of the scope it is kept in which turns it stands. BM25 is then what it is; late
interaction takes for a token of a turn the mean of all tokens of that number in the scope. That the best match of a
question's token is no better than usual says nothing, so only what is above the usual counts.

Source: candidates of late interaction by inverted lists of centroids: Santhanam et al., PLAID (CIKM 2022), section 4;
here the tokens of one number are a centroid, so that nothing has to be learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from memlab.embed.tokens import TokenVectors, rotated
from memlab.retrieve.arrays import starts
from memlab.retrieve.index import PASSAGE_B, PASSAGE_K1, Counted, Whole, rarity
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
        self.lengths = np.zeros(0, np.int32)
        self._number: dict[str, int] = {}
        self._words: list[tuple[np.ndarray, ...]] = []
        self._tokens: list[tuple[np.ndarray, ...]] = []
        self._sums, self._seen = np.zeros((0, 0), np.float32), np.zeros(0, np.int64)

    def add(self, ids: Sequence[str], words: Sequence[Sequence[str]], read: ScopeTokens | None) -> None:
        """Add turns: their ids, words and tokens."""
        first, number = len(self.ids), self._number
        self.ids.extend(ids)
        lengths = np.array([len(own) for own in words], np.int64)
        self.lengths = np.r_[self.lengths, lengths.astype(np.int32)]
        terms = np.array([number.setdefault(word, len(number)) for own in words for word in own], np.int64)
        size = 1 + len(number)
        pairs, counts = np.unique(np.repeat(np.arange(len(words)), lengths) * size + terms, return_counts=True)
        self._words.append(_small(pairs % size, first + pairs // size, np.minimum(counts, 255)))
        if read is not None:
            turn, token = token_pairs(read.texts, read.inverse, read.start)
            self._tokens.append(_small(token, first + turn, np.ones(len(turn))))
            self._mean(read.texts)

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
        """Give each term with its turns: a word as ``w:word``, a token as ``t:number``."""
        for parts, names in ((self._words, [f"w:{word}" for word in self._number]), (self._tokens, None)):
            if parts:
                term, turn, count = (np.concatenate(column) for column in zip(*parts, strict=True))
                order = np.argsort(term, kind="stable")
                ends = np.r_[starts(term[order]), len(order)]
                for at, until in zip(ends[:-1], ends[1:], strict=True):
                    of = int(term[order[at]])
                    yield names[of] if names else f"t:{of}", turn[order[at:until]], count[order[at:until]]


def _small(term: np.ndarray, turn: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, ...]:
    return term.astype(np.int32), turn.astype(np.int32), count.astype(np.uint8)


def by_words(
    words: Sequence[str], found: Mapping[str, Posting], lengths: np.ndarray, counted: Counted, of: np.ndarray | None = None
) -> np.ndarray:
    """Score all turns of a scope by BM25, or all sessions: (n,) float32.

    :param words: of a question.
    :param found: the postings of those that the scope has.
    :param lengths: (n,) words of each turn or session.
    :param of: which session each turn is of.
    """
    mean = max(counted.length / counted.n, 1e-9)
    b = min(1.0, max(PASSAGE_B, (counted.squares / counted.n - mean**2) / mean**2))
    scores = np.zeros(len(lengths), np.float32)
    for word in words:
        if f"w:{word}" in found:
            _, at, counts = found[f"w:{word}"]
            if of is not None:
                first = starts(of[at])
                at, counts = of[at][first], np.add.reduceat(counts, first, dtype=np.int64)
            norm = PASSAGE_K1 * (1 - b + b * lengths[at] / mean)
            scores[at] += rarity(np.array(float(len(at))), counted.n) * counts / (counts + norm)
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
        return [f"t:{token}" for token in {int(t) for _, tokens, _ in self.near for t in tokens}]

    def scores(self, found: Mapping[str, Posting], n: int) -> np.ndarray:
        """Score all n turns by how much better than usual their tokens match: (n,) float32."""
        scores, best = np.zeros(n, np.float32), np.zeros(n, np.float32)
        for weight, tokens, gains in self.near:
            places = [found[f"t:{token}"][1] for token in tokens if f"t:{token}" in found]
            own = [gain for token, gain in zip(tokens, gains, strict=True) if f"t:{token}" in found]
            for turns, gain in zip(reversed(places), reversed(own), strict=True):  # the nearest last
                best[turns] = gain
            touched = np.concatenate([*places, np.zeros(0, np.int32)])
            # Each turn once, though several of the tokens may stand in it.
            once = np.flatnonzero(best) if len(touched) > n // 4 else np.unique(touched)
            scores[once] += weight * best[once]
            best[once] = 0.0
        return scores
