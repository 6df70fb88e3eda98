"""Corrections of a benchmark's evidence, from a file of errors that an audit made.

The layout is that of the audit of LoCoMo (github.com/dial481/locomo-audit): a list of objects with ``question``,
``cited_evidence`` and ``correct_evidence``; other fields are passed over. Evidence is written as in LoCoMo, ``D1:3``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets._fields import Bad, Record, as_text, sessions_of_turns
from memlab.datasets._json import objects
from memlab.datasets._read import Source
from memlab.datasets.locomo import cited
from memlab.errors import DataError
from memlab.records import Dataset

FILES = ("errors.json", "errors_conv_*.json", "*.json")
CORRECTED = "corrected evidence"
"""The action of the issues that tell what was corrected."""


def corrected(data: Dataset, path: str | Path) -> Dataset:
    """Give a dataset with the evidence that an audit of LoCoMo found right, under its name with ``-corrected``.

    A correction is of the question with its words; where several ask the same, of the one whose evidence is the one
    that it cites. Corrections of questions that the dataset does not have are passed over, since it may be a part of
    LoCoMo. A question whose correct evidence is empty is measured no more. ``issues`` tell each change, and each
    correction that could not be made.

    :param path: a file of errors, or a folder of them.
    :raises DataError: when a record is malformed, or nothing in the file is about the dataset.

    >>> import memlab
    >>> memlab.datasets.corrected(memlab.datasets.load("locomo"), "errors.json")  # doctest: +SKIP
    <Dataset locomo10-corrected (locomo): ...>
    """
    if data.format != "locomo":
        raise DataError(f"{data.name} is {data.format}; corrections are of LoCoMo's evidence")
    source = Source(Path(path))
    asked: dict[str, list[dict[str, Any]]] = {}
    for row in data.questions.iter_rows(named=True):
        asked.setdefault(row["text"].strip(), []).append(row)
    there, mended, about = set(data.turns["turn_id"]), dict[str, list[str]](), 0
    for file in source.files(*FILES):
        for index, raw in objects(file):
            with file.record(f"error {index}", raw):
                record = Record(raw)
                text = record.name("question").strip()
                wrong, right = (_turns(record, name) for name in ("cited_evidence", "correct_evidence"))
                meant = asked.get(text, [])
                if len(meant) > 1:
                    meant = [row for row in meant if set(row["evidence"]) == set(_ids(wrong, row, there))]
                if len(meant) == 1:
                    row, about = meant[0], about + 1
                    evidence = _ids(right, row, there)
                    if len(evidence) < len(set(right)):
                        lost = next(f"D{k}:{n}" for k, n in right if not _ids([(k, n)], row, there))
                        source.note(f"error {index}: correct_evidence", f"{lost}, which is no turn", "dropped evidence")
                    if set(evidence) != set(row["evidence"]):
                        mended[row["query_id"]] = evidence
                        cites = ", ".join(f"D{k}:{n}" for k, n in wrong)
                        source.note(row["query_id"], cites, CORRECTED)
                elif text in asked:
                    source.note(f"error {index}", f"{len(asked[text])} questions with these words", "not corrected")
    if not about:
        source.fail(f"corrects no question of {data.name}; expected the questions of LoCoMo in their own words")
    evidence_of = data.questions.select("query_id", "evidence").iter_rows()
    turns = [mended.get(query, evidence) for query, evidence in evidence_of]
    kind = data.questions.schema["evidence"]
    questions = data.questions.with_columns(
        evidence=pl.Series(turns, dtype=kind), evidence_sessions=pl.Series([*map(sessions_of_turns, turns)], dtype=kind)
    )
    issues = pl.concat([data.issues, source.take_issues()])
    return replace(data, name=f"{data.name}-corrected", questions=questions, issues=issues)


def _turns(record: Record, name: str) -> list[tuple[int, int]]:
    texts = [as_text(text, f"{name}[{i}]") for i, text in enumerate(record.listed(name))]
    turns = [turn for text in texts for turn in cited(text)]
    if texts and not turns:
        raise Bad(name, repr(texts[0]), 'turn ids such as "D1:3"')
    return turns


def _ids(turns: list[tuple[int, int]], row: dict[str, Any], there: set[str]) -> list[str]:
    ids = [f"{row['scope']}/session_{k}/{n}" for k, n in turns]
    return [turn for turn in dict.fromkeys(ids) if turn in there]
