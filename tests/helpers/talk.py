"""Conversations for tests: written by hand in short lines, and datasets as chat-log files."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memlab.datasets import chatlog
from memlab.datasets._read import Source
from memlab.records import Dataset, concat

_QUESTION = re.compile(r"\? ([\w-]+): (.*?)(?: = (.*?))?(?: < ([\d. ]+))?")


def dialogue(text: str, name: str = "talk") -> Dataset:
    """Read a conversation written in short lines.

    ``== ann 2026-03-01`` opens a session of a scope; ``Ann: …`` is a message, a minute after the one before;
    ``? counting: How many? = Two < 1.1 2.3`` asks the scope: kind, question, answer, messages (session.n) of the
    evidence; without them there is no answer.
    """
    records: list[dict[str, Any]] = []
    sessions: dict[str, int] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("== "):
            _, scope, day = line.split()
            when, n = datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC), 0
            sessions[scope] = sessions.get(scope, 0) + 1
        elif asked := _QUESTION.fullmatch(line):
            kind, question, answer, evidence = asked.groups()
            cited: dict[str, Any] = {"evidence": evidence.split()} if evidence else {"abstention": True}
            records.append(
                {"scope": scope, "question": question, "answer": answer, "type": kind, "timestamp": when.isoformat()}
                | cited
            )
        else:
            sender, said = line.split(": ", 1)
            n, when = n + 1, when + timedelta(minutes=1)
            session = sessions[scope]
            records.append(
                {"scope": scope, "session": f"s{session}", "id": f"{session}.{n}", "sender": sender, "text": said}
                | {"timestamp": when.isoformat()}
            )
    return concat(chatlog.read(Source(Path(name)), batch_turns=len(records), records=records))


def write(path: Path, data: Dataset) -> Path:
    """Write a dataset as a chat log; its turns keep their ids."""
    turns, asked = data.turns.iter_rows(named=True), data.questions.iter_rows(named=True)
    lines: list[dict[str, Any]] = [
        {"scope": row["scope"], "session": row["session_id"].split("/")[1], "id": row["turn_id"].split("/")[1]}
        | {"sender": row["speaker"], "role": row["role"], "text": row["text"], "timestamp": row["timestamp"]}
        for row in turns
    ]
    lines += [
        {"scope": row["scope"], "query_id": row["query_id"], "question": row["text"], "answer": row["answer"]}
        | {"type": row["question_type"], "timestamp": row["timestamp"], "evidence": row["evidence"]}
        | {"abstention": row["abstention"]}
        for row in asked
    ]
    path.write_text("".join(json.dumps(line, default=datetime.isoformat) + "\n" for line in lines))
    return path
