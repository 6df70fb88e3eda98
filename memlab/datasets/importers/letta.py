"""Letta's agent files (``.af``): the messages of the agents in them.

Layout: letta-ai/agent-file. An older agent speaks by the tool ``send_message`` and thinks in its
text; what a person says may be wrapped in JSON beside heartbeats and alerts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from memlab.datasets import record_fields
from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    find_or_add_chat_name,
    is_spoken_role_or_count_drop,
    make_message_or_count_drop,
    read_text_and_caption_and_count_rest,
    session_name_by_file_name,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    RawTime,
    decode_if_json_text,
    first_field_text,
    first_non_empty_text,
    first_possible_time,
    get_nested,
    get_nested_list,
    get_nested_objects,
)
from memlab.datasets.importers.message_branches import read_newest_copies_and_count_older
from memlab.datasets.importers.newest_first_lists import reverse_if_newest_first
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
    scopes = session_name_by_file_name(source)
    agent_files = list[Source]()
    for file in source.members:
        if "message_type" in file.first_keys:
            yield from _read_api_messages_oldest_first(source, file, scopes[file.name])
        else:
            agent_files.append(file)
    read_agents = partial(_read_agent_file, source, chat_names=ChatNames())
    agents = replace(source, members=agent_files)
    yield from read_newest_copies_and_count_older(agents, "agent file", read_agents)


def _read_api_messages_oldest_first(source: Source, file: Source, scope: str) -> Iterator[Message]:
    """Read messages out of the API, which gives the newest first unless it is asked for another
    order.
    """
    raw_messages = [record for _, record in file.values()]
    for raw_message in reverse_if_newest_first(
        raw_messages, _written_time_of_message, is_answer=_is_assistant_message
    ):
        if not isinstance(raw_message, dict):
            source.drop("unreadable messages", scope)
            continue
        message_kind = first_field_text(raw_message, "message_type").removesuffix("_message")
        if "tool" in message_kind:
            message_kind = "tool"
        raw_message = raw_message | {"role": message_kind, "created_at": raw_message.get("date")}
        yield from _read_message_or_count_drop(source, scope, raw_message, speaks_in_text=False)


def _is_assistant_message(raw_message: JsonValue) -> bool:
    return first_field_text(raw_message, "message_type") == "assistant_message"


def _written_time_of_message(raw_message: JsonValue) -> RawTime | None:
    return first_possible_time(get_nested(raw_message, "date"))


def _read_agent_file(
    source: Source, agent_file: Record, *, chat_names: ChatNames
) -> Iterator[Message]:
    """Read the agents of a file."""
    for agent in agent_file.read_field("agents", record_fields.check_list, []) or [agent_file]:
        agent_name = first_non_empty_text(first_field_text(agent, "name", "id"), "agent")
        scope = find_or_add_chat_name(
            chat_names, first_non_empty_text(get_nested(agent, "id"), agent_name), agent_name
        )
        is_newer_agent = get_nested(agent, "agent_type") == "letta_v1_agent"
        for raw_message in get_nested_list(agent, "messages"):
            yield from _read_message_or_count_drop(
                source, scope, raw_message, speaks_in_text=is_newer_agent
            )


def _read_message_or_count_drop(
    source: Source, scope: str, raw_message: JsonValue, *, speaks_in_text: bool
) -> Sequence[Message]:
    """Read a message.

    :param speaks_in_text: whether the agent speaks in its text, and not by a tool.
    """
    role = get_nested(raw_message, "role")
    if not is_spoken_role_or_count_drop(source, scope, _role_or_system_if_unknown(role)):
        return ()
    content = raw_message.get("content")
    if content is None:
        content = raw_message.get("text")
    text, caption = read_text_and_caption_and_count_rest(source, scope, content)
    if role == "user":
        wrapped_text = decode_if_json_text(text)
        if get_nested(wrapped_text, "type") not in (None, "user_message"):
            return source.drop("system messages", scope)
        text = first_field_text(wrapped_text, "message") or text
    tool_calls = get_nested_objects(raw_message, "tool_calls")
    sent_calls = [
        call for call in tool_calls if get_nested(call, "function.name") == "send_message"
    ]
    sent_texts = list(filter(None, map(_text_sent_by_tool_call_or_empty, sent_calls)))
    source.drop("tool calls", scope, len(tool_calls) - len(sent_texts))
    if sent_calls or (tool_calls and not speaks_in_text):
        source.drop("thoughts", scope, bool(text.strip()))
        text = "\n".join(sent_texts)
        if not text:
            return ()
    count_unread_texts(source, scope, raw_message, _READ, text)
    columns = {"id": first_field_text(raw_message, "id"), "role": role, "caption": caption}
    return make_message_or_count_drop(
        source, scope, role, text, timestamp=raw_message.get("created_at"), **columns
    )


def _role_or_system_if_unknown(raw_role: JsonValue) -> str | None:
    """Give the role of a message; any that is not known is one of the system."""
    if not raw_role:
        return None
    if raw_role in ("user", "assistant", "tool"):
        return str(raw_role)
    return "system"


def _text_sent_by_tool_call_or_empty(raw_call: JsonObject) -> str:
    """Give what an agent says by the tool ``send_message``."""
    return first_field_text(
        decode_if_json_text(get_nested(raw_call, "function.arguments")), "message"
    )
