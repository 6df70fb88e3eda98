"""Events of OpenAI's realtime API, as clients log them: lines, or a list.

A spoken message arrives in several events: its item first, what a person said some events later as
a transcript, what the assistant says in small parts and then whole. An event may stand within a
line that says when it came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_session_messages_and_count_drops,
    read_message_fields_and_count_drops,
    session_name_by_file_name,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    RawTime,
    first_field_text,
    get_nested,
    get_nested_list,
    list_or_empty,
)
from memlab.datasets.importers.unknown_message_layouts import find_message_time
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts, join_all_texts_within

_BEGINS = re.compile(
    r'(?<!\\)"type"\s*:\s*"(?:conversation\.item\.|input_audio_buffer\.|session\.(?:cre|upd)ated"'
    r"|response\.(?:output_)?(?:audio_transcript|text)\.)"
)
_SAID_WHOLE = re.compile(
    r"response\.(?:output_)?(?:audio_transcript|text)\.done"
    r"|conversation\.item\.input_audio_transcription\.completed"
)
_SAID_IN_PARTS = re.compile(
    r"response\.(?:output_)?(?:audio_transcript|text)\.delta"
    r"|conversation\.item\.input_audio_transcription\.delta"
)
_INSTRUCTIONS = ("session.instructions", "response.instructions")


def is_realtime_log(file: Source) -> bool:
    if _BEGINS.search(file.head) is None:
        return False
    return "event_id" in file.head or "item_id" in file.head or '"item"' in file.head


def read_realtime_events(source: Source) -> Iterator[Message]:
    """Read the events of every file; each session that begins in one is a session."""
    session_names = session_name_by_file_name(source)
    for file in source.members:
        session_log = _RealtimeSession(source)
        for _, raw_line in file.values():
            event = _find_event_in_line_or_empty(raw_line)
            session = first_field_text(event, "session.id")
            if session and session_log.session and session != session_log.session:
                yield from session_log.make_messages_and_count_rest(session_names[file.name])
                session_log = _RealtimeSession(source)
            session_log.session = session or session_log.session
            session_log.add_event_or_count_unreadable(raw_line, event)
        yield from session_log.make_messages_and_count_rest(session_names[file.name])


def _find_event_in_line_or_empty(raw_line: JsonValue) -> JsonObject:
    """Give the event of a line; an empty one where there is none."""
    if not isinstance(raw_line, dict):
        return {}
    if "." in first_field_text(raw_line, "type"):
        return raw_line
    for inner_event in raw_line.values():
        if isinstance(inner_event, dict) and "." in first_field_text(inner_event, "type"):
            return inner_event
    return {}


class _RealtimeSession:
    """The items of a session so far, in the order in which the conversation has them.

    :param parts: what was said of an item, by the number of its part; ``deltas``: in small parts.
    :param sent: items without an id that the client sent, and the server has not repeated yet.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.session = ""
        self.items: dict[str, JsonObject] = {}
        self.order = list[str]()
        self.sent = list[str]()
        self.parts: dict[str, dict[int, str]] = {}
        self.deltas: dict[str, dict[int, str]] = {}
        self.events = list[Any]()
        self.instructions = dict[str, None]()

    def add_event_or_count_unreadable(self, raw_line: JsonValue, event: JsonObject) -> None:
        """Take up an event."""
        if not event:
            self.source.drop("unreadable messages", OWNER_SCOPE)
            return
        self.events.append(raw_line)
        event_type = first_field_text(event, "type")
        item_id = first_field_text(event, "item_id")
        content_index = get_nested(event, "content_index")
        if not isinstance(content_index, int):
            content_index = 0
        written_at = find_message_time(raw_line)
        if item_id and _SAID_WHOLE.fullmatch(event_type):
            said_text = first_field_text(event, "transcript", "text")
            self.parts.setdefault(item_id, {})[content_index] = said_text
            self.add_or_update_item(
                {"id": item_id, "role": _guess_role_of_event_type(event_type)}, "", written_at
            )
        elif (
            item_id and _SAID_IN_PARTS.fullmatch(event_type) and isinstance(event.get("delta"), str)
        ):
            item_deltas = self.deltas.setdefault(item_id, {})
            item_deltas[content_index] = item_deltas.get(content_index, "") + event["delta"]
            self.add_or_update_item(
                {"id": item_id, "role": _guess_role_of_event_type(event_type)}, "", written_at
            )
        else:
            self.add_or_update_item(
                get_nested(event, "item"), first_field_text(event, "previous_item_id"), written_at
            )
            for item in get_nested_list(event, "response.output"):
                self.add_or_update_item(item, "", written_at)
        for instruction_path in _INSTRUCTIONS:
            instructions = first_field_text(event, instruction_path)
            if instructions:
                self.instructions[instructions] = None

    def add_or_update_item(
        self, raw_item: JsonValue, previous_item_id: str, written_at: RawTime | None
    ) -> None:
        """Take up an item, or what a later event says of it."""
        if not isinstance(raw_item, dict):
            return
        item_id = first_field_text(raw_item, "id")
        if not item_id:
            item_id = f"sent {len(self.order)}"
            self.sent.append(item_id)
        elif item_id not in self.items:
            self.rename_sent_item_with_same_text(item_id, raw_item)
        known_item = self.items.get(item_id)
        if known_item is None:
            item_place = len(self.order)
            if previous_item_id in self.items:
                item_place = self.order.index(previous_item_id) + 1
            self.order.insert(item_place, item_id)
            self.items[item_id] = {"timestamp": written_at} | raw_item
            return
        for key, value in raw_item.items():
            if value not in (None, "", []):
                known_item[key] = value

    def rename_sent_item_with_same_text(self, server_item_id: str, raw_item: JsonObject) -> None:
        """Give an item that the client sent the id by which the server repeats it."""
        for sent_id in self.sent:
            if join_all_texts_within(self.items[sent_id].get("content")) == join_all_texts_within(
                raw_item.get("content")
            ):
                self.sent.remove(sent_id)
                self.items[server_item_id] = self.items.pop(sent_id)
                self.order[self.order.index(sent_id)] = server_item_id
                return

    def make_messages_and_count_rest(self, default_session: str) -> Iterator[Message]:
        """Give the messages of the session, and count what else its events hold."""
        self.source.drop("system messages", OWNER_SCOPE, len(self.instructions))
        complete_items = [self.item_with_streamed_parts(item_id) for item_id in self.order]
        joined_texts = join_all_texts_within([complete_items, list(self.instructions)])
        for event in self.events:
            count_unread_texts(self.source, OWNER_SCOPE, event, (), joined_texts)
        item_turns = list(
            read_message_fields_and_count_drops(self.source, OWNER_SCOPE, complete_items)
        )
        session = self.session or default_session
        yield from make_session_messages_and_count_drops(
            self.source, OWNER_SCOPE, session, item_turns
        )

    def item_with_streamed_parts(self, item_id: str) -> JsonObject:
        """Give an item with what was said of it in other events."""
        item = dict(self.items[item_id])
        content_parts = list_or_empty(item.get("content")).copy()
        if isinstance(item.get("content"), str):
            content_parts = [item["content"]]
        heard_parts = self.deltas.get(item_id, {}) | self.parts.get(item_id, {})
        for part_place in sorted(heard_parts):
            if not heard_parts[part_place]:
                continue
            if part_place >= len(content_parts) or not isinstance(content_parts[part_place], dict):
                content_parts.append({"type": "text", "text": heard_parts[part_place]})
            elif "text" in content_parts[part_place]:
                content_parts[part_place] = {
                    **content_parts[part_place],
                    "text": heard_parts[part_place],
                }
            else:
                content_parts[part_place] = {
                    **content_parts[part_place],
                    "transcript": heard_parts[part_place],
                }
        if content_parts:
            item["content"] = content_parts
        return item


def _guess_role_of_event_type(event_type: str) -> str:
    """Give the role of who says what an event holds, which the item of it may correct."""
    if "input_audio" in event_type:
        return "user"
    return "assistant"
