"""Forms in which conversations lie on disks: calls, rows, trees, times, words of others, copies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from written_files import load

import memlab
from memlab.datasets import record_fields, time_forms
from memlab.datasets.message_columns import tabulate_json_lines
from memlab.datasets.role_words import normalise_role
from memlab.datasets.thinking_tags import cut_and_count_thoughts
from memlab.errors import DataError
from memlab.records import Dataset
from memlab.text.quotations import find_quotations

ASKED, ANSWERED = "The kayak is behind the shed", "Then it is dry at least"
BOTH = [("user", ASKED), ("assistant", ANSWERED)]
NOON = "2026-04-05T12:00:00Z"


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def roles(data: Dataset) -> list[tuple[str, str]]:
    return data.turns.select("role", "text").rows()


def places(data: Dataset) -> list[tuple[str, str, str]]:
    sessions = pl.col("session_id").str.split("/").list.last()
    return data.turns.select("scope", sessions, "text").rows()


def issues(data: Dataset) -> list[tuple[str, str]]:
    return data.issues.select("found", "action").rows()


REQUEST = {"messages": [said("user", ASKED)]}
CHOICE = {"choices": [{"message": said("assistant", ANSWERED)}]}
HALF, REST = ANSWERED[:9], ANSWERED[9:]
DELTAS = [{"choices": [{"delta": {"content": part}}]} for part in (HALF, REST)]
EVENTS = "".join(f"data: {json.dumps(delta)}\n\n" for delta in DELTAS)
CALLS: dict[str, dict[str, Any]] = {
    "chunks of a stream": {"request": REQUEST, "response": DELTAS},
    "server-sent events": {"request": REQUEST, "response": f"{EVENTS}data: [DONE]\n"},
    "Anthropic's stream": {
        "request": REQUEST,
        "response": [
            {"type": "content_block_delta", "delta": {"thinking": "is it dry there"}},
            {"type": "content_block_delta", "delta": {"text": HALF}},
            {"type": "content_block_delta", "delta": {"text": REST}},
        ],
    },
    "a stream of responses": {
        "request": {"input": ASKED},
        "response": [
            {"type": "response.output_text.delta", "delta": HALF},
            {"type": "response.completed", "response": {"output_text": ANSWERED}},
        ],
    },
    "Ollama's stream": {
        "request": REQUEST,
        "response": [
            {"message": {"content": HALF}, "done": False},
            {"message": {"content": REST}, "done": True},
        ],
    },
    "Gemini's stream": {
        "request": REQUEST,
        "response": [
            {"candidates": [{"content": {"parts": [{"text": HALF}]}}]},
            {"candidates": [{"content": {"parts": [{"text": REST}]}}]},
        ],
    },
    "Ollama, generate": {"request": {"prompt": ASKED}, "response": {"response": ANSWERED}},
    "Titan of Bedrock": {
        "input": {"inputBodyJson": {"inputText": ASKED}},
        "output": {"outputBodyJson": {"results": [{"outputText": ANSWERED}]}},
    },
    "Llama of Bedrock": {
        "input": {"inputBodyJson": {"prompt": ASKED}},
        "output": {"outputBodyJson": {"generation": ANSWERED}},
    },
    "Weave": {"op_name": "chat", "inputs": REQUEST, "output": CHOICE},
    "LiteLLM": {"trace_id": "t", "startTime": 1775390400.5, **REQUEST, "response": CHOICE},
    "LiteLLM, as texts": {
        "request_id": "r",
        "messages": json.dumps(REQUEST["messages"]),
        "response": json.dumps(CHOICE),
    },
    "bodies as texts": {
        "request": {"url": "/chat", "body": json.dumps(REQUEST)},
        "response": {"status": 200, "body": json.dumps(CHOICE)},
    },
    "PromptLayer": {"prompt": {"type": "chat", **REQUEST}, "llm_response": ANSWERED},
    "inputs and outputs": {"inputs": ASKED, "outputs": ANSWERED},
    "a generated text": {"inputs": ASKED, "generated_text": ANSWERED},
    "a query and its response": {"query": ASKED, "response": ANSWERED},
    "Cohere": {"message": ASKED, "text": ANSWERED, "generation_id": "g"},
}


@pytest.mark.parametrize("form", CALLS)
def test_both_halves_of_a_logged_call_are_read(tmp_path: Path, form: str) -> None:
    data = load(tmp_path, "calls.jsonl", [CALLS[form]])
    assert data.format == "openai_messages"
    assert roles(data) == BOTH


PLAIN = [delta["choices"][0]["delta"]["content"] for delta in DELTAS]
THINKING: dict[str, list[dict[str, Any]]] = {
    "OpenAI": [{"choices": [{"delta": {"reasoning_content": "is it dry there"}}]}, *DELTAS],
    "Ollama": [
        {"message": {"thinking": "is it dry there"}, "done": False},
        *({"message": {"content": part}, "done": False} for part in PLAIN),
    ],
    "Gemini": [
        {"candidates": [{"content": {"parts": [{"text": "is it dry there", "thought": True}]}}]},
        *({"candidates": [{"content": {"parts": [{"text": part}]}}]} for part in PLAIN),
    ],
    "Anthropic": [
        {"type": "content_block_delta", "delta": {"thinking": "is it dry there"}},
        *({"type": "content_block_delta", "delta": {"text": part}} for part in PLAIN),
    ],
}


@pytest.mark.parametrize("tool", THINKING)
def test_thoughts_and_tools_of_a_stream_are_counted(tmp_path: Path, tool: str) -> None:
    parts = THINKING[tool]
    data = load(tmp_path, "calls.jsonl", [{"request": REQUEST, "response": parts}])
    assert roles(data) == BOTH
    assert issues(data) == [("1 thought", "left out")]
    called = [{"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}, *DELTAS]
    data = load(tmp_path, "calls.jsonl", [{"request": REQUEST, "response": called}])
    assert issues(data) == [("1 tool call", "left out")]


def test_the_history_of_a_call_of_cohere_stands_before_it(tmp_path: Path) -> None:
    history = [{"role": "USER", "message": "Is it dry"}, {"role": "CHATBOT", "message": "What?"}]
    request = {"message": ASKED, "chat_history": history}
    for call in (
        {"request": request, "response": {"text": ANSWERED}},
        request | {"text": ANSWERED},
    ):
        data = load(tmp_path, "calls.jsonl", [call])
        assert roles(data) == [("user", "Is it dry"), ("assistant", "What?"), *BOTH]


def test_a_session_of_helicone_is_that_of_its_calls(tmp_path: Path) -> None:
    about = {"request_user_id": "ann", "request_properties": {"Helicone-Session-Id": "s4"}}
    data = load(tmp_path, "h.jsonl", [about | {"request_body": REQUEST, "response_body": CHOICE}])
    assert places(data) == [("ann", "s4", ASKED), ("ann", "s4", ANSWERED)]


KEYS = [
    ("user_uuid", "conversation_uuid"),
    ("member_id", "channel_id"),
    ("external_user_id", "chat_session_id"),
    ("patientId", "encounterId"),
    ("visitor_id", "visit_id"),
    ("User Email", "Ticket Number"),
    ("profile_id", "conversation_name"),
]


@pytest.mark.parametrize(("user_key", "thread_key"), KEYS)
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_keys_name_users_and_threads_by_their_words(
    tmp_path: Path, name: str, user_key: str, thread_key: str
) -> None:
    rows = []
    for user, thread, text in (("ida", "a", "It is red"), ("per", "b", "It is blue")):
        rows.append(said("user", text, id="1") | {user_key: user, thread_key: thread})
    data = load(tmp_path, name, rows)
    assert places(data) == [("ida", "a", "It is red"), ("per", "b", "It is blue")]
    assert data.issues.is_empty()


@pytest.mark.parametrize("text_key", ["content", "text"])
def test_ids_that_begin_anew_tell_conversations_apart(tmp_path: Path, text_key: str) -> None:
    """Whatever the key is called: nothing is taken for another version of a message."""
    rows = []
    for desk in ("north", "south"):
        for number, role in enumerate(("user", "assistant")):
            text = f"{role} of the {desk}"
            rows.append({"desk_id": desk, "id": number, "role": role, text_key: text})
    data = load(tmp_path, "rows.json", rows)
    assert data.turns["session_id"].str.split("/").list.last().to_list() == [
        *("north", "north", "south", "south")
    ]
    found = ("ids that begin anew with each 'desk_id'", "each is read as a conversation")
    assert found in issues(data)


def test_versions_of_a_message_are_no_conversations(tmp_path: Path) -> None:
    rows = [
        said("user", "At seven", id="1", version=1),
        said("user", "At eight", id="1", version=2),
    ]
    data = load(tmp_path, "rows.json", rows)
    assert data.turns["text"].to_list() == ["At eight"]


def test_objects_say_whose_a_row_is(tmp_path: Path) -> None:
    about = [
        {"userId": {"$oid": "u1"}, "conversationId": {"$oid": "c1"}},
        {"context": {"user_id": "u1", "session_id": "c1"}},
        {"user": {"externalId": "u1"}, "session": {"id": "c1"}},
    ]
    for named in about:
        data = load(tmp_path, "rows.json", [said("user", ASKED) | named])
        assert places(data) == [("u1", "c1", ASKED)]
    around = {"conversation": {"id": "c1", "user": {"id": "u1"}}, **REQUEST}
    assert places(load(tmp_path, "c.json", [around])) == [("u1", "c1", ASKED)]


@pytest.mark.parametrize("key", ["parentID", "parent_uuid", "previous_message_id", "prevId"])
def test_messages_name_the_one_before_them(tmp_path: Path, key: str) -> None:
    messages = [said("user", ASKED, id="q")]
    messages.append(said("assistant", "It is wet", id="a") | {key: "q"})
    messages.append(said("assistant", ANSWERED, id="b") | {key: "q"})
    data = load(tmp_path, "c.json", [{"id": "c", "messages": messages}])
    assert roles(data) == BOTH
    shown = {"id": "c", "messages": messages, "current_leaf_message_uuid": "a"}
    assert roles(load(tmp_path, "c.json", [shown]))[1] == ("assistant", "It is wet")


THOUGHTS = [
    f"<scratchpad>is it dry there</scratchpad>{ANSWERED}",
    f"<reflection>is it dry there</reflection>\n{ANSWERED}",
    f"<inner_monologue>is it dry there</inner_monologue>{ANSWERED}",
    f"<details><summary>Thought for 4 s</summary>is it dry</details>\n{ANSWERED}",
    f"<|channel>thought\nis it dry there<channel|>{ANSWERED}",
    f"<unused94>thought\nis it dry there<unused95>{ANSWERED}",
]


@pytest.mark.parametrize("text", THOUGHTS)
def test_thoughts_are_left_out_of_answers_only(tmp_path: Path, text: str) -> None:
    data = load(tmp_path, "c.jsonl", [{"messages": [said("user", text), said("assistant", text)]}])
    assert data.turns["text"].to_list() == [text, ANSWERED]
    assert issues(data) == [("1 thought", "left out")]


def test_what_is_folded_away_and_no_thought_stays() -> None:
    text = "<details><summary>More about kayaks</summary>They float.</details>"
    assert cut_and_count_thoughts(text) == (text, 0)


TIMES: list[tuple[Any, str]] = [
    (46117.5, NOON),
    ("46117.5", NOON),
    ({"$timestamp": {"t": 1775390400, "i": 1}}, NOON),
    ("2026-04-05 12:00:00 America/New_York", "2026-04-05T16:00:00Z"),
    ("2026-04-05 12:00:00 CEST", "2026-04-05T10:00:00Z"),
    ("2026-4-5 9:5:3", "2026-04-05T09:05:03Z"),
    ("2026年4月5日 12:00", NOON),
]


@pytest.mark.parametrize(("written", "right"), TIMES)
def test_times_are_read_in_more_forms(tmp_path: Path, written: Any, right: str) -> None:
    expected = pl.Series([right]).str.to_datetime(time_zone="UTC", time_unit="us").to_list()
    log = {"scope": "a", "sender": "Ann", "text": ASKED, "timestamp": written}
    assert load(tmp_path, "log.jsonl", [log]).turns["timestamp"].to_list() == expected
    message = said("user", ASKED, created_at=written)
    data = load(tmp_path, "c.json", [{"messages": [message]}])
    assert data.turns["timestamp"].to_list() == expected


def test_days_of_a_spreadsheet_are_said_once(tmp_path: Path) -> None:
    said_by = {"scope": "a", "sender": "Ann", "text": ASKED}
    lines = [said_by | {"timestamp": day} for day in (46117.25, 46117.5)]
    raw = "\n".join(map(json.dumps, lines)).encode()
    assert tabulate_json_lines(raw, frozenset()) is None
    data = load(tmp_path, "log.jsonl", lines)
    found = (
        "46117.25 (a number) and the like",
        "read as days since 1900, as spreadsheets count them",
    )
    assert issues(data).count(found) == 1
    assert record_fields.is_spreadsheet_day_count(1775390400.5) is False


def test_a_zone_that_nobody_knows_makes_no_time() -> None:
    assert time_forms.parse_written_time("2026-04-05 12:00:00 Moon/Base") is None
    assert time_forms.parse_written_time("2026-04-05 12:00:00 XYZ") is None


def test_the_date_of_a_session_is_that_of_its_messages(tmp_path: Path) -> None:
    record = {"id": "c", "session_date": "2026-04-05T12:00:00Z", **REQUEST}
    data = load(tmp_path, "c.json", [record])
    assert data.turns["timestamp"].dt.hour().to_list() == [12]


def test_a_time_in_words_is_no_text_that_was_left_out(tmp_path: Path) -> None:
    data = load(tmp_path, "c.json", [{"created_at": "Sun, 5 Apr 2026 12:00:00 GMT", **REQUEST}])
    assert [found for found, _ in issues(data)] == ["1 time of conversations"]


QUOTED = [
    ("Per, [05.04.2026 12:00]\nI live in Vardø", "I live in Vardø"),
    ("RT @per: I live in Vardø", "I live in Vardø"),
    ('Shorten it\n"""\nI live in Vardø\n"""\nThanks', "I live in Vardø"),
    ("Forwarded message\nI live in Vardø", "I live in Vardø"),
]


@pytest.mark.parametrize(("text", "words"), QUOTED)
def test_words_of_others_are_found(tmp_path: Path, text: str, words: str) -> None:
    assert find_quotations(text, speaker="Ann") == [words]
    log = {"scope": "a", "sender": "Ann", "text": text, "timestamp": NOON}
    assert load(tmp_path, "log.jsonl", [log]).turns["quoted"].to_list() == [[words]]


def test_a_block_of_code_is_no_quotation() -> None:
    assert find_quotations("```python\nprint(4)\n```") == []
    assert find_quotations("Ann, [05.04.2026 12:00]\nI live in Vardø", speaker="Ann") == []


def test_what_was_saved_in_telegram_is_its_writers(tmp_path: Path) -> None:
    message = {"id": 1, "type": "message", "date_unixtime": "1775390400", "from": "Ann"}
    message |= {"from_id": "user1", "text": "I live in Vardø", "saved_from": "Per"}
    chat = {"name": "Saved", "type": "saved_messages", "id": 4, "messages": [message]}
    data = load(tmp_path, "result.json", chat)
    assert data.turns["forwarded_from"].to_list() == ["Per"]


def test_what_was_pasted_beside_a_request_is_not_the_users_own(tmp_path: Path) -> None:
    pasted = "I live in Vardø and fish"
    message = {"uuid": "m", "sender": "human", "text": "Shorten this", "created_at": NOON}
    message["attachments"] = [{"file_name": "", "extracted_content": pasted}]
    chat = {"uuid": "c", "account": {"uuid": "a"}, "chat_messages": [message]}
    data = load(tmp_path, "conversations.json", [chat])
    assert data.turns["quoted"].to_list() == [[pasted]]
    message["text"] = ""
    assert load(tmp_path, "conversations.json", [chat]).turns["quoted"].to_list() == [None]


def test_a_chat_with_the_newest_first_is_turned_round(tmp_path: Path) -> None:
    messages = []
    for number in (3, 2, 1):
        author = {"id": "1", "name": "ann", "isBot": False}
        message = {"id": str(number), "type": "Default", "content": f"number {number}"}
        when = f"2026-04-05T12:0{number}:00+00:00"
        messages.append(message | {"timestamp": when, "author": author})
    export = {"guild": {"id": "1"}, "channel": {"id": "2", "name": "c"}, "messages": messages}
    data = load(tmp_path, "c.json", export)
    assert data.turns["text"].to_list() == ["number 1", "number 2", "number 3"]
    export["messages"] = messages[:2]  # the clock of an answer may step back
    data = load(tmp_path, "c.json", export)
    assert data.turns["text"].to_list() == ["number 3", "number 2"]


def test_times_that_are_raised_are_counted(tmp_path: Path) -> None:
    nodes: dict[str, Any] = {"r": {"id": "r", "parent": None, "children": ["0"], "message": None}}
    for number, when in enumerate((20.0, 10.0, 30.0)):
        own = str(number)
        message = {"id": own, "author": {"role": "user"}, "create_time": 1.775e9 + when}
        message["content"] = {"content_type": "text", "parts": [f"number {number}"]}
        before = "r" if number == 0 else str(number - 1)
        node = {"id": own, "parent": before, "children": [str(number + 1)], "message": message}
        nodes[own] = node
    nodes["2"]["children"] = []
    chat = {"conversation_id": "c", "current_node": "2", "mapping": nodes}
    data = load(tmp_path, "conversations.json", [chat])
    assert ("1 time before that of the message above", "raised to it") in issues(data)
    assert data.turns["timestamp"].dt.second().to_list() == [40, 40, 50]


def test_of_two_copies_of_a_conversation_the_newer_is_read(tmp_path: Path) -> None:
    copies = []
    for hour, answer in ((9, "At eight"), (8, "At seven")):
        messages = [said("user", "When is it"), said("assistant", answer)]
        when = f"2026-04-05T0{hour}:00:00Z"
        copies.append({"id": "c", "updated_at": when, "messages": messages})
    data = load(tmp_path, "copies.json", copies)
    assert data.turns["text"].to_list() == ["When is it", "At eight"]
    assert ("1 older version of conversations", "left out") in issues(data)
    copies[1]["messages"][0] = said("user", "Another chat")
    assert load(tmp_path, "copies.json", copies).turns.height == 4


def test_of_two_exports_of_open_webui_the_newer_chat_is_read(tmp_path: Path) -> None:
    for folder, changed, text in (("a", 1775390500, "At eight"), ("b", 1775390400, "At seven")):
        message = {"id": "q", "parentId": None, "childrenIds": [], **said("user", text)}
        history = {"currentId": "q", "messages": {"q": message}}
        chat = {"id": "c", "updated_at": changed, "chat": {"history": history}}
        load(tmp_path, f"{folder}/chat-export.json", [chat])
    assert memlab.load(tmp_path).turns["text"].to_list() == ["At eight"]


def test_words_for_assistants_are_roles() -> None:
    words = ["ai_agent", "Virtual Assistant", "chat-bot", "voicebot", "agent ai"]
    assert set(map(normalise_role, words)) == {"assistant"}
    assert list(map(normalise_role, ["agent", "support", "travel agent"])) == [None, None, None]


REFUSED: list[tuple[str, Any, str]] = [
    ("r.json", [{"_id": "1", "rid": "r", "msg": "Hi", "u": {"username": "ann"}}], "Rocket.Chat"),
    ("m.json", [{"origin_server_ts": 1, "sender": "@a", "content": {"body": "Hi"}}], "Matrix"),
    ("s.jsonl", [{"envelope": {"dataMessage": {"message": "Hi there you"}}}], "signal-cli"),
    ("c.json", {"composerId": "x", "conversation": [{"bubbleId": "b", "text": "Hi"}]}, "Cursor"),
    ("z.json", {"messages": [{"User": {"content": [{"Text": "Hi"}]}}]}, "Zed"),
    ("h.json", {"log": {"version": "1.2", "entries": [{"request": {}}]}}, "HAR"),
    ("a.md", "# aider chat started at 2026-04-05 12:00:00\n\n#### Hi\n", "Aider"),
    ("w.txt", "2026-04-05 12:00:00 Ann\nIs it dry\n", "WeChat"),
    ("d.js", 'window.YTD.direct_messages.part0 = [{"a": 1}]', "Twitter"),
    ("s.xml", "<?xml version='1.0'?>\n<smses count='1'></smses>", "SMS Backup"),
    ("p.json", {"Ann": [{"From": "a", "Media Type": "TEXT", "Created": "x"}]}, "Snapchat"),
]


@pytest.mark.parametrize(("name", "content", "called"), REFUSED)
def test_more_tools_are_named_where_their_files_are_refused(
    tmp_path: Path, name: str, content: Any, called: str
) -> None:
    with pytest.raises(DataError, match=f"looks like .*{called}"):
        load(tmp_path, name, content)


def test_a_database_dump_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is none of the formats"):
        load(tmp_path, "d.json", [{"_id": "1", "colour": "red"}])


def test_an_empty_folder_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="it is empty"):
        memlab.load(tmp_path)
