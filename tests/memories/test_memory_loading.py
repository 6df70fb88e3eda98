"""Whatever somebody has becomes a memory, or one line says why not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from memlab.errors import DataError
from memlab.memories import HttpMemory, Memory, memory


class Whole:
    def reset(self, scope: str) -> None: ...
    def ingest(self, scope: str, turns: Any) -> None: ...
    def wait(self) -> None: ...
    def search(self, scope: str, queries: Any, k: int, now: Any) -> Any:
        return []


class Half:
    def search(self, scope: str, queries: Any, k: int, now: Any) -> Any:
        return []


def test_objects_classes_functions_names_and_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "given_memory.py").write_text("def search(turns, query, k):\n    return turns['text'].head(k)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for system in (Whole(), Whole, lambda turns, query, k: [], "given_memory:search"):
        assert isinstance(memory(system), Memory)
    assert isinstance(memory("http://127.0.0.1:1"), HttpMemory)
    sys.modules.pop("given_memory")


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (Half(), "Half has no reset, ingest, wait"),
        (lambda query: [], r"takes \(query\); a memory that is a function takes \(turns, query, k\)"),
        ("nothing", "names no memory; write module:name"),
        ("no_such_module:search", "cannot be imported"),
        ("json:nothing", "cannot be imported"),
        (7, "int has no reset"),
        ("http://", "is no address of a memory"),
        ("http://user:word@host", "is no address of a memory"),
    ],
)
def test_what_is_none_is_refused(system: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        memory(system)
