"""Follow-ups made to stand alone: histories, the gate, the fallback, and models that answer badly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_server import UNUSABLE, ModelServer, say

from memlab import DataError
from memlab.conversation import Message, messages, read_history, rewrite, score
from memlab.conversation.rewriting import is_rewrite, signs

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
        ["What did the oak desk cost?", "$210."],
        [{**DESK[1], "content": [{"type": "text", "text": DESK[1]["content"]}, {"type": "image_url"}]}, DESK[2]],
        [DESK[1], {"role": "assistant", "content": None, "tool_calls": []}, {"role": "tool", "content": "x"}, DESK[2]],
        (message for message in DESK),
    ],
)
def test_histories_in_every_form_are_the_same(history: Any) -> None:
    assert messages(history) == (Message("user", "What did the oak desk cost?"), Message("assistant", "$210."))


@pytest.mark.parametrize("history", ["one text", {"role": "user"}, [5], [("user", 5)], [{"content": "x"}], [("a",)], 5])
def test_another_form_is_an_error(history: Any) -> None:
    with pytest.raises(DataError, match="histor"):
        messages(history)


def test_a_history_is_read_from_a_file(tmp_path: Path) -> None:
    for text in (json.dumps(DESK), "\n".join(map(json.dumps, DESK))):
        (tmp_path / "history.json").write_text(text)
        assert read_history(tmp_path / "history.json") == messages(DESK)
    (tmp_path / "history.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"history\.json"):
        read_history(tmp_path / "history.json")


@pytest.mark.parametrize(
    ("question", "sign"),
    [
        ("And when was that?", "ellipsis"),
        ("How much did he weigh?", "pronoun"),
        ("What did that cost?", "demonstrative"),
        ("Who lives there?", "demonstrative"),
        ("What did the second one ask for?", "other"),
        ("Did Ann see anybody else?", "other"),
        ("Who took over?", "short"),
    ],
)
def test_signs_of_a_question_that_leans(question: str, sign: str) -> None:
    assert sign in signs(question)


@pytest.mark.parametrize(
    "question",
    [
        "When did Felix pass his practical driving test?",
        "What rent does Mika pay for the flat that she got?",
        "Is there any milk in the blue fridge of Bo?",
        "Which dose of amlodipine did Dr Lee write down in March?",
        "What did the oak desk cost?",
    ],
)
def test_a_question_that_stands_alone_shows_no_sign(question: str) -> None:
    assert signs(question) == []


def test_without_a_model_the_last_exchange_is_appended() -> None:
    assert rewrite("And the lamp?", history=DESK, service=None) == "And the lamp? (oak desk cost 210)"
    later = [*DESK, ("user", "And the lamp?"), ("assistant", "$35.")]
    assert rewrite("When was it bought?", history=later, service=None).endswith("(oak desk cost lamp 35)")


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.lists(st.text(max_size=30), max_size=6))
def test_no_text_breaks_it_and_a_batch_is_as_one_by_one(questions: list[str], history: list[str]) -> None:
    many = rewrite(questions, history=[history] * len(questions), service=None)
    assert many["rewritten"].to_list() == [rewrite(text, history=history, service=None) for text in questions]
    assert all(new.startswith(old) for old, new in zip(questions, many["rewritten"], strict=True))
    first = rewrite(questions, history=[[]] * len(questions), service=None)
    assert first.select("rewritten", "method").rows() == [(text, "first") for text in questions]
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


@pytest.mark.parametrize(
    "answer",
    ["It was bought in May.", "When?\nIn May.", "x" * 900 + "?", "And when was the sofa from the shop sold?", ""],
)
def test_an_answer_that_is_no_rewrite_is_refused(server: ModelServer, answer: str) -> None:
    server.modes = [say(json.dumps({"question": answer}))]
    made = rewrite(["And when was it bought by Zoë?"], history=[DESK], service=server.service())
    assert made["rewritten"][0].startswith("And when was it bought by Zoë?")
    assert made["method"][0] in ("refused", "appended")


def test_a_rewrite_that_loses_a_name_is_refused() -> None:
    assert not is_rewrite("What did the sofa cost there?", of="What did Ann's sofa cost there?")
    assert is_rewrite("What did Ann's sofa cost in Oslo?", of="What did Ann's sofa cost there?")
    assert not is_rewrite("What did the sofa cost?", of="And did the second lamp of the shop arrive?")


@pytest.mark.parametrize("asked", ["Who got the first one?", "And the second?", "Why the old one?", "What of another?"])
def test_words_that_point_elsewhere_may_go(asked: str) -> None:
    assert is_rewrite("Who got the bakery on the corner?", of=asked)


@pytest.mark.parametrize("fault", ["instructions", "50 MB", "429", "deep", "no JSON"])
def test_a_service_that_fails_is_told_in_one_line(server: ModelServer, fault: str) -> None:
    server.modes = [UNUSABLE[fault]]
    with pytest.warns(UserWarning, match="1 of 1 rewrites came from no model") as told:
        made = rewrite("And the lamp?", history=DESK, service=server.service(max_retries=0))
    assert made == "And the lamp? (oak desk cost 210)"
    assert len(told) == 1


CANARD = Path(__file__).parents[3] / "shared" / "data" / "canard" / "canard_dev_a.json"


@pytest.mark.shared_data
def test_the_fallback_on_questions_of_canard() -> None:
    if not CANARD.exists():
        pytest.skip("the research conversations are not beside the project (no canard/canard_dev_a.json)")
    items = [item for item in json.loads(CANARD.read_text()) if len(item["History"]) > 2]
    asked, people = ([item[name] for item in items] for name in ("Question", "Rewrite"))
    titles = [f"{item['Question']} {item['History'][0]}" for item in items]
    assert score(asked, titles, people)["recall"].item() == pytest.approx(0.6, abs=0.03)
    # Title and section stand where a conversation has its first exchange.
    made = rewrite(asked, history=[item["History"] for item in items], service=None)
    found = score(asked, made["rewritten"].to_list(), people).row(0, named=True)
    assert found["recall"] > 0.6
    assert found["damaged"] < 0.25
