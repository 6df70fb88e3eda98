"""MemBench (Tan et al., ACL 2025 Findings): facts and preferences, stated to an assistant or
overheard by it.

What is read: the published files (``FirstAgentDataLowLevel.json`` …) and the samples with noise
that MemBench's own script makes of them (``data2test/0-10k/…_multiple_0.json`` …), one or a folder
of them. A scope is a trajectory with its one question. A turn is a *step*, what ``target_step_id``
counts: a message that is overheard, or one of the user with the agent's reply. Place and time stand
behind each message, as that script writes them; the time is also the turn's. A step's number counts
through all sessions of a trajectory. The kind of a question is the outermost key of the file; the
letter of its choice is not kept, its answer is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from memlab.datasets import record_fields
from memlab.datasets.message_identity import (
    make_benchmark_question,
    make_turn_record,
    turn_id_of_record,
)
from memlab.datasets.record_fields import BadField, JsonValue, Record, describe_value
from memlab.datasets.record_sources import Source

FILES = ("*AgentData*.json", "*/*AgentData*.json")
KEYS = {
    "highlevel",
    "highlevel_rec",
    "simple",
    "conditional",
    "comparative",
    "aggregative",
    "post_processing",
}
_SPEAKERS = (("user_message", "user"), ("assistant_message", "assistant", "agent"), ("message",))
_TIME = re.compile(r"(?:time:?\s*|^\s*)['\"]?(\d{4})-(\d{1,2})-(\d{1,2}) (\d{1,2}):(\d{2})")


def read_membench(source: Source) -> Iterator[Record]:
    """Read trajectories: steps and the question of each."""
    for file, _, raw_kinds in source.stream_numbered_member_values():
        with file.record(file.path.name, None):
            for question_kind, topics in Record(raw_kinds).items():
                topic_records = Record(topics, question_kind)
                for topic_key in topic_records:
                    kind_name = record_fields.check_name(question_kind, "kind")
                    topic_name = record_fields.check_name(topic_key, "topic")
                    scope_prefix = f"{file.stem}/{kind_name}/{topic_name}"
                    for trajectory_number, trajectory in enumerate(
                        topic_records.read_field(topic_key, record_fields.check_list)
                    ):
                        with file.record(f"{scope_prefix}/{trajectory_number}", trajectory):
                            yield from _read_turns_and_question(
                                file,
                                f"{scope_prefix}/{trajectory_number}",
                                question_kind,
                                Record(trajectory),
                            )


def _read_turns_and_question(
    file: Source, scope: str, question_kind: str, trajectory: Record
) -> list[Record]:
    step_turns = list[Record]()
    message_list = trajectory.read_field("message_list", record_fields.check_list)
    sessions = (
        message_list
        if message_list
        and all(isinstance(message_or_session, list) for message_or_session in message_list)
        else [message_list]
    )
    for session_number, messages in enumerate(sessions, 1):
        for message_number, raw_step in enumerate(messages, 1):
            text = _write_step_text(raw_step, f"message_list, step {len(step_turns)}")
            step_turns.append(
                make_turn_record(
                    scope,
                    f"session_{session_number}",
                    message_number,
                    "user",
                    text,
                    timestamp=_parse_last_time_in_text(text),
                )
            )
    if not step_turns:
        raise BadField("message_list", "no messages", "a list of messages, or of sessions of them")
    question_fields = trajectory.read_field("QA", Record)
    evidence = list[str]()
    for cited_number, cited_step in enumerate(
        question_fields.read_field("target_step_id", record_fields.check_list, [])
    ):
        # The published files give [step, session], the samples the step alone.
        step_value = cited_step[0] if isinstance(cited_step, list) and cited_step else cited_step
        step_number = record_fields.check_integer(step_value, f"QA.target_step_id[{cited_number}]")
        if 0 <= step_number < len(step_turns):
            evidence.append(turn_id_of_record(step_turns[step_number]))
        else:
            file.note(
                f"{scope}: QA.target_step_id[{cited_number}]",
                f"step {step_number} of {len(step_turns)}",
                "dropped evidence",
            )
    answer = question_fields.read_field("answer", record_fields.check_and_join_answer, None)
    time = question_fields.read_field("time", record_fields.check_text, "")
    more_fields = {
        "answer": answer,
        "type": question_kind.replace("_", "-"),
        "timestamp": _parse_last_time_in_text(time),
        "evidence": evidence,
    }
    return [
        *step_turns,
        make_benchmark_question(
            scope,
            0,
            question_fields.read_field("question", record_fields.check_name),
            **more_fields,
        ),
    ]


def _write_step_text(raw_step: JsonValue, field_label: str) -> str:
    """Write a step as MemBench's script does, from any of its forms."""
    if isinstance(raw_step, str):
        return record_fields.check_text(raw_step, field_label)
    message = Record(raw_step, field_label)
    speaker_keys = [
        next((text_key for text_key in speaker_names if message.get(text_key) is not None), None)
        for speaker_names in _SPEAKERS
    ]
    spoken_texts = [
        message.read_field(text_key, record_fields.check_text)
        for text_key in speaker_keys
        if text_key
    ]
    if not spoken_texts:
        raise BadField(field_label, describe_value(raw_step), "user and agent, or message")
    place = message.read_field("place", record_fields.check_text, None)
    time = message.read_field("time", record_fields.check_text, None)
    place_and_time = f" (place: {place}; time: {time})" if place or time else ""
    return "\n".join(spoken_text + place_and_time for spoken_text in spoken_texts)


def _parse_last_time_in_text(text: str) -> datetime | None:
    """Read the time behind a message, or of a question; some are not written as they should be."""
    for time_parts in _TIME.findall(text)[-1:]:
        with suppress(ValueError):
            return datetime(*map(int, time_parts), tzinfo=UTC)  # type: ignore[misc, arg-type]
    return None
