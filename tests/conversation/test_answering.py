"""Answers and verdicts of a language model."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import polars as pl
import pytest
from model_server import UNUSABLE, ModelServer, say

from memlab.conversation import answer, judge
from memlab.conversation.answering import JUDGE, RUBRICS, SYSTEM
from memlab.errors import DataError
from memlab.records import Question, frame

WHEN = datetime(2026, 5, 1, tzinfo=UTC)


def questions(n: int = 3) -> pl.DataFrame:
    kinds = ["temporal", "single-hop", "knowledge-update", "temporal"]
    about = [(f"q{i}", "u", f"Where is {i}?", f"Oslo {i}", kinds[i], WHEN, [], [], i == 3) for i in range(n)]
    return frame(Question, [Question(*each) for each in about])


def contexts(n: int = 3) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{i}" for i in range(n)], "text": [f"[1 May]\nMel: {i}" for i in range(n)]})


def test_a_model_answers_from_the_notes_alone(server: ModelServer) -> None:
    rows = answer(contexts(), questions(), server.service())
    assert rows["answer"].to_list() == ["Anna bought tea."] * 3
    assert rows.select("known", "tokens_read", "tokens_written", "error").unique().rows() == [(True, 7, 3, "")]
    assert {request["messages"][0]["content"] for request in server.requests} == {SYSTEM}
    asked = sorted(map(json.loads, server.prompts), key=lambda each: each["question"])
    assert asked[0] == {"notes": "[1 May]\nMel: 0", "asked on": "1 May 2026", "question": "Where is 0?"}
    assert "Oslo" not in str(asked)


@pytest.mark.parametrize("fault", ["words", "429"])
def test_failures_are_rows(server: ModelServer, fault: str) -> None:
    server.modes = [UNUSABLE[fault]]
    rows = answer(contexts(1), questions(1), server.service(max_retries=0))
    assert rows["answer"].to_list() == [None]
    assert rows["error"][0].startswith("service 'lab'")
    assert judge(questions(1), rows, server.service())["correct"].to_list() == [None]


def test_each_kind_has_its_rubric(server: ModelServer) -> None:
    server.modes = [say('{"reason": "same", "correct": true}')]
    asked = questions(4)
    verdicts = judge(asked, pl.DataFrame({"query_id": asked["query_id"], "answer": ["Oslo"] * 4}), server.service())
    assert verdicts["rubric"].to_list() == ["temporal", "single", "knowledge-update", "abstention"]
    assert {request["messages"][0]["content"] for request in server.requests} == {JUDGE}
    by_question = {each["question"]: each for each in map(json.loads, server.prompts)}
    assert by_question["Where is 0?"]["rule"] == RUBRICS["temporal"]
    assert "rule" not in by_question["Where is 1?"]
    assert by_question["Where is 3?"]["right answer"] == "that it is not known"


def test_what_cannot_be_judged_is_not(server: ModelServer) -> None:
    asked = questions(2).with_columns(answer=pl.lit(None, pl.String))
    verdicts = judge(asked, pl.DataFrame({"query_id": ["q0", "q1"], "answer": ["a", "b"]}), server.service())
    assert verdicts["correct"].to_list() == [None] * 2
    assert not server.requests
    with pytest.raises(DataError, match="question 'q1' has no context"):
        answer(contexts(1), questions(2), server.service())
