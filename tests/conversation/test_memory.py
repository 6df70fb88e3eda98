"""What a conversation keeps, sessions in play and a short summary, and its follow-ups made to stand alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import UNUSABLE, ModelServer, say

from memlab.conversation import (
    Message,
    RollingBuffer,
    SessionMemory,
    bias,
    extend_buffer,
    parse_messages,
    read_history,
    remember,
    rewrite,
)
from memlab.conversation.question_rewriting import is_valid_rewrite, needs_history
from memlab.conversation.session_memory import MAX_IN_PLAY, MAX_WORDS
from memlab.errors import DataError
from memlab.retrieve import Bench, bm25, combsum

NOON = datetime(2026, 5, 1, 12)


def test_the_newest_stands_first_and_the_oldest_is_forgotten() -> None:
    memory = SessionMemory("chat")
    for n in range(70):
        memory = remember(memory, now=NOON, in_play=[f"s{n}", "s0"])
    assert memory.in_play[:3] == ("s69", "s0", "s68")
    assert len(memory.in_play) == MAX_IN_PLAY
    soon, later = (remember(memory, now=NOON + timedelta(minutes=n)) for n in (29, 31))
    assert (soon.in_play, soon.last_access) == (memory.in_play, NOON + timedelta(minutes=29))
    assert later.in_play == ()
    for wrong in (NOON - timedelta(seconds=1), NOON.replace(tzinfo=UTC)):
        with pytest.raises(DataError, match="order of time"):
            remember(memory, now=wrong)


@given(
    st.lists(st.sampled_from(["ann/s1", "ann/s2", "ann/s3", "bo/s1"])),
    st.floats(1, 50),
    st.sampled_from([0.0, -9.0]),
)
@settings(max_examples=10)
def test_a_bias_hides_nothing_and_keeps_the_order_within_each_half(
    bench: Bench, in_play: list[str], factor: float, shift: float
) -> None:
    run = bm25(bench)
    run = replace(run, frame=run.frame.with_columns(pl.col("score") + shift))
    raised = bias(run, bench, in_play=in_play, factor=factor)
    keys = ["query_id", "doc_id"]
    assert raised.frame.select(keys).sort(keys).equals(run.frame.select(keys).sort(keys))
    steps = raised.frame.select(step=pl.col("score").diff().over("query_id"))["step"].drop_nulls()
    assert (steps < 0).all()
    played = pl.col("doc_id").str.split(".").list.first().str.replace("/", "/s").is_in(in_play)
    for half in (played, ~played):
        assert raised.frame.filter(half).select(keys).equals(run.frame.filter(half).select(keys))


def test_what_is_in_play_passes_what_is_close(bench: Bench) -> None:
    run = combsum(bench)
    raised = bias(
        run, bench, in_play=pl.DataFrame({"query_id": ["ann/q0"], "id": ["ann/s3"]}), factor=50.0
    )
    assert raised.frame.filter(rank=1, query_id="ann/q0")["doc_id"].item().startswith("ann/3")
    others = pl.col("query_id") != "ann/q0"
    assert raised.frame.filter(others)["doc_id"].equals(run.frame.filter(others)["doc_id"])
    with pytest.raises(DataError, match="hides nothing"):
        bias(run, bench, in_play=[], factor=0.9)


def test_the_summary_of_older_messages_stays_short_whoever_writes_it(server: ModelServer) -> None:
    plain = RollingBuffer()
    for n in range(60):
        plain = extend_buffer(
            plain, [Message("user", f"On day {n} Ann paid {n} euros for the tram in Oslo. Nice.")]
        )
    assert (len(plain.messages), plain.n_summarised) == (4, 56)
    assert 0 < sum(len(text.split()) for text in plain.summary) <= MAX_WORDS
    assert not any("Nice" in text for text in plain.summary)
    odd = [Message("user", text) for text in ("", "\n", "🙂" * 400, "x" * 9_000, "a. " * 90)]
    assert extend_buffer(RollingBuffer(), odd).n_summarised == 1
    server.modes = [say('{"sentences": ["Ann took the tram."]}')]
    assert extend_buffer(plain, odd[:1], service=server.service()).summary == (
        "Ann took the tram.",
    )
    assert json.loads(server.prompts[0])["next messages"][0]["content"] == plain.messages[0].content
    extractive = extend_buffer(plain, odd[:1]).summary
    for mode in (say(json.dumps({"sentences": ["word " * 60] * 4})), UNUSABLE["429"]):
        server.modes = [mode]
        assert (
            extend_buffer(plain, odd[:1], service=server.service(max_retries=0)).summary
            == extractive
        )


DESK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What did the oak desk cost?"},
    {"role": "assistant", "content": "$210."},
]


def test_histories_in_every_form_are_the_same_and_another_form_is_an_error(tmp_path: Path) -> None:
    parts = {
        **DESK[1],
        "content": [{"type": "text", "text": DESK[1]["content"]}, {"type": "image_url"}],
    }
    calls = [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "x"},
    ]
    pairs: Any = (tuple(message.values()) for message in DESK)
    named = [
        ("Human", DESK[1]["content"]),
        {"role": "ai", "content": [{"text": "$210."}, {"text": None}]},
    ]
    answered = [(DESK[1]["content"], "$210.")]
    forms = (DESK, pairs, [parts, DESK[2]], [DESK[1], *calls, DESK[2]], named, answered)
    read = [parse_messages(history) for history in forms]
    path = tmp_path / "history.json"
    lines = "\n \n".join(map(json.dumps, DESK))
    for text in (json.dumps(DESK), lines, "\ufeff" + json.dumps({"messages": DESK}, indent=1)):
        path.write_text(text)
        read.append(read_history(path))
    assert set(read) == {
        (Message("user", "What did the oak desk cost?"), Message("assistant", "$210."))
    }
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


@given(
    st.lists(st.text(max_size=30), min_size=1, max_size=5),
    st.lists(st.text(max_size=30), max_size=6),
)
def test_no_text_breaks_it_and_a_batch_is_as_one_by_one(
    questions: list[str], history: list[str]
) -> None:
    many = rewrite(questions, history=[history] * len(questions), service=None)
    assert many["rewritten"].to_list() == [
        rewrite(text, history=history, service=None) for text in questions
    ]
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


def test_where_a_service_fails_the_last_exchange_is_appended_and_one_line_says_so(
    server: ModelServer,
) -> None:
    server.modes = [UNUSABLE["429"]]
    history = [*DESK, ("user", "And the lamp?"), ("assistant", "$35.")]
    with pytest.warns(UserWarning, match="1 of 1 follow-up question was not rewritten") as warned:
        made = rewrite(
            "When was it bought?", history=history, service=server.service(max_retries=0)
        )
    assert made == "When was it bought? (oak desk cost lamp 35)"
    assert len(warned) == 1
