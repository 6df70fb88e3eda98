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
    describe_attached_file_or_empty,
    find_or_add_account_scope,
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
    first_possible_time,
    get_nested,
    get_nested_list,
    get_nested_objects,
)
from memlab.datasets.importers.message_branches import (
    find_shown_branch,
    read_newest_copies_and_count_older,
)
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
    read_conversation = partial(_read_conversation, source, scope_by_account={})
    yield from read_newest_copies_and_count_older(source, "conversation", read_conversation)


def _read_conversation(
    source: Source, conversation: Record, *, scope_by_account: dict[str, str]
) -> Iterator[Message]:
    raw_messages = _list_raw_messages(conversation)
    authors = [first_field_text(raw_message, "author") for raw_message in raw_messages]
    scope = find_or_add_account_scope(
        scope_by_account, first_non_empty_text(get_nested(conversation, "account.uuid"), *authors)
    )
    readable_messages = [
        raw_message for raw_message in raw_messages if isinstance(raw_message, dict)
    ]
    source.drop("unreadable messages", scope, len(raw_messages) - len(readable_messages))
    branch = _messages_of_current_or_newest_branch(
        readable_messages, conversation.get("current_leaf_message_uuid")
    )
    source.drop("messages of other branches", scope, len(readable_messages) - len(branch))
    session = first_field_text(conversation, "uuid", "name")
    for raw_message in branch:
        role = normalise_role(raw_message.get("sender"))
        if is_spoken_role_or_count_drop(source, scope, role):
            yield from _read_message_or_count_drop(
                source, scope, raw_message, role=str(role), session=session
            )


def _list_raw_messages(conversation: Record) -> list[JsonValue]:
    """Give all messages of a conversation, those of Claude Design as a chat has them."""
    if "chat_messages" in conversation or "messages" not in conversation:
        return conversation.read_field("chat_messages", record_fields.check_list)
    split_messages = list[Any]()
    for raw_message in conversation.read_field("messages", record_fields.check_list):
        split_messages += _split_claude_design_message(raw_message)
    return split_messages


def _read_message_or_count_drop(
    source: Source, scope: str, raw_message: JsonObject, *, role: str, session: str
) -> Iterable[Message]:
    blocks = get_nested_list(raw_message, "content")
    content = raw_message.get("text")
    if blocks:
        content = [block for block in blocks if not _is_document_block(block)]
        source.drop("documents", scope, len(blocks) - len(content))
    spoken_text, caption = read_text_and_caption_and_count_rest(source, scope, content)
    spoken_text, n_unshown = _UNSHOWN.subn("\n", spoken_text)
    if role == "assistant" and _ONLY_UNSHOWN.fullmatch(spoken_text.strip()):
        spoken_text = ""
        n_unshown += 1
    source.drop("blocks that the export does not show", scope, n_unshown)
    attached_files = list[Any]()
    for files_key in ("attachments", "files", "files_v2"):
        attached_files += get_nested_list(raw_message, files_key)
    file_descriptions = dict.fromkeys(
        describe_attached_file_or_empty(attached, "file_name") for attached in attached_files
    )
    caption = "; ".join(filter(None, (caption, *file_descriptions)))
    if role == "assistant":
        for tagged_block in _TAGS.finditer(spoken_text):
            source.drop(_TAGGED[tagged_block[1]], scope)
        spoken_text = _TAGS.sub("", spoken_text)
    pasted_texts = _list_pasted_texts_and_count_others(
        source, scope, attached_files, typed_text=spoken_text
    )
    columns: dict[str, Any] = {}
    if role == "user" and spoken_text.strip():
        columns["quoted"] = pasted_texts  # beside a request, what was pasted is what it is about
    spoken_text = "\n".join([spoken_text, *pasted_texts])
    count_unread_texts(source, scope, raw_message, _READ, spoken_text)
    other_types = {first_field_text(block, "type") for block in blocks} - {"text"}
    if (n_unshown or other_types) and not spoken_text.strip() and not caption:
        return ()  # its blocks are counted
    columns |= {
        "session": session,
        "id": first_field_text(raw_message, "uuid"),
        "role": role,
        "caption": caption,
    }
    return make_message_or_count_drop(
        source, scope, role, spoken_text, timestamp=raw_message.get("created_at"), **columns
    )


def _is_document_block(content_block: JsonValue) -> bool:
    return (
        first_field_text(content_block, "type"),
        first_field_text(content_block, "name"),
    ) in _DOCUMENTS


def _list_pasted_texts_and_count_others(
    source: Source, scope: str, attachments: list[JsonValue], *, typed_text: str
) -> list[str]:
    """Give the texts of attachments that were pasted: beside no other text, or without the
    name of a file.
    """
    pasted_texts = list[str]()
    for attached in attachments:
        text = first_field_text(attached, "extracted_content")
        if not text:
            continue
        if typed_text.strip() and first_field_text(attached, "file_name"):
            source.drop("texts of attachments", scope)
        elif text not in pasted_texts:
            pasted_texts.append(text)
    return pasted_texts


def _split_claude_design_message(raw_message: JsonValue) -> Iterator[JsonValue]:
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
    for attachment in get_nested_objects(content, "attachments"):
        if not attachment.get("hidden"):
            named_file = {"file_name": attachment.get("name"), "mime_type": attachment.get("type")}
            attached_files.append(named_file | {"extracted_content": attachment.get("content")})
    own_id = first_field_text(raw_message, "uuid")
    message: JsonObject = {
        "uuid": own_id,
        "sender": role,
        "attachments": attached_files,
        "created_at": first_possible_time(raw_message.get("created_at"), content.get("timestamp")),
        "author": content.get("authorAccountUuid"),
    }
    blocks = get_nested_list(content, "contentBlocks")
    if not blocks:
        blocks = [{"type": "text", "text": content.get("content") or ""}]
    for run_number, (is_typed, blocks_of_run) in enumerate(groupby(blocks, _is_user_interjection)):
        message_part = message | {"content": list(blocks_of_run)}
        if is_typed:
            message_part["sender"] = "user"
            message_part["content"] = list(map(_text_of_interjection, message_part["content"]))
        if run_number:
            message_part["attachments"] = []
            if own_id:
                message_part["uuid"] = f"{own_id} {run_number}"
        yield message_part


def _is_user_interjection(content_block: JsonValue) -> bool:
    """Say whether a block was typed while Claude worked."""
    return get_nested(content_block, "type") == "user_interjection"


def _text_of_interjection(content_block: JsonObject) -> str:
    return first_non_empty_text(
        get_nested(content_block, "message.content"), content_block.get("message")
    )


def _messages_of_current_or_newest_branch(
    raw_messages: list[JsonObject], current_leaf_id: JsonValue
) -> list[JsonObject]:
    """Give the messages from the first to the current one, or to the newest that nobody answers."""
    current = ""
    if isinstance(current_leaf_id, str):
        current = current_leaf_id
    found_branch = find_shown_branch(raw_messages, current)
    if found_branch is None:
        return raw_messages
    return found_branch.messages
