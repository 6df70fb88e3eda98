"""Letta's agent files (``.af``): the messages of the agents in them.

Layout: letta-ai/agent-file. An older agent speaks by the tool ``send_message`` and thinks in its
text; what a person says may be wrapped in JSON beside heartbeats and alerts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from memlab.datasets import record_fields
from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    is_spoken_role,
    make_message,
    name_chat,
    name_files,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import (
    decode_json,
    first_field,
    first_text,
    first_time,
    get_list,
    get_nested,
    get_objects,
)
from memlab.datasets.importers.message_branches import read_newest_conversations
from memlab.datasets.importers.newest_first_lists import oldest_first
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

_OLD = {"messages", "core_memory", "llm_config"}
_OLD |= {"in_context_message_ids", "in_context_message_indices"}
_READ = {"content", "text", "tool_calls", "tool_returns", "reasoning", "date"}


def is_letta_export(file: Source) -> bool:
    keys = file.keys
    if "agent_type" in keys and not keys.isdisjoint(_OLD):
        return True
    if {"message_type", "date"} <= keys:
        return True
    return not keys.isdisjoint({"agents.agent_type", "agents.messages"})


def read_letta_export(source: Source) -> Iterator[Message]:
    """Read the messages of every agent as a scope; of messages out of the API, the file."""
    scopes = name_files(source)
    agent_files = list[Source]()
    for file in source.members:
        if "message_type" in file.first_keys:
            yield from _read_api_list(source, file, scopes[file.name])
        else:
            agent_files.append(file)
    read_agents = partial(_read_agent_file, source, names=ChatNames())
    agents = replace(source, members=agent_files)
    yield from read_newest_conversations(agents, "agent file", read_agents)


def _read_api_list(source: Source, file: Source, scope: str) -> Iterator[Message]:
    """Read messages out of the API, which gives the newest first unless it is asked for another
    order.
    """
    raw_messages = [record for _, record in file.values()]
    for message in oldest_first(raw_messages, _read_date, is_answer=_is_answer):
        if not isinstance(message, dict):
            source.drop("unreadable messages", scope)
            continue
        message_kind = first_field(message, "message_type").removesuffix("_message")
        if "tool" in message_kind:
            message_kind = "tool"
        message = message | {"role": message_kind, "created_at": message.get("date")}
        yield from _read_message(source, scope, message, is_newer=False)


def _is_answer(message: Any) -> bool:
    return first_field(message, "message_type") == "assistant_message"


def _read_date(message: Any) -> Any:
    return first_time(get_nested(message, "date"))


def _read_agent_file(source: Source, record: Record, *, names: ChatNames) -> Iterator[Message]:
    """Read the agents of a file."""
    for agent in record.take("agents", record_fields.check_list, []) or [record]:
        agent_name = first_text(first_field(agent, "name", "id"), "agent")
        scope = name_chat(names, first_text(get_nested(agent, "id"), agent_name), agent_name)
        is_newer_agent = get_nested(agent, "agent_type") == "letta_v1_agent"
        for raw_message in get_list(agent, "messages"):
            yield from _read_message(source, scope, raw_message, is_newer=is_newer_agent)


def _read_message(source: Source, scope: str, message: Any, *, is_newer: bool) -> Sequence[Message]:
    """Read a message.

    :param is_newer: whether the agent speaks in its text, and not by a tool.
    """
    role = get_nested(message, "role")
    if not is_spoken_role(source, scope, _known_role(role)):
        return ()
    content = message.get("content")
    if content is None:
        content = message.get("text")
    text, caption = text_and_caption(source, scope, content)
    if role == "user":
        wrapped_text = decode_json(text)
        if get_nested(wrapped_text, "type") not in (None, "user_message"):
            return source.drop("system messages", scope)
        text = first_field(wrapped_text, "message") or text
    tool_calls = get_objects(message, "tool_calls")
    sent_calls = [
        call for call in tool_calls if get_nested(call, "function.name") == "send_message"
    ]
    sent_texts = list(filter(None, map(_read_sent, sent_calls)))
    source.drop("tool calls", scope, len(tool_calls) - len(sent_texts))
    if sent_calls or (tool_calls and not is_newer):
        source.drop("thoughts", scope, bool(text.strip()))
        text = "\n".join(sent_texts)
        if not text:
            return ()
    count_unread_texts(source, scope, message, _READ, text)
    columns = {"id": first_field(message, "id"), "role": role, "caption": caption}
    return make_message(source, scope, role, text, timestamp=message.get("created_at"), **columns)


def _known_role(role: Any) -> str | None:
    """Give the role of a message; any that is not known is one of the system."""
    if not role:
        return None
    if role in ("user", "assistant", "tool"):
        return str(role)
    return "system"


def _read_sent(call: dict[str, Any]) -> str:
    """Give what an agent says by the tool ``send_message``."""
    return first_field(decode_json(get_nested(call, "function.arguments")), "message")
