"""What a large language model stated once, resolved again: the table of docs/evaluation/knowledge.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memlab.embed import load
from memlab.evaluate.fact_measures import measure_frozen, outcome_totals

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("half", "column"), [("dev", 1), ("heldout", 2)])
def test_the_table_is_what_its_command_prints(half: str, column: int) -> None:
    facts = ROOT / "data" / "facts"
    measured = outcome_totals(measure_frozen(facts / half, facts / "frozen.jsonl", encoder=load("minilm")))
    rows = [
        line.split("|")
        for line in (ROOT / "docs" / "evaluation" / "knowledge.md").read_text(encoding="utf-8").splitlines()
    ]
    stated: dict[str, str] = {}
    for row in rows:
        if len(row) == 7:  # two columns of frozen facts, two of answers to the present prompts
            stated.setdefault(row[1].strip(), row[1 + column])
    for measure, n, share in measured.select("measure", "n", "share").iter_rows():
        named = measure.replace("closings", "invalidation").replace("silence", "traps avoided")
        printed, of = re.findall(r"[\d.]+", stated[named])[:2]
        # What an encoder merges may differ by a fact or two between machines.
        assert abs(share - float(printed)) < 0.02, (measure, share, printed)
        assert abs(n - int(of)) <= 4, (measure, n, of)
