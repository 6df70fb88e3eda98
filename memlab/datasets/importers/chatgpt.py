"""ChatGPT's ``conversations.json``: a tree of messages a conversation, of which the branch that is shown is kept.

Layout: mitkury/chatgpt-export-parser, ``docs/chatgpt-data-export-format.md``. Large accounts get several files
``conversations-000.json`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memlab.datasets._fields import Record
from memlab.datasets.importers.common import ME, Export, Message, content, dig, items, name, time
from memlab.datasets.importers.files import Member

_TEXT = {"text", "multimodal_text"}
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
_CITATION = re.compile("\ue200[^\ue200\ue201]*\ue201|[\ue200-\ue203]")


def matches(member: Member) -> bool:
    return "mapping" in member.keys and bool(member.keys & {"current_node", "create_time", "title", "conversation_id"})


def read(source: Export) -> Iterator[Message]:
    """Read every conversation as a session of one scope."""
    for member in source.members:
        for number, raw in member.values():
            messages: list[Message] = []
            with member.record(f"conversation {number}", raw):
                messages = list(_conversation(source, Record(raw, f"conversation {number}")))
            yield from messages


def _conversation(source: Export, conversation: Record) -> Iterator[Message]:
    mapping = conversation.object("mapping")
    session = name(conversation.get("conversation_id"), conversation.get("id"), conversation.get("title"))
    branch = _branch(mapping, conversation.get("current_node"))
    others = [dig(mapping[key], "message", "author", "role") for key in mapping.keys() - set(branch)]
    source.drop("messages of other branches", ME, sum(role in ("user", "assistant") for role in others))
    for key in branch:
        message = dig(mapping[key], "message")
        if message is None:
            continue
        role, kind = dig(message, "author", "role"), dig(message, "content", "content_type")
        if dropped := _dropped(message, role, kind):
            source.drop(dropped, ME)
            continue
        text, caption = content(source, ME, items(dig(message, "content", "parts")))
        files = [_file(each) for each in items(dig(message, "metadata", "attachments")) if name(dig(each, "name"))]
        if files:  # They name the images that the text points to.
            caption = "; ".join([part for part in caption.split("; ") if part not in ("", "image")] + files)
        more = {"role": role, "session": session, "caption": caption, "timestamp": time(message.get("create_time"))}
        yield from source.message(ME, role, _CITATION.sub("", text), id=name(message.get("id"), key), **more)


def _file(attachment: Any) -> str:
    image = name(dig(attachment, "mime_type")).startswith("image")
    return f"{'image' if image else 'file'}: {name(dig(attachment, 'name'))}"


def _branch(mapping: dict[str, Any], current: Any) -> list[str]:
    """Give the nodes from the root to the current one; where that is not there, to the newest leaf."""
    if not (isinstance(current, str) and current in mapping):
        parents = {name(dig(node, "parent")) for node in mapping.values()}
        leaves = [key for key in mapping if key not in parents and dig(mapping[key], "message")]
        when = {key: dig(mapping[key], "message", "create_time") for key in leaves}
        # max gives the first of equals, and of equals the last of the file is the newest.
        current = max(
            reversed(leaves), key=lambda key: when[key] if isinstance(when[key], (int, float)) else 0, default=""
        )
    path: dict[str, None] = {}
    while isinstance(current, str) and current in mapping and current not in path:
        path[current] = None
        current = dig(mapping[current], "parent")
    return list(path)[::-1]


def _dropped(message: Any, role: Any, kind: Any) -> str:
    """Say as what a message is left out, if it is."""
    if any(dig(message, "metadata", key) is True for key in _HIDDEN) or kind in (
        "user_editable_context",
        "model_editable_context",
    ):
        return "system messages"
    if role not in ("user", "assistant", "system", "tool"):
        return "unreadable messages"
    if role == "system":
        return "system messages"
    if kind in ("thoughts", "reasoning_recap") or message.get("channel") == "analysis":
        return "thoughts"
    called = role == "assistant" and message.get("recipient") not in (None, "", "all")
    return "tool calls" if role == "tool" or called or kind not in _TEXT else ""
