"""BEAM: chats and probing questions in the layouts that its repository and its table have."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.datasets import detect, load
from memlab.errors import DataError
from memlab.evaluate.groups import describe_questions
from memlab.records import Dataset, qrels

CHAT: list[dict[str, Any]] = [
    {
        "batch_number": 1,
        "turns": [
            [
                {
                    "role": "user",
                    "id": 0,
                    "time_anchor": "March-15-2024",
                    "index": "1,1",
                    "question_type": "main_question",
                    "content": "I start on Monday. ->-> 1,1",
                },
                {"role": "assistant", "id": 1, "content": "Noted.\nGood luck!"},
            ],
            [
                {
                    "role": "user",
                    "id": 2,
                    "question_type": "answer_ai_question",
                    "content": "And end in May\n ->-> 1,N/A",
                }
            ],
        ],
    },
    {
        "batch_number": 2,
        "turns": [
            [
                {"role": "user", "id": 3, "time_anchor": "April-01-2024", "content": "It is June now. ->-> 2,3"},
                {"role": "assistant", "id": 4, "content": "Changed."},
            ]
        ],
    },
]
PROBING: dict[str, list[dict[str, Any]]] = {
    "abstention": [{"question": "Who?", "ideal_response": "It was not said.", "rubric": ["not said"]}],
    "knowledge_update": [
        {
            "question": "When does it end?",
            "answer": "June",
            "source_chat_ids": {"original_info": [2], "updated_info": [3]},
            "rubric": ["June"],
        }
    ],
    "contradiction_resolution": [
        {"question": "Did I?", "ideal_answer": "Unclear", "source_chat_ids": {"a": {"b": [0]}}}
    ],
    "summarization": [{"question": "Sum up", "ideal_summary": "All", "source_chat_ids": [0, 1, 1, [4]]}],
    "instruction_following": [{"question": "How?", "expected_compliance": "With code", "source_chat_ids": []}],
    "event_ordering": [{"question": "Order?", "answer": ["a", "b"], "source_chat_ids": [77, 3]}],
}


def write(folder: Path, chat: Any = CHAT, probing: Any = PROBING) -> Path:
    (folder / "probing_questions").mkdir(parents=True)
    (folder / "chat.json").write_text(json.dumps(chat))
    (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(probing))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return load(write(tmp_path / "100K" / "1"))


def test_turns_are_messages_without_the_marker_of_the_plan(data: Dataset) -> None:
    assert data.format == "beam"
    assert data.turns.select("turn_id", "role", "text").rows() == [
        ("1/batch_1/1", "user", "I start on Monday."),
        ("1/batch_1/2", "assistant", "Noted.\nGood luck!"),
        ("1/batch_1/3", "user", "And end in May"),
        ("1/batch_2/1", "user", "It is June now."),
        ("1/batch_2/2", "assistant", "Changed."),
    ]
    days = [datetime(2024, 3, 15, tzinfo=UTC)] * 3 + [datetime(2024, 4, 1, tzinfo=UTC)] * 2
    assert data.turns["timestamp"].to_list() == days


def test_questions_keep_ability_answer_rubric_and_evidence_of_every_shape(data: Dataset) -> None:
    rows = data.questions.select("query_id", "question_type", "answer", "evidence", "abstention", "rubric").rows()
    assert rows == [
        ("1/q0", "abstention", "It was not said.", [], True, ["not said"]),
        ("1/q1", "knowledge-update", "June", ["1/batch_1/3", "1/batch_2/1"], False, ["June"]),
        ("1/q2", "contradiction-resolution", "Unclear", ["1/batch_1/1"], False, None),
        ("1/q3", "summarization", "All", ["1/batch_1/1", "1/batch_1/2", "1/batch_2/2"], False, None),
        ("1/q4", "instruction-following", "With code", [], False, None),
        ("1/q5", "event-ordering", "a; b", ["1/batch_2/1"], False, None),
    ]
    assert data.issues.select("where", "found").rows() == [
        ("chat.json: 1: instruction_following[0]: source_chat_ids", "no evidence"),
        ("chat.json: 1: event_ordering[0]: source_chat_ids", "77, the id of no message"),
    ]
    assert describe_questions(data, "session")["question_type"].to_list()[0] == "knowledge-update"
    assert "1/q0" not in qrels(data.questions, "turn").frame["query_id"]


def test_folders_of_chats_and_single_files_are_found_by_themselves(tmp_path: Path) -> None:
    for place in ("100K/10", "100K/2", "500K/1"):
        write(tmp_path / place)
    assert load(tmp_path / "100K").scopes == ["2", "10"]
    assert load(tmp_path).scopes == ["100K%2F2", "100K%2F10", "500K%2F1"]
    one = load(tmp_path / "100K" / "10" / "chat.json")
    assert (one.scopes, one.questions.height) == (["10"], 6)


def test_the_plans_of_the_largest_chats_number_their_messages_on(tmp_path: Path) -> None:
    whole = deepcopy(CHAT)
    for turn in (message for batch in whole for turns in batch["turns"] for message in turns):
        turn["id"] += 5
    probing = {"information_extraction": [{"question": "?", "answer": "x", "source_chat_ids": [1, 6]}]}
    numbered = load(write(tmp_path / "a", [{"plan-1": CHAT}, {"plan-2": whole}], probing))
    again = load(write(tmp_path / "b" / "a", [{"plan-1": CHAT, "plan-2": None}, {"plan-2": CHAT}], probing))
    expected = ["a/plan-1.batch_1/2", "a/plan-2.batch_1/2"]
    assert numbered.questions["evidence"].to_list() == again.questions["evidence"].to_list() == [expected]


@pytest.mark.parametrize("suffix", ["parquet", "json", "jsonl"])
def test_the_published_table_is_read_too(tmp_path: Path, suffix: str) -> None:
    flat = [[message for turn in batch["turns"] for message in turn] for batch in CHAT]
    rows = [{"conversation_id": n, "chat": flat, "probing_questions": repr(PROBING)} for n in ("1", "2")]
    path = tmp_path / f"100K.{suffix}"
    if suffix == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        path.write_text(json.dumps(rows) if suffix == "json" else "\n".join(map(json.dumps, rows)))
    assert detect(path) == "beam"
    data = load(path)
    assert data.scopes == ["1", "2"]
    assert data.questions["evidence"].to_list()[1] == ["1/batch_1/3", "1/batch_2/1"]
    assert data.take(["1"]).turns.equals(load(write(tmp_path / "1")).turns)


def test_what_is_malformed_is_named_and_the_rest_can_be_loaded(tmp_path: Path) -> None:
    chat, probing = deepcopy(CHAT), deepcopy(PROBING)
    chat[0]["turns"][0][1]["content"] = None
    probing["abstention"][0]["question"] = ""
    folder = write(tmp_path / "1", chat, probing)
    with pytest.raises(DataError, match=r"chat.json: 1: batch_1\[1\]: content: found null, expected a string"):
        load(folder)
    rest = load(folder, on_error="quarantine", quarantine_dir=tmp_path / "aside")
    assert (rest.turns.height, rest.questions.height) == (4, 5)
    assert rest.turns["turn_id"][1] == "1/batch_1/3", "a place does not move"
    assert rest.questions["query_id"][0] == "1/q1"
