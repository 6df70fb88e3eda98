"""Runs of drawn scores over turns with drawn vectors, for stages that compare turns with the first hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from talk import world

from memlab.records import Run, run_from_scores
from memlab.retrieve import Bench


def drawn(
    scores: Sequence[float],
    *,
    seed: int = 0,
    vectors: np.ndarray | None = None,
    texts: Sequence[str] = (),
) -> tuple[Run, Bench]:
    """Make a bench of one scope with a turn for each score, and a run that ranks the turns by them.

    :param vectors: (n, d) of the turns, scaled to length 1; drawn where none are given.
    :param texts: of the turns; by default a word of its own for each.
    """
    n = len(scores)
    if vectors is None:
        vectors = np.random.default_rng(seed).normal(size=(n, 12))
    said = [*texts] or [f"word {number}" for number in range(n)]
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    data = world({"u": [said]}, {"u": ["?"]})
    bench = replace(Bench.of(data, encoder="hashing"), vectors=unit)
    ids, query = bench.documents("turn").ids, bench.queries["query_id"][0]
    run = run_from_scores(np.full(n, query), ids, np.array(scores, float), level="turn")
    return run, bench


def standardised(values: Sequence[float]) -> np.ndarray:
    """Give values the mean 0 and the standard deviation 1."""
    distances = np.array(values) - np.mean(values)
    return distances / np.std(values)


def places(run: Run, bench: Bench) -> list[int]:
    """Give the places of a run's documents among those of the bench, best first."""
    return bench.documents(run.level).at(run.frame["doc_id"]).tolist()
