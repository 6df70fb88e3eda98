"""Character.AI: chats with characters, as the site's data and the tools that save them have them.

Layouts: ``chats`` with ``turns`` of ``candidates`` (chat 2, of which ``primary_candidate_id`` is
shown); ``histories`` with ``msgs`` or ``messages`` (chat 1); and the lists of ``name``, ``message``
and ``isHuman`` of CAI Tools. What its API gives has the newest turn first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.export_messages import OWNER_SCOPE, Message, make_message
from memlab.datasets.importers.loose_json import first_field, first_text, get_list, get_nested
from memlab.datasets.importers.newest_first_lists import oldest_first
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
            for chat in _list_chats(record):
                chat_number += 1
                session = _chat_id(chat) or f"{file.stem}-{chat_number}"
                yield from _read_chat(source, session, chat)
        yield from _read_chat(source, file.stem, tool_records)


def _list_chats(raw: Any) -> list[Any]:
    """Give the chats in an object: under ``chats`` and ``histories``, or the object itself."""
    list_paths = ("chats", "histories.histories", "histories")
    chats = [chat for list_path in list_paths for chat in get_list(raw, list_path)]
    return chats or [raw]


def _chat_id(chat: Any) -> str:
    own_id = first_field(chat, "chat_id", "external_id", "history_id", "id")
    if own_id:
        return own_id
    for turn in get_list(chat, "turns"):
        return first_field(turn, "turn_key.chat_id")
    return ""


def _read_chat(source: Source, session: str, chat: Any) -> Iterator[Message]:
    for message in oldest_first(_list_turns(chat), _turn_time):
        yield from _read_turn(source, session, message)


def _list_turns(chat: Any) -> list[Any]:
    if isinstance(chat, list):
        return chat
    for list_key in _LISTS_OF_TURNS:
        if get_list(chat, list_key):
            return get_list(chat, list_key)
    return []


def _turn_time(turn: Any) -> str:
    return first_field(turn, "create_time", "created", "timestamp", "date")


def _read_turn(source: Source, session: str, turn: Any) -> Iterator[Message]:
    if not isinstance(turn, dict):
        source.drop("unreadable messages", OWNER_SCOPE)
        return
    if turn.get("is_alternative") is True:
        source.drop("messages of other branches", OWNER_SCOPE)
        return
    role = "assistant"
    if _is_human(turn):
        role = "user"
    sender = first_field(turn, *_NAMES) or role
    candidate = _shown_candidate(source, turn)
    spoken = first_text(get_nested(candidate, "raw_content"), turn.get("text"), turn.get("message"))
    columns = {
        "session": session,
        "id": first_field(turn, "turn_key.turn_id", "uuid", "turn_id", "id"),
        "caption": _describe_image(turn, candidate),
        "timestamp": _turn_time(turn),
        "role": role,
    }
    count_unread_texts(source, OWNER_SCOPE, turn, _READ, f"{spoken}\n{columns['caption']}")
    yield from make_message(source, OWNER_SCOPE, sender, spoken, **columns)


def _is_human(turn: dict[str, Any]) -> bool:
    flags = [get_nested(turn, flag_path) for flag_path in _HUMAN]
    return not {True, "true"}.isdisjoint(flag for flag in flags if isinstance(flag, (bool, str)))


def _describe_image(turn: dict[str, Any], candidate: Any) -> str:
    prompt = first_field(turn, "image_prompt_text")
    if prompt:
        return f"image: {prompt}"
    image_paths = [
        first_field(candidate, "tti_image_rel_path"),
        first_field(turn, "image_rel_path"),
    ]
    if any(image_paths):
        return "image"
    return ""


def _shown_candidate(source: Source, turn: dict[str, Any]) -> Any:
    """Give the version of a turn that is shown; the others are counted."""
    candidates = get_list(turn, "candidates")
    if not candidates:
        return None
    source.drop("messages of other branches", OWNER_SCOPE, len(candidates) - 1)
    primary_id = first_field(turn, "primary_candidate_id")
    for candidate in candidates:
        if first_field(candidate, "candidate_id") == primary_id:
            return candidate
    return candidates[0]
