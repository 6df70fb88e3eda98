"""What a measure could be at best, and what it is by chance: without both, a recall of 0.9 says little.

Sessions of a LoCoMo chat number about twenty-five, so ten drawn blindly already hold 37 % of the evidence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from memlab.errors import DataError
from memlab.evaluate.measures import Measure, MeasureLike, log_discount, longmemeval_discount, read_measure

_CELLS = 4_000_000
_CLOSED_FORM_MEASURES = {"recall_any", "recall_all", "recall", "precision", "ndcg", "ndcg_longmemeval", "mrr"}
_AT_BEST_ONE = {*_CLOSED_FORM_MEASURES, "alpha_ndcg", "precision_returned"}


def ceiling(n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike) -> np.ndarray:
    """Give the best value that any ranking can reach at the measure's cutoff.

    :param n_docs: (q,) documents in the scope of each query.
    :param n_relevant: (q,) evidence items of each query, at least 1.
    :returns: (q,) values; NaN for measures that others added.

    >>> from memlab.evaluate.bounds import ceiling
    >>> ceiling([600, 600], [4, 20], "recall_all@10").tolist(), ceiling(600, 20, "recall@10").tolist()
    ([1.0, 0.0], [0.5])
    """
    n, m, k, wanted = _read_sizes(n_docs, n_relevant, measure)
    found = np.minimum(m, k)
    if wanted.name == "recall_all":
        return (m <= k).astype(np.float64)
    if wanted.name == "recall":
        return found / m
    if wanted.name == "precision":
        return found / k
    if wanted.name == "f1":
        return 2 * found / (found + m)
    return np.full(len(n), 1.0 if wanted.name in _AT_BEST_ONE else np.nan)


def chance(n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike) -> np.ndarray:
    """Give the expected value of the measure when the documents of the scope are ranked blindly.

    Draws without replacement (hypergeometric), exact, with binary relevance. NaN where the expectation depends on more
    than these counts: ``alpha_ndcg``, ``precision_returned``, ``f1``, and measures that others added.

    :param n_docs: (q,) documents in the scope of each query.
    :param n_relevant: (q,) evidence items of each query, from 1 to n_docs.
    :returns: (q,) values.
    :raises DataError: when a query has no evidence, or more than it has documents.

    >>> from memlab.evaluate.bounds import chance
    >>> chance([20, 20], [1, 2], "recall@10").tolist(), chance(20, 2, "recall_all@10").round(4).tolist()
    ([0.5, 0.5], [0.2368])
    """
    n, m, k, wanted = _read_sizes(n_docs, n_relevant, measure)
    if wanted.name not in _CLOSED_FORM_MEASURES:
        return np.full(len(n), np.nan)
    pairs, back = np.unique(np.stack([n, m], axis=1), axis=0, return_inverse=True)
    width = int(np.minimum(k, n).max(initial=1))
    step = max(1, _CELLS // max(width, int(m.max(initial=1))))
    parts = [
        _expected_value(wanted, pairs[i : i + step, 0], pairs[i : i + step, 1]) for i in range(0, len(pairs), step)
    ]
    return np.concatenate(parts)[back.ravel()] if parts else np.empty(0)


def _expected_value(wanted: Measure, n: np.ndarray, m: np.ndarray) -> np.ndarray:
    drawn = n if wanted.k is None else np.minimum(wanted.k, n)
    if wanted.name == "recall":
        return drawn / n
    if wanted.name == "precision":
        return m / n * drawn / (wanted.k or n)
    if wanted.name == "recall_all":
        # All m items are among the drawn: the product over i < m of (drawn − i) / (n − i).
        i = np.arange(m.max())[None, :]
        inside = np.maximum(drawn[:, None] - i, 0) / np.maximum(n[:, None] - i, 1)
        return np.where(i < m[:, None], inside, 1.0).prod(axis=1)
    rank = np.arange(1, drawn.max() + 1)[None, :]
    if wanted.name in ("ndcg", "ndcg_longmemeval"):
        discount = (log_discount if wanted.name == "ndcg" else longmemeval_discount)(rank)
        reached = np.where(rank <= drawn[:, None], discount, 0.0).sum(axis=1) * m / n
        return reached / np.where(rank <= np.minimum(m, drawn)[:, None], discount, 0.0).sum(axis=1)
    # No evidence among the first r: the product over i < r of (n − m − i) / (n − i).
    i = rank - 1
    outside = np.maximum(n[:, None] - m[:, None] - i, 0) / np.maximum(n[:, None] - i, 1)
    missed = np.where(i < drawn[:, None], outside, 1.0).cumprod(axis=1)
    if wanted.name == "recall_any":
        return 1.0 - missed[:, -1]
    before = np.concatenate([np.ones((len(n), 1)), missed[:, :-1]], axis=1)
    return ((before - missed) / rank).sum(axis=1)


def _read_sizes(
    n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Measure]:
    wanted = read_measure(measure)
    n, m = (np.atleast_1d(each).astype(np.int64) for each in np.broadcast_arrays(n_docs, n_relevant))
    for at in np.flatnonzero((m < 1) | (m > n))[:1]:
        raise DataError(
            f"query {at} has {m[at]} evidence items among {n[at]} documents of its scope; expected 1 to {n[at]}"
        )
    return n, m, n if wanted.k is None else np.full_like(n, wanted.k), wanted
