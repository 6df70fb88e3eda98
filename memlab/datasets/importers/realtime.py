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
    make_session_messages,
    name_files,
    read_turns,
)
from memlab.datasets.importers.loose_json import (
    first_field,
    get_list,
    get_nested,
    list_or_empty,
)
from memlab.datasets.importers.message_fields import read_time_value
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts, join_texts

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
    names = name_files(source)
    for file in source.members:
        log = _SessionLog(source)
        for _, record in file.values():
            event = _unwrap_event(record)
            session = first_field(event, "session.id")
            if session and log.session and session != log.session:
                yield from log.give(names[file.name])
                log = _SessionLog(source)
            log.session = session or log.session
            log.add(record, event)
        yield from log.give(names[file.name])


def _unwrap_event(record: Any) -> dict[str, Any]:
    """Give the event of a line; an empty one where there is none."""
    if not isinstance(record, dict):
        return {}
    if "." in first_field(record, "type"):
        return record
    for inner in record.values():
        if isinstance(inner, dict) and "." in first_field(inner, "type"):
            return inner
    return {}


class _SessionLog:
    """The items of a session so far, in the order in which the conversation has them.

    :param parts: what was said of an item, by the number of its part; ``deltas``: in small parts.
    :param sent: items without an id that the client sent, and the server has not repeated yet.
    """

    def __init__(self, source: Source) -> None:
        self.source, self.session = source, ""
        self.items: dict[str, dict[str, Any]] = {}
        self.order, self.sent = list[str](), list[str]()
        self.parts: dict[str, dict[int, str]] = {}
        self.deltas: dict[str, dict[int, str]] = {}
        self.events = list[Any]()
        self.instructions = dict[str, None]()

    def add(self, record: Any, event: dict[str, Any]) -> None:
        """Take up an event."""
        if not event:
            self.source.drop("unreadable messages", OWNER_SCOPE)
            return
        self.events.append(record)
        kind, own = first_field(event, "type"), first_field(event, "item_id")
        place = get_nested(event, "content_index")
        if not isinstance(place, int):
            place = 0
        when = read_time_value(record)
        if own and _SAID_WHOLE.fullmatch(kind):
            said = first_field(event, "transcript", "text")
            self.parts.setdefault(own, {})[place] = said
            self.add_item({"id": own, "role": _guess_role(kind)}, "", when)
        elif own and _SAID_IN_PARTS.fullmatch(kind) and isinstance(event.get("delta"), str):
            deltas = self.deltas.setdefault(own, {})
            deltas[place] = deltas.get(place, "") + event["delta"]
            self.add_item({"id": own, "role": _guess_role(kind)}, "", when)
        else:
            self.add_item(get_nested(event, "item"), first_field(event, "previous_item_id"), when)
            for item in get_list(event, "response.output"):
                self.add_item(item, "", when)
        for path in _INSTRUCTIONS:
            instructions = first_field(event, path)
            if instructions:
                self.instructions[instructions] = None

    def add_item(self, item: Any, previous: str, when: Any) -> None:
        """Take up an item, or what a later event says of it."""
        if not isinstance(item, dict):
            return
        own = first_field(item, "id")
        if not own:
            own = f"sent {len(self.order)}"
            self.sent.append(own)
        elif own not in self.items:
            self.take_sent(own, item)
        known = self.items.get(own)
        if known is None:
            place = len(self.order)
            if previous in self.items:
                place = self.order.index(previous) + 1
            self.order.insert(place, own)
            self.items[own] = {"timestamp": when} | item
            return
        for key, value in item.items():
            if value not in (None, "", []):
                known[key] = value

    def take_sent(self, own: str, item: dict[str, Any]) -> None:
        """Give an item that the client sent the id by which the server repeats it."""
        for sent in self.sent:
            if join_texts(self.items[sent].get("content")) == join_texts(item.get("content")):
                self.sent.remove(sent)
                self.items[own] = self.items.pop(sent)
                self.order[self.order.index(sent)] = own
                return

    def give(self, name: str) -> Iterator[Message]:
        """Give the messages of the session, and count what else its events hold."""
        self.source.drop("system messages", OWNER_SCOPE, len(self.instructions))
        listed = [self.complete(own) for own in self.order]
        spoken = join_texts([listed, list(self.instructions)])
        for event in self.events:
            count_unread_texts(self.source, OWNER_SCOPE, event, (), spoken)
        turns = list(read_turns(self.source, OWNER_SCOPE, listed))
        session = self.session or name
        yield from make_session_messages(self.source, OWNER_SCOPE, session, turns)

    def complete(self, own: str) -> dict[str, Any]:
        """Give an item with what was said of it in other events."""
        item = dict(self.items[own])
        parts = list_or_empty(item.get("content")).copy()
        if isinstance(item.get("content"), str):
            parts = [item["content"]]
        heard = self.deltas.get(own, {}) | self.parts.get(own, {})
        for place in sorted(heard):
            if not heard[place]:
                continue
            if place >= len(parts) or not isinstance(parts[place], dict):
                parts.append({"type": "text", "text": heard[place]})
            elif "text" in parts[place]:
                parts[place] = {**parts[place], "text": heard[place]}
            else:
                parts[place] = {**parts[place], "transcript": heard[place]}
        if parts:
            item["content"] = parts
        return item


def _guess_role(kind: str) -> str:
    """Give the role of who says what an event holds, which the item of it may correct."""
    if "input_audio" in kind:
        return "user"
    return "assistant"
