"""A run measured on a dataset: per-query results, and means by group with intervals, ceiling and chance.

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
    clustering_scopes,
    column_means,
    mean_interval_columns,
    only_zeros_and_ones,
)
from memlab.evaluate.groups import MULTI_SESSION, describe_questions, split_by
from memlab.evaluate.measures import (
    DEFAULT_MEASURES,
    JudgedRun,
    Measure,
    MeasureLike,
    log_discount,
    longmemeval_discount,
    read_measure,
    read_measures,
    score,
)
from memlab.evaluate.tables import BOUNDS, to_notebook_html
from memlab.records import Dataset, Level, Run, qrels
from memlab.records.dataset import describe_sources
from memlab.registry import measures as registered
from memlab.source_labels import COLUMN

YES_NO = ("recall_any", "recall_all")
"""Measures that are 1 or 0 for a question, so that their means are shares of questions."""

Grades = Sequence[ArrayLike] | None
"""The grades of the evidence items of each query; ``None`` where each is 1."""


def ceiling(
    n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike, grades: Grades = None
) -> np.ndarray:
    """Give the measure of a ranking that returns the evidence, best grades first, and nothing else.

    No ranking reaches more. That of nDCG is 1, whatever the grades are.

    :param n_docs: (q,) documents in the scope of each query.
    :param n_relevant: (q,) evidence items of each query, at least 1.
    :param grades: (q,) the grades of the evidence items of each query; all 1 by default.
    :returns: (q,) values.

    >>> from memlab.evaluate.report import ceiling
    >>> ceiling([600, 600], [4, 20], "recall_all@10").tolist(), ceiling(600, 20, "recall@10").tolist()
    ([1.0, 0.0], [0.5])
    """
    _, m, wanted = _read_sizes(n_docs, n_relevant, measure)
    query = np.repeat(np.arange(len(m)), m)
    rank, ones = 1 + np.arange(len(query)) - np.searchsorted(query, query), np.ones(len(query))
    gain = ones
    if grades is not None:
        gain = np.concatenate([ones[:0], *_sorted_gains(m, grades)])
    # Each item is the only one of its subtopic.
    ideal = {"query": query, "rank": rank, "gain": gain, "novelty": ones, "earlier": 0 * ones}
    return np.asarray(
        registered[wanted.name](JudgedRun(m, m, ideal, ideal), wanted.k), dtype=np.float64
    )


def chance(
    n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike, grades: Grades = None
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

    >>> from memlab.evaluate.report import chance
    >>> chance([20, 20], [1, 2], "recall@10").tolist(), chance(20, 2, "recall_all@10").round(4).tolist()
    ([0.5, 0.5], [0.2368])
    >>> chance(2, 2, "ndcg@1", [[1, 2]]).tolist()  # 1 or 2 of 2
    [0.75]
    """
    n, m, wanted = _read_sizes(n_docs, n_relevant, measure)
    if grades is not None and wanted.name == "ndcg":
        gains = _sorted_gains(m, grades)
        graded = [_expected_ndcg(wanted.k, *each) for each in zip(n.tolist(), gains, strict=True)]
        return np.array(graded, dtype=np.float64)
    sizes, back = np.unique(np.stack([n, m], axis=1), axis=0, return_inverse=True)
    return np.array([_expected_value(wanted, *each) for each in sizes.tolist()], dtype=np.float64)[
        back.ravel()
    ]


def _sorted_gains(n_relevant: np.ndarray, grades: Grades) -> list[np.ndarray]:
    """Give the gains of the evidence of each query, the highest first.

    :raises DataError: when a query has another number of grades than of evidence items.
    """
    if grades is None:
        return [np.ones(m) for m in n_relevant.tolist()]
    gains = [np.sort(np.asarray(each, dtype=np.float64))[::-1] for each in grades]
    if [each.size for each in gains] != n_relevant.tolist():
        raise DataError(
            f"grades are of {[each.size for each in gains][:5]} evidence items, n_relevant is "
            f"{n_relevant.tolist()[:5]}; expected a grade for each item"
        )
    return gains


def _expected_ndcg(k: int | None, n: int, gains: np.ndarray) -> float:
    """Give the expected nDCG for one query of ``n`` documents.

    :param gains: of its evidence, the highest first.
    """
    discount = log_discount(np.arange(1, min(k or n, n) + 1))
    best = gains[: discount.size] @ discount[: gains.size]
    return float(discount.sum() * gains.sum() / n / best)


def _expected_value(wanted: Measure, n: int, m: int) -> float:
    """Give the expected value for one query of ``n`` documents, ``m`` of them evidence; NaN without a closed form."""
    drawn = min(wanted.k or n, n)
    if wanted.name == "recall":
        return drawn / n
    if wanted.name == "precision":
        return m / n * drawn / (wanted.k or n)
    if wanted.name == "recall_all":
        # All m items are among the drawn: the product over i < m of (drawn − i) / (n − i).
        i = np.arange(m)
        return float((np.maximum(drawn - i, 0) / (n - i)).prod())
    rank = np.arange(1, drawn + 1)
    if wanted.name == "ndcg":
        return _expected_ndcg(wanted.k, n, np.ones(m))
    if wanted.name == "ndcg_longmemeval":
        discount = longmemeval_discount(rank)
        return float(discount.sum() * m / n / np.where(rank <= m, discount, 0.0).sum())
    # No evidence among the first r: the product over i < r of (n − m − i) / (n − i).
    missed = (np.maximum(n - m - rank + 1, 0) / (n - rank + 1)).cumprod()
    if wanted.name == "recall_any":
        return float(1.0 - missed[-1])
    return float((-np.diff(missed, prepend=1.0) / rank).sum()) if wanted.name == "mrr" else np.nan


def _read_sizes(
    n_docs: ArrayLike, n_relevant: ArrayLike, measure: MeasureLike
) -> tuple[np.ndarray, np.ndarray, Measure]:
    n, m = (
        np.atleast_1d(each).astype(np.int64) for each in np.broadcast_arrays(n_docs, n_relevant)
    )
    for at in np.flatnonzero((m < 1) | (m > n))[:1]:
        raise DataError(
            f"query {at} has {m[at]} evidence items among {n[at]} documents of its scope; expected 1 to {n[at]}"
        )
    return n, m, read_measure(measure)


def are_shares(measures: Sequence[Measure], values: np.ndarray) -> np.ndarray:
    """Say of each column of values (q, m) whether its mean is a share of questions.

    It is for measures that say yes or no, and for others where these questions, as those with one
    evidence item, have made them so: 0 and 1 occur, and nothing else.
    """
    named = np.array([measure.name in YES_NO for measure in measures], dtype=bool)
    varied = np.ptp(values, axis=0) > 0 if len(values) else np.zeros(len(named), dtype=bool)
    return np.asarray(only_zeros_and_ones(values) & (named | varied))


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
        :func:`~memlab.evaluate.groups.describe_questions`, ``n_retrieved``, and a column a measure.
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
        wanted = [str(m) for m in self.pick(measures)]
        unit = unit or self.unit
        if (by, unit) not in self._means:
            self._means[by, unit] = self._group_means(by, unit)
        means = self._means[by, unit]
        if measures is None:
            return means.clone()
        return means.filter(pl.col("measure").is_in(wanted))

    def pick(self, measures: MeasureLike | Iterable[MeasureLike] | None) -> tuple[Measure, ...]:
        """Give the named measures, all of them by default; a measure that was not taken is an error."""
        wanted = self.measures if measures is None else read_measures(measures)
        for missing in set(wanted) - set(self.measures):
            raise DataError(
                f"report {self.name!r} ({self.level}) has no {missing}; it has {', '.join(map(str, self.measures))}: "
                "name it in measures=, where it is run or evaluated"
            )
        return wanted

    def _group_means(self, by: str, unit: Unit) -> pl.DataFrame:
        """Give the rows of :meth:`summary`, one a group and measure."""
        schema = dict(_MEANS)
        by_source = "source" in self.per_query.columns
        if by_source:
            schema[COLUMN] = pl.String
        # One frame of all: a frame a group takes longer than its numbers.
        columns: dict[str, list[Any]] = {name: [] for name in schema}
        for group, part in split_by(self.per_query.with_row_index("_row"), by).items():
            rows = self._group_columns(part, unit) | {"group": group, "n": part.height}
            if by_source:
                rows[COLUMN] = describe_sources(part)
            for name, values in rows.items():
                if not isinstance(values, list):
                    values = [values] * len(self.measures)
                columns[name] += values
        return pl.DataFrame(columns, schema=schema).fill_nan(None)

    def _group_columns(self, part: pl.DataFrame, unit: Unit) -> dict[str, Any]:
        """Give a value a measure over some questions, by the name of the column."""
        asked = part["_row"].to_numpy()
        # By column, as the sum of a column depends on it in its last bits.
        values = np.asfortranarray(self._values[asked])
        scopes = clustering_scopes(part["scope"], unit)
        shares = are_shares(self.measures, values)
        columns: dict[str, Any] = dict(
            mean_interval_columns(values, scopes=scopes, shares=shares, seed=self.seed)
        )
        columns["measure"] = [str(measure) for measure in self.measures]
        columns["mean"] = column_means(values).tolist()
        for name, bounds in self._bounds.items():
            columns[name] = column_means(bounds[asked]).tolist()
        return columns

    @cached_property
    def _values(self) -> np.ndarray:
        """Give what was measured, (q, m)."""
        columns = [self.per_query[str(measure)].to_numpy() for measure in self.measures]
        return np.stack(columns, axis=1)

    @cached_property
    def _bounds(self) -> dict[str, np.ndarray]:
        """Give the ceiling and the chance level of each question, (q, m)."""
        asked = self.per_query["n_docs"].to_numpy(), self.per_query["n_relevant"].to_numpy()
        grades: Grades = None
        if "grades" in self.per_query.columns:
            grades = self.per_query["grades"].to_list()
        bounds = {}
        for name, of in zip(BOUNDS, (ceiling, chance), strict=True):
            columns = [of(*asked, measure, grades) for measure in self.measures]
            bounds[name] = np.stack(columns, axis=1)
        return bounds

    def _repr_html_(self) -> str:
        several = self.summary("evidence_sessions").filter(pl.col("group") == MULTI_SESSION)
        table = pl.concat(
            [
                self.summary(),
                several.with_columns(group=pl.lit(f"{MULTI_SESSION} evidence sessions")),
            ]
        )
        asked = f"{self.per_query.height:,} questions"
        sources = describe_sources(self.per_query)
        if sources:
            asked += f" ({sources})"
        title = f"{self.name}: {asked}, {self.level}s ranked"
        dataset = html.escape(str(self.provenance.get("dataset", "")))
        return f"<p><b>{html.escape(title)}</b><br>{dataset}</p>" + to_notebook_html(table)


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

    :param measures: what to measure; :data:`~memlab.evaluate.measures.DEFAULT_MEASURES` of the
        run's level by default.
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
        given = f"{type(run).__name__} and {type(dataset).__name__}"
        raise DataError(
            f"evaluate takes one run and its dataset, not {given}; of several: [evaluate(r, data) for …]"
        )
    clustering_scopes([], unit)  # refuses another unit
    wanted = read_measures(DEFAULT_MEASURES[run.level] if measures is None else measures)
    questions = describe_questions(dataset, run.level)
    _check_ids(run, dataset)
    retrieved = run.frame.group_by("query_id").agg(n_retrieved=pl.len().cast(pl.Int32))
    scores = score(run, qrels(dataset.questions, run.level, dataset.turns), wanted)
    per_query = (
        questions.join(retrieved, on="query_id", how="left", maintain_order="left")
        .with_columns(pl.col("n_retrieved").fill_null(0))
        .join(scores, on="query_id", maintain_order="left")
    )
    about = {
        "dataset": dataset.describe(),
        "fingerprint": run.provenance.get("fingerprint") or dataset.fingerprint(),
    }
    about |= {"ties": _count_ties(run), "seed": seed}
    return Report(run.name, run.level, wanted, per_query, {**run.provenance, **about}, seed, unit)


def _count_ties(run: Run, *, k: int = 10) -> int:
    """Count the questions whose documents at places ``k`` and ``k`` + 1 tie: which is first was drawn by lot."""
    at = run.frame.filter(pl.col("rank").is_in([k, k + 1])).sort("score", descending=True)
    pairs = (
        at.group_by("query_id")
        .agg("score")
        .filter(pl.col("score").list.len() == 2)["score"]
        .to_list()
    )
    # Equal scores stand one float32 step apart in a run.
    return sum(
        bool(np.nextafter(np.float32(high), np.float32(-np.inf)) == np.float32(low))
        for high, low in pairs
    )


def _check_ids(run: Run, dataset: Dataset) -> None:
    """Refuse ids that no question or document has: they would count as wrong answers in silence."""
    answers = run.frame.filter(pl.col("query_id").is_in(dataset.questions["query_id"].implode()))
    documents = dataset.turns["turn_id"] if run.level == "turn" else dataset.sessions["session_id"]
    unknown = answers.filter(~pl.col("doc_id").is_in(documents.implode()))["doc_id"].unique(
        maintain_order=True
    )
    if run.frame.height and (answers.is_empty() or len(unknown)):
        what = f"{len(unknown):,} {run.level}s" if len(unknown) else "questions"
        known, odd = (
            (documents, unknown)
            if len(unknown)
            else (dataset.questions["query_id"], run.frame["query_id"])
        )
        raise DataError(
            f"run {run.name!r} names {what} that {dataset.name!r} does not hold, such as "
            f"{', '.join(map(repr, odd.head(3)))}; its ids look like {', '.join(map(repr, known.head(2)))}"
        )
