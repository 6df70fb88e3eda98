"""What a conversation keeps: sessions in play and their bias, and a summary that stays short."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import UNUSABLE, ModelServer, say

from memlab.conversation import Message, RollingBuffer, SessionMemory, bias, extend_buffer, remember
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
    st.lists(st.sampled_from(["ann/s1", "ann/s2", "ann/s3", "bo/s1"])), st.floats(1, 50), st.sampled_from([0.0, -9.0])
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
    raised = bias(run, bench, in_play=pl.DataFrame({"query_id": ["ann/q0"], "id": ["ann/s3"]}), factor=50.0)
    assert raised.frame.filter(rank=1, query_id="ann/q0")["doc_id"].item().startswith("ann/3")
    others = pl.col("query_id") != "ann/q0"
    assert raised.frame.filter(others)["doc_id"].equals(run.frame.filter(others)["doc_id"])
    with pytest.raises(DataError, match="hides nothing"):
        bias(run, bench, in_play=[], factor=0.9)


def test_the_summary_of_older_messages_stays_short_whoever_writes_it(server: ModelServer) -> None:
    plain = RollingBuffer()
    for n in range(60):
        plain = extend_buffer(plain, [Message("user", f"On day {n} Ann paid {n} euros for the tram in Oslo. Nice.")])
    assert (len(plain.messages), plain.n_summarised) == (4, 56)
    assert 0 < sum(len(text.split()) for text in plain.summary) <= MAX_WORDS
    assert not any("Nice" in text for text in plain.summary)
    odd = [Message("user", text) for text in ("", "\n", "🙂" * 400, "x" * 9_000, "a. " * 90)]
    assert extend_buffer(RollingBuffer(), odd).n_summarised == 1
    server.modes = [say('{"sentences": ["Ann took the tram."]}')]
    assert extend_buffer(plain, odd[:1], service=server.service()).summary == ("Ann took the tram.",)
    assert json.loads(server.prompts[0])["next messages"][0]["content"] == plain.messages[0].content
    extractive = extend_buffer(plain, odd[:1]).summary
    for mode in (say(json.dumps({"sentences": ["word " * 60] * 4})), UNUSABLE["429"]):
        server.modes = [mode]
        assert extend_buffer(plain, odd[:1], service=server.service(max_retries=0)).summary == extractive
