"""A run measured on a dataset: per-query results, and means by group with intervals, ceiling and
chance.

The ceiling is what a measure could be at best. Without it and chance a recall of 0.9 says little:
sessions of a LoCoMo chat number about twenty-five, so ten drawn blindly already hold 37 % of the
evidence.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from memlab.errors import DataError
from memlab.evaluate.confidence_intervals import (
    INTERVAL_COLUMNS,
    Unit,
    are_columns_binary,
    column_means_or_nan,
    mean_interval_columns,
    scopes_if_they_are_the_unit,
)
from memlab.evaluate.groups_of_questions import (
    MULTI_SESSION,
    grouping_columns_of_questions,
    split_questions_by_column,
)
from memlab.evaluate.printed_tables import BOUNDS, to_notebook_html
from memlab.evaluate.ranking_measures import (
    DEFAULT_MEASURES,
    JudgedRun,
    Measure,
    MeasureLike,
    log_discount,
    longmemeval_discount,
    read_measure,
    read_measures,
    score_queries,
)
from memlab.question_source_labels import COLUMN
from memlab.records import Dataset, Level, Run, qrels
from memlab.records.dataset import describe_question_sources_or_empty
from memlab.registry import measures as registered

YES_NO = ("recall_any", "recall_all")
"""Measures that are 1 or 0 for a question, so that their means are shares of questions."""

GradesByQuery = Sequence[ArrayLike] | None
"""The grades of the evidence items of each query; ``None`` where each is 1."""


def ceiling_of_measure(
    n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike, grades: GradesByQuery = None
) -> np.ndarray:
    """Give the measure of a ranking that returns the evidence, best grades first, and nothing else.

    No ranking reaches more. That of nDCG is 1, whatever the grades are.

    :param n_docs: (q,) documents in the scope of each query.
    :param n_relevant: (q,) evidence items of each query, at least 1.
    :param grades: (q,) the grades of the evidence items of each query; all 1 by default.
    :returns: (q,) values.

    >>> from memlab.evaluate.evaluation_report import ceiling_of_measure
    >>> ceiling_of_measure([600, 600], [4, 20], "recall_all@10").tolist()
    [1.0, 0.0]
    >>> ceiling_of_measure(600, 20, "recall@10").tolist()
    [0.5]
    """
    _, relevant_counts, chosen_measure = _check_and_broadcast_sizes(n_docs, n_relevant, measure)
    query_numbers = np.repeat(np.arange(len(relevant_counts)), relevant_counts)
    item_ranks = 1 + np.arange(len(query_numbers)) - np.searchsorted(query_numbers, query_numbers)
    ones = np.ones(len(query_numbers))
    item_gains = ones
    if grades is not None:
        item_gains = np.concatenate(
            [ones[:0], *_check_and_sort_gains_descending(relevant_counts, grades)]
        )
    # Each item is the only one of its subtopic.
    ideal_items = {
        "query": query_numbers,
        "rank": item_ranks,
        "gain": item_gains,
        "novelty": ones,
        "earlier": 0 * ones,
    }
    return np.asarray(
        registered[chosen_measure.name](
            JudgedRun(relevant_counts, relevant_counts, ideal_items, ideal_items), chosen_measure.k
        ),
        dtype=np.float64,
    )


def chance_of_measure(
    n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike, grades: GradesByQuery = None
) -> np.ndarray:
    """Give the expected value of the measure when the documents of the scope are ranked blindly.

    Draws without replacement (hypergeometric), exact. A document has the mean grade of the scope at
    every place, so the nDCG that is expected is that mean times the sum of the discounts, over the
    gain of the ideal ranking. NaN where the expectation depends on more than counts and grades:
    ``alpha_ndcg``, ``precision_returned``, ``f1``, and measures that others added.

    :param n_docs: (q,) documents in the scope of each query.
    :param n_relevant: (q,) evidence items of each query, from 1 to n_docs.
    :param grades: (q,) the grades of the evidence items of each query; all 1 by default.
    :returns: (q,) values.
    :raises DataError: when a query has no evidence, or more than it has documents.

    >>> from memlab.evaluate.evaluation_report import chance_of_measure
    >>> chance_of_measure([20, 20], [1, 2], "recall@10").tolist()
    [0.5, 0.5]
    >>> chance_of_measure(20, 2, "recall_all@10").round(4).tolist()
    [0.2368]
    >>> chance_of_measure(2, 2, "ndcg@1", [[1, 2]]).tolist()  # 1 or 2 of 2
    [0.75]
    """
    document_counts, relevant_counts, chosen_measure = _check_and_broadcast_sizes(
        n_docs, n_relevant, measure
    )
    if grades is not None and chosen_measure.name == "ndcg":
        query_gains = _check_and_sort_gains_descending(relevant_counts, grades)
        expected_values = [
            _expected_ndcg_by_chance(chosen_measure.k, *size_pair)
            for size_pair in zip(document_counts.tolist(), query_gains, strict=True)
        ]
        return np.array(expected_values, dtype=np.float64)
    distinct_sizes, size_numbers = np.unique(
        np.stack([document_counts, relevant_counts], axis=1), axis=0, return_inverse=True
    )
    return np.array(
        [
            _expected_measure_by_chance_or_nan(chosen_measure, *size_pair)
            for size_pair in distinct_sizes.tolist()
        ],
        dtype=np.float64,
    )[size_numbers.ravel()]


def _check_and_sort_gains_descending(
    n_relevant: np.ndarray, grades: GradesByQuery
) -> list[np.ndarray]:
    """Give the gains of the evidence of each query, the highest first.

    :raises DataError: when a query has another number of grades than of evidence items.
    """
    if grades is None:
        return [np.ones(n_items) for n_items in n_relevant.tolist()]
    query_gains = [
        np.sort(np.asarray(query_grades, dtype=np.float64))[::-1] for query_grades in grades
    ]
    if [query_grades.size for query_grades in query_gains] != n_relevant.tolist():
        raise DataError(
            f"grades are of {[query_grades.size for query_grades in query_gains][:5]} evidence "
            f"items, n_relevant is {n_relevant.tolist()[:5]}; expected a grade for each item"
        )
    return query_gains


def _expected_ndcg_by_chance(k: int | None, n_documents: int, evidence_gains: np.ndarray) -> float:
    """Give the expected nDCG for one query of ``n_documents`` documents.

    :param evidence_gains: of its evidence, the highest first.
    """
    discount = log_discount(np.arange(1, min(k or n_documents, n_documents) + 1))
    ideal_gain = evidence_gains[: discount.size] @ discount[: evidence_gains.size]
    return float(discount.sum() * evidence_gains.sum() / n_documents / ideal_gain)


def _expected_measure_by_chance_or_nan(
    measure: Measure, n_documents: int, n_evidence: int
) -> float:
    """Give the expected value for one query of ``n_documents`` documents, ``n_evidence`` of them
    evidence; NaN without a closed form.
    """
    n_drawn = min(measure.k or n_documents, n_documents)
    if measure.name == "recall":
        return n_drawn / n_documents
    if measure.name == "precision":
        return n_evidence / n_documents * n_drawn / (measure.k or n_documents)
    if measure.name == "recall_all":
        # All m items are among the drawn: the product over i < m of (drawn − i) / (n − i).
        earlier_items = np.arange(n_evidence)
        return float(
            (np.maximum(n_drawn - earlier_items, 0) / (n_documents - earlier_items)).prod()
        )
    drawn_ranks = np.arange(1, n_drawn + 1)
    if measure.name == "ndcg":
        return _expected_ndcg_by_chance(measure.k, n_documents, np.ones(n_evidence))
    if measure.name == "ndcg_longmemeval":
        discount = longmemeval_discount(drawn_ranks)
        return float(
            discount.sum()
            * n_evidence
            / n_documents
            / np.where(drawn_ranks <= n_evidence, discount, 0.0).sum()
        )
    # No evidence among the first r: the product over i < r of (n − m − i) / (n − i).
    all_missed = (
        np.maximum(n_documents - n_evidence - drawn_ranks + 1, 0) / (n_documents - drawn_ranks + 1)
    ).cumprod()
    if measure.name == "recall_any":
        return float(1.0 - all_missed[-1])
    return (
        float((-np.diff(all_missed, prepend=1.0) / drawn_ranks).sum())
        if measure.name == "mrr"
        else np.nan
    )


def _check_and_broadcast_sizes(
    n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike
) -> tuple[np.ndarray, np.ndarray, Measure]:
    both_counts = np.broadcast_arrays(n_docs, n_relevant)
    document_counts = np.atleast_1d(both_counts[0]).astype(np.int64)
    relevant_counts = np.atleast_1d(both_counts[1]).astype(np.int64)
    is_impossible = (relevant_counts < 1) | (relevant_counts > document_counts)
    for query_number in np.flatnonzero(is_impossible)[:1]:
        raise DataError(
            f"query {query_number} has {relevant_counts[query_number]} evidence items among "
            f"{document_counts[query_number]} documents of its scope; expected 1 to "
            f"{document_counts[query_number]}"
        )
    return document_counts, relevant_counts, read_measure(measure)


def are_means_shares_of_questions(measures: Sequence[Measure], values: np.ndarray) -> np.ndarray:
    """Say of each column of values (q, m) whether its mean is a share of questions.

    It is for measures that say yes or no, and for others where these questions, as those with one
    evidence item, have made them so: 0 and 1 occur, and nothing else.
    """
    is_yes_no = np.array([measure.name in YES_NO for measure in measures], dtype=bool)
    is_varied = np.ptp(values, axis=0) > 0 if len(values) else np.zeros(len(is_yes_no), dtype=bool)
    return np.asarray(are_columns_binary(values) & (is_yes_no | is_varied))


_MEANS: dict[str, Any] = {
    "group": pl.String,
    "measure": pl.String,
    "n": pl.Int64,
    "mean": pl.Float64,
    **INTERVAL_COLUMNS,
    **dict.fromkeys(BOUNDS, pl.Float64),
}
"""The columns of :meth:`Report.summary`."""


@dataclass(frozen=True, eq=False)
class Report:
    """Measures of a run on a dataset: a row per question, means, ceiling and chance.

    :param per_query: a row a question with evidence: the columns of
        :func:`~memlab.evaluate.groups_of_questions.grouping_columns_of_questions`, ``n_retrieved``,
        and a column a measure.
    :param provenance: the run's provenance, with ``dataset``, ``fingerprint`` and ``seed``.
    :param seed: of the bootstrap.
    :param unit: what intervals and tests take as independent: ``question``, ``scope``, or ``auto``:
        scopes where there are five or more and one has several questions.
    """

    name: str
    level: Level
    measures: tuple[Measure, ...]
    per_query: pl.DataFrame
    provenance: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    unit: Unit = "auto"
    _means: dict[tuple[str, str], pl.DataFrame] = field(
        default_factory=dict, init=False, repr=False
    )

    def summary(
        self,
        by: str = "all",
        *,
        measures: MeasureLike | Iterable[MeasureLike] | None = None,
        unit: Unit | None = None,
    ) -> pl.DataFrame:
        """Give means with intervals, the ceiling and the level of chance.

        :param by: ``all``, or a column of ``per_query`` such as ``question_type``,
            ``evidence_sessions`` (which adds the group ``≥ 2``), ``form``, ``aggregation`` or
            ``scope``.
        :param measures: some of the report's measures; all by default.
        :param unit: the report's by default, decided for each group by its own questions.
        :returns: ``group``, ``measure``, ``n``, ``mean``, ``low``, ``high``, ``level``, ``unit``,
            ``units``, ``method`` (see :mod:`memlab.evaluate.confidence_intervals`), ``ceiling``,
            ``chance``; null where an interval or a chance level does not exist. Where some
            questions were proposed by a model, ``question_sources`` says how many.
        :raises DataError: when there is no such column or measure.
        """
        measure_names = [str(chosen_measure) for chosen_measure in self.pick(measures)]
        unit = unit or self.unit
        if (by, unit) not in self._means:
            self._means[by, unit] = self._mean_rows_by_group(by, unit)
        means = self._means[by, unit]
        if measures is None:
            return means.clone()
        return means.filter(pl.col("measure").is_in(measure_names))

    def pick(self, measures: MeasureLike | Iterable[MeasureLike] | None) -> tuple[Measure, ...]:
        """Give the named measures, all of them by default; a measure that was not taken is an
        error.
        """
        chosen_measures = self.measures if measures is None else read_measures(measures)
        for missing_measure in set(chosen_measures) - set(self.measures):
            raise DataError(
                f"report {self.name!r} ({self.level}) has no {missing_measure}; it has "
                f"{', '.join(map(str, self.measures))}: name it in measures=, where it is run or "
                "evaluated"
            )
        return chosen_measures

    def _mean_rows_by_group(self, by: str, unit: Unit) -> pl.DataFrame:
        """Give the rows of :meth:`summary`, one a group and measure."""
        schema = dict(_MEANS)
        has_sources = "source" in self.per_query.columns
        if has_sources:
            schema[COLUMN] = pl.String
        # One frame of all: a frame a group takes longer than its numbers.
        columns: dict[str, list[Any]] = {name: [] for name in schema}
        numbered_rows = self.per_query.with_row_index("_row")
        for group, group_rows in split_questions_by_column(numbered_rows, by).items():
            group_columns = self._mean_columns_of_group(group_rows, unit)
            group_columns["group"] = group
            group_columns["n"] = group_rows.height
            if has_sources:
                group_columns[COLUMN] = describe_question_sources_or_empty(group_rows)
            for name, values in group_columns.items():
                if not isinstance(values, list):
                    values = [values] * len(self.measures)
                columns[name] += values
        return pl.DataFrame(columns, schema=schema).fill_nan(None)

    def _mean_columns_of_group(self, group_rows: pl.DataFrame, unit: Unit) -> dict[str, Any]:
        """Give a value a measure over some questions, by the name of the column."""
        row_numbers = group_rows["_row"].to_numpy()
        # By column, as the sum of a column depends on it in its last bits.
        score_matrix = np.asfortranarray(self._score_matrix[row_numbers])
        scopes = scopes_if_they_are_the_unit(group_rows["scope"], unit)
        is_share = are_means_shares_of_questions(self.measures, score_matrix)
        columns: dict[str, Any] = dict(
            mean_interval_columns(score_matrix, scopes=scopes, shares=is_share, seed=self.seed)
        )
        columns["measure"] = [str(own_measure) for own_measure in self.measures]
        columns["mean"] = column_means_or_nan(score_matrix).tolist()
        for bound_name, bound_matrix in self._ceiling_and_chance_matrices.items():
            columns[bound_name] = column_means_or_nan(bound_matrix[row_numbers]).tolist()
        return columns

    @cached_property
    def _score_matrix(self) -> np.ndarray:
        """Give what was measured, (q, m)."""
        columns = [self.per_query[str(own_measure)].to_numpy() for own_measure in self.measures]
        return np.stack(columns, axis=1)

    @cached_property
    def _ceiling_and_chance_matrices(self) -> dict[str, np.ndarray]:
        """Give the ceiling and the chance level of each question, (q, m)."""
        size_columns = self.per_query["n_docs"].to_numpy(), self.per_query["n_relevant"].to_numpy()
        grades: GradesByQuery = None
        if "grades" in self.per_query.columns:
            grades = self.per_query["grades"].to_list()
        bounds = {}
        for bound_name, bound_function in zip(
            BOUNDS, (ceiling_of_measure, chance_of_measure), strict=True
        ):
            columns = [
                bound_function(*size_columns, own_measure, grades) for own_measure in self.measures
            ]
            bounds[bound_name] = np.stack(columns, axis=1)
        return bounds

    def _repr_html_(self) -> str:
        several_sessions = self.summary("evidence_sessions").filter(
            pl.col("group") == MULTI_SESSION
        )
        both_tables = pl.concat(
            [
                self.summary(),
                several_sessions.with_columns(group=pl.lit(f"{MULTI_SESSION} evidence sessions")),
            ]
        )
        count_text = f"{self.per_query.height:,} questions"
        source_text = describe_question_sources_or_empty(self.per_query)
        if source_text:
            count_text += f" ({source_text})"
        heading = f"{self.name}: {count_text}, {self.level}s ranked"
        dataset = html.escape(str(self.provenance.get("dataset", "")))
        return f"<p><b>{html.escape(heading)}</b><br>{dataset}</p>" + to_notebook_html(both_tables)


def evaluate(
    run: Run,
    dataset: Dataset,
    *,
    measures: MeasureLike | Iterable[MeasureLike] | None = None,
    seed: int = 0,
    unit: Unit = "auto",
) -> Report:
    """Evaluate a run on the questions of a dataset.

    Questions without evidence and abstention questions are left out; a question that the run does
    not answer scores 0.

    :param measures: what to measure; :data:`~memlab.evaluate.ranking_measures.DEFAULT_MEASURES` of
        the run's level by default.
    :param seed: of the bootstrap intervals.
    :param unit: see :class:`Report`.
    :returns: a report of no questions where none has evidence.
    :raises DataError: when the run answers none of the dataset's questions, or ranks documents that
        the dataset does not hold.

    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> memlab.evaluate.evaluate(run, data, measures="recall_all@10").summary()["ceiling"].item()
    1.0
    """
    if not isinstance(run, Run) or not isinstance(dataset, Dataset):
        type_names = f"{type(run).__name__} and {type(dataset).__name__}"
        raise DataError(
            f"evaluate takes one run and its dataset, not {type_names}; of several: [evaluate(r, "
            "data) for …]"
        )
    scopes_if_they_are_the_unit([], unit)  # refuses another unit
    chosen_measures = read_measures(DEFAULT_MEASURES[run.level] if measures is None else measures)
    questions = grouping_columns_of_questions(dataset, run.level)
    _raise_if_run_is_of_other_data(run, dataset)
    retrieved_counts = run.frame.group_by("query_id").agg(n_retrieved=pl.len().cast(pl.Int32))
    scores = score_queries(run, qrels(dataset.questions, run.level, dataset.turns), chosen_measures)
    per_query = (
        questions.join(retrieved_counts, on="query_id", how="left", maintain_order="left")
        .with_columns(pl.col("n_retrieved").fill_null(0))
        .join(scores, on="query_id", maintain_order="left")
    )
    run_context = {
        "dataset": dataset.describe(),
        "fingerprint": run.provenance.get("fingerprint") or dataset.fingerprint(),
    }
    run_context |= {"ties": _count_questions_tied_at_cutoff(run), "seed": seed}
    return Report(
        run.name,
        run.level,
        chosen_measures,
        per_query,
        {**run.provenance, **run_context},
        seed,
        unit,
    )


def _count_questions_tied_at_cutoff(run: Run, *, k: int = 10) -> int:
    """Count the questions whose documents at places ``k`` and ``k`` + 1 tie: which is first was
    drawn by lot.
    """
    boundary_rows = run.frame.filter(pl.col("rank").is_in([k, k + 1])).sort(
        "score", descending=True
    )
    score_pairs = (
        boundary_rows.group_by("query_id")
        .agg("score")
        .filter(pl.col("score").list.len() == 2)["score"]
        .to_list()
    )
    # Equal scores stand one float32 step apart in a run.
    return sum(
        bool(np.nextafter(np.float32(higher_score), np.float32(-np.inf)) == np.float32(lower_score))
        for higher_score, lower_score in score_pairs
    )


def _raise_if_run_is_of_other_data(run: Run, dataset: Dataset) -> None:
    """Refuse ids that no question or document has: they would count as wrong answers in silence."""
    known_queries = run.frame.filter(
        pl.col("query_id").is_in(dataset.questions["query_id"].implode())
    )
    documents = dataset.turns["turn_id"] if run.level == "turn" else dataset.sessions["session_id"]
    unknown_ids = known_queries.filter(~pl.col("doc_id").is_in(documents.implode()))[
        "doc_id"
    ].unique(maintain_order=True)
    if run.frame.height and (known_queries.is_empty() or len(unknown_ids)):
        unknown_text = "questions"
        odd_ids = run.frame["query_id"]
        known_ids = dataset.questions["query_id"]
        if len(unknown_ids):
            unknown_text = f"{len(unknown_ids):,} {run.level}s"
            odd_ids = unknown_ids
            known_ids = documents
        raise DataError(
            f"run {run.name!r} names {unknown_text} that {dataset.name!r} does not hold, such as "
            f"{', '.join(map(repr, odd_ids.head(3)))}; its ids look like "
            f"{', '.join(map(repr, known_ids.head(2)))}"
        )
