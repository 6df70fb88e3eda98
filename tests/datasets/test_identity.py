"""Identities survive: messages that come late, are edited, deleted or written in another order touch nothing else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import memlab
from memlab.datasets import chatlog, stream
from memlab.errors import DataError
from memlab.records import Dataset
from memlab.store import MemoryStore

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def message(minute: int, text: str, **more: Any) -> dict[str, Any]:
    time = (START + timedelta(minutes=minute)).isoformat()
    return {"scope": "ann", "sender": "Ann", "text": text, "timestamp": time, **more}


def log(records: list[dict[str, Any]]) -> Dataset:
    return chatlog.dataset(records, "log")


def touched(done: pl.DataFrame, table: str = "turns") -> tuple[int, int, int]:
    counts: tuple[int, int, int] = (
        done.filter(table=table).select("inserted", "updated", "removed").row(0)
    )
    return counts


def into(
    store: MemoryStore, folder: Path, records: list[dict[str, Any]], name: str = "log"
) -> pl.DataFrame:
    path = folder / "more.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return store.ingest(stream(path, into=lambda scopes: store.dataset(name, scopes=scopes)))


WORDS = ("tea", "rain", "the cat", "a train")
TALK = [
    message(7 * i + 600 * (i // 5), f"{WORDS[i % 4]} {i}", **({"id": f"m{i}"} if i % 2 else {}))
    for i in range(25)
]


@pytest.fixture(scope="module")
def stored_talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("talk") / "store"
    MemoryStore.open(place).ingest(log(TALK))
    return place


@pytest.fixture
def store(stored_talk: Path, tmp_path: Path) -> MemoryStore:
    return MemoryStore.open(shutil.copytree(stored_talk, tmp_path / "store"))


def test_ids_are_the_messages_own_or_digests_and_sessions_begin_with_one() -> None:
    data = log(
        [message(0, "Hi", id="a b"), message(0, "Hi"), message(0, "Hi"), message(90, "~", id="~x")]
    )
    first, second, third, last = data.turns["turn_id"]
    assert (first, last) == ("ann/a%20b", "ann/%7Ex")
    assert second.startswith("ann/~")
    assert third == f"{second}-2"
    assert data.sessions["session_id"].to_list() == ["ann/@a%20b", "ann/@%7Ex"]
    named = [
        message(0, "Hi", id="m1"),
        message(1, "Ho", session="@m1"),
        message(2, "Ha", session="m1"),
    ]
    assert log(named).sessions["session_id"].n_unique() == 3, (
        "what the log names meets nothing else"
    )


@pytest.mark.parametrize("place", [0, 7, 25])
def test_a_late_message_is_one_row(store: MemoryStore, place: int) -> None:
    minute = -300 if place == 0 else 7 * place + 600 * ((place - 1) // 5) - 3
    data = log([*TALK[:place], message(minute, "late"), *TALK[place:]])
    done = store.ingest(data)
    assert touched(done) == (1, 0, 0)
    assert sum(touched(done, "sessions")) <= 1
    assert store.dataset("log").fingerprint() == data.fingerprint()


def test_a_day_goes_on_a_log_and_the_same_file_touches_nothing(
    store: MemoryStore, tmp_path: Path
) -> None:
    asked = {"scope": "ann", "question": "When?", "evidence": ["m3", "d1"]}
    day = [*(message(60_000 + i, f"new {i}", id=f"d{i}") for i in range(30)), asked]
    done = into(store, tmp_path, day)
    assert (touched(done), touched(done, "sessions")) == ((30, 0, 0), (1, 0, 0))
    assert store.questions("log")["evidence"].to_list() == [["ann/m3", "ann/d1"]]
    assert into(store, tmp_path, day).select("inserted", "updated", "removed").sum().row(0) == (
        0,
        0,
        0,
    )
    assert store.dataset("log").turns.equals(log([*TALK, *day]).turns)
    golden = [
        {"scope": "ann", "question": q, "evidence": [e]}
        for q, e in (("Who?", "m1"), ("What?", "m11"))
    ]
    into(store, tmp_path, golden)  # questions alone
    assert store.questions("log")["query_id"].to_list() == ["ann/q0", "ann/q1", "ann/q2"]
    late = log([message(-5, "before all", id="m0"), *TALK, *day])
    assert touched(store.ingest(late), "questions")[1] >= 1, (
        "they follow their evidence into another session"
    )
    assert store.questions("log")["evidence_sessions"][1].to_list() == ["ann/@m0"]


def test_what_takes_no_more_messages_is_refused(store: MemoryStore, tmp_path: Path) -> None:
    data = log(TALK)
    older = data.turns.with_columns(turn_id=pl.format("{}/{}", "session_id", "n"))
    store.ingest(replace(data, turns=older))
    with pytest.raises(DataError, match="ids of an older memlab"):
        into(store, tmp_path, TALK)
    assert touched(store.ingest(data)) == (25, 0, 25)
    store.ingest(replace(memlab.sample(["owen"], turns=60), format="locomo", name="other"))
    with pytest.raises(DataError, match="is locomo; only a chat log takes more messages"):
        into(store, tmp_path, TALK, "other")
