"""LM Studio's conversations: a file each, with the versions of every message.

Layout: the files ``~/.lmstudio/conversations/*.conversation.json``. A version is one step, or
several: blocks of text, of which some are thoughts, calls of tools, and notes of the program.
Messages have no times of their own; they get that of their conversation.
"""

from __future__ import annotations

from collections.abc import Iterator

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    is_spoken_role_or_count_drop,
    make_message_or_count_drop,
    normalise_role,
    read_text_and_caption_and_count_rest,
    session_name_by_file_name,
)
from memlab.datasets.importers.loose_json import (
    JsonValue,
    RawTime,
    first_field_text,
    first_possible_time,
    get_nested,
    get_nested_list,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

_READ = {"messages", "systemPrompt", "notes"}


def is_lm_studio_conversation(file: Source) -> bool:
    return {"messages.versions", "messages.currentlySelected"} <= file.keys


def read_lm_studio_conversation(source: Source) -> Iterator[Message]:
    """Read every file as a session of one scope."""
    session_names = session_name_by_file_name(source)
    for file in source.members:
        session = session_names[file.name].removesuffix(".conversation")
        for _, record in file.values():
            prompt = first_field_text(record, "systemPrompt")
            source.drop("system messages", OWNER_SCOPE, bool(prompt))
            source.drop("notes", OWNER_SCOPE, len(get_nested_list(record, "notes")))
            count_unread_texts(source, OWNER_SCOPE, record, _READ, "", is_around_messages=True)
            created_at = first_possible_time(get_nested(record, "createdAt"))
            messages = get_nested_list(record, "messages")
            for number, message in enumerate(messages, 1):
                yield from _read_message_or_count_drop(source, session, number, message, created_at)
            if messages and created_at is not None:
                action_text = "given to their messages, which have none"
                source.keep("times of conversations", OWNER_SCOPE, action_text)


def _read_message_or_count_drop(
    source: Source,
    session: str,
    message_number: int,
    raw_message: JsonValue,
    conversation_time: RawTime | None,
) -> Iterator[Message]:
    """Read a message, which has the time of its conversation."""
    version = _choose_version_and_count_others(source, raw_message)
    role = normalise_role(get_nested(version, "role"))
    if not is_spoken_role_or_count_drop(source, OWNER_SCOPE, role):
        return
    steps = get_nested_list(version, "steps")
    content_parts = list(get_nested_list(version, "content"))
    for step in steps:
        content_parts += _list_spoken_parts_and_count_others(source, step)
    content, caption = read_text_and_caption_and_count_rest(
        source, OWNER_SCOPE, list(map(_file_part_to_common_layout, content_parts))
    )
    read_text = f"{content}\n{caption}"
    count_unread_texts(source, OWNER_SCOPE, version, {"content", "steps", "senderInfo"}, read_text)
    count_unread_texts(source, OWNER_SCOPE, raw_message, {"versions"}, read_text)
    if steps and not f"{content}{caption}".strip():
        return  # its steps are counted
    sender = str(role)
    if role == "assistant":
        sender = first_field_text(version, "senderInfo.senderName") or sender
    columns = {
        "session": session,
        "id": f"{session} {message_number}",
        "caption": caption,
        "role": role,
    }
    yield from make_message_or_count_drop(
        source, OWNER_SCOPE, sender, content, timestamp=conversation_time, **columns
    )


def _choose_version_and_count_others(source: Source, raw_message: JsonValue) -> JsonValue:
    """Give the version of a message that is selected, or else the last; the others are counted."""
    versions = get_nested_list(raw_message, "versions")
    if not versions:
        return None
    source.drop("messages of other branches", OWNER_SCOPE, len(versions) - 1)
    selected_version = get_nested(raw_message, "currentlySelected")
    if selected_version in range(len(versions)):
        return versions[selected_version]
    return versions[-1]


def _list_spoken_parts_and_count_others(source: Source, raw_step: JsonValue) -> list[JsonValue]:
    """Give the parts of a step that are said; thoughts, calls of tools and notes are counted."""
    step_type = first_field_text(raw_step, "type")
    if step_type != "contentBlock":
        reason = "tool calls"
        if "debug" in step_type:
            reason = "lines about the session"
        source.drop(reason, OWNER_SCOPE)
        return []
    if get_nested(raw_step, "style.type") == "thinking":
        source.drop("thoughts", OWNER_SCOPE)
        return []
    return get_nested_list(raw_step, "content")


def _file_part_to_common_layout(content_part: JsonValue) -> JsonValue:
    """Give a part with the name of its file where other tools have it."""
    if first_field_text(content_part, "type") != "file":
        return content_part
    part_type = "file"
    if "image" in first_field_text(content_part, "fileType"):
        part_type = "image"
    return {
        "type": part_type,
        "name": first_field_text(content_part, "name", "fileName", "fileIdentifier"),
    }
