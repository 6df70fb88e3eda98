"""mem0's dumps: the messages that memories were made of.

Layout: mem0's history of memories, or what was given to ``add``.
"""

from __future__ import annotations

from collections.abc import Iterator

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_session_messages_and_count_drops,
    name_conversation_by_place,
    read_message_fields_and_count_drops,
)
from memlab.datasets.importers.loose_json import (
    first_field_text,
    first_filled_list,
    first_non_empty_text,
    first_possible_time,
    get_nested,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts, join_all_texts_within

_MEMORY = {"memory", "old_memory", "new_memory", "memory_id"}
_MEMORY |= {"results.memory", "results.memory_id", "results.old_memory"}
_MESSAGES = ("input", "messages")
_ABOUT = {"id", "hash", "user_id", "created_at", "event", "results", "memories", "metadata"}


def is_mem0_dump(file: Source) -> bool:
    if "scope" in file.keys or file.keys.isdisjoint(_MEMORY):
        return False
    return not file.keys.isdisjoint(_ABOUT)


def read_mem0_dump(source: Source) -> Iterator[Message]:
    """Read the messages that memories were made of.

    A memory alone is no message, and is counted.
    """
    for file, number, raw in source.stream_numbered_member_values():
        entries = first_filled_list(raw, "results", "memories") or [raw]
        for entry in entries:
            scope = first_non_empty_text(
                first_field_text(entry, "user_id", "agent_id"), OWNER_SCOPE
            )
            message_list = first_filled_list(entry, *_MESSAGES)
            if not message_list:
                source.drop("facts without their messages", scope)
            else:
                joined_texts = join_all_texts_within(message_list)
                count_unread_texts(
                    source, scope, entry, _MESSAGES, joined_texts, is_around_messages=True
                )
            turns = list(read_message_fields_and_count_drops(source, scope, message_list))
            scope_and_words = scope, "\x1f".join(f"{turn['role']} {turn['text']}" for turn in turns)
            # One call makes several memories, each with its messages.
            if turns and scope_and_words in source.report.seen:
                source.drop("repeated messages", scope, len(turns))
                continue
            source.report.seen[scope_and_words] = "", 0
            session = first_field_text(entry, "run_id", "session_id")
            if not session:
                session = name_conversation_by_place(source, file, number)
            created_at = first_possible_time(get_nested(entry, "created_at"))
            yield from make_session_messages_and_count_drops(
                source, scope, session, turns, created_at
            )
