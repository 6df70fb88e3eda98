"""Character.AI: chats with characters, as the site's data and the tools that save them have them.

Layouts: ``chats`` with ``turns`` of ``candidates`` (chat 2, of which ``primary_candidate_id`` is
shown); ``histories`` with ``msgs`` or ``messages`` (chat 1); and the lists of ``name``, ``message``
and ``isHuman`` of CAI Tools. What its API gives has the newest turn first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_message_or_count_drop,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    first_field_text,
    first_non_empty_text,
    get_nested,
    get_nested_list,
)
from memlab.datasets.importers.newest_first_lists import reverse_if_newest_first
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

_KEYS = {"chats.turns", "turns.candidates", "turns.turn_key", "histories.histories"}
_KEYS |= {"histories.msgs", "messages.src__is_human", "messages.src__name", "msgs.src"}
_KEYS |= {"histories.messages.src__is_human", "histories.messages.src"}
_TOOLS = {"histories.isHuman", "history.isHuman"}
_TOOL_KEYS = {"isHuman", "message", "name"}
"""Of a message of CAI Tools, which may stand in no chat."""
_LISTS_OF_TURNS = ("turns", "msgs", "messages", "history")
_HUMAN = ("src.is_human", "src__is_human", "author.is_human", "isHuman", "is_human")
_NAMES = ("src.name", "src__name", "author.name", "name")


_READ = {"candidates", "create_time", "created", "date", "src__name", "tgt", "image_prompt_text"}


def is_character_ai_export(file: Source) -> bool:
    return bool((_KEYS | _TOOLS) & file.keys) or file.keys >= _TOOL_KEYS


def read_character_ai_export(source: Source) -> Iterator[Message]:
    """Read every chat as a session of one scope; the character is the assistant."""
    for file in source.members:
        chat_number = 0
        tool_records = list[Any]()
        for _, record in file.values():
            if isinstance(record, dict) and record.keys() >= _TOOL_KEYS:
                tool_records.append(record)
                continue
            for chat in _list_chats_in_record(record):
                chat_number += 1
                session = _find_chat_id_or_empty(chat) or f"{file.stem}-{chat_number}"
                yield from _read_chat_messages(source, session, chat)
        yield from _read_chat_messages(source, file.stem, tool_records)


def _list_chats_in_record(raw_record: JsonValue) -> list[JsonValue]:
    """Give the chats in an object: under ``chats`` and ``histories``, or the object itself."""
    list_paths = ("chats", "histories.histories", "histories")
    chats = [chat for list_path in list_paths for chat in get_nested_list(raw_record, list_path)]
    return chats or [raw_record]


def _find_chat_id_or_empty(raw_chat: JsonValue) -> str:
    own_id = first_field_text(raw_chat, "chat_id", "external_id", "history_id", "id")
    if own_id:
        return own_id
    for turn in get_nested_list(raw_chat, "turns"):
        return first_field_text(turn, "turn_key.chat_id")
    return ""


def _read_chat_messages(source: Source, session: str, raw_chat: JsonValue) -> Iterator[Message]:
    for message in reverse_if_newest_first(
        _list_raw_turns(raw_chat), _written_time_of_turn_or_empty
    ):
        yield from _read_turn_or_count_drop(source, session, message)


def _list_raw_turns(raw_chat: JsonValue) -> list[JsonValue]:
    if isinstance(raw_chat, list):
        return raw_chat
    for list_key in _LISTS_OF_TURNS:
        if get_nested_list(raw_chat, list_key):
            return get_nested_list(raw_chat, list_key)
    return []


def _written_time_of_turn_or_empty(raw_turn: JsonValue) -> str:
    return first_field_text(raw_turn, "create_time", "created", "timestamp", "date")


def _read_turn_or_count_drop(
    source: Source, session: str, raw_turn: JsonValue
) -> Iterator[Message]:
    if not isinstance(raw_turn, dict):
        source.drop("unreadable messages", OWNER_SCOPE)
        return
    if raw_turn.get("is_alternative") is True:
        source.drop("messages of other branches", OWNER_SCOPE)
        return
    role = "assistant"
    if _is_by_human(raw_turn):
        role = "user"
    sender = first_field_text(raw_turn, *_NAMES) or role
    candidate = _choose_candidate_and_count_others(source, raw_turn)
    spoken = first_non_empty_text(
        get_nested(candidate, "raw_content"), raw_turn.get("text"), raw_turn.get("message")
    )
    columns = {
        "session": session,
        "id": first_field_text(raw_turn, "turn_key.turn_id", "uuid", "turn_id", "id"),
        "caption": _caption_of_image_or_empty(raw_turn, candidate),
        "timestamp": _written_time_of_turn_or_empty(raw_turn),
        "role": role,
    }
    count_unread_texts(source, OWNER_SCOPE, raw_turn, _READ, f"{spoken}\n{columns['caption']}")
    yield from make_message_or_count_drop(source, OWNER_SCOPE, sender, spoken, **columns)


def _is_by_human(raw_turn: JsonObject) -> bool:
    flags = [get_nested(raw_turn, flag_path) for flag_path in _HUMAN]
    return not {True, "true"}.isdisjoint(flag for flag in flags if isinstance(flag, (bool, str)))


def _caption_of_image_or_empty(raw_turn: JsonObject, shown_candidate: JsonValue) -> str:
    prompt = first_field_text(raw_turn, "image_prompt_text")
    if prompt:
        return f"image: {prompt}"
    image_paths = [
        first_field_text(shown_candidate, "tti_image_rel_path"),
        first_field_text(raw_turn, "image_rel_path"),
    ]
    if any(image_paths):
        return "image"
    return ""


def _choose_candidate_and_count_others(source: Source, raw_turn: JsonObject) -> JsonValue:
    """Give the version of a turn that is shown; the others are counted."""
    candidates = get_nested_list(raw_turn, "candidates")
    if not candidates:
        return None
    source.drop("messages of other branches", OWNER_SCOPE, len(candidates) - 1)
    primary_id = first_field_text(raw_turn, "primary_candidate_id")
    for candidate in candidates:
        if first_field_text(candidate, "candidate_id") == primary_id:
            return candidate
    return candidates[0]
