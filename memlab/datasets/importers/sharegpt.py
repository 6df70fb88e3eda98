"""Conversations of ShareGPT and its kin, as data sets for training have them.

Layout: axolotl's page on conversation data sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby
from typing import Any

from memlab.datasets.importers.conversation_rows import read_thread
from memlab.datasets.importers.export_messages import OWNER_SCOPE, Message, name_conversation
from memlab.datasets.importers.loose_json import decode_json, first_field, first_text, get_nested
from memlab.datasets.importers.message_fields import has_words
from memlab.datasets.importers.openai_messages import ConversationReader
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts, join_texts

_LISTS = ("conversations", "conversation", "items")
_PAIR = {
    "user": ("human", "user", "input", "instruction", "prompt"),
    "assistant": ("gpt", "assistant", "output", "response", "bot"),
}
_TURN = ("from", "value", "role", *_PAIR["user"], *_PAIR["assistant"])


def is_sharegpt_list(file: Source) -> bool:
    turns = {f"{key}.{part}" for key in _LISTS for part in _TURN}
    if "evidence_items" in file.keys:
        return False
    if not file.keys.isdisjoint(turns):
        return True
    return "conversations" in file.columns or {"from", "value"} <= file.keys


def read_sharegpt(source: Source) -> Iterator[Message]:
    """Read every conversation as a session.

    A pair of question and answer is two messages, a row alone is one.
    """
    reader = ConversationReader(source)
    sessions = set[str]()
    for _, values in groupby(source.member_values(), lambda value: value[0].name):
        rows = list[Any]()
        for file, number, raw in values:
            listed = _find_list(raw)
            if listed is None:
                rows.append(raw)
                continue
            if first_field(raw, "system", "system_prompt"):
                source.drop("system messages", OWNER_SCOPE)
            turns = list(chain.from_iterable(map(_split_pair, listed)))
            place = name_conversation(source, file, number)
            session = first_text(get_nested(raw, "id"), read_thread(raw)[0])
            if session in sessions:  # an id that two have names neither
                session = f"{session} ({place})"
            if session:
                sessions.add(session)
            yield from reader.read_list(file, raw, turns, session or place)
            spoken = join_texts(turns)
            count_unread_texts(source, OWNER_SCOPE, raw, _LISTS, spoken, around=True)
        if rows:
            yield from reader.read_rows(file, {}, rows)


def _find_list(raw: Any) -> list[Any] | None:
    """Give the messages of a conversation; ``None`` where it is a row."""
    for key in _LISTS:
        found = decode_json(get_nested(raw, key))
        if isinstance(found, list):
            return found
    return None


def _split_pair(raw: Any) -> Iterator[Any]:
    """Give a question and its answer as two messages; any other is one as it is."""
    if not isinstance(raw, dict) or {"from", "role", "value", "content"} & raw.keys():
        yield raw
        return
    beside = {key: value for key, value in raw.items() if key not in _TURN}
    for role, keys in _PAIR.items():
        contents = [raw[key] for key in keys if has_words(raw.get(key))]
        if contents:
            yield {"role": role, "content": contents[0]} | beside
            beside = {}
