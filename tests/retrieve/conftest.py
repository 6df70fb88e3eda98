"""Benches that the tests of retrieval share."""

from __future__ import annotations

import pytest
from talk import odd_world

import memlab
from memlab.records import Dataset
from memlab.retrieve import Bench


@pytest.fixture(scope="session")
def world() -> Dataset:
    return odd_world()


@pytest.fixture(scope="session")
def talk() -> Dataset:
    return memlab.sample(turns=600)


@pytest.fixture(scope="session")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:64")


@pytest.fixture(scope="session")
def chat(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:64")


@pytest.fixture(scope="session", params=["chat", "odd"])
def some(request: pytest.FixtureRequest) -> Bench:
    bench: Bench = request.getfixturevalue(request.param)
    return bench
