"""The chat-log format: what a line may hold, and what happens to a bad one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.datasets import load, stream
from memlab.errors import DataError
from memlab.records import Dataset, concat

NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)


def message(minute: int = 0, **fields: Any) -> dict[str, Any]:
    time = {"timestamp": f"2026-03-01T09:{minute:02}:00Z"}
    return {"scope": "ann", "sender": "Ann", "text": "Hello", **time, **fields}


def write(folder: Path, *records: Any, end: str = "\n") -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(
        "".join((r if isinstance(r, str) else json.dumps(r)) + end for r in records).encode("utf-8")
    )
    return path


def read(folder: Path, *records: Any, **options: Any) -> Dataset:
    return load(write(folder, *records), **options)


def test_messages_become_turns_in_sessions(tmp_path: Path) -> None:
    said = message(45, sender="assistant", text="Hi"), message(50, sender="Bob", role="tool")
    data = read(tmp_path, message(0, caption="a cat"), *said)
    assert (data.name, data.format) == ("log", "chatlog")
    ids = data.turns["turn_id"]
    assert data.turns["session_id"].to_list() == [ids[n].replace("/", "/@") for n in (0, 1, 1)]
    assert data.turns.select("speaker", "role", "caption").rows() == [
        ("Ann", "user", "a cat"),
        ("assistant", "assistant", None),
        ("Bob", "other", None),
    ]
    assert read(tmp_path, message(0), message(20), gap=timedelta(minutes=15)).sessions.height == 2


def test_times(tmp_path: Path) -> None:
    values = [
        "2026-03-01T10:00:00+01:00",
        "2026-03-01 09:00",
        1772355600,
        1772355600000,
        "1772355600",
        None,
    ]
    data = read(tmp_path, *(message(timestamp=value, id=str(i)) for i, value in enumerate(values)))
    assert data.turns["timestamp"].to_list() == [*[NINE] * 5, None]
    assert data.issues["where"].to_list() == ["log.jsonl: line 2: timestamp"], (
        "a time without a zone is noted once"
    )
    assert read(tmp_path, message(timestamp="1701011221530")).turns["timestamp"][0].year == 2023
    assert (
        read(tmp_path, message(timestamp="2026-03-01T10:00"), tz="Europe/Oslo").turns["timestamp"][
            0
        ]
        == NINE
    )
    twice = [
        message(minute, timestamp=f"2025-10-26T02:{minute}", id=str(i))
        for i, minute in enumerate((40, 58, 11, 10, 45))
    ]
    back = read(tmp_path, *twice, message(timestamp="2025-10-26T03:05"), tz="Europe/Oslo").turns
    assert back["timestamp"].dt.hour().to_list() == [0, 0, 1, 1, 1, 2], "clocks are put back"
    for wrong in ("20260301120000", "12", "177235560012345678", True, 10**30, "yesterday"):
        with pytest.raises(DataError, match=r"line 1: timestamp: found .*seconds or milliseconds"):
            read(tmp_path, message(timestamp=wrong))
    with pytest.raises(DataError, match="time zone"):
        read(tmp_path, message(), tz="Europe/Nowhere")


def test_questions_cite_by_id_place_or_turn_id(tmp_path: Path) -> None:
    data = read(
        tmp_path,
        {
            "question": "Early?",
            "scope": "ann",
            "evidence": ["m1", "trip/2"],
            "answer": 3,
            "timestamp": 1772355600,
        },
        message(0, session="trip", id="m1"),
        message(1, session="trip"),
        message(2, session="a b"),
        {
            "question": "Late?",
            "scope": "ann",
            "evidence": ["ann/a%20b/1", "a b/1", "a%20b/1"],
            "type": "single",
            "id": 7,
        },
        {
            "question": "None?",
            "scope": "ann",
            "abstention": True,
            "query_id": "x/1",
            "evidence_sessions": ["a b"],
        },
    )
    columns = ["query_id", "answer", "question_type", "evidence", "evidence_sessions", "abstention"]
    turns = data.turns["turn_id"]
    assert data.questions.select(columns).rows() == [
        ("ann/q0", "3", "unspecified", ["ann/m1", turns[1]], ["ann/trip"], False),
        ("ann/7", None, "single", [turns[2]], ["ann/a%20b"], False),
        ("x/1", None, "unspecified", [], ["ann/a%20b"], True),
    ]
    assert data.questions["timestamp"][0] == NINE


ASKED = {"question": "?", "scope": "ann"}
BAD_LINES = {
    "no scope": ({"sender": "A", "text": "x"}, "scope: found nothing (the field is missing)"),
    "blank scope": (message(scope=" "), "scope: found ' ' (a string), expected a name"),
    "text is null": (message(text=None), "text: found null, expected a string"),
    "nobody speaks": ({"scope": "a", "text": "x"}, "sender: found neither a sender nor a role"),
    "not a number": (
        '{"scope": "a", "sender": "A", "text": NaN}',
        "found JSON that cannot be read: NaN",
    ),
    "NUL": (message(text="a\x00b"), "text: found a NUL character at 1"),
    "lone surrogate": (
        '{"scope": "a", "sender": "A", "text": "\\ud83d!"}',
        "text: found a lone surrogate",
    ),
    "same id": (message(1, id="m"), "id: found 'm' again in scope 'ann' (first on line 1)"),
    "truncated": ('{"scope": "ann", "te', "found broken JSON at column 18: Unterminated string"),
    "late header": ({"memlab": {}}, "memlab: found a header"),
    "unknown evidence": (ASKED | {"evidence": ["m", "m9"]}, "evidence[1]: found 'm9'"),
    "evidence is text": (ASKED | {"evidence": "m"}, "evidence: found 'm' (a string)"),
    "unknown scope": (
        {"question": "?", "scope": "bob"},
        "scope: found 'bob', which has no messages",
    ),
    "abstention is 1": (ASKED | {"abstention": 1}, "abstention: found 1 (a number)"),
    "stale evidence": (ASKED | {"evidence": ["m"], "stale": ["m"]}, "stale: found 'ann/m'"),
    "unknown source": (
        ASKED | {"source": "gold"},
        "source: found 'gold' (a string), expected one of",
    ),
    "source is a list": (ASKED | {"source": ["proposed"]}, "source: found a list"),
    "unknown distractor": (ASKED | {"distractors": ["m9"]}, "distractors[0]: found 'm9'"),
    "distractor is evidence": (
        ASKED | {"evidence": ["m"], "distractors": ["m"]},
        "distractors: found 'ann/m' (a string), expected no turn that is evidence too",
    ),
    "reasons of other evidence": (
        ASKED | {"evidence": ["m"], "reasons": ["one", "two"]},
        "reasons: found 2 for 1 messages of evidence",
    ),
    "deep": ("[" * 100_000, "found JSON that cannot be read: nested"),
    "not UTF-8": (
        '{"scope": "ann", "text": "\udcff"}',
        "found a byte that is not UTF-8 (0xff, byte 27 of the line)",
    ),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_named_or_set_aside(tmp_path: Path, case: str) -> None:
    line, reason = BAD_LINES[case]
    path = tmp_path / "log.jsonl"
    rows = [
        row if isinstance(row, str) else json.dumps(row)
        for row in (message(id="m"), line, message(1))
    ]
    path.write_bytes("\n".join(rows).encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: line 2: {reason}")
    assert 'on_error="quarantine"' in str(error.value)
    for _ in range(2):  # a second load adds nothing to the side file
        data = load(path, on_error="quarantine", quarantine_dir=tmp_path / "side")
        assert data.turns.height == 2
        assert data.issues.select("where", "action").rows() == [
            ("log.jsonl: line 2", "quarantined")
        ]
    held = [
        json.loads(row)
        for row in (tmp_path / "side/log.jsonl.quarantine.jsonl").read_text().splitlines()
    ]
    assert [h["raw"] for h in held] == [json.loads(line) if case == "lone surrogate" else line]
    assert reason in held[0]["reason"]


def test_what_is_about_the_whole_file(tmp_path: Path) -> None:
    question = {"question": "?", "scope": "ann", "query_id": "q"}
    with pytest.raises(DataError, match=r"line 3: query_id: found 'q' again \(first on line 2\)"):
        read(tmp_path, message(), question, question)
    numbered = {"question": "!", "scope": "ann", "id": 1}
    with pytest.raises(DataError, match=r"query_id: found 'ann/1' again \(first on line 2\)"):
        read(tmp_path, message(), numbered, numbered)
    rows = [
        {"memlab": {"grouped": True}},
        message(scope="a"),
        message(scope="b"),
        message(scope="a"),
    ]
    with pytest.raises(DataError, match="line 4: scope: found 'a' again after another scope"):
        read(tmp_path, *rows)
    path = write(
        tmp_path, {"memlab": {"grouped": True}}, *(message(scope=scope, id="1") for scope in "abb")
    )
    with pytest.raises(DataError, match="line 4: id: found '1' again"):
        list(stream(path, batch_turns=1))
    with pytest.raises(DataError, match=r"holds no usable message \(1 issue\)"):
        read(tmp_path, message(text=1), on_error="quarantine", quarantine_dir=tmp_path)
    path = write(tmp_path, message(0), "", message(1), end="\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path).turns.height == 2, "a byte order mark, CRLF and blank lines are accepted"


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("batch_turns", [1, 10, 1_000])
def test_streamed_batches_of_whole_scopes_are_the_loaded_whole(
    tmp_path: Path, grouped: bool, batch_turns: int
) -> None:
    rows = [
        message(3 * i, scope=f"u{s}", session=f"s{i // 3}", id=f"{i}")
        for s in range(12)
        for i in range(7)
    ]
    rows += [{"question": "?", "scope": f"u{s}", "evidence": ["2", "5"]} for s in range(12)]
    rows = sorted(rows, key=lambda row: int(row["scope"][1:])) if grouped else rows
    path = write(tmp_path, {"memlab": {"format": "chatlog", "grouped": grouped, "seed": 0}}, *rows)
    parts = list(stream(path, batch_turns=batch_turns))
    assert len(parts) == {1: 12, 10: 6, 1_000: 1}[batch_turns]
    assert sum(len(part.scopes) for part in parts) == 12
    joined, whole = concat(parts), load(path)
    for table in ("turns", "sessions", "questions", "issues"):
        assert getattr(joined, table).equals(getattr(whole, table))


def test_a_question_stays_with_its_scope_and_an_issue_with_the_last_batch(tmp_path: Path) -> None:
    rows = [
        r for s in range(3) for r in ({"question": "?", "scope": f"u{s}"}, message(scope=f"u{s}"))
    ]
    path = write(
        tmp_path, {"memlab": {"grouped": True}}, *rows, {"question": "?", "scope": "nobody"}
    )
    parts = list(stream(path, batch_turns=1, on_error="quarantine", quarantine_dir=tmp_path))
    assert [part.questions["query_id"].to_list() for part in parts] == [
        ["u0/q0"],
        ["u1/q0"],
        ["u2/q0"],
    ]
    assert [part.issues.height for part in parts] == [0, 0, 1]


def test_a_scope_is_taken_by_the_name_that_was_given(tmp_path: Path) -> None:
    """As the conversations name it, or, where none is called so, as memlab prints it."""
    path = write(tmp_path, *(message(scope=name, text=name) for name in ("a/b", "a%2Fb", "a b")))
    for called, scope in (
        ("a/b", "a/b"),
        ("a%2Fb", "a%2Fb"),
        ("a%252Fb", "a%2Fb"),
        ("a%20b", "a b"),
    ):
        assert memlab.load(path, scope=called).turns["text"].to_list() == [scope]
    with pytest.raises(DataError, match="has no scope 'a'"):
        memlab.load(path, scope="a")


def test_ids_of_questions_begin_anew_in_each_scope(tmp_path: Path) -> None:
    asked = {"question": "?", "id": 1}
    lines = [message(scope="a"), message(scope="b b")]
    data = read(tmp_path, *lines, asked | {"scope": "a"}, asked | {"scope": "b b"})
    assert data.questions["query_id"].to_list() == ["a/1", "b%20b/1"]
    again = read(tmp_path, *lines, asked | {"scope": "a", "id": "a/1"})
    assert again.questions["query_id"].to_list() == ["a/1"]
