"""Three small conversations, read by a stand-in for MiniLM, and two of them by MiniLM itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from remembering import minilm
from stand_in import StandIn
from talk import purchases

from memlab.records import Dataset
from memlab.retrieve import Bench


@pytest.fixture(scope="session")
def small() -> Dataset:
    return purchases()


@pytest.fixture(scope="session")
def bench(small: Dataset) -> Bench:
    return Bench.of(small, encoder=StandIn())


@pytest.fixture(scope="session")
def minilm_bench(small: Dataset) -> Bench:
    return Bench.of(small.take(small.scopes[:2]), encoder=minilm())


@pytest.fixture(scope="session")
def renamed() -> Callable[[Dataset], tuple[Dataset, dict[str, str]]]:
    """Give every id another one, whose alphabetical order is another."""

    def rename(data: Dataset) -> tuple[Dataset, dict[str, str]]:
        rng = np.random.default_rng(1)
        ids = [
            data.scopes,
            *(
                getattr(data, t)[c].to_list()
                for t, c in (("sessions", "session_id"), ("turns", "turn_id"), ("questions", "query_id"))
            ),
        ]
        names = {
            old: f"{kind}{number:05d}"
            for kind, held in zip("zyxw", ids, strict=True)
            for old, number in zip(held, rng.permutation(len(held)), strict=True)
        }

        def swap(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
            return rows.with_columns(pl.col(column).replace_strict(names) for column in columns)

        lists = pl.col("evidence", "evidence_sessions").list.eval(pl.element().replace_strict(names))
        return replace(
            data,
            turns=swap(data.turns, "turn_id", "scope", "session_id"),
            sessions=swap(data.sessions, "session_id", "scope"),
            questions=swap(data.questions, "query_id", "scope").with_columns(lists),
        ), names

    return rename


@pytest.fixture(scope="session")
def without_labels() -> Callable[[Dataset], Dataset]:
    """Take away everything of the questions that a stage may not see."""

    def strip(data: Dataset) -> Dataset:
        none = pl.lit([], dtype=pl.List(pl.String))
        hidden = {
            "evidence": none,
            "evidence_sessions": none,
            "answer": pl.lit(None, pl.String),
            "question_type": pl.lit("?"),
            "abstention": pl.lit(True),
        }
        return replace(data, questions=data.questions.with_columns(**hidden))

    return strip
