"""Two people's chats, small enough to be read, with their bench."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

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
        ("What did the oak desk cost?", "$210", "ann/s1.1"),
        ("Who looked at the knee?", "Dr Lee", "ann/s2.1"),
        ("What is the dog called?", "Churro", "bo/s1.1"),
        ("Why is he fat?", "because he eats", "bo/s1.2"),
    ]
    questions = [
        Question(f"q{n}", turn.split("/")[0], text, gold, "single-hop", None, [turn], [turn.split(".")[0]])
        for n, (text, gold, turn) in enumerate(asked, 1)
    ]
    rows = frame(Turn, turns)
    return Dataset("talk", "chatlog", rows, sessions_of(rows), frame(Question, questions))


@pytest.fixture(scope="session")
def bench(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:64")
