"""Greedy selection for many queries at once: maximal marginal relevance, sums of distances, determinants.

Each step takes one candidate for every query of a batch, so that few calls do the work of many.
Queries do not meet: what is chosen for one does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

Strategy = Literal["mmr", "dpp", "msd"]

_BATCH_FLOATS = 1 << 18
"""Of the vectors of a batch, one megabyte: larger ones leave a core's own cache, smaller ones take more calls."""

_EPSILON = float(np.finfo(np.float32).eps)

# Share of a candidate's own volume below which float32 cannot tell what it adds from nothing.
_NO_VOLUME = 1e-5


class Candidates(NamedTuple):
    """The candidates of one query, best first.

    :param at: (c,) rows of their vectors.
    :param relevance: (c,) scores in [0, 1].
    """

    at: np.ndarray
    relevance: np.ndarray


class _Batch(NamedTuple):
    """The candidates of b queries, filled up to the c of the longest.

    :param vectors: of each query (c of its own, d) float32 unit rows.
    :param places: of each query its part of ``cosines``.
    :param cosines: (b, c) float32, the similarities that were asked for last.
    :param relevance: (b, c) float32.
    :param taken: (b, c) bool, what cannot be taken: at first what fills up.
    :param steps: how many to take.
    """

    vectors: list[np.ndarray]
    places: list[np.ndarray]
    cosines: np.ndarray
    relevance: np.ndarray
    taken: np.ndarray
    steps: int

    def similarity(self, picks: np.ndarray) -> np.ndarray:
        """Give the cosines of one candidate of each query, (b,), with all: (b, c), until it is called again."""
        for own, place, pick in zip(self.vectors, self.places, picks.tolist(), strict=True):
            if pick < len(own):
                np.dot(own, own[pick], out=place)
        return self.cosines


def choose_diverse(
    candidates: Sequence[Candidates],
    vectors: np.ndarray,
    *,
    strategy: Strategy,
    diversity: float,
    k: int,
) -> list[np.ndarray]:
    """Choose for each query up to ``k`` of its candidates: their ranks from 0, in the order in which they are taken.

    A determinant that is used up ends a choice sooner: from there on the order would say how
    float32 rounds.

    :param vectors: (n, d) float32 unit rows.
    :param diversity: 0 is relevance alone, 1 is diversity alone.

    Source: Carbonell and Goldstein (SIGIR 1998) for ``mmr``; Borodin, Lee and Ye (PODS 2012) for
    ``msd``; Chen, Zhang and Zhou (NeurIPS 2018), algorithm 1, for ``dpp``. The definitions of
    scores, weights and similarities are those of the library pyversity 0.2.

    >>> import numpy as np
    >>> from memlab.select.greedy import Candidates, choose_diverse
    >>> asked = [Candidates(np.array([0, 1, 2]), np.array([1.0, 0.9, 0.0]))]
    >>> vectors = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    >>> [ranks.tolist() for ranks in choose_diverse(asked, vectors, strategy="mmr", diversity=0.6, k=2)]
    [[0, 2]]
    """
    choose = {"mmr": _take_marginal, "msd": _take_distant, "dpp": _take_volume}[strategy]
    choices: list[np.ndarray] = [np.zeros(0, np.int64)] * len(candidates)
    counts = [len(each.at) for each in candidates]
    if not counts:
        return []
    used, slots = np.unique(np.concatenate([each.at for each in candidates]), return_inverse=True)
    unit = unit_rows(vectors[used])
    rows = np.split(slots, np.cumsum(counts)[:-1])
    # Products this small gain nothing from a second thread, and wait for it.
    with ThreadpoolController().limit(limits=1, user_api="blas"), np.errstate(all="ignore"):
        for places in _batches(counts, vectors.shape[1]):
            own = [unit.take(rows[place], axis=0) for place in places]
            relevance = [candidates[place].relevance for place in places]
            batch = _fill_batch(own, relevance, k)
            picks, stable = choose(batch, diversity)
            for place, row, count in zip(places, picks, stable, strict=True):
                choices[place] = row[: min(count, counts[place])]
    return choices


def _batches(counts: list[int], dim: int) -> Iterator[list[int]]:
    """Cut queries into batches of similar numbers of candidates, the longest first."""
    order = np.argsort(-np.array(counts, np.int64), kind="stable").tolist()
    start = 0
    while start < len(order):
        size = max(1, _BATCH_FLOATS // (counts[order[start]] * dim))
        yield order[start : start + size]
        start += size


def _fill_batch(vectors: list[np.ndarray], relevances: list[np.ndarray], k: int) -> _Batch:
    """Put the candidates of some queries, the longest first, into arrays of one width."""
    shape = len(vectors), len(vectors[0])
    relevance = np.zeros(shape, np.float32)
    taken = np.ones(shape, bool)
    for row, each in enumerate(relevances):
        own = each.astype(np.float32)
        relevance[row, : len(own)] = own
        taken[row, : len(own)] = False
    cosines = np.zeros(shape, np.float32)
    places = []
    for place, unit in zip(cosines, vectors, strict=True):
        places.append(place[: len(unit)])
    return _Batch(vectors, places, cosines, relevance, taken, min(k, shape[1]))


def _weights(relevance: np.ndarray, strength: float) -> np.ndarray:
    """Give exp(strength · z) of relevances (c,), standardised over the candidates of a query."""
    mean, spread = float(relevance.mean()), float(relevance.std() + _EPSILON)
    weights: np.ndarray = np.exp(strength * (relevance - mean) / spread)
    return weights


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Scale rows (n, d) to length 1; zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: np.ndarray = vectors / np.maximum(length, _EPSILON)
    return unit


def _take_marginal(batch: _Batch, diversity: float) -> tuple[np.ndarray, np.ndarray]:
    """Take what is relevant and unlike the nearest that was taken: picks (b, steps), and how many count (b,)."""
    nearest = np.full(batch.relevance.shape, -np.inf, np.float32)

    def penalty(similarity: np.ndarray) -> np.ndarray:
        np.maximum(similarity, 0.0, out=similarity)
        np.minimum(similarity, 1.0, out=similarity)
        np.maximum(nearest, similarity, out=nearest)
        return nearest

    return _take_scored(batch, 1.0 - diversity, penalty)


def _take_distant(batch: _Batch, diversity: float) -> tuple[np.ndarray, np.ndarray]:
    """Take what is relevant and far from all that were taken; see :func:`_take_marginal`."""
    distance = np.zeros(batch.relevance.shape, np.float32)

    def penalty(similarity: np.ndarray) -> np.ndarray:
        np.maximum(similarity, -1.0, out=similarity)
        np.minimum(similarity, 1.0, out=similarity)
        np.add(distance, 1.0 - similarity, out=distance)
        return -distance

    return _take_scored(batch, 1.0 - diversity, penalty)


def _take_scored(
    batch: _Batch, share: float, penalty: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Take the most relevant, then step by step the best of share · relevance − (1 − share) · penalty.

    :param penalty: takes the similarities with what was taken last, (b, c), and gives what they
        cost.
    """
    rows = np.arange(len(batch.relevance))
    picks = np.zeros((len(rows), batch.steps), np.int64)
    relevance = share * batch.relevance
    relevance[batch.taken] = -np.inf
    picks[:, 0] = np.where(batch.taken, -np.inf, batch.relevance).argmax(axis=1)
    for step in range(1, batch.steps):
        last = picks[:, step - 1]
        relevance[rows, last] = -np.inf
        scores = relevance - (1.0 - share) * penalty(batch.similarity(last))
        picks[:, step] = scores.argmax(axis=1)
    return picks, np.full(len(rows), batch.steps)


def _take_volume(batch: _Batch, diversity: float) -> tuple[np.ndarray, np.ndarray]:
    """Take what adds most volume to all that were taken; see :func:`_take_marginal`."""
    weight = np.zeros(batch.relevance.shape, np.float32)
    for row, own in enumerate(batch.vectors):
        counted = batch.relevance[row, : len(own)]
        weight[row, : len(own)] = _weights(counted, 1 - diversity)
    rows = np.arange(len(weight))
    picks = np.zeros((len(rows), batch.steps), np.int64)
    gains = np.zeros((len(rows), batch.steps), np.float32)
    left = (weight * weight + _EPSILON).astype(np.float32)
    parts = np.zeros((*weight.shape, batch.steps), np.float32)
    taken = batch.taken.copy()
    for step in range(batch.steps):
        left[taken] = -np.inf
        best = left.argmax(axis=1)
        picks[:, step], gains[:, step] = best, left[rows, best]
        taken[rows, best] = True
        if step == batch.steps - 1:
            break
        own = weight * batch.similarity(best) * weight[rows, best][:, None]
        before = parts[:, :, :step]
        own -= np.matmul(before, before[rows, best][:, :, None])[:, :, 0]
        added = own / (np.sqrt(gains[:, step])[:, None] + _EPSILON)
        parts[:, :, step] = added
        left -= added * added
        np.maximum(left, 0.0, out=left)
    return picks, _count_stable(gains, np.take_along_axis(weight, picks, axis=1))


def _count_stable(gains: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Count the choices until a determinant is used up, of those with gains and weights (b, steps): (b,)."""
    used_up = ~(gains > _NO_VOLUME * weights * weights)
    return np.where(used_up.any(axis=1), used_up.argmax(axis=1), gains.shape[1])
