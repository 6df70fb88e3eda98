"""A small part of ``scripts/torture.py``: what it tries must hold here too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "torture.py"


@pytest.mark.slow
def test_what_the_torture_tries_holds() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--inputs", "2000", "--secrets", "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
