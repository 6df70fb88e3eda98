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
from memlab.datasets._fields import Bad
from memlab.datasets.locomo import CATEGORIES, parse_date
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("12:09 am on 13 September, 2023", datetime(2023, 9, 13, 0, 9, tzinfo=UTC)),
        ("12:30 PM  on 1 march 2024 ", datetime(2024, 3, 1, 12, 30, tzinfo=UTC)),
    ],
)
def test_dates(text: str, expected: datetime) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text", ["13:56 pm on 8 May, 2023", "1:56 pm on 31 June, 2023", "1:56 pm on 8 Mai, 2023", "", None]
)
def test_dates_that_are_none(text: Any) -> None:
    with pytest.raises(Bad, match="date"):
        parse_date(text)


def turn_of(record: dict[str, Any]) -> dict[str, Any]:
    return record["conversation"]["session_1"][1]


BAD_PARTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "question text": (lambda r: r["qa"][0].update(question=["?"]), "conv-1: qa[0]: question: found a list of 1"),
    "answer": (lambda r: r["qa"][0].update(answer=True), "conv-1: qa[0]: answer: found true, expected a string"),
    "category": (
        lambda r: r["qa"][0].update(category=6),
        "conv-1: qa[0]: category: found 6 (a number), expected a number",
    ),
    "no category": (lambda r: r["qa"][0].pop("category"), "conv-1: qa[0]: category: found nothing"),
    "evidence": (lambda r: r["qa"][0].update(evidence=[1]), "conv-1: qa[0]: evidence[0]: found 1 (a number)"),
    "question": (lambda r: r["qa"].__setitem__(0, "?"), "conv-1: qa[0]: found '?' (a string), expected an object"),
    "text": (lambda r: turn_of(r).update(text=None), "conv-1: session_1[1]: text: found null, expected a string"),
    "NUL": (lambda r: turn_of(r).update(text="a\x00"), "conv-1: session_1[1]: text: found a NUL character at 1"),
    "surrogate": (
        lambda r: turn_of(r).update(blip_caption="\udc00"),
        "conv-1: session_1[1]: blip_caption: found a lone",
    ),
    "dia_id": (lambda r: turn_of(r).update(dia_id="D2:2"), "conv-1: session_1[1]: dia_id: found 'D2:2' (a string)"),
    "same dia_id": (lambda r: turn_of(r).update(dia_id="D1:1"), "conv-1: session_1[1]: dia_id: found 'D1:1' again"),
    "speaker": (
        lambda r: turn_of(r).pop("speaker"),
        "conv-1: session_1[1]: speaker: found nothing (the field is missing)",
    ),
    "session": (lambda r: r["conversation"].update(session_2={}), "conv-1: session_2: found an object with []"),
    "date": (
        lambda r: r["conversation"].update(session_1_date_time="May"),
        "conv-1: session_1_date_time: found 'May', expected a date such as",
    ),
    "summary": (
        lambda r: r["session_summary"].update(session_1_summary=1),
        "conv-1: session_summary.session_1_summary:",
    ),
    "observation": (
        lambda r: r["observation"]["session_1_observation"].update(Ann=["Ann moved."]),
        "conv-1: observation.session_1_observation.Ann[0]: found 'Ann moved.' (a string), expected a list",
    ),
    "events": (lambda r: r.update(event_summary=[]), "conv-1: event_summary: found a list of 0, expected an object"),
}


@pytest.mark.parametrize("case", BAD_PARTS)
def test_a_bad_part_is_named_or_set_aside_alone(tmp_path: Path, case: str) -> None:
    edit, reason = BAD_PARTS[case]
    path = write(tmp_path, change(edit))
    with pytest.raises(DataError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: {reason}")
    data = load(path, on_error="quarantine", quarantine_dir=tmp_path)
    assert data.issues["action"].to_list().count("quarantined") == 1
    held = [json.loads(row) for row in (tmp_path / "talk.json.quarantine.jsonl").read_text().splitlines()]
    assert [f"{h['record']}: {h['reason']}".startswith(reason) for h in held] == [True]
    lost = {t: 1 for t in ("turns", "questions") if case in (BAD_QUESTIONS if t == "questions" else BAD_TURNS)}
    assert (data.turns.height, data.questions.height) == (3 - lost.get("turns", 0), 5 - lost.get("questions", 0))
    if "questions" in lost:
        assert data.questions["query_id"].to_list() == [f"conv-1/q{i}" for i in range(1, 5)]
    if "turns" in lost and case != "session":
        assert data.questions["evidence"].to_list()[3] == []


BAD_QUESTIONS = {"question text", "answer", "category", "no category", "evidence", "question"}
BAD_TURNS = {"text", "NUL", "surrogate", "dia_id", "same dia_id", "speaker", "session"}


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


def test_an_answer_that_is_missing_and_an_empty_session_do_not_stop_the_load(tmp_path: Path) -> None:
    def edit(record: dict[str, Any]) -> None:
        record["qa"][0].pop("answer")
        record["conversation"]["session_3"] = []

    issues = load(write(tmp_path, change(edit))).issues["action"].to_list()
    assert {"kept without an answer", "dropped empty session"} <= set(issues)


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
