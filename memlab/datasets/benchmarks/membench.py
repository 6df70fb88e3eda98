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
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField, Record, describe_value
from memlab.datasets.message_identity import question_record, turn_id, turn_record
from memlab.datasets.source import Source

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
    for file, _, raw in source.member_values():
        with file.record(file.path.name, None):
            for kind, topics in Record(raw).items():
                group = Record(topics, kind)
                for topic in group:
                    kind_name = fields.check_name(kind, "kind")
                    topic_name = fields.check_name(topic, "topic")
                    within = f"{file.stem}/{kind_name}/{topic_name}"
                    for i, trajectory in enumerate(group.take(topic, fields.check_list)):
                        with file.record(f"{within}/{i}", trajectory):
                            yield from _read_trajectory(
                                file, f"{within}/{i}", kind, Record(trajectory)
                            )


def _read_trajectory(file: Source, scope: str, kind: str, record: Record) -> list[Record]:
    steps = list[Record]()
    listed = record.take("message_list", fields.check_list)
    sessions = listed if listed and all(isinstance(part, list) for part in listed) else [listed]
    for s, messages in enumerate(sessions, 1):
        for n, raw in enumerate(messages, 1):
            text = _format_step(raw, f"message_list, step {len(steps)}")
            steps.append(
                turn_record(scope, f"session_{s}", n, "user", text, timestamp=_parse_time(text))
            )
    if not steps:
        raise BadField("message_list", "no messages", "a list of messages, or of sessions of them")
    asked, evidence = record.take("QA", Record), list[str]()
    for i, cited in enumerate(asked.take("target_step_id", fields.check_list, [])):
        # The published files give [step, session], the samples the step alone.
        first = cited[0] if isinstance(cited, list) and cited else cited
        step = fields.check_integer(first, f"QA.target_step_id[{i}]")
        if 0 <= step < len(steps):
            evidence.append(turn_id(steps[step]))
        else:
            file.note(
                f"{scope}: QA.target_step_id[{i}]",
                f"step {step} of {len(steps)}",
                "dropped evidence",
            )
    answer, time = (
        asked.take("answer", fields.check_answer, None),
        asked.take("time", fields.check_text, ""),
    )
    more = {
        "answer": answer,
        "type": kind.replace("_", "-"),
        "timestamp": _parse_time(time),
        "evidence": evidence,
    }
    return [*steps, question_record(scope, 0, asked.take("question", fields.check_name), **more)]


def _format_step(raw: Any, where: str) -> str:
    """Write a step as MemBench's script does, from any of its forms."""
    if isinstance(raw, str):
        return fields.check_text(raw, where)
    message = Record(raw, where)
    keys = [
        next((key for key in names if message.get(key) is not None), None) for names in _SPEAKERS
    ]
    spoken = [message.take(key, fields.check_text) for key in keys if key]
    if not spoken:
        raise BadField(where, describe_value(raw), "user and agent, or message")
    place, time = (
        message.take("place", fields.check_text, None),
        message.take("time", fields.check_text, None),
    )
    behind = f" (place: {place}; time: {time})" if place or time else ""
    return "\n".join(part + behind for part in spoken)


def _parse_time(text: str) -> datetime | None:
    """Read the time behind a message, or of a question; some are not written as they should be."""
    for parts in _TIME.findall(text)[-1:]:
        with suppress(ValueError):
            return datetime(*map(int, parts), tzinfo=UTC)  # type: ignore[misc, arg-type]
    return None
