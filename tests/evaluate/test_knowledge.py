"""What is known of a chat, measured by its gold annotations: by facts written by hand, and by the verb."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab.errors import DataError
from memlab.evaluate.fact_measures import MEASURES, format_outcomes, measure_chat, measure_frozen, outcome_totals
from memlab.evaluate.gold import Annotations, read_gold
from memlab.knowledge import resolve
from memlab.records import Dataset, Fact, frame

MESSAGES = [
    ("2025-01-01T10:00:00Z", "i work at the mill. boss is ada"),
    ("2025-02-01T10:00:00Z", "hands are cold"),
    ("2025-03-01T10:00:00Z", "left the mill, i work at the harbour now"),
    ("2025-04-01T10:00:00Z", "my brother has a boat"),
    ("2025-05-01T10:00:00Z", "bye"),
]
LINES = [
    {"is": "gold", "scope": "mo", "style": "terse", "dates": ["2025-01-20", "2025-02-20", "2025-03-20"],
     "people": [{"name": "Mo", "names": []}, {"name": "Mo's brother", "names": ["brother"]}]},
    {"id": "f1", "is": "fact", "subject": "Mo", "about": ["work"], "value": ["mill"], "since": "m1", "until": "m3"},
    {"id": "f2", "is": "fact", "subject": "Mo", "about": ["work"], "value": ["harbour"], "since": "m3"},
    {"id": "f3", "is": "fact", "subject": "Mo", "about": ["boss"], "value": ["ada"], "since": "m1"},
    {"id": "f4", "is": "fact", "subject": "Mo's brother", "about": ["have"], "value": ["boat"], "since": "m4"},
    {"id": "t1", "is": "trap", "kind": "moment", "message": "m2", "subject": "Mo", "about": ["hand"],
     "value": ["cold"]},
    {"id": "t2", "is": "trap", "kind": "other", "message": "m4", "subject": "Mo", "about": ["have"],
     "value": ["boat"]},
    {"id": "n1", "is": "neutral", "message": "m3", "subject": "Mo", "value": ["left"]},
]  # fmt: skip
RIGHT = [(1, "Mo", "works at", "the mill"), (1, "Mo's boss", "is", "Ada"), (3, "Mo", "works at", "the harbour"),
         (4, "Mo's brother", "has", "a boat")]  # fmt: skip


@pytest.fixture
def chat(tmp_path: Path) -> tuple[Annotations, Dataset]:
    rows = [
        {"scope": "mo", "id": f"m{n}", "timestamp": when, "sender": "Mo", "text": text}
        for n, (when, text) in enumerate(MESSAGES, 1)
    ]
    for name, lines in (("mo.jsonl", rows), ("mo.gold.jsonl", LINES)):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (sheet,) = read_gold(tmp_path)
    return sheet, memlab.datasets.load(sheet.log)


def _measured(chat: tuple[Annotations, Dataset], told: list[tuple[int, str, str, str]]) -> pl.DataFrame:
    sheet, data = chat
    turns = data.turns["turn_id"].to_list()
    facts = [
        Fact(f"f{i}", "mo", *triple, "stated", [turns[n - 1]], datetime.fromisoformat(MESSAGES[n - 1][0]))
        for i, (n, *triple) in enumerate(told)
    ]
    known = partial(resolve, frame(Fact, facts))
    return measure_chat(sheet, data, known)


def test_who_reads_everything_right_has_full_marks(chat: tuple[Annotations, Dataset]) -> None:
    table = outcome_totals(_measured(chat, RIGHT))
    assert table["measure"].to_list() == list(MEASURES)
    assert table["share"].to_list() == [1.0] * len(MEASURES)
    # now: three facts; on three dates two each; one closing; two traps.
    assert table["n"].to_list() == [3, 3, 6, 6, 1, 1, 2]
    nothing = outcome_totals(_measured(chat, []))
    assert nothing["share"].to_list() == [None, 0.0, None, 0.0, None, 0.0, 1.0]


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ((1, "Mo", "works at", "the mill"), "stale"),
        ((2, "Mo's hands", "are", "cold"), "trap"),
        ((4, "Mo", "has", "a boat"), "trap"),
        ((5, "Mo", "likes", "birds"), "unlisted"),
        ((3, "Mo", "works at", "the mill and the harbour"), "stale"),
        # What counts neither way.
        ((3, "Mo", "left", "the mill"), None),
        ((3, "Mo", "no longer works at", "the mill"), None),
        ((4, "Mo", "has a brother named", "Mo's brother"), None),
        ((3, "Mo", "hopes to work at", "the harbour"), None),
    ],
)
def test_what_is_wrong_and_why(
    chat: tuple[Annotations, Dataset], told: tuple[int, str, str, str], verdict: str | None
) -> None:
    outcomes = _measured(chat, [told])
    wrong = [(False, verdict)] if verdict else []
    assert outcomes.filter(measure="current precision").select("hit", "kind").rows() == wrong
    assert outcomes.filter(~pl.col("hit"), measure="silence").height == (verdict == "trap")


def test_a_wrong_closing_counts_and_of_closed_annotations_only_totals_are_written(
    chat: tuple[Annotations, Dataset],
) -> None:
    outcomes = _measured(chat, [*RIGHT, (5, "Mo", "works at", "the zoo")])
    assert outcomes.filter(measure="closings precision")["hit"].to_list() == [True, False]
    outcomes = _measured(chat, [(1, "Mo", "works at", "the mill")])
    text = format_outcomes(outcomes)
    assert "stale: mo: Mo | works at | the mill" in text
    closed = format_outcomes(outcomes.with_columns(closed=pl.lit(True), what=pl.lit(None, pl.String)))
    assert text.startswith(closed)
    assert "mo" not in closed.replace("moment", "")


@pytest.mark.parametrize(("text", "word"), [(None, "frozen"), ("{", "line 1"), ('{"scope": "nora"}', "row 1")])
def test_a_file_of_facts_that_is_missing_or_broken_is_named(tmp_path: Path, text: str | None, word: str) -> None:
    file = tmp_path / "frozen.jsonl"
    if text is not None:
        file.write_text(text)
    with pytest.raises(DataError, match=word):
        measure_frozen("data/facts/dev", file)
