"""LoCoMo: its layout, its known label faults, and bad records."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.datasets import load, stream
from memlab.datasets.benchmarks.locomo import CATEGORIES
from memlab.errors import DataError
from memlab.records import Dataset, concat, qrels

CONVERSATION: dict[str, Any] = {
    "qa": [
        {"question": "When?", "answer": 2022, "evidence": ["D1:1"], "category": 2},
        {"question": "Which?", "answer": "both", "evidence": ["D1:2; D2:1"], "category": 1},
        {"question": "Who?", "adversarial_answer": "Bea", "evidence": [" D2:1 "], "category": 5},
        {"question": "Why?", "answer": "so", "evidence": ["D", "D:1:2", "D9:9", "D1:2"], "category": 4},
        {"question": "Would?", "answer": "no", "evidence": [], "category": 3},
    ],
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bea",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I moved in 2022."},
            {"speaker": "Bea", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a red door", "img_url": ["x"]},
        ],
        "session_2_date_time": "12:05 am on 1 June, 2023",
        "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Nice."}],
        "session_3_date_time": "1:00 pm on 2 June, 2023",
    },
    "session_summary": {"session_1_summary": "Ann moved."},
    "observation": {"session_1_observation": {"Ann": [["Ann moved.", "D1:1"]], "Bea": [["Bea has a door.", ["D1:2"]]]}},
    "event_summary": {"events_session_2": {"Ann": ["Ann is pleased.", ""], "Bea": [], "date": "1 June, 2023"}},
    "sample_id": "conv-1",
}


def change(edit: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    record = copy.deepcopy(CONVERSATION)
    edit(record)
    return record


def write(folder: Path, *records: Any) -> Path:
    path = folder / "talk.json"
    path.write_text(json.dumps(list(records)), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return load(write(tmp_path, CONVERSATION))


def test_turns(data: Dataset) -> None:
    assert data.format == "locomo"
    assert data.turns.select("turn_id", "speaker", "role", "caption").rows() == [
        ("conv-1/session_1/1", "Ann", "user", None),
        ("conv-1/session_1/2", "Bea", "user", "a red door"),
        ("conv-1/session_2/1", "Ann", "user", None),
    ]
    assert data.turns["timestamp"][2] == datetime(2023, 6, 1, 0, 5, tzinfo=UTC)


def test_sessions_carry_their_summaries(data: Dataset) -> None:
    columns = ["session_id", "n", "n_turns", "participants", "status", "summary"]
    assert data.sessions.select(columns).rows() == [
        ("conv-1/session_1", 1, 2, ["Ann", "Bea"], "summarized", "Ann moved."),
        ("conv-1/session_2", 2, 1, ["Ann"], "closed", None),
    ]


def test_questions(data: Dataset) -> None:
    turn = "conv-1/session_{}/{}".format
    assert data.questions["query_id"].to_list() == [f"conv-1/q{i}" for i in range(5)]
    assert data.questions["answer"].to_list() == ["2022", "both", None, "so", "no"]
    assert data.questions["question_type"].to_list() == [CATEGORIES[c] for c in (2, 1, 5, 4, 3)]
    assert data.questions["evidence"].to_list() == [
        [turn(1, 1)],
        [turn(1, 2), turn(2, 1)],
        [turn(2, 1)],
        [turn(1, 2)],
        [],
    ]
    assert data.questions["evidence_sessions"].to_list()[1] == ["conv-1/session_1", "conv-1/session_2"]
    assert not data.questions["abstention"].any()


def test_label_faults_are_repaired_or_dropped_and_said(data: Dataset) -> None:
    assert data.issues.select(pl.col("where").str.strip_prefix("talk.json: conv-1: "), "action").rows() == [
        ("session_date_time", "ignored"),
        ("qa[1]: evidence[0]", "repaired"),
        ("qa[2]: evidence[0]", "repaired"),
        ("qa[3]: evidence[0]", "dropped evidence"),
        ("qa[3]: evidence[1]", "repaired"),
        ("qa[3]: evidence[2]", "dropped evidence"),
        ("event_summary.events_session_2.Ann[1]", "ignored"),
    ]


def test_annotations(data: Dataset) -> None:
    columns = ["annotation_id", "kind", "speaker", "text", "evidence"]
    assert data.annotations.select(columns).rows() == [
        ("conv-1/session_1/observation0", "observation", "Ann", "Ann moved.", ["conv-1/session_1/1"]),
        ("conv-1/session_1/observation1", "observation", "Bea", "Bea has a door.", ["conv-1/session_1/2"]),
        ("conv-1/session_2/event0", "event", "Ann", "Ann is pleased.", []),
    ]


def turn_of(record: dict[str, Any]) -> dict[str, Any]:
    return record["conversation"]["session_1"][1]


BAD_PARTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "answer": (lambda r: r["qa"][0].update(answer=True), "qa[0]: answer: found true"),
    "category": (lambda r: r["qa"][0].update(category=6), "qa[0]: category: found 6 (a number)"),
    "evidence": (lambda r: r["qa"][0].update(evidence=[1]), "qa[0]: evidence[0]: found 1 (a number)"),
    "question": (lambda r: r["qa"].__setitem__(0, "?"), "qa[0]: found '?' (a string), expected an object"),
    "text": (lambda r: turn_of(r).update(text=None), "session_1[1]: text: found null, expected a string"),
    "surrogate": (lambda r: turn_of(r).update(blip_caption="\udc00"), "session_1[1]: blip_caption: found a lone"),
    "dia_id": (lambda r: turn_of(r).update(dia_id="D2:2"), "session_1[1]: dia_id: found 'D2:2'"),
    "same dia_id": (lambda r: turn_of(r).update(dia_id="D1:1"), "session_1[1]: dia_id: found 'D1:1' again"),
    "session": (lambda r: r["conversation"].update(session_2={}), "session_2: found an object with []"),
    "date": (lambda r: r["conversation"].update(session_1_date_time="May"), "session_1_date_time: found 'May'"),
    "summary": (lambda r: r["session_summary"].update(session_1_summary=1), "session_summary.session_1_summary:"),
    "observation": (lambda r: r["observation"]["session_1_observation"].update(Ann=["x"]),
                    "observation.session_1_observation.Ann[0]: found 'x' (a string), expected a list"),
    "events": (lambda r: r.update(event_summary=[]), "event_summary: found a list of 0, expected an object"),
}  # fmt: skip
BAD_QUESTIONS, BAD_TURNS = (
    {"answer", "category", "evidence", "question"},
    {"text", "surrogate", "dia_id", "same dia_id"},
)


@pytest.mark.parametrize("case", BAD_PARTS)
def test_a_bad_part_is_named_or_set_aside_alone(tmp_path: Path, case: str) -> None:
    edit, reason = BAD_PARTS[case]
    path = write(tmp_path, change(edit))
    with pytest.raises(DataError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: conv-1: {reason}")
    data = load(path, on_error="quarantine", quarantine_dir=tmp_path)
    assert data.issues["action"].to_list().count("quarantined") == 1
    assert len((tmp_path / "talk.json.quarantine.jsonl").read_text().splitlines()) == 1
    lost = (case in BAD_TURNS or case == "session", case in BAD_QUESTIONS)
    assert (data.turns.height, data.questions.height) == (3 - lost[0], 5 - lost[1])
    if case in BAD_QUESTIONS:
        assert data.questions["query_id"].to_list() == [f"conv-1/q{i}" for i in range(1, 5)]
    if case in BAD_TURNS:
        assert data.questions["evidence"].to_list()[3] == []


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda r: r.pop("sample_id"), "conversation 1: sample_id: found nothing"),
        (lambda r: r.update(conversation=[]), "conv-2: conversation: found a list of 0"),
        (lambda r: r.update(conversation={"session_1": []}), "conv-2: conversation: found no turns"),
        (lambda r: r.update(qa=None), "conv-2: qa: found null, expected a list"),
        (lambda r: r.update(sample_id="conv-1"), "conv-1: sample_id: found 'conv-1' again"),
    ],
)
def test_a_bad_conversation_is_named_or_set_aside(
    tmp_path: Path, edit: Callable[[dict[str, Any]], Any], reason: str
) -> None:
    path = write(tmp_path, CONVERSATION, change(lambda r: (r.update(sample_id="conv-2"), edit(r))))
    with pytest.raises(DataError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: {reason}")
    assert load(path, on_error="quarantine", quarantine_dir=tmp_path).scopes == ["conv-1"]


@pytest.mark.shared_data
def test_the_real_file(locomo_path: Path) -> None:
    data = load(locomo_path)
    assert (data.turns.height, data.questions.height, data.sessions.height) == (3_435, 1_157, 156)
    assert data.questions["evidence"].list.len().gt(0).sum() == 1_155
    assert qrels(data.questions, "turn").frame["query_id"].n_unique() == 1_155
    assert data.questions["evidence_sessions"].list.len().ge(2).sum() == 201
    assert data.sessions["status"].unique().to_list() == ["summarized"]
    assert (
        data.sessions["session_id"].str.extract(r"(\d+)$").cast(pl.Int32).equals(data.sessions["n"], check_names=False)
    )
    assert data.issues["action"].value_counts().sort("action").rows() == [
        ("dropped evidence", 2),
        ("ignored", 2),
        ("repaired", 3),
    ]
    joined = concat(stream(locomo_path, batch_turns=1))
    assert joined.fingerprint() == data.fingerprint()
    assert joined.issues.equals(data.issues)
