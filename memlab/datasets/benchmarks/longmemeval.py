"""LongMemEval (Wu et al., ICLR 2025): oracle, S and M layouts.

A file is a list of questions; each brings its own haystack of sessions, so a scope is a question.
The three layouts differ only in how many sessions that is. A turn's time is its session's date.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from memlab.datasets import record_fields
from memlab.datasets.message_identity import (
    make_benchmark_question,
    make_turn_record,
    turn_id_of_record,
)
from memlab.datasets.record_fields import BadField, JsonValue, Record
from memlab.datasets.record_sources import Source
from memlab.records import encode_id_part

KEYS = {
    "question_id",
    "question_type",
    "haystack_sessions",
    "haystack_session_ids",
    "haystack_dates",
}
parse_date = record_fields.make_date_parser(
    "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", example="2023/05/20 (Sat) 02:21"
)


class _HaystackSession(NamedTuple):
    """A session of a question: its date, its turns, and where they stand in the question."""

    date: datetime
    raw_turns: list[JsonValue]
    turns_place: str


_Haystack = dict[str, _HaystackSession]
"""The sessions of a question by name, in order of date."""


def read_longmemeval(source: Source) -> Iterator[Record]:
    """Read questions with their haystacks."""
    seen_names: dict[str, int] = {}
    for file, number, raw_question in source.stream_numbered_member_values():
        with file.record(f"question {number - 1}", raw_question):
            record = Record(raw_question)
            question_id = record.read_field("question_id", record_fields.check_name)
            question_label = f"question {number - 1} ({question_id!r})"
            with file.record(question_label, raw_question):
                if question_id in seen_names:
                    fault_text = (
                        f"{question_id!r} again (first in question {seen_names[question_id]})"
                    )
                    raise BadField("question_id", fault_text, "an id of its own")
                haystack = _read_haystack_and_note_dropped_sessions(record, file, question_label)
                evidence = list[str]()
                turns = [*_read_turns_and_fill_evidence(question_id, haystack, evidence)]
                asked_question = _check_and_make_question_record(
                    record, question_id, haystack, evidence
                )
                seen_names[question_id] = number - 1
                yield from (*turns, asked_question)


def _read_haystack_and_note_dropped_sessions(
    raw_question: Record, file: Source, question_label: str
) -> _Haystack:
    """List the sessions of a question by name, in order of date: date, turns, and their place."""
    keys = ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    session_names, session_dates, sessions = (
        raw_question.read_field(key, record_fields.check_list) for key in keys
    )
    if not len(session_names) == len(session_dates) == len(sessions):
        count_text = (
            f"{len(sessions)} sessions, {len(session_names)} ids and {len(session_dates)} dates"
        )
        raise BadField("haystack_sessions", count_text, "as many of each")
    haystack: _Haystack = {}
    for session_number, (raw_name, raw_date, raw_turns) in enumerate(
        zip(session_names, session_dates, sessions, strict=True)
    ):
        turns_place = f"haystack_sessions[{session_number}]"
        id_place = f"haystack_session_ids[{session_number}]"
        session_name = record_fields.check_name(raw_name, id_place)
        session_turns = record_fields.check_list(raw_turns, turns_place)
        session_date = parse_date(raw_date, f"haystack_dates[{session_number}]")
        if not session_turns:
            file.note(
                f"{question_label}: {turns_place}",
                f"session {session_name!r} without turns",
                "dropped empty session",
            )
        elif session_name not in haystack:
            haystack[session_name] = _HaystackSession(session_date, session_turns, turns_place)
        elif haystack[session_name].raw_turns != session_turns:
            raise BadField(
                id_place, f"{session_name!r} again with other turns", "one session for each id"
            )
        else:
            file.note(
                f"{question_label}: {id_place}",
                f"{session_name!r} again, the same turns",
                "dropped copy",
            )
    if not haystack:
        raise BadField("haystack_sessions", "no turn at all", "at least one session with turns")
    return dict(sorted(haystack.items(), key=lambda item: item[1].date))


def _read_turns_and_fill_evidence(
    scope: str, haystack: _Haystack, evidence_ids: list[str]
) -> Iterator[Record]:
    """Read the turns of a haystack, and fill in the ids of those that are marked as evidence."""
    for session, (date, turns, turns_place) in haystack.items():
        for turn_number, raw_turn in enumerate(turns, 1):
            turn_fields = Record(raw_turn, f"{turns_place}[{turn_number - 1}]")
            role = turn_fields.read_field("role", record_fields.check_name)
            text = turn_fields.read_field("content", record_fields.check_text)
            turn = make_turn_record(scope, session, turn_number, role, text, timestamp=date)
            if turn_fields.read_field("has_answer", record_fields.check_flag, False):
                evidence_ids.append(turn_id_of_record(turn))
            yield turn


def _check_and_make_question_record(
    raw_question: Record, scope: str, haystack: _Haystack, evidence_ids: list[str]
) -> Record:
    answer_sessions = raw_question.read_field("answer_session_ids", record_fields.check_names)
    unknown_sessions = [name for name in answer_sessions if name not in haystack]
    if unknown_sessions:
        fault_text = f"{unknown_sessions[0]!r}, which the haystack does not hold"
        raise BadField("answer_session_ids", fault_text, "haystack_session_ids")
    question_text = raw_question.read_field("question", record_fields.check_name)
    question_type = raw_question.read_field("question_type", record_fields.check_name)
    answer = raw_question.read_field("answer", record_fields.check_and_join_answer)
    time = raw_question.read_field("question_date", parse_date)
    sessions = [
        f"{encode_id_part(scope)}/{encode_id_part(session_name)}"
        for session_name in answer_sessions
    ]
    question_fields: dict[str, Any] = {
        "type": question_type,
        "answer": answer,
        "timestamp": time,
        "abstention": scope.endswith("_abs"),
    }
    question_fields |= {
        "query_id": encode_id_part(scope),
        "evidence": evidence_ids,
        "evidence_sessions": sessions,
    }
    return make_benchmark_question(scope, 0, question_text, **question_fields)
