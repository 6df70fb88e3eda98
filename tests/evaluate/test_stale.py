"""Must-exclude turns: the measure, and the table of a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import memlab
from memlab import datasets
from memlab.errors import DataError
from memlab.evaluate import stale_table
from memlab.records import run_from_scores

UPDATES = datasets.load("data/facts/updates.jsonl")


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("3 4 2", (False, True, True)),
        ("3 0 4", (True, True, True)),
        ("0 1 3", (True, False, False)),
        ("2", (False, False, False)),
        ("2 4", (False, False, True)),
        ("2 5 6 7 8 9 10 11 12 13 0 3 4", (False, False, False)),
    ],
)
def test_each_value_is_what_its_name_says(tmp_path: Path, order: str, expected: tuple[bool, ...]) -> None:
    lines = [{"scope": "a", "id": f"m{n}", "sender": "Ann", "text": f"text {n}"} for n in range(14)]
    asked = {"scope": "a", "query_id": "q", "question": "Which?", "evidence": ["m3", "m4"], "stale": ["m0", "m1"]}
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, asked]))
    ids = np.array([f"a/m{n}" for n in order.split()])
    run = run_from_scores(np.array(["q"] * len(ids)), ids, -np.arange(len(ids), dtype=float), level="turn", k=20)
    assert stale_table([run], datasets.load(path)).row(0)[2:] == expected


def test_comparisons_show_it() -> None:
    done = memlab.compare(["bm25", "bm25(b=0)"], UPDATES, encoder=None)
    assert done.tables()["What must not come back"]["system"].to_list() == ["bm25", "bm25(b=0)"]
    run = memlab.pipeline("bm25").run(memlab.Bench.of(UPDATES, encoder=None))
    theirs = stale_table([run], UPDATES).row(0, named=True)
    assert done.systems.row(0, named=True)["current first"] == theirs["current first"]
    with pytest.raises(DataError, match="stale"):
        stale_table([run], memlab.sample(turns=60))
