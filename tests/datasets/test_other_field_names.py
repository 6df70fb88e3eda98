"""Fields of a chat log under other names, and keys that are not read."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import memlab


def line(number: int, **other: object) -> str:
    return json.dumps({"scope": "me", "text": f"words {number}", **other})


@pytest.mark.parametrize("count", [3, 9_000])  # record by record, and in columns
def test_a_usual_field_under_another_name_is_read_and_said_once(tmp_path: Path, count: int) -> None:
    path = tmp_path / "log.jsonl"
    usual, other = list[str](), list[str]()
    for i in range(count):
        time = f"2026-03-01T09:{i % 60:02}:00Z"
        usual.append(line(i, sender="Ruth", role="user", session=f"day {i // 4}", timestamp=time))
        other.append(line(i, speaker="Ruth", role="user", sessionId=f"day {i // 4}", sent_at=time))
    path.write_text("\n".join(usual))
    wanted = memlab.load(path)
    assert wanted.issues.is_empty()
    path.write_text("\n".join(other))
    read = memlab.load(path)
    assert read.turns.equals(wanted.turns)
    assert read.turns["speaker"].unique().to_list() == ["Ruth"]
    assert read.turns["timestamp"].null_count() == 0
    said = dict(read.issues.select("action", "found").iter_rows())
    counted = f"none in {count:,} messages, which have"
    assert said == {
        "read as the timestamp": f"{counted} 'sent_at'",
        "read as the sender": f"{counted} 'speaker'",
        "read as the session": f"{counted} 'sessionId'",
    }


@pytest.mark.parametrize("count", [3, 9_000])
def test_a_line_that_alone_has_another_name_is_read_too(tmp_path: Path, count: int) -> None:
    path = tmp_path / "log.jsonl"
    lines = [line(i, sender="Ruth", timestamp="2026-03-01T09:00:00Z") for i in range(count)]
    lines[1] = line(1, author="Bo", created_at="2026-03-02T09:00:00Z")
    path.write_text("\n".join(lines))
    turns = memlab.load(path).turns.filter(pl.col("text") == "words 1")
    assert turns.select("speaker", pl.col("timestamp").dt.day()).row(0) == ("Bo", 2)


def test_a_time_that_is_an_object_is_read_under_another_name_too(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(line(1, sender="Ruth", createdAt={"$date": "2026-03-01T09:00:00Z"}))
    read = memlab.load(path)
    assert read.turns["timestamp"].dt.hour().to_list() == [9]
    assert read.issues["action"].to_list() == ["read as the timestamp"]


@pytest.mark.parametrize("count", [3, 9_000])
def test_keys_that_are_not_read_are_named_once(tmp_path: Path, count: int) -> None:
    path = tmp_path / "log.jsonl"
    lines = [line(i, sender="Ruth", mood="good", tags=None, device={"os": 1}) for i in range(count)]
    path.write_text("\n".join(lines))
    issues = memlab.load(path).issues.filter(action="not read")
    (found,) = issues["found"]
    assert found == f"'mood', 'device', in up to {count:,} messages"
    # A name that is there is not looked for elsewhere.
    path.write_text("\n".join(line(i, sender="Ruth", speaker="R.") for i in range(count)))
    read = memlab.load(path)
    assert read.turns["speaker"].unique().to_list() == ["Ruth"]
    assert read.issues["found"].to_list() == [f"'speaker', in up to {count:,} messages"]
