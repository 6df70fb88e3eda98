"""A real llama.cpp server writes sessions, weeks and clusters: the wire and the shapes, not the worth of answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from llama_server import llama_server

from memlab.llm import Service
from memlab.summaries import EXTRACTIVE, grow, rollup

pytestmark = pytest.mark.slow
SAID = ["Mel: I moved to Lisbon in May.", "Ann: Great! Is the flat big?", "Mel: It has 3 rooms."]


def test_every_prompt_is_served(talk: Callable[..., pl.DataFrame], tmp_path: Path) -> None:
    turns = talk(("a", "2026-02-24T10:00", SAID * 3))
    with llama_server(context=4096) as address:
        record = tmp_path / "answers.jsonl"
        smol = Service("smol", address, "smollm2", timeout=1800, max_retries=0, max_output=200, record=str(record))
        nodes = rollup(turns, service=smol)
        clusters = grow(turns, encoder="hashing:64", service=smol).nodes
    for made in (nodes, clusters):
        assert made.height
        assert set(made["service"]) <= {"smol", EXTRACTIVE}
        # What does not fit the shape, or stands on nothing, has a reason and sentences all the same.
        assert made.filter((pl.col("service") == EXTRACTIVE) != (pl.col("reason") != "")).is_empty()
        assert made["sentences"].list.len().min() > 0
        assert not made["reason"].str.contains("400|context|exceed").any()
