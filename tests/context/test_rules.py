"""Answers judged without a model."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.context import by_rules, refuses, token_f1
from memlab.context.rules import RULES, contains

CASES = [
    # question, right answer, answer: contains, token F1, values
    ("How many pages are they?", "923 pages", "They come to 923.", (False, False, True)),
    ("How many pages are they?", "923 pages", "932 pages", (False, True, False)),
    ("When was it?", "7 May 2023", "May 7th, 2023", (False, True, True)),
    ("Where is it?", "the Casa Viktor", "casa viktor!", (True, True, True)),
    ("Which came first, the boots or the hat?", "The boots came first.", "the hat", (False, False, False)),
    ("Where is it?", "Oslo", "I don't know, Oslo was never mentioned.", (False, False, False)),
    ("Does he swim?", "yes", "Yes.", (True, True, True)),
]


@pytest.mark.parametrize(("question", "gold", "answer", "verdicts"), CASES)
def test_each_rule_decides(question: str, gold: str, answer: str, verdicts: tuple[bool, ...]) -> None:
    asked = pl.DataFrame({"query_id": ["q"], "text": [question], "answer": [gold], "abstention": [False]})
    row = by_rules(asked, pl.DataFrame({"query_id": ["q"], "answer": [answer]}))
    assert row.select(RULES).row(0) == verdicts


def test_where_nothing_is_known_refusing_is_right_and_no_answer_is_no_verdict() -> None:
    ids = ["a", "b", "c", "d"]
    asked = pl.DataFrame(
        {
            "query_id": ids,
            "text": ["?"] * 4,
            "answer": ["The conversations do not say."] * 2 + ["Oslo", None],
            "abstention": [True, True, False, False],
        }
    )
    said = pl.DataFrame({"query_id": ids, "answer": ["That was never mentioned.", "$40", None, "Oslo"]})
    rows = by_rules(asked, said)
    assert rows["values"].to_list() == [True, False, None, None]
    assert rows["refuses"].to_list() == [True, False, None, None]


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.", "You didn't tell me.", "I cannot find it.", "There's no mention of it.",
        "It wasn't specified.", "Nobody said so.", "I’m not sure.", "The notes do not say.",
        "I have no record of that.", "It is unknown.",
    ],
)  # fmt: skip
def test_refusals(text: str) -> None:
    assert refuses(text)


@pytest.mark.parametrize("text", ["Oslo, I know.", "You told me: $12.", "She does not eat meat.", "No, never."])
def test_answers_are_no_refusals(text: str) -> None:
    assert not refuses(text)


@given(st.text(), st.text())
def test_f1_is_a_share_and_symmetric(one: str, other: str) -> None:
    assert 0 <= token_f1(one, other) <= 1
    assert token_f1(one, other) == token_f1(other, one)
    assert contains(one, one) == (token_f1(one, one) == 1)
