"""Diversity: candidates that are like those taken already come later, in three ways."""

from __future__ import annotations

from functools import partial

import numpy as np

from memlab.errors import DataError, at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.arrays import standardised
from memlab.retrieve.bench import Bench
from memlab.select.candidates import Candidates, chunks, each, reordered

NO_VOLUME = 1e-5
"""The share of a candidate's own variance below which float32 cannot tell it from none."""


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

    >>> from memlab import datasets, retrieve, select
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
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
        choices.extend(_marginal(some, vectors, lambda_, k))
    return reordered(run, bench, choices)


def _marginal(some: Candidates, vectors: np.ndarray, lambda_: float, k: int) -> list[np.ndarray]:
    # float64, then rounded: equal texts are equally similar only so, whatever the shape of the batch.
    embedded = vectors[some.at].astype(np.float64)
    similarity = (embedded @ embedded.transpose(0, 2, 1)).astype(np.float32)
    relevance = np.where(some.mask, lambda_ * some.relevance, -np.inf)
    rows = np.arange(len(relevance))
    nearest = np.full(relevance.shape, -np.inf)
    steps = min(k, relevance.shape[1])
    taken = np.zeros((len(relevance), steps), np.int64)
    for step in range(steps):
        # The first is the most relevant: with nothing taken there is nothing to be similar to.
        value = relevance if step == 0 else relevance - (1 - lambda_) * nearest
        best = value.argmax(axis=1)
        taken[:, step] = best
        relevance[rows, best] = -np.inf
        nearest = np.maximum(nearest, similarity[rows, best])
    counts = np.minimum(some.mask.sum(axis=1), steps)
    return [row[:n] for row, n in zip(taken, counts, strict=True)]


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

    >>> from memlab import datasets, retrieve, select
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> select.dpp(plain, bench, diversity=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    _check(diversity, k)
    return each(run, bench, candidates, partial(_volume, k=k, diversity=diversity), task="DPP")


def _volume(embedded: np.ndarray, relevance: np.ndarray, *, k: int, diversity: float) -> np.ndarray:
    from pyversity import dpp as greedy

    if diversity == 0:
        return np.arange(min(k, len(relevance)))
    with np.errstate(all="ignore"):
        choice = greedy(embedded, relevance, k, diversity=diversity)
    # What rounding leaves of a volume that is used up says nothing about a candidate: its old place does.
    own = np.exp(2 * (1 - diversity) * standardised(relevance[None].astype(np.float64))[0])
    return choice.indices[choice.selection_scores > NO_VOLUME * own[choice.indices]]


@stage
def msd(run: Run, bench: Bench, *, diversity: float = 0.05, k: int = 50, candidates: int = 200) -> Run:
    """Take, ``k`` times, the candidate of best (1 − diversity) · relevance + diversity · Σ distance to all taken.

    Relevance is as in :func:`mmr`, distance 1 − cosine of the embeddings. The sum grows with every document taken while
    relevance does not, so that late places go to outliers at almost any diversity: MMR is milder.

    :param diversity: 0 is the ranking as it was, 1 pure diversity; ``k`` and ``candidates`` as in :func:`mmr`.
    :raises DataError: for diversity outside [0, 1], a count below 1, or without embeddings.

    Source: Borodin, Lee and Ye, Max-sum diversification, monotone submodular functions and dynamic updates (PODS
    2012), as implemented in pyversity.

    >>> from memlab import datasets, retrieve, select
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
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
