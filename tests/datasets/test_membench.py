"""MemBench: the published files, and the samples with noise that its script makes of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memlab.datasets import load
from memlab.errors import DataError

TIME = "'2024-10-01 08:00' Tuesday"
QA: dict[str, Any] = {
    "qid": 0,
    "question": "How old is my uncle?",
    "answer": "27",
    "time": "'2024-10-01 12:30' Tuesday",
    "choices": {"A": "26", "B": "27"},
    "ground_truth": "B",
}
BEHIND = f" (place: Boston, MA; time: {TIME})"


def write(path: Path, *trajectories: dict[str, Any], kind: str = "knowledge_update") -> Path:
    path.write_text(json.dumps({"simple": {"roles": []}, kind: {"roles": list(trajectories)}}))
    return path


def test_steps_of_a_sample_are_turns(tmp_path: Path) -> None:
    steps = [{"user": f"He is 27.{BEHIND}", "agent": f"Oh.{BEHIND}"}, {"user": "noise", "agent": "yes"}]
    sample = {"tid": 0, "message_list": steps, "QA": {**QA, "target_step_id": [0, 2]}}
    data = load(write(tmp_path / "FirstAgentDataLowLevel_multiple_0.json", sample))
    scope = "FirstAgentDataLowLevel_multiple_0%2Fknowledge_update%2Froles%2F0"
    assert (data.format, data.scopes) == ("membench", [scope])
    assert data.turns.select("turn_id", "text", "timestamp").rows() == [
        (f"{scope}/session_1/1", f"He is 27.{BEHIND}\nOh.{BEHIND}", datetime(2024, 10, 1, 8, tzinfo=UTC)),
        (f"{scope}/session_1/2", "noise\nyes", None),
    ]
    question = data.questions.row(0, named=True)
    assert (question["question_type"], question["answer"]) == ("knowledge-update", "27")
    assert question["timestamp"] == datetime(2024, 10, 1, 12, 30, tzinfo=UTC)
    assert question["evidence"] == [f"{scope}/session_1/1"]
    assert data.issues["found"].to_list() == ["step 2 of 2"]


def test_the_published_files_count_steps_through_their_sessions(tmp_path: Path) -> None:
    about = {"place": "Boston, MA", "time": TIME}
    sessions = [
        [
            {"sid": 0, "user_message": "A", "assistant_message": "B", **about},
            {"sid": 1, "user": "C", "assistant": "D", **about},
        ],
        [{"mid": 2, "message": "E", **about}],
    ]
    nested = {
        "tid": 0,
        "message_list": sessions,
        "QA": {**QA, "answer": ["x", "y"], "target_step_id": [[2, 1], [0, 0]]},
    }
    flat = {"tid": 1, "message_list": sessions[1], "QA": {**QA, "target_step_id": [0]}}
    write(tmp_path / "FirstAgentDataHighLevel.json", nested)
    write(tmp_path / "ThirdAgentDataLowLevel.json", flat, {"tid": 2, "message_list": [f"E{BEHIND}"], "QA": QA})
    data = load(tmp_path)
    assert data.turns["text"].to_list() == [
        *(f"{a}{BEHIND}\n{b}{BEHIND}" for a, b in ("AB", "CD")),
        *[f"E{BEHIND}"] * 3,
    ]
    places = [[turn.partition("roles")[2] for turn in turns] for turns in data.questions["evidence"]]
    assert places == [["%2F0/session_2/1", "%2F0/session_1/1"], ["%2F0/session_1/1"], []]
    assert data.questions["answer"].to_list() == ["x; y", "27", "27"]


def test_what_is_malformed_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "ThirdAgentDataLowLevel.json", {"tid": 0, "message_list": [{"mid": 0}], "QA": QA})
    with pytest.raises(DataError, match=r"roles/0: message_list, step 0: found an object .*, expected user and agent"):
        load(path)
    write(path, {"tid": 0, "message_list": ["x"], "QA": {**QA, "target_step_id": ["x"]}})
    with pytest.raises(DataError, match=r"QA.target_step_id\[0\]: found 'x' \(a string\), expected a whole number"):
        load(path)
