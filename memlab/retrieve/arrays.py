"""Arithmetic on arrays of scores and vectors: cosines, standard scores, the best of neighbouring columns."""

from __future__ import annotations

import numpy as np


def cosines(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Multiply unit rows: (q, d), (n, d) → (q, n) float32.

    In float64, rounded afterwards: how float32 sums round depends on the shape of the batch and on the processor, and
    equal texts would then not tie.
    """
    # So many documents at a time that the wide copy stays small: for one query it is most of the work.
    block = min(16_384, 256 + 16 * len(queries))
    scores = np.empty((len(queries), len(documents)), np.float32)
    wide = queries.astype(np.float64)
    for start in range(0, len(documents), block):
        scores[:, start : start + block] = wide @ documents[start : start + block].astype(np.float64).T
    return scores


def scale_to_unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to length 1, in their own type; rows of zeros stay."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def standardise_rows(scores: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Give each row mean 0 and standard deviation 1; a row of equal scores gives zeros.

    :param scores: (q, n).
    :param weight: (n,) how many each column stands for, where not for itself alone.

    >>> import numpy as np
    >>> from memlab.retrieve.arrays import standardise_rows
    >>> standardise_rows(np.array([[1.0, 3.0], [5.0, 5.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    centred, spread = _centre_and_deviation(scores, weight)
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12)


def lower_scores(scores: np.ndarray, by: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Subtract standard deviations of its row from each score: (q, n), ``by`` (q, n) of them; ``weight`` as above."""
    return scores - by * _centre_and_deviation(scores, weight)[1]


def _centre_and_deviation(scores: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Give each row's distances from its mean (q, n), and their standard deviation (q, 1)."""
    if weight is None:
        centred = scores - scores.mean(axis=1, keepdims=True, dtype=np.float64)
        return centred, centred.std(axis=1, keepdims=True)
    share = (weight / weight.sum())[:, None]
    centred = scores - scores @ share
    return centred, np.sqrt(centred**2 @ share)


def group_starts(group: np.ndarray) -> np.ndarray:
    """Give where each group of equal neighbours begins; ``[0]`` where there is nothing."""
    return np.flatnonzero(np.r_[True, group[1:] != group[:-1]])


def best_per_group(scores: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Take the best score of each group of neighbouring columns: (q, n) → (q, n_groups); an empty group gets −1."""
    best = np.full((len(scores), n_groups), -1.0, scores.dtype)
    if scores.size:
        first = group_starts(group)
        best[:, group[first]] = np.maximum.reduceat(scores, first, axis=1)
    return best


def rank_columns(scores: np.ndarray, lot: np.ndarray) -> np.ndarray:
    """Give the columns of each row, the best first: (q, n) → (q, n); ``lot`` (n,) is the order of columns that tie."""
    order: np.ndarray = np.lexsort((np.broadcast_to(lot, scores.shape), -scores), axis=1)
    return order
