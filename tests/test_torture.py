"""Small parts of ``scripts/torture.py``: what it tries must hold here too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "torture.py"


@pytest.mark.parametrize(
    "parts",
    [
        ("--calls", "100"),
        pytest.param(("--inputs", "500"), marks=pytest.mark.nightly),
        pytest.param(("--calls", "50000"), marks=pytest.mark.nightly),
        pytest.param(("--writers", "3", "--kills", "10"), marks=pytest.mark.nightly),
        pytest.param(("--servers", "1"), marks=pytest.mark.nightly),
        pytest.param(("--texts", "1"), marks=pytest.mark.nightly),
        pytest.param(("--year", "31"), marks=pytest.mark.nightly),
    ],
)
@pytest.mark.slow
def test_what_the_torture_tries_holds(parts: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, SCRIPT, *parts], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
