"""Benchmarks: what is malformed is named or set aside alone, folders of them, and the published files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memlab.datasets import load, stream
from memlab.errors import DataError
from memlab.records import concat, qrels

GOLDEN = Path(__file__).parent / "golden"
GONE = object()
TALK = (0, "conversation")
STEPS, ASKED = ("knowledge_update", "roles", 0), ("knowledge_update", "roles", 0, "QA")
REFUSALS: list[tuple[str, tuple[Any, ...], Any, str, int | None]] = [
    # the case, the place in its file, what is put there, the place in the message, and how many
    # turns are left
    ("locomo/talk", (0, "qa", 0, "answer"), True, "conv-1: qa[0]: answer", 3),
    ("locomo/talk", (0, "qa", 0, "category"), 6, "conv-1: qa[0]: category", 3),
    ("locomo/talk", (*TALK, "session_1", 1, "text"), None, "conv-1: session_1[1]: text", 2),
    ("locomo/talk", (*TALK, "session_1", 1, "dia_id"), "D2:2", "conv-1: session_1[1]: dia_id", 2),
    ("locomo/talk", (*TALK, "session_2"), {}, "conv-1: session_2", 2),
    ("locomo/talk", (*TALK, "session_1_date_time"), "May", "session_1_date_time", 3),
    ("locomo/talk", (0, "sample_id"), GONE, "conversation 0: sample_id", None),
    ("locomo/talk", (0, "conversation"), {"session_1": []}, "no turns", None),
    ("longmemeval/haystacks", (1, "question_id"), None, "question 1: question_id", 4),
    ("longmemeval/haystacks", (1, "question_id"), "q1", "again", 4),
    ("longmemeval/haystacks", (1, "question_date"), "2023/02/30 (Mon) 00:00", "question_date", 4),
    ("longmemeval/haystacks", (1, "haystack_dates"), [], "haystack_sessions", 4),
    ("longmemeval/haystacks", (1, "haystack_sessions", 1, 0, "content"), None, "[0].content", 4),
    ("longmemeval/haystacks", (1, "answer_session_ids"), ["s9"], "does not hold", 4),
    ("beam/chat", (0, "turns", 0, 1, "content"), None, "chat: batch_1[1]: content", 4),
    ("beam/table", (0, "conversation_id"), GONE, "chat 0: conversation_id", 5),
    ("beam/table", (0, "probing_questions"), "import", "probing_questions", 5),
    ("realtalk/chat", ("session_1", 2, "dia_id"), "D1:1", "session_1[2]: dia_id", 4),
    ("realtalk/chat", ("session_1", 2, "date_time"), "12/29/2023", "a date such as", 4),
    (
        "membench/sample",
        (*STEPS, "message_list", 1),
        {"mid": 0},
        "roles/0: message_list, step 1",
        None,
    ),
    ("membench/sample", (*ASKED, "target_step_id"), ["x"], "QA.target_step_id[0]", None),
    (
        "convomem/items",
        ("evidence_items", 0, "conversations", 0, "messages", 0, "text"),
        GONE,
        "messages[0].text",
        4,
    ),
]


def edited(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Put something at a place in JSON, or take away what is there."""
    inner = value
    for key in place[:-1]:
        inner = inner[key]
    if new is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = new
    return value


@pytest.mark.parametrize(("case", "place", "new", "word", "left"), REFUSALS)
def test_what_is_malformed_is_named_or_set_aside(
    tmp_path: Path, case: str, place: tuple[Any, ...], new: Any, word: str, left: int | None
) -> None:
    shutil.copytree(GOLDEN / case, tmp_path / case.partition("/")[2])
    file = next(
        path for path in sorted(tmp_path.rglob("*.json*")) if path.name != "probing_questions.json"
    )
    rows = file.read_text("utf-8")
    many = file.suffix == ".jsonl"
    whole = edited(
        [json.loads(row) for row in rows.splitlines()] if many else json.loads(rows), place, new
    )
    file.write_text("\n".join(map(json.dumps, whole)) if many else json.dumps(whole))
    with pytest.raises(DataError) as refusal:
        load(file)
    assert str(refusal.value).startswith(str(file))
    assert word in str(refusal.value)
    aside: dict[str, Any] = {"on_error": "quarantine", "quarantine_dir": tmp_path / "aside"}
    if left is None:
        with pytest.raises(DataError, match="no usable message"):
            load(file, **aside)
    else:
        data = load(file, **aside)
        assert (data.turns.height, data.issues["action"].to_list().count("quarantined")) == (
            left,
            1,
        )
    assert len((tmp_path / "aside" / f"{file.name}.quarantine.jsonl").read_text().splitlines()) == 1


def test_folders_of_chats_are_found_by_themselves(tmp_path: Path) -> None:
    for place in ("100K/10", "100K/2", "500K/1"):
        shutil.copytree(GOLDEN / "beam/chat", tmp_path / place)
    assert load(tmp_path / "100K").scopes == ["2", "10"]
    assert load(tmp_path).scopes == ["100K%2F2", "100K%2F10", "500K%2F1"]


def test_the_plans_of_the_largest_chats_number_their_messages_on(tmp_path: Path) -> None:
    chat = json.loads((GOLDEN / "beam/chat/chat.json").read_text())
    later = json.loads(json.dumps(chat))
    for message in (message for batch in later for turns in batch["turns"] for message in turns):
        message["id"] += 5
    asked = {
        "information_extraction": [{"question": "?", "answer": "x", "source_chat_ids": [1, 6]}]
    }
    for name, plans in (
        ("a", [{"plan-1": chat}, {"plan-2": later}]),
        ("b", [{"plan-1": chat}, {"plan-2": chat}]),
    ):
        (tmp_path / name / "probing_questions").mkdir(parents=True)
        (tmp_path / name / "chat.json").write_text(json.dumps(plans))
        (tmp_path / name / "probing_questions" / "probing_questions.json").write_text(
            json.dumps(asked)
        )
        found = load(tmp_path / name).questions["evidence"].to_list()
        assert found == [[f"{name}/plan-1.batch_1/2", f"{name}/plan-2.batch_1/2"]]


@pytest.mark.shared_data
def test_the_published_locomo(locomo_path: Path) -> None:
    data = load(locomo_path)
    assert (data.turns.height, data.questions.height, data.sessions.height) == (3_435, 1_157, 156)
    assert qrels(data.questions, "turn").frame["query_id"].n_unique() == 1_155
    assert data.questions["evidence_sessions"].list.len().ge(2).sum() == 201
    actions = data.issues["action"].value_counts().sort("action").rows()
    assert actions == [("dropped evidence", 2), ("ignored", 2), ("repaired", 3)]
    joined = concat(stream(locomo_path, batch_turns=1))
    assert joined.fingerprint() == data.fingerprint()
    assert joined.issues.equals(data.issues)
