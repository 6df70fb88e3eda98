"""Two people's chats, small enough to be read, with their bench."""

from __future__ import annotations

import pytest
from talk import dialogue

from memlab.records import Dataset
from memlab.retrieve import Bench

SAID = """
    == ann 2026-05-01
    Ann: I bought the oak desk for $210 today.
    Ann: The lamp was $35.
    == ann 2026-05-02
    Ann: Dr Lee looked at my knee.
    Ann: The visit cost 62 pounds.
    == ann 2026-05-03
    Ann: The desk wobbles.
    Ann: I paint at night.
    ? single-hop: What did the oak desk cost? = $210 < 1.1
    ? single-hop: Who looked at the knee? = Dr Lee < 2.1
    == bo 2026-05-01
    Bo: My dog is called Churro.
    Bo: He weighs 4 kilos.
    == bo 2026-05-02
    Bo: Churro saw the vet yesterday.
    ? single-hop: What is the dog called? = Churro < 1.1
    ? single-hop: Why is he fat? = because he eats < 1.2
"""


@pytest.fixture(scope="session")
def talk() -> Dataset:
    return dialogue(SAID)


@pytest.fixture(scope="session")
def bench(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:64")
