"""Complete recall of models on the lists that a reranker learns from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memlab.errors import DataError
from memlab.evaluate import MULTI_SESSION
from memlab.rerank import Model
from memlab.rerank.features import Candidates
from memlab.rerank.learned import apply
from memlab.rerank.training import Lists


def complete(model: Model, one: Lists, *, k: int = 10, found: Candidates | None = None) -> np.ndarray:
    """Say which questions have all their evidence in the first k turns: (q,).

    :param found: the candidates as the model is to see them; those of the lists by default.
    """
    found = found or one.found
    return _complete(one, np.argsort(-apply(model, found), axis=1, kind="stable"), k)


def _complete(one: Lists, order: np.ndarray, k: int) -> np.ndarray:
    hits = np.take_along_axis(one.turns, order[:, :k], axis=1).sum(axis=1)
    return (hits == one.n_evidence).astype(np.float64)


def untrained(one: Lists, k: int) -> np.ndarray:
    """The same for the untrained sum, in whose order the candidates come."""
    return _complete(one, np.broadcast_to(np.arange(one.turns.shape[1]), one.turns.shape), k)


def held_out(lists: Sequence[Lists], models: Sequence[Model]) -> list[Model]:
    """Give each conversation the first model that did not learn from it.

    :raises DataError: when all of them learned from one.
    """
    chosen = [next((m for m in models if one.scope not in m.about["scopes"]), None) for one in lists]
    if None in chosen:
        raise DataError(
            f"each of {len(models)} models learned from conversation {lists[chosen.index(None)].scope!r}; "
            "give those of a cross-validation"
        )
    return [model for model in chosen if model is not None]


def subsets(lists: Sequence[Lists]) -> dict[str, np.ndarray]:
    """Tell questions with evidence in several sessions, where there are any."""
    several = np.concatenate([one.sessions.sum(axis=1) >= 2 for one in lists])
    return {"all": np.ones(len(several), bool)} | ({MULTI_SESSION: several} if several.any() else {})
