"""Claude.ai's ``conversations.json``: messages of content blocks, with branches where a message
names its parent.

Layout: MemPalace issues 677 and 646, Sinity/polylogue ``docs/providers/claude-ai.md``. The root's
parent is ``00000000-0000-4000-8000-000000000000``; ``current_leaf_message_uuid`` is there in dumps
of the web interface. A chat of Claude Design is a file of its own (2026): ``messages`` with a
``role`` and an object as their ``content``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

from memlab.datasets import record_fields
from memlab.datasets.importers.export_messages import (
    Message,
    describe_file,
    is_spoken_role,
    make_message,
    name_account,
    normalise_role,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import (
    first_field,
    first_text,
    first_time,
    get_list,
    get_nested,
    get_objects,
)
from memlab.datasets.importers.message_branches import find_branch, read_newest_conversations
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

_DOCUMENTS = {("tool_use", "artifacts"), ("tool_use", "create_file")}
_UNSHOWN = re.compile(
    r"\s*```[ \t]*\n?(?=[^`\n]*\b(?:device|mobile|app|client|version|platform)\b)"
    r"[^`\n]*\b(?:not|isn[’']t|aren[’']t)\b[^`\n]{0,20}\b(?:supported|available)\b[^`\n]*"
    r"\n?\s*```\s*"
)
"""What stands in place of a block: that this device, or the mobile app, does not show it."""
_ONLY_UNSHOWN = re.compile(r"This block is not supported on your current device yet\.?")
_TAGS = re.compile(r"(?s)<ant(Thinking|Artifact)\b.*?</ant\1>")  # in the text, in 2024
_TAGGED = {"Thinking": "thoughts", "Artifact": "documents"}
_DESIGN = {"messages.content.contentBlocks", "messages.content.authorAccountUuid"}
_READ = {"text", "content", "attachments", "files", "files_v2"}


def is_claude_ai_export(file: Source) -> bool:
    return "chat_messages" in file.keys or not file.keys.isdisjoint(_DESIGN)


def read_claude_ai_export(source: Source) -> Iterator[Message]:
    """Read every conversation as a session; accounts beyond the first have scopes of their own."""
    read_conversation = partial(_read_conversation, source, accounts={})
    yield from read_newest_conversations(source, "conversation", read_conversation)


def _read_conversation(
    source: Source, record: Record, *, accounts: dict[str, str]
) -> Iterator[Message]:
    raw_messages = _list_messages(record)
    authors = [first_field(message, "author") for message in raw_messages]
    scope = name_account(accounts, first_text(get_nested(record, "account.uuid"), *authors))
    readable_messages = [message for message in raw_messages if isinstance(message, dict)]
    source.drop("unreadable messages", scope, len(raw_messages) - len(readable_messages))
    branch = _current_branch(readable_messages, record.get("current_leaf_message_uuid"))
    source.drop("messages of other branches", scope, len(readable_messages) - len(branch))
    session = first_field(record, "uuid", "name")
    for message in branch:
        role = normalise_role(message.get("sender"))
        if is_spoken_role(source, scope, role):
            yield from _read_message(source, scope, message, role=str(role), session=session)


def _list_messages(record: Record) -> list[Any]:
    """Give all messages of a conversation, those of Claude Design as a chat has them."""
    if "chat_messages" in record or "messages" not in record:
        return record.take("chat_messages", record_fields.check_list)
    split_messages = list[Any]()
    for message in record.take("messages", record_fields.check_list):
        split_messages += _split_design(message)
    return split_messages


def _read_message(
    source: Source, scope: str, message: dict[str, Any], *, role: str, session: str
) -> Iterable[Message]:
    blocks = get_list(message, "content")
    content = message.get("text")
    if blocks:
        content = [block for block in blocks if not _is_document(block)]
        source.drop("documents", scope, len(blocks) - len(content))
    spoken_text, caption = text_and_caption(source, scope, content)
    spoken_text, n_unshown = _UNSHOWN.subn("\n", spoken_text)
    if role == "assistant" and _ONLY_UNSHOWN.fullmatch(spoken_text.strip()):
        spoken_text = ""
        n_unshown += 1
    source.drop("blocks that the export does not show", scope, n_unshown)
    attached_files = list[Any]()
    for files_key in ("attachments", "files", "files_v2"):
        attached_files += get_list(message, files_key)
    file_descriptions = dict.fromkeys(
        describe_file(attached, "file_name") for attached in attached_files
    )
    caption = "; ".join(filter(None, (caption, *file_descriptions)))
    if role == "assistant":
        for tagged_block in _TAGS.finditer(spoken_text):
            source.drop(_TAGGED[tagged_block[1]], scope)
        spoken_text = _TAGS.sub("", spoken_text)
    pasted_texts = _list_pasted(source, scope, attached_files, typed_text=spoken_text)
    columns: dict[str, Any] = {}
    if role == "user" and spoken_text.strip():
        columns["quoted"] = pasted_texts  # beside a request, what was pasted is what it is about
    spoken_text = "\n".join([spoken_text, *pasted_texts])
    count_unread_texts(source, scope, message, _READ, spoken_text)
    other_types = {first_field(block, "type") for block in blocks} - {"text"}
    if (n_unshown or other_types) and not spoken_text.strip() and not caption:
        return ()  # its blocks are counted
    columns |= {
        "session": session,
        "id": first_field(message, "uuid"),
        "role": role,
        "caption": caption,
    }
    return make_message(
        source, scope, role, spoken_text, timestamp=message.get("created_at"), **columns
    )


def _is_document(block: Any) -> bool:
    return (first_field(block, "type"), first_field(block, "name")) in _DOCUMENTS


def _list_pasted(source: Source, scope: str, files: list[Any], *, typed_text: str) -> list[str]:
    """Give the texts of attachments that were pasted: beside no other text, or without the
    name of a file.
    """
    pasted_texts = list[str]()
    for attached in files:
        text = first_field(attached, "extracted_content")
        if not text:
            continue
        if typed_text.strip() and first_field(attached, "file_name"):
            source.drop("texts of attachments", scope)
        elif text not in pasted_texts:
            pasted_texts.append(text)
    return pasted_texts


def _split_design(raw_message: Any) -> Iterator[Any]:
    """Give a message of Claude Design as messages of a chat: what its user wrote while
    Claude worked is one too.
    """
    if not isinstance(raw_message, dict):
        yield raw_message
        return
    content = raw_message.get("content")
    if not isinstance(content, dict):
        content = {"content": content}
    role = raw_message.get("role")
    if content.get("pill") is True:
        role = "system"
    attached_files = list[Any]()
    for attachment in get_objects(content, "attachments"):
        if not attachment.get("hidden"):
            named_file = {"file_name": attachment.get("name"), "mime_type": attachment.get("type")}
            attached_files.append(named_file | {"extracted_content": attachment.get("content")})
    own_id = first_field(raw_message, "uuid")
    message = {
        "uuid": own_id,
        "sender": role,
        "attachments": attached_files,
        "created_at": first_time(raw_message.get("created_at"), content.get("timestamp")),
        "author": content.get("authorAccountUuid"),
    }
    blocks = get_list(content, "contentBlocks")
    if not blocks:
        blocks = [{"type": "text", "text": content.get("content") or ""}]
    for run_number, (is_typed, blocks_of_run) in enumerate(groupby(blocks, _is_interjection)):
        message_part = message | {"content": list(blocks_of_run)}
        if is_typed:
            message_part["sender"] = "user"
            message_part["content"] = list(map(_read_interjection, message_part["content"]))
        if run_number:
            message_part["attachments"] = []
            if own_id:
                message_part["uuid"] = f"{own_id} {run_number}"
        yield message_part


def _is_interjection(block: Any) -> bool:
    """Say whether a block was typed while Claude worked."""
    return get_nested(block, "type") == "user_interjection"


def _read_interjection(message_part: dict[str, Any]) -> str:
    return first_text(get_nested(message_part, "message.content"), message_part.get("message"))


def _current_branch(messages: list[dict[str, Any]], leaf: Any) -> list[dict[str, Any]]:
    """Give the messages from the first to the current one, or to the newest that nobody answers."""
    current = ""
    if isinstance(leaf, str):
        current = leaf
    found_branch = find_branch(messages, current)
    if found_branch is None:
        return messages
    return found_branch.branch
