"""Three small conversations, read by a stand-in for MiniLM, and what is learned from them."""

from __future__ import annotations

import pytest
from stand_in import StandIn
from talk import purchases

from memlab.records import Dataset
from memlab.rerank import training_lists
from memlab.rerank.reranker_training import TrainingLists
from memlab.retrieve import Bench


@pytest.fixture(scope="session")
def small() -> Dataset:
    return purchases()


@pytest.fixture(scope="session")
def bench(small: Dataset) -> Bench:
    return Bench.of(small, encoder=StandIn())


@pytest.fixture(scope="session")
def lists(small: Dataset, bench: Bench) -> list[TrainingLists]:
    return training_lists(bench, small)
