"""Finding the tool of an export, archives that mean harm, tables, scopes, and files that are broken."""

from __future__ import annotations

import json
import zipfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.datasets import detect, stream
from memlab.datasets.importers import IMPORTERS

EXPORTS = Path(__file__).parents[1] / "exports"
GOLDEN = Path(__file__).parents[1] / "golden"
SHARED = Path(__file__).parents[4] / "shared" / "data"
ROUNDS = 50  # mutations of each sample
SAMPLES = {
    "chatgpt/conversations.json": ("chatgpt", 4),
    "claude_ai/conversations.json": ("claude_ai", 5),
    "claude_code/5e55a1b2.jsonl": ("claude_code", 3),
    "discord.json": ("discord", 5),
    "openai_messages.jsonl": ("openai_messages", 4),
    "sharegpt.json": ("sharegpt", 6),
    "slack/general/2026-03-01.json": ("slack", 3),
    "telegram/result.json": ("telegram", 4),
    "whatsapp/android_de_DE.txt": ("whatsapp", 4),
    "whatsapp/ios_en_US/_chat.txt": ("whatsapp", 4),
}
ROWS = [
    {"scope": "a", "sender": "Ann", "text": "hi", "timestamp": "1772355600"},
    {"scope": "a", "sender": "Claude", "text": "hello", "timestamp": "1772355601000", "caption": None},
]


def packed(file: Path, **entries: bytes | str) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), content)
    return file


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_themselves_and_nothing_else(name: str) -> None:
    kind, turns = SAMPLES[name]
    file = EXPORTS / name
    assert detect(file) == kind
    data = memlab.load(file)
    assert (data.format, data.turns.height) == (kind, turns)
    for other in IMPORTERS.keys() - {kind}:
        with pytest.raises(memlab.MemlabError):
            memlab.load(file, format=other)


@pytest.mark.parametrize("name", ["chatgpt", "claude_ai", "claude_code", "telegram", "slack", "whatsapp/ios_en_US"])
def test_folders_and_archives_are_read_as_their_files(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in (EXPORTS / name).rglob("*"):
            archive.write(file, f"top/{file.relative_to(EXPORTS / name)}")
        archive.writestr("top/photos/cat.jpg", b"\xff\xd8")
        archive.writestr("__MACOSX/top/._x.json", b"\x00")
    turns = memlab.load(EXPORTS / name).turns
    assert memlab.load(tmp_path / "export.zip").turns.equals(turns)
    assert turns.height > 2


@pytest.mark.shared_data
@pytest.mark.skipif(not SHARED.is_dir(), reason="no research conversations beside the project")
def test_benchmarks_are_no_exports() -> None:
    for file in SHARED.rglob("*.json*"):
        if not {"exports", "canard"} & set(file.parts):
            assert detect(file) not in IMPORTERS, file


@pytest.mark.parametrize("file", sorted(Path("data").rglob("*.jsonl")), ids=str)
def test_chat_logs_are_no_exports(file: Path) -> None:
    with suppress(memlab.DataError):
        assert detect(file) not in IMPORTERS


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("messages.html", '<!DOCTYPE html><html><head><title>Exported Data</title><div class="history">', "Telegram"),
        ("chat.html", "<html><title>ChatGPT Data Export</title>", "ChatGPT"),
        ("general.html", '<!DOCTYPE html><html><div class="chatlog__message">', "DiscordChatExporter"),
        ("general.csv", "AuthorID,Author,Date,Content,Attachments,Reactions\n1,a,b,c,,\n", "DiscordChatExporter"),
        ("message_1.json", '{"participants": [], "messages": [{"sender_name": "A", "timestamp_ms": 1}]}', "Messenger"),
        ("msgstore.db", "SQLite format 3\0", "SQLite"),
        ("MyActivity.json", '[{"header": "Gemini Apps", "titleUrl": "x", "products": ["Gemini Apps"]}]', "Gemini"),
        ("x.pdf", "%PDF-1.7", "PDF"),
    ],
)
def test_what_is_known_and_not_read_is_refused_by_name(tmp_path: Path, name: str, content: str, what: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(memlab.DataError, match=f"looks like .*{what}"):
        memlab.load(tmp_path / name)


def test_exports_of_two_tools_are_not_mixed(tmp_path: Path) -> None:
    chats = {kind: (EXPORTS / kind / "conversations.json").read_text() for kind in ("chatgpt", "claude_ai")}
    both = packed(tmp_path / "both.zip", a_json=chats["chatgpt"], b_json=chats["claude_ai"])
    with pytest.raises(memlab.DataError, match=r"several tools: chatgpt .*claude_ai"):
        memlab.load(both)
    assert memlab.load(both, format="chatgpt").turns.height == 4


def test_archives_that_mean_harm(tmp_path: Path) -> None:
    text = (EXPORTS / "discord.json").read_text()
    inside = memlab.load(packed(tmp_path / "a.zip", **{"..__..__etc__discord_json": text, "x_json": "[]"}))
    assert inside.turns.height == 5
    assert {file.name for file in tmp_path.rglob("*")} == {"a.zip"}  # nothing is unpacked
    with pytest.raises(memlab.DataError, match="no chat does"):
        memlab.load(packed(tmp_path / "bomb.zip", x_json=b"[" + b" " * (80 << 20)))
    whole = (tmp_path / "a.zip").read_bytes()
    rng = Random(0)
    for _ in range(60):
        broken = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            broken[rng.randrange(4, len(broken))] = rng.randrange(256)
        (tmp_path / "b.zip").write_bytes(broken[: rng.choice((len(broken), rng.randrange(len(broken))))])
        with suppress(memlab.MemlabError):
            memlab.load(tmp_path / "b.zip")
    with pytest.raises(memlab.DataError, match="ZIP archive without a chat"):
        memlab.load(packed(tmp_path / "none.zip", x_json='{"a": 1}'))
    with zipfile.ZipFile(tmp_path / "far.zip", "w") as archive:
        archive.writestr("x.json", text)
        archive.infolist()[0].header_offset = 2**64 - 10
    with pytest.raises(memlab.DataError, match="downloaded whole"):
        memlab.load(tmp_path / "far.zip")


def test_a_table_of_more_rows_than_its_bytes_can_hold_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(8_000_000, np.int32)), pa.array(["a"]))
    pq.write_table(pa.table(dict.fromkeys(("scope", "sender", "text"), one)), tmp_path / "log.parquet")
    assert (tmp_path / "log.parquet").stat().st_size < 100_000
    with pytest.raises(memlab.DataError, match="holds 8,000,000 rows"):
        memlab.load(tmp_path / "log.parquet")


@pytest.mark.parametrize("name", ["log.json", "log.csv", "semicolon.csv", "log.parquet", "log.jsonl"])
def test_tables_of_chat_log_records(tmp_path: Path, name: str) -> None:
    file, frame = tmp_path / name, pl.DataFrame(ROWS)
    if name.endswith("csv"):
        frame.write_csv(file, separator=";" if name.startswith("semi") else ",")
    elif name.endswith("parquet"):
        frame.write_parquet(file)
    else:
        text = json.dumps(ROWS) if name.endswith("json") else "\n".join(json.dumps(row) for row in ROWS)
        file.write_text(text)
    data = memlab.load(file)
    assert data.turns.select("speaker", "role", "text").rows() == [
        ("Ann", "user", "hi"),
        ("Claude", "assistant", "hello"),
    ]
    assert str(data.turns["timestamp"][1]) == "2026-03-01 09:00:01+00:00"
    assert data.format == ("chatlog" if name == "log.jsonl" else "table")


def test_times_in_digits_and_without_a_zone(tmp_path: Path) -> None:
    def years(*times: Any, **options: Any) -> list[str]:
        rows = [{"scope": "a", "sender": "A", "text": "x", "timestamp": time} for time in times]
        (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
        return [str(time) for time in memlab.load(tmp_path / "log.jsonl", **options).turns["timestamp"]]

    assert years("1701011221530", "1772355600", 1772355600.5)[0].startswith("2023-11-26 15:07:01.53")
    assert years("2026-03-01T10:00", tz="Europe/Oslo") == ["2026-03-01 09:00:00+00:00"]
    for wrong in ("20260301120000", "12", "177235560012345678"):
        with pytest.raises(memlab.DataError, match="seconds or milliseconds"):
            years(wrong)
    with pytest.raises(memlab.DataError, match="time zone"):
        years(tz="Europe/Nowhere")


def test_a_scope_is_named_or_chosen(tmp_path: Path) -> None:
    one = memlab.load(EXPORTS / "chatgpt", scope="ann")
    assert one.scopes == ["ann"]
    chats = [{"name": name, "type": "personal_chat", "id": i, "messages": [
        {"id": 1, "type": "message", "from": name, "text": "hi", "date_unixtime": "1772355600"},
        {"id": 2, "type": "service", "action": "x"}]} for i, name in enumerate(("Ann", "Bo"))]  # fmt: skip
    (tmp_path / "result.json").write_text(json.dumps({"personal_information": {}, "chats": {"list": chats}}))
    chosen = memlab.load(tmp_path / "result.json", scope="Bo")
    assert (chosen.scopes, chosen.issues["found"].to_list()) == (["Bo"], ["1 system message"])
    with pytest.raises(memlab.DataError, match="holds 2 chats or people, none is 'Cy': Ann, Bo"):
        memlab.load(tmp_path / "result.json", scope="Cy")
    (tmp_path / "log.jsonl").write_text(json.dumps({"scope": "Ann B", "sender": "Ann", "text": "hi"}))
    for name in ("Ann B", "Ann%20B"):
        assert memlab.load(tmp_path / "log.jsonl", scope=name).scopes == ["Ann%20B"]
    with pytest.raises(memlab.DataError, match="no scope 'Cy'"):
        memlab.load(tmp_path / "log.jsonl", scope="Cy")
    pl.DataFrame([{"scope": n, "sender": "a", "text": "hi"} for n in (5, 6)]).write_parquet(tmp_path / "log.parquet")
    assert memlab.load(tmp_path / "log.parquet", scope="5").turns.height == 1


def test_an_export_goes_on_the_memory_that_is_there(tmp_path: Path) -> None:
    store = memlab.MemoryStore.open(tmp_path / "store")
    store.ingest(memlab.load(EXPORTS / "chatgpt", name="mine"))
    for _ in range(2):
        store.ingest(stream(EXPORTS / "claude_ai", into=lambda scopes: store.dataset("mine", scopes=scopes)))
        assert store.dataset("mine").turns.height == 9
    assert store.dataset("mine").turns["role"].value_counts().height == 2


def test_what_no_text_can_hold_is_replaced_and_said(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"messages": [{"role": "user", "content": "a\\ud83d b\\u0000"}]}')
    data = memlab.load(tmp_path / "x.jsonl")
    assert data.turns["text"][0] == "a\ufffd b\ufffd"
    assert "unreadable character" in data.issues["found"][0]


def test_search_says_where_nothing_matches(caplog: pytest.LogCaptureFixture) -> None:
    data = memlab.load(EXPORTS / "claude_ai")
    found = memlab.search(data, "When do we sign the lease?", k=3, pipeline="bm25")
    assert found.columns == ["rank", "score", "time", "speaker", "text", "session_id", "turn_id"]
    assert found.row(0, named=True)["text"] == "We sign the lease on Friday."
    assert memlab.search(data, "xyzzy", pipeline="bm25").is_empty()
    assert "no message of me matches" in caplog.text
    with pytest.raises(memlab.DataError, match="no word"):
        memlab.search(data, "???")


def mutated(rng: Random, content: bytes) -> bytes:
    """Cut, double, swap or change pieces of a file, or its JSON values."""
    broken = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(len(broken)), rng.randint(1, 40)
        piece = rng.choice(
            (b"null", b"[]", b"{}", b'"x"', b"-1", b"1e400", b"\xff", b"\\ud800", b"", bytes(broken[:size]))
        )
        broken[at : at + rng.choice((0, size))] = piece
        broken = broken or bytearray(b" ")
    return bytes(broken)


def replaced(rng: Random, value: Any) -> Any:
    """Put something else in the place of one value in JSON."""
    odd: list[Any] = [
        None,
        "",
        "x",
        0,
        -1,
        1e300,
        True,
        [],
        {},
        [[]],
        [None],
        {"type": "text"},
        "\ud800",
        10**30,
        ["a", 1],
        "1",
    ]
    inner = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    if not inner or rng.random() < 0.15:
        return rng.choice(odd)
    key = rng.choice(list(inner))
    copy = value.copy()
    copy[key] = replaced(rng, value[key])
    return copy


@pytest.mark.parametrize("name", SAMPLES)
def test_broken_files_raise_only_what_is_said(tmp_path: Path, name: str) -> None:
    kind, _ = SAMPLES[name]
    content, rng = (EXPORTS / name).read_bytes(), Random(name)
    for i in range(ROUNDS):
        if name.endswith(".txt") or i % 2:
            broken = mutated(rng, content)
        elif name.endswith("jsonl"):
            lines = [json.loads(line) for line in content.splitlines()]
            broken = "\n".join(json.dumps(replaced(rng, line)) for line in lines).encode()
        else:
            broken = json.dumps(replaced(rng, json.loads(content))).encode()
        file = tmp_path / Path(name).name
        file.write_bytes(broken)
        for format in (None, kind):
            with suppress(memlab.MemlabError):
                memlab.load(file, format=format)


def test_one_day_of_slack_finds_the_names_above_it() -> None:
    data = memlab.load(GOLDEN / "slack/export/general/2026-03-01.json")
    assert (data.format, data.turns["speaker"][0]) == ("slack", "Ann Moe")


def test_times_of_an_old_telegram_are_of_the_zone_that_is_named(tmp_path: Path) -> None:
    message = {"id": 1, "type": "message", "date": "2026-03-01T10:00:00", "from": "Ann", "text": "old"}
    chat = {"name": "B", "type": "personal_chat", "id": 1, "messages": [message]}
    (tmp_path / "result.json").write_text(json.dumps(chat))
    assert str(memlab.load(tmp_path / "result.json", tz="Europe/Oslo").turns["timestamp"][0])[:13] == "2026-03-01 09"


def test_memories_without_messages_are_refused(tmp_path: Path) -> None:
    dump = {"results": [{"id": "m", "memory": "Likes tea", "hash": "h", "user_id": "ann"}]}
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    with pytest.raises(memlab.DataError, match=r"\(mem0\); left out: 1 fact"):
        memlab.load(tmp_path / "dump.json")


def test_a_bad_conversation_is_set_aside(tmp_path: Path) -> None:
    export = json.loads((EXPORTS / "chatgpt" / "conversations.json").read_text())
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([*export, {"title": "x", "create_time": 1, "mapping": []}]))
    with pytest.raises(memlab.DataError, match=r"conversation 2.*mapping"):
        memlab.load(file)
    data = memlab.load(file, on_error="quarantine", quarantine_dir=tmp_path / "aside")
    assert data.turns.height == 4
    assert "quarantined" in data.issues["action"].to_list()
