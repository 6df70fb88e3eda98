"""A small conversation with its bench, a ranking, and contexts made of words that need no tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
import pytest
from talk import excerpt

from memlab.context import ITEM
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, bm25


@pytest.fixture(scope="session")
def talk() -> Dataset:
    return excerpt(300, scopes=["owen"])


@pytest.fixture(scope="session")
def talk_bench(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder=None)


@pytest.fixture(scope="session")
def talk_run(talk_bench: Bench) -> Run:
    return bm25(talk_bench)


@pytest.fixture(scope="session")
def items() -> Callable[..., pl.DataFrame]:
    """Make rows of a source for the question ``q``: each a text with the turns that it stands on."""

    def make(*lines: tuple[str, Sequence[str]], head: str = "", query: str = "q") -> pl.DataFrame:
        rows = [(query, f"{n}", n, head, text, list(turns)) for n, (text, turns) in enumerate(lines)]
        return pl.DataFrame(rows, schema=pl.Schema(list(ITEM.items())[:6]), orient="row")

    return make
