"""Follow-ups made to stand alone: histories, the gate, the fallback, and models that answer badly."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_server import UNUSABLE, ModelServer, say

from memlab import DataError
from memlab.conversation import Message, parse_messages, read_history, rewrite
from memlab.conversation.rewriting import is_valid_rewrite, needs_history

DESK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What did the oak desk cost?"},
    {"role": "assistant", "content": "$210."},
]


@pytest.mark.parametrize(
    "history",
    [
        DESK,
        [("user", "What did the oak desk cost?"), ["assistant", "$210."]],
        (text for text in ("What did the oak desk cost?", "$210.")),
        [{**DESK[1], "content": [{"type": "text", "text": DESK[1]["content"]}, {"type": "image_url"}]}, DESK[2]],
        [DESK[1], {"role": "assistant", "content": None, "tool_calls": []}, {"role": "tool", "content": "x"}, DESK[2]],
        [("What did the oak desk cost?", "$210.")],
        [{"role": "Human", "content": "What did the oak desk cost?"}, ("ai", [{"text": "$210."}, {"text": None}])],
    ],
)
def test_histories_in_every_form_are_the_same(history: Any) -> None:
    assert parse_messages(history) == (Message("user", "What did the oak desk cost?"), Message("assistant", "$210."))


def test_a_history_is_read_from_a_file_and_another_form_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    lines = "\n \n".join(map(json.dumps, DESK))
    for text in (json.dumps(DESK), lines, "\ufeff" + json.dumps({"messages": DESK}, indent=1)):
        path.write_text(text)
        assert read_history(path) == parse_messages(DESK)
    path.write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"history\.json"):
        read_history(path)
    for wrong in (
        "one text",
        {"role": "user"},
        [5],
        [("user", 5)],
        [{"content": "x"}],
        [{"role": "x", "content": "x"}],
        5,
    ):
        with pytest.raises(DataError, match="histor"):
            parse_messages(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("questions", "leaning"),
    [
        ("And when was that? How much did he weigh? What did that cost? Who lives there? Who took over?", True),
        ("What did the second one ask for? Did Ann see anybody else?", True),
        ("When did Felix pass his practical driving test? What rent does Mika pay for the flat that she got?", False),
        ("Is there any milk in the blue fridge of Bo? What did the oak desk cost?", False),
    ],
)
def test_signs_of_a_question_that_leans(questions: str, leaning: bool) -> None:
    assert {needs_history(text) for text in re.findall(r"\w.*?\?", questions)} == {leaning}


def test_without_a_model_the_last_exchange_is_appended() -> None:
    assert rewrite("And the lamp?", history=DESK, service=None) == "And the lamp? (oak desk cost 210)"
    later = [*DESK, ("user", "And the lamp?"), ("assistant", "$35.")]
    assert rewrite("When was it bought?", history=later, service=None).endswith("(oak desk cost lamp 35)")


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.lists(st.text(max_size=30), max_size=6))
def test_no_text_breaks_it_and_a_batch_is_as_one_by_one(questions: list[str], history: list[str]) -> None:
    many = rewrite(questions, history=[history] * len(questions), service=None)
    assert many["rewritten"].to_list() == [rewrite(text, history=history, service=None) for text in questions]
    assert all(new.startswith(old) for old, new in zip(questions, many["rewritten"], strict=True))
    with pytest.raises(DataError, match="0 histories"):
        rewrite(questions, history=[], service=None)


def test_a_model_rewrites_what_the_gate_lets_in(server: ModelServer) -> None:
    server.modes = [say('{"question": "When was the oak desk bought?"}')]
    asked = ["And when was it bought?", "What did the brown lamp cost?", "And when was it bought?"]
    made = rewrite(asked, history=[DESK, DESK, []], service=server.service())
    assert made["method"].to_list() == ["model", "as asked", "first"]
    assert made["rewritten"].to_list() == ["When was the oak desk bought?", *asked[1:]]
    (prompt,) = server.prompts
    assert json.loads(prompt) == {"conversation": DESK[1:], "last question": asked[0]}
    for answer in ("It was bought in May.", "x" * 900 + "?"):
        server.modes = [say(json.dumps({"question": answer}))]
        with pytest.warns(UserWarning, match="1 of 1 rewrites were refused"):
            refused = rewrite(asked[:1], history=[DESK], service=server.service())
        assert refused.row(0) == (asked[0], asked[0], "refused")


@pytest.mark.parametrize(
    ("answer", "question", "valid"),
    [
        ("When?\nIn May.", "And when was it bought by Zoë?", False),
        ("And when was the sofa sold?", "And when was it bought by Zoë?", False),
        ("What did the sofa cost there?", "What did Ann's sofa cost there?", False),
        ("What did the sofa cost?", "And did the second lamp of the shop arrive?", False),
        # Words that point elsewhere may go.
        ("Who got the bakery on the corner?", "Who got the first one?", True),
        ("Who got the bakery on the corner?", "And the second?", True),
        ("Who got the bakery on the corner?", "What of another?", True),
    ],
)
def test_what_is_no_rewrite(answer: str, question: str, valid: bool) -> None:
    assert is_valid_rewrite(answer, question) is valid


@pytest.mark.parametrize("fault", ["instructions", "429"])
def test_a_service_that_fails_is_told_in_one_line(server: ModelServer, fault: str) -> None:
    server.modes = [UNUSABLE[fault]]
    with pytest.warns(UserWarning, match="1 of 1 rewrites came from no model") as warned:
        made = rewrite("And the lamp?", history=DESK, service=server.service(max_retries=0))
    assert made == "And the lamp? (oak desk cost 210)"
    assert len(warned) == 1
