"""Corrections of LoCoMo's evidence in the layout of its audit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memlab.datasets import apply_corrections, load
from memlab.datasets.benchmarks.locomo_corrections import CORRECTED
from memlab.errors import DataError
from memlab.records import Dataset


def conversation(name: str, evidence: list[str]) -> dict[str, Any]:
    turns = [{"speaker": "Mel", "dia_id": f"D1:{n}", "text": f"I paint {n}."} for n in (1, 2, 3)]
    asked = {
        "question": "When did Mel paint?",
        "answer": "2022",
        "evidence": evidence,
        "category": 2,
    }
    days = {f"session_{k}_date_time": "1:56 pm on 8 May, 2023" for k in (1, 2)}
    talk = {**days, "session_1": turns, "session_2": [turns[0] | {"dia_id": "D2:1"}]}
    here = asked | {"question": f"Is {name} here?", "evidence": ["D1:3"]}
    return {"sample_id": name, "qa": [asked, here], "conversation": talk}


def error(question: str, cites: list[str], right: list[str]) -> dict[str, Any]:
    return {
        "question": question,
        "cited_evidence": cites,
        "correct_evidence": right,
        "error_type": "WRONG_CITATION",
    }


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([conversation("a", ["D1:1"]), conversation("b", ["D1:3"])]))
    return load(path)


def write(folder: Path, *errors: Any) -> Path:
    path = folder / "errors.json"
    path.write_text(json.dumps(list(errors)))
    return path


def test_the_question_that_cites_the_error_is_the_one_that_is_meant(
    data: Dataset, tmp_path: Path
) -> None:
    errors = [
        error("When did Mel paint?", ["D1:1"], ["D1:2", "D2:1"]),
        error("Is b here?", ["D1:3"], ["D1:3"]),
        error("Is a here?", ["D1:3"], []),
        error("A question of another conversation?", ["D1:1"], ["D9:9"]),
        error("When did Mel paint?", ["D7:7"], ["D1:2"]),
    ]
    mended = apply_corrections(data, write(tmp_path, *errors))
    assert mended.name == "locomo-corrected"
    right = [["a/session_1/2", "a/session_2/1"], [], ["b/session_1/3"], ["b/session_1/3"]]
    assert mended.questions["evidence"].to_list() == right
    assert mended.questions["evidence_sessions"].to_list()[0] == ["a/session_1", "a/session_2"]
    assert mended.issues["action"].to_list() == [CORRECTED, CORRECTED, "not corrected"]
    assert data.questions["evidence"].to_list()[0] == ["a/session_1/1"], "the original stays"


def test_what_cannot_be_used_is_said(data: Dataset, tmp_path: Path) -> None:
    for wrong, word in (
        (
            error("Is a here?", [], ["the third"]),
            "error 0: correct_evidence: found .*, expected turn ids",
        ),
        (error("Who?", [], []), "corrects no question of locomo"),
    ):
        with pytest.raises(DataError, match=word):
            apply_corrections(data, write(tmp_path, wrong))
    with pytest.raises(DataError, match="locomo is chatlog; corrections are of LoCoMo's evidence"):
        apply_corrections(replace(data, format="chatlog"), write(tmp_path))
