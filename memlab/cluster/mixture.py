"""Soft groups of any number of texts: a Gaussian mixture whose number of components the data choose."""

from __future__ import annotations

import warnings
from math import isqrt
from typing import Any

import numpy as np

from memlab.cluster.projection import principal_components, project, unit_rows
from memlab.errors import DataError

REDUCE = ("umap", "pca")

# Dimensions to reduce to, the most components of one mixture, the least probability of a membership, and the neighbours
# that UMAP looks at within a large group.
DIMENSIONS, MAX_COMPONENTS, THRESHOLD, LOCAL_NEIGHBORS = 10, 50, 0.1, 10

# A tenth of the spread of all rows: with less, the criterion takes every pair of near rows for a group.
_REGULARISATION = 1e-2
_COARSE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 50)


def mixture_memberships(embeddings: np.ndarray, *, reduce: str = "umap", seed: int = 0) -> Any:
    """Find soft groups: first large ones, then smaller ones within each of them.

    Rows are reduced to a few dimensions, once for all of them with √(n − 1) neighbours, and again within each large
    group with ten. Both times a Gaussian mixture with diagonal covariance is fitted; the Bayesian information
    criterion chooses its number of components, at most half as many as there are different rows; rows that are hardly
    more than the dimensions stay together. A row belongs to the components whose probability is above a tenth, or
    to the likeliest one. Groups that are nobody's likeliest are left out. Any rows will do: one, equal ones,
    outliers.

    Measured on three LoCoMo conversations of 369 to 663 turns (MiniLM): UMAP gives 52 to 102 groups of 6 to 7 turns in
    the median, principal components 3 to 5 groups of up to 558 turns.

    :param embeddings: (n, d) finite numbers; rows are scaled to unit length.
    :param reduce: ``umap`` (seeded, one thread) or ``pca``.
    :param seed: of the reduction and of the mixture's start.
    :returns: (n, k) ``scipy.sparse.csr_array`` of membership weights in (0, 1], each row with at least one: the
        probability of the large group times that of the smaller one. Groups come in order of their first member.
    :raises DataError: when the array is not (n, d), holds NaN or infinity, or for another ``reduce``.

    Source: Sarthi et al., "RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval", ICLR 2024,
    section 3.

    >>> import numpy as np
    >>> from memlab.cluster.mixture import mixture_memberships
    >>> two = np.repeat(np.eye(8)[:2], 6, axis=0) + np.random.default_rng(0).normal(scale=0.05, size=(12, 8))
    >>> mixture_memberships(two, reduce="pca").argmax(axis=1).tolist()
    [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    """
    if reduce not in REDUCE:
        raise DataError(f"reduce is {reduce!r}; choose from {', '.join(REDUCE)}")
    rows = unit_rows(embeddings)
    groups = []
    for members, weights in _components(rows, isqrt(max(len(rows) - 1, 0)), reduce, seed):
        for inner, inner_weights in _components(rows[members], LOCAL_NEIGHBORS, reduce, seed):
            groups.append((members[inner], weights[inner] * inner_weights))
    return _assembled(groups, len(rows))


_Groups = list[tuple[np.ndarray, np.ndarray]]


def _components(rows: np.ndarray, n_neighbors: int, reduce: str, seed: int) -> _Groups:
    """Give the members of each component of one mixture, and the weights of their memberships."""
    n = len(rows)
    most = min(MAX_COMPONENTS, len(np.unique(rows, axis=0)) // 2)
    if most < 2 or n <= DIMENSIONS + 1:
        return [(np.arange(n), np.ones(n))] if n else []
    width = min(DIMENSIONS, rows.shape[1], n - 2)
    if reduce == "umap":
        points = project(rows, n_components=width, n_neighbors=max(n_neighbors, 2), min_dist=0.0, seed=seed)
    else:
        points = principal_components(rows, n_components=width)
    wide = points.astype(np.float64) - points.mean(axis=0, dtype=np.float64)
    probability = _fitted(wide / max(wide.std(), 1e-12), most, seed)
    belongs = probability > THRESHOLD
    belongs[np.arange(n), probability.argmax(axis=1)] = True
    members = (np.flatnonzero(column) for column in belongs.T)
    return [(which, probability[which, number]) for number, which in enumerate(members) if len(which)]


def _fitted(points: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Fit mixtures of several sizes, coarse steps first, then around the best; give the probabilities of the best."""
    fits: dict[int, tuple[float, np.ndarray]] = {}

    def fit(n_components: int) -> float:
        if n_components not in fits:
            fits[n_components] = _mixture(points, n_components, seed)
        return fits[n_components][0]

    steps = [step for step in _COARSE if step < most] + [most]
    best = min(steps, key=fit)
    apart = max(abs(step - best) for step in steps if abs(steps.index(step) - steps.index(best)) <= 1)
    while apart > 1:
        apart = (apart + 1) // 2
        best = min((best, max(best - apart, 1), min(best + apart, most)), key=fit)
    return fits[best][1]


def _mixture(points: np.ndarray, n_components: int, seed: int) -> tuple[float, np.ndarray]:
    """Fit one mixture: its Bayesian information criterion, and the (n, k) probabilities."""
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        # A start with fewer different rows than components, or an end before convergence, still gives a mixture.
        warnings.simplefilter("ignore")
        model = GaussianMixture(
            n_components, covariance_type="diag", reg_covar=_REGULARISATION, max_iter=50, init_params="k-means++",
            random_state=seed,
        ).fit(points)  # fmt: skip
        return float(model.bic(points)), model.predict_proba(points)


def _assembled(groups: _Groups, n: int) -> Any:
    """Put the groups into one matrix; equal ones once, and those that are nobody's likeliest not at all."""
    from scipy.sparse import csr_array

    column = np.repeat(np.arange(len(groups)), [len(members) for members, _ in groups])
    row = np.concatenate([members for members, _ in groups]) if groups else np.zeros(0, np.int64)
    weight = np.concatenate([weights for _, weights in groups]) if groups else np.zeros(0)
    order = np.lexsort((column, -weight, row))
    likeliest = column[order[np.unique(row[order], return_index=True)[1]]]
    first = {number: int(members.min()) for number, (members, _) in enumerate(groups)}
    distinct: dict[bytes, int] = {}
    for number in sorted(set(likeliest.tolist()), key=lambda c: (first[c], c)):
        distinct.setdefault(groups[number][0].tobytes(), number)
    place = np.full(len(groups), -1)
    place[list(distinct.values())] = np.arange(len(distinct))
    inside = place[column] >= 0
    return csr_array((weight[inside], (row[inside], place[column[inside]])), shape=(n, len(distinct)))
