"""Turns of an assistant are held back, but for questions about what it said; nobody else's memory changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.retrieve import Bench
from memlab.retrieve.speakers import ASKS_ASSISTANT, assistant_penalty, assistant_turn_mask

SAID = (
    ("user", "We have nine thousand for the kitchen."),
    ("assistant", "A kitchen budget of nine thousand is a fair kitchen budget."),
    ("user", "The tiles come on Friday."),
    ("assistant", "Then the floor should be dry by Thursday."),
)
MIXED = tuple(role for role, _ in SAID)


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Bench]:
    def made(roles: tuple[str, ...], *questions: str) -> Bench:
        about = {"scope": "u", "session": "s", "timestamp": "2024-03-01T10:00:00Z"}
        said = enumerate(zip(roles, SAID, strict=True), 1)
        rows = [about | {"id": str(i), "role": role, "text": text} for i, (role, (_, text)) in said]
        rows += [{"scope": "u", "question": text, "evidence": ["1"]} for text in questions]
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return Bench.of(memlab.datasets.load(tmp_path / "log.jsonl"), encoder="hashing")

    return made


def first(bench: Bench, pipeline: str) -> list[str]:
    found = memlab.pipeline(pipeline).run(bench).top(1).frame["doc_id"]
    return bench.turns["text"].gather(bench.documents("turn").at(found)).str.slice(0, 9).to_list()


def test_what_it_said_is_first_only_where_that_is_asked(log: Callable[..., Bench]) -> None:
    bench = log(MIXED, "What is my kitchen budget?", "What did you suggest about the kitchen budget?")
    assert first(bench, "combsum") == ["A kitchen", "A kitchen"]
    assert first(bench, "combsum(assistant=3)") == ["We have n", "A kitchen"]


def test_by_how_much(log: Callable[..., Bench]) -> None:
    bench = log(MIXED, "What is my budget?", "What did you say?")
    assert assistant_turn_mask(bench).tolist() == [False, True, False, True]
    lowered = assistant_penalty(bench, np.array([0, 1]), slice(0, 4), 2.0)
    assert lowered is not None
    assert lowered.tolist() == [[0, 2, 0, 2], [0, 0, 0, 0]]
    assert assistant_penalty(bench, np.array([0]), slice(0, 4), 0.0) is None


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_where_one_kind_speaks_alone_nothing_changes(log: Callable[..., Bench], role: str) -> None:
    bench = log((role,) * len(SAID), "What is my kitchen budget?")
    plain, held_back = (memlab.pipeline(text).run(bench).frame for text in ("combsum", "combsum(assistant=1)"))
    assert plain.equals(held_back)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which hotel did you recommend?", True),
        ("What was the third title on the list you gave me?", True),
        ("Can you tell me where I live?", False),
        ("Which hotel did I book?", False),
    ],
)
def test_what_is_asked_of_the_assistant(text: str, expected: bool) -> None:
    assert pl.Series([text]).str.contains(ASKS_ASSISTANT).item() is expected
