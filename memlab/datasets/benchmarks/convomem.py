"""ConvoMem (Pakhomov et al., 2025): questions over conversations of one person with an assistant.

What is read: the evidence files (``evidence_questions/<kind>_evidence/<n>_evidence/*.json``, with
``evidence_items``) and the mixed test cases (``pre_mixed_testcases/…``, with ``evidenceItems`` and
``conversations``), one or a folder of them. A scope is an evidence item with its conversations, or
a test case; a session a conversation; there are no times. The kind of a question is its folder's,
without ``_evidence``. The evidence are the messages that ``message_evidences`` repeats word for
word; what is in no conversation is dropped with an issue. An answer about preferences or implicit
connections says what a good answer heeds: it is kept as the rubric too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memlab.datasets import record_fields
from memlab.datasets.message_identity import (
    make_benchmark_question,
    make_turn_record,
    turn_id_of_record,
)
from memlab.datasets.record_fields import BadField, JsonValue, Record, describe_value
from memlab.datasets.record_sources import Source

KEYS = {"evidence_items", "evidenceItems"}
FILES = ("*.json", "*_evidence/*.json", "*/*_evidence/*.json", "*/*/*_evidence/*.json")
_RUBRICS = ("preference", "implicit-connection")


def read_convomem(source: Source) -> Iterator[Record]:
    """Read evidence items or test cases: messages and questions."""
    for file in source.members:
        question_type = _question_type_of_folders_or_unspecified(file.path)
        scope_number = 0
        for place, raw_record in file.values():
            with file.record(f"record {place - 1}", raw_record):
                record = Record(raw_record)
                has_shared_talk = "evidenceItems" in record
                evidence_items = record.read_field(
                    "evidenceItems" if has_shared_talk else "evidence_items",
                    record_fields.check_list,
                )
                for scope_items in (
                    [evidence_items] if has_shared_talk else [[item] for item in evidence_items]
                ):
                    scope = f"{file.stem}/{scope_number}"
                    scope_number = scope_number + 1
                    with file.record(scope, scope_items):
                        talk_record = record if has_shared_talk else Record(scope_items[0])
                        turns = _make_turns_of_conversations(
                            scope, talk_record.read_field("conversations", record_fields.check_list)
                        )
                        yield from (
                            *turns,
                            *_read_questions_and_note_lost_evidence(
                                file, scope, scope_items, turns, question_type
                            ),
                        )


def _question_type_of_folders_or_unspecified(path: Path) -> str:
    """Read the kind of the questions off the folders of a file."""
    folders = (
        folder_name
        for folder_name in reversed(path.resolve().parts[:-1])
        if folder_name.endswith("_evidence")
    )
    question_type = next(
        (folder_name for folder_name in folders if not folder_name[0].isdigit()), "unspecified"
    )
    return question_type.removesuffix("_evidence").replace("_", "-")


def _make_turns_of_conversations(scope: str, raw_conversations: list[JsonValue]) -> list[Record]:
    turns = list[Record]()
    sessions = set[str]()
    for conversation_number, raw_conversation in enumerate(raw_conversations):
        conversation = Record(raw_conversation, f"conversations[{conversation_number}]")
        session = conversation.read_field(
            "id", record_fields.check_name, f"conversation_{conversation_number}"
        )
        session = f"{session}-{conversation_number}" if session in sessions else session
        sessions.add(session)
        for turn_number, raw_message in enumerate(
            conversation.read_field("messages", record_fields.check_list), 1
        ):
            message = Record(
                raw_message, f"conversations[{conversation_number}].messages[{turn_number - 1}]"
            )
            speaker = message.read_field("speaker", record_fields.check_name).strip().lower()
            turns.append(
                make_turn_record(
                    scope,
                    session,
                    turn_number,
                    speaker,
                    message.read_field("text", record_fields.check_text),
                )
            )
    if not turns:
        raise BadField("conversations", "no messages", "conversations with messages")
    return turns


def _read_questions_and_note_lost_evidence(
    file: Source,
    scope: str,
    evidence_items: list[JsonValue],
    turns: list[Record],
    question_type: str,
) -> Iterator[Record]:
    # Of several, the first that says it.
    turn_ids_by_text = {
        (turn["role"], turn["text"].strip()): turn_id_of_record(turn) for turn in reversed(turns)
    }
    for item_number, raw_item in enumerate(evidence_items):
        item = Record(raw_item, f"evidence item {item_number}")
        evidence = list[str]()
        for message_number, raw_message in enumerate(
            item.read_field("message_evidences", record_fields.check_list)
        ):
            message = Record(raw_message, f"message_evidences[{message_number}]")
            speaker = message.read_field("speaker", record_fields.check_name, "user")
            text = message.read_field("text", record_fields.check_text)
            said_by_whom = (speaker.strip().lower(), text.strip())
            if said_by_whom in turn_ids_by_text:
                evidence.append(turn_ids_by_text[said_by_whom])
            else:
                file.note(
                    f"{scope}: message_evidences[{message_number}]",
                    describe_value(text),
                    "dropped evidence",
                )
        answer = item.read_field("answer", record_fields.check_and_join_answer)
        question_fields = {
            "answer": answer,
            "type": question_type,
            "evidence": evidence,
            "abstention": question_type == "abstention",
        }
        question_fields["rubric"] = answer or None if question_type in _RUBRICS else None
        yield make_benchmark_question(
            scope,
            item_number,
            item.read_field("question", record_fields.check_name),
            **question_fields,
        )
