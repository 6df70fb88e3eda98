"""Corrections of LoCoMo's evidence, from a file of errors that an audit made.

The layout is that of the audit of LoCoMo (github.com/dial481/locomo-audit): a list of objects with
``question``, ``cited_evidence`` and ``correct_evidence``; other fields are passed over. Evidence is
written as in LoCoMo, ``D1:3``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets import fields
from memlab.datasets.benchmarks.locomo import parse_citations
from memlab.datasets.fields import BadField, Record
from memlab.datasets.source import Source
from memlab.errors import DataError, explained
from memlab.records import Dataset

FILES = ("errors.json", "errors_conv_*.json", "*.json")
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
    source, there, about = Source(Path(path)), set(data.turns["turn_id"]), 0
    rows = data.questions.select(
        "query_id", "scope", "evidence", text=pl.col("text").str.strip_chars()
    ).to_dicts()
    evidence = {row["query_id"]: row["evidence"] for row in rows}
    source.members = source.files(*FILES)
    for file, number, raw in source.member_values():
        where = f"error {number - 1}"
        with file.record(where, raw):
            record = Record(raw)
            text = record.take("question", fields.check_name).strip()
            wrong, right = (
                _read_cited_turns(record, name) for name in ("cited_evidence", "correct_evidence")
            )
            asked = [row for row in rows if row["text"] == text]
            if len(asked) > 1:
                citing = [
                    row
                    for row in asked
                    if set(row["evidence"]) == there & set(_make_turn_ids(wrong, row))
                ]
                asked = citing or asked
            if len(asked) > 1:
                file.note(where, f"{len(asked)} questions with these words", "not corrected")
            for row in asked if len(asked) == 1 else ():
                about, found = about + 1, _make_turn_ids(right, row)
                if lost := [turn for turn in found if turn not in there]:
                    file.note(
                        f"{where}: correct_evidence",
                        f"{lost[0]}, which is no turn",
                        "dropped evidence",
                    )
                kept = [turn for turn in found if turn in there]
                if set(kept) != set(row["evidence"]):
                    evidence[row["query_id"]] = kept
                    file.note(row["query_id"], ", ".join(f"D{k}:{n}" for k, n in wrong), CORRECTED)
    if not about:
        source.fail(
            f"corrects no question of {data.name}; expected the questions of LoCoMo in their own "
            "words"
        )
    sessions = [
        list(dict.fromkeys(turn.rpartition("/")[0] for turn in turns))
        for turns in evidence.values()
    ]
    columns = {"evidence": [*evidence.values()], "evidence_sessions": sessions}
    kind = data.questions.schema["evidence"]
    questions = data.questions.with_columns(
        pl.Series(name, turns, dtype=kind) for name, turns in columns.items()
    )
    # An audit says what is evidence, not how good it is.
    questions = questions.with_columns(
        pl.lit(None, data.questions.schema[name]).alias(name)
        for name in ("judged", "grades")
        if name in questions.columns
    )
    issues = pl.concat([data.issues, source.report.take_issues()])
    return replace(data, name=f"{data.name}-corrected", questions=questions, issues=issues)


def _read_cited_turns(record: Record, name: str) -> list[tuple[int, int]]:
    texts = [
        fields.check_text(text, f"{name}[{i}]")
        for i, text in enumerate(record.take(name, fields.check_list))
    ]
    turns = [turn for text in texts for turn in parse_citations(text)]
    if texts and not turns:
        raise BadField(name, repr(texts[0]), 'turn ids such as "D1:3"')
    return turns


def _make_turn_ids(turns: list[tuple[int, int]], row: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(f"{row['scope']}/session_{k}/{n}" for k, n in turns))
