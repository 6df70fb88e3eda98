"""Exports of assistants and of what watches them: who spoke, which branch was kept, what was left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.records import Dataset


def load(folder: Path, content: Any, name: str = "conversations.json") -> Dataset:
    """Write an export and load it; a list of lists of records is JSON lines."""
    file = folder / name
    if name.endswith("jsonl"):
        file.write_text("\n".join(json.dumps(each) for each in content))
    else:
        file.write_text(json.dumps(content))
    return memlab.load(file)


def said(data: Dataset) -> list[tuple[str, str]]:
    return data.turns.select("role", "text").rows()


def counts(data: Dataset) -> set[str]:
    return set(data.issues.filter(data.issues["where"].str.ends_with(": export"))["found"])


def node(key: str, parent: str | None, role: str = "user", parts: Any = None, **more: Any) -> dict[str, Any]:
    content = {"content_type": more.pop("kind", "text"), "parts": parts if isinstance(parts, list) else [parts or key]}
    message = {"id": key, "author": {"role": role}, "content": content, "create_time": more.pop("at", 1772355600.0)}
    return {"id": key, "parent": parent, "children": [], "message": message | more}


def chatgpt(*nodes: dict[str, Any], current: str | None = None) -> list[dict[str, Any]]:
    root = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {each["id"]: each for each in (root, *nodes)}
    return [{"title": "T", "create_time": 1.0, "mapping": mapping, "current_node": current, "conversation_id": "c"}]


def test_chatgpt_keeps_the_branch_of_the_current_node(tmp_path: Path) -> None:
    nodes = [node("u1", "root"), node("a1", "u1", "assistant"), node("a2", "u1", "assistant", at=1772355700.0)]
    assert said(load(tmp_path, chatgpt(*nodes, current="a1"))) == [("user", "u1"), ("assistant", "a1")]
    data = load(tmp_path, chatgpt(*nodes, current="gone"))
    assert said(data) == [("user", "u1"), ("assistant", "a2")]  # the newest leaf
    assert "1 message of other branches" in counts(data)


def test_chatgpt_leaves_out_what_was_not_said(tmp_path: Path) -> None:
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    voice = {"content_type": "audio_transcription", "text": "spoken words", "direction": "in"}
    nodes = [
        node("s", "root", "system", metadata={"is_visually_hidden_from_conversation": True}),
        node("ctx", "s", "user", kind="user_editable_context"),
        node("u1", "ctx", parts=[pointer, "what is this?"], kind="multimodal_text",
             metadata={"attachments": [{"name": "crown.png", "mime_type": "image/png"}]}),
        node("code", "u1", "assistant", recipient="python", kind="code"),
        node("out", "code", "tool", kind="execution_output"),
        node("canvas", "out", "assistant", recipient="canmore.create_textdoc"),
        node("think", "canvas", "assistant", kind="thoughts"),
        node("a1", "think", "assistant", parts="A crown.\ue200cite\ue202turn0search1\ue201", at=None),
        node("u2", "a1", parts=[{"content_type": "audio_asset_pointer"}, voice], kind="multimodal_text"),
    ]  # fmt: skip
    data = load(tmp_path, chatgpt(*nodes, current="u2"))
    assert said(data) == [("user", "what is this?"), ("assistant", "A crown."), ("user", "spoken words")]
    assert data.turns["caption"].to_list()[:2] == ["image: crown.png", None]
    assert data.turns["timestamp"].null_count() == 1
    assert {"2 system messages", "3 tool calls", "1 thought", "1 image"} <= counts(data)


def claude(*messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"uuid": "k", "name": "N", "account": {"uuid": "acc"}, "chat_messages": list(messages), **more}]


def test_claude_keeps_the_newest_branch_and_names_files(tmp_path: Path) -> None:
    def message(key: str, sender: str, parent: str, blocks: list[Any], **more: Any) -> dict[str, Any]:
        about = {"uuid": key, "sender": sender, "parent_message_uuid": parent, "text": "not this", "content": blocks}
        return about | {"created_at": f"2026-03-01T09:00:0{key[-1]}Z", "attachments": [], "files": []} | more

    root, text = "00000000-0000-4000-8000-000000000000", [{"type": "text", "text": "words"}]
    tools = [{"type": "tool_use", "name": "web"}, {"type": "tool_result", "content": []}, {"type": "thinking"}]
    export = claude(
        message("m1", "human", root, text, files=[{"file_name": "plan.pdf"}]),
        message("m2", "assistant", "m1", text),
        message("m3", "assistant", "m1", [*tools, {"type": "text", "text": "newer"}]),
        message("m4", "human", "m3", [], text="", attachments=[{"file_name": "", "extracted_content": "a long paste"}]),
        message("m5", "assistant", "m4", tools),
    )
    data = load(tmp_path, export)
    assert said(data) == [("user", "words"), ("assistant", "newer"), ("user", "a long paste")]
    assert data.turns["caption"][0] == "file: plan.pdf"
    assert counts(data) == {"1 message of other branches", "4 tool calls", "2 thoughts"}
    again = load(tmp_path, claude(*export[0]["chat_messages"], current_leaf_message_uuid="m2"))
    assert said(again) == [("user", "words"), ("assistant", "words")]


def test_claude_accounts_are_scopes(tmp_path: Path) -> None:
    one, two = ({"uuid": key, "sender": "human", "text": "hi", "content": []} for key in "ab")
    export = [*claude(one), claude(two)[0] | {"account": {"uuid": "other"}}]
    assert load(tmp_path, export).scopes == ["me", "other"]


def test_claude_code_is_what_people_and_claude_said(tmp_path: Path) -> None:
    def line(key: str, role: str, content: Any, **more: Any) -> dict[str, Any]:
        about = {"type": role, "sessionId": "s", "uuid": key, "timestamp": "2026-03-01T09:00:00Z", "isSidechain": False}
        return about | {"message": {"role": role, "content": content}} | more

    lines = [
        {"type": "ai-title", "sessionId": "s", "aiTitle": "Fix"},
        line("1", "user", "<ide_opened_file>x.py</ide_opened_file>fix it"),
        line("2", "user", "agent's task", isSidechain=True),
        line("3", "assistant", [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "done"}]),
        line("4", "user", [{"type": "tool_result", "content": "x"}], toolUseResult={}),
        line("5", "user", "<command-name>/clear</command-name><command-args></command-args>"),
        line("6", "user", "Caveat", isMeta=True),
        line("7", "user", [{"type": "text", "text": "[Request interrupted by user]"}]),
        line("3", "assistant", [{"type": "text", "text": "done"}]),
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s", "content": "Conversation compacted"},
    ]
    data = load(tmp_path, lines, "5e.jsonl")
    assert said(data) == [("user", "fix it"), ("assistant", "done")]
    wanted = {"1 message of side chains", "3 system messages", "2 lines about the session", "1 tool call", "1 thought"}
    assert counts(data) == wanted | {"1 repeated message"}


CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
HUMAN = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("one.json", {"messages": CHAT}, "openai_messages"),
        ("list.json", CHAT, "openai_messages"),
        ("list.jsonl", CHAT, "openai_messages"),
        ("many.json", [{"id": "t1", "messages": CHAT}], "openai_messages"),
        ("batch.jsonl", [{"custom_id": "t1", "body": {"messages": CHAT}}], "openai_messages"),
        ("deep.json", [{"messages": [{"role": "developer", "content": "x"}, *CHAT]}], "openai_messages"),
        ("share.json", [{"id": "t1", "conversations": HUMAN}], "sharegpt"),
        ("share.jsonl", [{"system": "x", "conversations": CHAT}], "sharegpt"),
        ("flat.json", HUMAN, "sharegpt"),
        ("pairs.json", [{"conversation": [{"human": "hi", "assistant": "hello"}]}], "sharegpt"),
        ("items.json", [{"id": "t1", "items": HUMAN}], "sharegpt"),
        ("lmsys.jsonl", [{"conversation_id": "t1", "conversation": CHAT}], "sharegpt"),
        ("smith.jsonl", [{"id": "r", "run_type": "llm", "trace_id": "t1", "start_time": "2026-03-01T09:00:00",
                          "inputs": {"messages": [[{"lc": 1, "type": "constructor", "id": ["l", "HumanMessage"],
                                                    "kwargs": {"content": "hi", "type": "human"}}]]},
                          "outputs": {"generations": [[{"text": "hello", "message": {
                              "lc": 1, "id": ["l", "AIMessage"], "kwargs": {"content": "hello"}}}]]}}], "langsmith"),
        ("openai_run.json", [{"id": "r", "run_type": "chain", "inputs": {"question": "hi"},
                              "outputs": {"answer": "hello"}}], "langsmith"),
        ("trace.json", {"id": "t1", "projectId": "p", "sessionId": "s", "input": {"messages": CHAT[:1]},
                        "output": CHAT[1], "observations": []}, "langfuse"),
        ("fuse.jsonl", [{"id": "o", "traceId": "t1", "type": "GENERATION", "startTime": "2026-03-01T09:00:00Z",
                         "input": json.dumps(CHAT[:1]), "output": {"choices": [{"message": CHAT[1]}]}}], "langfuse"),
        ("mem0.json", {"results": [{"id": "m", "memory_id": "x", "user_id": "ann", "input": CHAT,
                                    "new_memory": "greets", "event": "ADD"}]}, "mem0"),
        ("letta.af", {"agents": [{"name": "Sam", "agent_type": "memgpt_agent", "messages": [
            {"role": "user", "content": [{"type": "text", "text": '{"type": "user_message", "message": "hi"}'}]},
            {"role": "user", "content": [{"type": "text", "text": '{"type": "heartbeat", "reason": "x"}'}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I should greet"}], "tool_calls": [
                {"function": {"name": "send_message", "arguments": '{"message": "hello"}'}}]}]}]}, "letta"),
        ("old.af", {"agent_type": "letta", "core_memory": [], "messages": [
            {"role": "system", "content": [{"type": "text", "text": "x"}]}, *CHAT]}, "letta"),
    ],
)  # fmt: skip
def test_one_exchange_in_every_layout(tmp_path: Path, name: str, content: Any, kind: str) -> None:
    data = load(tmp_path, content, name)
    assert (data.format, said(data)) == (kind, [("user", "hi"), ("assistant", "hello")])


def test_parts_tools_and_images_of_messages(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    spoken = {"type": "input_audio", "input_audio": {"data": "AA", "transcript": "spoken"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [{}, {}]},
        {"role": "tool", "content": "cat"},
        {"role": "function", "content": "dog"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "A cat."}, {"type": "tool_use"}]},
        {"role": "user", "content": [spoken]},
        {"role": "user", "content": ""},
        {"role": "critic", "content": "who?"},
    ]
    data = load(tmp_path, {"messages": messages, "created": 1772355600})
    assert said(data) == [("user", "look"), ("assistant", "A cat."), ("user", "spoken")]
    assert data.turns["caption"].to_list() == ["image", None, None]
    assert data.turns["timestamp"].null_count() == 0
    wanted = {"1 image", "1 recording", "5 tool calls", "1 empty message", "1 unreadable message"}
    assert counts(data) == wanted


def test_traces_say_everything_once(tmp_path: Path) -> None:
    def run(key: str, at: str, asked: list[Any], answer: str, **more: Any) -> dict[str, Any]:
        about = {"id": key, "run_type": "chain", "trace_id": key, "start_time": f"2026-03-01T09:0{at}:00"}
        about |= {"inputs": {"messages": asked}, "outputs": {"messages": [*asked, {"type": "ai", "content": answer}]}}
        return about | {"extra": {"metadata": {"thread_id": "th", "user_id": "ann"}}} | more

    more = [*CHAT, {"role": "user", "content": "bye"}]
    runs = [  # the newest first, as the API lists them; a child repeats its parent
        run("b", "5", more, "so long"),
        run("a", "1", CHAT[:1], "hello"),
        run("a2", "1", CHAT[:1], "hello", trace_id="a", parent_run_id="a", run_type="llm"),
        run("t", "2", [], "x", run_type="tool"),
    ]
    data = load(tmp_path, runs, "runs.jsonl")
    assert said(data) == [("user", "hi"), ("assistant", "hello"), ("user", "bye"), ("assistant", "so long")]
    assert data.turns["session_id"].unique().to_list() == ["ann/th"]
    assert data.turns["timestamp"].is_sorted()
    assert "1 tool call" in counts(data)


def test_a_trace_has_the_thread_of_any_of_its_runs_and_times_keep_their_zone(tmp_path: Path) -> None:
    about = {"run_type": "chain", "trace_id": "a", "start_time": "2026-03-01T09:00:00-05:00"}
    about |= {
        "inputs": {"messages": CHAT[:1]},
        "outputs": {"messages": [*CHAT[:1], {"type": "ai", "content": "hello"}]},
    }
    child = about | {"id": "c", "parent_run_id": "a", "run_type": "llm"}
    root = about | {"id": "a", "extra": {"metadata": {"thread_id": "th"}}}
    data = load(tmp_path, [child, root], "runs.jsonl")
    assert data.turns["session_id"].unique().to_list() == ["me/th"]
    assert data.turns["timestamp"][0].hour == 14


def test_memories_without_messages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(memlab.DataError, match=r"no message that memlab keeps \(mem0\); left out: 1 fact"):
        load(tmp_path, {"results": [{"id": "m", "memory": "Likes tea", "hash": "h", "user_id": "ann"}]})
