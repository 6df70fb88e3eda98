"""What the README tells a reader to run does run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_pictures_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert len(pictures) >= 4
    for picture in pictures:
        assert (ROOT / picture).stat().st_size > 10_000


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"(?<!!)\[[^\]]*\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_commands_parse(memlab_cli, tmp_path: Path) -> None:
    shells = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.S))
    named = {shlex.split(line, comments=True)[1] for line in re.findall(r"^memlab .*$", shells, re.M)}
    assert {"ingest", "search", "evaluate", "info", "fetch"} <= named
    for verb in named:
        assert memlab_cli(verb, "--help", cwd=tmp_path).code == 0


@pytest.mark.slow
def test_the_script_runs(tmp_path: Path) -> None:
    script = re.search(r"```python\n(.*?)```", README, re.S)
    assert script is not None
    lines = [line for line in script[1].splitlines() if line.strip()]
    assert len(lines) <= 15
    (tmp_path / "data").symlink_to(ROOT / "data")
    done = subprocess.run([sys.executable, "-c", script[1]], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "recall_all" in done.stdout or "difference" in done.stdout
    assert (tmp_path / "figures" / "my-recall.pdf").exists()
