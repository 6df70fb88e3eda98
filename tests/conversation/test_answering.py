"""Answers and verdicts of a language model."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import polars as pl
import pytest
from model_server import ModelServer, say

from memlab.conversation import answer, judge
from memlab.conversation.answering import RUBRICS
from memlab.errors import DataError
from memlab.records import Question, frame

KINDS = ["temporal", "single-hop", "knowledge-update", "temporal"]
DAY = datetime(2026, 5, 1, tzinfo=UTC)
QUESTIONS = frame(Question, [
    Question(f"q{i}", "u", f"Where is {i}?", f"Oslo {i}", kind, DAY, [], [], abstention=i == 3)
    for i, kind in enumerate(KINDS)
])  # fmt: skip
CONTEXTS = QUESTIONS.select("query_id", text=pl.lit("[1 May]\nMel: ") + pl.col("text"))


def test_a_model_answers_from_the_notes_alone(server: ModelServer) -> None:
    rows = answer(CONTEXTS, QUESTIONS, server.service(concurrency=1))
    found = rows.select("answer", "known", "tokens_read", "tokens_written", "error").unique().rows()
    assert found == [("Anna bought tea.", True, 7, 3, "")]
    notes = {"notes": "[1 May]\nMel: Where is 0?", "asked on": "1 May 2026", "question": "Where is 0?"}
    assert json.loads(server.prompts[0]) == notes
    assert "Oslo" not in str(server.requests)
    with pytest.raises(DataError, match="question 'q1' has no context"):
        answer(CONTEXTS.head(1), QUESTIONS, server.service())


def test_each_kind_has_its_rubric(server: ModelServer) -> None:
    server.modes = [say('{"reason": "same", "correct": true}')]
    answers = QUESTIONS.select("query_id", answer=pl.lit("Oslo"))
    verdicts = judge(QUESTIONS, answers, server.service(concurrency=1))
    assert verdicts["rubric"].to_list() == ["temporal", "single", "knowledge-update", "abstention"]
    assert verdicts["correct"].all()
    first, second, _, last = map(json.loads, server.prompts)
    assert (first["rule"], last["right answer"]) == (RUBRICS["temporal"], "that it is not known")
    assert "rule" not in second
