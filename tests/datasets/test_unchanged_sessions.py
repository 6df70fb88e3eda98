"""Messages that are added to a long memory leave what it would be if all of it were divided anew."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from memlab.datasets import chatlog, stream, unchanged_sessions
from memlab.records import Dataset
from memlab.store.table_schemas import DATASET_TABLES

START = datetime(2026, 3, 1, tzinfo=UTC)


def message(number: int, minute: int, **more: Any) -> dict[str, Any]:
    time = (START + timedelta(minutes=minute)).isoformat()
    said = {"scope": "me", "sender": "Ann", "text": f"pot {number}", "id": f"m{number}"}
    return said | {"timestamp": time} | more


def added(
    there: Dataset, messages: list[dict[str, Any]], folder: Path, *, minutes: int = 30
) -> Dataset:
    path = folder / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, messages)))

    def stored(scopes: list[str]) -> Dataset:
        return there.take([scope for scope in scopes if scope in there.scopes])

    (data,) = stream(path, into=stored, gap=timedelta(minutes=minutes))
    return data


def assert_same(one: Dataset, other: Dataset) -> None:
    for table in DATASET_TABLES:
        assert_frame_equal(getattr(one, table), getattr(other, table))
    assert one.merged_onto == other.merged_onto


def drawn_messages(rng: random.Random, first: int, minute: int, count: int) -> list[dict[str, Any]]:
    """Draw messages, some without an id, with a name of their session or quoted words."""
    messages = []
    for number in range(first, first + count):
        minute += rng.choice([0, 1, 5, 29, 30, 31, 200])
        drawn = message(number, minute, sender=rng.choice(["Ann", "Bo"]))
        if rng.random() < 0.1:
            drawn["session"] = rng.choice(["trip", "s0001", "@home", "a b"])
        if rng.random() < 0.2:
            del drawn["id"]
        if rng.random() < 0.05:
            drawn["quoted"] = ["pot"]
        messages.append(drawn)
    return messages


def test_a_part_that_is_divided_anew_gives_what_the_whole_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    find = unchanged_sessions.find_unchanged_sessions

    def noted(*about: Any, **options: Any) -> unchanged_sessions.UnchangedSessions:
        unchanged = find(*about, **options)
        found.append(unchanged.turns.height)
        return unchanged

    monkeypatch.setattr(unchanged_sessions, "find_unchanged_sessions", noted)
    for seed in range(120):
        rng = random.Random(seed)
        stored = drawn_messages(rng, 0, 0, rng.randrange(1, 40))
        if rng.random() < 0.2:
            rng.shuffle(stored)
        if rng.random() < 0.2:
            del stored[0]["timestamp"]
        there = chatlog.dataset(stored, "log")
        last = datetime.fromisoformat(stored[-1].get("timestamp", START.isoformat()))
        minute = (last - START) // timedelta(minutes=1) + rng.choice([-200, -30, 0, 30, 500])
        more = drawn_messages(rng, rng.choice([35, 1000]), minute, rng.randrange(1, 6))
        minutes = rng.choice([30, 30, 60])
        results = []
        for least in (0, 1 << 30):
            monkeypatch.setattr(unchanged_sessions, "LONG", least)
            results.append(added(there, more, tmp_path, minutes=minutes))
        assert_same(*results)
    assert sum(map(bool, found)) > 30


LINES = [message(number, 100 * number) for number in range(20)]


@pytest.mark.parametrize(
    ("change", "n_unchanged"),
    [
        (message(50, 2000), 20),
        (message(50, 1930), 19),
        (message(50, 1931), 20),
        (message(7, 2000), 7),
        (message(50, 450), 5),
        (message(50, 2000) | {"timestamp": None}, 0),
        (message(50, 2000, scope="other"), 0),
    ],
    ids=["behind", "joins", "a gap", "is there", "between", "no time", "another scope"],
)
def test_sessions_before_the_first_change_stay(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], n_unchanged: int
) -> None:
    monkeypatch.setattr(unchanged_sessions, "LONG", 0)
    there = chatlog.dataset(LINES, "log")
    new_turns = chatlog.dataset([change], "log").turns
    new = new_turns.with_columns(placed="timestamp")
    gap = timedelta(minutes=30)
    unchanged = unchanged_sessions.find_unchanged_sessions(there, new, gap=gap)
    assert unchanged.turns.height == n_unchanged
    assert unchanged.sessions.equals(there.sessions[:n_unchanged])


def test_a_memory_that_was_divided_otherwise_is_divided_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unchanged_sessions, "LONG", 0)
    there = chatlog.dataset(LINES, "log")
    new = chatlog.dataset([message(50, 5000)], "log").turns.with_columns(placed="timestamp")
    for gap in (timedelta(minutes=30), timedelta(minutes=100)):
        unchanged = unchanged_sessions.find_unchanged_sessions(there, new, gap=gap)
        assert bool(unchanged.turns.height) is (gap < timedelta(minutes=100))
