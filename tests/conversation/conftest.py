"""Two people's chats, small enough to be read, with their bench."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from model_server import KEY, KEY_ENV, ModelServer, running

from memlab.records import Dataset, Question, Turn, frame
from memlab.retrieve import Bench
from memlab.sessions import sessions_of

SAID = {
    "ann": [
        ["I bought the oak desk for $210 today.", "The lamp was $35.", "Rain again."],
        ["Dr Lee looked at my knee.", "No operation, he says.", "The visit cost 62 pounds."],
        ["We went climbing in May.", "The desk wobbles.", "I paint at night."],
    ],
    "bo": [["My dog is called Churro.", "He weighs 4 kilos."], ["Churro saw the vet yesterday."]],
}


@pytest.fixture(scope="session")
def talk() -> Dataset:
    turns = []
    for scope, chats in SAID.items():
        for s, texts in enumerate(chats, 1):
            day = datetime(2026, 5, s, 9, tzinfo=UTC)
            name = f"{scope}/s{s}"
            turns += [
                Turn(f"{name}.{n}", scope, name, n, scope.title(), "user", text, None, day + timedelta(minutes=n))
                for n, text in enumerate(texts, 1)
            ]
    asked = [
        Question("q1", "ann", "What did the oak desk cost?", "$210", "single-hop", None, ["ann/s1.1"], ["ann/s1"]),
        Question("q2", "ann", "Who looked at the knee?", "Dr Lee", "single-hop", None, ["ann/s2.1"], ["ann/s2"]),
        Question("q3", "bo", "What is the dog called?", "Churro", "single-hop", None, ["bo/s1.1"], ["bo/s1"]),
        Question("q4", "bo", "Why is he fat?", "because he eats", "single-hop", None, ["bo/s1.2"], ["bo/s1"]),
    ]
    rows = frame(Turn, turns)
    return Dataset("talk", "chatlog", rows, sessions_of(rows), frame(Question, asked))


@pytest.fixture(scope="session")
def bench(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:64")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv(KEY_ENV, KEY)
    yield from running()
