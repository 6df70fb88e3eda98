"""Conversations of ShareGPT and its kin, as data sets for training have them.

Layout: axolotl's page on conversation data sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import Any

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    name_conversation_by_place,
)
from memlab.datasets.importers.loose_json import (
    JsonValue,
    decode_if_json_text,
    first_field_text,
    first_non_empty_text,
    get_nested,
)
from memlab.datasets.importers.openai_messages import ConversationReader
from memlab.datasets.importers.unknown_message_layouts import may_hold_words
from memlab.datasets.importers.user_and_thread_fields import read_thread_and_container
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts, join_all_texts_within

_LISTS = ("conversations", "conversation", "items")
_COLUMNS = {"conversations", "conversation"}
_ABOUT_MESSAGES = {"messages", "conversation.id"}
"""Keys of a record whose conversation is an object about its messages."""
_PAIR = {
    "user": ("human", "user", "input", "instruction", "prompt"),
    "assistant": ("gpt", "assistant", "output", "response", "bot"),
}
_TURN = ("from", "value", "role", *_PAIR["user"], *_PAIR["assistant"])


def is_sharegpt_file(file: Source) -> bool:
    dotted_keys = map(".".join, product(_LISTS, _TURN))
    if "evidence_items" in file.keys or file.keys >= _ABOUT_MESSAGES:
        return False
    if not file.keys.isdisjoint(dotted_keys):
        return True
    if not file.columns.isdisjoint(_COLUMNS):
        return True
    return {"from", "value"} <= file.keys


def read_sharegpt_conversations(source: Source) -> Iterator[Message]:
    """Read every conversation as a session.

    A pair of question and answer is two messages, a row alone is one.
    """
    reader = ConversationReader(source)
    sessions = set[str]()
    for file in source.members:
        message_rows = list[Any]()
        for number, record in file.values():
            turn_list = _find_turns_of_conversation(record)
            if turn_list is None:
                message_rows.append(record)
                continue
            if first_field_text(record, "system", "system_prompt"):
                source.drop("system messages", OWNER_SCOPE)
            messages = list(chain.from_iterable(map(_split_pair_into_messages, turn_list)))
            place_name = name_conversation_by_place(source, file, number)
            session = first_non_empty_text(
                get_nested(record, "id"), read_thread_and_container(record)[0]
            )
            if session in sessions:  # an id that two have names neither
                session = f"{session} ({place_name})"
            if session:
                sessions.add(session)
            yield from reader.read_conversation(file, record, messages, session or place_name)
            joined_texts = join_all_texts_within(messages)
            count_unread_texts(
                source, OWNER_SCOPE, record, _LISTS, joined_texts, is_around_messages=True
            )
        if message_rows:
            yield from reader.read_message_rows(file, {}, message_rows)


def _find_turns_of_conversation(raw_record: JsonValue) -> list[JsonValue] | None:
    """Give the messages of a conversation; ``None`` where it is a row."""
    for list_key in _LISTS:
        listed_turns = decode_if_json_text(get_nested(raw_record, list_key))
        if isinstance(listed_turns, list):
            return listed_turns
    return None


def _split_pair_into_messages(raw_turn: JsonValue) -> Iterator[JsonValue]:
    """Give a question and its answer as two messages; any other is one as it is."""
    if not isinstance(raw_turn, dict) or {"from", "role", "value", "content"} & raw_turn.keys():
        yield raw_turn
        return
    other_fields = {key: value for key, value in raw_turn.items() if key not in _TURN}
    for role, known_keys in _PAIR.items():
        contents = [raw_turn[key] for key in known_keys if may_hold_words(raw_turn.get(key))]
        if contents:
            yield {"role": role, "content": contents[0]} | other_fields
            other_fields = {}
