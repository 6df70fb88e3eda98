"""The chat-log format: what a line may hold, and what happens to a bad one."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.datasets import load, stream
from memlab.errors import DataError
from memlab.records import Dataset, concat, decode_id_part

MESSAGE = {"scope": "ann", "sender": "Ann", "text": "Hello", "timestamp": "2026-03-01T09:00:00Z"}


def write(folder: Path, *records: Any, end: str = "\n") -> Path:
    path = folder / "log.jsonl"
    path.write_bytes("".join((r if isinstance(r, str) else json.dumps(r)) + end for r in records).encode("utf-8"))
    return path


def message(minute: int = 0, **fields: Any) -> dict[str, Any]:
    return MESSAGE | {"timestamp": f"2026-03-01T09:{minute:02}:00Z"} | fields


def read(folder: Path, *records: Any, **options: Any) -> Dataset:
    return load(write(folder, *records), **options)


def test_messages_become_turns_in_sessions(tmp_path: Path) -> None:
    data = read(
        tmp_path,
        message(0, caption="a cat"),
        message(45, sender="assistant", text="Hi"),
        message(50, sender="Bob", role="tool"),
    )
    assert data.format == "chatlog"
    assert data.name == "log"
    ids, sessions = data.turns["turn_id"].to_list(), data.turns["session_id"].to_list()
    assert all(re.fullmatch("ann/~[0-9a-f]{16}", turn) for turn in ids)
    assert sessions == [ids[0].replace("/", "/@"), *[ids[1].replace("/", "/@")] * 2]
    assert data.turns.select("speaker", "role", "caption").rows() == [
        ("Ann", "user", "a cat"),
        ("assistant", "assistant", None),
        ("Bob", "other", None),
    ]
    assert data.sessions["status"].to_list() == ["closed", "closed"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01T10:00:00+01:00", datetime(2026, 3, 1, 9, tzinfo=UTC)),
        ("2026-03-01 09:00", datetime(2026, 3, 1, 9, tzinfo=UTC)),
        (1772355600, datetime(2026, 3, 1, 9, tzinfo=UTC)),
        (1772355600.5, datetime(2026, 3, 1, 9, 0, 0, 500_000, tzinfo=UTC)),
        (1772355600000, datetime(2026, 3, 1, 9, tzinfo=UTC)),
        (None, None),
    ],
)
def test_times(tmp_path: Path, value: Any, expected: datetime | None) -> None:
    assert read(tmp_path, MESSAGE | {"timestamp": value}).turns["timestamp"].to_list() == [expected]


def test_times_without_a_zone_are_said_once(tmp_path: Path) -> None:
    naive = MESSAGE | {"timestamp": "2026-03-01T09:00:00"}
    issues = read(tmp_path, naive, naive).issues
    assert issues["where"].to_list() == ["log.jsonl: line 1: timestamp"]
    assert "UTC" in issues["action"][0]


def test_questions_cite_by_id_place_or_turn_id(tmp_path: Path) -> None:
    data = read(
        tmp_path,
        {"question": "Early?", "scope": "ann", "evidence": ["m1", "trip/2"], "answer": 3, "timestamp": 1772355600},
        message(0, session="trip", id="m1"),
        message(1, session="trip"),
        message(2, session="a b"),
        {"question": "Late?", "scope": "ann", "evidence": ["ann/a%20b/1", "a b/1", "a%20b/1"], "type": "single"},
        {"question": "None?", "scope": "ann", "abstention": True, "query_id": "x/1", "evidence_sessions": ["a b"]},
    )
    columns, turns = (
        ["query_id", "answer", "question_type", "evidence", "evidence_sessions", "abstention"],
        data.turns["turn_id"],
    )
    assert data.questions.select(columns).rows() == [
        ("ann/q0", "3", "unspecified", ["ann/m1", turns[1]], ["ann/trip"], False),
        ("ann/q1", None, "single", [turns[2]], ["ann/a%20b"], False),
        ("x/1", None, "unspecified", [], ["ann/a%20b"], True),
    ]
    assert data.questions["timestamp"][0] == datetime(2026, 3, 1, 9, tzinfo=UTC)


ASKED = {"question": "?", "scope": "ann"}
BAD_LINES = {
    "a list": ("[1]", "found a list of 1, expected an object"),
    "no scope": ({"sender": "A", "text": "x"}, "scope: found nothing (the field is missing)"),
    "blank scope": (message(scope=" "), "scope: found ' ' (a string), expected a name"),
    "text is null": (message(text=None), "text: found null, expected a string"),
    "nobody speaks": ({"scope": "a", "text": "x"}, "sender: found neither a sender nor a role"),
    "bad time": (message() | {"timestamp": "yesterday"}, "timestamp: found 'yesterday' (a string)"),
    "time is true": (message() | {"timestamp": True}, "timestamp: found true"),
    "time far off": (message() | {"timestamp": 10**30}, "timestamp: found"),
    "not a number": ('{"scope": "a", "sender": "A", "text": NaN}', "found JSON that cannot be read: NaN"),
    "NUL": (message(text="a\x00b"), "text: found a NUL character at 1"),
    "lone surrogate": ('{"scope": "a", "sender": "A", "text": "\\ud83d!"}', "text: found a lone surrogate"),
    "same id": (message(1, id="m"), "id: found 'm' again in scope 'ann' (first on line 1)"),
    "truncated": ('{"scope": "ann", "te', "found broken JSON at column 18: Unterminated string"),
    "late header": ({"memlab": {}}, "memlab: found a header"),
    "unknown evidence": (ASKED | {"evidence": ["m", "m9"]}, "evidence[1]: found 'm9'"),
    "evidence is text": (ASKED | {"evidence": "m"}, "evidence: found 'm' (a string)"),
    "unknown session": (ASKED | {"evidence_sessions": ["s9"]}, "evidence_sessions[0]:"),
    "unknown scope": ({"question": "?", "scope": "bob"}, "scope: found 'bob', which has no messages"),
    "answer is true": (ASKED | {"answer": True}, "answer: found true"),
    "abstention is 1": (ASKED | {"abstention": 1}, "abstention: found 1 (a number)"),
    "stale evidence": (ASKED | {"evidence": ["m"], "stale": ["m"]}, "stale: found 'ann/m'"),
    "deep": ("[" * 100_000, "found JSON that cannot be read: nested"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_named_or_set_aside(tmp_path: Path, case: str) -> None:
    line, reason = BAD_LINES[case]
    path = write(tmp_path, message(id="m"), line, message(1))
    with pytest.raises(DataError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: line 2: {reason}")
    assert 'on_error="quarantine"' in str(error.value)

    data = load(path, on_error="quarantine", quarantine_dir=tmp_path / "side")
    assert data.turns.height == 2
    assert data.issues.select("action").rows() == [("quarantined",)]
    assert data.issues["where"][0] == "log.jsonl: line 2"
    held = [json.loads(row) for row in (tmp_path / "side/log.jsonl.quarantine.jsonl").read_text().splitlines()]
    assert [h["raw"] for h in held] == [json.loads(line) if case == "lone surrogate" else line]
    assert reason in held[0]["reason"]


def test_same_query_id(tmp_path: Path) -> None:
    question = {"question": "?", "scope": "ann", "query_id": "q"}
    with pytest.raises(DataError, match=r"line 3: query_id: found 'q' again \(first on line 2\)"):
        read(tmp_path, MESSAGE, question, question)


def test_bytes_that_are_not_utf8_are_named_and_kept(tmp_path: Path) -> None:
    path = write(tmp_path, MESSAGE)
    path.write_bytes(path.read_bytes() + b'{"scope": "ann", "sender": "Ann", "text": "\xff"}\n')
    with pytest.raises(DataError, match="line 2: found a byte that is not UTF-8"):
        load(path)
    load(path, on_error="quarantine", quarantine_dir=tmp_path)
    raw = json.loads((tmp_path / "log.jsonl.quarantine.jsonl").read_text())["raw"]
    assert raw.encode("utf-8", "surrogateescape") == path.read_bytes().splitlines()[1]


def test_quarantining_twice_repeats_nothing_and_forgets_nothing(tmp_path: Path) -> None:
    side = tmp_path / "log.jsonl.quarantine.jsonl"
    for text in (3, 3, 4):
        read(tmp_path, MESSAGE, MESSAGE | {"text": text}, on_error="quarantine", quarantine_dir=tmp_path)
    assert [json.loads(row)["raw"]["text"] for row in side.read_text().splitlines()] == [3, 4]


def test_byte_order_mark_crlf_and_blank_lines_are_accepted(tmp_path: Path) -> None:
    path = write(tmp_path, message(0), "", message(1), end="\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path).turns.height == 2


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=3
    )
)
@settings(max_examples=30, deadline=None)
def test_any_names_make_ids_that_can_be_undone(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    names = [n for n in names if n.strip()] or ["'; --"]
    records = [message(i, scope=name, session=f"{name}/%", id=name) for i, name in enumerate(dict.fromkeys(names))]
    asked = [{"question": "?", "scope": name, "evidence": [name]} for name in dict.fromkeys(names)]
    data = read(tmp_path_factory.mktemp("ids"), *records, *asked)
    for turn_id, session_id, scope in data.turns.select("turn_id", "session_id", "scope").iter_rows():
        assert turn_id.count("/") == session_id.count("/") == 1
        assert decode_id_part(turn_id.partition("/")[2]) == decode_id_part(scope)
        assert [decode_id_part(p) for p in session_id.split("/")] == [
            decode_id_part(scope),
            f"{decode_id_part(scope)}/%",
        ]
    assert data.questions["evidence"].list.first().to_list() == data.turns["turn_id"].to_list()


def many(grouped: bool, scopes: int = 12, size: int = 7) -> list[dict[str, Any]]:
    rows = [message(3 * i, scope=f"u{s}", session=f"s{i // 3}", id=f"{i}") for s in range(scopes) for i in range(size)]
    rows += [{"question": "?", "scope": f"u{s}", "evidence": ["2", "5"]} for s in range(scopes)]
    return sorted(rows, key=lambda r: int(r["scope"][1:])) if grouped else rows


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("batch_turns", [1, 10, 1_000])
def test_streamed_batches_of_whole_scopes_are_the_loaded_whole(tmp_path: Path, grouped: bool, batch_turns: int) -> None:
    path = write(tmp_path, {"memlab": {"format": "chatlog", "grouped": grouped, "seed": 0}}, *many(grouped))
    parts = list(stream(path, batch_turns=batch_turns))
    assert len(parts) == {1: 12, 10: 6, 1_000: 1}[batch_turns]
    assert len({s for p in parts for s in p.scopes}) == sum(len(p.scopes) for p in parts) == 12
    joined, whole = concat(parts), load(path)
    assert whole.format == "chatlog"
    for table in ("turns", "sessions", "questions", "issues"):
        assert getattr(joined, table).equals(getattr(whole, table))
    assert joined.fingerprint() == whole.fingerprint()


def test_a_question_before_the_messages_of_its_scope_stays_with_them(tmp_path: Path) -> None:
    rows = [r for s in range(3) for r in ({"question": "?", "scope": f"u{s}"}, message(scope=f"u{s}"))]
    parts = list(stream(write(tmp_path, {"memlab": {"grouped": True}}, *rows), batch_turns=1))
    assert [p.questions["query_id"].to_list() for p in parts] == [["u0/q0"], ["u1/q0"], ["u2/q0"]]


def test_a_broken_promise_of_grouping_is_an_error(tmp_path: Path) -> None:
    rows = [{"memlab": {"grouped": True}}, message(scope="a"), message(scope="b"), message(scope="a")]
    with pytest.raises(DataError, match="line 4: scope: found 'a' again after another scope"):
        read(tmp_path, *rows)


def test_issues_behind_the_last_message_are_in_the_last_batch(tmp_path: Path) -> None:
    rows = [{"memlab": {"grouped": True}}, message(scope="a"), message(scope="b"), {"question": "?", "scope": "c"}]
    parts = list(stream(write(tmp_path, *rows), batch_turns=1, on_error="quarantine", quarantine_dir=tmp_path))
    assert [p.issues.height for p in parts] == [0, 1]


def test_nothing_usable_is_an_error_even_in_quarantine(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no usable message \(1 issues\)"):
        read(tmp_path, MESSAGE | {"text": 1}, on_error="quarantine", quarantine_dir=tmp_path)


def test_the_gap_that_ends_a_session_can_be_chosen(tmp_path: Path) -> None:
    lines = [
        {"scope": "a", "sender": "Ann", "text": f"message {i}", "timestamp": f"2026-03-01T09:{20 * i:02}:00Z"}
        for i in range(3)
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert load(path).sessions.height == 1
    assert load(path, gap=timedelta(minutes=15)).sessions.height == 3
