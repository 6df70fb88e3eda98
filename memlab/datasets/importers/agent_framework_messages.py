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

from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    first_field_text,
    get_nested_list,
    list_or_empty,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import is_named_as_person

_BEGINS = re.compile(
    r'"part_kind"\s*:|"kind"\s*:\s*"(?:request|response)"'
    r'|"\$type"\s*:\s*"\w+"|"content_type"\s*:\s*"(?:message|text)"|"[Rr]ole"\s*:\s*\{'
    r'|"type"\s*:\s*"\w+(?:Message|AgentState|TeamState)"|"models_usage"\s*:|"message_thread"\s*:'
)
_MOST_DEEP = 12

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


def head_holds_framework_message(file: Source) -> bool:
    """Say whether the beginning of a file holds a message of such a library."""
    return _BEGINS.search(file.head) is not None


def rewrite_messages_in_common_layout(
    source: Source, json_value: JsonValue, max_depth: int = _MOST_DEEP
) -> list[JsonValue]:
    """Give a value with the messages in it rewritten, as a list: a message may be several.

    >>> from pathlib import Path
    >>> said = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}
    >>> rewrite_messages_in_common_layout(Source(Path("run.json")), said)
    [{'content': 'Hi', 'role': 'user'}]
    """
    if max_depth and isinstance(json_value, list):
        messages = list[Any]()
        for inner_value in json_value:
            messages += rewrite_messages_in_common_layout(source, inner_value, max_depth - 1)
        return [messages]
    if not max_depth or not isinstance(json_value, dict):
        return [json_value]
    for recognise, rewrite in _LAYOUTS:
        if recognise(json_value):
            return rewrite(source, json_value)
    rewritten = dict[str, Any]()
    for key, inner_value in json_value.items():
        rewritten[key] = inner_value
        if isinstance(inner_value, (dict, list)):
            inner_messages = rewrite_messages_in_common_layout(source, inner_value, max_depth - 1)
            rewritten[key] = inner_messages
            if len(inner_messages) == 1:
                rewritten[key] = inner_messages[0]
    return [_with_autogen_thread_as_messages(rewritten)]


def _is_pydantic_ai_message(raw_message: JsonObject) -> bool:
    return raw_message.get("kind") in ("request", "response") and isinstance(
        raw_message.get("parts"), list
    )


def _pydantic_ai_to_common_messages(_: Source, raw_message: JsonObject) -> list[JsonObject]:
    """Give a response as a message, and a request as a message for each of its parts."""
    shared_fields = dict(raw_message)
    message_kind = shared_fields.pop("kind")
    parts = shared_fields.pop("parts")
    if message_kind == "response":
        return [
            shared_fields
            | {
                "role": "assistant",
                "content": list(map(_pydantic_ai_to_common_content_part, parts)),
            }
        ]
    messages = list[dict[str, Any]]()
    instructions = shared_fields.pop("instructions", None)
    if instructions:
        messages.append({"role": "system", "content": instructions})
    for message_part in parts:
        messages.append(_request_part_to_common_message(message_part))
    request_fields = {
        request_key: shared_fields[request_key]
        for request_key in _OF_REQUESTS
        if request_key in shared_fields
    }
    messages = [request_fields | message for message in messages]
    if messages:
        messages[0] = shared_fields | messages[0]
    return messages


def _request_part_to_common_message(request_part: JsonValue) -> JsonObject:
    """Give a part of a request as a message."""
    if not isinstance(request_part, dict):
        return {"role": "user", "content": request_part}
    message = dict(request_part)
    part_kind = message.pop("part_kind", "")
    message["role"] = _ROLES_OF_PARTS.get(part_kind, "tool")
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = list(map(_pydantic_ai_to_common_content_part, content))
    return message


def _pydantic_ai_to_common_content_part(content_part: JsonValue) -> JsonValue:
    """Give a part of a message with its type and its text where other layouts have them."""
    if not isinstance(content_part, dict):
        return content_part
    typed_part = dict(content_part)
    typed_part["type"] = first_field_text(content_part, "part_kind", "kind", "type")
    typed_part.pop("part_kind", None)
    if typed_part["type"] == "text" and "content" in typed_part:
        typed_part["text"] = typed_part.pop("content")
    elif typed_part["type"] == "binary":
        typed_part["type"] = first_field_text(content_part, "media_type") or "file"
    return typed_part


def _is_semantic_kernel_message(raw_message: JsonObject) -> bool:
    message = _lowercase_first_letters_of_keys(raw_message)
    if isinstance(message.get("role"), dict):
        return _label_of_role_object_or_empty(message["role"]) != ""
    if not isinstance(message.get("role"), str):
        return False
    return any(map(_has_semantic_kernel_type, _list_semantic_kernel_items(message)))


def _semantic_kernel_to_common_messages(_: Source, raw_message: JsonObject) -> list[JsonObject]:
    message = _lowercase_first_letters_of_keys(raw_message)
    if isinstance(message["role"], dict):
        message["role"] = _label_of_role_object_or_empty(message["role"])
    items = _list_semantic_kernel_items(message)
    for items_key in _ITEMS:
        if items and message.get(items_key) is items:
            del message[items_key]
    if items:
        message["content_text"] = message.pop("content", None)  # counted unless items say it
        message["content"] = list(map(_semantic_kernel_to_common_item, items))
    return [message]


def _lowercase_first_letters_of_keys(raw_object: JsonObject) -> JsonObject:
    """Give an object with its keys as JavaScript writes them: .NET begins them with a capital."""
    return {key[:1].lower() + key[1:]: value for key, value in raw_object.items()}


def _label_of_role_object_or_empty(role_object: JsonObject) -> str:
    return first_field_text(_lowercase_first_letters_of_keys(role_object), "label")


def _list_semantic_kernel_items(raw_message: JsonObject) -> list[JsonValue]:
    for items_key in _ITEMS:
        items = list_or_empty(raw_message.get(items_key))
        if items:
            return items
    return []


def _has_semantic_kernel_type(content_item: JsonValue) -> bool:
    return first_field_text(content_item, "$type", "content_type") != ""


def _semantic_kernel_to_common_item(content_item: JsonValue) -> JsonValue:
    """Give an item of a message with its type, and its text, where other layouts have them."""
    if not isinstance(content_item, dict):
        return content_item
    typed_item = _lowercase_first_letters_of_keys(content_item)
    stated_type = str(typed_item.pop("$type", None) or typed_item.pop("content_type", ""))
    plain_type = re.sub("_|Content$", "", stated_type).lower()
    typed_item["type"] = _ITEM_TYPES.get(plain_type, plain_type)
    return typed_item


def _is_autogen_message(raw_message: JsonObject) -> bool:
    class_name = raw_message.get("type")
    if not isinstance(class_name, str) or "content" not in raw_message:
        return False
    if class_name.startswith(("FunctionExecutionResultMessage", "SystemMessage")):
        return "role" not in raw_message
    return (
        isinstance(raw_message.get("source"), str)
        and re.search("Message|Event", class_name) is not None
    )


def _autogen_to_common_messages(source: Source, raw_message: JsonObject) -> list[JsonObject]:
    message = dict(raw_message)
    class_name = message.pop("type")
    agent_name = str(message.pop("source", ""))
    message["role"] = "system"
    if _SAYING.match(class_name):
        message["role"] = _find_autogen_role_and_count_guess(
            source, class_name, agent_name, raw_message
        )
        message["content"] = _autogen_to_common_content(raw_message["content"])
    elif class_name == "ThoughtEvent":
        message["role"] = "assistant"
        message["content"] = [{"type": "thinking", "text": raw_message["content"]}]
    elif _OF_TOOLS.search(class_name):
        message["role"] = "tool"
    if agent_name != message["role"]:
        message["name"] = agent_name
    if message.get("thought"):
        message["reasoning"] = message.pop("thought")
    return [message]


def _find_autogen_role_and_count_guess(
    source: Source, class_name: str, agent_name: str, raw_message: JsonObject
) -> str:
    """Give the role of who says something.

    Agents speak as a model does. One whose words no model counts may be a person: by the name.
    """
    if _PERSON.search(agent_name) or is_named_as_person(source, agent_name):
        return "user"
    if not raw_message.get("models_usage") and not class_name.startswith("Assistant"):
        source.report.guessed[agent_name] += 1
    return "assistant"


def _autogen_to_common_content(raw_content: JsonValue) -> JsonValue:
    """Give what is said: an object as JSON, of several parts the texts, images and calls."""
    if isinstance(raw_content, dict):
        return json.dumps(raw_content, ensure_ascii=False)
    if not isinstance(raw_content, list):
        return raw_content
    parts = list[Any]()
    for content_part in raw_content:
        if isinstance(content_part, dict) and "arguments" in content_part:
            content_part = {**content_part, "type": "tool call"}
        elif isinstance(content_part, dict) and "data" in content_part:
            content_part = {"type": "image"}
        parts.append(content_part)
    return parts


def _with_autogen_thread_as_messages(raw_object: JsonObject) -> JsonObject:
    """Give the state of a team with its thread as its messages, which its agents repeat."""
    if not isinstance(raw_object.get("agent_states"), dict):
        return raw_object
    for state in raw_object["agent_states"].values():
        message_thread = get_nested_list(state, "message_thread")
        if message_thread:
            return raw_object | {"messages": message_thread}
    return raw_object


_LAYOUTS: tuple[
    tuple[
        Callable[[dict[str, Any]], bool], Callable[[Source, dict[str, Any]], list[dict[str, Any]]]
    ],
    ...,
] = (
    (_is_pydantic_ai_message, _pydantic_ai_to_common_messages),
    (_is_semantic_kernel_message, _semantic_kernel_to_common_messages),
    (_is_autogen_message, _autogen_to_common_messages),
)
