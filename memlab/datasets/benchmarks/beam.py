"""BEAM (Tavakoli et al., 2025): chats of 100 thousand to 10 million tokens, with probing questions
of ten abilities.

What is read: ``chats/<size>/<n>``, a folder of such folders, one ``chat.json`` (with
``probing_questions/`` beside it), or the published table as Parquet or JSON (a row a chat). A scope
is a chat, a session a batch (``batch_3``; in the largest chats ``plan-2.batch_3``), a turn a
message. A time anchor stands for the messages from it to the next one of its batch. Messages of the
user end in a marker of the plan, ``->-> 1,2``, which is cut: the plan is what questions are made
from. ``source_chat_ids``, in whatever lists and objects, are the evidence; those of a knowledge
update include the value before. Abilities are the kinds of questions, with hyphens; the rubric is
kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from memlab.datasets import record_fields
from memlab.datasets.message_identity import (
    make_benchmark_question,
    make_turn_record,
    turn_id_of_record,
)
from memlab.datasets.record_fields import BadField, JsonObject, JsonValue, Record, describe_value
from memlab.datasets.record_sources import Source

KEYS = {"batch_number", "plan-1", "probing_questions", "conversation_seed"}
FILES = ("chat.json", "*/chat.json", "*/*/chat.json", "*.parquet")
"""Where the chats of a folder are."""
ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")
"""What the answer is called, by ability."""
_PROBING = "probing_questions/probing_questions.json"
_MARKER = re.compile(r"\s*->->[ \t]*(?:\d+(?:\s*,\s*(?:\d+|N/A))*)?")
parse_date = record_fields.make_date_parser("%B-%d-%Y", "%b-%d-%Y", example="March-15-2024")


class _Batch(NamedTuple):
    """A batch of a chat, with the name of its plan and a dot, which are empty in most chats."""

    plan_prefix: str
    name: str
    time_anchors: list[JsonValue]
    messages: list[JsonValue]


def read_beam(source: Source) -> Iterator[Record]:
    """Read chats: messages and probing questions."""
    seen_names: set[str] = set()
    for file in source.members:
        batches: list[Any] = []
        for record_number, raw_value in file.values():
            if not (isinstance(raw_value, dict) and "probing_questions" in raw_value):
                batches.append(raw_value)
                continue
            with file.record(f"chat {record_number - 1}", raw_value):
                chat_record = Record(raw_value)
                chat_name = chat_record.read_field("conversation_id", record_fields.check_name)
                if chat_name in seen_names:
                    raise BadField("conversation_id", f"{chat_name!r} again", "an id of its own")
                seen_names.add(chat_name)
                plans = [
                    Record(plan_record, f"plans[{plan_number}]")
                    for plan_number, plan_record in enumerate(
                        chat_record.read_field("plans", record_fields.check_list, [])
                    )
                ]
                plan_batches = [
                    {
                        f"plan-{plan_number}": plan_record.read_field(
                            "chat", record_fields.check_list
                        )
                    }
                    for plan_number, plan_record in enumerate(plans, 1)
                ]
                chat_batches = plan_batches or chat_record.read_field(
                    "chat", record_fields.check_list
                )
                yield from _read_chat_turns_and_questions(
                    file, chat_name, chat_batches, _parse_questions_of_row(raw_value)
                )
        if batches:
            chat_name = (
                file.stem.removesuffix("/chat")
                if "/" in file.name
                else file.path.resolve().parent.name
            )
            with file.record(chat_name, None):
                yield from _read_chat_turns_and_questions(
                    file, chat_name, batches, _read_questions_beside_or_note_missing(file)
                )


def _parse_questions_of_row(table_row: JsonObject) -> JsonValue:
    """Read the questions of a row of the published table, which writes them as Python does."""
    literal = table_row["probing_questions"]
    try:
        return ast.literal_eval(literal) if isinstance(literal, str) else literal
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        expected = "an object of abilities, or a Python literal of it"
        raise BadField("probing_questions", describe_value(literal), expected) from None


def _read_questions_beside_or_note_missing(chat_file: Source) -> JsonValue:
    path = chat_file.path.parent / _PROBING
    if not path.is_file():
        chat_file.note("probing_questions", f"no {_PROBING} beside it", "kept without questions")
        return {}
    question_file = Source(
        path, chat_file.on_error, chat_file.quarantine_dir, report=chat_file.report
    )
    return next((value for _, value in question_file.values()), {})


def _read_chat_turns_and_questions(
    file: Source, chat_name: str, raw_batches: list[JsonValue], raw_questions: JsonValue
) -> Iterator[Record]:
    """Read one chat: its turns, then its questions, whose evidence is cited by the numbers of
    messages.
    """
    turn_ids_by_message_number: dict[int, list[str]] = {}
    turns = [
        *_read_turns_and_fill_ids_by_number(
            file, chat_name, raw_batches, turn_ids_by_message_number
        )
    ]
    if not turns:
        raise BadField("", "no messages", "batches with turns")
    abilities = Record(raw_questions, "probing_questions")
    question_records = list[Record]()
    question_number = 0
    for ability in abilities:
        record_fields.check_name(ability, "ability")
        for question_place, raw_question in enumerate(
            abilities.read_field(ability, record_fields.check_list)
        ):
            place_text = f"{chat_name}: {ability}[{question_place}]"
            with file.record(place_text, raw_question):
                record = Record(raw_question)
                evidence = list[str]()
                if ability != "abstention":
                    numbers = _check_and_flatten_numbers(
                        record.get("source_chat_ids"), "source_chat_ids"
                    )
                    evidence = _resolve_evidence_and_note_unclear(
                        file,
                        [*numbers],
                        turn_ids_by_message_number,
                        f"{place_text}: source_chat_ids",
                    )
                answer_key = next((key for key in ANSWERS if record.get(key) is not None), "answer")
                answer = record.read_field(answer_key, record_fields.check_and_join_answer, None)
                question_fields: dict[str, Any] = {
                    "answer": answer,
                    "abstention": ability == "abstention",
                    "evidence": evidence,
                }
                question_fields["rubric"] = record.read_field(
                    "rubric", record_fields.check_text_or_texts, None
                )
                question_text = record.read_field("question", record_fields.check_name)
                question_type = ability.replace("_", "-")
                question_records.append(
                    make_benchmark_question(
                        chat_name,
                        question_number,
                        question_text,
                        type=question_type,
                        **question_fields,
                    )
                )
            question_number += 1
    yield from (*turns, *question_records)


def _read_turns_and_fill_ids_by_number(
    file: Source,
    chat_name: str,
    raw_batches: list[JsonValue],
    turn_ids_by_message_number: dict[int, list[str]],
) -> Iterator[Record]:
    """Read the messages of the batches.

    :param turn_ids_by_message_number: filled with the turns of each message id; a few ids of BEAM
        stand twice.
    """
    plan_of_turns = ""
    number_shift = 0
    last_number = -1
    for plan_prefix, batch, anchors, messages in _flatten_batches_of_plans(raw_batches):
        batch_label = f"{chat_name}: {plan_prefix}{batch}"
        turn_time = None
        with file.record(batch_label, anchors):
            turn_time = next(
                (parse_date(anchor, "time_anchor") for anchor in anchors if anchor is not None),
                None,
            )
        if turn_time is None:
            file.note(batch_label, "no time anchor", "kept without a time")
        for turn_number, raw_message in enumerate(messages, 1):
            with file.record(f"{batch_label}[{turn_number - 1}]", raw_message):
                message = Record(raw_message)
                message_number = message.read_field("id", record_fields.check_integer)
                role = message.read_field("role", record_fields.check_name)
                text = _MARKER.sub("", message.read_field("content", record_fields.check_text))
                turn_time = message.read_field("time_anchor", parse_date, turn_time)
                if (
                    plan_prefix != plan_of_turns
                ):  # BEAM's own script numbers a plan on from the one before
                    plan_of_turns = plan_prefix
                    number_shift = last_number + 1 if message_number <= last_number else 0
                last_number = message_number + number_shift
                turn = make_turn_record(
                    chat_name, plan_prefix + batch, turn_number, role, text, timestamp=turn_time
                )
                turn_ids_by_message_number.setdefault(last_number, []).append(
                    turn_id_of_record(turn)
                )
                yield turn


def _resolve_evidence_and_note_unclear(
    file: Source,
    message_numbers: list[int],
    turn_ids_by_message_number: dict[int, list[str]],
    issue_label: str,
) -> list[str]:
    """Give the turns that a question cites.

    An id that no message has, or several have, is no evidence.
    """
    evidence_turns: list[str] = []
    for number in dict.fromkeys(message_numbers):
        holders = turn_ids_by_message_number.get(number, [])
        if len(holders) == 1:
            evidence_turns += holders
            continue
        messages = f"{len(holders)} messages" if holders else "no message"
        file.note(issue_label, f"{number}, the id of {messages}", "dropped evidence")
    if not evidence_turns:
        file.note(issue_label, "no evidence", "kept without evidence")
    return evidence_turns


def _check_and_flatten_numbers(nested_numbers: JsonValue, field_label: str) -> Iterator[int]:
    """Give the numbers in lists and objects of whatever depth."""
    if isinstance(nested_numbers, (dict, list)):
        for key, inner_value in (
            nested_numbers.items()
            if isinstance(nested_numbers, dict)
            else enumerate(nested_numbers)
        ):
            yield from _check_and_flatten_numbers(inner_value, f"{field_label}[{key}]")
    elif nested_numbers is not None:
        yield (
            int(nested_numbers)
            if isinstance(nested_numbers, str) and nested_numbers.strip().isdecimal()
            else record_fields.check_integer(nested_numbers, field_label)
        )


def _flatten_batches_of_plans(
    raw_batches: list[JsonValue], plan_prefix: str = ""
) -> Iterator[_Batch]:
    """Give plan, name, time anchors and messages of each batch, in whichever of its forms."""
    for batch_number, raw_batch in enumerate(raw_batches, 1):
        if isinstance(raw_batch, dict) and "turns" not in raw_batch:
            for plan_name, plan_batches in raw_batch.items():
                if plan_batches is not None:  # a table gives every row the columns of all
                    yield from _flatten_batches_of_plans(
                        record_fields.check_list(plan_batches, plan_name),
                        f"{record_fields.check_name(plan_name, 'plan')}.",
                    )
            continue
        batch = Record(
            raw_batch
            if isinstance(raw_batch, dict)
            else {"turns": record_fields.check_list(raw_batch, f"batch {batch_number}")}
        )
        turns = batch.read_field("turns", record_fields.check_list)
        messages = [
            message
            for raw_turn in turns
            for message in (raw_turn if isinstance(raw_turn, list) else [raw_turn])
        ]
        batch_name = record_fields.check_name(
            batch.get("batch_number", batch_number), "batch_number"
        )
        anchors = [
            *(
                raw_message.get("time_anchor")
                for raw_message in messages
                if isinstance(raw_message, dict)
            ),
            batch.get("time_anchor"),
        ]
        yield _Batch(plan_prefix, f"batch_{batch_name}", anchors, messages)
