"""Identities survive: messages that come late, are edited, deleted or written in another order touch nothing else."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import memlab
from memlab.config import IndexSettings
from memlab.datasets import load, stream
from memlab.errors import DataError
from memlab.indexing import index, resolved_facts
from memlab.records import Dataset
from memlab.store import MemoryStore

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
NOW = START + timedelta(days=400)


def message(minute: int, text: str, **more: Any) -> dict[str, Any]:
    time = (START + timedelta(minutes=minute)).isoformat()
    return {"scope": "ann", "sender": "Ann", "text": text, "timestamp": time, **more}


def write(folder: Path, records: list[dict[str, Any]], name: str = "log") -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def touched(done: pl.DataFrame, table: str = "turns") -> tuple[int, int, int]:
    counts: tuple[int, int, int] = done.filter(table=table).select("inserted", "updated", "removed").row(0)
    return counts


def into(store: MemoryStore, path: Path, name: str = "log") -> pl.DataFrame:
    return store.ingest(stream(path, into=lambda scopes: store.dataset(name, scopes=scopes)))


TALK = [
    message(
        7 * i + 600 * (i // 5),
        f"{('tea', 'rain', 'the cat', 'a train')[i % 4]} {i}",
        **({"id": f"m{i}"} if i % 2 else {}),
    )
    for i in range(25)
]


def test_ids_are_the_messages_own_or_digests_and_sessions_begin_with_one(tmp_path: Path) -> None:
    data = load(
        write(tmp_path, [message(0, "Hi", id="a b"), message(0, "Hi"), message(0, "Hi"), message(90, "~", id="~x")])
    )
    first, second, third, last = data.turns["turn_id"]
    assert (first, last) == ("ann/a%20b", "ann/%7Ex")
    assert second.startswith("ann/~")
    assert third == f"{second}-2"
    assert data.sessions["session_id"].to_list() == ["ann/@a%20b", "ann/@%7Ex"]


def test_what_the_log_names_meets_nothing_else(tmp_path: Path) -> None:
    log = [message(0, "Hi", id="m1"), message(1, "Ho", session="@m1"), message(2, "Ha", session="m1")]
    assert load(write(tmp_path, log)).sessions["session_id"].n_unique() == 3


@pytest.mark.parametrize("place", [0, 7, 25])
def test_a_late_message_is_one_row(tmp_path: Path, place: int) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(load(write(tmp_path, TALK)))
    minute = -300 if place == 0 else 7 * place + 600 * ((place - 1) // 5) - 3
    late = [*TALK[:place], message(minute, "late"), *TALK[place:]]
    data = load(write(tmp_path, late))
    done = store.ingest(data)
    assert touched(done) == (1, 0, 0)
    assert sum(touched(done, "sessions")) <= 1
    assert store.dataset("log").fingerprint() == data.fingerprint()


def test_a_day_goes_on_a_log_and_the_same_file_touches_nothing(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    other = [m | {"scope": "zoe"} for m in TALK]
    store.ingest(load(write(tmp_path, [*TALK, *other])))
    asked = {"scope": "ann", "question": "When?", "evidence": ["m3", "d1"]}
    day = [*(message(60_000 + i, f"new {i}", id=f"d{i}") for i in range(80)), asked]
    path = write(tmp_path, day, "day")
    done = into(store, path)
    assert touched(done) == (80, 0, 0)
    assert touched(done, "sessions") == (1, 0, 0)
    assert store.questions("log")["evidence"].to_list() == [["ann/m3", "ann/d1"]]
    assert into(store, path).select("inserted", "updated", "removed").sum().row(0) == (0, 0, 0)
    assert store.dataset("log").turns.equals(load(write(tmp_path, [*TALK, *day, *other])).turns)


def test_golden_questions_alone_go_into_a_log_and_follow_their_evidence(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(load(write(tmp_path, TALK)))
    golden = [{"scope": "ann", "question": q, "evidence": [e]} for q, e in (("Who?", "m1"), ("What?", "m11"))]
    into(store, write(tmp_path, golden, "golden"))
    assert store.questions("log")["query_id"].to_list() == ["ann/q0", "ann/q1"]
    late = load(write(tmp_path, [message(-5, "before all", id="m0"), *TALK]))
    assert touched(store.ingest(late), "questions") == (0, 1, 0)
    assert store.questions("log")["evidence_sessions"][0].to_list() == ["ann/@m0"]


def test_a_log_with_ids_of_an_older_version_is_ingested_whole_first(tmp_path: Path) -> None:
    store, path = MemoryStore.open(tmp_path / "store"), write(tmp_path, TALK)
    data = load(path)
    older = data.turns.with_columns(turn_id=pl.format("{}/{}", "session_id", "n"))
    store.ingest(replace(data, turns=older))
    with pytest.raises(DataError, match="ids of an older memlab"):
        into(store, path)
    assert touched(store.ingest(data)) == (25, 0, 25)
    assert store.dataset("log").fingerprint() == data.fingerprint()


def test_only_chat_logs_go_into_chat_logs(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(replace(memlab.sample(["owen"], turns=60), format="locomo"))
    with pytest.raises(DataError, match="is locomo; only a chat log takes more messages"):
        into(store, write(tmp_path, TALK), store.datasets()["name"][0])


FACTS = ["I live in Oslo.", "I live in Bergen.", "I work at Acme.", "What a day!", "I live in Rome.", "Lovely weather."]
_lines = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from(FACTS), st.booleans()),
    min_size=1,
    max_size=8,
    unique_by=lambda m: m[0],
)


@pytest.mark.slow
@settings(max_examples=12)
@given(log=_lines, late=_lines, gone=st.sets(st.integers(0, 20)), order=st.randoms(use_true_random=False))
def test_any_change_touches_itself_alone(
    log: list[tuple[int, str, bool]], late: list[tuple[int, str, bool]], gone: set[int], order: Any
) -> None:
    def lines(said: list[tuple[int, str, bool]], mark: str) -> list[dict[str, Any]]:
        return [message(7 * m, t, sender=mark, **({"id": f"{mark}{m}"} if own else {})) for m, t, own in said]

    before, new = lines(log, "a"), lines(late, "b")
    after = [m for i, m in enumerate(before) if i not in gone] + new
    order.shuffle(after)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        store = MemoryStore.open(folder / "store")
        store.ingest(load(write(folder, before)))
        data, was = load(write(folder, after)), _placed(store.dataset("log"))
        moved = {turn for turn, *_ in was} & {turn for turn, *_ in _placed(data)} - {
            turn for turn, *_ in {*was} & {*_placed(data)}
        }
        # A turn is touched only where a message beside it gives its session another beginning.
        assert touched(store.ingest(data)) == (len(new), len(moved), len(before) + len(new) - len(after))
        assert _placed(store.dataset("log")) == _placed(data)


def _placed(data: Dataset) -> list[tuple[Any, ...]]:
    return data.turns.sort("turn_id").select("turn_id", "session_id", "text").rows()


OTHERS = ["What a day!", "Lovely weather.", "The train was late.", "Good night."]


@pytest.mark.slow
@settings(max_examples=6)
@given(
    times=st.lists(st.integers(-200, 3_000), max_size=5, unique=True),
    repeats=st.booleans(),
    gone=st.sets(st.integers(2, 5)),
    order=st.randoms(use_true_random=False),
)
@example(times=[], repeats=True, gone=set(), order=random.Random(0))
def test_an_undo_and_a_golden_question_survive(times: list[int], repeats: bool, gone: set[int], order: Any) -> None:
    told = [message(0, "I live in Oslo.", id="oslo"), message(1_000, "I live in Bergen now.")]
    log = [*told, *(message(500 * i + 3, text) for i, text in enumerate(OTHERS))]
    asked = {"scope": "ann", "question": "Where?", "query_id": "g", "evidence": ["oslo"]}
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        store = MemoryStore.open(folder / "store")
        store.ingest(load(write(folder, [*log, asked])))
        index(store, "log", settings=IndexSettings(min_turns=1), now=NOW)
        closing = resolved_facts(store, "log").log
        assert closing.height == 1
        store.knowledge.undo("log", "ann", *closing.select("old", "new").row(0), at=NOW, why="both")
        assert resolved_facts(store, "log").log.is_empty()
        late = [message(m, OTHERS[m % 4], id=f"late{m}") for m in times]
        late += [message(-400, "I live in Oslo."), message(990, "I live in Bergen now.")] if repeats else []
        changed = [m for i, m in enumerate(log) if i not in gone] + late
        order.shuffle(changed)
        store.ingest(load(write(folder, changed)))
        index(store, "log", settings=IndexSettings(min_turns=1), now=NOW)
        assert resolved_facts(store, "log").log.is_empty()
        question = store.questions("log").row(0, named=True)
        assert question["evidence"] == ["ann/oslo"]
        own = store.turns("log").filter(pl.col("turn_id") == "ann/oslo")["session_id"].item()
        assert question["evidence_sessions"] == [own]
