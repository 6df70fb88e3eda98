"""A real llama.cpp server is asked with every prompt: the wire and the shapes, not the worth of answers."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from llama_server import llama_server

from memlab.conversation import Message, RollingBuffer, answer, extend, judge, rewrite
from memlab.llm import Service
from memlab.records import Dataset
from memlab.summaries import EXTRACTIVE, grow, rollup


@pytest.mark.slow
def test_every_prompt_is_served(talk: Dataset, tmp_path: Path) -> None:
    turns, asked = talk.turns.filter(scope="ann"), talk.questions.head(1)
    contexts = pl.DataFrame({"query_id": ["q1"], "text": ["[1 May 2026]\nAnn: The oak desk was $210."]})
    history = ["What did the oak desk cost?", "$210."]
    with llama_server(context=4096) as address:
        record = str(tmp_path / "answers.jsonl")
        smol = Service("smol", address, "smollm2", timeout=1800, max_retries=0, max_output=200, record=record)
        made = [rollup(turns, service=smol), grow(turns, encoder="hashing:64", service=smol).nodes]
        answered = answer(contexts, asked, smol)
        verdicts = judge(asked, answered, smol)
        method = rewrite(["And when was it bought?"], history=[history], service=smol)["method"][0]
        buffer = extend(RollingBuffer(), [Message("user", text) for text in turns["text"]], service=smol)
    for nodes in made:
        assert nodes.height
        assert set(nodes["service"]) <= {"smol", EXTRACTIVE}
        # What does not fit the shape, or stands on nothing, has a reason and sentences all the same.
        assert nodes.filter((pl.col("service") == EXTRACTIVE) != (pl.col("reason") != "")).is_empty()
        assert nodes["sentences"].list.len().min() > 0
        assert not nodes["reason"].str.contains("400|context|exceed").any()
    assert answered["answer"][0] or "does not fit" in answered["error"][0]
    assert answered["answer"][0] is None or verdicts["correct"][0] is not None or "does not fit" in verdicts["error"][0]
    assert method in ("model", "refused", "appended")
    assert buffer.n_summarised == turns.height - 4
