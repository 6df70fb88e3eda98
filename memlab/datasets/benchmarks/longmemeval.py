"""LongMemEval (Wu et al., ICLR 2025): oracle, S and M layouts.

A file is a list of questions; each brings its own haystack of sessions, so a scope is a question.
The three layouts differ only in how many sessions that is. A turn's time is its session's date.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField, Record
from memlab.datasets.message_identity import question_record, turn_id, turn_record
from memlab.datasets.source import Source
from memlab.records import encode_id_part

KEYS = {
    "question_id",
    "question_type",
    "haystack_sessions",
    "haystack_session_ids",
    "haystack_dates",
}
parse_date = fields.make_date_parser(
    "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", example="2023/05/20 (Sat) 02:21"
)
_Haystack = dict[str, tuple[datetime, list[Any], str]]


def read_longmemeval(source: Source) -> Iterator[Record]:
    """Read questions with their haystacks."""
    seen: dict[str, int] = {}
    for file, number, raw in source.member_values():
        with file.record(f"question {number - 1}", raw):
            record = Record(raw)
            name = record.take("question_id", fields.check_name)
            label = f"question {number - 1} ({name!r})"
            with file.record(label, raw):
                if name in seen:
                    again = f"{name!r} again (first in question {seen[name]})"
                    raise BadField("question_id", again, "an id of its own")
                haystack, evidence = _read_haystack(record, file, label), list[str]()
                turns = [*_read_turns(name, haystack, evidence)]
                asked = _read_question(record, name, haystack, evidence)
                seen[name] = number - 1
                yield from (*turns, asked)


def _read_haystack(record: Record, file: Source, label: str) -> _Haystack:
    """List the sessions of a question by name, in order of date: date, turns, and their place."""
    keys = ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    names, dates, sessions = (record.take(key, fields.check_list) for key in keys)
    if not len(names) == len(dates) == len(sessions):
        counts = f"{len(sessions)} sessions, {len(names)} ids and {len(dates)} dates"
        raise BadField("haystack_sessions", counts, "as many of each")
    haystack: _Haystack = {}
    for i, (raw_name, raw_date, raw_turns) in enumerate(zip(names, dates, sessions, strict=True)):
        where, place = f"haystack_sessions[{i}]", f"haystack_session_ids[{i}]"
        name, turns = fields.check_name(raw_name, place), fields.check_list(raw_turns, where)
        date = parse_date(raw_date, f"haystack_dates[{i}]")
        if not turns:
            file.note(
                f"{label}: {where}", f"session {name!r} without turns", "dropped empty session"
            )
        elif name not in haystack:
            haystack[name] = (date, turns, where)
        elif haystack[name][1] != turns:
            raise BadField(place, f"{name!r} again with other turns", "one session for each id")
        else:
            file.note(f"{label}: {place}", f"{name!r} again, the same turns", "dropped copy")
    if not haystack:
        raise BadField("haystack_sessions", "no turn at all", "at least one session with turns")
    return dict(sorted(haystack.items(), key=lambda item: item[1][0]))


def _read_turns(scope: str, haystack: _Haystack, evidence: list[str]) -> Iterator[Record]:
    """Read the turns of a haystack, and fill in the ids of those that are marked as evidence."""
    for session, (date, turns, where) in haystack.items():
        for n, raw in enumerate(turns, 1):
            said = Record(raw, f"{where}[{n - 1}]")
            role, text = (
                said.take("role", fields.check_name),
                said.take("content", fields.check_text),
            )
            given = turn_record(scope, session, n, role, text, timestamp=date)
            if said.take("has_answer", fields.check_flag, False):
                evidence.append(turn_id(given))
            yield given


def _read_question(record: Record, scope: str, haystack: _Haystack, evidence: list[str]) -> Record:
    answers = record.take("answer_session_ids", fields.check_names)
    if unknown := [name for name in answers if name not in haystack]:
        what = f"{unknown[0]!r}, which the haystack does not hold"
        raise BadField("answer_session_ids", what, "haystack_session_ids")
    text, kind = (
        record.take("question", fields.check_name),
        record.take("question_type", fields.check_name),
    )
    answer, time = (
        record.take("answer", fields.check_answer),
        record.take("question_date", parse_date),
    )
    sessions = [f"{encode_id_part(scope)}/{encode_id_part(name)}" for name in answers]
    more: dict[str, Any] = {
        "type": kind,
        "answer": answer,
        "timestamp": time,
        "abstention": scope.endswith("_abs"),
    }
    more |= {"query_id": encode_id_part(scope), "evidence": evidence, "evidence_sessions": sessions}
    return question_record(scope, 0, text, **more)
