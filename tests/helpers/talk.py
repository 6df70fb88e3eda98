"""Conversations for tests: written by hand in short lines, and datasets as chat-log files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

import memlab
from memlab.datasets import chatlog
from memlab.records import Dataset, Question, Run, Session, Turn, frame

_QUESTION = re.compile(r"\? ([\w-]+): (.*?)(?: = (.*?))?(?: < ([\d. ]+))?")


def dialogue(text: str, name: str = "talk") -> Dataset:
    """Read a conversation written in short lines.

    ``== ann 2026-03-01`` opens a session of a scope; ``Ann: …`` is a message, a minute after the
    one before; ``? counting: How many? = Two < 1.1 2.3`` asks the scope: kind, question, answer,
    messages (session.n) of the evidence; without them there is no answer.
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
            cited: dict[str, Any] = (
                {"evidence": evidence.split()} if evidence else {"abstention": True}
            )
            records.append(
                {
                    "scope": scope,
                    "question": question,
                    "answer": answer,
                    "type": kind,
                    "timestamp": when.isoformat(),
                }
                | cited
            )
        else:
            sender, said = line.split(": ", 1)
            n, when = n + 1, when + timedelta(minutes=1)
            session = sessions[scope]
            records.append(
                {
                    "scope": scope,
                    "session": f"s{session}",
                    "id": f"{session}.{n}",
                    "sender": sender,
                    "text": said,
                }
                | {"timestamp": when.isoformat()}
            )
    return chatlog.dataset(records, name)


ODD_TALK = {
    "ann": [
        ["I saw the doctor today", "the dentist pulled a tooth", "I saw the doctor today", ""],
        [],
        [
            "I saw the doctor today",
            "rain again",
            "the dentist pulled a tooth",
            "we planted roses and tulips",
        ],
        ["roses need water", "tulips need water", "I saw the doctor today", "!!!", "the the the"],
    ],
    "bob": [["only one turn about a doctor"]],
    "cyd": [
        ["doctor doctor doctor", "no", "roses"],
        ["doctor", "doctor roses", "roses doctor", "water the roses"],
    ],
}
ODD_ASKED = {
    "ann": [
        "How many doctors did I see?",
        "roses tulips water",
        "zyzzyva qwxt",
        "",
        "the dentist pulled a tooth",
    ],
    "bob": ["doctor", "unknown words"],
    "cyd": ["roses roses doctor", "water?"],
}


def world(
    said: dict[str, list[list[str]]], asked: dict[str, list[str]], *, speakers: Sequence[str] = ("user",),
    starts: Sequence[datetime | None] | None = None, caption: str | None = None,
) -> Dataset:  # fmt: skip
    """Give scopes of sessions of texts, spoken by the speakers in turn, and questions about the first turn."""
    turns, sessions, questions = [], [], []
    for scope, held in said.items():
        for s, texts in enumerate(held, 1):
            session, at = f"{scope}/s{s}", starts[s - 1] if starts else None
            sessions.append(Session(session, scope, s, at, at, len(texts), [*speakers]))
            for n, text in enumerate(texts, 1):
                who = speakers[(n - 1) % len(speakers)]
                turns.append(Turn(f"{session}/{n}", scope, session, n, who, "user", text, caption))
        first, about = f"{scope}/s1", enumerate(asked[scope])
        questions += [
            Question(f"{scope}/q{i}", scope, q, "", "t", None, [f"{first}/1"], [first])
            for i, q in about
        ]
    return Dataset(
        "world", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions)
    )


def odd_world() -> Dataset:
    """Give what trips a ranking: ties, equal texts, empty texts, lone turns, empty sessions, unanswerable questions."""
    return world(
        ODD_TALK, ODD_ASKED, starts=[datetime(2024, 1, day, tzinfo=UTC) for day in (2, 3, 4, 5)]
    )


THINGS = {
    "ann": "sofa lamp desk carpet clock vase shelf mirror",
    "bob": "tent kayak rope stove torch compass saddle paddle",
    "cyd": "violin drum flute piano guitar harp trumpet banjo",
}


def purchases() -> Dataset:
    """Give three people who buy a thing a session, and are asked for one price or for two: easy to learn from."""
    lines: list[str] = []
    for scope, things in THINGS.items():
        name, bought = scope.title(), things.split()
        for n, thing in enumerate(bought, 1):
            lines += [
                f"== {scope} 2026-{n:02d}-0{n}",
                f"{name}: Good morning, the weather is fine here.",
                "assistant: Good morning! What can I do for you?",
                f"{name}: I bought a {thing} at the market for ${7 + 10 * n}.",
                f"assistant: A {thing} is a good thing to have.",
                f"{name}: A friend of mine would like a {thing} too.",
                "assistant: Tell me more about your friend.",
            ]
        for n, (one, other) in enumerate(pairwise(bought), 1):
            lines.append(f"? single-session: What did I pay for the {one}? = ${7 + 10 * n} < {n}.3")
            lines.append(
                f"? totals: What did the {one} and the {other} cost? = ${24 + 20 * n} < {n}.3 {n + 1}.3"
            )
        lines.append("? abstention: What did I pay for the car?")
    return dialogue("\n".join(lines), "purchases")


def write(path: Path, data: Dataset) -> Path:
    """Write a dataset as a chat log; its turns keep their ids."""
    time = pl.col("timestamp").dt.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").alias("timestamp")
    session, own = (
        pl.col(column).str.split("/").list.last() for column in ("session_id", "turn_id")
    )
    turns = data.turns.select(
        "scope", "role", "text", time, session=session, id=own, sender="speaker"
    )
    asked = data.questions.select(
        *("scope", "query_id", "answer", "evidence", "abstention", pl.col("stale").fill_null([]), time),
        question="text", type="question_type",
    )  # fmt: skip
    path.write_text(turns.write_ndjson() + asked.write_ndjson())
    return path


def excerpt(turns: int, *, scopes: Sequence[str] = ("nadia", "owen", "friends")) -> Dataset:
    """Give the sessions of the sample that its questions over fewest sessions need: about ``turns`` turns in all.

    Each scope has questions with evidence, some of them over several sessions, and those without an
    answer.
    """
    data = memlab.sample(scopes)
    size = dict(data.sessions.select("session_id", "n_turns").iter_rows())
    kept = set[str]()
    for scope in data.scopes:
        of_scope, chosen = (
            data.questions.filter(pl.col("scope") == scope)["evidence_sessions"].to_list(),
            set[str](),
        )
        for sessions in sorted(
            filter(None, of_scope), key=lambda each: (len(each) == 1, len(each))
        ):
            wanted = chosen | set(sessions)
            if not chosen or sum(map(size.__getitem__, wanted)) <= turns / len(data.scopes):
                chosen = wanted
        kept |= chosen
    sessions = data.sessions.filter(pl.col("session_id").is_in(kept))
    sessions = sessions.with_columns(
        n=pl.int_range(1, pl.len() + 1, dtype=sessions.schema["n"]).over("scope")
    )
    turns = data.turns.filter(pl.col("session_id").is_in(kept))
    cited = pl.concat_list("evidence", pl.col("stale").fill_null([])).list
    inside = cited.set_difference(turns["turn_id"].implode()).list.len() == 0
    return replace(data, turns=turns, sessions=sessions, questions=data.questions.filter(inside))


def ranking(run: Run) -> dict[str, list[str]]:
    """Read a run as query → documents, best first; queries in the run's order."""
    return dict(run.frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
