"""Diversity: candidates that are like those taken already come later, in three ways."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from memlab.errors import DataError, at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.select.candidates import Candidates, chunks, each, reordered

NO_VOLUME = 1e-5
"""The share of a candidate's own variance below which float32 cannot tell it from none."""
MOST_SHARED = 4_000
"""So many documents are compared with each other at once at most, for memory: 64 MB."""
_ROUNDING = 1e-6
_Taken = tuple[np.ndarray, np.ndarray]
_Near = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]


@stage
def mmr(run: Run, bench: Bench, *, lambda_: float = 0.7, k: int = 50, candidates: int = 200) -> Run:
    """Take, ``k`` times, the candidate of best λ · relevance − (1 − λ) · similarity to the nearest one taken.

    Relevance is the run's score scaled to [0, 1] within the query, so that λ means the same after any stage;
    similarity is the cosine of the embeddings.

    :param lambda_: 1 is pure relevance, 0 pure diversity.
    :param k: how many to take; what is not taken follows in its old order.
    :param candidates: how many of the run's first documents to choose from.
    :raises DataError: for λ outside [0, 1], or without embeddings.

    Source: Carbonell and Goldstein, The use of MMR (SIGIR 1998).

    >>> from memlab import retrieve, sample, select
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> select.mmr(plain, bench, lambda_=1.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    if not 0 <= lambda_ <= 1:
        raise DataError(f"lambda_ is {lambda_}; it lies between 0 (pure diversity) and 1 (pure relevance)")
    at_least(1, k=k)
    vectors = bench.documents(run.level).vectors()
    choices: list[np.ndarray] = []
    for _, some in chunks(run, bench, candidates):
        relevance = np.where(some.mask, lambda_ * some.relevance, -np.inf)
        first, near = _likeness(some, vectors)
        bounds = relevance - (1 - lambda_) * first
        choices += _lazily(bounds, some, partial(_marginal, near, relevance, lambda_), k)
    return reordered(run, bench, choices)


def _lazily(
    bounds: np.ndarray, some: Candidates, take: Callable[[np.ndarray, np.ndarray, int], _Taken], k: int
) -> list[np.ndarray]:
    """Choose among the few candidates of the best bounds, and among more where another could have been taken.

    What a candidate adds never grows as more are taken, nor does what the best one adds: nothing whose bound is below
    the value of the last one taken can be among them.

    :param bounds: (q, c) the most that each candidate adds once the first, which is the most relevant, is taken.
    :param take: gives places (r, k) and values (r, k) from numbers of queries (r, 1) and places of candidates (r, m).
    """
    n, width = bounds.shape
    bounds[:, 0], k = np.inf, min(k, width)
    choices: list[np.ndarray] = [np.zeros(0, np.int64)] * n
    rows, few = np.arange(n), min(2 * k + 8, width)
    while len(rows):
        order = np.argpartition(-bounds[rows], min(few, width - 1), axis=1)
        front = np.sort(order[:, :few], axis=1)
        left = bounds[rows, order[:, few]] if few < width else np.full(len(rows), -np.inf)
        taken, values = take(rows[:, None], front, k)
        sure = (left == -np.inf) | (values[:, -1] > left + _ROUNDING)
        for row, places, value in zip(rows[sure], taken[sure], values[sure], strict=True):
            choices[row] = places[(value > -np.inf) & some.mask[row, places]]
        # As many as the values found let compete, most often enough.
        rivals = (bounds[rows] >= values[:, -1:] - _ROUNDING).sum(axis=1).max(where=~sure, initial=few)
        rows, few = rows[~sure], min(int(rivals) + 8, width)
    return choices


def _likeness(some: Candidates, vectors: np.ndarray) -> tuple[np.ndarray, _Near]:
    """Give the cosines (q, c) with the first candidate of each query, and what gives those among some candidates.

    Documents that many queries share are compared once, where that is less than comparing each query's own.
    """
    here = np.zeros(len(vectors), bool)
    here[some.at] = True
    documents, place = np.flatnonzero(here), (np.cumsum(here) - 1)[some.at]
    shared = 2 * len(documents) ** 2 <= min(place.size * place.shape[1], 2 * MOST_SHARED**2)
    # float64, then rounded: equal texts are equally similar only so, whatever the shape of the batch.
    embedded = vectors[documents].astype(np.float64)
    cosine = (embedded @ (embedded if shared else embedded[place[:, 0]]).T).astype(np.float32)

    def near(rows: np.ndarray, front: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        at, each = place[rows, front], np.arange(len(rows))
        if shared:
            return lambda best: cosine[at[each, best][:, None], at]
        own = embedded[at]
        similarity = (own @ own.transpose(0, 2, 1)).astype(np.float32)
        return lambda best: similarity[each, best]

    first = cosine[:, place[:, 0]] if shared else cosine
    return np.take_along_axis(first.T, place, axis=1), near


def _marginal(
    near: _Near, relevance: np.ndarray, lambda_: float, rows: np.ndarray, front: np.ndarray, k: int
) -> _Taken:
    cosine, left, each = near(rows, front), relevance[rows, front], np.arange(len(rows))
    nearest = np.full(left.shape, -np.inf)
    taken, values = np.zeros((len(rows), k), np.int64), np.zeros((len(rows), k))
    for step in range(k):
        # The first is the most relevant: with nothing taken there is nothing to be similar to.
        value = left if step == 0 else left - (1 - lambda_) * nearest
        best = value.argmax(axis=1)
        taken[:, step], values[:, step] = front[each, best], value[each, best]
        left[each, best] = -np.inf
        nearest = np.maximum(nearest, cosine(best))
    return taken, values


@stage
def dpp(run: Run, bench: Bench, *, diversity: float = 0.2, k: int = 50, candidates: int = 200) -> Run:
    """Take, ``k`` times, the candidate that adds most volume: relevant, and not made up of what is taken.

    Greedy MAP inference over the kernel wᵢ · cos(i, j) · wⱼ with w = exp((1 − diversity) · z), where z is the run's
    score standardised over the query's candidates. MMR looks at the nearest document taken, a determinant at all of
    them together. A candidate that adds no volume, such as a copy, is not taken but follows in the old order.

    :param diversity: 0 is the ranking as it was, 1 pure diversity; ``k`` and ``candidates`` as in :func:`mmr`.
    :raises DataError: for diversity outside [0, 1], a count below 1, or without embeddings.

    Source: Chen, Zhang and Zhou, Fast greedy MAP inference for determinantal point process (NeurIPS 2018), as
    implemented in pyversity.

    >>> from memlab import retrieve, sample, select
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> select.dpp(plain, bench, diversity=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    _check(diversity, k)
    if diversity == 0:
        return reordered(run, bench, [np.zeros(0, np.int64)] * run.frame["query_id"].n_unique())
    vectors = bench.documents(run.level).vectors()
    choices: list[np.ndarray] = []
    for _, some in chunks(run, bench, candidates):
        weight = _weights(some, 1 - diversity)
        first, near = _likeness(some, vectors)
        bounds = np.where(some.mask, weight**2 * (1 - np.minimum(first.astype(np.float64) ** 2, 1)), -np.inf)
        choices += _lazily(bounds, some, partial(_volume, near, weight), k)
    return reordered(run, bench, choices)


def _weights(some: Candidates, beta: float) -> np.ndarray:
    """Give exp(β · z) of relevance standardised over each query's candidates; 0 where padded."""
    share = some.mask / some.mask.sum(axis=1, keepdims=True)
    centred = some.relevance - (some.relevance * share).sum(axis=1, keepdims=True)
    spread = np.sqrt((centred**2 * share).sum(axis=1, keepdims=True))
    z = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > _ROUNDING)
    return np.where(some.mask, np.exp(beta * z), 0.0)


def _volume(near: _Near, weight: np.ndarray, rows: np.ndarray, front: np.ndarray, k: int) -> _Taken:
    cosine, heavy, each = near(rows, front), weight[rows, front], np.arange(len(rows))
    own = np.where(heavy > 0, heavy**2, -np.inf)
    left, volume = own.copy(), np.zeros((len(rows), k, own.shape[1]))
    taken, values = np.zeros((len(rows), k), np.int64), np.zeros((len(rows), k))
    for step in range(k):
        best = left.argmax(axis=1)
        value = left[each, best]
        # What rounding leaves of a volume that is used up says nothing about a candidate: its old place does.
        adds = value > NO_VOLUME * np.maximum(own[each, best], 0.0)
        taken[:, step], values[:, step] = front[each, best], np.where(adds, value, -np.inf)
        kernel = heavy * cosine(best) * heavy[each, best][:, None]
        spanned = (volume[each, :step, best][:, None] @ volume[:, :step])[:, 0]
        share = np.divide(
            1.0, np.sqrt(value, where=adds, out=np.ones_like(value)), where=adds, out=np.zeros_like(value)
        )
        volume[:, step] = added = (kernel - spanned) * share[:, None]
        left = np.where(left > -np.inf, np.maximum(left - added**2, 0.0), left)
        left[each, best] = -np.inf
    return taken, values


@stage
def msd(run: Run, bench: Bench, *, diversity: float = 0.05, k: int = 50, candidates: int = 200) -> Run:
    """Take, ``k`` times, the candidate of best (1 − diversity) · relevance + diversity · Σ distance to all taken.

    Relevance is as in :func:`mmr`, distance 1 − cosine of the embeddings. The sum grows with every document taken while
    relevance does not, so that late places go to outliers at almost any diversity: MMR is milder.

    :param diversity: 0 is the ranking as it was, 1 pure diversity; ``k`` and ``candidates`` as in :func:`mmr`.
    :raises DataError: for diversity outside [0, 1], a count below 1, or without embeddings.

    Source: Borodin, Lee and Ye, Max-sum diversification, monotone submodular functions and dynamic updates (PODS
    2012), as implemented in pyversity.

    >>> from memlab import retrieve, sample, select
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> select.msd(plain, bench, diversity=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    _check(diversity, k)
    return each(run, bench, candidates, partial(_distances, k=k, diversity=diversity), task="MSD")


def _distances(embedded: np.ndarray, relevance: np.ndarray, *, k: int, diversity: float) -> np.ndarray:
    from pyversity import msd as greedy

    if diversity == 0:
        return np.arange(min(k, len(relevance)))
    return greedy(embedded, relevance, k, diversity=diversity).indices


def _check(diversity: float, k: int) -> None:
    if not 0 <= diversity <= 1:
        raise DataError(f"diversity is {diversity}; it lies between 0 (the ranking as it was) and 1 (pure diversity)")
    at_least(1, k=k)
