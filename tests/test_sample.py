"""The sample that the project ships: whole, of every kind, and made again byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab import datasets
from memlab.records import Dataset

FOLDER = Path(__file__).parents[1] / "data" / "sample"
KINDS = {
    *("single-session-user", "single-session-assistant", "single-session-preference"),
    *("multi-session", "temporal-reasoning", "knowledge-update", "abstention"),
}


@pytest.fixture(scope="module")
def sample() -> Dataset:
    return datasets.load(FOLDER / "sample.jsonl")


def test_it_loads_without_an_issue(sample: Dataset) -> None:
    assert sample.format == "synthetic"
    assert (sample.turns.height, len(sample.scopes), sample.issues.height) == (1600, 4, 0)


def test_it_has_questions_of_every_kind(sample: Dataset) -> None:
    assert set(sample.questions["question_type"]) == KINDS
    assert sample.questions["abstention"].any()
    several = sample.questions["evidence_sessions"].list.len() >= 2
    assert several.sum() >= 50, "enough multi-session questions for an interval worth drawing"


def test_its_evidence_is_there(sample: Dataset) -> None:
    cited = sample.questions.select("scope", turn_id="evidence").explode("turn_id").drop_nulls()
    assert cited.height > 100
    assert cited.join(sample.turns, on=["scope", "turn_id"], how="anti").height == 0


def test_the_command_beside_it_makes_it_again(memlab_cli: Any, tmp_path: Path) -> None:
    command = "memlab synth data/sample/sample.jsonl --turns 1600 --seed 7"
    assert command in (FOLDER / "README.md").read_text()
    done = memlab_cli(*command.replace("data/sample/", "").split()[1:], cwd=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "sample.jsonl").read_bytes() == (FOLDER / "sample.jsonl").read_bytes()
