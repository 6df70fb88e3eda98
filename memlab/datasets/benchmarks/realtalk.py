"""REALTALK (Lee et al., 2025): ten chats of two people each over three weeks, with questions.

LoCoMo's layout, nearly.

What is read: ``Chat_<n>_<a>_<b>.json``, or the folder of them. A scope is a file, a session what it
calls ``session_<k>``, a turn a message in its place there. Both speakers are people and get the
role ``user``; a turn has its own time, read as UTC. Evidence cites ``dia_id``, whose session
numbers do not follow the sessions of the file in half of the chats, so that it is resolved through
the messages; ranges are taken as all of their messages, what is clearly meant is repaired, and the
rest is dropped, with an issue each. Event annotations are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from memlab.datasets import record_fields
from memlab.datasets.benchmarks.locomo import ConversationReader, parse_dia_id_of_message
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source

KEYS = {"session_1", "session_1_date_time", "events_session_1"}
FILES = ("Chat_*.json",)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "commonsense"}
"""Category number to its name in the paper."""
_FORMS = ("%d.%m.%Y, %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y, %H:%M", "%d.%m.%Y %H:%M")
parse_date = record_fields.make_date_parser(*_FORMS, example="29.12.2023, 00:51:12")


def read_realtalk(source: Source) -> Iterator[Record]:
    """Read chats: their messages and questions."""
    for file, number, raw_chat in source.stream_numbered_member_values():
        reader = ConversationReader(
            file, file.stem + (f"-{number - 1}" if number > 1 else ""), CATEGORIES
        )
        with file.record(reader.name, raw_chat):
            record = Record(raw_chat)
            raw_questions = record.read_field("qa", record_fields.check_list)
            yield from (
                *reader.read_turns_of_sessions(record, _read_session_messages),
                *reader.read_questions(raw_questions),
            )


def _read_session_messages(
    reader: ConversationReader, conversation: Record, session_key: str
) -> Iterator[Record]:
    """Read the messages of a session; one without a time has the session's."""
    session_day = conversation.read_field(f"{session_key}_date_time", parse_date, None)
    for message_number, raw_message in enumerate(conversation[session_key], 1):
        with reader.source.record(
            f"{reader.name}: {session_key}[{message_number - 1}]", raw_message
        ):
            message = Record(raw_message)
            dia_id = parse_dia_id_of_message(message)
            text = message.read_field("clean_text", record_fields.check_text, None)
            caption = message.read_field("blip_caption", record_fields.check_text, None)
            if text is None and caption is None:
                reader.note(
                    f"{session_key}[{message_number - 1}]: clean_text",
                    "nothing",
                    "kept without a text",
                )
            sender = message.read_field("speaker", record_fields.check_name)
            time = message.read_field("date_time", parse_date, session_day)
            yield reader.make_turn_and_keep_its_id(
                dia_id,
                session_key,
                message_number,
                text or "",
                sender=sender,
                caption=caption,
                timestamp=time,
            )
