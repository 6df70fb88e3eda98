"""What a large language model answered once, read again: the table of docs/knowledge.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memlab.config import IndexSettings
from memlab.embed import load
from memlab.evaluate.knowledge import measure_folder, totals
from memlab.llm import Service

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("half", "column"), [("dev", 3), ("heldout", 4)])
def test_the_table_is_what_its_command_prints(half: str, column: int) -> None:
    kept = str(ROOT / "data" / "facts" / "answers.jsonl")
    # Nothing listens there: every prompt has to be one that was answered.
    recorded = Service("recorded", "http://127.0.0.1:9/v1", "recorded", cache=kept, max_retries=0)
    folder = ROOT / "data" / "facts" / half
    measured = totals(
        measure_folder(folder, settings=IndexSettings(batch=1000), service=recorded, encoder=load("minilm"))
    )
    rows = [line.split("|") for line in (ROOT / "docs" / "knowledge.md").read_text(encoding="utf-8").splitlines()]
    told = {row[1].strip(): row[1 + column] for row in rows if len(row) == 7}
    for measure, n, share in measured.select("measure", "n", "share").iter_rows():
        stated, of = re.findall(r"[\d.]+", told[measure])[:2]
        # What an encoder merges may differ by a fact or two between machines.
        assert abs(share - float(stated)) < 0.02, (measure, share, stated)
        assert abs(n - int(of)) <= 4, (measure, n, of)
