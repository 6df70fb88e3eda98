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

DESK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What did the oak desk cost?"},
    {"role": "assistant", "content": "$210."},
]


def test_histories_in_every_form_are_the_same_and_another_form_is_an_error(tmp_path: Path) -> None:
    parts = {**DESK[1], "content": [{"type": "text", "text": DESK[1]["content"]}, {"type": "image_url"}]}
    calls = [{"role": "assistant", "content": None, "tool_calls": []}, {"role": "tool", "content": "x"}]
    pairs: Any = (tuple(message.values()) for message in DESK)
    named = [("Human", DESK[1]["content"]), {"role": "ai", "content": [{"text": "$210."}, {"text": None}]}]
    answered = [(DESK[1]["content"], "$210.")]
    forms = (DESK, pairs, [parts, DESK[2]], [DESK[1], *calls, DESK[2]], named, answered)
    read = [parse_messages(history) for history in forms]
    path = tmp_path / "history.json"
    lines = "\n \n".join(map(json.dumps, DESK))
    for text in (json.dumps(DESK), lines, "\ufeff" + json.dumps({"messages": DESK}, indent=1)):
        path.write_text(text)
        read.append(read_history(path))
    assert set(read) == {(Message("user", "What did the oak desk cost?"), Message("assistant", "$210."))}
    path.write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"history\.json"):
        read_history(path)
    for wrong in ("one text", {"role": "user"}, [5], [("user", 5)], [{"content": "x"}], 5):
        with pytest.raises(DataError, match="histor"):
            parse_messages(wrong)  # type: ignore[arg-type]


def test_signs_of_a_question_that_leans() -> None:
    leaning = "And when was that? How much did he weigh? Who lives there? What did the second one ask for?"
    alone = "When did Felix pass his practical test? What rent does Mika pay for the flat that she got? "
    alone += "Is there any milk in the blue fridge of Bo? What did the oak desk cost?"
    assert all(map(needs_history, re.findall(r"\w.*?\?", leaning)))
    assert not any(map(needs_history, re.findall(r"\w.*?\?", alone)))


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.lists(st.text(max_size=30), max_size=6))
def test_no_text_breaks_it_and_a_batch_is_as_one_by_one(questions: list[str], history: list[str]) -> None:
    many = rewrite(questions, history=[history] * len(questions), service=None)
    assert many["rewritten"].to_list() == [rewrite(text, history=history, service=None) for text in questions]
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
    server.modes = [say('{"question": "It was bought in May."}')]
    with pytest.warns(UserWarning, match="1 of 1 rewrites were refused"):
        refused = rewrite(asked[:1], history=[DESK], service=server.service())
    assert refused.row(0) == (asked[0], asked[0], "refused")


@pytest.mark.parametrize(
    ("answer", "question", "valid"),
    [
        ("When?\nIn May.", "And when was it bought by Zoë?", False),
        ("What" + " of it" * 450 + "?", "And when was it bought?", False),
        ("What did the sofa cost there?", "What did Ann's sofa cost there?", False),
        ("What did the sofa cost?", "And did the second lamp of the shop arrive?", False),
        # Words that point elsewhere may go.
        ("Who got the bakery on the corner?", "Who got the first one?", True),
    ],
)
def test_what_is_no_rewrite(answer: str, question: str, valid: bool) -> None:
    assert is_valid_rewrite(answer, question) is valid


def test_where_a_service_fails_the_last_exchange_is_appended_and_one_line_says_so(server: ModelServer) -> None:
    server.modes = [UNUSABLE["429"]]
    history = [*DESK, ("user", "And the lamp?"), ("assistant", "$35.")]
    with pytest.warns(UserWarning, match="1 of 1 rewrites came from no model") as warned:
        made = rewrite("When was it bought?", history=history, service=server.service(max_retries=0))
    assert made == "When was it bought? (oak desk cost lamp 35)"
    assert len(warned) == 1
