"""mem0, the real package with its Qdrant in memory, stands beside the pipelines."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from llama_server import llama_server
from talk import excerpt

import memlab
from memlab.errors import ModelError
from memlab.memories.mem0 import Mem0Memory

DATA = excerpt(120, scopes=("nadia", "owen"))


@pytest.mark.slow
def test_it_ranks_as_dense_does_where_it_keeps_what_was_said() -> None:
    done = memlab.compare_systems({"dense": "dense", "mem0": Mem0Memory(encoder="hashing")}, DATA, encoder="hashing")
    assert done.problems.is_empty()
    dense, theirs = done.table["recall_any@10"]
    assert theirs == dense > 0
    assert done.table["named"].to_list() == [1.0, 1.0]
    about = done.about["systems"]["mem0"]["memory"]["settings"]
    assert about["mem0ai"][0].isdigit()
    assert about["infer"] is False


def test_scopes_are_apart_and_reset_forgets() -> None:
    memory = Mem0Memory(encoder="hashing")
    turns = DATA.turns.select(id="turn_id", session="session_id", speaker="speaker", time="timestamp", text="text")
    memory.reset("a")
    memory.ingest("a", turns[:3])
    memory.ingest("b", turns[3:4])
    rows: Any = memory.search("b", [turns["text"][0]], 5, [None])
    assert {row["source_ids"][0] for row in rows} <= {turns["id"][3]}
    rows = memory.search("a", [turns["text"][1]], 5, [None])
    assert rows[0]["source_ids"] == [turns["id"][1]]
    assert rows[0]["time"].startswith("20")
    memory.reset("a")
    assert list(memory.search("a", [turns["text"][1]], 5, [None])) == []


def test_without_the_package_the_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mem0", None)
    with pytest.raises(ModelError, match=r'pip install "memlab\[mem0\]"'):
        Mem0Memory(encoder="hashing")


def test_a_language_model_is_named_by_its_owner() -> None:
    with pytest.raises(ModelError, match=r"name it in the settings"):
        Mem0Memory(infer=True)


@pytest.mark.slow
def test_a_real_language_model_writes_what_it_will(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the wire alone: the model is too small to extract anything, and for mem0's own prompt of 8,000 tokens."""
    import mem0.memory.main

    monkeypatch.setattr(mem0.memory.main, "ADDITIVE_EXTRACTION_PROMPT", 'Answer {"memory": [{"text": "a fact"}]}.')
    with llama_server(context=4096) as address:
        llm = {"model": "smollm2", "api_key": "none", "openai_base_url": address, "max_tokens": 16}
        settings = {"llm": {"provider": "openai", "config": llm}}
        memory = Mem0Memory(settings, encoder="hashing", infer=True)
        turns = DATA.turns.select(id="turn_id", session="session_id", speaker="speaker", time="timestamp", text="text")
        memory.reset("a")
        memory.ingest("a", turns[:2])
        rows: Any = memory.search("a", [turns["text"][0]], 3, [None])
    assert all("source_ids" not in row for row in rows)
