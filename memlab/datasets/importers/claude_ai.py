"""Claude.ai's ``conversations.json``: messages of content blocks, with branches where a message names its parent.

Layout: MemPalace issues 677 and 646, Sinity/polylogue ``docs/providers/claude-ai.md``. The root's parent is
``00000000-0000-4000-8000-000000000000``; ``current_leaf_message_uuid`` is there in dumps of the web interface.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets._fields import Record
from memlab.datasets.importers.common import ME, Export, Message, content, dig, items, name, role_of, time
from memlab.datasets.importers.files import Member


def matches(member: Member) -> bool:
    return "chat_messages" in member.keys


def read(source: Export) -> Iterator[Message]:
    """Read every conversation as a session; accounts beyond the first have scopes of their own."""
    accounts: dict[str, str] = {}
    for member in source.members:
        for number, raw in member.values():
            messages: list[Message] = []
            with member.record(f"conversation {number}", raw):
                record = Record(raw, f"conversation {number}")
                account = name(dig(record, "account", "uuid"))
                scope = accounts.setdefault(account, account if accounts else ME)
                messages = list(_conversation(source, scope, record))
            yield from messages


def _conversation(source: Export, scope: str, conversation: Record) -> Iterator[Message]:
    session = name(conversation.get("uuid"), conversation.get("name"))
    listed = [each for each in conversation.listed("chat_messages") if isinstance(each, dict)]
    source.drop("unreadable messages", scope, len(conversation["chat_messages"]) - len(listed))
    kept = _branch(listed, conversation.get("current_leaf_message_uuid"))
    source.drop("messages of other branches", scope, len(listed) - len(kept))
    for message in kept:
        role = role_of(message.get("sender"))
        if role not in ("user", "assistant"):
            source.drop("system messages" if role == "system" else "unreadable messages", scope)
            continue
        blocks = items(message.get("content"))
        text, caption = content(source, scope, blocks or message.get("text"))
        files = [each for key in ("attachments", "files", "files_v2") for each in items(message.get(key))]
        names = list(dict.fromkeys(name(dig(each, "file_name")) for each in files))
        caption = "; ".join([caption] * bool(caption) + [f"file: {each}" for each in names if each])
        if not text.strip():  # A long paste is an attachment without a name.
            text = "\n".join(name(dig(each, "extracted_content")) for each in files)
        if not text.strip() and not caption and any(dig(block, "type") != "text" for block in blocks):
            continue  # Its blocks are counted.
        more = {"session": session, "id": name(message.get("uuid")), "role": role, "caption": caption}
        yield from source.message(scope, role, text, timestamp=time(message.get("created_at")), **more)


def _branch(listed: list[dict[str, Any]], leaf: Any) -> list[dict[str, Any]]:
    """Give the messages from the first to the current one, or to the newest that nobody answers."""
    by_id = {each["uuid"]: each for each in listed if isinstance(each.get("uuid"), str)}
    parents = {each.get("parent_message_uuid") for each in listed if isinstance(each.get("parent_message_uuid"), str)}
    if not parents & by_id.keys() or len(by_id) < len(listed):
        return listed
    if leaf not in by_id if isinstance(leaf, str) else True:
        leaves = [key for key in by_id if key not in parents]
        leaf = max(reversed(leaves), key=lambda key: name(by_id[key].get("created_at")), default="")
    path: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in by_id and leaf not in path:
        path[leaf] = None
        leaf = by_id[leaf].get("parent_message_uuid")
    return [by_id[key] for key in reversed(path)]
