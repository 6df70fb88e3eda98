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
from memlab.records import concat
from memlab.registry import formats

EXPORTS = Path(__file__).parents[1] / "exports"
GOLDEN = Path(__file__).parents[1] / "golden"
SHARED = Path(__file__).parents[4] / "shared" / "data"


def packed(file: Path, entries: dict[str, Any]) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file


@pytest.mark.parametrize(
    "name", ["chatgpt", "claude_ai", "claude_code", "telegram", "slack", "whatsapp/ios_en_US"]
)
def test_folders_and_archives_are_read_as_their_files(tmp_path: Path, name: str) -> None:
    files = [file for file in (EXPORTS / name).rglob("*") if file.is_file()]
    inside = {f"top/{file.relative_to(EXPORTS / name)}": file.read_bytes() for file in files}
    others = {"top/photos/cat.jpg": b"\xff\xd8", "__MACOSX/top/._x.json": b"\x00"}
    turns = memlab.load(EXPORTS / name).turns
    assert memlab.load(packed(tmp_path / "export.zip", inside | others)).turns.equals(turns)
    assert turns.height > 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [Path("data"), pytest.param(SHARED, marks=pytest.mark.shared_data)],
    ids=["ours", "shared"],
)
def test_benchmarks_and_chat_logs_are_no_exports(folder: Path) -> None:
    for file in folder.rglob("*.json*"):
        if not {"exports", "cases", "canard", "memories"} & set(file.parts):
            with suppress(memlab.DataError):
                assert formats.describe(detect(file)).kind != "export", file


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        (
            "messages.html",
            '<!DOCTYPE html><html><head><title>Exported Data</title><div class="history">',
            "Telegram",
        ),
        (
            "general.html",
            '<!DOCTYPE html><html><div class="chatlog__message">',
            "DiscordChatExporter",
        ),
        (
            "general.csv",
            "AuthorID,Author,Date,Content,Attachments,Reactions\n1,a,b,c,,\n",
            "DiscordChatExporter",
        ),
        (
            "message_1.json",
            '{"participants": [], "messages": [{"sender_name": "A", "timestamp_ms": 1}]}',
            "Messenger",
        ),
        ("msgstore.db", "SQLite format 3\0", "SQLite"),
        (
            "irc.txt",
            "[2026-01-02 10:00:00] <ann> hello: you\n[2026-01-02 10:00:05] <bo> hi\n",
            "IRC",
        ),
        (
            "kakao.txt",
            "2026년 1월 2일 오후 9:41\n2026년 1월 2일 오후 9:41, Ann : hi\n",
            "KakaoTalk",
        ),
        (
            "guild.txt",
            "====================\nGuild: Server\n\n[2026-01-02 10:00] ann\nhi\n",
            "DiscordChatExporter",
        ),
        (
            "app.txt",
            "2024-01-02 10:00:00 - INFO: started\n2024-01-02 10:00:01 - root - ERROR: no: x\n",
            "log of a program",
        ),
        ("memories.json", '[{"conversations_memory": "x"}]', "Claude remembers"),
        (
            "manifest-1.json",
            '{"data_files": [{"category": "memories", "export_url": "x"}]}',
            "Claude's ZIPs",
        ),
        (
            "MyActivity.json",
            '[{"header": "Gemini Apps", "titleUrl": "x", "products": ["Gemini Apps"]}]',
            "Gemini",
        ),
    ],
)
def test_what_is_known_and_not_read_is_refused_by_name(
    tmp_path: Path, name: str, content: str, what: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(memlab.DataError, match=f"looks like .*{what}"):
        memlab.load(tmp_path / name)


def test_the_log_of_a_program_is_no_chat(tmp_path: Path) -> None:
    line = "2024-01-02 10:00:00{} db: opened\n"
    for form in (" - INFO:", " ERROR:", " - root - INFO - see"):
        (tmp_path / "app.txt").write_text("at noon\n" + line.format(form) * 3)
        with pytest.raises(memlab.DataError, match="none of the formats"):
            memlab.load(tmp_path / "app.txt")


def node(
    key: str, parent: str | None, role: str, at: float, *parts: Any, **more: Any
) -> dict[str, Any]:
    said = {
        "author": {"role": role},
        "create_time": at,
        "content": {"content_type": "multimodal_text", "parts": parts},
    }
    return {key: {"parent": parent, "message": said | more}}


DRAWN = {"content_type": "image_asset_pointer", "metadata": {"dalle": {"prompt": "a copper sink"}}}
MARKED = 'In \ue200entity\ue202["city","Oslo"]\ue201, see \ue200url\ue202the guide\ue202https://x.org\ue201.\ue200cite\ue202t0\ue201'
TREE = (
    node("a", None, "user", 9, "spoken")
    | node("b", "a", "assistant", 5, MARKED)
    | node("d", "c", "tool", 10, DRAWN)
)
STATE = 'The latest state of the widget is: {"report_message": {"content": {"parts": ["# Sinks"]}}}'
REPORT = (
    node("a", None, "user", 9, "q")
    | node("b", "a", "tool", 9e9, STATE)
    | node("c", "b", "user", 12, "so?")
)
JSON = {"content": {"content_type": "code", "text": "{}"}}
REPORT |= node("d", "c", "assistant", 13, **JSON) | node(
    "e", "d", "assistant", 14, recipient="canmore.create_textdoc"
)
CLAUDE = {
    "uuid": "a",
    "sender": "human",
    "text": "short",
    "attachments": [{"extracted_content": "pasted"}],
}
UNSHOWN = "See.\n```\nThis block is not supported on your current device yet.\n```\nOk?"
TYPED = {"type": "user_interjection", "message": {"content": "bigger"}}
DESIGNED = {
    "contentBlocks": [
        {"type": "text", "text": "Drawing."},
        TYPED,
        {"type": "text", "text": "Done."},
    ]
}
DESIGN = [{"uuid": "a", "role": "user", "content": {"content": "Draw", "authorAccountUuid": "p"}}]
DESIGN += [{"uuid": "b", "role": "assistant", "content": DESIGNED}]
CODE = {
    "sessionId": "s",
    "isSidechain": False,
    "parentUuid": None,
    "timestamp": "2026-03-01T10:00:00Z",
}
QUEUED = {"type": "queued_command", "commandMode": "prompt", "prompt": "and the docs"}
REFUSED = {"type": "tool_result", "content": "To tell you how to proceed, the user said:\nuse pnpm"}
TREE_OF_CODE = (
    ("a", None, "user", "q"),
    ("b", "a", "assistant", "[Request interrupted by user] is shown"),
    ("c", "b", "user", "taken back"),
    ("d", "c", "assistant", "to what was taken back"),
    ("e", "b", "user", '<teammate-message teammate_id="lead">task 3</teammate-message>'),
    ("f", "e", "user", "why <command-name>x</command-name>?"),
)
REWOUND = [
    CODE | {"uuid": own, "parentUuid": parent, "type": kind, "message": {"content": text}}
    for own, parent, kind, text in TREE_OF_CODE
]
SHARED = {"attachments": [{"is_share": True, "author_name": "Bo", "text": "We move"}]}
RUN = {"run_type": "chain", "inputs": {"a": 1}, "outputs": {"b": 2}, "trace_id": "t"}
CALL = {
    "run_type": "llm",
    "inputs": {"input": "q"},
    "outputs": {"output": "a"},
    "trace_id": "t",
    "parent_run_id": "r",
}
TRACE = {
    "id": "t",
    "project_id": "p",
    "session_id": "s",
    "timestamp": "2026-07-01 10:00:00",
    "output": "a",
}
PAIR = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
BEGUN = {
    "id": "r",
    "trace_id": "r",
    "inputs": PAIR[0],
    "outputs": {"output": "a "},
    "extra": {"metadata": {"thread_id": "t"}},
}
WENT_ON = BEGUN | {
    "id": "s",
    "trace_id": "s",
    "inputs": {"messages": [*PAIR, PAIR[0]]},
    "outputs": {"output": "b"},
}
OBSERVED = {"input": {"args": [PAIR, "so?"], "kwargs": {"n": 5}}, "output": "yes"}
OBSERVED_MORE = {"input": {"args": ["u7"], "kwargs": {"question": "bye"}}, "output": None}
NEWEST = [
    {"id": f"{n}", "role": r, "content": r, "created_at": n // 2}
    for n, r in enumerate(["user", "assistant"] * 2, 4)
]
SDK = [
    {
        "role": "user",
        "name": "Ann",
        "parts": [{"type": "text", "text": "q"}],
        "createdAt": "2026-03-01T09:00:00Z",
    }
]
SHARE = {
    "id": "x",
    "conversations": [{"from": "human", "value": "q"}, {"from": "narrator", "value": "n"}],
}
EMBED = {"title": "fix", "fields": [{"name": "branch", "value": "main"}]}
MESSAGE = {
    "id": 1,
    "type": "Default",
    "content": "New",
    "author": {"name": "G", "isBot": True},
    "embeds": [EMBED],
}
ASKED = [{"id": 1, "role": "user", "content": "q"}]


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.json", [{"id": "x", "messages": ASKED}, {"id": "y", "messages": ASKED}], ["q", "q"]),
        ("b.json", {"conversations": [{"create_time": 1, "mapping": TREE}]}, ["spoken", "In Oslo, see the guide.", ""]),
        ("b2.json", [{"update_time": 20, "create_time": 1, "mapping": REPORT}], ["q", "# Sinks", "so?", "{}"]),
        ("c.json", [{"uuid": "k", "chat_messages": [CLAUDE]}], ["short\npasted"]),
        ("d.jsonl", [CODE | {"type": "attachment", "attachment": QUEUED}], ["and the docs"]),
        ("e.jsonl", [CODE | {"type": "user", "message": {"content": [REFUSED]}}], ["use pnpm"]),
        ("e2.jsonl", REWOUND, ["q", TREE_OF_CODE[1][3], TREE_OF_CODE[5][3]]),
        ("f.json", [SHARED | {"type": "message", "user": "U", "ts": "1", "text": "so?"}], ["so?\nBo: We move"]),
        ("g.json", {"guild": {}, "channel": {"id": 1}, "messages": [MESSAGE]}, ["New\nfix\nbranch: main"]),
        ("h.json", [RUN | {"id": "r", "child_runs": [CALL]}], ["q", "a"]),
        ("h2.json", [RUN | BEGUN, RUN | WENT_ON], ["q", "a", "q", "b"]),
        ("i.jsonl", [TRACE | {"input": "long " * 20_000}], [("long " * 20_000).strip(), "a"]),
        ("i2.jsonl", [TRACE | OBSERVED, TRACE | OBSERVED_MORE | {"id": "u"}], ["q", "a", "so?", "yes", "bye"]),
        ("j.json", {"messages": ASKED, "choices": [{"message": {"role": "assistant", "refusal": "no"}}]}, ["q", "no"]),
        ("k.json", [{"message_type": "user_message", "date": "2026-03-01", "content": "hi"}], ["hi"]),
        ("l.json", [{"sender": "Ann", "text": "hi", "timestamp": "2026-03-01"}], ["hi"]),
        ("m.jsonl", [ASKED, ASKED], ["q", "q"]),
        ("c2.json", [{"uuid": "k", "chat_messages": [{"sender": "human", "text": UNSHOWN}]}], ["See.\nOk?"]),
        ("m2.json", {"object": "list", "data": NEWEST[::-1]}, ["user", "assistant", "user", "assistant"]),
        ("m3.json", SDK, ["q"]),
        ("n.json", {"uuid": "d", "title": "T", "messages": DESIGN}, ["Draw", "Drawing.", "bigger", "Done."]),
        ("l2.json", [{"role": "user", "text": "hi"}, {"role": "assistant", "text": "yo"}], ["hi", "yo"]),
        ("l3.jsonl", [{"role": "user", "text": "hi"}, {"sender": "Ann", "text": "yo"}], ["hi", "yo"]),
    ],
)  # fmt: skip
def test_no_turn_is_lost(tmp_path: Path, name: str, content: Any, texts: list[str]) -> None:
    lines = content if name.endswith("jsonl") else [content]
    (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
    data = memlab.load(tmp_path / name, assistant="Zoey", tz="Europe/Oslo")
    assert data.turns["text"].to_list() == texts
    assert data.issues["found"].str.contains("Zoey").any()


def test_names_and_times_are_kept_and_what_is_left_out_has_a_name(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": UNSHOWN}, {"type": "tool_use", "name": "artifacts"}]
    claude = [{"uuid": "k", "chat_messages": [{"sender": "assistant", "content": parts}]}]
    research = [{"update_time": 20, "create_time": 1, "mapping": REPORT}]
    for name, content in {
        "sdk.json": SDK,
        "share.json": [SHARE, SHARE],
        "gpt.json": research,
        "c.json": claude,
    }.items():
        (tmp_path / name).write_text(json.dumps(content))
    asked = memlab.load(tmp_path / "sdk.json").turns
    assert (asked["speaker"][0], str(asked["timestamp"][0])) == ("Ann", "2026-03-01 09:00:00+00:00")
    said = memlab.load(tmp_path / "gpt.json")
    assert said.turns["timestamp"].dt.epoch("s").to_list() == [9, None, 12, 13]
    assert said.issues["found"].to_list() == [
        "1 document",
        "1 time after the end of their conversation",
    ]
    found = memlab.load(tmp_path / "c.json").issues["found"].to_list()
    assert found == ["1 block that the export does not show", "1 document"]
    shared = memlab.load(tmp_path / "share.json")
    assert (shared.sessions.height, shared.issues["found"].to_list()) == (
        2,
        ["2 messages of other roles"],
    )


def test_exports_of_two_tools_are_not_mixed(tmp_path: Path) -> None:
    chats = {
        f"{k}.json": (EXPORTS / k / "conversations.json").read_text()
        for k in ("chatgpt", "claude_ai")
    }
    both = packed(tmp_path / "both.zip", chats)
    with pytest.raises(memlab.DataError, match=r"several tools: chatgpt .*claude_ai"):
        memlab.load(both)
    data = memlab.load(both, format="chatgpt")
    assert (data.turns.height, data.issues["found"][0]) == (4, "1 other file: claude_ai.json")
    uploaded = packed(
        tmp_path / "up.zip",
        {"conversations.json": chats["chatgpt.json"], "file-x-y.json": chats["claude_ai.json"]},
    )
    assert memlab.load(uploaded).format == "chatgpt"


def test_a_folder_of_archives_and_files(tmp_path: Path) -> None:
    """Each archive is read unless its files lie there unpacked; what cannot be opened is reported."""
    chat = "[01/03/2026, 09:00:00] {0}: Hello from {0}\n"
    packed(tmp_path / "WhatsApp Chat - Ann.zip", {"_chat.txt": chat.format("Ann")})
    packed(
        tmp_path / "WhatsApp Chat with Eve.zip", {"WhatsApp Chat with Eve.txt": chat.format("Eve")}
    )
    (tmp_path / "WhatsApp Chat with Eve.txt").write_text(chat.format("Eve"))
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04")
    (tmp_path / "notes.md").write_text("of the old phone")
    data = memlab.load(tmp_path)
    assert data.scopes == ["Ann", "Eve"]
    told = "3 other files: WhatsApp Chat with Eve.zip, broken.zip, notes.md"
    assert data.issues["found"][0] == told
    for file in tmp_path.glob("WhatsApp*"):
        file.unlink()
    with pytest.raises(memlab.DataError, match=r"broken\.zip: is no whole ZIP"):
        memlab.load(tmp_path)
    inner = packed(tmp_path / "inner.zip", {"_chat.txt": chat}).read_bytes()
    portal = packed(tmp_path / "portal.zip", {"report.html": "<html>", "chats.zip": inner})
    with pytest.raises(memlab.DataError, match=r"a ZIP archive within another.*unpack it"):
        memlab.load(portal)


@pytest.mark.parametrize(
    ("export", "own", "sent"),
    [
        ("telegram/result.json", "t/result.json", ["t/files/x.json", "t/files/result.json"]),
        ("discord.json", "d/general.json", ["d/general.json_Files/x-AB12.json"]),
        ("claude_code/5e55a1b2.jsonl", "c/5e55a1b2.jsonl", ["c/5e55a1b2/tool-results/toolu_1.txt"]),
        ("whatsapp/android_de_DE.txt", "WhatsApp Chat mit X.txt", ["x.json", "log.txt"]),
        (
            "whatsapp/android_de_DE.txt",
            "WhatsApp Chat mit X/WhatsApp Chat mit X.txt",
            ["WhatsApp Chat mit X/a/x.json"],
        ),
        ("whatsapp/ios_en_US/_chat.txt", "_chat.txt", ["00000012-WhatsApp Chat with Y.txt"]),
    ],
)
def test_what_was_sent_in_a_chat_is_no_export(
    tmp_path: Path, export: str, own: str, sent: list[str]
) -> None:
    others = {name: (EXPORTS / "claude_ai" / "conversations.json").read_text() for name in sent}
    entries = {own: (EXPORTS / export).read_text(), **others}
    for name, text in entries.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    archive = packed(tmp_path / "up.zip", entries)
    wanted = memlab.load(EXPORTS / export).turns["text"].to_list()
    for path in (archive, (tmp_path / own).parent) if "/" in own else (archive,):
        data = memlab.load(path)
        assert data.turns["text"].to_list() == wanted
        assert data.issues["found"][0].startswith(f"{len(sent)} other file")


def test_archives_that_mean_harm(tmp_path: Path) -> None:
    text, rng = (EXPORTS / "discord.json").read_text(), Random(0)
    outside = packed(tmp_path / "a.zip", {"../../etc/discord.json": text, "x.json": "[]"})
    assert memlab.load(outside).turns.height == 5
    assert {file.name for file in tmp_path.rglob("*")} == {"a.zip"}  # nothing is unpacked
    with pytest.raises(memlab.DataError, match="no chat does"):
        memlab.load(packed(tmp_path / "bomb.zip", {"x.json": b"[" + b" " * (80 << 20)}))
    with pytest.raises(memlab.DataError, match="ZIP archive without a chat"):
        memlab.load(packed(tmp_path / "none.zip", {"x.json": '{"a": 1}'}))
    with zipfile.ZipFile(tmp_path / "far.zip", "w") as archive:
        archive.writestr("x.json", text)
        archive.infolist()[0].header_offset = 2**64 - 10
    with pytest.raises(memlab.DataError, match="downloaded whole"):
        memlab.load(tmp_path / "far.zip")
    whole = outside.read_bytes()
    for _ in range(30):
        broken = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            broken[rng.randrange(4, len(broken))] = rng.randrange(256)
        (tmp_path / "b.zip").write_bytes(
            broken[: rng.choice((len(broken), rng.randrange(len(broken))))]
        )
        with suppress(memlab.MemlabError):
            memlab.load(tmp_path / "b.zip")


def test_a_table_of_more_rows_than_its_bytes_can_hold_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(8_000_000, np.int32)), pa.array(["a"]))
    pq.write_table(
        pa.table(dict.fromkeys(("scope", "sender", "text"), one)), tmp_path / "log.parquet"
    )
    with pytest.raises(memlab.DataError, match="holds 8,000,000 rows"):
        memlab.load(tmp_path / "log.parquet")


@pytest.mark.parametrize(
    "name", ["log.json", "log.csv", "semicolon.csv", "log.parquet", "log.jsonl"]
)
def test_tables_of_chat_log_records(tmp_path: Path, name: str) -> None:
    rows: list[dict[str, Any]] = [
        {"scope": "a", "sender": "Ann", "text": "hi", "timestamp": "1772355600"},
        {
            "scope": "a",
            "sender": "Claude",
            "text": "hello",
            "timestamp": "1772355601000",
            "caption": None,
        },
    ]
    file = tmp_path / name
    if name.endswith("csv"):
        pl.DataFrame(rows).write_csv(file, separator=";" if name.startswith("semi") else ",")
    elif name.endswith("parquet"):
        pl.DataFrame(rows).write_parquet(file)
    else:
        file.write_text(
            json.dumps(rows) if name.endswith("json") else "\n".join(map(json.dumps, rows))
        )
    data = memlab.load(file)
    said = data.turns.select("speaker", "role", "text").rows()
    assert said == [("Ann", "user", "hi"), ("Claude", "assistant", "hello")]
    assert str(data.turns["timestamp"][1]) == "2026-03-01 09:00:01+00:00"
    assert data.format == ("chatlog" if name == "log.jsonl" else "table")


def test_a_scope_is_named_or_chosen(tmp_path: Path) -> None:
    assert memlab.load(EXPORTS / "chatgpt", scope="ann").scopes == ["ann"]
    said = {"id": 1, "type": "message", "from": "A", "text": "hi", "date": "2026-03-01T10:00:00"}
    events = [said, {"id": 2, "type": "service", "action": "x"}]
    chats = [
        {"name": n, "type": "personal_chat", "id": i, "messages": events}
        for i, n in enumerate(("Ann", "Bo"))
    ]
    (tmp_path / "result.json").write_text(
        json.dumps({"personal_information": {}, "chats": {"list": chats}})
    )
    chosen = memlab.load(tmp_path / "result.json", scope="Bo", tz="Europe/Oslo")
    assert (chosen.scopes, chosen.issues["found"].to_list()) == (["Bo"], ["1 system message"])
    assert str(chosen.turns["timestamp"][0])[:13] == "2026-03-01 09", (
        "an old Telegram names no zone"
    )
    with pytest.raises(memlab.DataError, match="holds 2 chats or people, none is 'Cy': Ann, Bo"):
        memlab.load(tmp_path / "result.json", scope="Cy")
    pl.DataFrame([{"scope": n, "sender": "a", "text": "hi"} for n in (5, 6)]).write_parquet(
        tmp_path / "log.parquet"
    )
    assert memlab.load(tmp_path / "log.parquet", scope="5").turns.height == 1


def test_an_export_goes_on_the_memory_that_is_there() -> None:
    mine = [memlab.load(EXPORTS / "chatgpt", name="mine")]
    for _ in range(2):
        mine.append(concat(stream(EXPORTS / "claude_ai", into=mine[-1].take)))
        assert (mine[-1].name, mine[-1].turns.height, mine[-1].turns["role"].n_unique()) == (
            "mine",
            9,
            2,
        )


@pytest.mark.parametrize("new", ["2026-01", "2026-03"])
def test_of_two_exports_the_newest_version_is_read(tmp_path: Path, new: str) -> None:
    old = "2026-02"
    for folder in (old, new):
        (tmp_path / folder).mkdir()
    tree = node("a", None, "user", 1, "Name a metal") | node("b", "a", "assistant", 2, "Iron.")
    again = {
        folder: tree | (node("c", "a", "assistant", 3, "Copper.") if folder == new else {})
        for folder in (old, new)
    }
    for folder, mapping in again.items():
        conversation = {
            "id": "k",
            "create_time": 1,
            "update_time": len(mapping),
            "mapping": mapping,
        }
        (tmp_path / folder / "conversations.json").write_text(json.dumps([conversation]))
    data = memlab.load(tmp_path)
    assert data.turns["text"].to_list() == ["Name a metal", "Copper."]
    assert "1 older version of conversations" in data.issues["found"].to_list()
    said = {"id": 1, "type": "message", "from": "A", "date": "2026-03-01T10:00:00"}
    texts = {old: {"text": "at 5"}, new: {"text": "at 6", "edited": "2026-03-02T10:00:00"}}
    for folder, text in texts.items():
        chat = {
            "name": "Bo",
            "type": "personal_chat",
            "id": 9,
            "messages": [said | text, said | {"id": 2, "text": "ok"}],
        }
        (tmp_path / folder / "conversations.json").write_text(json.dumps(chat))
    data = memlab.load(tmp_path, tz="UTC")
    assert data.turns["text"].to_list() == ["at 6", "ok"]
    assert "2 repeated messages" in data.issues["found"].to_list()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps([ASKED], indent=1)),
        ("b.jsonl", json.dumps(ASKED)),
        ("c.csv", "role\ttext\r\nuser\tq\r\n"),
    ],
)
def test_utf16_is_read(tmp_path: Path, name: str, text: str, encoding: str) -> None:
    (tmp_path / name).write_bytes(text.encode(encoding))
    assert memlab.load(tmp_path / name).turns["text"].to_list() == ["q"]


def test_what_no_text_can_hold_is_replaced_and_said(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "a\\ud83d b\\u0000"}]}'
    )
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


def test_one_day_of_slack_finds_the_names_above_it() -> None:
    data = memlab.load(GOLDEN / "slack/export/general/2026-03-01.json")
    assert (data.format, data.turns["speaker"][0]) == ("slack", "Ann Moe")


def test_a_bad_conversation_is_set_aside(tmp_path: Path) -> None:
    export = json.loads((EXPORTS / "chatgpt" / "conversations.json").read_text())
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([*export, {"title": "x", "create_time": 1, "mapping": []}]))
    with pytest.raises(memlab.DataError, match=r"conversation 2.*mapping"):
        memlab.load(file)
    assert (
        memlab.load(file, on_error="quarantine", quarantine_dir=tmp_path / "aside").turns.height
        == 4
    )
    file.write_bytes(json.dumps(export[0]).encode() + b"\n\xff{}")
    with pytest.raises(memlab.DataError, match="not UTF-8"):
        memlab.load(file)


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", r"a picture \(PNG\)"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", r"a picture \(JPEG\)"),
        (b"\0\0\0\x20ftypisom\0", "a film"),
        (b"ID3\4\0\0", "sound"),
        (b"\x7fELF\2\1\1\0", "a program"),
        (b"\x01\xfe\0", "a binary file, or text in another encoding"),
        ("Привет, мир".encode("cp1251"), "a binary file, or text in another encoding"),
    ],
)
@pytest.mark.parametrize("name", ["chat.json", "chat.txt", "chat"])
def test_a_binary_file_is_named_and_its_bytes_are_not_printed(
    tmp_path: Path, name: str, beginning: bytes, kind: str
) -> None:
    file = tmp_path / name
    file.write_bytes(beginning + bytes(range(128, 256)) * 4)
    with pytest.raises(
        memlab.DataError, match=rf"is {kind}: give an export of a chat tool"
    ) as raised:
        memlab.load(file)
    assert str(raised.value).isascii()
    assert str(raised.value).isprintable()
