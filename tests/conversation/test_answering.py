"""Answers and verdicts of a language model, and whether a context holds an answer, values as values."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import ModelServer, say

from memlab.conversation import answer, answer_presence, contains_answer, judge
from memlab.conversation.answer_containment import parse_gold_alternatives
from memlab.conversation.answers_and_judge import RUBRICS
from memlab.errors import DataError
from memlab.experiments.context_bounds import (
    evidence_contexts,
    swap_contexts_between_questions,
    whole_history_contexts,
)
from memlab.records import Dataset, Question, frame

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
    notes = {
        "notes": "[1 May]\nMel: Where is 0?",
        "asked on": "1 May 2026",
        "question": "Where is 0?",
    }
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


@pytest.mark.parametrize(
    ("context", "answer", "expected"),
    [
        ("Mel: I have two dogs.", "2", True),
        ("Mel: It was $1,250 in all.", "1250 dollars", True),
        ("[7 May 2023]\nMel: We met today.", "May 2023", True),
        ("[14 September 2022]\nMel: We met last Friday.", "14September, 2022", True),
        ("Mel: We met last Friday (14 July 2023).", "The Friday before 15 July 2023", True),
        ("Mel: I play the clarinet.\nAnn: And the violin?", "clarinet and violin", True),
        ("Mel: I went running with Zoë’s dogs twice", "run with Zoë's dog 2 times (in June)", True),
        (
            "Mel: 18 days ago",
            "17 days ago. 18 days (including the last day) is also acceptable.",
            True,
        ),
        ("[8 May 2023]\nMel: We met last week.", "1 May 2023", False),
        ("Mel: We met in May 2023.", "7 May 2023", False),
        ("Mel: I sold a lamp.\nMel: Then I bought a chair.", "sold a chair", False),
        # A heading ends with its source.
        (
            "Earlier sessions:\n[7 May 2023]\nThey met.\nThis conversation:\nAnn has a desk",
            "Ann 7 May 2023",
            False,
        ),
    ],
)
def test_what_a_context_holds(context: str, answer: str, expected: bool) -> None:
    assert contains_answer(context, answer) is expected


def test_what_cannot_be_looked_for_is_never_held() -> None:
    explanation = "It's the key to making them feel welcome and coming back to the shop later"
    for text in ("Likely yes, she loves it", "She quit because of the noise", explanation, None):
        assert parse_gold_alternatives(text) == ()
        assert not contains_answer(f"Mel: {text}", text)


@settings(max_examples=15)
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=40))
def test_more_context_never_holds_less(context: str, more: str, answer: str) -> None:
    before = contains_answer(f"a\n{context}", answer)
    assert not before or contains_answer(f"{more.replace('[', '(')}\na\n{context}", answer)


def test_bounds_of_what_contexts_may_hold(talk: Dataset) -> None:
    contexts = {"whole": whole_history_contexts(talk), "evidence": evidence_contexts(talk)}
    contexts["other"] = swap_contexts_between_questions(contexts["evidence"], talk.questions)
    rows = answer_presence(contexts, talk.questions).pivot(
        "context", index="query_id", values="holds"
    )
    assert rows["whole"].to_list() == rows["evidence"].to_list() == [True, True, True, None]
    assert not rows["other"].any()
    assert (
        contexts["evidence"]["text"][0]
        == "[1 May 2026]\nAnn: I bought the oak desk for $210 today."
    )
    with pytest.raises(DataError, match="ann/q0"):
        answer_presence({"mine": contexts["whole"][1:]}, talk.questions)
