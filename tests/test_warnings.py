"""Warnings name the line of the user's that led to them: of a script, of a cell, below a stage."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

import memlab
from memlab.errors import explained, warn_user

MODULES = Path(memlab.__file__).parent
SCRIPT = """
import memlab
data = memlab.sample(["owen"], turns=60)
bench = memlab.Bench.of(data, encoder="hashing:64", progress=False)
pipe = memlab.pipeline("bm25 | rerank_llm")
pipe.run(bench, level="turn")  # the line
"""
NUMBER = 1 + SCRIPT.splitlines().index('pipe.run(bench, level="turn")  # the line')


def test_only_one_function_warns() -> None:
    texts = {path.name: path.read_text("utf-8") for path in MODULES.rglob("*.py")}
    assert not [name for name in texts if re.search(r"warnings\.warn\(|stacklevel=", texts[name])]


@pytest.mark.slow
def test_a_script_is_shown_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert f"{path}:{NUMBER}: UserWarning: " in done.stderr
    assert 'pipe.run(bench, level="turn")  # the line' in done.stderr


@pytest.mark.parametrize("name", ["<cell 3>", "/tmp/ipykernel_7/1234.py"])
def test_a_cell_is_shown_its_own_line(name: str) -> None:
    code = compile(SCRIPT, name, "exec")
    with pytest.warns(UserWarning, match="no grade") as stated:
        exec(code, {"__name__": "__main__"})
    assert {(each.filename, each.lineno) for each in stated} == {(name, NUMBER)}


def test_functions_that_explain_their_arguments_are_no_place() -> None:
    @explained
    def outer(text: str) -> None:
        warn_user(text)

    with pytest.warns(UserWarning, match="tea") as stated:
        outer("tea")
    assert {each.filename for each in stated} == {__file__}


def test_what_was_stated_at_a_line_is_not_stated_again() -> None:
    with warnings.catch_warnings(record=True) as stated:
        warnings.simplefilter("default")
        for _ in range(3):
            warn_user("no model answered: seldom")
    assert len(stated) == 1


def test_a_thread_without_a_line_of_the_users_warns_too() -> None:
    thread = threading.Thread(target=warn_user, args=("from a thread",))
    with pytest.warns(UserWarning, match="from a thread"):
        thread.run()
