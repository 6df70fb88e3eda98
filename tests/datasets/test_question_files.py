"""Questions as lines of a file: written and read again, accepted, mended and dropped by a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.datasets import chatlog
from memlab.datasets.question_files import question_as_log_line
from memlab.datasets.reviewing_proposals import ProposalFile
from memlab.errors import DataError

SAID = [{"scope": "a b", "sender": "Ann", "id": f"m{n}", "text": f"text {n}"} for n in range(4)]
ASKED: dict[str, Any] = {
    "scope": "a b",
    "question": "Wo war's?",
    "query_id": "p1",
    "answer": "Köln",
    "evidence": ["m0", "m1"],
    "source": "proposed",
    "reasons": ["place", "time"],
    "distractors": ["m2"],
    "checks": {"needed": [True, True]},
}


def saved(path: Path, *records: dict[str, Any] | str) -> Path:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
    path.write_bytes("\r\n".join(lines).encode())
    return path


def test_a_question_is_written_as_the_line_that_it_was_read_from() -> None:
    graded = ASKED | {
        "query_id": "p 2/x",
        "evidence": [{"id": "m0", "grade": 2}, {"id": "m3", "grade": 0}],
        "reasons": ["all"],
        "timestamp": "2026-03-01T09:00:00+00:00",
        "stale": ["m1"],
        "rubric": ["Köln"],
        "source": "accepted",
    }
    nothing = {"scope": "a b", "question": "Wer?", "abstention": True}
    data = chatlog.dataset([*SAID, ASKED, graded, nothing], "log")
    written = [
        json.loads(json.dumps(question_as_log_line(row))) for row in data.questions.to_dicts()
    ]
    assert written[0]["checks"] == ASKED["checks"]
    assert chatlog.dataset([*SAID, *written], "log").questions.equals(data.questions)
    assert "source" not in written[2]


def test_a_person_accepts_drops_and_mends(tmp_path: Path) -> None:
    others = [{**SAID[0]}, "{broken", "", {**ASKED, "query_id": "gold", "source": None}]
    path = saved(
        tmp_path / "log.jsonl",
        *others[:2],
        ASKED,
        *others[2:],
        ASKED | {"query_id": "p2"},
        ASKED | {"query_id": "p3"},
    )
    before = path.read_bytes().split(b"\r\n")
    file = ProposalFile(path)
    assert [record["query_id"] for record in file.records] == ["p1", "p2", "p3"]
    file.accept(["p1"])
    file.drop(["p2"])
    file.mend("p3", answer="Bonn", evidence=["a b/m2"])
    after = path.read_bytes().split(b"\r\n")
    assert [after[place] for place in (0, 1, 3, 4)] == [before[place] for place in (0, 1, 3, 4)]
    assert json.loads(after[2]) == ASKED | {"source": "accepted"}
    mended = json.loads(after[5])
    assert {name: mended[name] for name in ("query_id", "source", "answer", "evidence")} == {
        "query_id": "p3",
        "source": "accepted",
        "answer": "Bonn",
        "evidence": ["a b/m2"],
    }
    former = {name: ASKED[name] for name in ("answer", "evidence", "reasons")}
    assert mended["checks"] == {"before_mending": former, "checks": ASKED["checks"]}
    assert "reasons" not in mended
    assert not list(tmp_path.glob(".*")), "nothing is left beside it"


def test_a_distractor_that_becomes_evidence_is_none_any_more(tmp_path: Path) -> None:
    path = saved(tmp_path / "p.jsonl", ASKED | {"stale": ["m3"]})
    file = ProposalFile(path)
    file.mend("p1", evidence=["m0", "m2"])
    assert file.records[0]["distractors"] == []
    for evidence, message in ((["m3"], "names 'm3' as stale"), ([], "would have no evidence")):
        with pytest.raises(DataError, match=message):
            file.mend("p1", evidence=evidence)
    with pytest.raises(DataError, match="would have no words"):
        file.mend("p1", question=" ")


def test_a_file_that_somebody_else_changed_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "p.jsonl", ASKED)
    file = ProposalFile(path)
    path.write_bytes(path.read_bytes() + b"\r\n")
    changed = path.read_bytes()
    for change in (
        lambda: file.accept(["p1"]),
        lambda: file.drop(["p1"]),
        lambda: file.mend("p1", answer="x"),
    ):
        with pytest.raises(DataError, match=r"p\.jsonl was changed after it was read"):
            change()
    assert path.read_bytes() == changed
    file.read()
    file.accept(["p1"])
    assert file.records[0]["source"] == "accepted"
    with pytest.raises(DataError, match="no proposal 'p9'; its proposals are called p1"):
        file.accept(["p1", "p9"])
    assert ProposalFile(tmp_path / "none.jsonl").records == []


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({}, r"line 2: query_id: found 'p1' again \(first on line 1\)"),
        ({"query_id": None}, "line 2: query_id: found null"),
        ({"query_id": "p2", "source": "gold"}, "line 2: source: found 'gold'"),
    ],
)
def test_a_proposal_that_cannot_be_told_from_others_is_an_error(
    tmp_path: Path, second: dict[str, Any], message: str
) -> None:
    path = saved(tmp_path / "p.jsonl", ASKED, ASKED | second)
    with pytest.raises(DataError, match=message):
        ProposalFile(path)


def test_questions_of_a_file_come_beside_those_of_the_conversations(tmp_path: Path) -> None:
    log = saved(tmp_path / "log.jsonl", *SAID, ASKED | {"query_id": "gold", "source": None})
    path = saved(tmp_path / "p.jsonl", "", ASKED, {**SAID[0]}, ASKED | {"query_id": "p2"})
    data = memlab.datasets.load(log, questions=path)
    assert data.questions["query_id"].to_list() == ["gold", "p1", "p2"]
    whole = chatlog.dataset([*SAID, ASKED], "log").questions
    assert data.questions[1:2].equals(whole)
    assert memlab.datasets.load(log, questions=path, sources="proposed").questions.height == 2
    with pytest.raises(DataError, match=r"line 5: query_id: found 'gold' again \(first on log\)"):
        memlab.datasets.load(log, questions=log)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"evidence": ["m9"]}, r"line 1: evidence\[0\]: found 'm9'"),
        ({"distractors": ["m0"]}, "line 1: distractors: found 'a%20b/m0'"),
        ({"scope": "bo"}, "line 1: scope: found 'bo', which has no messages"),
        ({"source": "gold"}, "line 1: source: found 'gold'"),
    ],
)
def test_a_question_that_cannot_be_used_is_an_error_or_is_put_aside(
    tmp_path: Path, wrong: dict[str, Any], message: str
) -> None:
    log = saved(tmp_path / "log.jsonl", *SAID)
    path = saved(tmp_path / "p.jsonl", ASKED | wrong, ASKED | {"query_id": "p2"})
    with pytest.raises(DataError, match=message):
        memlab.datasets.load(log, questions=path)
    aside = {"on_error": "quarantine", "quarantine_dir": tmp_path / "aside"}
    data = memlab.datasets.load(log, questions=path, **aside)
    assert data.questions["query_id"].to_list() == ["p2"]
    assert data.issues["action"].to_list() == ["quarantined"]
