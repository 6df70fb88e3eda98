"""A real llama.cpp server is asked with every prompt: the wire and the shapes, not the worth of answers."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

import polars as pl
import pytest
from llama_server import llama_server
from pydantic import BaseModel, ConfigDict

from memlab import llm
from memlab.conversation import Message, RollingBuffer, answer, extend_buffer, judge, rewrite
from memlab.knowledge import extract
from memlab.llm import Request, Service
from memlab.llm.chat_completions import read_completion
from memlab.records import Dataset, Question, Turn, frame
from memlab.retrieve import Bench
from memlab.sessions import sessions_of
from memlab.summaries import EXTRACTIVE, build_raptor_tree, rollup

DAY = datetime(2026, 5, 1, 9, tzinfo=UTC)
SAID = ("I bought an oak desk.", "How much?", "It was $210.", "Nice.", "It wobbles.")
ROWS = [
    Turn(f"a/s.{n}", "a", "a/s", n + 1, "Ann", "user", SAID[n % len(SAID)], None, DAY)
    for n in range(9)
]
TURNS = frame(Turn, ROWS)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with llama_server(context=4096) as address:
        yield address


def smol(address: str, *, max_output: int) -> Service:
    """Few tokens, so that it is quick on a busy machine; an answer that is cut has been held to its shape as well."""
    return Service(
        "smol", address, "smollm2", timeout=600, max_retries=0, max_output=max_output, concurrency=1
    )


class Verdict(BaseModel):
    """Only a server that keeps to the schema says one of these."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["zebra", "quokka"]


@pytest.mark.slow
def test_it_keeps_to_the_schema(address: str) -> None:
    asked = [Request("t", 1, (text,), text, Verdict) for text in ("Is it blue?", "Is it Ann's?")]
    answers = llm.ask(asked, smol(address, max_output=16))
    assert {answer.value.verdict for answer in answers} <= {"zebra", "quokka"}
    assert all(answer.tokens[0] > 5 for answer in answers)
    assert "max_output" in llm.ask(asked[:1], smol(address, max_output=2))[0].error


THINKING = """
{%- for message in messages -%}
<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant\n<think>\n{%- endif -%}
"""
"""A template as of models that think: the prompt opens the thinking. No package brings weights of such a model."""

DRAFT = '{"verdict": "quokka"}'


def completion(address: str, said: str) -> bytes:
    """Have the model say exactly this, and give what the server sends."""
    grammar = f"root ::= {json.dumps(said)}"
    body = {"messages": [{"role": "user", "content": "Which?"}], "grammar": grammar}
    sent = urllib.request.Request(
        f"{address}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sent) as answer:
        return answer.read()


@pytest.mark.slow
def test_thinking_that_a_template_opens_is_left_out() -> None:
    with llama_server(context=512, template=THINKING) as address:
        closed = read_completion(
            completion(address, f'{DRAFT}?</think>\n{{"verdict": "zebra"}}'), Verdict
        )
        words = read_completion(completion(address, f"{DRAFT}</think>\nNeither."), Verdict)
    assert closed.value == Verdict(verdict="zebra")
    assert not closed.is_estimated
    assert words.value is None


@pytest.mark.nightly
def test_every_prompt_is_served(address: str) -> None:
    service = smol(address, max_output=4)
    asked = frame(
        Question,
        [Question("q", "a", "What did the desk cost?", "$210", "single-hop", None, [], [])],
    )
    contexts = pl.DataFrame({"query_id": ["q"], "text": ["Ann: The oak desk was $210."]})
    nodes = rollup(TURNS.head(3), service=service)
    data = Dataset("made", "made", TURNS, sessions_of(TURNS))
    bench = Bench.of(data, encoder="hashing:64", progress=False)
    clusters = build_raptor_tree(bench, service=service).nodes
    answered = answer(contexts, asked, service)
    verdicts = judge(asked, answered.with_columns(answer=pl.lit("$210")), service)
    stated = extract(TURNS.head(1), service=service).outcomes
    made = rewrite(["And when was it bought?"], history=[[SAID[1], SAID[2]]], service=service)
    assert made["method"][0] in ("model", "refused", "appended")
    assert (
        extend_buffer(
            RollingBuffer(), [Message("user", text) for text in SAID], service=service
        ).n_summarised
        == 1
    )
    # Each was read to its end, and cut at the longest output or answered.
    extractive = pl.concat([nodes, clusters]).filter(service=EXTRACTIVE)
    reasons = [*answered["error"], *verdicts["error"], *stated["reason"], *extractive["reason"]]
    assert len(reasons) > 5
    assert all("max_output" in reason for reason in reasons if reason)
