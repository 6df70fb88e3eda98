"""Open WebUI's export of chats: a tree of messages a chat, of which the branch that is shown is kept.

Layout: open-webui's ``backend/open_webui/models/chats.py`` and its page of chats: a list of rows
with a ``chat``, or such a ``chat`` alone. ``history.messages`` is the tree, ``messages`` the branch
that was shown when an old version wrote it. Thoughts and calls of tools stand in the text, between
``<details>`` tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memlab.datasets.fields import Record
from memlab.datasets.importers.branches import newest_branch, read_newest_conversations
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    describe_file,
    is_spoken_role,
    make_message,
    normalise_role,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import first_field, first_text, get_list, get_nested
from memlab.datasets.source import Source

_DETAILS = re.compile(r"(?s)\s*<details\b[^>]*\btype=\"([\w-]+)\"[^>]*>.*?(?:</details>|\Z)\s*")
_TREES = {"chat.history", "history.currentId", "history.current_id"}


def is_open_webui_export(file: Source) -> bool:
    if _TREES & file.keys:
        return True
    return {"chat.messages", "chat.models"} <= file.keys


def read_open_webui_export(source: Source) -> Iterator[Message]:
    """Read every chat as a session; users beyond the first have scopes of their own."""
    users: dict[str, str] = {}
    yield from read_newest_conversations(
        source, "chat", lambda record: _read_chat(source, record, users)
    )


def _read_chat(source: Source, record: Record, users: dict[str, str]) -> Iterator[Message]:
    chat = record["chat"] if isinstance(record.get("chat"), dict) else record
    user = first_field(record, "user_id") or next(iter(users), "")
    scope = users.setdefault(user, user if users else OWNER_SCOPE)
    session = first_text(record.get("id"), chat.get("id"), record.get("title"), chat.get("title"))
    is_told = first_field(chat, "system", "params.system")
    source.drop("system messages", scope, bool(is_told))
    for each in _shown_messages(source, scope, chat):
        yield from _read_message(source, scope, session, each)


def _shown_messages(source: Source, scope: str, chat: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the messages of the branch that is shown."""
    tree = get_nested(chat, "history.messages")
    if not isinstance(tree, dict) or not tree:
        listed = get_list(chat, "messages")
        kept = [each for each in listed if isinstance(each, dict)]
        source.drop("unreadable messages", scope, len(listed) - len(kept))
        return kept
    nodes = {key: node for key, node in tree.items() if isinstance(node, dict)}
    source.drop("unreadable messages", scope, len(tree) - len(nodes))
    parents = {key: get_nested(node, "parentId") for key, node in nodes.items()}
    current = first_field(chat, "history.currentId", "history.current_id")
    branch = newest_branch(parents, current, lambda key: _age(nodes[key]))
    source.drop("messages of other branches", scope, len(nodes) - len(branch))
    return [nodes[key] for key in branch]


def _age(node: dict[str, Any]) -> float:
    when = node.get("timestamp")
    return when if isinstance(when, (int, float)) else 0.0


def _read_message(
    source: Source, scope: str, session: str, each: dict[str, Any]
) -> Iterator[Message]:
    role = normalise_role(each.get("role"))
    if not is_spoken_role(source, scope, role):
        return
    said = each.get("content") or _spoken_output(each)
    text, caption = text_and_caption(source, scope, said)
    hidden = 0
    if role == "assistant":
        for block in _DETAILS.finditer(text):
            source.drop("thoughts" if block[1] == "reasoning" else "tool calls", scope)
        text, hidden = _DETAILS.subn("\n", text)
    files = [
        describe_file(file, "name", "file.filename", "url") for file in get_list(each, "files")
    ]
    named = [file if "data:" not in file else "image" for file in files if file]
    caption = "; ".join(filter(None, [caption, *named]))
    is_failed = bool(each.get("error"))
    source.drop("error messages", scope, is_failed)
    source.drop("merged answers", scope, bool(first_field(each, "merged.content")))
    if not text.strip() and not caption and (hidden or is_failed):
        return
    more = {"session": session, "id": first_field(each, "id"), "caption": caption}
    more["timestamp"] = each.get("timestamp")
    yield from make_message(source, scope, str(role), text, role=role, **more)


def _spoken_output(each: dict[str, Any]) -> list[Any]:
    """Give the parts of an answer that is kept as the items of OpenAI's API."""
    parts: list[Any] = []
    for item in get_list(each, "output"):
        inner = get_list(item, "content")
        parts += inner if get_nested(item, "type") == "message" else [item]
    return parts
