"""What every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"


def _shared(relative: str) -> Path:
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"the research conversations are not beside the project (no {relative})")
    return path


@pytest.fixture(scope="session")
def locomo_path() -> Path:
    return _shared("locomo/locomo_dev.json")


@pytest.fixture(scope="session")
def longmemeval_path() -> Path:
    return _shared("longmemeval/longmemeval_oracle_user_dev.json")
