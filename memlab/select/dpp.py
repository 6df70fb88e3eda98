"""Determinantal point process: the set whose vectors span the largest volume."""

from __future__ import annotations

from functools import partial

import numpy as np

from memlab.errors import DataError
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.fusion import standardised
from memlab.select._each import each

NO_VOLUME = 1e-5
"""The share of a candidate's own variance below which float32 cannot tell it from none."""


@stage
def dpp(run: Run, bench: Bench, *, diversity: float = 0.2, k: int = 50, candidates: int = 200) -> Run:
    """Take, ``k`` times, the candidate that adds most volume: relevant, and not made up of what is taken.

    Greedy MAP inference over the kernel wᵢ · cos(i, j) · wⱼ with w = exp((1 − diversity) · z), where z is the run's
    score standardised over the query's candidates. MMR looks at the nearest document taken, a determinant at all of
    them together. A candidate that adds no volume, such as a copy, is not taken but follows in the old order.

    :param diversity: 0 is the ranking as it was, 1 pure diversity.
    :param k: how many to take at most; what is not taken follows in its old order.
    :param candidates: how many of the run's first documents to choose from.
    :raises DataError: for diversity outside [0, 1], a count below 1, or without embeddings.

    Source: Chen, Zhang and Zhou, Fast greedy MAP inference for determinantal point process (NeurIPS 2018), as
    implemented in pyversity.

    >>> from memlab import datasets, retrieve
    >>> from memlab.select.dpp import dpp
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> dpp(plain, bench, diversity=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    check(diversity, k)
    return each(run, bench, candidates, partial(_volume, k=k, diversity=diversity), task="DPP")


def check(diversity: float, k: int) -> None:
    """Refuse what neither selector of pyversity can use."""
    if not 0 <= diversity <= 1:
        raise DataError(f"diversity is {diversity}; it lies between 0 (the ranking as it was) and 1 (pure diversity)")
    if k < 1:
        raise DataError(f"k is {k}; take at least one")


def _volume(embedded: np.ndarray, relevance: np.ndarray, *, k: int, diversity: float) -> np.ndarray:
    from pyversity import dpp as greedy

    if diversity == 0:
        return np.arange(min(k, len(relevance)))
    with np.errstate(all="ignore"):
        choice = greedy(embedded, relevance, k, diversity=diversity)
    # What rounding leaves of a volume that is used up says nothing about a candidate: its old place does.
    own = np.exp(2 * (1 - diversity) * standardised(relevance[None].astype(np.float64))[0])
    return choice.indices[choice.selection_scores > NO_VOLUME * own[choice.indices]]
