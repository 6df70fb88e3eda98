"""Groups of questions: by kind, by number of evidence sessions, by form.

A mean over all questions hides the ones that need several pieces. The form of a question is known when it is asked,
before any label: :mod:`memlab.language.questions`.
"""

from __future__ import annotations

import polars as pl

from memlab.errors import DataError
from memlab.language.questions import aggregation, question_form
from memlab.records import Dataset, Level, qrels

MULTI_SESSION = "≥ 2"
"""The derived group of questions whose evidence lies in two or more sessions."""


def describe_questions(dataset: Dataset, level: Level) -> pl.DataFrame:
    """Give what each question with evidence is grouped by.

    :returns: a row a question that has evidence at this level: ``query_id``, ``scope``, ``question_type``, ``form``,
        ``aggregation``, ``n_evidence_sessions``, ``evidence_sessions`` (``1``, ``2``, ``3``, ``4+``), ``n_relevant``
        and ``n_docs``, the number of turns or sessions in the question's scope.
    :raises DataError: when no question has evidence.
    """
    relevant = qrels(dataset.questions, level).frame.group_by("query_id").agg(n_relevant=pl.len().cast(pl.Int32))
    # A session without turns has nothing to be found by, so it is no candidate.
    documents = dataset.turns if level == "turn" else dataset.sessions.filter(pl.col("n_turns") > 0)
    sizes = documents.group_by("scope").agg(n_docs=pl.len().cast(pl.Int32))
    asked = dataset.questions.join(relevant, on="query_id", maintain_order="left")
    if not asked.height:
        raise DataError(
            f"dataset {dataset.name!r} has {dataset.questions.height} questions and none with evidence {level}s; "
            "measures need evidence ids: ask without measuring, or label some questions"
        )
    unknown = asked.join(sizes, on="scope", how="anti")
    if unknown.height:
        at = unknown.row(0, named=True)
        raise DataError(
            f"dataset {dataset.name!r}: question {at['query_id']!r} is about scope {at['scope']!r}, which has "
            f"no {level}s; load the conversation together with its questions"
        )
    n_sessions = pl.col("evidence_sessions").list.n_unique().cast(pl.Int32)
    return (
        asked.join(sizes, on="scope", how="left", maintain_order="left")
        .with_columns(question_form(), aggregation(), n_evidence_sessions=n_sessions)
        .with_columns(
            evidence_sessions=pl.when(pl.col("n_evidence_sessions") >= 4)
            .then(pl.lit("4+"))
            .otherwise(pl.col("n_evidence_sessions").cast(pl.String))
        )
        .select(
            *("query_id", "scope", "question_type", "form", "aggregation"),
            *("n_evidence_sessions", "evidence_sessions", "n_relevant", "n_docs"),
        )
    )
