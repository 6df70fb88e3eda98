"""Must-exclude turns: the layout, the measure, the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memlab
from memlab import datasets
from memlab.evaluate.stale import stale, stale_table
from memlab.records import run_from_scores

UPDATES = datasets.load("data/facts/updates.jsonl")


def small(tmp_path: Path, **question: Any) -> memlab.Dataset:
    lines = [{"scope": "a", "id": f"m{n}", "sender": "Ann", "text": f"text {n}", "session": f"s{n}"} for n in range(5)]
    asked = {"scope": "a", "query_id": "q", "question": "Which?", "evidence": ["m3", "m4"], "stale": ["m0", "m1"]}
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, asked | question]))
    return datasets.load(path)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("3 4 2", (False, 0.0, True, True)),
        ("3 0 4", (True, 0.5, True, True)),
        ("0 1 3", (True, 1.0, False, False)),
        ("2", (False, 0.0, False, False)),
        ("2 2b 4", (False, 0.0, False, True)),
    ],
)
def test_each_value_is_what_its_name_says(tmp_path: Path, order: str, expected: tuple[Any, ...]) -> None:
    data = small(tmp_path)
    ids = [f"a/m{n}" for n in order.split() if n.isdigit()]
    run = run_from_scores(
        np.array(["q"] * len(ids)), np.array(ids), -np.arange(len(ids), dtype=float), level="turn", k=9
    )
    assert stale(run, data, k=3).row(0)[2:] == expected


def test_comparisons_show_it() -> None:
    done = memlab.compare(["bm25", "bm25(b=0)"], UPDATES, encoder=None)
    assert done.tables()["What must not come back"]["system"].to_list() == ["bm25", "bm25(b=0)"]
    run = memlab.pipeline("bm25").run(memlab.Bench.of(UPDATES, encoder=None))
    theirs = stale_table([run], UPDATES).row(0, named=True)
    assert done.systems.row(0, named=True)["current first"] == theirs["current first"]
