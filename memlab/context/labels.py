"""How far a judge agrees with people: a hundred answers that were labelled by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import polars as pl

from memlab.context.by_model import judge
from memlab.context.holding import with_interval
from memlab.context.rules import RULES, by_rules
from memlab.errors import DataError
from memlab.llm import Service

LABELLED = pl.Schema({
    "query_id": pl.String(), "question_type": pl.String(), "abstention": pl.Boolean(), "question": pl.String(),
    "answer": pl.String(), "candidate": pl.String(), "case": pl.String(), "right": pl.Boolean(),
})  # fmt: skip


def labelled(path: str | Path | None = None) -> pl.DataFrame:
    """Read labelled answers: ``question``, right ``answer``, ``candidate``, its ``case``, and whether it is ``right``.

    memlab's own are a hundred answers to questions about invented people, written and labelled before any judge read
    them: exact, reworded, worked out, in part, swapped, outdated, off by one, invented, hedged, refused. An answer is
    right if whoever asks is told what the right answer says, and nothing else in its place.

    :param path: JSON lines of your own with the same fields; ``query_id`` and ``case`` may be left out.
    :returns: with ``item``, the number of the row, by which verdicts are joined.
    :raises DataError: for a file without these fields.

    >>> from memlab.context import labelled
    >>> labelled().height
    100
    """
    place = str(files("memlab.context") / "labelled_answers.jsonl") if path is None else str(path)
    try:
        rows = pl.read_ndjson(place, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{place}: no JSON lines of labelled answers ({error})") from None
    optional = {"query_id": None, "case": None, "question_type": "", "abstention": False}
    lacking = [name for name in LABELLED if name not in rows.columns and name not in optional]
    if lacking:
        raise DataError(f"{place}: no field {lacking[0]!r}; labelled answers have {', '.join(LABELLED)}")
    rows = rows.with_columns(pl.lit(value).alias(name) for name, value in optional.items() if name not in rows.columns)
    try:
        rows = rows.select(*LABELLED).cast(LABELLED)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{place}: a field is of another kind than {dict(LABELLED)} ({error})") from None
    if rows.select("candidate", "right", "question").null_count().sum_horizontal().item():
        raise DataError(f"{place}: a row lacks question, candidate or right; give each of them")
    return rows.with_row_index("item").with_columns(item=pl.format("item-{}", pl.col("item") + 1))


def verdicts_of(rows: pl.DataFrame, services: Sequence[Service] = ()) -> dict[str, pl.DataFrame]:
    """Have labelled answers judged by :data:`memlab.context.rules.RULES` and by services.

    :returns: judge → ``query_id`` (the row's ``item``) and ``correct``; of a service all that :func:`judge` gives.
    """
    questions = rows.select("question_type", "abstention", "answer", query_id="item", text="question")
    answered = rows.select(query_id="item", answer="candidate")
    ruled = by_rules(questions, answered)
    verdicts = {name: ruled.select("query_id", correct=name) for name in RULES}
    return verdicts | {service.name: judge(questions, answered, service) for service in services}


def agreement(rows: pl.DataFrame, verdicts: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Compare judges with the labels.

    :param rows: what :func:`labelled` gave.
    :param verdicts: judge → ``query_id`` (the row's ``item``) and ``correct``; null where it gave no verdict.
    :returns: ``judge``, ``n`` verdicts, ``undecided`` rows, ``accuracy`` with ``low`` and ``high`` (Wilson, 95 %),
        ``kappa`` (Cohen 1960), ``false_accept`` (share of the wrong that it takes for right) and ``false_reject``.

    >>> from memlab.context import agreement, labelled
    >>> rows = labelled()
    >>> lenient = rows.select(query_id="item", correct=True)
    >>> agreement(rows, {"lenient": lenient}).select("kappa", "false_accept", "false_reject").row(0)
    (0.0, 1.0, 0.0)
    """
    parts = [_beside(rows, given).select("right", "correct", judge=pl.lit(name)) for name, given in verdicts.items()]
    right, said = pl.col("right"), pl.col("correct")
    agreed, share = (right == said).mean(), right.filter(said.is_not_null()).mean()
    by_chance = share * said.mean() + (1 - share) * (1 - said.mean())
    judges = pl.concat(parts).group_by("judge", maintain_order=True)
    table = judges.agg(
        n=said.count(),
        undecided=said.null_count(),
        hits=(right == said).sum(),
        accuracy=agreed,
        kappa=pl.when(by_chance < 1).then((agreed - by_chance) / (1 - by_chance)),
        false_accept=said.filter(~right).mean(),
        false_reject=(~said).filter(right).mean(),
    )
    columns = ("judge", "n", "undecided", "accuracy", "low", "high", "kappa", "false_accept", "false_reject")
    return with_interval(table).select(columns)


def disagreements(rows: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Count by case where a judge differs from the label: ``case``, ``right``, ``n``, ``taken_for_right``."""
    cases = _beside(rows, verdicts).group_by("case", "right", maintain_order=True)
    return cases.agg(n=pl.len(), taken_for_right=pl.col("correct").sum())


def _beside(rows: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Put verdicts beside the labels."""
    given = verdicts.select(item="query_id", correct=pl.col("correct").cast(pl.Boolean))
    return rows.join(given, on="item", how="left", maintain_order="left")
