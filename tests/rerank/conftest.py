"""Three small conversations, read by a stand-in for MiniLM, and two of them by MiniLM itself."""

from __future__ import annotations

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
