"""Rewriting by a language model that may fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from chat_server import FAULTS, KEY, ChatServer, said

from memlab.errors import ModelError
from memlab.llm import Service
from memlab.rewrite import rewrite
from memlab.rewrite.asking import MAX_OUTPUT, is_rewrite

QUESTION = "Where was she born?"
HISTORY = ["Who taught Lena Fischer to skate?", "Tomas Novak taught Lena Fischer in Prague."]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("LAB_TEST_KEY", KEY)
    running = ChatServer(says("Where was Lena Fischer born?"))
    yield running
    running.close()


def says(text: str) -> Callable[[dict], tuple[int, object]]:
    return lambda request: said(json.dumps({"question": text}))


def one(server: ChatServer, **changes: object) -> dict:
    return rewrite([QUESTION], [HISTORY], service=server.service(**changes)).row(0, named=True)


def test_the_model_rewrites(server: ChatServer) -> None:
    row = one(server)
    assert (row["rewritten"], row["method"]) == ("Where was Lena Fischer born?", "service")
    assert row["added"] == ["lena", "fischer"]


def test_what_is_sent(server: ChatServer) -> None:
    history = ["Who was Ada?", "Ada wrote programs.", *HISTORY, *HISTORY, *HISTORY]
    rewrite([QUESTION], [history], topics=[["Skating"]], service=server.service())
    (request,) = server.requests
    sent = request["messages"][-1]["content"]
    assert request["max_tokens"] == MAX_OUTPUT == 150
    assert "Ada" not in sent
    assert sent.count("Tomas Novak taught") == 3
    assert "Skating" in sent
    assert sent.endswith(QUESTION)


def test_a_service_with_less_output_keeps_it(server: ChatServer) -> None:
    one(server, max_output=60)
    assert server.requests[0]["max_tokens"] == 60


def test_the_question_is_sent_whole_where_little_fits(server: ChatServer) -> None:
    long = [text + " and so on" * 300 for text in HISTORY]
    rewrite([QUESTION], [long], service=server.service(max_input=400))
    sent = server.requests[0]["messages"][-1]["content"]
    assert len(sent) <= 400
    assert sent.endswith(QUESTION)
    assert "Lena Fischer" in sent


@pytest.mark.parametrize("fault", list(FAULTS))
def test_the_question_stays_on_any_failure(server: ChatServer, fault: str) -> None:
    server.answers = [FAULTS[fault]]
    row = one(server, max_retries=0)
    assert (row["rewritten"], row["added"], row["method"], row["gated"]) == (QUESTION, [], "failed", True)


@pytest.mark.parametrize(
    "text",
    [
        "Lena Fischer was born in Vienna.",
        "   ",
        "Where was Lena Fischer born?\nShe was born in Vienna.",
        "Where was Lena Fischer born? " + "She was a skater who learned in Prague with Tomas Novak. " * 8,
        "Who is the mayor of Vienna?",
    ],
)
def test_what_is_no_rewrite_is_refused(server: ChatServer, text: str) -> None:
    server.answers = [says(text)]
    assert one(server)["rewritten"] == QUESTION


def test_requests_need_no_question_mark() -> None:
    assert is_rewrite("Name some films of The Kites", of="Name some of their films")
    assert is_rewrite("who is Ada", of="who is she")


def test_questions_without_signs_and_first_turns_are_not_sent(server: ChatServer) -> None:
    questions = ["When did Lena Fischer win the European Championship in Oslo?", QUESTION]
    frame = rewrite(questions, [HISTORY, []], service=server.service())
    assert server.requests == []
    assert frame["method"].to_list() == ["untouched", "first"]
    assert frame["rewritten"].to_list() == questions


def test_a_service_that_cannot_be_asked_is_an_error() -> None:
    with pytest.raises(ModelError, match="NO_SUCH_KEY"):
        rewrite([QUESTION], [HISTORY], service=Service("x", "http://127.0.0.1:9/v1", "m", api_key_env="NO_SUCH_KEY"))
