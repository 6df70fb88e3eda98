"""ConvoMem (Pakhomov et al., 2025): questions over conversations of one person with an assistant.

What is read: the evidence files (``evidence_questions/<kind>_evidence/<n>_evidence/*.json``, with ``evidence_items``)
and the mixed test cases (``pre_mixed_testcases/…``, with ``evidenceItems`` and ``conversations``), one or a folder of
them. A scope is an evidence item with its conversations, or a test case; a session a conversation; there are no times.
The kind of a question is its folder's, without ``_evidence``. The evidence are the messages that
``message_evidences`` repeats word for word; what is in no conversation is dropped with an issue. An answer about
preferences or implicit connections says what a good answer heeds: it is kept as the rubric too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memlab.datasets._fields import Bad, Record, as_role, sessions_of_turns, show
from memlab.datasets._json import objects
from memlab.datasets._read import Rows, Source
from memlab.records import Question, id_part

FILES = ("*.json", "*_evidence/*.json", "*/*_evidence/*.json", "*/*/*_evidence/*.json")
_RUBRICS = ("preference", "implicit-connection")


def read(source: Source) -> Iterator[Rows]:
    """Stream ConvoMem's files: the rows of each evidence item or test case."""
    for file in source.files(*FILES):
        kind, number = _kind(file.path), 0
        for index, raw in objects(file):
            with file.record(f"record {index}", raw):
                record = Record(raw)
                mixed = "evidenceItems" in record
                items = record.listed("evidenceItems" if mixed else "evidence_items")
                for asked in [items] if mixed else [[item] for item in items]:
                    name = f"{source.named(file)}/{number}"
                    number += 1
                    with file.record(name, asked):
                        told = record if mixed else Record(asked[0])
                        yield _case(file, name, told.listed("conversations"), asked, kind)


def _kind(path: Path) -> str:
    """Read the kind of the questions off the folders of a file."""
    folders = (part for part in reversed(path.resolve().parts[:-1]) if part.endswith("_evidence"))
    kind = next((part for part in folders if not part[0].isdigit()), "unspecified")
    return kind.removesuffix("_evidence").replace("_", "-")


def _case(source: Source, name: str, conversations: list[Any], items: list[Any], kind: str) -> Rows:
    scope, rows = id_part(name), Rows()
    places: dict[tuple[str, str], str] = {}
    names: set[str] = set()
    for c, raw in enumerate(conversations):
        conversation = Record(raw, f"conversations[{c}]")
        called = conversation.name("id", f"conversation_{c}")
        called = f"{called}-{c}" if called in names else called
        names.add(called)
        session = f"{scope}/{id_part(called)}"
        for n, said in enumerate(conversation.listed("messages"), 1):
            message = Record(said, f"conversations[{c}].messages[{n - 1}]")
            speaker, text = message.name("speaker").strip().lower(), message.text("text")
            rows.turns.append((scope, session, n, speaker, as_role(speaker), text, None, None))
            places.setdefault((speaker, text.strip()), f"{session}/{n}")
    if not rows.turns:
        raise Bad("conversations", "no messages", "conversations with messages")
    for i, raw in enumerate(items):
        item, evidence = Record(raw, f"evidence item {i}"), list[str]()
        for j, said in enumerate(item.listed("message_evidences")):
            message = Record(said, f"message_evidences[{j}]")
            speaker, text = message.name("speaker", "user").strip().lower(), message.text("text")
            turn = places.get((speaker, text.strip()))
            if turn is None:
                source.note(f"{name}: message_evidences[{j}]", show(text), "dropped evidence")
            else:
                evidence.append(turn)
        evidence = list(dict.fromkeys(evidence))
        answer = item.answer("answer")
        rows.questions.append(
            Question(
                query_id=f"{scope}/q{i}",
                scope=scope,
                text=item.name("question"),
                answer=answer,
                question_type=kind,
                timestamp=None,
                evidence=evidence,
                evidence_sessions=sessions_of_turns(evidence),
                abstention=kind == "abstention",
                rubric=[answer] if answer and kind in _RUBRICS else None,
            )
        )
    return rows
