"""Letta's agent files (``.af``): the messages of the agents in them.

Layout: letta-ai/agent-file. An older agent speaks by the tool ``send_message`` and thinks in its
text; what a person says may be wrapped in JSON beside heartbeats and alerts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import Record
from memlab.datasets.importers.branches import read_newest_conversations
from memlab.datasets.importers.export_messages import (
    Message,
    is_spoken_role,
    make_message,
    name_chat,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import decode_json, first_field, get_list, get_nested
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts

_OLD = {
    "messages",
    "core_memory",
    "llm_config",
    "in_context_message_ids",
    "in_context_message_indices",
}


_READ = {"content", "text", "tool_calls", "tool_returns", "reasoning", "date"}


def is_letta_export(file: Source) -> bool:
    keys = file.keys
    old = "agent_type" in keys and bool(_OLD & keys)
    return (
        old
        or {"message_type", "date"} <= keys
        or bool({"agents.agent_type", "agents.messages"} & keys)
    )


def read_letta_export(source: Source) -> Iterator[Message]:
    """Read the messages of every agent as a scope; of messages out of the API, the file."""
    names = dict[str, str]()

    def agents(record: Record) -> Iterator[Message]:
        for agent in record.take("agents", fields.check_list, []) or [record]:
            called = first_field(agent, "name", "id") or "agent"
            scope = name_chat(names, first_field(agent, "id") or called, called)
            for each in get_list(agent, "messages"):
                yield from _read_letta_message(source, scope, each, get_nested(agent, "agent_type"))
        if kind := first_field(record, "message_type").removesuffix("_message"):
            about = {"role": "tool" if "tool" in kind else kind, "created_at": record.get("date")}
            yield from _read_letta_message(source, source.path.stem, record | about)

    yield from read_newest_conversations(source, "agent file", agents)


def _read_letta_message(
    source: Source, scope: str, each: Any, agent: Any = None
) -> Sequence[Message]:
    role = get_nested(each, "role")
    known = role if role in ("user", "assistant", "tool") else "system" if role else None
    if not is_spoken_role(source, scope, known):
        return ()
    content = each.get("text") if each.get("content") is None else each["content"]
    text, caption = text_and_caption(source, scope, content)
    if role == "user":
        wrapped = decode_json(text)
        if get_nested(wrapped, "type") not in (None, "user_message"):
            return source.drop("system messages", scope)
        text = first_field(wrapped, "message") or text
    calls = [call for call in get_list(each, "tool_calls") if isinstance(call, dict)]
    sent = [
        call["function"] for call in calls if get_nested(call, "function.name") == "send_message"
    ]
    arguments = (decode_json(get_nested(function, "arguments")) for function in sent)
    said = [words for each in arguments if (words := first_field(each, "message"))]
    source.drop("tool calls", scope, len(calls) - len(said))
    if calls and (sent or agent != "letta_v1_agent"):  # a newer agent speaks in its text alone
        source.drop("thoughts", scope, bool(text.strip()))
        text = "\n".join(said)
        if not text:
            return ()
    count_unread_texts(source, scope, each, _READ, text)
    more = {"id": first_field(each, "id"), "role": role, "caption": caption}
    return make_message(source, scope, role, text, timestamp=each.get("created_at"), **more)
