"""Complete recall of models on the lists that a reranker learns from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from memlab.errors import DataError
from memlab.evaluate import MULTI_SESSION, bootstrap_interval
from memlab.rerank import Model
from memlab.rerank.features import Candidates
from memlab.rerank.learned import apply
from memlab.rerank.training import Lists


def complete(model: Model | None, of: Lists, *, k: int = 10, found: Candidates | None = None) -> np.ndarray:
    """Say which questions have all their evidence in the first k turns: (q,).

    :param model: ``None`` for the untrained sum, in whose order the candidates come.
    :param found: the candidates as the model is to see them; those of the lists by default.
    """
    turns = of.turns
    if model is not None:
        turns = np.take_along_axis(
            turns, np.argsort(-apply(model, found or of.candidates), axis=1, kind="stable"), axis=1
        )
    return (turns[:, :k].sum(axis=1) == of.n_evidence).astype(np.float64)


def held_out(lists: Sequence[Lists], models: Sequence[Model]) -> list[Model]:
    """Give each conversation the first model that did not learn from it.

    :raises DataError: when all of them learned from one.
    """
    chosen = []
    for of in lists:
        others = [model for model in models if of.scope not in model.about["scopes"]]
        if not others:
            raise DataError(
                f"each of {len(models)} models learned from conversation {of.scope!r}; give those of a cross-validation"
            )
        chosen.append(others[0])
    return chosen


def by_subset(
    lists: Sequence[Lists], values: np.ndarray, seed: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Give values (q, m) of all questions, then of those with evidence in several sessions, with their intervals."""
    several = np.concatenate([of.sessions.sum(axis=1) >= 2 for of in lists])
    for subset, rows in (("all", np.ones(len(several), bool)), (MULTI_SESSION, several)):
        if rows.any():
            yield subset, rows, *bootstrap_interval(values[rows], np.ones(rows.sum()), seed=seed)
