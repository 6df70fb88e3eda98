"""What runs notebooks is killed: its workers, their kernels and their browsers end with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

HANGS = 120
"""Seconds after which a process that was to end is taken for one that stays."""

RUN = """
import sys
from memlab.notebooks import run_notebooks
if __name__ == "__main__":
    list(run_notebooks(sys.argv[1], sys.argv[2], {}, jobs=2))
"""
CELL = """
import itertools, pathlib, time
import plotly.graph_objects as go
from memlab.figures import browser_rendering
figure = go.Figure(layout={"width": 100, "height": 100})
browser_rendering.draw(figure, ["svg"])
for number in itertools.count():
    pathlib.Path("NAME").write_text(str(number))
    time.sleep(0.01)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_what_runs_notebooks(tmp_path: Path, kill: signal.Signals) -> None:
    (tmp_path / "books").mkdir()
    (tmp_path / "run.py").write_text(RUN)
    written = [tmp_path / f"{number}.txt" for number in (1, 2)]
    for path in written:
        cell = nbformat.v4.new_code_cell(CELL.replace("NAME", str(path)))
        book = nbformat.v4.new_notebook(cells=[cell])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
        nbformat.write(book, tmp_path / "books" / f"0{path.stem}_writes.ipynb")
    command = [sys.executable, "run.py", "books", "out"]
    with subprocess.Popen(command, cwd=tmp_path) as running:
        until = time.monotonic() + HANGS
        while not all(path.exists() for path in written):
            assert running.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        started = psutil.Process(running.pid).children(recursive=True)
        names = " ".join(" ".join(process.cmdline()) for process in started)
        assert names.count("ipykernel_launcher") == 2
        assert "--headless" in names
        running.send_signal(kill)
    _, left = psutil.wait_procs(started, timeout=HANGS)
    for process in left:
        process.kill()
    assert left == []
