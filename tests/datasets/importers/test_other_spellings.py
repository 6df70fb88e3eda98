"""Other tools' layouts and spellings: users, threads, answers, speakers, thoughts, versions, times, folders."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from written_files import load

import memlab
from memlab.datasets import sender_roles
from memlab.errors import DataError
from memlab.records import Dataset


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def places(data: Dataset) -> list[tuple[str, str, str]]:
    sessions = data.turns["session_id"].str.split("/").list.last()
    return data.turns.select("scope", sessions, "text").rows()


def left_out(data: Dataset) -> list[str]:
    return data.issues.filter(action="left out")["found"].to_list()


SPELLINGS = [
    ("User ID", "Conversation ID"),
    ("customer_id", "chat"),
    ("userName", "room_id"),
    ("OwnerId", "ticketId"),
    ("user", "session_uuid"),
]


@pytest.mark.parametrize(("user", "thread"), SPELLINGS)
def test_users_and_threads_by_any_spelling(tmp_path: Path, user: str, thread: str) -> None:
    rows = [
        said("user", "The gate sticks") | {user: "ida", thread: "1"},
        said("assistant", "Which one?") | {user: "ida", thread: "1"},
        said("user", "The gate sticks") | {user: "per", thread: "1"},
        said("user", "The lamp is out") | {user: "ida", thread: "2"},
    ]
    expected = [
        ("ida", "1", "The gate sticks"),
        ("ida", "1", "Which one?"),
        ("ida", "2", "The lamp is out"),
        ("per", "1", "The gate sticks"),
    ]
    assert places(load(tmp_path, "rows.jsonl", rows)) == expected
    lines = [f"{user},{thread},role,content"]
    lines += [",".join((row[user], row[thread], row["role"], row["content"])) for row in rows]
    assert places(load(tmp_path, "rows.csv", "\n".join(lines))) == expected
    around = [said(row["role"], row["content"], metadata=row) for row in rows]
    for row in around:
        row["metadata"] = {key: row["metadata"][key] for key in (user, thread)}
    assert places(load(tmp_path, "around.jsonl", around)) == expected


def test_topics_within_a_session_are_conversations(tmp_path: Path) -> None:
    rows = [said("user", f"Word {n}", sessionId="inbox", topicId=str(n % 2)) for n in range(3)]
    assert places(load(tmp_path, "rows.json", rows)) == [
        ("me", "inbox", "Word 0"),
        ("me", "inbox", "Word 2"),
        ("me", "inbox%20(1)", "Word 1"),
    ]


ASKED = [said("user", "Where is the key?")]


@pytest.mark.parametrize(
    "answer",
    [
        {"response": {"output_text": "Under the mat there"}},
        {"response": {"message": said("assistant", "Under the mat there")}},
        {"generated_text": "Under the mat there"},
        {"outputs": ["Under the mat there"]},
        {"message": said("assistant", "Under the mat there"), "done": True},
        {"role": "assistant", "content": [{"type": "text", "text": "Under the mat there"}]},
        {"response": {"candidates": [{"content": {"parts": [{"text": "Under the mat there"}]}}]}},
    ],
)
def test_an_answer_under_any_key(tmp_path: Path, answer: dict[str, Any]) -> None:
    data = load(tmp_path, "calls.jsonl", [{"messages": ASKED} | answer])
    assert data.turns.select("role", "text").rows() == [
        ("user", "Where is the key?"),
        ("assistant", "Under the mat there"),
    ]
    assert data.issues.is_empty()


def test_what_repeats_the_messages_is_no_answer(tmp_path: Path) -> None:
    """Data sets for training have the whole chat in one text too, and OpenAI's answers how they are written."""
    rendered = {"messages": ASKED, "text": "user: Where is the key? assistant: Here it is"}
    answer = said("assistant", "Under the mat")
    call = {"input": "Which hook?", "response": {"output": [answer], "text": {"format": "plain"}}}
    data = load(tmp_path, "calls.jsonl", [rendered, call])
    texts = ["Where is the key?", "Which hook?", "Under the mat"]
    assert data.turns["text"].to_list() == texts
    assert left_out(data) == ["1 text under the key 'text'"]


@pytest.mark.parametrize("around", ["input", "kwargs"])
def test_a_request_within_another_object(tmp_path: Path, around: str) -> None:
    call = {around: {"messages": ASKED}, "output": said("assistant", "Under the mat")}
    data = load(tmp_path, "calls.jsonl", [call])
    assert data.turns["text"].to_list() == ["Where is the key?", "Under the mat"]


def test_answers_beside_the_first_and_texts_under_unknown_keys_are_counted(tmp_path: Path) -> None:
    rows = [
        {"prompt": "Where is the key?", "response": ["Under the mat", "No idea at all"]},
        {"messages": ASKED, "verdict": {"why": "it was not polite"}, "title": "About the lost key"},
        {"messages": [said("user", "Hm", gloss="he is in doubt")]},
    ]
    data = load(tmp_path, "calls.jsonl", rows)
    assert left_out(data) == [
        "1 other answer",
        "1 text under the key 'gloss'",
        "1 text under the key 'verdict.why'",
    ]
    log = [{"scope": "ida", "sender": "Ida", "text": "Hm", "gloss": "she is in doubt"}]
    assert left_out(load(tmp_path, "log.jsonl", log)) == ["1 text under the key 'gloss'"]
    table = "sender,role,text,gloss\nIda,user,Hm,she is in doubt\n"
    assert left_out(load(tmp_path, "rows.csv", table)) == ["1 text under the key 'gloss'"]


def test_who_speaks_under_other_keys(tmp_path: Path) -> None:
    listed = [
        {"author": "user", "content": "Is it open?"},
        {"author": "assistant", "content": "Until six."},
        said("gpt-4o", "Until seven."),
        said("llama3:8b", "Until eight."),
        {"author": {"role": "user", "name": "Ida"}, "content": "So which?"},
    ]
    data = load(tmp_path, "chat.json", {"messages": listed + ASKED})
    spoken = data.turns.select("speaker", "role").rows()
    assistants = [("assistant", "assistant")] * 3
    assert spoken == [("user", "user"), *assistants, ("Ida", "user"), ("user", "user")]


def test_a_name_in_a_table_makes_an_assistant_that_is_said_and_can_be_denied(
    tmp_path: Path,
) -> None:
    table = "sender,text\nClaude,I live in Lyon\nSystem,I work at the mill\nTove,Hello\n"
    data = load(tmp_path, "rows.csv", table)
    assert data.turns["role"].to_list() == ["assistant", "system", "user"]
    taken = sender_roles.TAKEN_BY_NAME
    assert data.issues.select("found", "action").rows() == [
        ("'Claude', 1 message", taken),
        ("'System', 1 message", taken.replace("the assistant", "the system")),
    ]
    denied = load(tmp_path, "rows.csv", table, person=["Claude", "System"])
    assert denied.turns["role"].to_list() == ["user"] * 3
    assert denied.issues.is_empty()
    listed = [{"sender": "Claude", "content": "I live in Lyon"}, said("user", "Hello")]
    data = load(tmp_path, "chat.json", listed)
    assert data.turns["role"].to_list() == ["assistant", "user"]
    assert data.issues.select("found", "action").rows() == [("'Claude', 1 message", taken)]
    denied = load(tmp_path, "chat.json", listed, person="Claude")
    assert denied.turns.select("speaker", "role").row(0) == ("Claude", "user")


def test_an_unknown_role_of_a_chat_log_is_a_persons(tmp_path: Path) -> None:
    rows = [{"scope": "a", "sender": "Ida", "role": "guest", "text": "A room, please"}]
    rows += [{"scope": "a", "role": "tool", "text": "12 free"}]
    data = load(tmp_path, "log.jsonl", rows)
    assert data.turns.select("speaker", "role").rows() == [("Ida", "user"), ("tool", "other")]
    kept = [("1 message of other roles", "kept as those of persons")]
    assert data.issues.select("found", "action").rows() == kept


@pytest.mark.parametrize(
    "thought",
    [
        "<think>It may rain there.</think>",
        "<seed:think>It may rain there.</seed:think>",
        "◁think▷It may rain there.◁/think▷",
        "<|channel|>analysis<|message|>It may rain there.<|end|><|start|>assistant"
        "<|channel|>final<|message|>",
    ],
)
def test_thoughts_are_left_out_of_tables_and_chat_logs_too(tmp_path: Path, thought: str) -> None:
    rows = [
        {"scope": "a", "sender": "Mio", "role": "assistant", "text": f"{thought}Take a coat."},
        {"scope": "a", "sender": "Ida", "role": "user", "text": f"{thought} is what it wrote"},
    ]
    for name in ("log.jsonl", "rows.json"):
        data = load(tmp_path, name, rows)
        assert data.turns["text"].to_list() == ["Take a coat.", rows[1]["text"]]
        assert left_out(data) == ["1 thought"]


@pytest.mark.parametrize("key", ["version", "revision", "rev", "updated_at"])
def test_of_two_versions_the_newer_stays_by_any_key(tmp_path: Path, key: str) -> None:
    versions = ["2026-02-01T10:00:00Z", "2026-02-01T11:00:00Z"] if "at" in key else ["9", "10"]
    for order in (1, -1):
        rows = [
            said("user", "Dinner at 7", id="1") | {key: versions[0]},
            said("user", "Dinner at 8", id="1") | {key: versions[1]},
        ][::order]
        data = load(tmp_path, "chat.json", rows)
        assert data.turns["text"].to_list() == ["Dinner at 8"]
        assert left_out(data) == ["1 repeated message"]
    table = f"id,sender,role,text,{key}\n1,Ida,user,Dinner at 8,{versions[1]}\n"
    data = load(tmp_path, "rows.csv", f"{table}1,Ida,user,Dinner at 7,{versions[0]}\n")
    assert data.turns["text"].to_list() == ["Dinner at 8"]
    assert left_out(data) == ["1 repeated message"]


def test_times_with_the_year_first_and_what_is_no_time(tmp_path: Path) -> None:
    forms = ["2026/02/01 10:00:00", "2026/2/1 10:00", "2026.02.01 10:00:00Z", "2026-2-1"]
    listed = [said("user", "On", date=form) for form in forms]
    data = load(tmp_path, "chat.json", {"messages": [*listed, said("user", "Off", date=[2026, 2])]})
    assert data.turns["timestamp"].dt.strftime("%F %H").to_list() == [
        *["2026-02-01 10"] * 3,
        "2026-02-01 00",
        None,
    ]
    assert left_out(data) == ["1 time that cannot be read"]


def test_messages_with_a_text_in_an_object_are_read(tmp_path: Path) -> None:
    about = {"flow_id": "f", "session_id": "s"}
    rows = [
        {"sender": "User", "sender_name": "User", "text": "Which quay?", **about},
        {"sender": "Machine", "sender_name": "AI", "text": "Quay four.", **about},
    ]
    data = load(tmp_path, "flow.json", {"messages": rows})
    assert data.turns["role"].to_list() == ["user", "assistant"]
    assert places(data) == [("me", "s", "Which quay?"), ("me", "s", "Quay four.")]


def test_a_folder_that_is_no_export_says_what_is_in_it(tmp_path: Path) -> None:
    load(tmp_path, "logs/log.jsonl", [{"scope": "a", "sender": "Ida", "text": "Hello"}])
    with pytest.raises(DataError, match=r"read one by one: chatlog \(log.jsonl\). Give one of"):
        memlab.load(tmp_path / "logs")
    (tmp_path / "window").mkdir()
    shown = [{"ts": 1769940001000, "type": "say", "say": "text", "text": "Fix the gate"}]
    (tmp_path / "window" / "ui_messages.json").write_text(json.dumps(shown))
    match = r"window: holds ui_messages.json, which looks like .* Cline .*: give the api_conv"
    with pytest.raises(DataError, match=match):
        memlab.load(tmp_path / "window")


def test_chats_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    for folder, text in (("Mira", "The exam went well"), ("Rolf", "The boat is sold")):
        lines = [{"user_name": "Tove", "character_name": folder, "chat_metadata": {}}]
        lines.append({"name": "Tove", "is_user": True, "mes": text})
        load(tmp_path, f"chats/{folder}/New chat.jsonl", lines)
        version = {"role": "user", "content": [{"type": "text", "text": text}]}
        message = {"versions": [version], "currentlySelected": 0}
        load(tmp_path, f"studio/{folder}/1.conversation.json", {"messages": [message]})
    for name in ("chats", "studio"):
        data = memlab.load(tmp_path / name)
        assert data.turns["text"].to_list() == ["The exam went well", "The boat is sold"]
        assert data.turns["session_id"].n_unique() == 2
        assert data.issues.is_empty()


def test_two_chats_of_open_webui_without_ids_and_of_one_title(tmp_path: Path) -> None:
    chats = []
    for text in ("The exam went well", "The boat is sold"):
        node = {"id": text[4], "parentId": None, "role": "user", "content": text}
        history = {"messages": {node["id"]: node}, "currentId": node["id"]}
        chats.append({"title": "New chat", "chat": {"models": [], "history": history}})
    data = load(tmp_path, "chats.json", chats)
    assert [session for _, session, _ in places(data)] == ["New%20chat", "New%20chat%20(2)"]


def test_both_kinds_of_chats_of_character_ai_are_read(tmp_path: Path) -> None:
    turn = {"author": {"name": "tove", "is_human": True}, "candidates": [{"raw_content": "Ahoy"}]}
    old = {"external_id": "h1", "msgs": [{"text": "I sail", "src": {"is_human": True}}]}
    export = {"chats": [{"chat_id": "c1", "turns": [turn]}], "histories": {"histories": [old]}}
    assert places(load(tmp_path, "c.json", export)) == [
        ("me", "c1", "Ahoy"),
        ("me", "h1", "I sail"),
    ]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Fwd: I live in Narvik.", "I live in Narvik."),
        ("See below\nFW: I live in Narvik.\nBo", "I live in Narvik.\nBo"),
        ("--- Original Message ---\nFrom: Bo\n\nI row.", "From: Bo\n\nI row."),
    ],
)
def test_what_a_mail_passes_on_is_not_the_writers(tmp_path: Path, text: str, quoted: str) -> None:
    data = load(tmp_path, "log.jsonl", [{"scope": "a", "sender": "Ida", "text": text}])
    assert data.turns["quoted"].to_list() == [[quoted]]


def test_a_list_of_events_is_no_chat_log(tmp_path: Path) -> None:
    events = [{"type": "event", "ts": "1769940000.000100", "text": "the pump has started"}]
    with pytest.raises(DataError, match=r"events.json: is none of the formats"):
        load(tmp_path, "events.json", events)


def test_replies_that_slackdump_has_within_a_message_are_turns_and_not_counted(
    tmp_path: Path,
) -> None:
    root = {"type": "message", "user": "U1", "text": "Paint on Tuesday", "ts": "1769940000.000100"}
    reply = {"type": "message", "user": "U2", "text": "Not on Monday then"}
    reply |= {"ts": "1769940010.000100", "thread_ts": root["ts"]}
    channel = {"channel_id": "C1", "name": "ops"}
    message = root | {"thread_ts": root["ts"], "slackdump_thread_replies": [reply]}
    data = load(tmp_path, "C1.json", channel | {"messages": [message]})
    thread = "thread%201769940000.000100"
    assert places(data) == [
        ("ops", thread, "Paint on Tuesday"),
        ("ops", thread, "Not on Monday then"),
    ]
    assert data.issues.is_empty()


@pytest.mark.parametrize("rounds", [20, pytest.param(2000, marks=pytest.mark.nightly)])
def test_rows_of_any_order_keep_their_conversations_and_their_order(
    tmp_path: Path, rounds: int
) -> None:
    """No row stands in another's conversation, none is lost, and each conversation has the order of the file.

    One whose times fall throughout has the newest first.
    """
    random = Random(0)
    for _ in range(rounds):
        user, thread = random.choice(SPELLINGS)
        rows = []
        for number in range(random.randint(2, 12)):
            role = random.choice(["user", "assistant"])
            row = said(role, f"Word {number}", id=str(random.randint(1, 3)) + f"-{number}")
            row |= {user: random.choice(["ida", "per"]), thread: random.choice(["1", "2"])}
            if random.random() < 0.7:
                row["created_at"] = 1769940000 + random.randint(0, 3) * 60 + number
            rows.append(row)
        data = load(tmp_path, random.choice(["rows.json", "rows.jsonl"]), rows)
        listed: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in rows:
            listed.setdefault((row[user], row[thread]), []).append(row)
        wanted = dict[tuple[str, str], list[str]]()
        for place, there in listed.items():
            wanted[place] = [row["content"] for row in there]
            if has_newest_first(there):
                wanted[place].reverse()
        given: dict[tuple[str, str], list[str]] = {}
        for scope, session, text in places(data):
            given.setdefault((scope, session), []).append(text)
        askers = {row[user] for row in rows if row["role"] == "user"}
        if askers == {"ida", "per"} and all_ask(rows, user, thread):
            assert in_order(given) == in_order(wanted), rows
        assert data.turns.height == len(rows), rows


def all_ask(rows: list[dict[str, Any]], user: str, thread: str) -> bool:
    """Say whether every user of a thread asks there; else an answer is of who asked."""
    there = {(row[user], row[thread]) for row in rows}
    return there == {(row[user], row[thread]) for row in rows if row["role"] == "user"}


def has_newest_first(rows: list[dict[str, Any]]) -> bool:
    """Say whether every row has a time before that of the row above; of two the first must answer the second."""
    times = [row.get("created_at") for row in rows]
    if None in times or len(times) < 2 or times != sorted(set(times), reverse=True):
        return False
    return len(times) > 2 or (rows[0]["role"], rows[1]["role"]) == ("assistant", "user")


def in_order(found: dict[tuple[str, str], list[str]]) -> dict[tuple[str, str], list[int]]:
    """Give the numbers of the rows of each conversation."""
    return {place: [int(text.split()[1]) for text in texts] for place, texts in found.items()}
