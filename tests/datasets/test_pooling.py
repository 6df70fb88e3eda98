"""Haystacks of LongMemEval: pooled from an oracle file, and streamed in bounded memory."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.datasets import load, stream
from memlab.errors import DataError
from memlab.records import concat


def turn(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


def question(name: str = "q1", own: int = 2) -> dict[str, Any]:
    """Build a question with sessions of its own, of which the last holds no marked turn and the first is later."""
    return {
        "question_id": name,
        "question_type": "multi-session",
        "question": "How many?",
        "answer": 2,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": [f"2023/05/{d:02} (Sat) 02:21" for d in [9, *range(2, own + 1)]],
        "haystack_session_ids": [f"{name}-s{i}" for i in range(own)],
        "haystack_sessions": [
            [turn(f"{name} fact {i}", has_answer=i == 0), turn("I see.")] for i in range(own)
        ],
        "answer_session_ids": [f"{name}-s{i}" for i in range(own)],
    }


def write(folder: Path, *records: Any) -> Path:
    path = folder / "haystack.json"
    path.write_text(json.dumps(list(records)), encoding="utf-8")
    return path


def test_pooling_keeps_own_sessions_and_draws_the_rest(tmp_path: Path) -> None:
    path = write(tmp_path, *(question(f"q{i}", own=1 + i % 3) for i in range(12)))
    plain, pooled = load(path), load(path, pool=9, seed=3)
    assert pooled.name == "haystack-pool9-seed3"
    assert pooled.sessions.group_by("scope").len()["len"].unique().to_list() == [9]
    assert pooled.questions.equals(plain.questions)
    own = plain.turns.select("turn_id", "text", "timestamp")
    assert (
        pooled.turns.join(own, on=["turn_id", "text", "timestamp"], how="semi").height == own.height
    )
    assert pooled.turns["turn_id"].is_unique().all()
    assert (
        pooled.sessions.group_by("scope", maintain_order=True)
        .agg(pl.col("start").is_sorted())["start"]
        .all()
    )
    assert (
        pooled.fingerprint() == concat(stream(path, pool=9, seed=3, batch_turns=30)).fingerprint()
    )
    assert pooled.fingerprint() != load(path, pool=9, seed=4).fingerprint()
    for n, word in (
        (48, "cannot make 48"),
        (1, "has 2 sessions of its own"),
        (0, "number of sessions"),
    ):
        with pytest.raises(DataError, match=word):
            load(path, pool=n)


def test_a_distractor_never_copies_evidence_or_an_own_session(tmp_path: Path) -> None:
    first, second, third = question("q1", 1), question("q2", 2), question("q3", 4)
    second["haystack_sessions"][0][1]["content"] = "q1 fact 0"
    second["haystack_sessions"][1] = [
        turn(each["content"]) for each in first["haystack_sessions"][0]
    ]
    third["haystack_session_ids"][0] = third["answer_session_ids"][0] = "q1-s0"
    pooled = load(write(tmp_path, first, second, third), pool=4)
    assert set(pooled.sessions.filter(scope="q1")["session_id"]) == {
        "q1/q1-s0",
        "q1/q3-s1",
        "q1/q3-s2",
        "q1/q3-s3",
    }
    for scope, evidence in pooled.questions.select("scope", "evidence").iter_rows():
        texts = pooled.turns.filter(pl.col("turn_id").is_in(evidence))["text"]
        assert (
            pooled.turns.filter(pl.col("text").is_in(texts.to_list()), scope=scope).height
            == texts.len()
        )


def test_a_large_file_is_never_held_whole(tmp_path: Path) -> None:
    path, text = tmp_path / "large.json", "a word of many, and again " * 800
    with path.open("w") as file:
        for i in range(20):
            sessions = [[turn(f"{j} {n} {text}") for n in range(4)] for j in range(5)]
            file.write(
                "[,"[i > 0] + json.dumps(question(f"q{i}", own=5) | {"haystack_sessions": sessions})
            )
        file.write("]")
    tracemalloc.start()
    turns = sum(part.turns.height for part in stream(path, batch_turns=20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert turns == 400
    assert peak < path.stat().st_size * 0.8, (
        f"streaming {path.stat().st_size:,} bytes took {peak:,}"
    )
