"""Claude.ai's ``conversations.json``: messages of content blocks, with branches where a message names its parent.

Layout: MemPalace issues 677 and 646, Sinity/polylogue ``docs/providers/claude-ai.md``. The root's
parent is ``00000000-0000-4000-8000-000000000000``; ``current_leaf_message_uuid`` is there in dumps
of the web interface. A chat of Claude Design is a file of its own (2026): ``messages`` with a
``role`` and an object as their ``content``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import Record
from memlab.datasets.importers.branches import find_branch, read_newest_conversations
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    describe_file,
    is_spoken_role,
    make_message,
    normalise_role,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import (
    first_field,
    first_text,
    first_time,
    get_list,
    get_nested,
)
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts

_DOCUMENTS = {("tool_use", "artifacts"), ("tool_use", "create_file")}
_UNSHOWN = re.compile(
    r"\s*```[ \t]*\n?(?=[^`\n]*\b(?:device|mobile|app|client|version|platform)\b)"
    r"[^`\n]*\b(?:not|isn[’']t|aren[’']t)\b[^`\n]{0,20}\b(?:supported|available)\b[^`\n]*\n?\s*```\s*"
)
"""What stands in place of a block: that this device, or the mobile app, does not show it."""
_ONLY_UNSHOWN = re.compile(r"This block is not supported on your current device yet\.?")
_TAGS = re.compile(r"(?s)<ant(Thinking|Artifact)\b.*?</ant\1>")  # in the text, in 2024


_DESIGN = {"messages.content.contentBlocks", "messages.content.authorAccountUuid"}


_READ = {"text", "content", "attachments", "files", "files_v2"}


def is_claude_ai_export(file: Source) -> bool:
    return "chat_messages" in file.keys or bool(_DESIGN & file.keys)


def read_claude_ai_export(source: Source) -> Iterator[Message]:
    """Read every conversation as a session; accounts beyond the first have scopes of their own."""
    accounts: dict[str, str] = {}
    yield from read_newest_conversations(
        source,
        "conversation",
        lambda record: _read_claude_ai_conversation(source, record, accounts),
    )


def _read_claude_ai_conversation(
    source: Source, record: Record, accounts: dict[str, str]
) -> Iterator[Message]:
    if "chat_messages" not in record and "messages" in record:
        every = [
            part
            for each in record.take("messages", fields.check_list)
            for part in _split_design(each)
        ]
    else:
        every = record.take("chat_messages", fields.check_list)
    authors = (get_nested(each, "author") for each in every)
    account = first_text(get_nested(record, "account.uuid"), *authors) or next(iter(accounts), "")
    scope = accounts.setdefault(account, account if accounts else OWNER_SCOPE)
    session = first_field(record, "uuid", "name")
    listed = [each for each in every if isinstance(each, dict)]
    source.drop("unreadable messages", scope, len(every) - len(listed))
    kept = _current_branch(listed, record.get("current_leaf_message_uuid"))
    source.drop("messages of other branches", scope, len(listed) - len(kept))
    for each in kept:
        role = normalise_role(each.get("sender"))
        if not is_spoken_role(source, scope, role):
            continue
        blocks = get_list(each, "content")
        said = [
            block
            for block in blocks
            if (first_field(block, "type"), first_field(block, "name")) not in _DOCUMENTS
        ]
        source.drop("documents", scope, len(blocks) - len(said))
        text, caption = text_and_caption(source, scope, said if blocks else each.get("text"))
        text, unshown = _UNSHOWN.subn("\n", text)
        if role == "assistant" and _ONLY_UNSHOWN.fullmatch(text.strip()):
            text, unshown = "", unshown + 1
        source.drop("blocks that the export does not show", scope, unshown)
        files = [
            file for key in ("attachments", "files", "files_v2") for file in get_list(each, key)
        ]
        named = [describe_file(file, "file_name") for file in files]
        caption = "; ".join(filter(None, [caption, *dict.fromkeys(named)]))
        if role == "assistant":
            for tag in _TAGS.finditer(text):
                source.drop("thoughts" if tag[1] == "Thinking" else "documents", scope)
            text = _TAGS.sub("", text)
        # A long paste is an attachment without a name.
        read = [file for file in files if first_field(file, "extracted_content")]
        pasted = [file for file in read if not text.strip() or not first_field(file, "file_name")]
        source.drop("texts of attachments", scope, len(read) - len(pasted))
        text = "\n".join(
            [text, *dict.fromkeys(first_field(file, "extracted_content") for file in pasted)]
        )
        count_unread_texts(source, scope, each, _READ, text)
        counted = unshown or any(get_nested(block, "type") != "text" for block in blocks)
        if not text.strip() and not caption and counted:
            continue  # Its blocks are counted.
        more = {
            "session": session,
            "id": first_field(each, "uuid"),
            "role": role,
            "caption": caption,
        }
        yield from make_message(
            source, scope, str(role), text, timestamp=each.get("created_at"), **more
        )


def _split_design(each: Any) -> Iterator[Any]:
    """Give a message of Claude Design as messages of a chat: what its user wrote while Claude worked is one too."""
    if not isinstance(each, dict):
        yield each
        return
    said, own = each.get("content"), first_field(each, "uuid")
    said = said if isinstance(said, dict) else {"content": said}
    role = "system" if said.get("pill") is True else each.get("role")
    when = first_time(each.get("created_at"), said.get("timestamp"))
    files = [
        {
            "file_name": file.get("name"),
            "mime_type": file.get("type"),
            "extracted_content": file.get("content"),
        }
        for file in get_list(said, "attachments")
        if isinstance(file, dict) and not file.get("hidden")
    ]
    blocks = get_list(said, "contentBlocks") or [
        {"type": "text", "text": said.get("content") or ""}
    ]
    for n, (typed, run) in enumerate(
        groupby(blocks, lambda block: get_nested(block, "type") == "user_interjection")
    ):
        parts = list(run)
        if typed:
            parts = [
                first_text(get_nested(part, "message.content"), part.get("message"))
                for part in parts
            ]
        yield {
            "uuid": f"{own} {n}" if own and n else own,
            "sender": "user" if typed else role,
            "content": parts,
            "attachments": [] if n else files,
            "created_at": when,
            "author": said.get("authorAccountUuid"),
        }


def _current_branch(listed: list[dict[str, Any]], leaf: Any) -> list[dict[str, Any]]:
    """Give the messages from the first to the current one, or to the newest that nobody answers."""
    found = find_branch(listed, leaf if isinstance(leaf, str) else "")
    return listed if found is None else found.branch
