"""Places of rows in a dataset: whole numbers with room between them, so that a row put in moves no other."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
import polars as pl

STEP = 1 << 36
"""Between rows at the end of a dataset; :data:`NEAR` between rows that come to stand before others."""
NEAR = 1 << 16


def between(places: pl.Series, scopes: pl.Series, there: pl.Series, *, behind: int | None = None) -> pl.Series | None:
    """Give rows places in their order; those that have one in this order keep it, the others go between.

    :param places: (n,) present places, null for a new row.
    :param scopes: (n,) a scope's rows stand together; one without any place goes behind the scope before it.
    :param there: every place that is taken.
    :param behind: the place after which a first new scope goes; by default it goes before the next, or behind all.
    :returns: (n,) Int64, rising; ``None`` where there is no room left.

    >>> import polars as pl
    >>> from memlab.store.places import between
    >>> between(pl.Series([10, None, 20]), pl.Series(["a"] * 3), pl.Series([10, 20])).to_list()
    [10, 15, 20]
    """
    numbers = places.fill_null(-1).to_numpy().astype(np.int64)
    taken = np.sort(there.to_numpy().astype(np.int64))
    changes: Iterable[int] = (
        np.flatnonzero(scopes.to_numpy()[1:] != scopes.to_numpy()[:-1]) + 1 if (numbers >= 0).any() else []
    )
    starts = [0, *map(int, changes), len(numbers)]
    for begin, end in itertools.pairwise(starts):
        own = numbers[begin:end]
        if behind is None and (own < 0).all() and (numbers[end:] >= 0).any():
            following = numbers[end:][np.argmax(numbers[end:] >= 0)]
            behind = int(taken[taken < following].max(initial=-1))
        if (own < 0).any() or (np.diff(own) <= 0).any():
            if not _fill(own, taken, behind):
                return None
            taken = np.union1d(taken, own)
        behind = int(own[-1]) if len(own) else behind
    return pl.Series("position", numbers, pl.Int64)


def _fill(own: np.ndarray, taken: np.ndarray, behind: int | None) -> bool:
    """Place the rows of one scope in place; say whether there was room."""
    kept, others = _rising(own), taken[~np.isin(taken, own)]
    edges = [-1, *kept, len(own)]
    for left, right in itertools.pairwise(edges):
        n, high = right - left - 1, int(own[right]) if right < len(own) else None
        if not n:
            continue
        if left >= 0:
            low = int(own[left])
        elif high is not None:
            low = int(others[others < high].max(initial=-1))
        else:
            low = int(taken.max(initial=-1)) if behind is None else behind
        if high is None and len(after := others[others > low]):
            high = int(after[0])
        step = STEP if high is None else min(NEAR, (high - low) // (n + 1))
        if not step:
            return False
        own[left + 1 : right] = low + step * np.arange(1, n + 1)
    return True


def _rising(places: np.ndarray) -> list[int]:
    """Find the most rows whose places rise; -1 is none."""
    ends: list[int] = []
    rows: list[int] = []
    before = np.full(len(places), -1)
    for row in np.flatnonzero(places >= 0).tolist():
        at = bisect_left(ends, places[row])
        before[row] = rows[at - 1] if at else -1
        ends[at : at + 1], rows[at : at + 1] = [int(places[row])], [row]
    chain, row = [], rows[-1] if rows else -1
    while row >= 0:
        chain.append(row)
        row = int(before[row])
    return chain[::-1]
