"""Answers and verdicts of a language model, with their cost, resumed where they stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from chat_server import FAULTS, KEY, UNANSWERED, ChatServer, said
from llama_server import llama_server

from memlab.context import answer, count, judge
from memlab.context.by_model import JUDGE, POINT, PROMPTS_VERSION, RUBRICS, SYSTEM, prompts
from memlab.errors import DataError
from memlab.llm import Service
from memlab.records import Question, frame

WHEN = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("LAB_TEST_KEY", KEY)
    made = ChatServer()
    yield made
    made.close()


def questions(n: int = 3) -> pl.DataFrame:
    kinds = ["temporal", "single-hop", "knowledge-update"]
    rows = [
        Question(f"q{i}", "u", f"Where is {i}?", f"Oslo {i}", kinds[i % 3], WHEN, [], [], abstention=i == 3)
        for i in range(n)
    ]
    return frame(Question, rows)


def contexts(n: int = 3) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{i}" for i in range(n)], "text": [f"[1 May]\nMel: {i}" for i in range(n)]})


def test_answers_with_cost_and_latency(server: ChatServer) -> None:
    rows = answer(contexts(), questions(), server.service())
    assert rows["answer"].to_list() == ["Anna bought tea."] * 3
    assert rows["known"].all()
    sent = [request["messages"][-1]["content"] for request in server.requests]
    assert all("Mel: " in text and "asked on 1 May 2026" in text and "Oslo" not in text for text in sent)
    tokens = sorted(int(n) for n in count([f"{SYSTEM}\n{text}" for text in sent]))
    assert sorted(rows["prompt_tokens"]) == tokens
    assert rows["output_tokens"].min() > 0
    assert rows["seconds"].min() > 0
    assert rows["failure"].to_list() == [""] * 3


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - {"10 MB of JSON"}))
def test_failures_are_rows_with_a_kind(server: ChatServer, fault: str) -> None:
    server.answers = [FAULTS[fault]]
    rows = answer(contexts(1), questions(1), server.service(max_retries=0))
    assert rows["answer"].to_list() == [None]
    assert rows["failure"][0]
    assert KEY not in rows["failure"][0]
    assert (rows["failure_kind"][0] == "content") == (fault not in UNANSWERED)
    verdicts = judge(questions(1), rows, server.service())
    assert verdicts["correct"].to_list() == [None]


def test_an_interrupted_run_goes_on(server: ChatServer, tmp_path: Path) -> None:
    service = server.service(cache=str(tmp_path / "answers.jsonl"), max_retries=0)
    answer(contexts(2), questions(2), service)
    rows = answer(contexts(4), questions(4), service)
    assert rows["answer"].null_count() == 0
    assert len(server.requests) == 4
    first = judge(questions(4), rows, service)
    assert judge(questions(4), rows, service).drop("seconds").equals(first.drop("seconds"))
    assert len(server.requests) == 8


def test_each_kind_has_its_rubric(server: ChatServer) -> None:
    server.answers = [lambda request: said(json.dumps({"reason": "same", "correct": "9" not in str(request)}))]
    asked = questions(4)
    answer_rows = pl.DataFrame({"query_id": asked["query_id"], "answer": ["Oslo"] * 4})
    verdicts = judge(asked, answer_rows, server.service())
    assert verdicts["rubric"].to_list() == ["temporal", "single", "knowledge-update", "abstention"]
    assert verdicts["correct"].to_list() == [True] * 4
    assert verdicts["score"].to_list() == [1.0] * 4
    assert verdicts["question_type"].null_count() == 0
    prompts = {r["messages"][-1]["content"] for r in server.requests}
    assert {r["messages"][0]["content"] for r in server.requests} == {JUDGE}
    for name in ("temporal", "knowledge-update", "abstention"):
        assert sum(RUBRICS[name] in prompt for prompt in prompts) == 1
    (none,) = (prompt for prompt in prompts if RUBRICS["abstention"] in prompt)
    assert "Oslo 3" not in none
    assert verdicts.height == 4


def test_a_question_without_gold_is_not_judged(server: ChatServer) -> None:
    asked = questions(2).with_columns(answer=pl.lit(None, pl.String))
    verdicts = judge(asked, pl.DataFrame({"query_id": ["q0", "q1"], "answer": ["a", "b"]}), server.service())
    assert verdicts["correct"].to_list() == [None] * 2
    assert not server.requests


def test_a_question_without_context_is_named(server: ChatServer) -> None:
    with pytest.raises(DataError, match="question 'q1' has no context"):
        answer(contexts(1), questions(2), server.service())


def test_points_are_judged_one_by_one(server: ChatServer) -> None:
    met = {"Oslo": "fully", "tea": "partly", "no coffee": "not"}

    def by_point(request: dict) -> tuple[int, dict]:
        text = request["messages"][-1]["content"]
        return said(json.dumps({"reason": "so", "met": next(met[point] for point in met if f"Point: {point}" in text)}))

    server.answers = [by_point]
    points = pl.Series("rubric", [["Oslo", "tea", "no coffee"], ["Oslo"], None], dtype=pl.List(pl.String))
    asked = questions().with_columns(points)
    answered = pl.DataFrame({"query_id": asked["query_id"], "answer": ["tea in Oslo", "Oslo", None]})
    verdicts = judge(asked, answered, server.service(input_price=1e6, output_price=0.0))
    assert verdicts["rubric"].to_list() == ["points", "points", "knowledge-update"]
    assert verdicts["score"].to_list() == [0.5, 1.0, None]
    assert verdicts["correct"].to_list() == [False, True, None]
    assert {request["messages"][0]["content"] for request in server.requests} == {POINT}
    assert verdicts["price"].to_list() == [*verdicts["prompt_tokens"][:2], None]


def test_a_point_without_a_verdict_leaves_its_question_without_one(server: ChatServer) -> None:
    server.answers = [lambda request: said("?" if "Point: tea" in str(request) else '{"reason": "so", "met": "fully"}')]
    asked = questions(1).with_columns(rubric=pl.lit(["Oslo", "tea"]))
    verdicts = judge(asked, pl.DataFrame({"query_id": ["q0"], "answer": ["Oslo"]}), server.service())
    assert verdicts.select("score", "correct", "failure_kind").row(0) == (None, None, "content")


def test_tokens_are_the_servers_where_it_counts_them(server: ChatServer, tmp_path: Path) -> None:
    usage = {"usage": {"prompt_tokens": 100, "completion_tokens": 7}}
    bodies = iter(["?", '{"answer": "Oslo", "known": true}'])
    server.answers = [lambda request: (200, said(next(bodies))[1] | usage)]
    service = server.service(cache=str(tmp_path / "a.jsonl"), input_price=2.0, output_price=10.0)
    first = answer(contexts(1), questions(1), service)
    assert first.select("prompt_tokens", "output_tokens", "price").row(0) == (200, 14, pytest.approx(540e-6))
    again = answer(contexts(1), questions(1), service)
    assert len(server.requests) == 2
    assert again.equals(first), "what is kept costs what it cost"


def test_a_changed_prompt_has_a_new_version() -> None:
    digest = hashlib.sha256(json.dumps(prompts()).encode()).hexdigest()[:16]
    assert (PROMPTS_VERSION, digest) == (2, "98619f50dc88ab37"), "raise PROMPTS_VERSION with every change"


@pytest.mark.slow
def test_a_real_server_answers_and_judges(tmp_path: Path) -> None:
    with llama_server(context=1024) as url:
        service = Service("local", url, "smollm2", timeout=1800, max_output=60, cache=str(tmp_path / "a.jsonl"))
        rows = answer(contexts(1), questions(1), service)
        verdicts = judge(questions(1), rows, service)
    # What it says is not the point: a model of 135 million parameters.
    assert rows["answer"][0] or rows["failure_kind"][0] == "content"
    assert rows["answer"][0] is None or verdicts["correct"][0] is not None or verdicts["failure_kind"][0] == "content"
