"""Three small conversations and the models of their cross-validation."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_in import StandIn
from talk import purchases

from memlab.records import Dataset
from memlab.rerank import Model, cross_validate, listwise, training_lists
from memlab.rerank.training import Lists
from memlab.retrieve import Bench


@pytest.fixture(scope="session")
def asked() -> Dataset:
    return purchases()


@pytest.fixture(scope="session")
def read(asked: Dataset) -> Bench:
    return Bench.of(asked, encoder=StandIn())


@pytest.fixture(scope="session")
def lists(asked: Dataset, read: Bench) -> list[Lists]:
    return training_lists(read, asked)


@pytest.fixture(scope="session")
def folds(lists: list[Lists], tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listwise, "EPOCHS", 3)
        return cross_validate(lists, tmp_path_factory.mktemp("learning") / "folds")


@pytest.fixture(scope="session")
def models(folds: Path) -> list[Model]:
    return [Model.load(path) for path in sorted(folds.glob("*.safetensors"))]
