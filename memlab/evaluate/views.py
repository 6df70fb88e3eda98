"""Reports as the frames that charts read: curves over k, independent hits, the ranking of one question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.groups import MULTI_SESSION, SEVERAL
from memlab.evaluate.measures import Measure
from memlab.evaluate.report import Report
from memlab.evaluate.significance import bootstrap_interval
from memlab.records import Dataset, Run


def hard_group(report: Report) -> tuple[str, str]:
    """Name the questions that matter most here: evidence in two or more sessions, or all where there are none.

    :returns: ``by`` and ``group`` for :meth:`Report.summary` and :func:`curve`.
    """
    several = report.per_query.filter(SEVERAL).height
    return ("evidence_sessions", MULTI_SESSION) if several else ("all", "all")


def curve(reports: Sequence[Report], *, name: str = "recall_all", by: str = "all", group: str = "all") -> pl.DataFrame:
    """Give a measure over its cut-offs, for :func:`memlab.figures.curves.recall_curves`.

    :param reports: measured at several k.
    :param name: the measure's, without a cut-off.
    :param by: how questions are grouped, and which ``group`` is wanted.
    :returns: ``system``, ``k``, ``mean``, ``low``, ``high``, ``ceiling``, ``chance``, ``n``.
    :raises DataError: when the measure was not taken at any k, or the group is empty.
    """
    parts = []
    for report in reports:
        wanted = [measure for measure in report.measures if measure.name == name and measure.k is not None]
        if not wanted:
            raise DataError(f"report {report.name!r} has no {name}@k; evaluate with measures such as {name}@10")
        rows = report.summary(by, measures=wanted).filter(pl.col("group") == group)
        if not rows.height:
            raise DataError(f"report {report.name!r} has no questions in group {group!r} of {by!r}")
        cutoff = pl.col("measure").str.extract(r"@(\d+)$").cast(pl.Int64)
        parts.append(rows.with_columns(system=pl.lit(report.name), k=cutoff))
    return pl.concat(parts).select("system", "k", "mean", "low", "high", "ceiling", "chance", "n")


def independent_hits(report: Report, *, k: int = 10, most: int = 5) -> pl.DataFrame:
    """Set complete recall beside what independent hits would give: pⁿ for n pieces found with probability p each.

    p is the share of all pieces of evidence that are among the first ``k``.

    :param report: with ``recall@k`` and ``recall_all@k``.
    :param most: questions with more pieces share the last row.
    :returns: ``n_evidence`` (a text), ``measured``, ``low``, ``high``, ``predicted`` and ``n``.
    :raises DataError: when the report lacks one of the two measures.
    """
    fraction, complete = str(Measure("recall", k)), str(Measure("recall_all", k))
    lacking = {fraction, complete} - {str(measure) for measure in report.measures}
    if lacking:
        raise DataError(f"report {report.name!r} lacks {sorted(lacking)[0]}; evaluate with it")
    rows = report.per_query.with_columns(pl.min_horizontal("n_relevant", pl.lit(most)).alias("pieces"))
    pieces = rows["n_relevant"].to_numpy()
    p = float(rows[fraction].to_numpy() @ pieces / pieces.sum())
    table = []
    for n, part in sorted((key[0], part) for key, part in rows.partition_by("pieces", as_dict=True).items()):
        low, high = bootstrap_interval(part[complete].to_numpy()[:, None], np.ones(part.height), seed=report.seed)
        predicted = (p ** part["n_relevant"].to_numpy()).mean()
        label = str(n) if n < most else f"{n}+"
        table.append((label, part[complete].mean(), float(low[0]), float(high[0]), float(predicted), part.height))
    return pl.DataFrame(table, schema=["n_evidence", "measured", "low", "high", "predicted", "n"], orient="row")


def dissect(run: Run, dataset: Dataset, query_id: str, *, k: int = 10) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take one question's ranking apart, for :func:`memlab.figures.anatomy.question_anatomy`.

    :param run: a ranking of turns.
    :returns: the first ``k`` (``rank``, ``score``, ``session``, ``evidence``, ``text``) and the evidence that is not
        among them (``session``, ``text``, ``rank``, null where it was not retrieved).
    :raises DataError: when the dataset has no such question, or the run ranks sessions.
    """
    question = dataset.questions.filter(pl.col("query_id") == query_id)
    if not question.height or run.level != "turn":
        raise DataError(f"no question {query_id!r} in {dataset.name!r}, or a run of sessions; give a ranking of turns")
    names = dataset.turns.select(
        "text",
        doc_id="turn_id",
        session=pl.col("session_id").str.replace(r"^.*/", "").str.replace("session_", "s"),
        evidence=pl.col("turn_id").is_in(question["evidence"].explode().implode()),
    )
    ranked = run.frame.filter(pl.col("query_id") == query_id)
    first = ranked.filter(pl.col("rank") <= k)
    hits = first.join(names, on="doc_id", how="left", maintain_order="left")
    missed = (
        names.filter("evidence")
        .join(first, on="doc_id", how="anti", maintain_order="left")
        .join(ranked, on="doc_id", how="left", maintain_order="left")
        .sort("rank", nulls_last=True, maintain_order=True)
    )
    return hits.select("rank", "score", "session", "evidence", "text"), missed.select("session", "text", "rank")
