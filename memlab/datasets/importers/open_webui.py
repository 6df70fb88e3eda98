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
from typing import Any

from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    describe_file,
    is_spoken_role,
    make_message,
    name_account,
    name_chat,
    normalise_role,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import (
    first_field,
    first_text,
    get_list,
    get_nested,
    join_names,
)
from memlab.datasets.importers.message_branches import (
    find_branch,
    newest_branch,
    read_newest_conversations,
)
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

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
    users: dict[str, str] = {}
    titles = ChatNames()
    yield from read_newest_conversations(
        source, "chat", lambda record: _read_chat(source, record, users, titles)
    )


def _read_chat(
    source: Source, record: Record, users: dict[str, str], titles: ChatNames
) -> Iterator[Message]:
    """Read a chat.

    Of those without an id, which have their titles, two of one title are two sessions.
    """
    chat: dict[str, Any] = record
    if isinstance(record.get("chat"), dict):
        chat = record["chat"]
    scope = name_account(users, first_field(record, "user_id"))
    session = first_text(record.get("id"), chat.get("id"))
    title = first_text(record.get("title"), chat.get("title"))
    if title and not session:
        session = name_chat(titles, str(len(titles) + 1), title)
    instruction = first_field(chat, "system", "params.system")
    source.drop("system messages", scope, bool(instruction))
    count_unread_texts(
        source, scope, {**chat, **record}, _READ_OF_CHATS, "", is_around_messages=True
    )
    for message in _shown_messages(source, scope, chat):
        yield from _read_message(source, scope, session, message)


def _shown_messages(source: Source, scope: str, chat: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the messages of the branch that is shown."""
    messages = get_nested(chat, "history.messages")
    if not isinstance(messages, dict):
        messages = {}
    if not messages:
        return _branch_of_list(source, scope, chat)
    nodes_by_id = dict(_readable(source, scope, messages.items()))
    parents = {node_id: message.get("parentId") for node_id, message in nodes_by_id.items()}
    ages_by_id = {node_id: _age(message) for node_id, message in nodes_by_id.items()}
    current = first_field(chat, "history.currentId", "history.current_id")
    branch = newest_branch(parents, current, ages_by_id.__getitem__)
    source.drop("messages of other branches", scope, len(nodes_by_id) - len(branch))
    return [nodes_by_id[node_id] for node_id in branch]


def _branch_of_list(source: Source, scope: str, chat: dict[str, Any]) -> list[dict[str, Any]]:
    """List the messages of a chat without a history, of a tree those of the branch shown."""
    keyed_messages = enumerate(get_list(chat, "messages"))
    readable_messages = [message for _, message in _readable(source, scope, keyed_messages)]
    found_branch = find_branch(
        readable_messages, first_field(chat, "currentId", "history.currentId")
    )
    if found_branch is None:
        return readable_messages
    source.drop("messages of other branches", scope, len(found_branch.left))
    source.drop("repeated messages", scope, found_branch.older)
    return found_branch.branch


def _readable(
    source: Source, scope: str, keyed: Iterable[tuple[Any, Any]]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    for message_id, message in keyed:
        if isinstance(message, dict):
            yield message_id, message
        else:
            source.drop("unreadable messages", scope)


def _age(node: dict[str, Any]) -> float:
    written_time = node.get("timestamp")
    if isinstance(written_time, (int, float)):
        return written_time
    return 0.0


def _read_message(
    source: Source, scope: str, session: str, message: dict[str, Any]
) -> Iterator[Message]:
    role = normalise_role(message.get("role"))
    if not is_spoken_role(source, scope, role):
        return
    content = message.get("content") or _spoken_output(message)
    shown_text, caption = text_and_caption(source, scope, content)
    n_counted = 0
    if role == "assistant":
        shown_text, n_counted = _cut_details(source, scope, shown_text)
    if message.get("error"):
        source.drop("error messages", scope)
        n_counted += 1
    source.drop("merged answers", scope, bool(first_field(message, "merged.content")))
    caption = join_names(caption, *map(_name_file, get_list(message, "files")))
    count_unread_texts(
        source, scope, message, _READ, f"{first_text(content)}\n{shown_text}\n{caption}\n{content}"
    )
    if n_counted and not f"{shown_text}{caption}".strip():
        return
    columns = {
        "session": session,
        "id": first_field(message, "id"),
        "caption": caption,
        "timestamp": message.get("timestamp"),
        "role": role,
    }
    yield from make_message(source, scope, str(role), shown_text, **columns)


def _cut_details(source: Source, scope: str, text: str) -> tuple[str, int]:
    """Give an answer without the blocks beside what it says, and how many there were."""
    count = 0

    def cut(block: re.Match[str]) -> str:
        nonlocal count
        if block["code"]:
            return block[0]
        count += 1
        kind = block["kind"] or block["cut_off"]
        source.drop(_BLOCKS.get(kind, "tool calls"), scope)
        return "\n"

    return _DETAILS.sub(cut, text), count


def _name_file(file: Any) -> str:
    """Describe a file; an image may stand there with all its bytes, which name nothing."""
    described = describe_file(file, "name", "file.filename", "url")
    if "data:" in described:
        return "image"
    return described


def _spoken_output(message: dict[str, Any]) -> list[Any]:
    """Give the parts of an answer that is kept as the items of OpenAI's API."""
    content_parts: list[Any] = []
    for output_item in get_list(message, "output"):
        if get_nested(output_item, "type") == "message":
            content_parts += get_list(output_item, "content")
        else:
            content_parts.append(output_item)
    return content_parts
