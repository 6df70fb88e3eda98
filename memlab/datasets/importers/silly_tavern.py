"""SillyTavern's chats: JSON lines, the first of which says who talks, then a message a line.

Layout: SillyTavern's ``public/script.js`` (``saveChat``, ``getMessageTimeStamp``). ``swipes`` are
the versions of an answer, of which ``mes`` is shown; what the program itself says has a kind in
``extra.type``. A message that was hidden from the model stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    describe_attached_file_or_empty,
    make_message_or_count_drop,
    session_name_by_file_name,
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
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

_STAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m ?(\d{1,2})s(?: ?(\d{1,3})ms)?"
)
_KEYS = {"mes", "chat_metadata"}
_OTHER_KEYS = {"is_user", "character_name"}
_PROGRAM = {"sillytavern system", "system", "note", "sillytavern"}


_READ_OF_HEADERS = {"chat_metadata.note_prompt", "user_name", "character_name", "create_date"}
_READ = {"swipes", "swipe_info", "send_date", "extra.reasoning", "extra.title"}
"""What is read of a message, or counted, beside ``mes``."""


def is_silly_tavern_chat(file: Source) -> bool:
    return bool(_KEYS & file.keys) and bool(_OTHER_KEYS & file.keys)


def read_silly_tavern_chat(source: Source) -> Iterator[Message]:
    """Read every chat as a session of one scope; the character is the assistant."""
    session_names = session_name_by_file_name(source)
    for file in source.members:
        session = session_names[file.name]
        for _, record in file.values():
            if not isinstance(record, dict):
                source.drop("unreadable messages", OWNER_SCOPE)
            elif "chat_metadata" in record and "mes" not in record:
                instruction = first_field_text(record, "chat_metadata.note_prompt")
                source.drop("system messages", OWNER_SCOPE, bool(instruction))
                count_unread_texts(
                    source, OWNER_SCOPE, record, _READ_OF_HEADERS, "", is_around_messages=True
                )
            else:
                yield from _read_message_or_count_drop(source, session, record)


def _read_message_or_count_drop(
    source: Source, session: str, raw_message: JsonObject
) -> Iterator[Message]:
    swipes = get_nested_list(raw_message, "swipes")
    source.drop("messages of other branches", OWNER_SCOPE, len(swipes[1:]))
    source.drop("thoughts", OWNER_SCOPE, bool(first_field_text(raw_message, "extra.reasoning")))
    if _is_written_by_program(raw_message):
        source.drop("system messages", OWNER_SCOPE)
        return
    if raw_message.get("is_system") is True:
        source.keep("messages hidden from the model", OWNER_SCOPE)
    role = "assistant"
    if raw_message.get("is_user") is True:
        role = "user"
    sender = first_non_empty_text(raw_message.get("name"), role)
    columns = {
        "session": session,
        "role": role,
        "caption": _caption_of_attachments(raw_message),
        "timestamp": _silly_tavern_time_as_iso_or_as_written(raw_message.get("send_date")),
    }
    spoken_text = first_non_empty_text(
        raw_message.get("mes"), _selected_swipe_or_empty(raw_message, swipes)
    )
    count_unread_texts(
        source, OWNER_SCOPE, raw_message, _READ, f"{spoken_text}\n{columns['caption']}"
    )
    yield from make_message_or_count_drop(source, OWNER_SCOPE, sender, spoken_text, **columns)


def _is_written_by_program(raw_message: JsonObject) -> bool:
    """Say whether a message is what the program says: a narrator, help, a comment."""
    if first_field_text(raw_message, "extra.type"):
        return True
    return (
        raw_message.get("is_system") is True
        and first_field_text(raw_message, "name").lower() in _PROGRAM
    )


def _selected_swipe_or_empty(raw_message: JsonObject, swipes: list[JsonValue]) -> JsonValue:
    selected = raw_message.get("swipe_id")
    if isinstance(selected, int) and selected in range(len(swipes)):
        return swipes[selected]
    return ""


def _caption_of_attachments(raw_message: JsonObject) -> str:
    """Describe the image or the files of a message."""
    extra_fields = get_nested(raw_message, "extra")
    descriptions = []
    for media_key in ("image", "image_swipes", "media"):
        if get_nested(extra_fields, media_key):
            title = first_field_text(extra_fields, "title")
            descriptions.append(f"image: {title}".removesuffix(": "))
            break
    attached_files = [get_nested(extra_fields, "file"), *get_nested_list(extra_fields, "files")]
    return join_unique_names(
        *descriptions,
        *(describe_attached_file_or_empty(attached, "name") for attached in attached_files),
    )


def _silly_tavern_time_as_iso_or_as_written(raw_time: JsonValue) -> JsonValue:
    """Give a time of SillyTavern's own form as ISO 8601 writes it; any other as it stands."""
    if not isinstance(raw_time, str):
        return raw_time
    stamp = _STAMP.fullmatch(raw_time.strip())
    if stamp:
        year, month, day, hour, minute, second, thousandths = map(int, stamp.groups("0"))
        with suppress(ValueError):
            moment = datetime(year, month, day, hour, minute, second, thousandths * 1000)
            return moment.isoformat()
    return raw_time
