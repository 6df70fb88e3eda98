"""What the command line lets in, and what it takes from the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from talk import write

from memlab.memories.server import Server
from memlab.records import Dataset

# As the installed command starts: without the current folder.
START = "import sys; sys.path.remove(''); from memlab.cli import main; main()"


def test_it_serves_with_the_token_of_the_environment(
    memlab_cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[str] = []
    monkeypatch.setattr(Server, "serve_forever", lambda made: tokens.append(made.token))
    arguments = ("serve", "--pipeline", "bm25", "--encoder", "hashing", "--port", "0")
    done = memlab_cli(*arguments, cwd=tmp_path, MEMLAB_MEMORY_TOKEN="sesame")
    assert (done.code, tokens) == (0, ["sesame"])
    assert "at http://127.0.0.1:" in done.out
    done = memlab_cli(*arguments, cwd=tmp_path, MEMLAB_MEMORY_TOKEN="open\nsesame")
    assert (done.code, "MEMLAB_MEMORY_TOKEN" in done.err) == (2, True)
    assert "sesame" not in done.err + done.out


def test_the_current_folder_is_read_only_for_what_is_named(data: Dataset, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", data)
    (tmp_path / "scipy.py").write_text("raise SystemExit('scipy of the folder was run')\n")
    (tmp_path / "mine_here.py").write_text("import os, scipy\nos._exit(7)\n")
    arguments = ("compare", "talk.jsonl", "--system", "mine_here:search", "--encoder", "hashing")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = (sys.executable, "-c", START, *arguments)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
