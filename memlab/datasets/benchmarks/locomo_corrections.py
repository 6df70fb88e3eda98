"""Corrections of LoCoMo's evidence, from a file of errors that an audit made.

The layout is that of the audit of LoCoMo (github.com/dial481/locomo-audit): a list of objects with
``question``, ``cited_evidence`` and ``correct_evidence``; other fields are passed over. Evidence is
written as in LoCoMo, ``D1:3``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from memlab.datasets import record_fields
from memlab.datasets.benchmarks.locomo import CitedTurn, parse_cited_turns
from memlab.datasets.record_fields import BadField, Record
from memlab.datasets.record_sources import Source
from memlab.errors import DataError, explained
from memlab.records import Dataset

FILES = ("errors.json", "errors_conv_*.json", "*.json")
QuestionRow = dict[str, Any]
"""A row of the questions of a dataset, by its columns."""
CORRECTED = "corrected evidence"
"""The action of the issues that tell what was corrected."""


@explained
def apply_corrections(data: Dataset, path: str | Path) -> Dataset:
    """Give a dataset with the evidence that an audit of LoCoMo found right, under its name with
    ``-corrected``.

    A correction is of the question with its words; where several ask the same, of the one whose
    evidence is the one that it cites. Corrections of questions that the dataset does not have are
    passed over, since it may be a part of LoCoMo. A question whose correct evidence is empty is
    measured no more. ``issues`` tell each change, and each correction that could not be made.

    :param path: a file of errors, or a folder of them.
    :raises DataError: when a record is malformed, or nothing in the file is about the dataset.

    >>> import memlab
    >>> data = memlab.datasets.load("locomo")  # doctest: +SKIP
    >>> memlab.datasets.apply_corrections(data, "errors.json")  # doctest: +SKIP
    <Dataset locomo10-corrected (locomo): ...>
    """
    if data.format != "locomo":
        raise DataError(f"{data.name} is {data.format}; corrections are of LoCoMo's evidence")
    source = Source(Path(path))
    source.members = source.files(*FILES)
    known_turns = set(data.turns["turn_id"])
    text = pl.col("text").str.strip_chars()
    question_rows = data.questions.select("query_id", "scope", "evidence", text=text).to_dicts()
    evidence = {row["query_id"]: row["evidence"] for row in question_rows}
    n_found = 0
    for file, number, raw_error in source.stream_numbered_member_values():
        error_label = f"error {number - 1}"
        with file.record(error_label, raw_error):
            correction = _read_correction(Record(raw_error))
            question = _find_question_or_note_ambiguity(
                file, error_label, correction, question_rows, known_turns
            )
            if question is None:
                continue
            n_found += 1
            kept_turns = _keep_existing_turns_and_note_missing(
                file, error_label, correction, question, known_turns
            )
            if set(kept_turns) != set(question["evidence"]):
                evidence[question["query_id"]] = kept_turns
                cited_text = ", ".join(map(_write_citation_as_dia_id, correction.cited))
                file.note(question["query_id"], cited_text, CORRECTED)
    if not n_found:
        source.fail(
            f"corrects no question of {data.name}; expected the questions of LoCoMo in their own "
            "words"
        )
    questions = _replace_evidence_and_blank_grades(data.questions, list(evidence.values()))
    issues = pl.concat([data.issues, source.report.take_and_clear_issues()])
    return replace(data, name=f"{data.name}-corrected", questions=questions, issues=issues)


class _Correction(NamedTuple):
    """What an audit says of a question: the turns that it cites, and those that are right.

    A turn is the number of its session and its place there.
    """

    question_text: str
    cited: list[CitedTurn]
    correct: list[CitedTurn]


def _read_correction(record: Record) -> _Correction:
    question_text = record.read_field("question", record_fields.check_name).strip()
    cited_turns = _read_cited_turns(record, "cited_evidence")
    correct_turns = _read_cited_turns(record, "correct_evidence")
    return _Correction(question_text, cited_turns, correct_turns)


def _find_question_or_note_ambiguity(
    file: Source,
    error_label: str,
    correction: _Correction,
    question_rows: list[QuestionRow],
    known_turns: set[str],
) -> QuestionRow | None:
    """Find the one question with these words; of several, the one with the cited evidence."""
    matching_questions = []
    citing_questions = []
    for row in question_rows:
        if row["text"] != correction.question_text:
            continue
        matching_questions.append(row)
        if set(row["evidence"]) == known_turns.intersection(
            _turn_ids_of_cited_turns(correction.cited, row)
        ):
            citing_questions.append(row)
    if len(matching_questions) > 1 and citing_questions:
        matching_questions = citing_questions
    if len(matching_questions) == 1:
        return matching_questions[0]
    if matching_questions:
        finding = f"{len(matching_questions)} questions with these words"
        file.note(error_label, finding, "not corrected")
    return None


def _keep_existing_turns_and_note_missing(
    file: Source,
    error_label: str,
    correction: _Correction,
    question_row: QuestionRow,
    known_turns: set[str],
) -> list[str]:
    """Give the turns that are right and that there are; the first that is none is noted."""
    correct_ids = _turn_ids_of_cited_turns(correction.correct, question_row)
    missing_turns = [turn for turn in correct_ids if turn not in known_turns]
    if missing_turns:
        finding = f"{missing_turns[0]}, which is no turn"
        file.note(f"{error_label}: correct_evidence", finding, "dropped evidence")
    return [turn for turn in correct_ids if turn in known_turns]


def _replace_evidence_and_blank_grades(
    question_rows: pl.DataFrame, evidence_of_each_row: list[list[str]]
) -> pl.DataFrame:
    """Give questions other evidence, with the sessions that it lies in."""
    evidence_type = question_rows.schema["evidence"]
    sessions = [
        list(dict.fromkeys(map(_session_id_of_turn, turns))) for turns in evidence_of_each_row
    ]
    # An audit says what is evidence, not how good it is.
    ungraded = {}
    for column in ("judged", "grades"):
        if column in question_rows.columns:
            ungraded[column] = pl.lit(None, question_rows.schema[column])
    return question_rows.with_columns(
        pl.Series("evidence", evidence_of_each_row, dtype=evidence_type),
        pl.Series("evidence_sessions", sessions, dtype=evidence_type),
        **ungraded,
    )


def _session_id_of_turn(turn_id: str) -> str:
    return turn_id.rpartition("/")[0]


def _write_citation_as_dia_id(cited_turn: CitedTurn) -> str:
    session_number, turn_number = cited_turn
    return f"D{session_number}:{turn_number}"


def _read_cited_turns(record: Record, field_name: str) -> list[CitedTurn]:
    cited_texts = record.read_field(field_name, record_fields.check_list)
    for text_number, text in enumerate(cited_texts):
        record_fields.check_text(text, f"{field_name}[{text_number}]")
    cited_turns = list(chain.from_iterable(map(parse_cited_turns, cited_texts)))
    if cited_texts and not cited_turns:
        raise BadField(field_name, repr(cited_texts[0]), 'turn ids such as "D1:3"')
    return cited_turns


def _turn_ids_of_cited_turns(cited_turns: list[CitedTurn], question_row: QuestionRow) -> list[str]:
    turn_ids = dict[str, None]()
    for session_number, turn_number in cited_turns:
        turn_ids[f"{question_row['scope']}/session_{session_number}/{turn_number}"] = None
    return list(turn_ids)
