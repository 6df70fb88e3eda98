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
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField, Record, describe_value
from memlab.datasets.message_identity import question_record, turn_id, turn_record
from memlab.datasets.source import Source

KEYS = {"evidence_items", "evidenceItems"}
FILES = ("*.json", "*_evidence/*.json", "*/*_evidence/*.json", "*/*/*_evidence/*.json")
_RUBRICS = ("preference", "implicit-connection")


def read_convomem(source: Source) -> Iterator[Record]:
    """Read evidence items or test cases: messages and questions."""
    for file in source.members:
        kind, number = _read_question_kind(file.path), 0
        for place, raw in file.values():
            with file.record(f"record {place - 1}", raw):
                record = Record(raw)
                mixed = "evidenceItems" in record
                items = record.take(
                    "evidenceItems" if mixed else "evidence_items", fields.check_list
                )
                for asked in [items] if mixed else [[item] for item in items]:
                    scope, number = f"{file.stem}/{number}", number + 1
                    with file.record(scope, asked):
                        talk = record if mixed else Record(asked[0])
                        turns = _read_turns(scope, talk.take("conversations", fields.check_list))
                        yield from (*turns, *_read_questions(file, scope, asked, turns, kind))


def _read_question_kind(path: Path) -> str:
    """Read the kind of the questions off the folders of a file."""
    folders = (part for part in reversed(path.resolve().parts[:-1]) if part.endswith("_evidence"))
    kind = next((part for part in folders if not part[0].isdigit()), "unspecified")
    return kind.removesuffix("_evidence").replace("_", "-")


def _read_turns(scope: str, conversations: list[Any]) -> list[Record]:
    turns, sessions = list[Record](), set[str]()
    for c, raw in enumerate(conversations):
        conversation = Record(raw, f"conversations[{c}]")
        session = conversation.take("id", fields.check_name, f"conversation_{c}")
        session = f"{session}-{c}" if session in sessions else session
        sessions.add(session)
        for n, said in enumerate(conversation.take("messages", fields.check_list), 1):
            message = Record(said, f"conversations[{c}].messages[{n - 1}]")
            speaker = message.take("speaker", fields.check_name).strip().lower()
            turns.append(
                turn_record(scope, session, n, speaker, message.take("text", fields.check_text))
            )
    if not turns:
        raise BadField("conversations", "no messages", "conversations with messages")
    return turns


def _read_questions(
    file: Source, scope: str, items: list[Any], turns: list[Record], kind: str
) -> Iterator[Record]:
    # Of several, the first that says it.
    places = {(said["role"], said["text"].strip()): turn_id(said) for said in reversed(turns)}
    for i, raw in enumerate(items):
        item, evidence = Record(raw, f"evidence item {i}"), list[str]()
        for j, said in enumerate(item.take("message_evidences", fields.check_list)):
            message = Record(said, f"message_evidences[{j}]")
            speaker, text = (
                message.take("speaker", fields.check_name, "user"),
                message.take("text", fields.check_text),
            )
            if (said := (speaker.strip().lower(), text.strip())) in places:
                evidence.append(places[said])
            else:
                file.note(
                    f"{scope}: message_evidences[{j}]", describe_value(text), "dropped evidence"
                )
        answer = item.take("answer", fields.check_answer)
        more = {
            "answer": answer,
            "type": kind,
            "evidence": evidence,
            "abstention": kind == "abstention",
        }
        more["rubric"] = answer or None if kind in _RUBRICS else None
        yield question_record(scope, i, item.take("question", fields.check_name), **more)
