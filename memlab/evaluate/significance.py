"""Is the difference real? Intervals by bootstrap, tests by randomisation, correction by Holm.

Everything works on *units*: sums of per-query values and the number of queries behind each. A unit is a query, or a
whole scope where questions about one chat are not independent of each other; the rest of the code is the same.

Sources: Smucker, Allan & Carterette, CIKM 2007 (randomisation test for retrieval); Phipson & Smyth 2010 (the
(b + 1) / (m + 1) rule); Holm 1979; Efron & Tibshirani 1993, ch. 13 (percentile interval).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from memlab.errors import DataError

Unit = Literal["query", "scope"]
RESAMPLES = 2_000
PERMUTATIONS = 10_000
EXACT_UP_TO = 14
ENOUGH_SCOPES = 20
"""Scopes from which on they, and not the questions in them, are resampled; with fewer, intervals over them are too
narrow (Cameron, Gelbach & Miller 2008), and over four or fewer a sign-flip test can show nothing (p ≥ .125)."""
CELLS = 4_000_000


def bootstrap_interval(sums: np.ndarray, sizes: np.ndarray, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Give 95 % percentile intervals of means by resampling units with replacement.

    The mean of a resample is the sum of its values over the number of its queries, so units may differ in size.

    :param sums: (u, m) sum of each of m columns over the queries of each unit.
    :param sizes: (u,) number of queries in each unit.
    :returns: low (m,) and high (m,); NaN with fewer than two units, where nothing can be said.

    >>> import numpy as np
    >>> from memlab.evaluate import bootstrap_interval
    >>> low, high = bootstrap_interval(np.array([[0.0], [1.0]] * 50), np.ones(100), seed=1)
    >>> bool(0.38 < low[0] < 0.42 and 0.58 < high[0] < 0.62)
    True
    """
    units, columns = sums.shape
    if units < 2:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    drawn = _drawn if RESAMPLES * units <= CELLS else _drawn.__wrapped__
    means = []
    for counts in drawn(units, seed):
        weights = counts.astype(np.float64)
        means.append((weights @ sums) / (weights @ sizes)[:, None])
    tail = (1 - 0.95) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)
    return low, high


@lru_cache(maxsize=32)
def _drawn(units: int, seed: int) -> list[np.ndarray]:
    """Count how often each unit stands in each resample; the same for every run on the same questions."""
    rng = np.random.default_rng(seed)
    step = max(1, CELLS // units)
    counts = []
    for start in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - start)
        drawn = rng.integers(0, units, size=(rows, units)) + units * np.arange(rows)[:, None]
        counts.append(np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.uint16))
    return counts


def randomisation_test(differences: np.ndarray, *, permutations: int = PERMUTATIONS, seed: int = 0) -> float:
    """Give the two-sided p of paired differences under random flips of their signs.

    Every flip is counted where there are few non-zero differences; else ``permutations`` are drawn and p is
    (b + 1) / (permutations + 1), which is never zero.

    :param differences: (n,) paired differences, one a unit.

    >>> import numpy as np
    >>> from memlab.evaluate import randomisation_test
    >>> randomisation_test(np.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    0.125
    """
    nonzero = differences[np.abs(differences) > 1e-12]
    n = len(nonzero)
    if n == 0:
        return 1.0
    # Sums of the same numbers in another order differ in the last bits: a tie with the observed sum must count.
    observed = abs(nonzero.sum()) - 1e-10 * np.abs(nonzero).sum()
    if n <= EXACT_UP_TO:
        signs = (np.arange(2**n)[:, None] >> np.arange(n) & 1) * 2.0 - 1.0
        return float((np.abs(signs @ nonzero) >= observed).mean())
    rng = np.random.default_rng(seed)
    step = max(1, CELLS // n)
    extreme = 0
    for start in range(0, permutations, step):
        drawn = rng.integers(0, 256, size=(min(step, permutations - start), -(-n // 8)), dtype=np.uint8)
        positive = np.unpackbits(drawn, axis=1, count=n).astype(np.float64) @ nonzero
        extreme += int((np.abs(2.0 * positive - nonzero.sum()) >= observed).sum())
    return (extreme + 1) / (permutations + 1)


def holm(p: np.ndarray) -> np.ndarray:
    """Adjust p values for their number by Holm's step-down procedure.

    :param p: (n,) p values.
    :returns: (n,) adjusted values in the same order, each at least its p and at most 1.

    >>> import numpy as np
    >>> from memlab.evaluate import holm
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p, dtype=np.float64)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted


def against_null(observed: np.ndarray, null: np.ndarray, *, seed: int = 0) -> dict[str, float]:
    """Set a mean over questions beside its null distribution.

    :param observed: (n,) a value a question; NaN where it has none.
    :param null: (draws, n) the same under the null hypothesis.
    :returns: ``n``, ``mean`` with its 95 % bootstrap interval over questions ``low``, ``high``; mean and middle 95 % of
        the draws ``chance``, ``chance_low``, ``chance_high``; the two-sided ``p``, (b + 1) / (draws + 1).

    >>> import numpy as np
    >>> from memlab.evaluate import against_null
    >>> against_null(np.array([1.0, 1.0]), np.zeros((99, 2)))["p"]
    0.01
    """
    those = ~np.isnan(observed)
    values, means = observed[those], null[:, those].mean(axis=1)
    low, high = bootstrap_interval(values[:, None], np.ones(len(values)), seed=seed)
    extreme = np.abs(means - means.mean()) >= abs(values.mean() - means.mean()) - 1e-9
    ends = dict(zip(("chance_low", "chance_high"), np.quantile(means, [0.025, 0.975]).tolist(), strict=True))
    about = {"n": len(values), "mean": float(values.mean()), "low": float(low[0]), "high": float(high[0])}
    return about | {"chance": float(means.mean()), **ends, "p": float((extreme.sum() + 1) / (len(means) + 1))}


def by_unit(values: np.ndarray, scopes: np.ndarray, unit: Unit) -> tuple[np.ndarray, np.ndarray]:
    """Sum per-query values (n, m) by unit: gives sums (u, m) and sizes (u,)."""
    if unit == "query":
        return values, np.ones(len(values))
    if unit != "scope":
        raise DataError(f"unit is {unit!r}; expected 'query' or 'scope'")
    _, code = np.unique(scopes, return_inverse=True)
    sizes = np.bincount(code).astype(np.float64)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, code, values)
    return sums, sizes
