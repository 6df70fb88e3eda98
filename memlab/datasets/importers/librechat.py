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
    describe_attached_file_or_empty,
    find_or_add_account_scope,
    make_message_or_count_drop,
    read_text_and_caption_and_count_rest,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    first_field_text,
    first_non_empty_text,
    get_nested_list,
    join_unique_names,
)
from memlab.datasets.importers.message_branches import (
    branch_ids_to_current_or_newest,
    given_or_made_up_id,
    parent_id_by_message_id,
    time_and_place_by_message_id,
)
from memlab.datasets.importers.unknown_message_layouts import comparable_version_text_or_empty
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
            session = first_field_text(record, "conversationId")
            message_list = get_nested_list(record, "messages")
            if not message_list:
                rows_by_session.setdefault(session, []).append(record)
                continue
            prompt = first_field_text(record, *_PROMPTS)
            source.drop("system messages", OWNER_SCOPE, bool(prompt))
            read_keys = {"messages", *_PROMPTS}
            count_unread_texts(source, OWNER_SCOPE, record, read_keys, "", is_around_messages=True)
            session = first_non_empty_text(session, f"{file.stem}-{number}")
            yield from _read_messages_of_shown_branch(
                source, OWNER_SCOPE, session, list(_flatten_nested_messages(message_list))
            )
        for session, messages in rows_by_session.items():
            session = first_non_empty_text(session, file.stem)
            for user, user_messages in _group_messages_by_own_or_last_user(messages).items():
                scope = find_or_add_account_scope(users, user)
                yield from _read_messages_of_shown_branch(source, scope, session, user_messages)


def _group_messages_by_own_or_last_user(
    raw_messages: list[JsonValue],
) -> dict[str, list[JsonValue]]:
    """Give the messages of each user; one that names none is of the user before it."""
    named_users = list(
        filter(None, [first_field_text(message, "user") for message in raw_messages])
    )
    user = next(iter(named_users), "")
    messages_by_user: dict[str, list[Any]] = {}
    for message in raw_messages:
        user = first_field_text(message, "user") or user
        messages_by_user.setdefault(user, []).append(message)
    return messages_by_user


def _flatten_nested_messages(raw_messages: list[JsonValue]) -> Iterator[JsonValue]:
    """Give messages with those within them, parents first."""
    waiting = raw_messages[::-1]
    while waiting:
        message = waiting.pop()
        yield message
        waiting += get_nested_list(message, "children")[::-1]


def _read_messages_of_shown_branch(
    source: Source, scope: str, session: str, raw_messages: list[JsonValue]
) -> Iterator[Message]:
    nodes_by_id: dict[str, Any] = {}
    for message_place, message in enumerate(raw_messages):
        if isinstance(message, dict):
            nodes_by_id[
                given_or_made_up_id(first_field_text(message, "messageId"), message_place)
            ] = message
    source.drop("unreadable messages", scope, len(raw_messages) - len(nodes_by_id))
    parents = parent_id_by_message_id(nodes_by_id)
    branch = branch_ids_to_current_or_newest(
        parents, None, time_and_place_by_message_id(nodes_by_id, parents).__getitem__
    )
    source.drop("messages of other branches", scope, len(nodes_by_id) - len(branch))
    for message_id in branch:
        yield from _read_message_or_count_drop(source, scope, session, nodes_by_id[message_id])


def _read_message_or_count_drop(
    source: Source, scope: str, session: str, raw_message: JsonObject
) -> Iterator[Message]:
    if raw_message.get("error") is True:
        source.drop("error messages", scope)
        return
    content_parts = list(map(_to_common_content_part, get_nested_list(raw_message, "content")))
    n_counted = len(content_parts)
    content, caption = read_text_and_caption_and_count_rest(source, scope, content_parts)
    content = first_non_empty_text(content, raw_message.get("text"))
    role = "user"
    if not _is_by_user(raw_message):
        role = "assistant"
        content, thoughts = _THINKING.subn("", content)
        source.drop("thoughts", scope, thoughts)
        n_counted += thoughts
    attached_files = [
        *get_nested_list(raw_message, "files"),
        *get_nested_list(raw_message, "attachments"),
    ]
    file_descriptions = [
        describe_attached_file_or_empty(attached_file, "filename", "name", "filepath")
        for attached_file in attached_files
    ]
    caption = join_unique_names(caption, *file_descriptions)
    read_text = f"{raw_message.get('text')}\n{content}\n{caption}"
    count_unread_texts(source, scope, raw_message, {"content", "children"}, read_text)
    if n_counted and not f"{content}{caption}".strip():
        return
    columns = {
        "session": session,
        "id": first_field_text(raw_message, "messageId"),
        "caption": caption,
        "timestamp": raw_message.get("createdAt"),
        "role": role,
        "edited": comparable_version_text_or_empty(raw_message),
    }
    yield from make_message_or_count_drop(source, scope, role, content, **columns)


def _is_by_user(raw_message: JsonObject) -> bool:
    flag = raw_message.get("isCreatedByUser")
    if isinstance(flag, bool):
        return flag
    return first_field_text(raw_message, "sender").lower() == "user"


def _to_common_content_part(content_part: JsonValue) -> JsonValue:
    """Give a part of a message as other tools write it: ``think`` is what they call thinking."""
    part_type = first_field_text(content_part, "type")
    if part_type == "think":
        return {"type": "thinking"}
    if part_type == "error":
        return {"type": "tool_error"}
    return content_part
