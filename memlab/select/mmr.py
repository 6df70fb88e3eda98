"""Maximal marginal relevance."""

from __future__ import annotations

import numpy as np

from memlab.errors import DataError
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.select._candidates import Candidates, chunks, reordered


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
    if k < 1:
        raise DataError(f"k is {k}; take at least one")
    vectors = bench.documents(run.level).vectors()
    chosen: list[np.ndarray] = []
    for _, some in chunks(run, bench, candidates):
        chosen.extend(_select(some, vectors, lambda_, k))
    return reordered(run, bench, chosen)


def _select(some: Candidates, vectors: np.ndarray, lambda_: float, k: int) -> list[np.ndarray]:
    # float64, then rounded: equal texts are equally similar only so, whatever the shape of the batch.
    embedded = vectors[some.at].astype(np.float64)
    similarity = (embedded @ embedded.transpose(0, 2, 1)).astype(np.float32)
    relevance = np.where(some.held, lambda_ * some.relevance, -np.inf)
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
    counts = np.minimum(some.held.sum(axis=1), steps)
    return [row[:n] for row, n in zip(taken, counts, strict=True)]
