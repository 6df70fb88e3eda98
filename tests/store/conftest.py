from __future__ import annotations

from pathlib import Path

import pytest

from memlab.store import MemoryStore


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore.open(tmp_path / "store")
