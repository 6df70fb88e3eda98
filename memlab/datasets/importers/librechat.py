"""LibreChat's export of a conversation: messages with their parents.

They stand in a list, or one within the other.

Layout: danny-avila/LibreChat, ``client/src/hooks/Conversations/useExportConversation.ts`` and
``packages/data-provider/src/types.ts``. The rows of its collection of messages are the same
objects. A root's parent is ``00000000-0000-0000-0000-000000000000``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.branches import (
    date_messages,
    link_to_parents,
    name_message,
    newest_branch,
)
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    describe_file,
    make_message,
    name_account,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import (
    first_field,
    first_text,
    get_list,
    join_names,
)
from memlab.datasets.importers.message_fields import describe_version
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts

_THINKING = re.compile(r"(?ms)^:::thinking[ \t]*\n.*?^:::[ \t]*$\s*")
_PROMPTS = ("options.promptPrefix", "options.system", "promptPrefix")


def is_librechat_export(file: Source) -> bool:
    keys = file.keys
    if {"messages.messageId", "messages.parentMessageId"} <= keys:
        return True
    return {"messageId", "parentMessageId", "isCreatedByUser"} <= keys


def read_librechat_export(source: Source) -> Iterator[Message]:
    """Read every conversation as a session.

    Of rows of messages, those of users have scopes of their own.
    """
    users: dict[str, str] = {}
    for file in source.members:
        rows: dict[str, list[Any]] = {}
        for number, record in file.values():
            session = first_field(record, "conversationId")
            listed = get_list(record, "messages")
            if not listed:
                rows.setdefault(session, []).append(record)
                continue
            prompt = first_field(record, *_PROMPTS)
            source.drop("system messages", OWNER_SCOPE, bool(prompt))
            read = {"messages", *_PROMPTS}
            count_unread_texts(source, OWNER_SCOPE, record, read, "", around=True)
            session = first_text(session, f"{file.stem}-{number}")
            yield from _read_conversation(source, OWNER_SCOPE, session, list(_flatten(listed)))
        for session, messages in rows.items():
            session = first_text(session, file.stem)
            for user, own in _split_users(messages).items():
                scope = name_account(users, user)
                yield from _read_conversation(source, scope, session, own)


def _split_users(messages: list[Any]) -> dict[str, list[Any]]:
    """Give the messages of each user; one that names none is of the user before it."""
    named = list(filter(None, [first_field(message, "user") for message in messages]))
    user = next(iter(named), "")
    split: dict[str, list[Any]] = {}
    for message in messages:
        user = first_field(message, "user") or user
        split.setdefault(user, []).append(message)
    return split


def _flatten(listed: list[Any]) -> Iterator[Any]:
    """Give messages with those within them, parents first."""
    waiting = listed[::-1]
    while waiting:
        message = waiting.pop()
        yield message
        waiting += get_list(message, "children")[::-1]


def _read_conversation(
    source: Source, scope: str, session: str, listed: list[Any]
) -> Iterator[Message]:
    nodes: dict[str, Any] = {}
    for place, message in enumerate(listed):
        if isinstance(message, dict):
            nodes[name_message(first_field(message, "messageId"), place)] = message
    source.drop("unreadable messages", scope, len(listed) - len(nodes))
    parents = link_to_parents(nodes)
    branch = newest_branch(parents, None, date_messages(nodes, parents).__getitem__)
    source.drop("messages of other branches", scope, len(nodes) - len(branch))
    for message_id in branch:
        yield from _read_message(source, scope, session, nodes[message_id])


def _read_message(
    source: Source, scope: str, session: str, each: dict[str, Any]
) -> Iterator[Message]:
    if each.get("error") is True:
        source.drop("error messages", scope)
        return
    parts = list(map(_plain_part, get_list(each, "content")))
    counted = len(parts)
    content, caption = text_and_caption(source, scope, parts)
    content = first_text(content, each.get("text"))
    role = "user"
    if not _is_user(each):
        role = "assistant"
        content, thoughts = _THINKING.subn("", content)
        source.drop("thoughts", scope, thoughts)
        counted += thoughts
    files = [*get_list(each, "files"), *get_list(each, "attachments")]
    described = [describe_file(file, "filename", "name", "filepath") for file in files]
    caption = join_names(caption, *described)
    spoken = f"{each.get('text')}\n{content}\n{caption}"
    count_unread_texts(source, scope, each, {"content", "children"}, spoken)
    if counted and not f"{content}{caption}".strip():
        return
    columns = {
        "session": session,
        "id": first_field(each, "messageId"),
        "caption": caption,
        "timestamp": each.get("createdAt"),
        "role": role,
        "edited": describe_version(each),
    }
    yield from make_message(source, scope, role, content, **columns)


def _is_user(each: dict[str, Any]) -> bool:
    flag = each.get("isCreatedByUser")
    if isinstance(flag, bool):
        return flag
    return first_field(each, "sender").lower() == "user"


def _plain_part(part: Any) -> Any:
    """Give a part of a message as other tools write it: ``think`` is what they call thinking."""
    part_type = first_field(part, "type")
    if part_type == "think":
        return {"type": "thinking"}
    if part_type == "error":
        return {"type": "tool_error"}
    return part
