"""Groups of questions: by kind, by number of evidence sessions, by form.

A mean over all questions hides the ones that need several evidence items. The form of a question is
known when it is asked, before any label: :mod:`memlab.text.question_forms`.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import polars as pl

from memlab.errors import DataError
from memlab.question_source_labels import COLUMN, format_question_count
from memlab.records import Dataset, Level, qrels
from memlab.records.dataset import describe_question_sources_or_empty, question_source_expr
from memlab.text.question_forms import FORMS, asks_for_aggregation, question_form

MULTI_SESSION = "≥ 2"
"""The derived group of questions whose evidence lies in two or more sessions."""
HAS_SEVERAL_SESSIONS = pl.col("n_evidence_sessions") >= 2
"""The rows of ``per_query`` that are in it."""
ALL_QUESTIONS = "all questions"
SEVERAL_SESSIONS = f"evidence in {MULTI_SESSION} sessions"
"""What :func:`group_predicates_by_name` calls its groups."""
_DESCRIBED: WeakKeyDictionary[Dataset, dict[Level, pl.DataFrame]] = WeakKeyDictionary()


def grouping_columns_of_questions(dataset: Dataset, level: Level) -> pl.DataFrame:
    """Give what each question with evidence is grouped by.

    :returns: a row a question that has evidence at this level: ``query_id``, ``scope``,
        ``question_type``, ``form``, ``aggregation``, ``n_evidence_sessions``, ``evidence_sessions``
        (``1``, ``2``, ``3``, ``4+``), ``n_relevant``, ``n_docs``, the number of turns or sessions
        in the question's scope; where any is above 1, ``grades``, those of its evidence; and, where
        some are not written by a person or a benchmark, ``source``.
    :raises DataError: when a question is about a scope without documents.
    """
    # Ten runs are measured on one dataset, and its forms are read once.
    described_levels = _DESCRIBED.setdefault(dataset, {})
    if level not in described_levels:
        described_levels[level] = _compute_grouping_columns_or_raise(dataset, level)
    return described_levels[level].clone()


def _compute_grouping_columns_or_raise(dataset: Dataset, level: Level) -> pl.DataFrame:
    judged_items = qrels(dataset.questions, level, dataset.turns).frame
    relevant = judged_items.group_by("query_id").agg(
        n_relevant=pl.len().cast(pl.Int32), grades="relevance"
    )
    # A session without turns has nothing to be found by, so it is no candidate.
    documents = dataset.turns if level == "turn" else dataset.sessions.filter(pl.col("n_turns") > 0)
    scope_sizes = documents.group_by("scope").agg(n_docs=pl.len().cast(pl.Int32))
    # Those of the questions are of turns, and of what is no evidence too.
    questions = dataset.questions.drop("grades", strict=False)
    question_rows = questions.join(relevant, on="query_id", maintain_order="left")
    sized_questions = question_rows.join(scope_sizes, on="scope", how="left", maintain_order="left")
    for query_id, scope in (
        sized_questions.filter(pl.col("n_docs").is_null())
        .select("query_id", "scope")
        .head(1)
        .rows()
    ):
        raise DataError(
            f"dataset {dataset.name!r}: question {query_id!r} is about scope {scope!r}, which has "
            f"no {level}s"
        )
    n_sessions = pl.col("evidence_sessions").list.n_unique().cast(pl.Int32)
    session_group = (
        pl.when(n_sessions >= 4)
        .then(pl.lit("4+"))
        .otherwise(n_sessions.cast(pl.String))
        .alias("evidence_sessions")
    )
    kind_columns = (
        "question_type",
        question_form(),
        asks_for_aggregation(),
        n_sessions.alias("n_evidence_sessions"),
        session_group,
    )
    count_columns = ["n_relevant", "n_docs"]
    if (judged_items["relevance"] > 1).any():
        count_columns.append("grades")
    source_columns = []
    if describe_question_sources_or_empty(dataset.questions):
        source_columns.append(question_source_expr())
    return sized_questions.select(
        "query_id", "scope", *kind_columns, *count_columns, *source_columns
    )


def split_questions_by_column(per_query: pl.DataFrame, by: str) -> dict[str, pl.DataFrame]:
    """Split per-query rows into groups in a readable order.

    ``evidence_sessions`` adds the group of two and more.
    """
    if by == "all":
        return {"all": per_query}
    if by not in per_query.columns:
        raise DataError(
            f"nothing to group by is called {by!r}; there are 'all', {', '.join(per_query.columns)}"
        )
    boolean_names = {}
    if per_query.schema[by] == pl.Boolean:
        boolean_names = {True: "yes", False: "no"}
    groups = {}
    # Rows of a group stay in their order.
    sorted_rows = per_query.sort(by, maintain_order=True)
    for group_rows in sorted_rows.partition_by(by, maintain_order=True):
        group_value = group_rows[by][0]
        groups[boolean_names.get(group_value, str(group_value))] = group_rows
    if by == "form":
        known_forms = [form for form in FORMS if form in groups]
        ordered_forms = dict.fromkeys([*known_forms, *groups])
        groups = {form: groups[form] for form in ordered_forms}
    if by == "evidence_sessions":
        several_sessions = per_query.filter(HAS_SEVERAL_SESSIONS)
        if several_sessions.height:
            groups[MULTI_SESSION] = several_sessions
    return groups


def multi_session_by_and_group(per_query: pl.DataFrame) -> tuple[str, str]:
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


def group_predicates_by_name(per_query: pl.DataFrame) -> dict[str, pl.Expr]:
    """Give the groups of questions that comparisons are made in, as predicates over ``per_query``.

    :returns: all questions, and, where there are any, those with evidence in two or more sessions.
    """
    groups = {ALL_QUESTIONS: pl.lit(True)}
    if per_query.filter(HAS_SEVERAL_SESSIONS).height:
        groups[SEVERAL_SESSIONS] = HAS_SEVERAL_SESSIONS
    return groups


def format_question_count_by_source(questions: pl.DataFrame) -> str:
    """Write how many questions there are, and who wrote them; see
    :func:`memlab.question_source_labels.format_question_count`.

    >>> import polars as pl
    >>> from memlab.evaluate.groups_of_questions import format_question_count_by_source
    >>> asked = pl.DataFrame({"source": ["proposed", "accepted", "accepted"]})
    >>> format_question_count_by_source(asked)
    '3: 1 proposed, 2 accepted'
    """
    return format_question_count(questions.height, describe_question_sources_or_empty(questions))


def add_question_sources_column(means: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Put to means who wrote the questions that they are of; nothing where no source is known.

    :param questions: with ``source``, or all are written; of several rows with one ``query_id``,
        such as the evidence items of a question, one counts.

    >>> import polars as pl
    >>> from memlab.evaluate.groups_of_questions import add_question_sources_column
    >>> asked = pl.DataFrame({"source": ["proposed"]})
    >>> add_question_sources_column(pl.DataFrame({"n": [1]}), asked).columns
    ['n', 'question_sources']
    """
    if "source" not in questions.columns:
        return means
    described = describe_sources_of_items_or_empty(questions)
    return means.with_columns(pl.lit(described).alias(COLUMN))


def describe_sources_of_items_or_empty(evidence_items: pl.DataFrame) -> str:
    """Say who wrote the questions of evidence items; empty where all are written.

    :param evidence_items: rows with ``query_id``, and ``source`` where some are not written.

    >>> import polars as pl
    >>> from memlab.evaluate.groups_of_questions import describe_sources_of_items_or_empty
    >>> items = pl.DataFrame({"query_id": ["a", "a", "b"], "source": ["proposed"] * 2 + [None]})
    >>> describe_sources_of_items_or_empty(items)
    '1 written, 1 proposed'
    """
    if "query_id" in evidence_items.columns:
        evidence_items = evidence_items.unique("query_id")
    return describe_question_sources_or_empty(evidence_items)


def add_source_of_each_unless_all_written(
    question_rows: pl.DataFrame, questions: pl.DataFrame
) -> pl.DataFrame:
    """Put to rows with ``query_id`` who wrote the question, where not all are written.

    >>> import polars as pl
    >>> from memlab.evaluate.groups_of_questions import add_source_of_each_unless_all_written
    >>> asked = pl.DataFrame({"query_id": ["a", "b"], "source": ["proposed", None]})
    >>> rows = pl.DataFrame({"query_id": ["b", "a"]})
    >>> add_source_of_each_unless_all_written(rows, asked)["source"].to_list()
    ['written', 'proposed']
    """
    if not describe_question_sources_or_empty(questions):
        return question_rows
    sources = questions.select("query_id", question_source_expr())
    return question_rows.join(sources, on="query_id", how="left", maintain_order="left")


def keep_multi_session_questions(questions: pl.DataFrame) -> pl.DataFrame:
    """Keep the questions with evidence in two or more sessions, or, where there are none, all that
    have evidence.

    >>> import polars as pl
    >>> from memlab.evaluate.groups_of_questions import keep_multi_session_questions
    >>> where = {"evidence_sessions": [["a"], ["a", "b"]], "evidence": [["1"], ["1", "2"]]}
    >>> questions = pl.DataFrame({"query_id": ["x", "y"], **where})
    >>> keep_multi_session_questions(questions)["query_id"].item()
    'y'
    """
    several = questions.filter(pl.col("evidence_sessions").list.n_unique() >= 2)
    if several.height:
        return several
    return questions.filter(pl.col("evidence").list.len() > 0)


def list_evidence_items(questions: pl.DataFrame) -> pl.DataFrame:
    """Give the evidence of questions, a row an item: ``query_id``, ``turn_id``, and ``source``
    where some questions are not written by a person or a benchmark.

    >>> import polars as pl
    >>> from memlab.evaluate.groups_of_questions import list_evidence_items
    >>> asked = pl.DataFrame({"query_id": ["q1"], "evidence": [["t2", "t1", "t2"]]})
    >>> list_evidence_items(asked).rows()
    [('q1', 't2'), ('q1', 't1')]
    """
    columns = [pl.col("query_id"), pl.col("evidence").list.unique(maintain_order=True)]
    if describe_question_sources_or_empty(questions):
        columns.append(question_source_expr())
    items = questions.select(columns).rename({"evidence": "turn_id"})
    return items.explode("turn_id").drop_nulls("turn_id")
