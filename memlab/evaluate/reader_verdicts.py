"""What readers made of facts that no annotation speaks of, and the facts that they are to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.evaluate.fact_outcomes import FactOutcome, format_fact
from memlab.evaluate.fact_verdicts import judge_fact
from memlab.evaluate.gold_facts import ChatAnnotations, read_json_lines
from memlab.knowledge import Resolved, active_facts
from memlab.knowledge.known_facts import FactRow
from memlab.records.facts import meaning_id

AS_READ = "current precision as read"
"""The measure that counts what readers called true as right, beside what is in the annotations."""
ReaderVerdicts = Mapping[tuple[str, str], bool]
"""Whether facts that no annotation speaks of are true, by scope and meaning."""
UNMATCHED = {
    "scope": pl.String(),
    "meaning": pl.String(),
    "about": pl.String(),
    "slot": pl.String(),
    "value": pl.String(),
    "sentence": pl.String(),
    "kind": pl.String(),
    "holds": pl.Boolean(),
    "evidence": pl.List(pl.String()),
    "turns": pl.List(pl.String()),
}
"""The columns of the facts that no annotation speaks of."""


def read_reader_verdicts(verdicts_path: str | Path) -> ReaderVerdicts:
    """Read what readers made of facts that no annotation speaks of.

    They are listed by :func:`memlab.evaluate.knowledge_scores.list_unannotated_facts`.

    :param verdicts_path: JSON lines with ``scope``, ``meaning`` and ``true``; a fact stands in one
        line for each reader, and counts as true where all of them say so.
    :raises DataError: for a line without these.
    """
    verdicts: dict[tuple[str, str], bool] = {}
    for row_number, row in enumerate(read_json_lines(verdicts_path), 1):
        try:
            scope_and_meaning = (row["scope"], row["meaning"])
            is_true = row["true"]
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{verdicts_path}, row {row_number}: {error!r}; a verdict has scope, meaning and "
                "true"
            ) from None
        if not isinstance(is_true, bool):
            raise DataError(
                f"{verdicts_path}, row {row_number}: true is {is_true!r}; give true or false"
            )
        verdicts[scope_and_meaning] = is_true and verdicts.get(scope_and_meaning, True)
    return verdicts


def score_active_facts_as_read_if_all_read(
    gold: ChatAnnotations, final_facts: Resolved, reader_verdicts: ReaderVerdicts
) -> list[FactOutcome]:
    """Count active facts as for precision, and those that no entry speaks of by what readers said.

    None where one of those was not read.
    """
    outcomes: list[FactOutcome] = []
    for row in active_facts(final_facts).iter_rows(named=True):
        verdict_name = judge_fact(gold, row).name
        if verdict_name == "unlisted":
            is_true = reader_verdicts.get((gold.scope, _meaning_id_of_fact(row)))
            if is_true is None:
                return []
            if is_true:
                verdict_name = "called true"
        if verdict_name != "neutral":
            is_right = verdict_name in ("right", "called true")
            outcomes.append(FactOutcome(AS_READ, is_right, verdict_name, format_fact(row)))
    return outcomes


def list_facts_without_annotation(gold: ChatAnnotations, final_facts: Resolved) -> pl.DataFrame:
    """List the active facts of a chat of which no annotation speaks, each once.

    :returns: columns as of :data:`UNMATCHED`; no row of what is closed.
    """
    rows_by_meaning: dict[str, dict[str, Any]] = {}
    if gold.closed:
        return pl.DataFrame(schema=UNMATCHED)
    turns_by_id = {row["turn_id"]: row for row in gold.data.turns.iter_rows(named=True)}
    for row in active_facts(final_facts).iter_rows(named=True):
        meaning = _meaning_id_of_fact(row)
        if meaning in rows_by_meaning or judge_fact(gold, row).name != "unlisted":
            continue
        cited_turns = [turns_by_id[turn] for turn in row["evidence"]]
        cited_lines = [f"{turn['speaker']}: {turn['text']}" for turn in cited_turns]
        columns = {**row, "meaning": meaning, "turns": cited_lines}
        rows_by_meaning[meaning] = {name: columns[name] for name in UNMATCHED}
    return pl.DataFrame(list(rows_by_meaning.values()), schema=UNMATCHED)


def _meaning_id_of_fact(fact_row: FactRow) -> str:
    return meaning_id(
        fact_row["about"],
        fact_row["slot"],
        fact_row["value"],
        kind=fact_row["kind"],
        holds=fact_row["holds"],
    )
