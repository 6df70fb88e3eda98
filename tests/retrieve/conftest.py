"""A small world with everything that trips a ranking: ties, equal texts, empty texts, lone turns, empty sessions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

import memlab
from memlab.records import Dataset, Question, Run, Session, Turn, frame
from memlab.retrieve import Bench

TALK = {
    "ann": [
        ["I saw the doctor today", "the dentist pulled a tooth", "I saw the doctor today", ""],
        [],
        ["I saw the doctor today", "rain again", "the dentist pulled a tooth", "we planted roses and tulips"],
        ["roses need water", "tulips need water", "I saw the doctor today", "!!!", "the the the"],
    ],
    "bob": [["only one turn about a doctor"]],
    "cyd": [["doctor doctor doctor", "no", "roses"], ["doctor", "doctor roses", "roses doctor", "water the roses"]],
}
ASKED = {
    "ann": ["How many doctors did I see?", "roses tulips water", "zyzzyva qwxt", "", "the dentist pulled a tooth"],
    "bob": ["doctor", "unknown words"],
    "cyd": ["roses roses doctor", "water?"],
}


@pytest.fixture(scope="session")
def world() -> Dataset:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    turns, sessions, questions = [], [], []
    for scope, talk in TALK.items():
        for s, said in enumerate(talk, 1):
            session = f"{scope}/s{s}"
            at = start + timedelta(days=s)
            sessions.append(Session(session, scope, s, at, at, len(said), ["user"]))
            turns += [Turn(f"{session}/{n}", scope, session, n, "user", "user", t) for n, t in enumerate(said, 1)]
        first = f"{scope}/s1"
        asked = [(f"{scope}/q{i}", text) for i, text in enumerate(ASKED[scope])]
        questions += [Question(q, scope, text, "", "t", None, [f"{first}/1"], [first]) for q, text in asked]
    return Dataset("world", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))


@pytest.fixture(scope="session")
def talk() -> Dataset:
    return memlab.sample(turns=600)


@pytest.fixture(scope="session")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:64")


@pytest.fixture(scope="session")
def chat(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:64")


@pytest.fixture(scope="session")
def ranking() -> Callable[[Run], dict[str, list[str]]]:
    """Read a run as query → documents, best first; queries in the run's order."""

    def read(run: Run) -> dict[str, list[str]]:
        return dict(run.frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())

    return read
