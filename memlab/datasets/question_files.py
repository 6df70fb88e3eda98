"""Questions as lines of a chat log: how they are written, and read beside conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC
from typing import Any

import polars as pl

from memlab.datasets.message_identity import CitationIndex, TakenQuestionIds, read_question
from memlab.datasets.record_fields import (
    BadField,
    JsonObject,
    Record,
    check_name,
    resolve_time_to_utc,
)
from memlab.datasets.record_sources import Source
from memlab.records import (
    Dataset,
    Question,
    decode_id_part,
    encode_id_part,
    frame,
    resolve_scope_name,
)

_PLAIN = ("rubric", "stale", "source", "reasons", "distractors")


def question_as_log_line(question_row: Mapping[str, Any]) -> JsonObject:
    """Give a question as a line of a chat log, which reads as the same question.

    :param question_row: a row of :attr:`memlab.records.Dataset.questions`.
    :returns: the fields that hold something, fit for JSON; messages are named by turn ids.

    >>> import memlab
    >>> from memlab.datasets.question_files import question_as_log_line
    >>> row = memlab.sample().questions.row(0, named=True)
    >>> list(question_as_log_line(row))[:4]
    ['question', 'scope', 'query_id', 'answer']
    """
    line_fields = {
        "question": question_row["text"],
        "scope": decode_id_part(question_row["scope"]),
        "query_id": "/".join(map(decode_id_part, question_row["query_id"].split("/"))),
        "answer": question_row["answer"],
        "type": question_row["question_type"],
        "timestamp": None,
        "evidence": question_row["evidence"],
        "evidence_sessions": question_row["evidence_sessions"],
    }
    if question_row["timestamp"] is not None:
        line_fields["timestamp"] = question_row["timestamp"].isoformat()
    if question_row.get("judged"):
        graded_turns = zip(question_row["judged"], question_row["grades"], strict=True)
        line_fields["evidence"] = [{"id": turn, "grade": grade} for turn, grade in graded_turns]
    if question_row.get("abstention"):
        line_fields["abstention"] = True
    line_fields |= {field_name: question_row.get(field_name) for field_name in _PLAIN}
    if question_row.get("checks"):
        line_fields["checks"] = json.loads(question_row["checks"])
    return {
        field_name: value for field_name, value in line_fields.items() if value not in (None, [])
    }


def add_questions_of_file(question_file: Source, data: Dataset) -> Dataset:
    """Read questions of a file about conversations that are there, beside those that they have.

    They cite messages by turn id, by the message's own id, or by ``<session>/<n>``. Lines without a
    question are passed over.

    :param question_file: a file of JSON lines, with the options of the load.
    :raises DataError: for a question that cannot be used, where these are not put aside: one of a
        scope or with evidence that is not there, an id that stands twice …

    >>> import tempfile
    >>> from pathlib import Path
    >>> import memlab
    >>> from memlab.datasets.question_files import add_questions_of_file
    >>> from memlab.datasets.record_sources import Source
    >>> line = '{"scope": "owen", "question": "Where?", "query_id": "p1", "source": "proposed"}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "proposed.jsonl")
    ...     _ = path.write_text(line)
    ...     data = add_questions_of_file(Source(path), memlab.sample(scopes=["owen"]))
    ...     data.questions["source"][-1]
    'proposed'
    """
    questions_read = list[Question]()
    known_ids = dict.fromkeys(data.questions["query_id"], data.name)
    taken_ids = TakenQuestionIds(data, known_ids, as_they_are=False)
    citations = _CitableNames(data)
    for number, raw_question in question_file.stream_numbered_json_lines():
        question_place = f"line {number}"
        with question_file.record(question_place, raw_question):
            record = Record(raw_question)
            if "question" not in record:
                continue
            scope = citations.check_and_decode_scope(record.read_field("scope", check_name))
            citation_index = citations.find_or_build_index_by_question_field(scope)
            asked_at = record.read_field("timestamp", question_file.parse_time, None)
            if asked_at is not None:
                asked_at = resolve_time_to_utc(asked_at, question_file.tz or UTC, None)
            question = read_question(record, scope, citation_index, asked_at)
            questions_read.append(
                taken_ids.check_and_take_question_id(question, len(questions_read), question_place)
            )
    questions = pl.concat([data.questions, frame(Question, questions_read)], how="diagonal")
    issues = pl.concat([data.issues, question_file.report.take_and_clear_issues()])
    return replace(data, questions=questions, issues=issues)


class _CitableNames:
    """What questions may call the turns and sessions of a dataset, scope by scope."""

    def __init__(self, data: Dataset) -> None:
        self._data = data
        self._known = dict[str, dict[str, CitationIndex]]()

    def check_and_decode_scope(self, given_name: str) -> str:
        """Give the plain name of a scope; :raises BadField: where it has no messages."""
        scope = resolve_scope_name(given_name, self._data.scopes)
        if scope not in self._data.scopes:
            raise BadField(
                "scope", f"{given_name!r}, which has no messages", "a scope of the dataset"
            )
        return decode_id_part(scope)

    def find_or_build_index_by_question_field(self, scope: str) -> dict[str, CitationIndex]:
        """Give what may be called how in a scope, by the field of a question."""
        if scope not in self._known:
            self._known[scope] = self._build_index_by_field(scope)
        return self._known[scope]

    def _build_index_by_field(self, scope: str) -> dict[str, CitationIndex]:
        scope_turns = self._data.turns.filter(scope=encode_id_part(scope))
        turn_index = CitationIndex()
        session_index = CitationIndex()
        for turn, session, turn_number in scope_turns.select(
            "turn_id", "session_id", "n"
        ).iter_rows():
            turn_and_session = turn, session
            session_names = _citable_names(session)
            for cited_name in session_names:
                turn_index[scope, f"{cited_name}/{turn_number}"] = turn_and_session
                session_index[scope, cited_name] = turn_and_session
            for cited_name in _citable_names(turn):
                turn_index[scope, cited_name] = turn_and_session
        index = dict.fromkeys(("evidence", "stale", "distractors"), turn_index)
        return {**index, "evidence_sessions": session_index}


def _citable_names(full_id: str) -> set[str]:
    """Give the names of a turn or a session: its id, and the last part of it as the log has it."""
    last_part = full_id.rpartition("/")[2]
    return {full_id, last_part, decode_id_part(last_part)}
