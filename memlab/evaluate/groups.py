"""Groups of questions: by kind, by number of evidence sessions, by form.

A mean over all questions hides the ones that need several evidence items. The form of a question is
known when it is asked, before any label: :mod:`memlab.text.questions`.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, Level, qrels
from memlab.records.dataset import describe_sources, source_expr
from memlab.source_labels import COLUMN, format_count
from memlab.text.questions import FORMS, asks_for_aggregation, question_form

MULTI_SESSION = "≥ 2"
"""The derived group of questions whose evidence lies in two or more sessions."""
HAS_SEVERAL_SESSIONS = pl.col("n_evidence_sessions") >= 2
"""The rows of ``per_query`` that are in it."""
ALL_QUESTIONS, SEVERAL_SESSIONS = "all questions", f"evidence in {MULTI_SESSION} sessions"
"""What :func:`question_groups` calls its groups."""
_DESCRIBED: WeakKeyDictionary[Dataset, dict[Level, pl.DataFrame]] = WeakKeyDictionary()


def describe_questions(dataset: Dataset, level: Level) -> pl.DataFrame:
    """Give what each question with evidence is grouped by.

    :returns: a row a question that has evidence at this level: ``query_id``, ``scope``,
        ``question_type``, ``form``, ``aggregation``, ``n_evidence_sessions``, ``evidence_sessions``
        (``1``, ``2``, ``3``, ``4+``), ``n_relevant``, ``n_docs``, the number of turns or sessions
        in the question's scope; where any is above 1, ``grades``, those of its evidence; and, where
        some are not written by a person or a benchmark, ``source``.
    :raises DataError: when a question is about a scope without documents.
    """
    # Ten runs are measured on one dataset, and its forms are read once.
    levels = _DESCRIBED.setdefault(dataset, {})
    if level not in levels:
        levels[level] = _describe_level(dataset, level)
    return levels[level].clone()


def _describe_level(dataset: Dataset, level: Level) -> pl.DataFrame:
    judged = qrels(dataset.questions, level, dataset.turns).frame
    relevant = judged.group_by("query_id").agg(
        n_relevant=pl.len().cast(pl.Int32), grades="relevance"
    )
    # A session without turns has nothing to be found by, so it is no candidate.
    documents = dataset.turns if level == "turn" else dataset.sessions.filter(pl.col("n_turns") > 0)
    sizes = documents.group_by("scope").agg(n_docs=pl.len().cast(pl.Int32))
    # Those of the questions are of turns, and of what is no evidence too.
    questions = dataset.questions.drop("grades", strict=False)
    asked = questions.join(relevant, on="query_id", maintain_order="left")
    described = asked.join(sizes, on="scope", how="left", maintain_order="left")
    for query, scope in (
        described.filter(pl.col("n_docs").is_null()).select("query_id", "scope").head(1).rows()
    ):
        raise DataError(
            f"dataset {dataset.name!r}: question {query!r} is about scope {scope!r}, which has no "
            f"{level}s"
        )
    n = pl.col("evidence_sessions").list.n_unique().cast(pl.Int32)
    sessions = (
        pl.when(n >= 4).then(pl.lit("4+")).otherwise(n.cast(pl.String)).alias("evidence_sessions")
    )
    kinds = (
        "question_type",
        question_form(),
        asks_for_aggregation(),
        n.alias("n_evidence_sessions"),
        sessions,
    )
    columns = ["n_relevant", "n_docs"]
    if (judged["relevance"] > 1).any():
        columns.append("grades")
    by_source = []
    if describe_sources(dataset.questions):
        by_source.append(source_expr())
    return described.select("query_id", "scope", *kinds, *columns, *by_source)


def split_by(per_query: pl.DataFrame, by: str) -> dict[str, pl.DataFrame]:
    """Split per-query rows into groups in a readable order.

    ``evidence_sessions`` adds the group of two and more.
    """
    if by == "all":
        return {"all": per_query}
    if by not in per_query.columns:
        raise DataError(
            f"nothing to group by is called {by!r}; there are 'all', {', '.join(per_query.columns)}"
        )
    names = {}
    if per_query.schema[by] == pl.Boolean:
        names = {True: "yes", False: "no"}
    groups = {}
    # Rows of a group stay in their order.
    for part in per_query.sort(by, maintain_order=True).partition_by(by, maintain_order=True):
        value = part[by][0]
        groups[names.get(value, str(value))] = part
    if by == "form":
        known = [form for form in FORMS if form in groups]
        groups = {form: groups[form] for form in dict.fromkeys([*known, *groups])}
    if by == "evidence_sessions":
        several = per_query.filter(HAS_SEVERAL_SESSIONS)
        if several.height:
            groups[MULTI_SESSION] = several
    return groups


def multi_session_group(per_query: pl.DataFrame) -> tuple[str, str]:
    """Name the questions that matter most: evidence in two or more sessions, or all where there are
    none.

    :returns: ``by`` and ``group`` for :meth:`Report.summary` and
        :func:`memlab.evaluate.cutoff_curve`.
    """
    return (
        ("evidence_sessions", MULTI_SESSION)
        if per_query.filter(HAS_SEVERAL_SESSIONS).height
        else ("all", "all")
    )


def question_groups(per_query: pl.DataFrame) -> dict[str, pl.Expr]:
    """Give the groups of questions that comparisons are made in, as predicates over ``per_query``.

    :returns: all questions, and, where there are any, those with evidence in two or more sessions.
    """
    groups = {ALL_QUESTIONS: pl.lit(True)}
    if per_query.filter(HAS_SEVERAL_SESSIONS).height:
        groups[SEVERAL_SESSIONS] = HAS_SEVERAL_SESSIONS
    return groups


def count_questions(questions: pl.DataFrame) -> str:
    """Write how many questions there are, and who wrote them; see
    :func:`memlab.source_labels.format_count`.

    >>> import polars as pl
    >>> from memlab.evaluate.groups import count_questions
    >>> count_questions(pl.DataFrame({"source": ["proposed", "accepted", "accepted"]}))
    '3: 1 proposed, 2 accepted'
    """
    return format_count(questions.height, describe_sources(questions))


def with_sources(means: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Put to means who wrote the questions that they are of; nothing where all are written.

    >>> import polars as pl
    >>> from memlab.evaluate.groups import with_sources
    >>> with_sources(pl.DataFrame({"n": [1]}), pl.DataFrame({"source": ["proposed"]})).columns
    ['n', 'question_sources']
    """
    if "source" not in questions.columns:
        return means
    described = describe_sources(questions)
    return means.with_columns(pl.lit(described).alias(COLUMN))
