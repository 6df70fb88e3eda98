"""Open WebUI's export of chats: a tree of messages a chat.

Of it the branch that is shown is kept.

Layout: open-webui's ``backend/open_webui/models/chats.py`` and its page of chats: a list of rows
with a ``chat``, or such a ``chat`` alone. ``history.messages`` is the tree, ``messages`` the branch
that was shown when an old version wrote it. Thoughts and calls of tools stand in the text, between
``<details>`` tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    describe_attached_file_or_empty,
    find_or_add_account_scope,
    find_or_add_chat_name,
    is_spoken_role_or_count_drop,
    make_message_or_count_drop,
    normalise_role,
    read_text_and_caption_and_count_rest,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    first_field_text,
    first_non_empty_text,
    get_nested,
    get_nested_list,
    join_unique_names,
)
from memlab.datasets.importers.message_branches import (
    branch_ids_to_current_or_newest,
    find_shown_branch,
    read_newest_copies_and_count_older,
)
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

Key = TypeVar("Key")
_OPENING = r"<details\b[^>]*\btype=\"(?P<{}>[\w-]+)\"[^>]*>"
_DETAILS = re.compile(
    r"(?ms)(?P<code>```.*?(?:```|\Z)|`[^`\n]+`)"
    rf"|\s*{_OPENING.format('kind')}.*?</details>\s*"
    rf"|^\s*{_OPENING.format('cut_off')}.*"
)
"""Blocks beside what an answer says, one that is cut off at the beginning of a line.

In code they are text.
"""
_BLOCKS = {"reasoning": "thoughts"}
_TREES = {"chat.history", "history.currentId", "history.current_id"}


_READ_OF_CHATS = {"chat", "history", "messages", "params.system"}
_READ = {"output", "error", "merged"}
"""What is read of a message, or counted, beside its content."""


def is_open_webui_export(file: Source) -> bool:
    if _TREES & file.keys:
        return True
    return {"chat.messages", "chat.models"} <= file.keys


def read_open_webui_export(source: Source) -> Iterator[Message]:
    """Read every chat as a session; users beyond the first have scopes of their own."""
    scope_by_user: dict[str, str] = {}
    chat_names = ChatNames()
    yield from read_newest_copies_and_count_older(
        source,
        "chat",
        lambda record: _read_chat_messages(source, record, scope_by_user, chat_names),
    )


def _read_chat_messages(
    source: Source, chat_row: Record, scope_by_user: dict[str, str], chat_names: ChatNames
) -> Iterator[Message]:
    """Read a chat.

    Of those without an id, which have their titles, two of one title are two sessions.
    """
    chat: dict[str, Any] = chat_row
    if isinstance(chat_row.get("chat"), dict):
        chat = chat_row["chat"]
    scope = find_or_add_account_scope(scope_by_user, first_field_text(chat_row, "user_id"))
    session = first_non_empty_text(chat_row.get("id"), chat.get("id"))
    title = first_non_empty_text(chat_row.get("title"), chat.get("title"))
    if title and not session:
        session = find_or_add_chat_name(chat_names, str(len(chat_names) + 1), title)
    instruction = first_field_text(chat, "system", "params.system")
    source.drop("system messages", scope, bool(instruction))
    count_unread_texts(
        source, scope, {**chat, **chat_row}, _READ_OF_CHATS, "", is_around_messages=True
    )
    for raw_message in _list_shown_branch_and_count_others(source, scope, chat):
        yield from _read_message_or_count_drop(source, scope, session, raw_message)


def _list_shown_branch_and_count_others(
    source: Source, scope: str, raw_chat: JsonObject
) -> list[JsonObject]:
    """Give the messages of the branch that is shown."""
    messages = get_nested(raw_chat, "history.messages")
    if not isinstance(messages, dict):
        messages = {}
    if not messages:
        return _shown_branch_of_list_and_count_others(source, scope, raw_chat)
    nodes_by_id = dict(_readable_messages_or_count_drop(source, scope, messages.items()))
    parents = {node_id: message.get("parentId") for node_id, message in nodes_by_id.items()}
    ages_by_id = {node_id: _timestamp_or_zero(message) for node_id, message in nodes_by_id.items()}
    current = first_field_text(raw_chat, "history.currentId", "history.current_id")
    branch = branch_ids_to_current_or_newest(parents, current, ages_by_id.__getitem__)
    source.drop("messages of other branches", scope, len(nodes_by_id) - len(branch))
    return [nodes_by_id[node_id] for node_id in branch]


def _shown_branch_of_list_and_count_others(
    source: Source, scope: str, raw_chat: JsonObject
) -> list[JsonObject]:
    """List the messages of a chat without a history, of a tree those of the branch shown."""
    keyed_messages = enumerate(get_nested_list(raw_chat, "messages"))
    readable_messages = [
        message for _, message in _readable_messages_or_count_drop(source, scope, keyed_messages)
    ]
    found_branch = find_shown_branch(
        readable_messages, first_field_text(raw_chat, "currentId", "history.currentId")
    )
    if found_branch is None:
        return readable_messages
    source.drop("messages of other branches", scope, len(found_branch.other_messages))
    source.drop("repeated messages", scope, found_branch.n_older_versions)
    return found_branch.messages


def _readable_messages_or_count_drop(
    source: Source, scope: str, keyed_messages: Iterable[tuple[Key, JsonValue]]
) -> Iterator[tuple[Key, JsonObject]]:
    for message_id, message in keyed_messages:
        if isinstance(message, dict):
            yield message_id, message
        else:
            source.drop("unreadable messages", scope)


def _timestamp_or_zero(raw_message: JsonObject) -> float:
    written_time = raw_message.get("timestamp")
    if isinstance(written_time, (int, float)):
        return written_time
    return 0.0


def _read_message_or_count_drop(
    source: Source, scope: str, session: str, raw_message: JsonObject
) -> Iterator[Message]:
    role = normalise_role(raw_message.get("role"))
    if not is_spoken_role_or_count_drop(source, scope, role):
        return
    content = raw_message.get("content") or _list_parts_of_output_items(raw_message)
    shown_text, caption = read_text_and_caption_and_count_rest(source, scope, content)
    n_counted = 0
    if role == "assistant":
        shown_text, n_counted = _cut_and_count_detail_blocks(source, scope, shown_text)
    if raw_message.get("error"):
        source.drop("error messages", scope)
        n_counted += 1
    source.drop("merged answers", scope, bool(first_field_text(raw_message, "merged.content")))
    caption = join_unique_names(
        caption, *map(_describe_file_without_data_or_empty, get_nested_list(raw_message, "files"))
    )
    count_unread_texts(
        source,
        scope,
        raw_message,
        _READ,
        f"{first_non_empty_text(content)}\n{shown_text}\n{caption}\n{content}",
    )
    if n_counted and not f"{shown_text}{caption}".strip():
        return
    columns = {
        "session": session,
        "id": first_field_text(raw_message, "id"),
        "caption": caption,
        "timestamp": raw_message.get("timestamp"),
        "role": role,
    }
    yield from make_message_or_count_drop(source, scope, str(role), shown_text, **columns)


def _cut_and_count_detail_blocks(source: Source, scope: str, text: str) -> tuple[str, int]:
    """Give an answer without the blocks beside what it says, and how many there were."""
    count = 0

    def count_and_replace_block(block: re.Match[str]) -> str:
        nonlocal count
        if block["code"]:
            return block[0]
        count += 1
        kind = block["kind"] or block["cut_off"]
        source.drop(_BLOCKS.get(kind, "tool calls"), scope)
        return "\n"

    return _DETAILS.sub(count_and_replace_block, text), count


def _describe_file_without_data_or_empty(raw_file: JsonValue) -> str:
    """Describe a file; an image may stand there with all its bytes, which name nothing."""
    described = describe_attached_file_or_empty(raw_file, "name", "file.filename", "url")
    if "data:" in described:
        return "image"
    return described


def _list_parts_of_output_items(raw_message: JsonObject) -> list[JsonValue]:
    """Give the parts of an answer that is kept as the items of OpenAI's API."""
    content_parts: list[Any] = []
    for output_item in get_nested_list(raw_message, "output"):
        if get_nested(output_item, "type") == "message":
            content_parts += get_nested_list(output_item, "content")
        else:
            content_parts.append(output_item)
    return content_parts
