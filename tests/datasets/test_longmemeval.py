"""LongMemEval: its layout, bad records, streaming in bounded memory, and pooling."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.datasets import load, pool, stream
from memlab.errors import DataError
from memlab.records import Dataset, concat


def turn(text: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **fields}


def question(name: str = "q1", own: int = 2) -> dict[str, Any]:
    """Build a question with sessions of its own, of which the last holds no marked turn and the first is later."""
    days = [9, *range(2, own + 1)]
    return {
        "question_id": name,
        "question_type": "multi-session",
        "question": "How many?",
        "answer": 2,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": [f"2023/05/{d:02} (Sat) 02:21" for d in days],
        "haystack_session_ids": [f"{name}-s{i}" for i in range(own)],
        "haystack_sessions": [
            [turn(f"{name} fact {i}", has_answer=i == 0), turn("I see.", "assistant")] for i in range(own)
        ],
        "answer_session_ids": [f"{name}-s{i}" for i in range(own)],
    }


def write(folder: Path, *records: Any) -> Path:
    path = folder / "haystack.json"
    path.write_text(json.dumps(list(records)), encoding="utf-8")
    return path


def test_a_question_is_a_scope_with_its_haystack_in_order_of_date(tmp_path: Path) -> None:
    data = load(write(tmp_path, question(), question("q2_abs")))
    assert data.format == "longmemeval"
    assert data.turns.filter(scope="q1").select("turn_id", "role", "speaker", "timestamp").rows() == [
        ("q1/q1-s1/1", "user", "user", datetime(2023, 5, 2, 2, 21, tzinfo=UTC)),
        ("q1/q1-s1/2", "assistant", "assistant", datetime(2023, 5, 2, 2, 21, tzinfo=UTC)),
        ("q1/q1-s0/1", "user", "user", datetime(2023, 5, 9, 2, 21, tzinfo=UTC)),
        ("q1/q1-s0/2", "assistant", "assistant", datetime(2023, 5, 9, 2, 21, tzinfo=UTC)),
    ]
    assert data.sessions["n"].to_list() == [1, 2, 1, 2]
    first = data.questions.row(0, named=True)
    assert (first["query_id"], first["scope"], first["answer"]) == ("q1", "q1", "2")
    assert first["evidence"] == ["q1/q1-s0/1"]
    assert first["evidence_sessions"] == ["q1/q1-s0", "q1/q1-s1"]
    assert first["timestamp"] == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert data.questions["abstention"].to_list() == [False, True]


def test_a_copy_of_a_session_and_an_empty_session_are_dropped_and_said(tmp_path: Path) -> None:
    record = question()
    record["haystack_session_ids"] += ["q1-s0", "void"]
    record["haystack_dates"] += [record["haystack_dates"][0]] * 2
    record["haystack_sessions"] += [copy.deepcopy(record["haystack_sessions"][0]), []]
    data = load(write(tmp_path, record))
    assert data.issues["action"].to_list() == ["dropped copy", "dropped empty session"]
    assert data.sessions.height == 2


BAD_FIELDS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "id": (lambda q: q.update(question_id=None), "question 1: question_id: found null"),
    "same id": (lambda q: q.update(question_id="q1"), "question 1 ('q1'): question_id: found 'q1' again (first in"),
    "answer": (lambda q: q.pop("answer"), "question 1 ('q2'): answer: found nothing"),
    "date": (lambda q: q.update(question_date="2023/02/30 (Mon) 00:00"), "question 1 ('q2'): question_date: found"),
    "lengths": (lambda q: q["haystack_dates"].pop(), "question 1 ('q2'): haystack_sessions: found 2 sessions"),
    "session": (lambda q: q["haystack_sessions"].__setitem__(1, None), "question 1 ('q2'): haystack_sessions[1]:"),
    "content": (lambda q: q["haystack_sessions"][1][0].update(content=None),
                "question 1 ('q2'): haystack_sessions[1][0].content: found null, expected a string"),
    "has_answer": (lambda q: q["haystack_sessions"][1][0].update(has_answer=1),
                   "question 1 ('q2'): haystack_sessions[1][0].has_answer: found 1 (a number)"),
    "unknown evidence": (lambda q: q["answer_session_ids"].append("s9"),
                         "question 1 ('q2'): answer_session_ids: found 's9', which the haystack does not hold"),
    "same session": (lambda q: q["haystack_session_ids"].__setitem__(1, "q2-s0"),
                     "question 1 ('q2'): haystack_session_ids[1]: found 'q2-s0' again with other turns"),
    "no sessions": (lambda q: q.update(haystack_sessions=[], haystack_dates=[], haystack_session_ids=[]),
                    "question 1 ('q2'): haystack_sessions: found no turn at all"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FIELDS)
def test_a_bad_question_is_named_or_set_aside(tmp_path: Path, case: str) -> None:
    edit, reason = BAD_FIELDS[case]
    bad = question("q2")
    edit(bad)
    path = write(tmp_path, question(), bad, question("q3"))
    with pytest.raises(DataError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: {reason}")
    data = load(path, on_error="quarantine", quarantine_dir=tmp_path)
    assert data.scopes == ["q1", "q3"]
    assert data.turns.height == 8
    assert data.issues["action"].to_list() == ["quarantined"]
    assert json.loads((tmp_path / "haystack.json.quarantine.jsonl").read_text())["raw"] == bad


def _pooled_file(folder: Path) -> Path:
    return write(folder, *(question(f"q{i}", own=1 + i % 3) for i in range(12)))


def test_pooling_keeps_own_sessions_and_draws_the_rest(tmp_path: Path) -> None:
    path = _pooled_file(tmp_path)
    plain, pooled = load(path), load(path, pool=9, seed=3)
    assert pooled.name == "haystack-pool9-seed3"
    assert pooled.sessions.group_by("scope").len()["len"].unique().to_list() == [9]
    assert pooled.questions.equals(plain.questions)
    own = plain.turns.select("turn_id", "text", "timestamp")
    assert pooled.turns.join(own, on=["turn_id", "text", "timestamp"], how="semi").height == own.height
    assert pooled.turns["turn_id"].is_unique().all()
    assert pooled.sessions.group_by("scope", maintain_order=True).agg(pl.col("start").is_sorted())["start"].all()
    assert pooled.fingerprint() == pool(load(path), n_sessions=9, seed=3).fingerprint()
    assert pooled.fingerprint() == pool(plain, n_sessions=9, seed=3).fingerprint()
    assert pooled.fingerprint() == concat(stream(path, pool=9, seed=3, batch_turns=30)).fingerprint()
    assert pooled.fingerprint() != load(path, pool=9, seed=4).fingerprint()


def test_a_distractor_never_copies_evidence_or_an_own_session(tmp_path: Path) -> None:
    first, second, third = question("q1", 1), question("q2", 2), question("q3", 4)
    second["haystack_sessions"][0][1]["content"] = "q1 fact 0"
    second["haystack_sessions"][1] = [
        {k: v for k, v in t.items() if k != "has_answer"} for t in first["haystack_sessions"][0]
    ]
    third["haystack_session_ids"][0] = third["answer_session_ids"][0] = "q1-s0"
    path = write(tmp_path, first, second, third)
    pooled = load(path, pool=4)
    assert set(pooled.sessions.filter(scope="q1")["session_id"]) == {"q1/q1-s0", "q1/q3-s1", "q1/q3-s2", "q1/q3-s3"}
    for scope, evidence in pooled.questions.select("scope", "evidence").iter_rows():
        texts = pooled.turns.filter(pl.col("turn_id").is_in(evidence))["text"]
        assert pooled.turns.filter(pl.col("text").is_in(texts.to_list()), scope=scope).height == texts.len()
    with pytest.raises(DataError, match="'q1' has 1 sessions of its own and 3 others to draw"):
        load(path, pool=5)


def test_pooling_says_what_it_cannot_do(tmp_path: Path) -> None:
    path = _pooled_file(tmp_path)
    with pytest.raises(DataError, match=r"the file holds 24\), which cannot make 48; choose another n_sessions"):
        load(path, pool=48)
    with pytest.raises(DataError, match="has 2 sessions of its own"):
        load(path, pool=1)
    for size in (0, True):
        with pytest.raises(DataError, match="expected a number of sessions"):
            load(path, pool=size)
    with pytest.raises(DataError, match="only LongMemEval data"):
        pool(Dataset("x", "chatlog", load(path).turns, load(path).sessions))


@pytest.mark.shared_data
def test_the_real_file(longmemeval_path: Path) -> None:
    data = load(longmemeval_path)
    assert (data.turns.height, data.sessions.height, data.questions.height) == (2_682, 460, 225)
    assert data.questions["evidence"].list.len().sum() == 430
    assert data.questions["abstention"].sum() == 7
    assert data.issues.height == 0


@pytest.mark.shared_data
def test_the_real_file_pooled(longmemeval_path: Path) -> None:
    pooled = load(longmemeval_path, pool=48, seed=0)
    assert pooled.name.endswith("-pool48-seed0")
    assert pooled.sessions.group_by("scope").len()["len"].unique().to_list() == [48]
    evidence = pooled.questions.select("scope", turn_id=pl.col("evidence")).explode("turn_id").drop_nulls()
    texts = evidence.join(pooled.turns, on=["scope", "turn_id"]).select("scope", "text")
    assert texts.height == 430
    copies = pooled.turns.join(texts, on=["scope", "text"], how="semi").join(evidence, on="turn_id", how="anti")
    own = pooled.questions.select(session_id=pl.col("evidence_sessions")).explode("session_id")
    assert copies.join(own, on="session_id", how="anti").height == 0


_MEMORY = """
import resource, sys
from memlab.datasets import load, stream
kind, path = sys.argv[1:]
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
turns = 0
for part in stream(path, batch_turns=4_000) if kind == "stream" else [load(path)]:
    turns += part.turns.height
    del part
print(turns, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) // 1024)
"""


def test_a_large_file_is_never_held_whole(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    path, text = tmp_path / "large.json", "a word of many, and again " * 40
    with path.open("w") as file:
        for i in range(100):
            record = question(f"q{i}", own=25)
            record["haystack_sessions"] = [[turn(f"{j} {n} {text}") for n in range(20)] for j in range(25)]
            file.write("[,"[i > 0] + json.dumps(record))
        file.write("]")
    size = path.stat().st_size >> 20
    assert size >= 50
    run = subprocess.run(
        [sys.executable, "-c", _MEMORY, "stream", str(path)], capture_output=True, text=True, check=True
    )
    turns, megabytes = map(int, run.stdout.split())
    assert turns == 50_000
    assert megabytes < size, f"streaming a file of {size} MB took {megabytes} MB"
