"""A memory is found by its name as it was given, and no other memory's messages come back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.errors import DataError

SCOPES = {"a/b": "The key lies under the mat.", "a%2Fb": "The key is with Ann.", "a b": "A key? Which key?"}


@pytest.fixture
def folder(tmp_path: Path, memlab_cli: Any) -> Path:
    rows = [{"scope": scope, "sender": "Ann", "text": text, "id": "1"} for scope, text in SCOPES.items()]
    rows += [{"scope": row["scope"], "question": "Where is the key?", "evidence": ["1"]} for row in rows]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = memlab_cli("ingest", "log.jsonl", "--encoder", "hashing:64", "--store", "store", cwd=tmp_path)
    assert done.code == 0, done.err
    return tmp_path


@pytest.mark.parametrize(
    ("given", "scope"), [("a/b", "a/b"), ("a%2Fb", "a%2Fb"), ("a b", "a b"), ("a%252Fb", "a%2Fb"), ("a%20b", "a b")]
)
def test_search_reads_the_memory_that_was_named(folder: Path, memlab_cli: Any, given: str, scope: str) -> None:
    """As conversations name it, or, where none is called so, as memlab prints it."""
    out = memlab_cli("search", "key", "--scope", given, "--encoder", "hashing:64", "--store", "store", cwd=folder).out
    assert [text for text in SCOPES.values() if text in out] == [SCOPES[scope]]


@pytest.mark.parametrize(
    ("given", "scope"), [("a/b", "a/b"), ("a%2Fb", "a%2Fb"), ("a%252Fb", "a%2Fb"), ("a%20b", "a b")]
)
def test_a_scope_of_a_file_is_taken_by_the_name_that_was_given(folder: Path, given: str, scope: str) -> None:
    data = memlab.load(folder / "log.jsonl", scope=given)
    assert data.turns["text"].to_list() == [SCOPES[scope]]
    with pytest.raises(DataError, match="has no scope 'a'"):
        memlab.load(folder / "log.jsonl", scope="a")


def test_evaluate_measures_the_memory_that_was_named(folder: Path, memlab_cli: Any) -> None:
    options = ("--pipeline", "bm25", "--encoder", "hashing:64", "--store", "store", "--out", "out")
    done = memlab_cli("evaluate", "log.jsonl", "--scope", "a%2Fb", *options, cwd=folder)
    assert done.code == 0, done.err
    assert "a%252Fb" in (folder / "out" / "qrels.turn.trec").read_text()
