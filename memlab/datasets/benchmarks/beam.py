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
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField, Record, describe_value
from memlab.datasets.message_identity import question_record, turn_id, turn_record
from memlab.datasets.source import Source

KEYS = {"batch_number", "plan-1", "probing_questions", "conversation_seed"}
FILES = ("chat.json", "*/chat.json", "*/*/chat.json", "*.parquet")
"""Where the chats of a folder are."""
ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")
"""What the answer is called, by ability."""
_PROBING = "probing_questions/probing_questions.json"
_MARKER = re.compile(r"\s*->->[ \t]*(?:\d+(?:\s*,\s*(?:\d+|N/A))*)?")
parse_date = fields.make_date_parser("%B-%d-%Y", "%b-%d-%Y", example="March-15-2024")


def read_beam(source: Source) -> Iterator[Record]:
    """Read chats: messages and probing questions."""
    seen: set[str] = set()
    for file in source.members:
        batches: list[Any] = []
        for number, raw in file.values():
            if not (isinstance(raw, dict) and "probing_questions" in raw):
                batches.append(raw)
                continue
            with file.record(f"chat {number - 1}", raw):
                row = Record(raw)
                name = row.take("conversation_id", fields.check_name)
                if name in seen:
                    raise BadField("conversation_id", f"{name!r} again", "an id of its own")
                seen.add(name)
                plans = [
                    Record(plan, f"plans[{k}]")
                    for k, plan in enumerate(row.take("plans", fields.check_list, []))
                ]
                written = [
                    {f"plan-{k}": plan.take("chat", fields.check_list)}
                    for k, plan in enumerate(plans, 1)
                ]
                chat = written or row.take("chat", fields.check_list)
                yield from _read_chat(file, name, chat, _parse_question_literal(raw))
        if batches:
            name = (
                file.stem.removesuffix("/chat")
                if "/" in file.name
                else file.path.resolve().parent.name
            )
            with file.record(name, None):
                yield from _read_chat(file, name, batches, _read_probing_questions(file))


def _parse_question_literal(row: dict[str, Any]) -> Any:
    """Read the questions of a row of the published table, which writes them as Python does."""
    value = row["probing_questions"]
    try:
        return ast.literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        expected = "an object of abilities, or a Python literal of it"
        raise BadField("probing_questions", describe_value(value), expected) from None


def _read_probing_questions(file: Source) -> Any:
    path = file.path.parent / _PROBING
    if not path.is_file():
        file.note("probing_questions", f"no {_PROBING} beside it", "kept without questions")
        return {}
    beside = Source(path, file.on_error, file.quarantine_dir, report=file.report)
    return next((value for _, value in beside.values()), {})


def _read_chat(file: Source, name: str, chat: list[Any], probing: Any) -> Iterator[Record]:
    """Read one chat: its turns, then its questions, whose evidence is cited by the numbers of
    messages.
    """
    places: dict[int, list[str]] = {}
    turns = [*_read_turns(file, name, chat, places)]
    if not turns:
        raise BadField("", "no messages", "batches with turns")
    abilities, asked, q = Record(probing, "probing_questions"), list[Record](), 0
    for ability in abilities:
        fields.check_name(ability, "ability")
        for i, raw in enumerate(abilities.take(ability, fields.check_list)):
            where = f"{name}: {ability}[{i}]"
            with file.record(where, raw):
                record, evidence = Record(raw), list[str]()
                if ability != "abstention":
                    numbers = _flatten_numbers(record.get("source_chat_ids"), "source_chat_ids")
                    evidence = _resolve_evidence(
                        file, [*numbers], places, f"{where}: source_chat_ids"
                    )
                answered = next((key for key in ANSWERS if record.get(key) is not None), "answer")
                answer = record.take(answered, fields.check_answer, None)
                more: dict[str, Any] = {
                    "answer": answer,
                    "abstention": ability == "abstention",
                    "evidence": evidence,
                }
                more["rubric"] = record.take("rubric", fields.check_rubric, None)
                text, kind = record.take("question", fields.check_name), ability.replace("_", "-")
                asked.append(question_record(name, q, text, type=kind, **more))
            q += 1
    yield from (*turns, *asked)


def _read_turns(
    file: Source, name: str, chat: list[Any], places: dict[int, list[str]]
) -> Iterator[Record]:
    """Read the messages of the batches.

    :param places: filled with the turns of each message id; a few ids of BEAM stand twice.
    """
    plan, shift, last = "", 0, -1
    for part, batch, anchors, messages in _iterate_batches(chat):
        label, time = f"{name}: {part}{batch}", None
        with file.record(label, anchors):
            time = next(
                (parse_date(anchor, "time_anchor") for anchor in anchors if anchor is not None),
                None,
            )
        if time is None:
            file.note(label, "no time anchor", "kept without a time")
        for n, raw in enumerate(messages, 1):
            with file.record(f"{label}[{n - 1}]", raw):
                message = Record(raw)
                number, role = (
                    message.take("id", fields.check_integer),
                    message.take("role", fields.check_name),
                )
                text = _MARKER.sub("", message.take("content", fields.check_text))
                time = message.take("time_anchor", parse_date, time)
                if part != plan:  # BEAM's own script numbers a plan on from the one before
                    plan, shift = part, last + 1 if number <= last else 0
                last = number + shift
                said = turn_record(name, part + batch, n, role, text, timestamp=time)
                places.setdefault(last, []).append(turn_id(said))
                yield said


def _resolve_evidence(
    file: Source, numbers: list[int], places: dict[int, list[str]], where: str
) -> list[str]:
    """Give the turns that a question cites.

    An id that no message has, or several have, is no evidence.
    """
    turns: list[str] = []
    for number in dict.fromkeys(numbers):
        holders = places.get(number, [])
        if len(holders) == 1:
            turns += holders
            continue
        messages = f"{len(holders)} messages" if holders else "no message"
        file.note(where, f"{number}, the id of {messages}", "dropped evidence")
    if not turns:
        file.note(where, "no evidence", "kept without evidence")
    return turns


def _flatten_numbers(value: Any, where: str) -> Iterator[int]:
    """Give the numbers in lists and objects of whatever depth."""
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flatten_numbers(inner, f"{where}[{key}]")
    elif value is not None:
        yield (
            int(value)
            if isinstance(value, str) and value.strip().isdecimal()
            else fields.check_integer(value, where)
        )


def _iterate_batches(
    chat: list[Any], part: str = ""
) -> Iterator[tuple[str, str, list[Any], list[Any]]]:
    """Give plan, name, time anchors and messages of each batch, in whichever of its forms."""
    for number, raw in enumerate(chat, 1):
        if isinstance(raw, dict) and "turns" not in raw:
            for plan, inner in raw.items():
                if inner is not None:  # a table gives every row the columns of all
                    yield from _iterate_batches(
                        fields.check_list(inner, plan), f"{fields.check_name(plan, 'plan')}."
                    )
            continue
        batch = Record(
            raw if isinstance(raw, dict) else {"turns": fields.check_list(raw, f"batch {number}")}
        )
        turns = batch.take("turns", fields.check_list)
        messages = [
            message for turn in turns for message in (turn if isinstance(turn, list) else [turn])
        ]
        name = fields.check_name(batch.get("batch_number", number), "batch_number")
        anchors = [
            *(m.get("time_anchor") for m in messages if isinstance(m, dict)),
            batch.get("time_anchor"),
        ]
        yield part, f"batch_{name}", anchors, messages
