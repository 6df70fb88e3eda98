"""Letta's agent files (``.af``): the messages of the agents in them.

Layout: letta-ai/agent-file. An older agent speaks by the tool ``send_message`` and thinks in its text; what a person
says may be wrapped in JSON beside heartbeats and alerts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets._fields import Record
from memlab.datasets.importers.common import Export, Message, content, decoded, dig, items, name, time
from memlab.datasets.importers.files import Member


def matches(member: Member) -> bool:
    keys = member.keys
    return "agents.agent_type" in keys or "agents.messages" in keys or ("agent_type" in keys and bool(_OLD & keys))


_OLD = {"messages", "core_memory", "llm_config", "in_context_message_ids", "in_context_message_indices"}


def read(source: Export) -> Iterator[Message]:
    """Read the messages of every agent as a scope."""
    for member in source.members:
        for number, raw in member.values():
            messages: list[Message] = []
            with member.record(f"agent file {number}", raw):
                record = Record(raw, f"agent file {number}")
                agents = record.listed("agents", None) or [record]
                messages = [message for agent in agents for message in _agent(source, agent)]
            yield from messages


def _agent(source: Export, agent: Any) -> Iterator[Message]:
    scope = name(dig(agent, "name"), dig(agent, "id")) or "agent"
    for message in items(dig(agent, "messages")):
        role = dig(message, "role")
        if role not in ("user", "assistant"):
            source.drop("tool calls" if role == "tool" else "system messages" if role else "unreadable messages", scope)
            continue
        parts = message.get("content")
        text, caption = content(source, scope, message.get("text") if parts is None else parts)
        if role == "user":
            wrapped = decoded(text)
            kind = dig(wrapped, "type")
            if kind not in (None, "user_message"):
                source.drop("system messages", scope)
                continue
            text = name(dig(wrapped, "message")) or text
        calls = [each for each in items(message.get("tool_calls")) if isinstance(each, dict)]
        said = [_said(call) for call in calls]
        source.drop("tool calls", scope, len(calls) - sum(map(bool, said)))
        if calls:
            source.drop("thoughts", scope, bool(text.strip()))
            text = "\n".join(filter(None, said))
            if not text:
                continue
        more = {"role": role, "caption": caption, "timestamp": time(message.get("created_at"))}
        yield from source.message(scope, role, text, id=name(message.get("id")), **more)


def _said(call: dict[str, Any]) -> str:
    """Give what a call of ``send_message`` says; empty for another tool."""
    function = call.get("function")
    return name(dig(decoded(dig(function, "arguments")), "message")) if dig(function, "name") == "send_message" else ""
