"""Turns of an assistant are held back, but for questions about what it said; nobody else's memory changes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.datasets import chatlog
from memlab.retrieve import Bench
from memlab.retrieve.speakers import ASKS_ASSISTANT, assistant_penalty, assistant_turn_mask

SAID = (
    "We have nine thousand for the kitchen.", "A kitchen budget of nine thousand is a fair kitchen budget.",
    "The tiles come on Friday.", "Then the floor should be dry by Thursday.",
)  # fmt: skip
MIXED = ("user", "assistant") * 2


def log(roles: tuple[str, ...], *questions: str) -> Bench:
    about = {"scope": "u", "session": "s", "timestamp": "2024-03-01T10:00:00Z"}
    said = enumerate(zip(roles, SAID, strict=True), 1)
    rows = [about | {"id": str(i), "role": role, "text": text} for i, (role, text) in said]
    rows += [{"scope": "u", "question": text, "evidence": ["1"]} for text in questions]
    return Bench.of(chatlog.dataset(rows, "log"), encoder="hashing")


def test_what_it_said_is_first_only_where_that_is_asked() -> None:
    bench = log(MIXED, "What is my kitchen budget?", "What did you suggest about the kitchen budget?")
    for text, expected in (("combsum", [1, 1]), ("combsum(assistant=3)", [0, 1])):
        first = memlab.pipeline(text).run(bench).top(1).frame["doc_id"]
        assert bench.documents("turn").at(first).tolist() == expected
    assert assistant_turn_mask(bench).tolist() == [False, True, False, True]
    lowered = assistant_penalty(bench, np.array([0, 1]), slice(0, 4), 2.0)
    assert lowered is not None
    assert lowered.tolist() == [[0, 2, 0, 2], [0, 0, 0, 0]]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_where_one_kind_speaks_alone_nothing_changes(role: str) -> None:
    bench = log((role,) * len(SAID), "What is my kitchen budget?")
    plain, held_back = (memlab.pipeline(text).run(bench).frame for text in ("combsum", "combsum(assistant=1)"))
    assert plain.equals(held_back)


def test_what_is_asked_of_the_assistant() -> None:
    of_it = ["Which hotel did you recommend?", "What was the third title on the list you gave me?"]
    of_user = ["Can you tell me where I live?", "Which hotel did I book?"]
    assert pl.Series(of_it + of_user).str.contains(ASKS_ASSISTANT).to_list() == [True, True, False, False]
