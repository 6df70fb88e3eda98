"""Layouts that tools and people write: calls, wrappers, tables, flags, times, trees, thoughts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from written_files import load

import memlab
from memlab.datasets.thinking_tags import cut_and_count_thoughts
from memlab.errors import DataError
from memlab.records import Dataset

Said = list[tuple[str, str]]


def roles(data: Dataset) -> Said:
    return data.turns.select("role", "text").rows()


def places(data: Dataset) -> list[tuple[str, str, str]]:
    sessions = data.turns["session_id"].str.split("/").list.last()
    return data.turns.select("scope", sessions, "text").rows()


def left_out(data: Dataset) -> list[str]:
    return data.issues.filter(action="left out")["found"].to_list()


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


USER, ANSWER = "The ferry leaves at nine", "Then be there at half past eight"
BOTH = [("user", USER), ("assistant", ANSWER)]
ASKED = {"messages": [said("user", USER)]}
PARTS = {"role": "user", "parts": [{"text": USER}]}
CANDIDATES = [{"content": {"role": "model", "parts": [{"text": ANSWER}]}}]
CONVERSE = {"message": {"role": "assistant", "content": [{"text": ANSWER}]}}
MESSAGE = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": ANSWER}]}
CALLS: dict[str, dict[str, Any]] = {
    "Gemini, a log": {
        "request": {"contents": [PARTS]},
        "response": {"candidates": CANDIDATES},
    },
    "Gemini, request and answer in one": {"contents": [PARTS], "candidates": CANDIDATES},
    "Gemini, to be tuned on": {"contents": [PARTS, CANDIDATES[0]["content"]]},
    "Bedrock, Converse": {
        "schemaType": "ModelInvocationLog",
        "input": {"inputBodyJson": {"messages": [said("user", [{"text": USER}])]}},
        "output": {"outputBodyJson": {"output": CONVERSE, "stopReason": "end_turn"}},
    },
    "Bedrock, InvokeModel": {
        "schemaType": "ModelInvocationLog",
        "input": {"inputBodyJson": ASKED},
        "output": {"outputBodyJson": MESSAGE},
    },
    "Helicone": {
        "request_body": ASKED,
        "response_body": {"choices": [{"message": said("assistant", ANSWER)}]},
    },
    "Cohere": {"message": USER, "chat_history": [], "response": {"text": ANSWER}, "prompt": USER},
    "Dify": {"id": "1", "query": USER, "answer": ANSWER},
    "OpenAI, preferences": {
        "input": ASKED,
        "preferred_output": [said("assistant", ANSWER)],
        "non_preferred_output": [said("assistant", "It has gone")],
    },
    "JSON in texts": {
        "request": json.dumps(ASKED),
        "response": json.dumps({"choices": [{"message": said("assistant", ANSWER)}]}),
    },
    "texts": {"user_message": USER, "bot_response": ANSWER},
    "AI Studio": {
        "chunkedPrompt": {
            "chunks": [{"role": "user", "text": USER}, {"role": "model", "text": ANSWER}]
        }
    },
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_both_halves_of_a_call_are_read(tmp_path: Path, call: dict[str, Any]) -> None:
    data = load(tmp_path, "calls.jsonl", [call])
    assert roles(data) == BOTH
    others = ["1 other answer"] * ("non_preferred_output" in call)
    assert left_out(data) == others


def test_what_was_said_before_a_text_is_read_once(tmp_path: Path) -> None:
    history = [[USER, ANSWER]]
    again = {"instruction": "And on Sunday?", "input": "", "output": "At ten.", "history": history}
    told = [*BOTH, ("user", "And on Sunday?"), ("assistant", "At ten.")]
    assert roles(load(tmp_path, "pairs.json", [again])) == told
    turns = [{"role": "USER", "message": USER}, {"role": "CHATBOT", "message": ANSWER}]
    cohere = {"message": "And on Sunday?", "chat_history": turns, "response": {"text": "At ten."}}
    assert roles(load(tmp_path, "cohere.jsonl", [cohere])) == told


def test_parts_that_a_flag_calls_thoughts_are_left_out_and_counted(tmp_path: Path) -> None:
    thought = {"text": "He asks about ferries", "thought": True}
    candidate = {"content": {"role": "model", "parts": [thought, {"text": ANSWER}]}}
    data = load(tmp_path, "x.jsonl", [{"contents": [PARTS], "candidates": [candidate]}])
    assert (roles(data), left_out(data)) == (BOTH, ["1 thought"])
    chunks = [
        {"role": "user", "text": USER},
        {"role": "model", "text": "He asks about ferries", "isThought": True},
        {"role": "model", "text": ANSWER},
    ]
    prompt = {"chunkedPrompt": {"chunks": chunks}, "systemInstruction": {"text": "Be brief"}}
    data = load(tmp_path, "prompt.json", prompt)
    assert roles(data) == BOTH
    assert left_out(data) == ["1 system message", "1 thought"]


TIME_KEYS = [
    *("createdDate", "Created On", "sentTime", "send_time", "inserted_at", "timestamp_ms"),
    *("messageTimestamp", "date_created", "createdDateTime", "TIMESTAMP", "startTime", "tstamp"),
]


@pytest.mark.parametrize("key", TIME_KEYS)
def test_a_time_is_read_under_whatever_key_it_stands(tmp_path: Path, key: str) -> None:
    rows = [said("user", USER, **{key: 1_770_000_000_000}), said("assistant", ANSWER)]
    data = load(tmp_path, "x.jsonl", rows)
    assert [time and time.timestamp() for time in data.turns["timestamp"]] == [1.77e9, None]


def test_another_date_is_no_time_of_a_message(tmp_path: Path) -> None:
    row = said("user", USER, birthDate="1990-01-01", generation_time=2.5, expires_at="2027-01-01")
    assert load(tmp_path, "x.jsonl", [row]).turns["timestamp"].to_list() == [None]


def test_the_date_of_what_was_looked_up_is_no_time_of_a_message(tmp_path: Path) -> None:
    found = {"source": "notes.md", "date": "2020-01-01", "user_id": "bo"}
    data = load(tmp_path, "m.json", [said("user", USER, context=found)])
    assert data.turns.select("scope", "timestamp").row(0) == ("me", None)


def test_a_time_and_a_user_stand_in_metadata_too(tmp_path: Path) -> None:
    about = {"user_id": "ida", "thread_id": "t1", "created_at": "2026-02-01T10:00:00Z"}
    other = {"user_id": "per", "thread_id": "t1", "created_at": "2026-02-02T10:00:00Z"}
    table = pl.DataFrame(
        {
            "role": ["user", "user"],
            "content": [USER, "It rains"],
            "metadata": [json.dumps(about), json.dumps(other)],
        }
    )
    expected = [("ida", "t1", USER), ("per", "t1", "It rains")]
    for data in (
        load(tmp_path, "x.parquet", table),
        load(tmp_path, "x.csv", table.write_csv()),
        load(
            tmp_path,
            "x.jsonl",
            [
                said("user", USER, additional_kwargs={"metadata": about}),
                said("user", "It rains", extra=other),
            ],
        ),
    ):
        assert places(data) == expected
        assert data.turns["timestamp"].dt.day().to_list() == [1, 2]


def test_headings_of_tables_may_have_capitals(tmp_path: Path) -> None:
    data = load(
        tmp_path,
        "x.csv",
        "Session ID,User ID,Role,Content,Created At\n"
        f"s1,ida,user,{USER},2026-02-01T10:00:00Z\n"
        f"s1,ida,assistant,{ANSWER},2026-02-01T10:00:04Z\n",
    )
    assert places(data) == [("ida", "s1", USER), ("ida", "s1", ANSWER)]
    assert data.turns["timestamp"].null_count() == 0
    data = load(tmp_path, "y.csv", f"Date,Sender,Message\n2026-02-01T10:00:00Z,Ida,{USER}\n")
    assert data.turns.select("speaker", "text").rows() == [("Ida", USER)]
    data = load(tmp_path, "z.csv", f"Timestamp,Sender,Text\n2026-02-01T10:00:00Z,Ida,{USER}\n")
    assert data.turns.select("speaker", "text").rows() == [("Ida", USER)]


FLAGS: list[tuple[str, Any, Any]] = [
    ("is_bot", "false", "true"),
    ("isBot", 0, 1),
    ("fromBot", False, True),
    ("isAI", "no", "yes"),
    ("author_is_bot", "False", "True"),
    ("is_user", "1", "0"),
    ("isHuman", True, False),
    ("sender_type", "customer", "bot"),
    ("user_type", "human", "ai"),
]


@pytest.mark.parametrize(("key", "of_person", "of_bot"), FLAGS)
@pytest.mark.parametrize("text", ["text", "content"])
def test_flags_come_before_names_however_a_tool_writes_them(
    tmp_path: Path, key: str, of_person: Any, of_bot: Any, text: str
) -> None:
    rows = [
        {"sender": "Claude", text: USER, key: of_person},
        {"sender": "Helper", text: ANSWER, key: of_bot},
    ]
    table = pl.DataFrame([{name: str(cell) for name, cell in row.items()} for row in rows])
    for data in (
        load(tmp_path, "x.jsonl", rows),
        load(tmp_path, "x.csv", table.write_csv()),
    ):
        told = data.turns.select("speaker", "role").rows()
        assert told == [("Claude", "user"), ("Helper", "assistant")]


def test_who_speaks_may_be_an_object(tmp_path: Path) -> None:
    messages = [
        {"sender": {"id": 1, "name": "Claude", "type": "user"}, "text": USER},
        {"sender": {"id": 2, "name": "Helper", "type": "bot"}, "text": ANSWER},
    ]
    data = load(tmp_path, "x.json", {"messages": messages})
    told = data.turns.select("speaker", "role").rows()
    assert told == [("Claude", "user"), ("Helper", "assistant")]


def test_a_role_that_is_written_as_a_name_is_said(tmp_path: Path) -> None:
    messages = [said("Claude", USER), said("Ida", ANSWER)]
    data = load(tmp_path, "x.json", {"messages": messages})
    assert any(found.startswith("'Claude', 1 message") for found in data.issues["found"])
    data = load(tmp_path, "x.json", {"messages": messages}, person="Claude")
    assert data.turns.select("speaker", "role").rows() == [("Claude", "user"), ("Ida", "user")]


def test_a_person_whom_the_export_calls_an_assistant_is_said(tmp_path: Path) -> None:
    lines = [
        {"name": "Ida", "message": USER, "isHuman": True},
        {"name": "Nova", "message": ANSWER, "isHuman": False},
    ]
    data = load(tmp_path, "x.json", lines, person="Nova")
    assert roles(data) == BOTH
    kept = data.issues.filter(pl.col("found").str.contains("--person"))
    assert kept["action"].to_list() == ["kept as an assistant's, since the export says so"]


CHATS = [
    {"id": "c1", "title": "Ferry", "messages": [said("user", USER), said("assistant", ANSWER)]},
    {"id": "c2", "title": "Rain", "messages": [said("user", "It rains")]},
]
OF_TWO = [("c1", USER), ("c1", ANSWER), ("c2", "It rains")]
WRAPPERS: dict[str, Any] = {
    "beside a version": {"version": 1, "conversations": CHATS},
    "chats": {"chats": CHATS},
    "threads": {"exportedAt": "2026-02-01T10:00:00Z", "threads": CHATS},
    "pages": {"count": 2, "next": None, "results": CHATS},
    "by their ids": {chat["id"]: chat["messages"] for chat in CHATS},
    "objects by their ids": {"conversations": {chat["id"]: chat for chat in CHATS}},
    "turns": {"sessions": [{"id": chat["id"], "turns": chat["messages"]} for chat in CHATS]},
    "messages by their ids": {
        "chats": [
            {
                "id": chat["id"],
                "messages": {str(n): each for n, each in enumerate(chat["messages"])},
            }
            for chat in CHATS
        ]
    },
}


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
def test_conversations_stand_within_any_object(tmp_path: Path, wrapper: Any) -> None:
    data = load(tmp_path, "x.json", wrapper)
    assert [place[1:] for place in places(data)] == OF_TWO
    noted = load(tmp_path, "x.json", wrapper | {"remark": "a reed grows here"})
    assert noted.turns["text"].equals(data.turns["text"])
    assert left_out(noted) == ["1 text under the key 'remark'"]


def test_objects_around_conversations_are_an_export_only_beside_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    for name, chats in (("one.json", CHATS[:1]), ("two.json", CHATS[1:])):
        (folder / name).write_text(json.dumps({"version": 1, "chats": chats}), "utf-8")
    data = memlab.load(folder)
    assert [place[1:] for place in places(data)] == OF_TWO
    chat = {"name": "Trip", "type": "private_group", "id": 1}
    message = {"id": 1, "type": "message", "from": "Ida", "from_id": "user1", "text": USER}
    export = {**chat, "messages": [{**message, "date_unixtime": "1770000000"}]}
    (folder / "result.json").write_text(json.dumps(export), "utf-8")
    data = memlab.load(folder)
    assert (data.format, data.turns["text"].to_list()) == ("telegram", [USER])
    assert data.issues["found"].to_list() == ["2 other files: one.json, two.json"]


def test_users_with_their_conversations_are_scopes(tmp_path: Path) -> None:
    users = [{"user_id": "ida", "sessions": CHATS}, {"user_id": "per", "sessions": CHATS[1:]}]
    data = load(tmp_path, "x.json", {"users": users})
    expected = [("ida", *place) for place in OF_TWO] + [("per", "c2", "It rains")]
    assert places(data) == expected
    alone = {"conversation": {"id": "c1", "messages": CHATS[0]["messages"]}}
    assert [place[1:] for place in places(load(tmp_path, "y.json", alone))] == OF_TWO[:2]


BRANCHES = [
    {"id": "q", "parentId": None, "role": "user", "content": USER},
    {"id": "a", "parentId": "q", "role": "assistant", "content": "It has gone"},
    {"id": "b", "parentId": "q", "role": "assistant", "content": ANSWER},
]


def test_the_branch_that_is_shown_is_read_of_rows_and_lists_too(tmp_path: Path) -> None:
    rows = [{**row, "text": row["content"]} for row in BRANCHES]
    for row in rows:
        del row["content"]
    in_list = [{"id": "c", "user_id": "u", "chat": {"models": ["m"], "messages": BRANCHES}}]
    for data in (
        load(tmp_path, "rows.jsonl", rows),
        load(tmp_path, "rows.csv", pl.DataFrame(rows, infer_schema_length=None).write_csv()),
        load(tmp_path, "chats.json", in_list),
    ):
        assert (roles(data), left_out(data)) == (BOTH, ["1 message of other branches"])


def test_lines_of_character_ai_need_no_chat_around_them(tmp_path: Path) -> None:
    lines = [
        {"name": "Ida", "message": USER, "isHuman": True},
        {"name": "Nova", "message": ANSWER, "isHuman": False},
    ]
    data = load(tmp_path, "nova.json", lines)
    assert data.format == "character_ai"
    assert places(data) == [("me", "nova", USER), ("me", "nova", ANSWER)]


def test_two_users_of_one_conversation_of_librechat_are_two(tmp_path: Path) -> None:
    def row(user: str, own: str, parent: str, text: str, *, is_user: bool) -> dict[str, Any]:
        ids = {"messageId": own, "parentMessageId": parent, "conversationId": "c"}
        return {**ids, "user": user, "text": text, "isCreatedByUser": is_user}

    rows = [
        row("u1", "1", "0", USER, is_user=True),
        row("u1", "2", "1", ANSWER, is_user=False),
        row("u2", "3", "0", "It rains", is_user=True),
        row("u2", "4", "3", "Take a coat", is_user=False),
    ]
    del rows[1]["user"]
    data = load(tmp_path, "messages.json", rows)
    expected = [("me", USER), ("me", ANSWER), ("u2", "It rains"), ("u2", "Take a coat")]
    assert data.turns.select("scope", "text").rows() == expected
    assert left_out(data) == []


def test_an_answer_without_a_role_is_the_answer_of_its_run(tmp_path: Path) -> None:
    observation = {
        "id": "o",
        "traceId": "t",
        "type": "GENERATION",
        "startTime": "2026-02-01T10:00:00Z",
        "input": [said("user", USER)],
        "output": {"content": ANSWER, "tool_calls": []},
    }
    data = load(tmp_path, "x.jsonl", [observation])
    assert (data.format, roles(data), left_out(data)) == ("langfuse", BOTH, [])


@pytest.mark.parametrize(
    "text",
    [
        "[THINK]a guess[/THINK]Yes",
        "<|START_THINKING|>a guess<|END_THINKING|><|START_RESPONSE|>Yes<|END_RESPONSE|>",
        "<|begin_of_thought|>a guess<|end_of_thought|><|begin_of_solution|>Yes<|end_of_solution|>",
        "<think/>Yes",
        "<think>a guess</thinking>Yes",
    ],
)
def test_thoughts_between_marks_of_other_models(tmp_path: Path, text: str) -> None:
    assert cut_and_count_thoughts(text) == ("Yes", 1)
    assert cut_and_count_thoughts(f"It writes `{text}`.") == (f"It writes `{text}`.", 0)
    rows = [said("user", text), said("assistant", text)]
    data = load(tmp_path, "x.jsonl", rows)
    assert data.turns["text"].to_list() == [text, "Yes"]
    log = [{"scope": "a", "sender": row["role"], "text": row["content"]} for row in rows]
    assert load(tmp_path, "log.jsonl", log).turns["text"].to_list() == [text, "Yes"]


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({"name": "chat", "attributes": {"gen_ai.input.messages": "[]"}}, "OpenTelemetry"),
        ({"resourceSpans": [{"scopeSpans": []}]}, "OpenTelemetry"),
        ({"data": [{"traceID": "t", "spans": [{"tags": []}]}]}, "Jaeger"),
        ([{"content": USER}, {"content": ANSWER}], "without who says them"),
        ({"messages": [{"id": 1, "text": USER}]}, "without who says them"),
        ([USER, ANSWER], "without who says them"),
        ({"question_id": "q", "conversation_a": [], "conversation_b": []}, "Chatbot Arena"),
        ({"message_tree_id": "t", "tree_state": "ready", "prompt": {}}, "Open Assistant"),
    ],
)
def test_layouts_that_are_known_are_refused_by_name(
    tmp_path: Path, record: Any, named: str
) -> None:
    with pytest.raises(DataError, match=named):
        load(tmp_path, "x.json", record)


def test_a_format_that_is_looked_up_imports_no_other_package() -> None:
    code = (
        "import sys; from memlab.registry import formats; formats['chatlog'];"
        "print([name for name in sys.modules if name.startswith('memlab.datasets.importers')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


HUMAN = {"type": "human", "content": USER, "additional_kwargs": {}}
AI = {"type": "ai", "content": ANSWER, "tool_calls": []}
MADE = [
    {"lc": 1, "id": ["langchain", "messages", f"{kind}Message"], "kwargs": {"content": text}}
    for kind, text in (("Human", USER), ("AI", ANSWER))
]
OF_LANGCHAIN: dict[str, Any] = {
    "messages": [HUMAN, AI],
    "a file of a history": [{"type": "human", "data": HUMAN}, {"type": "ai", "data": AI}],
    "objects as they are made": [{**each, "type": "constructor"} for each in MADE],
    "within an object": {"messages": [HUMAN, AI]},
    "a thread of LangGraph": {"thread_id": "t", "values": {"messages": [HUMAN, AI]}},
}


@pytest.mark.parametrize("content", OF_LANGCHAIN.values(), ids=OF_LANGCHAIN)
def test_messages_of_langchain_are_read(tmp_path: Path, content: Any) -> None:
    data = load(tmp_path, "x.json", content)
    assert (data.format, roles(data), left_out(data)) == ("openai_messages", BOTH, [])


def test_a_column_of_conversations_is_read_from_parquet(tmp_path: Path) -> None:
    turns = [
        {"role": "user", "content": USER, "timestamp": None},
        {"role": "assistant", "content": ANSWER, "timestamp": "2026-02-01T10:00:00Z"},
    ]
    table = pl.DataFrame({"conversation_hash": ["h"], "model": ["m"], "conversation": [turns]})
    data = load(tmp_path, "train.parquet", table)
    assert places(data) == [("me", "h", USER), ("me", "h", ANSWER)]
    assert data.turns["timestamp"].is_null().to_list() == [True, False]


def test_words_that_a_row_passes_on_are_marked(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"sender": "Ida", "text": "I live in Moss", "forwarded_from": "Per"},
        {"sender": "Ida", "text": "I live in Bodo", "is_forwarded": "true"},
        {"sender": "Ida", "text": "I live in Hamar", "quoted": "I live in Hamar"},
        {"sender": "Ida", "text": "I live in Narvik", "forwarded": False},
    ]
    contents = [{"role": "user", "content": row.pop("text"), **row} for row in map(dict, rows)]
    for name, content in (("table.jsonl", rows), ("rows.jsonl", contents)):
        data = load(tmp_path, name, content)
        writers = ["Per", "unknown", None, None]
        assert data.turns["forwarded_from"].to_list() == writers
        assert data.turns["quoted"].to_list()[2] == ["I live in Hamar"]


def test_parts_without_a_type_are_texts_thoughts_calls_or_counted(tmp_path: Path) -> None:
    parts = [
        {"text": ANSWER},
        {"reasoningContent": {"reasoningText": {"text": "He asks about ferries"}}},
        {"toolUse": {"name": "timetable", "input": {"q": "ferries of this week"}}},
        {"functionCall": {"name": "timetable", "args": {"q": "ferries of this week"}}},
        {"leaf": {"inner": "an alder grows here"}},
        [{"type": "text", "value": "Bring a coat"}],
    ]
    data = load(tmp_path, "x.jsonl", [said("user", USER), said("assistant", parts)])
    assert roles(data) == [("user", USER), ("assistant", f"{ANSWER}\nBring a coat")]
    assert left_out(data) == ["1 part of the kind 'leaf'", "1 thought", "2 tool calls"]


def test_messages_of_lettas_api_may_begin_with_the_newest(tmp_path: Path) -> None:
    listed = [
        {"id": "2", "date": "2026-02-01T10:00:09Z", "message_type": "assistant_message"},
        {"id": "1", "date": "2026-02-01T10:00:00Z", "message_type": "user_message"},
    ]
    for message, text in zip(listed, (ANSWER, USER), strict=True):
        message["content"] = text
    assert roles(load(tmp_path, "x.json", listed)) == BOTH
    assert roles(load(tmp_path, "x.json", listed[::-1])) == BOTH


def test_a_table_is_no_chat_log_of_lines(tmp_path: Path) -> None:
    data = load(tmp_path, "x.csv", f"timestamp,from,text\n2026-02-01T10:00:00Z,Ida,{USER}\n")
    assert data.turns.select("speaker", "text").rows() == [("Ida", USER)]
    with pytest.raises(DataError, match="is none of the formats"):
        load(tmp_path, "y.csv", f"when,text\n2026-02-01T10:00:00Z,{USER}\n")


def test_a_question_stays_before_an_answer_with_another_clock(tmp_path: Path) -> None:
    listed = [
        {"id": "1", "date": "2026-02-01T10:00:01Z", "message_type": "user_message"},
        {"id": "2", "date": "2026-02-01T10:00:00Z", "message_type": "assistant_message"},
    ]
    for message, text in zip(listed, (USER, ANSWER), strict=True):
        message["content"] = text
    assert roles(load(tmp_path, "letta.json", listed)) == BOTH
    rows = (
        "Conversation,Time,Author,Message\n"
        f"Ferry,2026-02-01T10:00:01Z,Human,{USER}\nFerry,2026-02-01T10:00:00Z,AI,{ANSWER}\n"
    )
    assert roles(load(tmp_path, "copilot.csv", rows)) == BOTH
    greeting = [
        {"name": "Nova", "message": ANSWER, "isHuman": False},
        {"name": "Ida", "message": USER, "isHuman": True},
    ]
    assert roles(load(tmp_path, "cai.json", greeting)) == BOTH[::-1]


SOURCES: dict[str, Any] = {"source": "user", "models_usage": None, "type": "TextMessage"}
AGENT: dict[str, Any] = {"source": "harbour", "models_usage": {"prompt_tokens": 9}}
THREAD = [{**SOURCES, "content": USER}, {**AGENT, "type": "TextMessage", "content": ANSWER}]
CONTEXT = [
    {"content": "Answer in a line", "type": "SystemMessage"},
    {"content": USER, "source": "user", "type": "UserMessage"},
    {"content": ANSWER, "source": "harbour", "type": "AssistantMessage", "thought": "He is late"},
]
OF_AGENT = {"type": "AssistantAgentState", "llm_context": {"messages": CONTEXT}}
PROMPT = {"part_kind": "user-prompt", "content": USER, "timestamp": "2026-02-01T10:00:00Z"}
CALL = {"part_kind": "tool-call", "tool_name": "table", "args": '{"q": "ferries of this week"}'}
TEXT = {"part_kind": "text", "content": ANSWER}
ITEMS = [
    {"$type": "FunctionCallContent", "Name": "table"},
    {"$type": "TextContent", "Text": ANSWER},
]
OF_FRAMEWORKS: dict[str, tuple[Any, list[str]]] = {
    "pydantic-ai": (
        [{"kind": "request", "parts": [PROMPT]}, {"kind": "response", "parts": [CALL, TEXT]}],
        ["1 tool call"],
    ),
    "pydantic-ai within a run": (
        {"run": {"all": [{"kind": "request", "parts": [PROMPT], "instructions": "Be brief"}]}},
        ["1 system message"],
    ),
    "pydantic-ai, several texts": (
        [
            {"kind": "request", "parts": [{**PROMPT, "content": [USER]}]},
            {"kind": "response", "parts": [{"part_kind": "thinking", "content": "Hm"}, TEXT]},
        ],
        ["1 thought"],
    ),
    "Semantic Kernel in .NET": (
        [
            {"Role": {"Label": "user"}, "Items": [{"$type": "TextContent", "Text": USER}]},
            {"Role": {"Label": "Assistant"}, "Items": ITEMS},
        ],
        ["1 tool call"],
    ),
    "Semantic Kernel in .NET, without items": (
        [
            {"role": {"label": "user"}, "content": USER},
            {"role": {"label": "assistant"}, "content": ANSWER},
        ],
        [],
    ),
    "Semantic Kernel in Python": (
        {
            "messages": [
                {"role": "user", "items": [{"content_type": "text", "text": USER}]},
                {"role": "assistant", "items": [{"content_type": "text", "text": ANSWER}]},
                {"role": "tool", "items": [{"content_type": "function_result", "result": "Rain"}]},
            ]
        },
        ["1 tool call"],
    ),
    "Microsoft.Extensions.AI": (
        [
            {"Role": "user", "Contents": [{"$type": "text", "Text": USER}]},
            {"Role": "assistant", "Contents": [{"$type": "text", "Text": ANSWER}]},
        ],
        [],
    ),
    "AutoGen": (
        [*THREAD, {**SOURCES, "type": "StopMessage", "content": "Enough was said"}],
        ["1 system message"],
    ),
    "an agent of AutoGen": (OF_AGENT, ["1 system message", "1 thought"]),
    "a team of AutoGen": (
        {"type": "TeamState", "agent_states": {"a": {"message_thread": THREAD}, "b": OF_AGENT}},
        [
            "1 text under the key 'agent_states.b.llm_context.messages.content'",
            "1 text under the key 'agent_states.b.llm_context.messages.reasoning'",
        ],
    ),
}


@pytest.mark.parametrize(("content", "out"), OF_FRAMEWORKS.values(), ids=OF_FRAMEWORKS)
def test_messages_of_libraries_for_agents_are_read(
    tmp_path: Path, content: Any, out: list[str]
) -> None:
    data = load(tmp_path, "x.json", content)
    assert data.format == "openai_messages"
    assert roles(data) in (BOTH, BOTH[:1])
    assert left_out(data) == out


def test_an_agent_of_autogen_that_no_model_counts_is_said(tmp_path: Path) -> None:
    listed = [*THREAD, {**SOURCES, "source": "planner", "content": "It rains"}]
    data = load(tmp_path, "x.json", listed)
    assert data.turns.select("speaker", "role").row(-1) == ("planner", "assistant")
    assert data.issues["found"].to_list() == ["'planner', 1 message"]
    denied = load(tmp_path, "x.json", listed, person="planner")
    assert denied.turns.select("speaker", "role").row(-1) == ("planner", "user")


@pytest.mark.parametrize(
    ("human", "assistant"), [("\n\nHuman: ", "\n\nAssistant: "), ("### Human: ", "### Assistant: ")]
)
def test_a_conversation_in_one_text_is_read_turn_by_turn(
    tmp_path: Path, human: str, assistant: str
) -> None:
    text = f"{human}{USER}{assistant}{ANSWER}"
    worse = f"{human}{USER}{assistant}It has gone"
    pair = load(tmp_path, "pairs.jsonl", [{"chosen": text, "rejected": worse}])
    assert (roles(pair), left_out(pair)) == (BOTH, ["1 other answer"])
    assert roles(load(tmp_path, "texts.jsonl", [{"text": text, "score": 2}])) == BOTH
    call = {"prompt": f"{human}{USER}{assistant}", "completion": ANSWER}
    assert roles(load(tmp_path, "calls.jsonl", [call])) == BOTH
    quoting = {"prompt": f"Who says {human}{USER}?", "completion": ANSWER}
    first = load(tmp_path, "calls.jsonl", [quoting]).turns["text"][0]
    assert first == quoting["prompt"].strip()


def attributes(**values: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": text}} for key, text in values.items()]


def spans(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(listed)}]}]}


def span(own: str, parent: str, held: dict[str, str], *events: Any) -> dict[str, Any]:
    began = f"17700000{own}000000000"
    about = {"traceId": "t", "spanId": own, "parentSpanId": parent, "startTimeUnixNano": began}
    return about | {"attributes": attributes(**held), "events": list(events)}


def of_parts(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


HELD = {
    "gen_ai.conversation.id": "trip",
    "gen_ai.input.messages": of_parts("user", USER),
    "gen_ai.output.messages": of_parts("assistant", ANSWER),
}
ASKED_EVENT = {"name": "gen_ai.user.message", "attributes": attributes(content=USER)}
CHOICE = json.dumps({"role": "assistant", "content": ANSWER})
ANSWER_EVENT = {"name": "gen_ai.choice", "attributes": attributes(index="0", message=CHOICE)}
INDEXED = {
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": USER,
    "gen_ai.completion.0.content": ANSWER,
    "gen_ai.completion.0.role": "assistant",
}
OPENINFERENCE = {
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.contents.0.message_content.type": "text",
    "llm.input_messages.0.message.contents.0.message_content.text": USER,
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": ANSWER,
}
SPANS: dict[str, tuple[Any, list[str]]] = {
    "attributes": (spans(span("10", "", HELD)), []),
    "an agent around a model": (
        spans(span("10", "", HELD), span("11", "10", HELD), span("12", "11", {"http.route": "/"})),
        ["1 span within others", "1 span without messages"],
    ),
    "events": (spans(span("10", "", {}, ASKED_EVENT, ANSWER_EVENT)), []),
    "numbered attributes": (spans(span("10", "", INDEXED)), []),
    "OpenInference": (
        {"name": "llm", "context": {"trace_id": "1", "span_id": "2"}, "attributes": OPENINFERENCE},
        [],
    ),
    "the AI SDK": (
        spans(span("10", "", {"ai.prompt": json.dumps(ASKED), "ai.response.text": ANSWER})),
        [],
    ),
    "a span that was sent twice": (
        spans(span("10", "", HELD), span("10", "", HELD)),
        ["1 repeated span"],
    ),
}


@pytest.mark.parametrize(("content", "out"), SPANS.values(), ids=SPANS)
def test_spans_of_opentelemetry_are_read(tmp_path: Path, content: Any, out: list[str]) -> None:
    data = load(tmp_path, "x.json", content)
    assert (data.format, roles(data), left_out(data)) == ("opentelemetry", BOTH, out)


def test_calls_of_one_conversation_are_a_session_of_its_user(tmp_path: Path) -> None:
    history = [json.loads(HELD["gen_ai.input.messages"])[0]]
    history += json.loads(HELD["gen_ai.output.messages"])
    history += json.loads(of_parts("user", "And on Sunday?"))
    more = HELD | {"gen_ai.input.messages": json.dumps(history), "user.id": "ida"}
    more["gen_ai.output.messages"] = of_parts("assistant", "At ten.")
    data = load(
        tmp_path, "x.json", spans(span("10", "", HELD | {"user.id": "ida"}), span("20", "", more))
    )
    told = [USER, ANSWER, "And on Sunday?", "At ten."]
    assert places(data) == [("ida", "trip", text) for text in told]
    assert data.turns["timestamp"].is_null().sum() == 0


def heard(own: str, role: str, *content: Any) -> dict[str, Any]:
    return {"id": own, "type": "message", "role": role, "content": list(content)}


def test_events_of_the_realtime_api_are_read_as_messages(tmp_path: Path) -> None:
    made = "conversation.item.created"
    spoken = "conversation.item.input_audio_transcription.completed"
    answer = heard("b", "assistant", {"type": "audio", "transcript": ANSWER})
    typed = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Bye"}]}
    events = [
        {"type": "session.created", "session": {"id": "s", "instructions": "Be brief"}},
        {"type": made, "item": heard("a", "user", {"type": "input_audio", "transcript": None})},
        {"type": made, "previous_item_id": "a", "item": heard("b", "assistant")},
        {"type": "response.audio_transcript.delta", "item_id": "b", "delta": ANSWER[:7]},
        {"type": "response.audio_transcript.delta", "item_id": "b", "delta": ANSWER[7:]},
        {"type": spoken, "item_id": "a", "content_index": 0, "transcript": USER},
        {"type": "response.done", "response": {"output": [answer]}},
        {"type": "conversation.item.create", "item": typed},
        {"type": made, "previous_item_id": "b", "item": {"id": "c", **typed}},
    ]
    told = [*BOTH, ("user", "Bye")]
    data = load(tmp_path, "x.jsonl", events)
    assert (data.format, roles(data)) == ("openai_realtime", told)
    assert left_out(data) == ["1 system message"]
    without_whole = [*events[:6], *events[7:]]
    assert roles(load(tmp_path, "x.jsonl", without_whole)) == told
    lines = [{"at": f"2026-02-01T10:00:0{n}Z", "event": e} for n, e in enumerate(events)]
    assert roles(load(tmp_path, "y.jsonl", lines)) == told
