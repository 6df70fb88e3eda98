"""Who waits for a notebook hears from its kernel how far it is, and how long it took the last time."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest

from memlab.figures.figure_provenance import announce_notebook_to_kernels
from memlab.notebooks.notebook_execution import (
    _execute_in_kernel,
    _KernelProgressStream,
    _last_duration_note_or_empty,
)
from memlab.progress_bars import LOG_VARIABLE


def test_only_marked_lines_of_a_kernel_are_said(caplog: pytest.LogCaptureFixture) -> None:
    progress = _KernelProgressStream("02_selection")
    progress.write("progress: encoding 400 texts takes about 60 s\nFutureWarning: old\n")
    progress.flush()
    assert caplog.messages == ["02_selection: encoding 400 texts takes about 60 s"]


def test_the_time_of_an_earlier_run_is_said(tmp_path: Path) -> None:
    executed = tmp_path / "02_selection.ipynb"
    assert _last_duration_note_or_empty(executed) == ""
    book = nbformat.v4.new_notebook(metadata={"papermill": {"duration": 64.4}})
    nbformat.write(book, executed)
    assert _last_duration_note_or_empty(executed) == "; the last time it took 64 s"
    book.metadata["papermill"]["exception"] = True
    nbformat.write(book, executed)
    assert _last_duration_note_or_empty(executed) == ""
    executed.write_text("no notebook")
    assert _last_duration_note_or_empty(executed) == ""


def test_a_kernel_is_told_to_log_and_what_it_logs_arrives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cell = "import memlab\nmemlab.config.settings()\nfrom memlab.terminal_text import say_if_step_takes_long\n"
    cell += "say_if_step_takes_long('laying out', 50)"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    book.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "P"}
    nbformat.write(book, tmp_path / "01_map.ipynb")
    _execute_in_kernel(tmp_path / "01_map.ipynb", tmp_path / "executed.ipynb", {})
    assert "01_map: laying out takes about 50 s" in caplog.messages
    assert LOG_VARIABLE not in os.environ


def test_the_variable_is_gone_behind_a_notebook(tmp_path: Path) -> None:
    book = tmp_path / "01_map.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), book)
    with announce_notebook_to_kernels(book, {}):
        assert LOG_VARIABLE in os.environ
    assert LOG_VARIABLE not in os.environ
