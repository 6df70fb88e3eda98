"""Max-sum diversification: the set whose members lie far from each other in sum."""

from __future__ import annotations

import numpy as np

from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.select._each import each
from memlab.select.dpp import check


@stage
def msd(run: Run, bench: Bench, *, diversity: float = 0.05, k: int = 50, candidates: int = 200) -> Run:
    """Take, ``k`` times, the candidate of best (1 − diversity) · relevance + diversity · Σ distance to all taken.

    Relevance is the run's score scaled to [0, 1] within the query, distance 1 − cosine of the embeddings. The sum
    grows with every document taken while relevance does not, so that late places go to outliers at almost any
    diversity: MMR, which looks at the nearest alone, is milder.

    :param diversity: 0 is the ranking as it was, 1 pure diversity.
    :param k: how many to take; what is not taken follows in its old order.
    :param candidates: how many of the run's first documents to choose from.
    :raises DataError: for diversity outside [0, 1], a count below 1, or without embeddings.

    Source: Borodin, Lee and Ye, Max-sum diversification, monotone submodular functions and dynamic updates (PODS
    2012), as implemented in pyversity.

    >>> from memlab import datasets, retrieve
    >>> from memlab.select.msd import msd
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> msd(plain, bench, diversity=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    from pyversity import msd as greedy

    check(diversity, k)

    def sum_of_distances(embedded: np.ndarray, relevance: np.ndarray) -> np.ndarray:
        if diversity == 0:
            return np.arange(min(k, len(relevance)))
        return greedy(embedded, relevance, k, diversity=diversity).indices

    return each(run, bench, candidates, sum_of_distances, task="MSD")
