"""REALTALK: ids that do not follow sessions, ranges, faults of typing, and messages that are pictures."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memlab.datasets import load
from memlab.errors import DataError
from memlab.records import Dataset


def said(dia: str, text: str | None, **more: Any) -> dict[str, Any]:
    return {"clean_text": text, "speaker": "Emi", "date_time": "29.12.2023, 00:51:12", "dia_id": dia, **more}


CHAT: dict[str, Any] = {
    "name": {"speaker_1": "Emi", "speaker_2": "Elise"},
    "session_1": [said("D1:1", "Hi"), said("D1:2", None, blip_caption="a dog"), said("D1:3", "Bye")],
    "session_1_date_time": "29.12.2023, 00:51:12",
    "events_session_1": {"agent_a": [{"sub-event": "Emi greets", "date": "29.12.2023"}]},
    "session_2": [said("D3:1", "Again", speaker="Elise", date_time="31.12.2023, 23:59:59"), said("D3:2", "Yes")],
    "qa": [
        {"question": "Who?", "answer": "Emi", "evidence": ["D3:1"], "category": 1},
        {"question": "When?", "answer": "2023", "evidence": ["D1:1-D1:3"], "category": 2},
        {"question": "Why?", "answer": "x", "evidence": ["D1:2 - 3", "d3;2"], "category": 3},
        {"question": "What?", "answer": "x", "evidence": ["D2:1", "none"], "category": 3},
    ],
}


def write(folder: Path, chat: Any = CHAT, name: str = "Chat_1_Emi_Elise") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(chat))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return load(write(tmp_path / "data") / "Chat_1_Emi_Elise.json")


def test_sessions_are_those_of_the_file_whatever_the_ids_say(data: Dataset) -> None:
    scope = "Chat_1_Emi_Elise"
    assert data.format == "realtalk"
    assert data.turns.select("turn_id", "speaker", "role", "text", "caption").rows() == [
        (f"{scope}/session_1/1", "Emi", "user", "Hi", None),
        (f"{scope}/session_1/2", "Emi", "user", "", "a dog"),
        (f"{scope}/session_1/3", "Emi", "user", "Bye", None),
        (f"{scope}/session_2/1", "Elise", "user", "Again", None),
        (f"{scope}/session_2/2", "Emi", "user", "Yes", None),
    ]
    assert data.turns["timestamp"][3] == datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_evidence_is_resolved_through_the_messages(data: Dataset) -> None:
    turn = "Chat_1_Emi_Elise/session_{}/{}".format
    assert data.questions["evidence"].to_list() == [
        [turn(2, 1)],
        [turn(1, 1), turn(1, 2), turn(1, 3)],
        [turn(1, 2), turn(1, 3), turn(2, 2)],
        [],
    ]
    assert data.questions["question_type"].to_list() == ["multi-hop", "temporal", "commonsense", "commonsense"]
    assert data.issues["action"].to_list() == ["repaired"] * 3 + ["dropped evidence"] * 2


def test_an_id_twice_and_a_broken_date_are_named(tmp_path: Path) -> None:
    for change, message in (
        ({"dia_id": "D1:1"}, r"session_1\[2\]: dia_id: found 'D1:1' again, expected an id of its own"),
        ({"dia_id": "1"}, r"session_1\[2\]: dia_id: found '1' \(a string\)"),
        ({"date_time": "12/29/2023"}, r'date_time: found .*, expected a date such as "29.12.2023, 00:51:12"'),
    ):
        chat = deepcopy(CHAT)
        chat["session_1"][2] |= change
        with pytest.raises(DataError, match=message):
            load(write(tmp_path, chat))
