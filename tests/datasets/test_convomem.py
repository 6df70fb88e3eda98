"""ConvoMem: evidence files and mixed test cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlab.datasets import load
from memlab.errors import DataError


def talk(name: str | None, *texts: str) -> dict[str, Any]:
    speakers = ["User", "Assistant"]
    messages = [{"speaker": speakers[i % 2], "text": text} for i, text in enumerate(texts)]
    return {"messages": messages, "id": name, "containsEvidence": True, "model_name": None}


ITEM: dict[str, Any] = {
    "question": "How many children?",
    "answer": "3",
    "message_evidences": [{"speaker": "User", "text": "I have three. "}, {"speaker": "User", "text": "not said"}],
    "conversations": [talk("c1", "I have three.", "I see."), talk(None, "I see.", "I have three.")],
    "category": "Work",
    "scenario_description": "x",
    "personId": "p",
}


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def test_an_item_is_a_memory_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "user_evidence" / "2_evidence" / "p_Sales.json", {"evidence_items": [ITEM, ITEM]})
    data = load(path)
    scope = "p_Sales%2F0"
    assert (data.format, data.scopes) == ("convomem", [scope, "p_Sales%2F1"])
    assert data.take([scope]).turns.select("turn_id", "role", "text").rows() == [
        (f"{scope}/c1/1", "user", "I have three."),
        (f"{scope}/c1/2", "assistant", "I see."),
        (f"{scope}/conversation_1/1", "user", "I see."),
        (f"{scope}/conversation_1/2", "assistant", "I have three."),
    ]
    question = data.questions.row(0, named=True)
    assert (question["question_type"], question["answer"], question["rubric"]) == ("user", "3", None)
    assert question["evidence"] == [f"{scope}/c1/1"]
    assert data.issues["action"].to_list() == ["dropped evidence"] * 2


def test_a_mixed_case_asks_several_questions_of_one_memory(tmp_path: Path) -> None:
    case = {
        "evidenceItems": [ITEM, ITEM],
        "conversations": [talk("x", "Filler"), *ITEM["conversations"]],
        "contextSize": 3,
    }
    write(tmp_path / "pre_mixed_testcases" / "preference_evidence" / "1_evidence" / "batched_000.json", [case, case])
    data = load(tmp_path / "pre_mixed_testcases")
    assert data.scopes == [f"preference_evidence%2F1_evidence%2Fbatched_000%2F{i}" for i in range(2)]
    assert data.questions["question_type"].unique().to_list() == ["preference"]
    assert data.questions["rubric"].to_list() == [["3"]] * 4
    assert data.questions["evidence_sessions"].to_list()[0] == [f"{data.scopes[0]}/c1"]


def test_abstention_is_the_folders_and_what_is_malformed_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "abstention_evidence" / "1_evidence" / "p.json", {"evidence_items": [ITEM]})
    assert load(path).questions["abstention"].all()
    write(path, {"evidence_items": [{**ITEM, "conversations": [{"messages": [{"speaker": "User"}]}]}]})
    with pytest.raises(DataError, match=r"p.json: p/0: conversations\[0\].messages\[0\].text: found nothing"):
        load(path)
