"""Chunks of plain messages are read in columns: with the tables, the issues and the errors of the reader of records."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.datasets import chatlog, chatlog_messages, load, record_sources, stream
from memlab.datasets.chatlog import LineChunk, RecordChunk
from memlab.datasets.message_columns import tabulate_json_lines
from memlab.errors import DataError
from memlab.records import Dataset, concat
from memlab.text.quotations import MARKS, find_quotations

PLAIN = {"scope": "ann", "sender": "Ann", "text": "Hello there"}
FIELDS = frozenset(
    (*PLAIN, "timestamp", "id", "session", "role", "caption", "forwarded_from", "quoted")
)
NAMES = st.sampled_from(["ann", "bob", "Claude", "assistant", "a/b %", "~1", "Zoë"])
TEXTS = st.sampled_from(
    [
        "Hello there",
        "",
        "> I live in Narvik.",
        "Bob: I live in Hamar now.",
        'She said "I live in Bergen today" once.',
        "<think>Where?</think>In Oslo.",
        "◁think▷so◁/think▷ Yes",
        "---- Forwarded message ----\nI am in Rome",
        "two\nlines 🔥",
    ]
)
ODD = st.sampled_from([None, True, 1, 7.5, "", " ", "\x1c", "a\0b", "\ud83d", [], ["x"], [1], {}])
TIMES = st.sampled_from(
    [
        "2026-03-01T09:00:00Z",
        "2026-03-01T10:00:00.25+01:00",
        "2026-03-01 09:30",
        "2026-03-01",
        "2/1/2026, 10:00",
        "20260301T090000Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T00:00:00Z",
        1772355600,
        1772355600.123456,
        1772355600123,
        1772355600123456,
        1772355600123456789,
        -5,
        1e300,
        "soon",
    ]
)
ROLES = st.sampled_from(["user", "assistant", "Human", "system", "bard of the court", "tool"])
OTHERS = st.sampled_from(
    ["one two three", {"note": "call her back soon"}, [1, {"a": "b"}], 3, 2.5, None, "2026-03-01"]
)
KINDS = {
    "scope": NAMES,
    "sender": NAMES,
    "text": TEXTS,
    "role": ROLES,
    "timestamp": TIMES,
    "id": st.integers(0, 5) | NAMES,
    "session": NAMES,
    "caption": TEXTS,
    "forwarded_from": NAMES,
    "quoted": st.just("there") | st.just(["Hello", "there"]),
    "aside": OTHERS,
    "edited": OTHERS,
}


@st.composite
def logs(draw: st.DrawFn, *, extra: bool = True) -> list[dict[str, Any]]:
    """Draw messages that share their fields, as those of a tool do, some of which are odd."""
    shared = draw(st.sets(st.sampled_from(sorted(KINDS)), max_size=6))
    forms = {key: draw(st.lists(KINDS[key], min_size=1, max_size=2)) for key in sorted(shared)}
    if not extra:
        forms = {key: form for key, form in forms.items() if key in FIELDS}
    records = []
    for _ in range(draw(st.integers(1, 6))):
        record = dict(PLAIN)
        for key, form in forms.items():
            record[key] = draw(st.sampled_from(form))
        if draw(st.integers(0, 9)) == 0:
            record[draw(st.sampled_from(sorted(KINDS)))] = draw(ODD)
        if draw(st.integers(0, 19)) == 0:
            del record[draw(st.sampled_from(sorted(PLAIN)))]
        records.append(record)
    return records


LINES = st.sampled_from(
    [
        "",
        "{}",
        "[1]",
        '{"scope": "ann", "sender": "Ann", "text": "a"}{"scope": "ann"}',
        '{"scope": "ann", "sender": "Ann", "text": "a", "text": "b"}',
        '{"scope": "ann", "sender": "Ann", "text": "a", "x": NaN}',
        '{"scope": "ann", "sender": "Ann", "text": "a", "x": 01}',
        '{"scope": "ann", "sender": "Ann", "text": "a\tb"}',
        '{"scope": "ann", "sender": "Ann", "text": "a", "x": ' + "1" * 5_000 + "}",
        '{"scope": "ann", "sender": "Ann", "text": "a", "n": ' + "[" * 60 + "]" * 60 + "}",
        '{"scope": "ann", "sender": "Ann", "te\\u0078t": "a"}\r',
        '{"scope": "ann", "sender": "Ann", "text": "\udcff"}',
        '{"question": "Where?", "scope": "ann"}',
        '{"memlab": {}}',
    ]
)


def outcome(read: Any) -> Any:
    """Give the tables and the name of what is read, or the error."""
    try:
        data: Dataset = read()
    except DataError as error:
        return str(error)
    tables = (data.turns, data.sessions, data.questions, data.issues)
    return [(table.schema, table.rows()) for table in tables]


def batches(path: Path) -> list[int]:
    """Give the sizes of the batches until the first error."""
    sizes = []
    with contextlib.suppress(DataError):
        for part in stream(path, format="chatlog", batch_turns=2):
            sizes.append(part.turns.height)  # noqa: PERF401
    return sizes


def in_columns_always(patch: pytest.MonkeyPatch) -> None:
    """Let chunks be read in columns however small they are."""
    patch.setattr(chatlog, "_SHORT", 0)
    patch.setattr(chatlog, "_FEW", 0)


def record_by_record(patch: pytest.MonkeyPatch) -> None:
    """Let no chunk be read in columns."""
    for kind in (LineChunk, RecordChunk):
        patch.setattr(kind, "tabulate_if_many_and_plain", lambda chunk: None)


@given(
    logs(),
    st.lists(st.tuples(st.integers(0, 6), LINES), max_size=1),
    st.sampled_from(["raise", "quarantine"]),
    st.sampled_from([None, "Europe/Oslo"]),
    st.sampled_from([1, 200, 1 << 22]),
    st.sampled_from(["", '{"memlab": {"grouped": true}}\n']),
)
@pytest.mark.slow
def test_columns_give_what_records_give(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[dict[str, Any]],
    added: list[tuple[int, str]],
    on_error: str,
    tz: str | None,
    chunk: int,
    header: str,
) -> None:
    folder = tmp_path_factory.mktemp("log")
    path = folder / "log.jsonl"
    lines = [json.dumps(record) for record in records]
    for place, line in added:
        lines.insert(place, line)
    text = header + "".join(f"{line}\n" for line in lines)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    options: dict[str, Any] = {"on_error": on_error, "tz": tz, "batch_turns": 2}
    options |= {"person": ("Zoë", "Nobody"), "assistant": "bob"}

    def read() -> Dataset:
        return load(path, format="chatlog", quarantine_dir=folder / "side", **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_sources, "_CHUNK", chunk)
        in_columns_always(patch)
        in_columns = outcome(read)
        record_by_record(patch)
        assert outcome(read) == in_columns


@given(logs(extra=False), st.sampled_from([1, 3, 10]), st.booleans())
@pytest.mark.slow
def test_columns_of_records_in_memory_give_what_records_give(
    records: list[dict[str, Any]], size: int, dated: bool
) -> None:
    oslo = timezone(timedelta(hours=1))
    times = [datetime(2026, 3, 1, 9, n, tzinfo=(UTC, oslo)[n % 2]) for n in range(len(records))]
    if dated:
        records = [
            record | {"timestamp": time} for record, time in zip(records, times, strict=True)
        ]

    def read() -> Dataset:
        chunks = chatlog.records_in_chunks(records, chunk_size=size)
        return concat(
            chatlog.make_dataset_batches(record_sources.Source(Path("log")), chunks, batch_turns=9)
        )

    with pytest.MonkeyPatch.context() as patch:
        in_columns_always(patch)
        in_columns = outcome(read)
        record_by_record(patch)
        assert outcome(read) == in_columns


BOB = {"scope": "ann", "sender": "Bob", "text": "Hi Ann"}
REPLY = {"sender": "assistant", "role": "assistant"}
LOGS: dict[str, list[dict[str, Any]]] = {
    "an id again": [PLAIN | {"id": "m1"}, BOB | {"id": "m2"}, PLAIN | {"id": "m1"}],
    "an id in two scopes": [PLAIN | {"id": "m1"}, PLAIN | {"id": "m1", "scope": "bob"}],
    "words of who spoke": [BOB, PLAIN | {"text": "Bob: I live in Hamar now."}],
    "words of who speaks later": [PLAIN | {"text": "Bob: I live in Hamar now."}, BOB],
    "given quotations": [PLAIN | {"quoted": ["Hello"]}, PLAIN | {"quoted": []}, PLAIN],
    "thoughts": [
        PLAIN | REPLY | {"text": "<think>a</think>x\n<think>b</think>\n<think>c</think>"},
        PLAIN | REPLY | {"text": "no < thought"},
        PLAIN | {"text": "<think>of a person</think>"},
    ],
    "unread before a thought": [
        PLAIN | {"aside": "one two three"},
        PLAIN | REPLY | {"text": "<think>a</think>x", "aside": "four five six"},
    ],
    "a thought after what is unread": [
        PLAIN | REPLY,
        PLAIN | {"aside": "one two three"},
        PLAIN | REPLY | {"text": "<think>a</think>x"},
    ],
    "names of assistants": [PLAIN | {"sender": name} for name in ("Claude", "Ann", "Claude", "Ai")],
    "no zone": [PLAIN, PLAIN | {"timestamp": "2026-03-01 09:00"}, BOB],
    "scopes that come back": [PLAIN, PLAIN | {"scope": "bob"}, BOB, PLAIN | {"scope": "cat"}],
    "scopes in order": [PLAIN | {"scope": scope} for scope in "aabccd"],
}


@pytest.mark.parametrize("chunk", [1, 150, 1 << 22])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("log", LOGS)
def test_what_is_counted_over_chunks_is_what_records_give(
    tmp_path: Path, log: str, grouped: bool, chunk: int
) -> None:
    records = [PLAIN | {"id": f"n{n}"} | record for n, record in enumerate(LOGS[log])]
    header = [{"memlab": {"grouped": True}}] if grouped else []
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (*header, *records)))
    plain: list[bool] = []

    def read() -> Dataset:
        side = tmp_path / "side"
        return load(
            path, format="chatlog", on_error="quarantine", quarantine_dir=side, batch_turns=2
        )

    def tabulate(chunk: LineChunk) -> Any:
        table = tabulate_json_lines(chunk.lines, chatlog_messages.MESSAGE_FIELDS)
        plain.append(table is not None)
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_sources, "_CHUNK", chunk)
        patch.setattr(LineChunk, "tabulate_if_many_and_plain", tabulate)
        in_columns, sizes = outcome(read), batches(path)
        record_by_record(patch)
        assert outcome(read) == in_columns
        assert batches(path) == sizes
    assert plain.count(False) <= 2 * len(header)
    assert any(plain)


def test_plain_lines_are_read_in_columns() -> None:
    lines = [json.dumps(PLAIN | {"id": n, "timestamp": 1772355600 + n}) for n in range(3)]
    table = tabulate_json_lines("\n".join(lines).encode(), FIELDS)
    assert table is not None
    assert table.messages["id"].to_list() == ["0", "1", "2"]
    assert table.messages["timestamp"].dt.second().to_list() == [0, 1, 2]
    assert table.unread is None
    assert tabulate_json_lines("\n".join([*lines, "{}"]).encode(), FIELDS) is None


@pytest.mark.parametrize(
    "asides", [[1, 2.5], ["1", "a b c d"], [{"a": 1}, {"b": "x y z"}], [1, "x"]]
)
def test_columns_that_the_first_line_has_not_are_read_with_their_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asides: list[Any]
) -> None:
    rows = [PLAIN | {"id": n, "aside": asides[n // 20]} for n in range(40)]
    rows[30]["caption"] = "2026-03-01"  # which would be a time, were it guessed
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    in_columns_always(monkeypatch)
    in_columns = outcome(lambda: load(path, format="chatlog"))
    is_table = tabulate_json_lines(path.read_bytes(), FIELDS) is not None
    assert is_table == (asides != [1, "x"]), "a type that changes is left to the reader of records"
    record_by_record(monkeypatch)
    assert outcome(lambda: load(path, format="chatlog")) == in_columns


@given(st.text("aI>:\"“”„«»-' .\nBob", max_size=60))
def test_every_quotation_has_a_mark(text: str) -> None:
    if not any(mark in text for mark in [*MARKS.partition("]")[0][1:], "---"]):
        assert find_quotations(text, speaker="Ann", people={"bob"}) == []
