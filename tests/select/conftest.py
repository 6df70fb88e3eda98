"""Rankings over random vectors: selectors see scores and vectors, whatever made them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from memlab.records import Question, Run, Session, Turn, frame, run_from_scores
from memlab.retrieve import Bench


@pytest.fixture(scope="session")
def random_run() -> Callable[..., tuple[Run, Bench]]:
    """Make a bench of ``n`` random unit vectors in one scope, and a run of random scores over some of them.

    :param copies: how many documents share a vector.
    :param levels: how many different scores there are; 0 for all different.
    """

    def make(
        n: int = 40, queries: int = 3, *, seed: int = 0, dim: int = 8, copies: int = 1, levels: int = 0
    ) -> tuple[Run, Bench]:
        rng = np.random.default_rng(seed)
        vectors = rng.standard_normal((-(-n // copies), dim)).astype(np.float32)
        vectors = np.tile(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), (copies, 1))[:n]
        ids = [f"u/s/{i + 1}" for i in range(n)]
        turns = [Turn(d, "u", "u/s", i + 1, "user", "user", "word " * (i % 7)) for i, d in enumerate(ids)]
        asked = frame(Question, [Question(f"q{q}", "u", "?", None, "t", None, [], []) for q in range(queries)])
        sessions = frame(Session, [Session("u/s", "u", 1, None, None, n, [])])
        questions = asked.select("query_id", "scope", "text", "timestamp")
        bench = Bench("random", frame(Turn, turns), sessions, questions, vectors, provenance={"a": 1})
        pairs = [(f"q{q}", ids[d]) for q in range(queries) for d in rng.permutation(n)[: n - 5 * q]]
        scores = rng.integers(0, levels, len(pairs)) if levels else rng.standard_normal(len(pairs))
        columns = [np.array(c, dtype=object) for c in zip(*pairs, strict=True)]
        return run_from_scores(*columns, scores.astype(float), level="turn", k=n), bench

    return make
