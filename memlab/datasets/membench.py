"""MemBench (Tan et al., ACL 2025 Findings): facts and preferences, told to an assistant or overheard by it.

What is read: the published files (``FirstAgentDataLowLevel.json`` …) and the samples with noise that MemBench's own
script makes of them (``data2test/0-10k/…_multiple_0.json`` …), one or a folder of them. A scope is a trajectory with
its one question. A turn is a *step*, what ``target_step_id`` counts: a message that is overheard, or one of the user
with the agent's reply. Place and time stand behind each message, as that script writes them; the time is also the
turn's. A step's number counts through all sessions of a trajectory. The kind of a question is the outermost key of the
file; the letter of its choice is not kept, its answer is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from memlab.datasets._fields import (
    Bad,
    Record,
    as_answers,
    as_name,
    as_number,
    as_text,
    micros,
    moment,
    sessions_of_turns,
    show,
)
from memlab.datasets._json import objects
from memlab.datasets._read import Rows, Source
from memlab.records import Question, id_part

FILES = ("*AgentData*.json", "*/*AgentData*.json")
_TIME = re.compile(r"(?:time:?\s*|^\s*)['\"]?(\d{4})-(\d{1,2})-(\d{1,2}) (\d{1,2}):(\d{2})")


def read(source: Source) -> Iterator[Rows]:
    """Stream MemBench's files: the rows of each trajectory."""
    for file in source.files(*FILES):
        for _, raw in objects(file):
            with file.record(file.path.name, None):
                for kind, topics in Record(raw).items():
                    group = Record(topics, kind)
                    for topic in group:
                        within = f"{source.named(file)}/{as_name(kind, 'kind')}/{as_name(topic, 'topic')}"
                        for i, trajectory in enumerate(group.listed(topic)):
                            with file.record(f"{within}/{i}", trajectory):
                                yield _trajectory(file, f"{within}/{i}", kind, Record(trajectory))


def _trajectory(source: Source, name: str, kind: str, record: Record) -> Rows:
    scope, rows, steps = id_part(name), Rows(), list[str]()
    listed = record.listed("message_list")
    sessions = listed if listed and all(isinstance(part, list) for part in listed) else [listed]
    for s, messages in enumerate(sessions, 1):
        for n, raw in enumerate(messages, 1):
            text = _step(raw, f"message_list, step {len(steps)}")
            rows.turns.append((scope, f"{scope}/session_{s}", n, "user", "user", text, None, _time(text)))
            steps.append(f"{scope}/session_{s}/{n}")
    if not steps:
        raise Bad("message_list", "no messages", "a list of messages, or of sessions of them")
    asked, evidence = record.object("QA"), list[str]()
    for i, cited in enumerate(asked.listed("target_step_id", ())):
        # The published files give [step, session], the samples the step alone.
        first = cited[0] if isinstance(cited, list) and cited else cited
        step = as_number(first, f"QA.target_step_id[{i}]")
        if 0 <= step < len(steps):
            evidence.append(steps[step])
        else:
            source.note(f"{name}: QA.target_step_id[{i}]", f"step {step} of {len(steps)}", "dropped evidence")
    time, evidence = _time(asked.text("time", "")), list(dict.fromkeys(evidence))
    rows.questions.append(
        Question(
            query_id=f"{scope}/q0",
            scope=scope,
            text=asked.name("question"),
            answer=asked.read("answer", as_answers, None),
            question_type=kind.replace("_", "-"),
            timestamp=moment(time),
            evidence=evidence,
            evidence_sessions=sessions_of_turns(evidence),
        )
    )
    return rows


def _step(raw: Any, where: str) -> str:
    """Write a step as MemBench's script does, from any of its forms."""
    if isinstance(raw, str):
        return as_text(raw, where)
    message = Record(raw, where)
    spoken = [
        message.text(key)
        for keys in (("user_message", "user"), ("assistant_message", "assistant", "agent"), ("message",))
        for key in [next((key for key in keys if message.get(key) is not None), None)]
        if key is not None
    ]
    if not spoken:
        raise Bad(where, show(raw), "user and agent, or message")
    place, time = message.text("place", None), message.text("time", None)
    said = f" (place: {place}; time: {time})" if place or time else ""
    return "\n".join(part + said for part in spoken)


def _time(text: str) -> int | None:
    """Read the time behind a message, or of a question; some are not written as they should be."""
    for year, month, day, hour, minute in _TIME.findall(text)[-1:]:
        with suppress(ValueError):
            return micros(datetime(int(year), int(month), int(day), int(hour), int(minute), tzinfo=UTC))
    return None
