"""Soft groups of any number of texts: Gaussian mixtures whose number of components the data choose."""

from __future__ import annotations

import warnings
from math import isqrt
from typing import Any

import numpy as np

from memlab.cluster.projection import project, unit_rows

# Dimensions to reduce to, the most components of one mixture, the least probability of a membership, and the neighbours
# that UMAP looks at within a large group.
DIMENSIONS, MAX_COMPONENTS, THRESHOLD, LOCAL_NEIGHBORS = 10, 50, 0.1, 10
# A tenth of the spread of all rows: with less, the criterion takes every pair of near rows for a group.
_REGULARISATION = 1e-2
_COARSE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 50)
_Groups = list[tuple[np.ndarray, np.ndarray]]


def mixture_memberships(embeddings: np.ndarray, *, seed: int = 0) -> Any:
    """Cluster softly by Gaussian mixtures: global clusters, then local ones within each.

    Rows are reduced to a few dimensions by UMAP, once for all of them with √(n − 1) neighbours, and again within each
    large group with ten. Both times the Bayesian information criterion chooses the number of components of a Gaussian
    mixture with diagonal covariance, at most half as many as there are different rows. A row belongs to the components
    whose probability is above a tenth, or to the likeliest one; groups that are nobody's likeliest are left out.

    :param embeddings: (n, d) finite numbers; rows are scaled to unit length.
    :param seed: of the reduction and of the mixture's start.
    :returns: (n, k) ``scipy.sparse.csr_array`` of weights in (0, 1], each row with at least one: the probability of the
        large group times that of the smaller one. Groups come in order of their first member, none twice.
    :raises DataError: when the array is not (n, d), holds NaN or infinity.

    Source: Sarthi et al., "RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval", ICLR 2024.

    >>> import numpy as np
    >>> from memlab.cluster import mixture_memberships
    >>> two = np.repeat(np.eye(8)[:2], 6, axis=0) + np.random.default_rng(0).normal(scale=0.05, size=(12, 8))
    >>> mixture_memberships(two).argmax(axis=1).tolist()
    [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    """
    from scipy.sparse import csr_array

    rows = unit_rows(embeddings)
    groups: _Groups = []
    for members, weights in _component_members(rows, isqrt(max(len(rows) - 1, 0)), seed):
        for inner, inner_weights in _component_members(rows[members], LOCAL_NEIGHBORS, seed):
            groups.append((members[inner], weights[inner] * inner_weights))
    likeliest = np.zeros((2, len(rows)))
    for number, (members, weights) in enumerate(groups):
        better = weights > likeliest[0, members]
        likeliest[:, members[better]] = weights[better], np.full(better.sum(), number)
    kept = [groups[number] for number in np.unique(likeliest[1]).astype(int)] if groups else []
    distinct = {members.tobytes(): (members, weights) for members, weights in kept}
    ordered = sorted(distinct.values(), key=lambda group: int(group[0].min()))
    column = np.repeat(np.arange(len(ordered)), [len(members) for members, _ in ordered])
    row, weight = (np.concatenate([*parts, []]) for parts in (zip(*ordered, strict=True) if ordered else ([], [])))
    return csr_array((weight, (row.astype(int), column)), shape=(len(rows), len(ordered)))


def _component_members(rows: np.ndarray, n_neighbors: int, seed: int) -> _Groups:
    """Give the members of each component of one mixture, and the weights of their memberships."""
    n = len(rows)
    most = min(MAX_COMPONENTS, len(np.unique(rows, axis=0)) // 2)
    if most < 2 or n <= DIMENSIONS + 1:
        return [(np.arange(n), np.ones(n))] if n else []
    width = min(DIMENSIONS, rows.shape[1], n - 2)
    points = project(rows, n_components=width, n_neighbors=max(n_neighbors, 2), min_dist=0.0, seed=seed)
    centred = points.astype(np.float64) - points.mean(axis=0, dtype=np.float64)
    probability = _fit_best_mixture(centred / max(centred.std(), 1e-12), most, seed)
    belongs = probability > THRESHOLD
    belongs[np.arange(n), probability.argmax(axis=1)] = True
    members = (np.flatnonzero(column) for column in belongs.T)
    return [(which, probability[which, number]) for number, which in enumerate(members) if len(which)]


def _fit_best_mixture(points: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Fit mixtures of several sizes, coarse steps first, then around the best; give the probabilities of the best."""
    fits: dict[int, tuple[float, np.ndarray]] = {}

    def criterion(n_components: int) -> float:
        if n_components not in fits:
            fits[n_components] = _fit_mixture(points, n_components, seed)
        return fits[n_components][0]

    steps = [step for step in _COARSE if step < most] + [most]
    best = min(steps, key=criterion)
    apart = max(abs(step - best) for step in steps if abs(steps.index(step) - steps.index(best)) <= 1)
    while apart > 1:
        apart = (apart + 1) // 2
        best = min((best, max(best - apart, 1), min(best + apart, most)), key=criterion)
    return fits[best][1]


def _fit_mixture(points: np.ndarray, n_components: int, seed: int) -> tuple[float, np.ndarray]:
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
