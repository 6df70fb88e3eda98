"""What the command line lets in, and what it takes from the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memlab.memories import HttpMemory

# As the installed command starts: without the current folder; and no browser draws.
START = """
import sys
sys.path.remove("")
import memlab.figures
memlab.figures.export = lambda *_, **__: None
from memlab.cli import main
main()
"""
MEMLAB = (sys.executable, "-c", START)
PLACE = {"PYTHONPATH": str(Path(__file__).parents[2])}


def test_a_server_with_a_token(memlab_cli: Any, tmp_path: Path) -> None:
    arguments = ("serve", "--pipeline", "bm25", "--encoder", "hashing", "--port", "0")
    environment = os.environ | PLACE | {"MEMLAB_MEMORY_TOKEN": "sesame"}
    with subprocess.Popen([*MEMLAB, *arguments], cwd=tmp_path, env=environment, stdout=-1, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().partition(" at ")[2].partition(";")[0]
            HttpMemory(address, token="sesame").reset("ann")
            with pytest.raises(Exception, match="401"):
                HttpMemory(address, token="").reset("ann")
        finally:
            process.terminate()
    done = memlab_cli(*arguments, cwd=tmp_path, MEMLAB_MEMORY_TOKEN="open\nsesame")
    assert done.code != 0
    assert "MEMLAB_MEMORY_TOKEN" in done.err
    assert "sesame" not in done.err + done.out
    assert "Traceback" not in done.err


def test_the_current_folder_is_read_only_for_what_is_named(talk: Path, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('json of the folder was run')\n")
    (tmp_path / "scipy.py").write_text("raise SystemExit('scipy of the folder was run')\n")
    (tmp_path / "mine_here.py").write_text("print('mine was run')\ndef search(query, k):\n    return []\n")
    systems = ("--system", "bm25", "--system", "mine_here:search")
    command = (*MEMLAB, "compare", str(talk), *systems, "--encoder", "hashing", "--store", "store", "--out", "out")
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | PLACE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "of the folder was run" not in done.stdout + done.stderr
    assert "mine was run" in done.stdout
