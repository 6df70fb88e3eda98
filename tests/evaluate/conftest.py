"""Made-up runs and qrels for the tests of the evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.evaluate import Report, evaluate
from memlab.records import Dataset, Level, Qrels, Run, run_from_scores


def make_case(seed: int, *, queries: int = 12, docs: int = 40) -> tuple[Run, Qrels]:
    """A random run over documents in a few sessions, and qrels; some queries are missing on either side."""
    rng = np.random.default_rng(seed)
    ids = np.array([f"s{d % 5}/{d}" for d in range(docs)])
    ranked, judged = [], []
    for q in range(queries):
        found = rng.choice(docs, size=int(rng.integers(1, docs + 1)), replace=False)
        relevant = rng.choice(docs, size=int(rng.integers(1, 9)), replace=False)
        if q % 7 != 3:
            ranked += [(f"q{q}", ids[d], float(rng.normal())) for d in found]
        if q % 6 != 4:
            judged += [(f"q{q}", ids[d], 1) for d in relevant]
            judged += [
                (f"q{q}", ids[d], 0)
                for d in range(docs)
                if d not in relevant and rng.random() < 0.1
            ]
    columns = [np.array(c) for c in zip(*ranked, strict=True)]
    run = run_from_scores(columns[0], columns[1], columns[2].astype(float), level="turn", k=docs)
    table = pl.DataFrame(judged, schema=["query_id", "doc_id", "relevance"], orient="row")
    subtopic = pl.col("doc_id").str.replace(r"/[^/]*$", "")
    return run, Qrels(
        table.with_columns(pl.col("relevance").cast(pl.Int32), subtopic=subtopic), "turn"
    )


def make_run(
    dataset: Dataset, level: Level, *, seed: int, help_: float = 0.0, name: str = "run"
) -> Run:
    """Rank every document of each question's scope at random, evidence helped by a constant."""
    column, labels = {
        "turn": ("turn_id", "evidence"),
        "session": ("session_id", "evidence_sessions"),
    }[level]
    documents = (dataset.turns if level == "turn" else dataset.sessions).select(
        "scope", doc_id=column
    )
    pairs = dataset.questions.join(documents, on="scope", maintain_order="left_right")
    helped = pairs.select(pl.col("doc_id").is_in(pl.col(labels)))["doc_id"].to_numpy()
    scores = np.random.default_rng(seed).random(pairs.height) + help_ * helped
    run = run_from_scores(
        pairs["query_id"].to_numpy(), pairs["doc_id"].to_numpy(), scores, level=level, k=1000
    )
    return replace(run, name=name)


@pytest.fixture(scope="session")
def case() -> Callable[..., tuple[Run, Qrels]]:
    return make_case


@pytest.fixture(scope="session")
def made() -> Dataset:
    """Two conversations of the sample, whose questions have evidence in none to six sessions."""
    return memlab.sample(("nadia", "owen"))


@pytest.fixture(scope="session")
def run_on() -> Callable[..., Run]:
    return make_run


@pytest.fixture(scope="session")
def reports(made: Dataset) -> list[Report]:
    """Three systems over sessions, the second better than the first and the third than both."""
    helped = (("random", 0.0), ("hybrid | mmr(lambda_=0.7)", 0.3), ("best", 0.6))
    return [evaluate(make_run(made, "session", seed=1, help_=h, name=n), made) for n, h in helped]
