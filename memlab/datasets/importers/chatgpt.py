"""ChatGPT's ``conversations.json``: a tree of messages a conversation, of which the branch that is shown is kept.

Layout: mitkury/chatgpt-export-parser, ``docs/chatgpt-data-export-format.md``. Large accounts get
several files ``conversations-000.json`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from memlab.datasets.fields import Record
from memlab.datasets.importers.branches import newest_branch, read_newest_conversations
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    describe_file,
    make_message,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import (
    decode_json,
    first_field,
    first_text,
    first_time,
    get_list,
    get_nested,
    list_or_empty,
)
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts

_TEXT = {"text", "multimodal_text"}
_CONTEXT = {"user_editable_context", "model_editable_context"}
_WIDGET = "The latest state of the widget is:"
_DAY = 86_400
_HIDDEN = ("metadata.is_visually_hidden_from_conversation", "metadata.is_user_system_message")
_MARKER = re.compile("\ue200([^\ue200\ue201]*)\ue201|[\ue200-\ue203]")


_READ = {"content", "metadata", "author"}
_WITH_MORE = {
    "is_visually_hidden_from_conversation",
    "is_user_system_message",
    "attachments",
    "chatgpt_sdk",
}
"""Metadata of messages that are no plain text."""


def is_chatgpt_export(file: Source) -> bool:
    return "mapping" in file.keys and bool(
        file.keys & {"current_node", "create_time", "conversation_id"}
    )


def read_chatgpt_export(source: Source) -> Iterator[Message]:
    """Read every conversation as a session of one scope."""
    read = partial(_read_chatgpt_conversation, source)
    yield from read_newest_conversations(source, "conversation", read)


def _read_chatgpt_conversation(source: Source, conversation: Record) -> Iterator[Message]:
    mapping = conversation.take("mapping", Record)
    session = first_field(conversation, "conversation_id", "id", "title")
    parents = _link_to_parents(mapping)
    age = {key: _creation_time(mapping.get(key)) for key in parents}
    branch = newest_branch(parents, conversation.get("current_node"), age.__getitem__)
    _count_other_branches(source, mapping, branch)
    wrong = _times_after(conversation.get("update_time"), [age[key] for key in branch])
    latest, reports = 0.0, set[str]()
    for key in branch:
        each = get_nested(mapping.get(key), "message")
        if each is None:
            continue
        role, caption = "", ""
        text = _read_plain_text(each)
        if text:
            role = each["author"]["role"]
        else:
            content = _read_content(source, each, reports)
            if content is None:
                continue
            role, text, caption = content
        when = each.get("create_time")
        if not when or not isinstance(when, float):
            when = first_time(when)
        if when in wrong:
            source.drop("times after the end of their conversation", OWNER_SCOPE)
            when = None
        if isinstance(when, (int, float)):  # Voice mode writes times out of order.
            latest = when = max(when, latest)
        more = {"role": role, "session": session, "caption": caption, "timestamp": when}
        if not text.isascii():
            text = _MARKER.sub(_render_marker, text)
        own = first_text(each.get("id"), key)
        yield from make_message(source, OWNER_SCOPE, role, text, id=own, **more)


def _link_to_parents(mapping: dict[str, Any]) -> dict[str, Any]:
    """Give the parent of each node: the one that it names, or whose child it is; of missing nodes too."""
    above: dict[str, str] = {}
    for key, node in mapping.items():
        for child in get_list(node, "children"):
            if isinstance(child, str):
                above[child] = key
    parents = {}
    for key, node in mapping.items():
        parents[key] = get_nested(node, "parent") or above.get(key)
    for key, parent in above.items():
        parents.setdefault(key, parent)
    return parents


def _count_other_branches(source: Source, mapping: dict[str, Any], branch: list[str]) -> None:
    """Count the messages that the branch does not have."""
    others = mapping.keys() - set(branch)
    roles = [get_nested(mapping[key], "message.author.role") for key in others]
    spoken = [role for role in roles if role in ("user", "assistant")]
    source.drop("messages of other branches", OWNER_SCOPE, len(spoken))


def _read_plain_text(each: Any) -> str:
    """Give what somebody says in a message of one text and nothing else, as most are; empty for any other."""
    try:
        content, about = each["content"], each.get("metadata") or {}
        parts = content["parts"]
        is_spoken = each["author"]["role"] in ("user", "assistant")
        is_text = content["content_type"] == "text" and isinstance(parts, list)
        is_hidden = not _WITH_MORE.isdisjoint(about)
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""
    if not is_spoken or not is_text or is_hidden or len(parts) != 1:
        return ""
    (text,) = parts
    if each.get("recipient") not in (None, "all") or each.get("channel") == "analysis":
        return ""
    for key, value in each.items():
        # What may hold words under a key that nobody knows is counted, see count_unread_texts.
        kind = type(value)
        if kind is str and " " in value:
            return ""
        if kind in (dict, list) and value and key not in _READ:
            return ""
    return text if isinstance(text, str) else ""


def _read_content(source: Source, each: Any, reports: set[str]) -> tuple[Any, str, str] | None:
    """Give role, text and caption of a message of any kind, ``None`` of one that is left out.

    :param reports: those that were given; each is given once.
    """
    role, report = get_nested(each, "author.role"), _read_report(each)
    if report and str(report) not in reports:
        reports.add(str(report))
        role, each = "assistant", {"content": report}
    elif dropped := _omission_reason(each, role, first_field(each, "content.content_type")):
        source.drop(dropped, OWNER_SCOPE)
        return None
    parts = get_list(each, "content.parts") or [get_nested(each, "content.text")]
    if role == "tool":
        role, parts = "assistant", [part for part in parts if _is_generated(part)]
    text, caption = text_and_caption(source, OWNER_SCOPE, parts)
    count_unread_texts(source, OWNER_SCOPE, each, _READ, text)
    files = [describe_file(file, "name") for file in get_list(each, "metadata.attachments")]
    named = [name for name in files if name]
    if named:
        # They name the images that the text points to.
        described = [part for part in caption.split("; ") if part not in ("", "image")]
        caption = "; ".join(described + named)
    return role, text, caption


def _creation_time(node: Any) -> float:
    message = node.get("message") if isinstance(node, dict) else None
    if not message:
        return -1.0
    when = message.get("create_time") if isinstance(message, dict) else None
    return when if isinstance(when, (int, float)) else 0.0


def _times_after(end: Any, times: list[float]) -> set[float]:
    """Give the times that lie more than a day after the end of a conversation; where most do, the end is wrong."""
    after = [when for when in times if isinstance(end, (int, float)) and when > end + _DAY]
    return set(after) if 2 * len(after) < len(times) else set()


def _read_report(each: Any) -> dict[str, Any]:
    """Give the content of a report of Deep Research, which is in what a widget was shown (2026); empty without one."""
    if get_nested(each, "author.role") != "tool":
        return {}
    said = first_text(*get_list(each, "content.parts")[:1])
    states = said.removeprefix(_WIDGET), get_nested(each, "metadata.chatgpt_sdk.widget_state")
    contents = (get_nested(decode_json(state), "report_message.content") for state in states)
    return next((content for content in contents if get_list(content, "parts")), {})


def _render_marker(marker: re.Match[str]) -> str:
    """Give what a marker shows: the name of an entity, the label of a link; of a citation nothing."""
    kind, *shown = (marker[1] or "").split("\ue202")
    if kind == "entity" and shown:
        listed = list_or_empty(decode_json(shown[0]))
        return first_text(*listed[1:2]) if listed else shown[0]
    return shown[0] if kind == "url" and shown else ""


def _is_generated(part: Any) -> bool:
    """Say whether a part of what a tool gives is an image that it drew; others are pages of files and the like."""
    return any(get_nested(part, path) for path in ("metadata.dalle", "metadata.generation"))


def _omission_reason(each: Any, role: Any, kind: Any) -> str:
    """Say as what a message is left out, if it is."""
    if (
        any(get_nested(each, path) is True for path in _HIDDEN)
        or kind in _CONTEXT
        or role == "system"
    ):
        return "system messages"
    if role not in ("user", "assistant", "tool"):
        return "unreadable messages"
    if kind in ("thoughts", "reasoning_recap") or each.get("channel") == "analysis":
        return "thoughts"
    if role == "tool" and any(map(_is_generated, get_list(each, "content.parts"))):
        return ""
    called = first_text(each.get("recipient"), "all")
    if role == "assistant" and called.startswith("canmore."):
        return "documents"
    answer = kind in _TEXT or (kind == "code" and role == "assistant")
    return (
        "tool calls"
        if role == "tool" or (role == "assistant" and called != "all") or not answer
        else ""
    )
