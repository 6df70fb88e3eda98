"""A real llama.cpp server through summarization and extraction; its model is too small for good answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest
from llama_server import llama_server

import memlab
from memlab.config import IndexSettings
from memlab.indexing import index
from memlab.llm import Service
from memlab.records import Turn, frame
from memlab.sessions import sessions_of
from memlab.store import MemoryStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("openai"), reason="the extra memlab[llm] is not installed"),
]

SAID = ["I moved to Lisbon in May.", "Great! My sister Anna lives there.", "I work at Acme now.", "Good luck!"]
START = datetime(2025, 3, 1, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llama_server(context=4096) as address:
        yield address


def talk() -> memlab.Dataset:
    turns = [
        Turn(f"u/s0/{n}", "u", "u/s0", n, ("Ann", "Bo")[n % 2], "user", text, None, START)
        for n, text in enumerate(SAID, 1)
    ]
    rows = frame(Turn, turns)
    return memlab.Dataset("talk", "chatlog", rows, sessions_of(rows))


def test_sessions_are_indexed_by_a_real_model(llama: str, tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(talk())
    smol = Service("smol", llama, "smollm2", timeout=1800, max_retries=0, max_output=600)
    events = index(store, "talk", settings=IndexSettings(service="smol"), service=smol)
    # Whatever it answers, each session has a summary and it is said who made it.
    assert set(events["kind"]) <= {"created", "fallback"}, events["reason"].to_list()
    summaries = store.knowledge.rows("summaries", "talk")
    assert set(store.knowledge.states("talk")["version"].str.slice(0, 12)) == {"1-smol-p2.1-"}
    assert summaries["session_id"].to_list() == ["u/s0"]
    assert set(summaries["service"]) <= {"smol", "extractive"}
    turns = set(talk().turns["turn_id"])
    assert set(summaries["evidence"].explode().explode()) <= turns
    assert set(store.knowledge.rows("facts", "talk")["evidence"].explode().drop_nulls()) <= turns


def test_a_real_answer_that_is_cut_falls_back_and_says_so(llama: str, tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(talk())
    smol = Service("smol", llama, "smollm2", timeout=1800, max_retries=0, max_output=3)
    events = index(store, "talk", settings=IndexSettings(service="smol"), service=smol)
    assert set(events["kind"]) == {"fallback"}
    assert all("raise max_output" in reason for reason in events["reason"])
    assert set(store.knowledge.rows("summaries", "talk")["service"]) == {"extractive"}
