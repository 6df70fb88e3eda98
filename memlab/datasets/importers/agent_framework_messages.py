"""Messages of libraries for agents, rewritten as the layout that others share.

Layouts: pydantic-ai's ``ModelMessagesTypeAdapter`` (a request or a response with parts); Semantic
Kernel's chat history, in .NET and Python, and ``Microsoft.Extensions.AI`` after it (a role, and
items or contents with a type each); AutoGen's messages and the states of its agents and teams (a
source, and a type that is a class).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from memlab.datasets.importers.loose_json import first_field, get_list, list_or_empty
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import is_person

_BEGINS = re.compile(
    r'"part_kind"\s*:|"kind"\s*:\s*"(?:request|response)"'
    r'|"\$type"\s*:\s*"\w+"|"content_type"\s*:\s*"(?:message|text)"|"[Rr]ole"\s*:\s*\{'
    r'|"type"\s*:\s*"\w+(?:Message|AgentState|TeamState)"|"models_usage"\s*:|"message_thread"\s*:'
)
_MOST_DEEP = 12
_Messages = list[dict[str, Any]]

_ROLES_OF_PARTS = {"system-prompt": "system", "user-prompt": "user"}
"""Of pydantic-ai; what else a request holds comes from tools."""
_OF_REQUESTS = ("conversation_id", "timestamp")
"""What a request says of each of its messages."""
_ITEMS = ("items", "contents")
_ITEM_TYPES = {
    "text": "text",
    "streamingtext": "text",
    "reasoning": "reasoning",
    "textreasoning": "reasoning",
    "functioncall": "tool call",
    "functionresult": "tool call",
}
_OF_TOOLS = re.compile("Tool|Function|Code|MemoryQuery")
_SAYING = re.compile(r"(?:Text|MultiModal|Structured|User|Assistant)Message\b")
_PERSON = re.compile(r"(?i)user|human")


def is_of_framework(file: Source) -> bool:
    """Say whether the beginning of a file holds a message of such a library."""
    return _BEGINS.search(file.head) is not None


def rewrite_messages(source: Source, value: Any, depth: int = _MOST_DEEP) -> list[Any]:
    """Give a value with the messages in it rewritten, as a list: a message may be several.

    >>> from pathlib import Path
    >>> said = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}
    >>> rewrite_messages(Source(Path("run.json")), said)
    [{'content': 'Hi', 'role': 'user'}]
    """
    if depth and isinstance(value, list):
        messages = list[Any]()
        for inner_value in value:
            messages += rewrite_messages(source, inner_value, depth - 1)
        return [messages]
    if not depth or not isinstance(value, dict):
        return [value]
    for recognise, rewrite in _LAYOUTS:
        if recognise(value):
            return rewrite(source, value)
    rewritten = dict[str, Any]()
    for key, inner_value in value.items():
        rewritten[key] = inner_value
        if isinstance(inner_value, (dict, list)):
            inner_messages = rewrite_messages(source, inner_value, depth - 1)
            rewritten[key] = inner_messages
            if len(inner_messages) == 1:
                rewritten[key] = inner_messages[0]
    return [_with_thread(rewritten)]


def _is_of_pydantic_ai(raw: dict[str, Any]) -> bool:
    return raw.get("kind") in ("request", "response") and isinstance(raw.get("parts"), list)


def _rewrite_pydantic_ai(_: Source, raw: dict[str, Any]) -> _Messages:
    """Give a response as a message, and a request as a message for each of its parts."""
    shared_fields = dict(raw)
    message_kind = shared_fields.pop("kind")
    parts = shared_fields.pop("parts")
    if message_kind == "response":
        return [shared_fields | {"role": "assistant", "content": list(map(_type_part, parts))}]
    messages = _Messages()
    instructions = shared_fields.pop("instructions", None)
    if instructions:
        messages.append({"role": "system", "content": instructions})
    for message_part in parts:
        messages.append(_rewrite_part(message_part))
    request_fields = {
        request_key: shared_fields[request_key]
        for request_key in _OF_REQUESTS
        if request_key in shared_fields
    }
    messages = [request_fields | message for message in messages]
    if messages:
        messages[0] = shared_fields | messages[0]
    return messages


def _rewrite_part(message_part: Any) -> dict[str, Any]:
    """Give a part of a request as a message."""
    if not isinstance(message_part, dict):
        return {"role": "user", "content": message_part}
    message = dict(message_part)
    part_kind = message.pop("part_kind", "")
    message["role"] = _ROLES_OF_PARTS.get(part_kind, "tool")
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = list(map(_type_part, content))
    return message


def _type_part(content_part: Any) -> Any:
    """Give a part of a message with its type and its text where other layouts have them."""
    if not isinstance(content_part, dict):
        return content_part
    typed_part = dict(content_part)
    typed_part["type"] = first_field(content_part, "part_kind", "kind", "type")
    typed_part.pop("part_kind", None)
    if typed_part["type"] == "text" and "content" in typed_part:
        typed_part["text"] = typed_part.pop("content")
    elif typed_part["type"] == "binary":
        typed_part["type"] = first_field(content_part, "media_type") or "file"
    return typed_part


def _is_of_semantic_kernel(raw: dict[str, Any]) -> bool:
    message = _with_small_initials(raw)
    if isinstance(message.get("role"), dict):
        return _find_label(message["role"]) != ""
    if not isinstance(message.get("role"), str):
        return False
    return any(map(_is_typed_item, _list_items(message)))


def _rewrite_semantic_kernel(_: Source, raw: dict[str, Any]) -> _Messages:
    message = _with_small_initials(raw)
    if isinstance(message["role"], dict):
        message["role"] = _find_label(message["role"])
    items = _list_items(message)
    for items_key in _ITEMS:
        if items and message.get(items_key) is items:
            del message[items_key]
    if items:
        message["content_text"] = message.pop("content", None)  # counted unless items say it
        message["content"] = list(map(_rewrite_item, items))
    return [message]


def _with_small_initials(raw: dict[str, Any]) -> dict[str, Any]:
    """Give an object with its keys as JavaScript writes them: .NET begins them with a capital."""
    return {key[:1].lower() + key[1:]: value for key, value in raw.items()}


def _find_label(role: dict[str, Any]) -> str:
    return first_field(_with_small_initials(role), "label")


def _list_items(message: dict[str, Any]) -> list[Any]:
    for items_key in _ITEMS:
        items = list_or_empty(message.get(items_key))
        if items:
            return items
    return []


def _is_typed_item(item: Any) -> bool:
    return first_field(item, "$type", "content_type") != ""


def _rewrite_item(item: Any) -> Any:
    """Give an item of a message with its type, and its text, where other layouts have them."""
    if not isinstance(item, dict):
        return item
    typed_item = _with_small_initials(item)
    stated_type = str(typed_item.pop("$type", None) or typed_item.pop("content_type", ""))
    plain_type = re.sub("_|Content$", "", stated_type).lower()
    typed_item["type"] = _ITEM_TYPES.get(plain_type, plain_type)
    return typed_item


def _is_of_autogen(raw: dict[str, Any]) -> bool:
    class_name = raw.get("type")
    if not isinstance(class_name, str) or "content" not in raw:
        return False
    if class_name.startswith(("FunctionExecutionResultMessage", "SystemMessage")):
        return "role" not in raw
    return isinstance(raw.get("source"), str) and re.search("Message|Event", class_name) is not None


def _rewrite_autogen(source: Source, raw: dict[str, Any]) -> _Messages:
    message = dict(raw)
    class_name = message.pop("type")
    agent = str(message.pop("source", ""))
    message["role"] = "system"
    if _SAYING.match(class_name):
        message["role"] = _find_role(source, class_name, agent, raw)
        message["content"] = _rewrite_content(raw["content"])
    elif class_name == "ThoughtEvent":
        message["role"] = "assistant"
        message["content"] = [{"type": "thinking", "text": raw["content"]}]
    elif _OF_TOOLS.search(class_name):
        message["role"] = "tool"
    if agent != message["role"]:
        message["name"] = agent
    if message.get("thought"):
        message["reasoning"] = message.pop("thought")
    return [message]


def _find_role(source: Source, class_name: str, agent: str, raw: dict[str, Any]) -> str:
    """Give the role of who says something.

    Agents speak as a model does. One whose words no model counts may be a person: by the name.
    """
    if _PERSON.search(agent) or is_person(source, agent):
        return "user"
    if not raw.get("models_usage") and not class_name.startswith("Assistant"):
        source.report.guessed[agent] += 1
    return "assistant"


def _rewrite_content(content: Any) -> Any:
    """Give what is said: an object as JSON, of several parts the texts, images and calls."""
    if isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False)
    if not isinstance(content, list):
        return content
    parts = list[Any]()
    for content_part in content:
        if isinstance(content_part, dict) and "arguments" in content_part:
            content_part = {**content_part, "type": "tool call"}
        elif isinstance(content_part, dict) and "data" in content_part:
            content_part = {"type": "image"}
        parts.append(content_part)
    return parts


def _with_thread(raw: dict[str, Any]) -> dict[str, Any]:
    """Give the state of a team with its thread as its messages, which its agents repeat."""
    if not isinstance(raw.get("agent_states"), dict):
        return raw
    for state in raw["agent_states"].values():
        message_thread = get_list(state, "message_thread")
        if message_thread:
            return raw | {"messages": message_thread}
    return raw


_LAYOUTS: tuple[
    tuple[Callable[[dict[str, Any]], bool], Callable[[Source, dict[str, Any]], _Messages]], ...
] = (
    (_is_of_pydantic_ai, _rewrite_pydantic_ai),
    (_is_of_semantic_kernel, _rewrite_semantic_kernel),
    (_is_of_autogen, _rewrite_autogen),
)
