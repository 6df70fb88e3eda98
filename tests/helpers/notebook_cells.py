"""Notebooks in the process of a test: their cells one after the other, without a kernel and without pictures."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import jupytext
import pytest

from memlab import figures
from memlab.figures import style

SOURCE = Path(__file__).parents[2] / "notebooks"


def run_cells(name: str, patch: pytest.MonkeyPatch, **parameters: Any) -> str:
    """Execute the cells of a notebook and give its answer, with figures laid out and not drawn.

    :param parameters: values for the cell tagged ``parameters``, those that it has.
    """

    def lay_out(fig: Any, name: str, **_: Any) -> None:
        for width in style.WIDTHS:
            style.copy_for_width(fig, width)

    patch.setattr(figures, "export", lay_out)
    patch.chdir(SOURCE)
    (path,) = SOURCE.glob(f"{name}*.py")
    # A class of a notebook is of a module that is there, as that of a kernel is.
    space: dict[str, Any] = {"__name__": __name__, "display": print}
    answer = None
    for cell in jupytext.read(path).cells:
        if cell.cell_type != "code":
            continue
        shown = _run_cell(cell.source, path.name, space)
        for view in ("_repr_html_", "_repr_markdown_"):
            if hasattr(shown, view):
                getattr(shown, view)()
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            space.update({name: value for name, value in parameters.items() if name in space})
        if "answer" in tags:
            answer = shown
    return str(answer)


def _run_cell(source: str, name: str, space: dict[str, Any]) -> Any:
    """Run a cell, and give the value of its last line where that is an expression."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, name, "exec"), space)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), name, "exec"), space)
    return eval(compile(ast.Expression(last.value), name, "eval"), space)


def write_log(path: Path, *, questions: int, several: int = 0, name: str = "Ida") -> Path:
    """Write a chat log of ten sessions with so many questions, of which some need two sessions."""
    things = ("garden", "piano", "ticket", "oven", "bridge", "letter", "window", "market", "lamp")
    topics = ("paint", "repair", "price", "friend", "colour", "day", "place")
    records: list[dict[str, Any]] = [
        {
            "scope": name,
            "id": f"m{n}",
            "session": f"s{n // 6}",
            "sender": ("assistant", name, name)[n % 3],
            "text": f"The {topics[n % 7]} of the {things[n % 9]}, note {n}.",
            "timestamp": f"2026-01-{2 + n // 6:02d}T{9 + n % 6:02d}:00:00Z",
        }
        for n in range(60)
    ]
    for n in range(questions):
        evidence = [f"m{n}", f"m{n + 27}"] if n < several else [f"m{n}"]
        text = f"What was the {topics[n % 7]} of the {things[n % 9]}?"
        asked = {"scope": name, "id": f"q{n}", "question": text, "evidence": evidence}
        records.append(asked | {"timestamp": "2026-02-01T09:00:00Z"})
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text(os.linesep.join(lines) + os.linesep, encoding="utf-8")
    return path
