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
from memlab.datasets.importers.message_branches import (
    date_messages,
    link_to_parents,
    name_message,
    newest_branch,
)
from memlab.datasets.importers.unknown_message_layouts import describe_version
from memlab.datasets.record_sources import Source
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
        rows_by_session: dict[str, list[Any]] = {}
        for number, record in file.values():
            session = first_field(record, "conversationId")
            message_list = get_list(record, "messages")
            if not message_list:
                rows_by_session.setdefault(session, []).append(record)
                continue
            prompt = first_field(record, *_PROMPTS)
            source.drop("system messages", OWNER_SCOPE, bool(prompt))
            read_keys = {"messages", *_PROMPTS}
            count_unread_texts(source, OWNER_SCOPE, record, read_keys, "", is_around_messages=True)
            session = first_text(session, f"{file.stem}-{number}")
            yield from _read_conversation(
                source, OWNER_SCOPE, session, list(_flatten(message_list))
            )
        for session, messages in rows_by_session.items():
            session = first_text(session, file.stem)
            for user, user_messages in _split_users(messages).items():
                scope = name_account(users, user)
                yield from _read_conversation(source, scope, session, user_messages)


def _split_users(messages: list[Any]) -> dict[str, list[Any]]:
    """Give the messages of each user; one that names none is of the user before it."""
    named_users = list(filter(None, [first_field(message, "user") for message in messages]))
    user = next(iter(named_users), "")
    messages_by_user: dict[str, list[Any]] = {}
    for message in messages:
        user = first_field(message, "user") or user
        messages_by_user.setdefault(user, []).append(message)
    return messages_by_user


def _flatten(messages: list[Any]) -> Iterator[Any]:
    """Give messages with those within them, parents first."""
    waiting = messages[::-1]
    while waiting:
        message = waiting.pop()
        yield message
        waiting += get_list(message, "children")[::-1]


def _read_conversation(
    source: Source, scope: str, session: str, messages: list[Any]
) -> Iterator[Message]:
    nodes_by_id: dict[str, Any] = {}
    for message_place, message in enumerate(messages):
        if isinstance(message, dict):
            nodes_by_id[name_message(first_field(message, "messageId"), message_place)] = message
    source.drop("unreadable messages", scope, len(messages) - len(nodes_by_id))
    parents = link_to_parents(nodes_by_id)
    branch = newest_branch(parents, None, date_messages(nodes_by_id, parents).__getitem__)
    source.drop("messages of other branches", scope, len(nodes_by_id) - len(branch))
    for message_id in branch:
        yield from _read_message(source, scope, session, nodes_by_id[message_id])


def _read_message(
    source: Source, scope: str, session: str, message: dict[str, Any]
) -> Iterator[Message]:
    if message.get("error") is True:
        source.drop("error messages", scope)
        return
    content_parts = list(map(_plain_part, get_list(message, "content")))
    n_counted = len(content_parts)
    content, caption = text_and_caption(source, scope, content_parts)
    content = first_text(content, message.get("text"))
    role = "user"
    if not _is_user(message):
        role = "assistant"
        content, thoughts = _THINKING.subn("", content)
        source.drop("thoughts", scope, thoughts)
        n_counted += thoughts
    attached_files = [*get_list(message, "files"), *get_list(message, "attachments")]
    file_descriptions = [
        describe_file(attached_file, "filename", "name", "filepath")
        for attached_file in attached_files
    ]
    caption = join_names(caption, *file_descriptions)
    read_text = f"{message.get('text')}\n{content}\n{caption}"
    count_unread_texts(source, scope, message, {"content", "children"}, read_text)
    if n_counted and not f"{content}{caption}".strip():
        return
    columns = {
        "session": session,
        "id": first_field(message, "messageId"),
        "caption": caption,
        "timestamp": message.get("createdAt"),
        "role": role,
        "edited": describe_version(message),
    }
    yield from make_message(source, scope, role, content, **columns)


def _is_user(message: dict[str, Any]) -> bool:
    flag = message.get("isCreatedByUser")
    if isinstance(flag, bool):
        return flag
    return first_field(message, "sender").lower() == "user"


def _plain_part(content_part: Any) -> Any:
    """Give a part of a message as other tools write it: ``think`` is what they call thinking."""
    part_type = first_field(content_part, "type")
    if part_type == "think":
        return {"type": "thinking"}
    if part_type == "error":
        return {"type": "tool_error"}
    return content_part
