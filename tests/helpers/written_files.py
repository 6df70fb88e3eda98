"""Files that a test writes and loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

import memlab
from memlab.records import Dataset


def load(folder: Path, name: str, content: Any, **options: Any) -> Dataset:
    """Write a file and load it.

    A frame becomes Parquet, a text stands as it is, a list of lines where the name ends in jsonl, else one value.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pl.DataFrame):
        content.write_parquet(path)
    elif isinstance(content, str):
        path.write_text(content, "utf-8")
    elif name.endswith("jsonl"):
        path.write_text("\n".join(map(json.dumps, content)), "utf-8")
    else:
        path.write_text(json.dumps(content), "utf-8")
    return memlab.load(path, **options)
