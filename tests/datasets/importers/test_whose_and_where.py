"""Whose a message is, of which conversation and where in it: rows, calls, trees, lists, roles, thoughts, times."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
import pytest
from written_files import load

import memlab
from memlab.datasets.time_forms import parse_written_time
from memlab.records import Dataset

NOON = "2026-05-03T12:00:00Z"


def told(data: Dataset) -> list[tuple[str, str, str]]:
    """Give scope, session and text of every turn."""
    parts = pl.col("session_id").str.split("/").list.last()
    return data.turns.select("scope", parts, "text").rows()


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def found(data: Dataset) -> list[tuple[str, str]]:
    return data.issues.select("found", "action").rows()


ROWS = [
    said("user", "The boat leaks again", user_id="ida", thread_id="1", id="1"),
    said("assistant", "Where?", thread_id="1", id="2"),
    said("user", "The boat leaks again", user_id="per", thread_id="1", id="1"),
    said("user", "My bike is blue", user_id="ida", thread_id="2", id="1"),
    said("assistant", "Where?", user_id="ida", thread_id="2", id="2"),
]
OF_ROWS = [
    ("ida", "1", "The boat leaks again"),
    ("ida", "1", "Where?"),
    ("ida", "2", "My bike is blue"),
    ("ida", "2", "Where?"),
    ("per", "1", "The boat leaks again"),
]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv", "rows.parquet"])
def test_rows_name_their_user_and_their_thread(tmp_path: Path, name: str) -> None:
    """Ids begin anew in each thread, and threads in each user: nothing is merged, nothing is dropped."""
    if name.endswith(("csv", "parquet")):
        table, path = pl.DataFrame(ROWS), tmp_path / name
        table.write_csv(path) if name.endswith("csv") else table.write_parquet(path)
        data = memlab.load(path)
    else:
        data = load(tmp_path, name, ROWS)
    assert told(data) == OF_ROWS
    assert data.issues.is_empty()


def test_rows_of_a_table_name_theirs_too(tmp_path: Path) -> None:
    rows = [
        {
            "tenant": "north",
            "chatId": "a",
            "id": "1",
            "role": "guest",
            "text": "Room 12",
            "ts": 1777809600,
        },
        {"tenant": "north", "chatId": "a", "id": "2", "role": "assistant", "text": "Noted"},
        {"tenant": "south", "chatId": "a", "id": "1", "role": "guest", "text": "Room 12"},
    ]
    data = load(tmp_path, "rows.json", rows)
    assert told(data) == [
        ("north", "a", "Room 12"),
        ("north", "a", "Noted"),
        ("south", "a", "Room 12"),
    ]
    assert data.turns["speaker"].to_list() == ["guest", "assistant", "guest"]
    assert data.turns["timestamp"].dt.epoch("s").to_list() == [1777809600, None, None]
    assert found(data) == [("2 messages of other roles", "kept as those of persons")]


def test_users_of_two_tenants_have_two_scopes_and_flows_their_own_sessions(tmp_path: Path) -> None:
    rows = [
        said("user", "Gate 4", user="ida", tenant="north", session_id="New", flow_id="f1"),
        said("user", "Gate 5", user="ida", tenant="south", session_id="New", flow_id="f1"),
        said("user", "Gate 6", user="ida", tenant="north", session_id="New", flow_id="f2"),
    ]
    assert told(load(tmp_path, "rows.json", rows)) == [
        ("ida", "New", "Gate 4"),
        ("ida", "New%20(f2)", "Gate 6"),
        ("ida%20(south)", "New", "Gate 5"),
    ]


@pytest.mark.parametrize("packed", [json.dumps, dict])
def test_rows_around_a_message_name_its_thread(tmp_path: Path, packed: Any) -> None:
    rows = [
        {"id": 1, "session_id": "x", "message": packed({"type": "human", "content": "Soup?"})},
        {
            "id": 2,
            "session_id": "y",
            "message": packed({"type": "human", "data": {"content": "Tea?"}}),
        },
        {"id": 3, "session_id": "x", "message": packed({"type": "ai", "content": "Leek."})},
    ]
    data = load(tmp_path, "rows.json", rows, format="openai_messages")
    assert told(data) == [("me", "x", "Soup?"), ("me", "x", "Leek."), ("me", "y", "Tea?")]
    if packed is dict:
        assert memlab.datasets.detect(tmp_path / "rows.json") == "openai_messages"


def test_messages_of_several_threads_in_one_list(tmp_path: Path) -> None:
    listed = [said("user", "Soup?", threadId="x"), said("user", "Bread?", threadId="y")]
    listed.append(said("assistant", "Leek.", threadId="x"))
    data = load(tmp_path, "export.json", {"threads": [{"threadId": "x"}], "messages": listed})
    assert told(data) == [("me", "x", "Soup?"), ("me", "x", "Leek."), ("me", "y", "Bread?")]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for folder, text in (("a1", "Paint the fence"), ("b2", "Mow the lawn")):
        load(tmp_path, f"tasks/{folder}/history.json", [said("user", text, id="1")])
    data = memlab.load(tmp_path)
    assert told(data) == [
        ("me", "tasks%2Fa1%2Fhistory", "Paint the fence"),
        ("me", "tasks%2Fb2%2Fhistory", "Mow the lawn"),
    ]
    for folder, text in (("a1", "Paint the fence"), ("b2", "Mow the lawn")):
        load(tmp_path, f"table/{folder}/rows.json", [{"sender": "Ida", "text": text, "id": "1"}])
    data = memlab.load(tmp_path / "table")
    assert data.turns.select("scope", "text").rows() == [
        ("a1%2Frows", "Paint the fence"),
        ("b2%2Frows", "Mow the lawn"),
    ]


ASK, TELL = said("user", "My seat is 14C"), said("assistant", "Noted.")
MORE, LAST = said("user", "Which one?"), said("assistant", "14C.")
BOTH, ALL = ["My seat is 14C", "Noted."], ["My seat is 14C", "Noted.", "Which one?", "14C."]
TEXT = {"type": "text", "text": "Noted."}
ITEM = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Noted."}],
}


@pytest.mark.parametrize(
    ("lines", "texts", "sessions"),
    [
        ([{"messages": [ASK], "response": "Noted."}], BOTH, 1),
        ([{"messages": [ASK], "completion": {"content": "Noted."}}], BOTH, 1),
        ([{"messages": [ASK], "output": TELL, "answer": "Noted."}], BOTH, 1),
        ([{"messages": [ASK], "chosen": [ASK, TELL], "rejected": [ASK, LAST]}], BOTH, 1),
        ([{"prompt": "My seat is 14C", "chosen": "Noted.", "rejected": "So?"}], BOTH, 1),
        ([{"prompt": [ASK], "completion": [TELL]}], BOTH, 1),
        ([{"input": "My seat is 14C", "output": "Noted."}], BOTH, 1),
        ([{"chosen": [ASK, TELL], "rejected": [ASK, LAST]}], BOTH, 1),
        ([{"instruction": "My seat is 14C", "input": "", "output": "Noted."}], BOTH, 1),
        ([{"object": "response", "id": "r", "input": "My seat is 14C", "output": [ITEM]}], BOTH, 1),
        (
            [
                {
                    "request": {"messages": [ASK]},
                    "response": {"role": "assistant", "content": [TEXT]},
                }
            ],
            BOTH,
            1,
        ),
        ([{"request": {"input": "My seat is 14C"}, "response": {"output": [ITEM]}}], BOTH, 1),
        (
            [
                {"custom_id": "q", "body": {"input": [ASK]}},
                {"custom_id": "q", "response": {"body": {"output": [ITEM]}}},
            ],
            BOTH,
            1,
        ),
        (
            [
                {"messages": [ASK], "response": "Noted."},
                {"messages": [ASK, TELL, MORE], "response": "14C."},
            ],
            ALL,
            1,
        ),
        (
            [
                {"session_id": "s", "messages": [ASK, TELL]},
                {"session_id": "s", "messages": [ASK, TELL, MORE, LAST]},
            ],
            ALL,
            1,
        ),
        (
            [
                {"id": "a", "input": "My seat is 14C", "output": [ITEM], "object": "response"},
                {"id": "b", "previous_response_id": "a", "input": [MORE], "output": [LAST]},
            ],
            ALL,
            1,
        ),
        # Two that begin alike are two conversations.
        (
            [{"messages": [ASK], "response": "Noted."}, {"messages": [ASK], "response": "Fine."}],
            [*BOTH, BOTH[0], "Fine."],
            2,
        ),
    ],
)
def test_a_logged_call_is_its_request_and_its_answer_and_history_is_told_once(
    tmp_path: Path, lines: list[Any], texts: list[str], sessions: int
) -> None:
    data = load(tmp_path, "log.jsonl", lines)
    assert data.turns["text"].to_list() == texts
    assert data.sessions.height == sessions
    assert data.turns["role"].to_list() == ["user", "assistant"] * (len(texts) // 2)
    left = [text for text, action in found(data) if action == "left out"]
    assert left == ["1 other answer"] * any("rejected" in line for line in lines)


def test_a_message_without_a_time_keeps_its_place_and_has_none(tmp_path: Path) -> None:
    listed = [said("user", "one"), said("assistant", "two", timestamp="2026-05-03T11:00:00Z")]
    listed += [said("user", "three"), said("assistant", "four", timestamp=NOON)]
    for key, when in (("conversation", "timestamp"), ("messages", "created_at")):
        data = load(tmp_path, f"{key}.jsonl", [{"id": "k", when: NOON, key: listed}])
        assert data.turns["text"].to_list() == ["one", "two", "three", "four"]
        assert data.turns["timestamp"].is_null().to_list() == [True, False, True, False]
        assert data.issues.is_empty()
    dated = load(
        tmp_path, "dated.jsonl", [{"id": "k", "created_at": NOON, "messages": [ASK, TELL]}]
    )
    assert dated.turns["timestamp"].dt.hour().to_list() == [12, 12]
    assert found(dated) == [("1 time of conversations", "given to their messages, which have none")]


def clock(*seconds: float | None) -> list[str | None]:
    return [None if each is None else f"2026-05-03T12:00:{each:09.6f}Z" for each in seconds]


CLOCKS = [
    (5.0, 4.5),
    (5.0, 4.0, 6.0, 5.0),
    (5.0, 4.5, 30.0, 29.0),
    (5.0, None, 4.0, 9.0),
    (50.0, 51.0, 3.0, 55.0),
]


@pytest.mark.parametrize("seconds", CLOCKS)
@pytest.mark.parametrize("form", ["openai", "sharegpt", "claude", "claude_code", "letta", "log"])
def test_the_order_of_the_source_stands_where_a_clock_steps_back(
    tmp_path: Path, form: str, seconds: tuple[float | None, ...]
) -> None:
    times = clock(*seconds)
    texts = [f"message {n}" for n in range(len(times))]
    each = list(zip(times, texts, ["user", "assistant"] * 2, strict=False))
    content: Any = {
        "openai": {"id": "k", "messages": [said(r, x, created_at=t) for t, x, r in each]},
        "sharegpt": [
            {
                "id": "k",
                "conversations": [{"from": r, "value": x, "timestamp": t} for t, x, r in each],
            }
        ],
        "claude": [
            {
                "uuid": "k",
                "chat_messages": [
                    {"uuid": x, "sender": r, "text": x, "created_at": t} for t, x, r in each
                ],
            }
        ],
        "claude_code": [
            {"type": r, "uuid": x, "sessionId": "k", "timestamp": t, "message": said(r, x)}
            for t, x, r in each
        ],
        "letta": {
            "agent_type": "x",
            "messages": [said(r, x, id=x, created_at=t) for t, x, r in each],
        },
        "log": [
            {"scope": "me", "session": "k", "sender": r, "text": x, "timestamp": t}
            for t, x, r in each
        ],
    }[form]
    data = load(tmp_path, f"x.{'jsonl' if form in ('claude_code', 'log') else 'json'}", content)
    assert data.turns["text"].to_list() == texts
    known = [second for second in seconds if second is not None]
    kept = data.turns["timestamp"].drop_nulls().dt.epoch("us") % 60_000_000
    assert kept.to_list() == [round(1e6 * second) for second in known], "times are kept as given"
    back = sum(later < max(known[: n + 1]) for n, later in enumerate(known[1:]))
    lies = "1 time that lies" if back == 1 else f"{back} times that lie"
    expected = (f"{lies} before that of the message above", "the order of the file is kept")
    assert expected in found(data)


def test_a_log_of_lines_in_another_order_is_put_in_order_of_time(tmp_path: Path) -> None:
    lines = [
        {
            "scope": "me",
            "sender": "Ida",
            "text": str(minute),
            "timestamp": f"2026-05-03T12:{minute:02}Z",
        }
        for minute in (9, 7, 5, 3, 1)
    ]
    for session in ({}, {"session": "k"}):
        data = load(tmp_path, "log.jsonl", [line | session for line in lines])
        assert data.turns["text"].to_list() == ["1", "3", "5", "7", "9"]
        assert "order" not in str(found(data))


def test_a_role_may_be_a_name_or_another_word(tmp_path: Path) -> None:
    listed = [
        said("Ida", "The boiler is from 2019", role_type="user"),
        said("Helper", "Noted", role_type="assistant"),
        said("customer", "The lamp flickers"),
        said("agent", "Since when?"),
        said("O'Toole", "Since May"),
        {"sender": "GPT-4o", "text": "I see", "isCreatedByUser": False, "role": "x"},
        said("system", "Be brief"),
    ]
    data = load(tmp_path, "zep.json", {"messages": listed})
    assert data.turns.select("speaker", "role").rows() == [
        ("Ida", "user"),
        ("Helper", "assistant"),
        ("customer", "user"),
        ("agent", "user"),
        ("O'Toole", "user"),
        ("x", "assistant"),
    ]
    assert found(data) == [
        ("3 messages of other roles", "kept as those of persons"),
        ("1 system message", "left out"),
    ]
    named = load(tmp_path, "named.json", {"messages": listed}, assistant="agent")
    assert named.turns.filter(speaker="agent")["role"].to_list() == ["assistant"]


def linked(key: str, *ids: tuple[str, str | None]) -> list[dict[str, Any]]:
    """Give messages by their ids and those of their parents."""
    return [
        said("user" if own.startswith("q") else "assistant", own, id=own) | {key: parent}
        for own, parent in ids
    ]


TREE = (("q1", None), ("a1", "q1"), ("a2", "q1"), ("q2", "a1"), ("q3", "a2"), ("a3", "q3"))


@pytest.mark.parametrize("key", ["parentId", "parent_id", "parent", "parentMessageId"])
def test_of_a_tree_the_branch_that_is_shown_is_kept(tmp_path: Path, key: str) -> None:
    data = load(tmp_path, "a.json", {"id": "k", "messages": linked(key, *TREE)})
    assert data.turns["text"].to_list() == ["q1", "a2", "q3", "a3"]
    assert found(data) == [("2 messages of other branches", "left out")]
    shown = {"id": "k", "currNode": "q2", "messages": linked(key, *TREE)}
    assert load(tmp_path, "b.json", shown).turns["text"].to_list() == ["q1", "a1", "q2"]
    lines = [{"type": "session", "id": "k", "currNode": "q2"}]
    lines += [{"type": "message", "message": each} for each in linked(key, *TREE)]
    data = load(tmp_path, "c.jsonl", lines)
    assert told(data) == [("me", "k", text) for text in ("q1", "a1", "q2")]


def test_a_list_whose_messages_follow_each_other_is_no_tree(tmp_path: Path) -> None:
    chain = linked("parentId", ("q1", None), ("a1", "q1"), ("q2", "gone"), ("a2", "q2"))
    data = load(tmp_path, "a.json", {"messages": chain})
    assert data.turns["text"].to_list() == ["q1", "a1", "q2", "a2"], "a gap loses nothing"
    first_alone = [said("user", "one", id="1"), said("assistant", "two", id="2", parentId="1")]
    data = load(tmp_path, "b.json", {"messages": [*first_alone, said("user", "three", id="3")]})
    assert data.turns["text"].to_list() == ["one", "two", "three"]


@pytest.mark.parametrize("timed", [True, False])
def test_the_page_of_an_api_may_have_the_newest_first(tmp_path: Path, timed: bool) -> None:
    roles = ["user", "assistant", "user", "assistant"]
    listed = [
        {"type": "message", "id": f"m{n}"}
        | said(role, str(n))
        | ({"created_at": 1777809600 + n} if timed else {})
        for n, role in enumerate(roles)
    ]
    for data in (listed, listed[::-1]):
        loaded = load(tmp_path, "page.json", {"object": "list", "data": data, "has_more": False})
        assert loaded.turns["text"].to_list() == ["0", "1", "2", "3"]
        assert loaded.issues.is_empty() is timed
    assert found(loaded)[-1:] == (
        [] if timed else [("a list of an API without times", "read as one with the newest first")]
    )


def node(own: str, parent: str | None, text: str, **more: Any) -> dict[str, Any]:
    named = {"id": own} if own else {}
    return {**named, "parentId": parent, "role": "user", "content": text, **more}


BARE_TREES = [
    (
        [said("system", "be kind"), node("q", None, "Q"), node("a", "q", "A"), node("b", "q", "B")],
        "QB",
    ),
    ([said("user", "P"), node("q", None, "Q"), node("a", "q", "A"), node("b", "q", "B")], "PQB"),
    ([said("user", "P"), node("q", "gone", "Q"), node("a", "q", "A"), node("b", "q", "B")], "PQB"),
    ([node("q", None, "Q"), node("a", "q", "A"), node("b", "q", "B"), said("user", "C")], "QBC"),
    ([node("q", None, "Q"), node("a", "q", "A"), said("user", "C"), node("b", "q", "B")], "QB"),
    ([node("q", None, "Q"), said("user", "C"), node("a", "q", "A"), node("b", "q", "B")], "QCB"),
    ([node("q", None, "Q"), node("a", "q", "A"), node("b", "q", "B"), node("", "a", "C")], "QAC"),
    ([node("q", None, "Q"), node("a", "q", "A"), node("b", "q", "B"), node("", None, "C")], "QBC"),
    (
        [
            *(node("q", None, "Q"), node("a", "q", "A"), said("user", "C")),
            *(node("r", None, "R"), node("b", "r", "B")),
        ],
        "RB",
    ),
    (
        [
            *(said("user", "P"), node("q", None, "Q"), node("a", "q", "A")),
            *(node("r", None, "R"), node("b", "r", "B")),
        ],
        "PRB",
    ),
    ([node("q", None, "Q"), None, node("a", "q", "A"), node("b", "q", "B")], "QB"),
    (
        [
            node("q", None, "Q", created_at="2026-02-01T10:00:00Z"),
            node("a", "q", "A", created_at="2026-02-01T10:01:00Z"),
            node("b", "q", "B", created_at="2026-02-01T10:02:00Z"),
            said("user", "C"),
        ],
        "QBC",
    ),
    (
        [
            node("q", None, "Q", created_at="2026-02-01T10:00:00Z"),
            node("a", "q", "A", created_at="2026-02-01T10:02:00Z"),
            node("b", "q", "B", created_at="2026-02-01T10:03:00Z"),
            node("c", "b", "C"),
        ],
        "QBC",
    ),
    (
        [
            said("user", "P", children=[said("user", "Q", id="q")]),
            node("a", "q", "A"),
            node("b", "q", "B"),
        ],
        "PQB",
    ),
]


@pytest.mark.parametrize(("messages", "texts"), BARE_TREES)
def test_a_message_without_an_id_leaves_a_tree_one(
    tmp_path: Path, messages: list[Any], texts: str
) -> None:
    data = load(tmp_path, "x.json", {"id": "c", "messages": messages})
    assert "".join(data.turns["text"]) == texts
    left = data.issues.filter(pl.col("found").str.contains("other branches"))
    spoken = sum(isinstance(each, dict) and each["role"] == "user" for each in messages)
    if "P" in texts and "children" in messages[0]:
        spoken += 1
    assert left["found"].to_list() == [describe_left(spoken - len(texts))]


def describe_left(count: int) -> str:
    return "1 message of other branches" if count == 1 else f"{count} messages of other branches"


def test_what_follows_the_current_message_without_an_id_is_shown(tmp_path: Path) -> None:
    messages = [node("q", None, "Q"), node("a", "q", "A"), said("user", "C"), node("b", "q", "B")]
    raw = {"id": "c", "currentId": "a", "messages": messages}
    assert load(tmp_path, "x.json", raw).turns["text"].to_list() == ["Q", "A", "C"]


def test_trees_of_tools_bear_messages_without_ids(tmp_path: Path) -> None:
    def libre(own: str, parent: str, text: str) -> dict[str, Any]:
        named = {"messageId": own} if own else {}
        return {**named, "parentMessageId": parent, "isCreatedByUser": True, "text": text}

    listed = [libre("q", "0", "Q"), libre("a", "q", "A"), libre("b", "q", "B"), libre("", "b", "C")]
    data = load(tmp_path, "l.json", {"conversationId": "c", "messages": listed})
    assert data.turns["text"].to_list() == ["Q", "B", "C"]
    assert found(data) == [("1 message of other branches", "left out")]

    def claude(own: str, parent: str, text: str) -> dict[str, Any]:
        named = {"uuid": own} if own else {}
        return {**named, "parent_message_uuid": parent, "sender": "human", "text": text}

    listed = [
        claude("q", "0", "Q"),
        claude("a", "q", "A"),
        claude("", "q", "B"),
        claude("c", "a", "C"),
    ]
    data = load(tmp_path, "c.json", [{"uuid": "c", "name": "", "chat_messages": listed}])
    assert data.turns["text"].to_list() == ["Q", "A", "C"]
    assert found(data) == [("1 message of other branches", "left out")]


THOUGHTS = [
    ("<think>\nShe may live in Rome.\n</think>\n\nYes, at six.", "Yes, at six.", 1),
    ("<thinking>Hm.</thinking>Yes.<think>Or no?</think> Yes.", "Yes. Yes.", 2),
    (
        '<details type="reasoning" done="true"><summary>3 s</summary>&gt; so</details>\nAt noon.',
        "At noon.",
        1,
    ),
    ("She asks twice.\n</think>\nNo.", "No.", 1),
    ("Write `<think>` before it.", "Write `<think>` before it.", 0),
    ("```html\n<think>a</think>\n```", "```html\n<think>a</think>\n```", 0),
    ("Hm. Six?</think>Six.", "Six.", 1),
    ("Six.\n<think>Or was it sev", "Six.", 1),
    ("<think>a</think> <think>cut o", "", 2),
    ("Open with <think> and think. I took the 8am boat.", None, 0),
    ("Ask for <reasoning> tags, or [</reasoning>]. Then the boat.", None, 0),
    ("End it with </thinking> and go on.\nThe boat is red.", None, 0),
    ("Write `</think>`, never <think>.\nThe boat is red.", None, 0),
    ("Write <think> then close it with </think> and go on.", None, 0),
    ('Put the steps between "<think>" and "</think>" tags.', None, 0),
    ("Wrap it as <think>…</think>, please.", None, 0),
    ("At six <think>or seven?</think>sharp.", "At six sharp.", 1),
    (
        "<details><summary>Recipe</summary>Salt.</details>",
        "<details><summary>Recipe</summary>Salt.</details>",
        0,
    ),
]


@pytest.mark.parametrize(("text", "rest", "count"), THOUGHTS)
def test_thoughts_in_an_answer_are_left_out_and_in_a_question_kept(
    tmp_path: Path, text: str, rest: str | None, count: int
) -> None:
    data = load(tmp_path, "x.json", {"messages": [said("user", text), said("assistant", text)]})
    spoken = text if rest is None else rest
    assert data.turns["text"].to_list() == [text, *filter(None, [spoken])]
    thoughts = "1 thought" if count == 1 else f"{count} thoughts"
    assert found(data) == [(thoughts, "left out")] * (count > 0)


def test_an_answer_that_is_nothing_but_thoughts_is_counted_as_these(tmp_path: Path) -> None:
    answers = [said("assistant", "<think>Cut off"), said("assistant", "", reasoning_content="So.")]
    data = load(tmp_path, "x.json", {"messages": [said("user", "Hi"), *answers]})
    assert data.turns["text"].to_list() == ["Hi"]
    assert found(data) == [("2 thoughts", "left out")]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({}, {}),
        ({"updatedAt": NOON}, {"updatedAt": "2026-05-03T12:01:00Z"}),
        ({"version": 0}, {"version": 1}),
        ({"version": 9}, {"version": 10}),
    ],
)
@pytest.mark.parametrize("name", ["rows.json", "tree.json", "table.json"])
def test_of_two_versions_the_newer_stays(
    tmp_path: Path, name: str, older: dict[str, Any], newer: dict[str, Any]
) -> None:
    first = said("user", "Dinner at 7", id="1", createdAt=NOON) | older
    second = said("user", "Dinner at 8", id="1", createdAt=NOON) | newer
    last = said("assistant", "Fine", id="2", createdAt=NOON)
    if name == "tree.json":
        last["parentId"] = "1"
    if name == "table.json":
        for row in (first, second, last):
            row["text"] = row.pop("content")
    orders = [[first, second, last], [second, first, last]]
    for rows in orders if older else orders[:1]:
        data = load(tmp_path, name, rows)
        assert data.turns["text"].to_list() == ["Dinner at 8", "Fine"]


TIME_FORMS = [
    "2026-05-03 12:00:00 UTC",
    "2026-05-03 12:00:00 +0000 UTC",
    "2026-05-03 14:00:00.000000 +0200 CEST m=+0.01",
    "Sun, 03 May 2026 12:00:00 GMT",
    "Sun May 03 2026 14:00:00 GMT+0200 (Central European Summer Time)",
    "2026-05-03T12:00:00.000Z[UTC]",
    "20260503T120000Z",
    "May 3, 2026 12:00pm",
    "3 May 2026 12:00",
    "3. May 2026, 12:00:00.000",
    "03 May 2026 12:00 PM",
    "03 May 2026 02:00 PM GMT+0200",
    "Sunday, May 3rd, 2026 at 12:00:00 p.m. UTC",
    "Sun, 3 May 2026 02:00 PM GMT+2",
    "Sun May  3 14:00:00 +0200 2026",
    "Sun May 3 12:00:00 UTC 2026",
    "03-May-2026 14:00:00 +02:00",
    "13/5/2026 12:00",
    "5/13/2026, 12:00:00 PM",
    "13.5.2026 12:00",
    1777809600000000,
    "1777809600000000",
    1777809600000000000,
    {"$date": NOON},
    {"$date": {"$numberLong": "1777809600000"}},
    {"seconds": 1777809600},
    {"_seconds": 1777809600, "_nanoseconds": 0},
    "/Date(1777809600000)/",
]


@pytest.mark.parametrize("form", TIME_FORMS, ids=str)
def test_times_are_read_as_tools_write_them(tmp_path: Path, form: Any) -> None:
    log = load(
        tmp_path, "log.jsonl", [{"scope": "a", "sender": "Ida", "text": "hi", "timestamp": form}]
    )
    chat = load(tmp_path, "chat.json", {"messages": [said("user", "hi", created_at=form)]})
    day = 13 if "13" in str(form)[:5] else 3
    for data in (log, chat):
        assert str(data.turns["timestamp"][0]) == f"2026-05-{day:02} 12:00:00+00:00"


@pytest.mark.parametrize(
    "text",
    [
        *("May 32, 2026", "May 3, 26", "Mai 3, 2026", "May 3 2026 13:00 PM", "May 3, 2026 2025"),
        *("3 4 2026", "May June 2026", "May 3", "Sun May 3 12:00", "May 3, 2026 10:00 Paris"),
        *("May 3 2026 0:10 AM", "May 3 2026 10:00 GMT+99:00", "May 3 2026 24:30"),
        "03 May 2026 10:00 PM CET",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_written_time(text) is None


def test_a_time_is_read_in_a_few_calls_and_once() -> None:
    calls: list[str] = []

    def count(frame: FrameType, event: str, given: Any) -> None:
        calls.append(event)

    texts = [f"Sunday, May 3, 2026 10:{n // 60:02}:{n % 60:02} AM" for n in range(200)]
    parse_written_time.cache_clear()
    counts = []
    for _ in range(2):
        calls.clear()
        sys.setprofile(count)
        try:
            for text in texts:
                parse_written_time(text)
        finally:
            sys.setprofile(None)
        counts.append(len(calls) / len(texts))
    assert counts[0] < 200, "strptime takes about 60 for each form that it tries"
    assert counts[1] < 5


@pytest.mark.parametrize(
    ("times", "month", "why"),
    [
        (["4/5/2026, 09:00:00", "13/5/2026, 09:00:00"], 5, "13 can only be a day"),
        (["4/5/2026, 09:00:00", "4/13/2026, 09:00:00"], 4, "13 can only be a day"),
        (["4/5/2026, 09:00:00", "4/6/2026, 09:00:00", "5/1/2026, 09:00:00"], 4, "in order of time"),
        (["4/5/2026, 9:00:00 AM"], 4, "as in the United States"),
        (["4/5/2026, 09:00:00"], 5, "nothing says it"),
    ],
)
def test_whether_days_or_months_come_first_is_decided_over_the_file_and_said(
    tmp_path: Path, times: list[str], month: int, why: str
) -> None:
    rows = [said("user", f"On 31/12/2025 I moved, {n}", created_at=t) for n, t in enumerate(times)]
    for data in (
        load(tmp_path, "rows.jsonl", rows),
        load(
            tmp_path,
            "log.jsonl",
            [
                {"scope": "a", "sender": "Ida", "text": r["content"], "timestamp": r["created_at"]}
                for r in rows
            ],
        ),
    ):
        assert data.turns["timestamp"].dt.month()[0] == month
        assert [text for text, action in found(data) if why in text and "date_order=" in action]
    named = load(tmp_path, "named.jsonl", rows[:1], date_order="dmy")
    assert named.turns["timestamp"].dt.month()[0] == 5


@pytest.mark.parametrize(
    "key", ["contentParts", "content_blocks", "body", "message", "messageText", "rawContent"]
)
def test_content_is_found_under_other_keys(tmp_path: Path, key: str) -> None:
    parts = [{"type": "text", "text": "book the sauna"}]
    value: Any = parts if "arts" in key or "blocks" in key else parts[0]["text"]
    asked = {"role": "user", "content": "", "id": "1", key: value}
    data = load(tmp_path, "x.json", {"messages": [asked, said("assistant", "Done")]})
    assert data.turns["text"].to_list() == ["book the sauna", "Done"]
    assert data.issues.is_empty()


def test_content_that_is_not_found_is_no_empty_message(tmp_path: Path) -> None:
    lost = {"role": "user", "content": "", "said": "we meet at the harbour"}
    data = load(tmp_path, "x.json", {"messages": [lost, said("user", ""), said("user", "Hi")]})
    assert [text for text, _ in found(data)] == [
        "1 empty message",
        "1 message whose content has an unknown key",
    ]


def test_a_retrieval_folder_of_parquet(tmp_path: Path) -> None:
    def write(place: str, rows: list[dict[str, Any]]) -> None:
        (tmp_path / place).parent.mkdir(exist_ok=True)
        pl.DataFrame(rows).write_parquet(tmp_path / place)

    write(
        "corpus/corpus-00000-of-00002.parquet",
        [{"_id": "d1", "title": "Boats", "text": "leave at noon"}],
    )
    write(
        "corpus/corpus-00001-of-00002.parquet",
        [{"_id": "d2", "title": "", "text": "the lift is broken"}],
    )
    write("queries/queries-00000-of-00001.parquet", [{"_id": "q1", "text": "when do boats leave"}])
    for split, score in (("train", 0), ("test", 1)):
        write(
            f"qrels/{split}-00000-of-00001.parquet",
            [{"query-id": "q1", "corpus-id": "d1", "score": score}],
        )
    data = memlab.load(tmp_path)
    assert data.turns["text"].to_list() == ["Boats leave at noon", "the lift is broken"]
    assert data.questions["evidence"].to_list() == [[data.turns["turn_id"][0]]]


def test_a_conversation_that_goes_on_in_a_later_file_is_one_and_an_id_that_begins_anew_is_another(
    tmp_path: Path,
) -> None:
    for week, listed in enumerate(([ASK, TELL], [ASK, TELL, MORE, LAST], [MORE, LAST])):
        load(tmp_path, f"week-{week}.json", {"id": "7", "messages": listed})
    data = memlab.load(tmp_path)
    assert told(data) == [
        *(("me", "7", text) for text in ALL),
        ("me", "7%20(2)", "Which one?"),
        ("me", "7%20(2)", "14C."),
    ]


def test_a_conversation_that_is_exported_twice_is_read_once(tmp_path: Path) -> None:
    listed = [each | {"id": f"m{n}"} for n, each in enumerate([ASK, TELL, MORE, LAST])]
    for name, size in (("export (1)", 4), ("export", 2)):
        load(tmp_path, f"{name}.json", {"id": "7", "messages": listed[:size]})
    data = memlab.load(tmp_path)
    assert told(data) == [("me", "7", text) for text in ALL]
    assert found(data) == [("2 repeated messages", "left out")]


def test_a_history_that_is_told_again_without_its_thoughts_is_told_once(tmp_path: Path) -> None:
    thought = {"messages": [ASK], "response": "<think>A seat.</think>Noted."}
    data = load(
        tmp_path, "log.jsonl", [thought, {"messages": [ASK, TELL, MORE], "response": "14C."}]
    )
    assert data.turns["text"].to_list() == ALL
    assert data.sessions.height == 1


@pytest.mark.parametrize("key", ["content", "text"])
def test_who_speaks_in_one_file_says_nothing_of_another(tmp_path: Path, key: str) -> None:
    load(tmp_path, "a.jsonl", [{"role": "user", key: "My bus is late", "user_id": "ida"}])
    load(tmp_path, "b.jsonl", [{"role": "user", key: "My train is late"}])
    owner = "me" if key == "content" else "b"
    assert memlab.load(tmp_path).turns.select("scope", "text").rows() == [
        ("ida", "My bus is late"),
        (owner, "My train is late"),
    ]
    lists = [{"id": "1", "messages": [said("user", "one", user_id="ida")]}]
    lists.append({"id": "2", "messages": [said("user", "two")]})
    data = load(tmp_path / "lists", "x.jsonl", lists)
    assert told(data) == [("ida", "1", "one"), ("me", "2", "two")]


def test_a_text_of_a_row_that_is_an_object_is_refused_by_its_place(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(i),
            "sender": "User",
            "session_id": "s0",
            "text": f"level {i}",
            "timestamp": NOON,
        }
        for i in range(3)
    ]
    rows[1]["text"] = {"value": "level four"}
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(rows), "utf-8")
    with pytest.raises(memlab.DataError, match=r"record 2: text: found an object"):
        memlab.load(path)
    data = memlab.load(path, on_error="quarantine")
    assert data.turns["text"].to_list() == ["level 0", "level 2"]


def sessions_of_pairs(
    folder: Path, name: str, keys: tuple[str, str], pairs: list[tuple[str, str]], **fields: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Load a message for each pair of names, and give their sessions, and what is noted."""
    rows = []
    for day, pair in enumerate(pairs, 1):
        names = dict(zip(keys, pair, strict=True))
        said = {"role": "user", "time": f"2026-01-{day:02d}T10:00:00Z", "text": f"Tea, day {day}"}
        rows.append(names | said | fields)
    if name.endswith("csv"):
        pl.DataFrame(rows).write_csv(folder / name)
        data = memlab.load(folder / name)
    else:
        data = load(folder, name, rows)
    sessions = data.turns.sort("timestamp")["session_id"].str.split("/").list.last().to_list()
    return sessions, list(data.issues.select("found", "action").iter_rows())


KEYS = [
    ("session", "conversation"),
    ("session_id", "conversationId"),
    ("Session ID", "Conversation ID"),
    ("session", "chat_id"),
]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
def test_names_of_sessions_begin_anew_with_each_conversation(
    tmp_path: Path, name: str, keys: tuple[str, str]
) -> None:
    """The first sessions of two conversations are two."""
    pairs = [("1", "a"), ("2", "a"), ("1", "b"), ("1", "b")]
    sessions, noted = sessions_of_pairs(tmp_path, name, keys, pairs)
    assert sessions == ["1", "2", "1%20(b)", "1%20(b)"]
    found = f"names of sessions that begin anew with each {keys[1]!r}"
    assert noted == [(found, "a session is one within it")]


def test_a_session_of_several_whole_conversations_is_one_and_said(tmp_path: Path) -> None:
    pairs = [("x", "a"), ("x", "b"), ("y", "c")]
    sessions, noted = sessions_of_pairs(tmp_path, "rows.jsonl", KEYS[1], pairs)
    assert sessions == ["x", "x", "y"]
    found = "several values of 'conversationId' in 1 session"
    assert noted == [(found, "each session is kept as one")]


def test_a_conversation_of_several_sessions_and_a_title_say_nothing(tmp_path: Path) -> None:
    pairs = [("x", "a"), ("y", "a"), ("z", "b")]
    assert sessions_of_pairs(tmp_path, "rows.jsonl", KEYS[0], pairs) == (["x", "y", "z"], [])
    titles = [("x", "New chat"), ("x", "Tea"), ("y", "New chat"), ("y", "Tea")]
    keys = ("session_id", "conversation_title")
    assert sessions_of_pairs(tmp_path, "titles.jsonl", keys, titles) == (["x", "x", "y", "y"], [])


def test_users_have_sessions_of_one_name(tmp_path: Path) -> None:
    rows = []
    for user, session, conversation in [("u", "1", "a"), ("u", "2", "a"), ("v", "1", "b")]:
        names = {"user_id": user, "session": session, "conversation": conversation}
        rows.append(names | {"role": "user", "text": f"Tea of {user}, {session}"})
    data = load(tmp_path, "rows.jsonl", rows)
    assert set(data.turns["session_id"]) == {"u/1", "u/2", "v/1"}
    assert data.issues.is_empty()
