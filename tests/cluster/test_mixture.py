"""Soft groups: laws for any rows, and groups that are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from memlab.cluster import mixture_memberships


def laws(memberships: Any, n: int) -> None:
    weights = memberships.toarray()
    assert weights.shape[0] == n
    assert ((weights > 0).sum(axis=1) >= 1).all(), "every row belongs somewhere"
    assert (weights <= 1 + 1e-9).all()
    firsts = [int(np.flatnonzero(column)[0]) for column in weights.T]
    assert firsts == sorted(firsts)
    if n:
        assert set(weights.argmax(axis=1)) == set(range(weights.shape[1])), "every group is somebody's likeliest"
        assert len({tuple(np.flatnonzero(column)) for column in weights.T}) == weights.shape[1], "no group twice"


def test_rows_that_break_a_mixture() -> None:
    outlier = np.vstack([np.ones((29, 8)), -1e6 * np.eye(8)[:1]])
    for rows in (np.ones((30, 8)), np.zeros((30, 8)), np.repeat(np.eye(8)[:3], 20, axis=0), outlier, np.eye(25)[:, :1]):
        laws(mixture_memberships(rows), len(rows))


def test_groups_that_are_there_are_found_for_a_seed() -> None:
    truth = np.repeat(np.arange(4), 15)
    rows = np.eye(32)[truth] + np.random.default_rng(0).normal(scale=0.05, size=(60, 32))
    memberships = mixture_memberships(rows, seed=3)
    labels = memberships.argmax(axis=1)
    assert all(len(set(truth[labels == label])) == 1 for label in set(labels.tolist())), "no group mixes two"
    assert (memberships != mixture_memberships(rows, seed=3)).nnz == 0
