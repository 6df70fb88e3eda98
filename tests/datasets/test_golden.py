"""A golden file for each layout of an export or a benchmark: what its turns, questions and issues are.

A case is a folder ``golden/<format>/<case>`` with the file or the folder that is read;
``<case>.json`` beside it is what :func:`readable` gives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.datasets import FORMATS, detect, load
from memlab.errors import DataError
from memlab.records import Dataset
from memlab.registry import formats

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path for path in GOLDEN.glob("*/*") if path.is_dir())


def readable(data: Dataset) -> dict[str, Any]:
    """Give the tables of a dataset as rows without empty cells."""
    tables = {
        table: getattr(data, table)
        for table in ("turns", "sessions", "questions", "annotations", "issues")
    }
    text = {
        name: rows.with_columns(pl.col(pl.Datetime).dt.strftime("%F %T%.f %Z")).to_dicts()
        for name, rows in tables.items()
    }
    kept = {
        name: [{k: v for k, v in row.items() if v not in (None, [], False)} for row in text[name]]
        for name in text
    }
    return {"name": data.name, "format": data.format, **kept}


def source(case: Path) -> Path:
    """Give the only file of a case, or its folder."""
    files = [path for path in case.rglob("*") if path.is_file()]
    return files[0] if len(files) == 1 else case


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_what_a_layout_gives(case: Path) -> None:
    assert detect(source(case)) == case.parent.name
    assert readable(load(source(case))) == json.loads(case.with_suffix(".json").read_text("utf-8"))
    exports = {name for name in formats if formats.describe(name).kind == "export"}
    # The format openai_messages reads messages of any tool.
    for other in exports - {case.parent.name, "openai_messages"}:
        with pytest.raises(DataError):
            load(source(case), format=other)


def test_every_format_has_a_case() -> None:
    own = {"chatlog", "table", "whatsapp"}  # in tests of their own
    assert {case.parent.name for case in CASES} | own == set(FORMATS)
