"""Rankings and what they are measured against."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records.dataset import convert_to_polars

Level = Literal["turn", "session"]
LEVELS: tuple[Level, ...] = ("turn", "session")


@dataclass(frozen=True, eq=False)
class Qrels:
    """Relevance judgements: the evidence of each question.

    :param frame: ``query_id``, ``doc_id``, ``relevance`` (Int32, the grade: from 1 for evidence, 0
        or less for what was judged and is none), ``subtopic`` (the session that the evidence
        belongs to; what alpha-nDCG counts as one aspect).
    """

    frame: pl.DataFrame
    level: Level

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", convert_to_polars(self.frame, "qrels", _QRELS_COLUMNS))
        _check_level(self.level)


def _check_level(level: object) -> None:
    if not isinstance(level, str) or level not in LEVELS:
        raise DataError(f"level is {level!r}; choose {' or '.join(LEVELS)}")


_QRELS_COLUMNS = ("query_id", "doc_id", "relevance", "subtopic")


def session_id_expr(turn: str, turns: pl.DataFrame | None) -> pl.Expr:
    """Give the session of a column of turn ids; without the turns, as benchmarks' ids name it."""
    if turns is None:
        return pl.col(turn).str.replace(r"/[^/]*$", "")
    sessions = turns.select("turn_id", "session_id").unique("turn_id")
    return pl.col(turn).replace_strict(sessions["turn_id"], sessions["session_id"], default=None)


def qrels(
    questions: pl.DataFrame,
    level: Level,
    turns: pl.DataFrame | None = None,
    *,
    rejected: bool = False,
) -> Qrels:
    """Make relevance judgements from questions: a row an evidence item, none for abstention.

    Relevance is the grade of the turn, 1 where none was given. That of a session is the highest of
    its turns.

    :param turns: say which session a turn is of; without them its id does, as in the layouts of the
        benchmarks.
    :param rejected: whether what was judged and found not to be relevant has rows too, with its
        grade of 0 or less, after the evidence. Measures do not need them; files of qrels keep them.

    >>> import polars as pl
    >>> from memlab.records import Question, frame, qrels
    >>> graded = {"judged": ["u/s/1", "u/s/2", "u/t/1"], "grades": [1, 2, 0]}
    >>> evidence = ["u/s/1", "u/s/2"]
    >>> asked = Question("q", "u", "?", None, "t", None, evidence, ["u/s"], **graded)
    >>> asked = frame(Question, [asked])
    >>> qrels(asked, "turn", rejected=True).frame["relevance"].to_list()
    [1, 2, 0]
    >>> qrels(asked, "session").frame.row(0)
    ('q', 'u/s', 2, 'u/s')
    """
    evidence_column = {"turn": "evidence", "session": "evidence_sessions"}[level]
    answerable_questions = questions.filter(~pl.col("abstention"))
    evidence_rows = (
        answerable_questions.select(
            "query_id", doc_id=pl.col(evidence_column).list.unique(maintain_order=True)
        )
        .explode("doc_id")
        .drop_nulls("doc_id")
    )
    graded_rows = _grades_of_judged_documents(answerable_questions, level, turns)
    relevance = pl.col("grade").fill_null(1).alias("relevance")
    relevance_rows = evidence_rows.join(graded_rows, on=_PAIR, how="left", maintain_order="left")
    if rejected:
        rejected_rows = graded_rows.filter(pl.col("grade") < 1).join(
            evidence_rows, on=_PAIR, how="anti"
        )
        relevance_rows = pl.concat([relevance_rows, rejected_rows])
    session_ids = pl.col("doc_id") if level == "session" else session_id_expr("doc_id", turns)
    return Qrels(relevance_rows.select(*_PAIR, relevance).with_columns(subtopic=session_ids), level)


_PAIR = ("query_id", "doc_id")


def _grades_of_judged_documents(
    question_rows: pl.DataFrame, level: Level, turns: pl.DataFrame | None
) -> pl.DataFrame:
    """Give the grade of each document that was judged, in the order of the questions.

    :returns: ``query_id``, ``doc_id``, ``grade``.
    """
    if "grades" not in question_rows.columns:
        column_types = {"query_id": pl.String(), "doc_id": pl.String(), "grade": pl.Int32()}
        return pl.DataFrame(schema=column_types)
    judged_rows = question_rows.select("query_id", doc_id="judged", grade="grades")
    graded_rows = judged_rows.explode("doc_id", "grade").drop_nulls("doc_id")
    if level == "session":
        graded_rows = graded_rows.with_columns(doc_id=session_id_expr("doc_id", turns))
    return graded_rows.group_by(_PAIR, maintain_order=True).agg(pl.col("grade").max())


RUN_SCHEMA: dict[str, Any] = {
    "query_id": pl.String(),
    "doc_id": pl.String(),
    "rank": pl.Int32(),
    "score": pl.Float64(),
}


@dataclass(frozen=True, eq=False)
class Run:
    """A ranking of documents for each query.

    :param frame: ``query_id``, ``doc_id``, ``rank`` (from 1), ``score`` (strictly decreasing within
        a query), in that order of rows.
    :param name: how the run is called in tables and files, usually the pipeline's text.
    :param provenance: what the run came from: pipeline, dataset fingerprint, encoder, table
        versions, seeds.
    :param text_of: gives the text of document ids, for showing the run.
    :param evidence: qrels to mark the evidence with when the run is shown; never read by a stage.
    """

    frame: pl.DataFrame
    level: Level
    name: str = "run"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    text_of: Callable[[list[str]], list[str]] | None = field(
        default=None, repr=False, compare=False
    )
    evidence: Qrels | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", convert_to_polars(self.frame, "a run", tuple(RUN_SCHEMA)))
        _check_level(self.level)

    def top(self, k: int) -> Run:
        """Keep the first ``k`` documents of each query."""
        return replace(self, frame=self.frame.filter(pl.col("rank") <= k))

    def _repr_html_(self) -> str:
        shown_rows = self.frame.head(10)
        if self.text_of is not None:
            shown_rows = shown_rows.with_columns(
                text=pl.Series(self.text_of(shown_rows["doc_id"].to_list()), dtype=pl.String)
            )
        if self.evidence is not None:
            evidence_marks = self.evidence.frame.filter(pl.col("relevance") > 0).select(
                "query_id", "doc_id", evidence=pl.lit("✔")
            )
            shown_rows = shown_rows.join(
                evidence_marks, on=["query_id", "doc_id"], how="left", maintain_order="left"
            )
        n_queries = self.frame["query_id"].n_unique()
        title = f"{self.name}: {n_queries:,} queries, {self.frame.height:,} {self.level}s ranked"
        with pl.Config(
            fmt_str_lengths=160, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True
        ):
            return f"<p>{html.escape(title)}</p>{shown_rows._repr_html_()}"


def top_columns(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``k`` best columns of each row, and every column that ties with the last of them.

    :param scores: (q, n).
    :returns: rows and columns, both (m,), rows ascending and columns ascending within a row.
    """
    n_columns = scores.shape[1]
    if k >= n_columns:
        return np.repeat(np.arange(len(scores)), n_columns), np.tile(
            np.arange(n_columns), len(scores)
        )
    threshold = np.partition(scores, n_columns - k, axis=1)[:, n_columns - k, None]
    return np.divmod(np.flatnonzero(scores >= threshold), n_columns)


def run_from_scores(
    query_ids: np.ndarray | pl.Series,
    doc_ids: np.ndarray | pl.Series,
    scores: np.ndarray | pl.Series,
    *,
    level: Level,
    k: int | None = None,
) -> Run:
    """Rank scored (query, document) pairs: best score first, ties as they are given.

    Ties are never broken by id: in some benchmarks an id gives the label away. Equal scores are
    lowered by the smallest float32 step, so that tools that break ties by id read the same order.

    :param query_ids: (n,) ids, as ``doc_ids`` and ``scores``; the order of first appearance stays.
    :param k: how many are kept for each query; all by default.
    :raises DataError: when the lengths differ, a score is not finite, or ``k`` is not positive.

    >>> import numpy as np
    >>> from memlab.records import run_from_scores
    >>> query, document, score = np.array(["q", "q"]), np.array(["b", "a"]), np.array([1.0, 1.0])
    >>> run = run_from_scores(query, document, score, level="turn", k=5)
    >>> run.frame["doc_id"].to_list(), run.frame["score"].is_sorted(descending=True)
    (['b', 'a'], True)
    """
    if not len(query_ids) == len(doc_ids) == len(scores):
        raise DataError(
            f"lengths differ: {len(query_ids)} queries, {len(doc_ids)} documents, "
            f"{len(scores)} scores"
        )
    try:
        scores = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"scores are no numbers ({error})") from error
    if not np.isfinite(scores).all():
        raise DataError(
            f"score {int(np.flatnonzero(~np.isfinite(scores))[0])} is not a finite number"
        )
    if k is not None and k < 1:
        raise DataError(f"k is {k}; a ranking needs at least one place")
    query_series = pl.Series("query_id", query_ids, dtype=pl.String)
    doc_series = pl.Series("doc_id", doc_ids, dtype=pl.String)
    query_numbers = number_by_first_appearance(query_series)
    if not _is_ranked(query_numbers, scores):
        best_first = np.lexsort((-scores, query_numbers))
        query_numbers, scores = query_numbers[best_first], scores[best_first]
        query_series, doc_series = query_series.gather(best_first), doc_series.gather(best_first)
    query_starts = np.searchsorted(query_numbers, np.arange(query_numbers.max(initial=-1) + 1))
    place_in_query = np.arange(len(query_numbers)) - query_starts[query_numbers]
    ranked_rows = pl.DataFrame(
        {
            "query_id": query_series,
            "doc_id": doc_series,
            "rank": place_in_query + 1,
            "score": make_strictly_decreasing(scores, query_numbers),
        },
        schema=RUN_SCHEMA,
    )
    if k is not None and place_in_query.max(initial=0) >= k:
        ranked_rows = ranked_rows.filter(place_in_query < k)
    return Run(ranked_rows, level)


def number_by_first_appearance(ids: pl.Series) -> np.ndarray:
    """Number the different ids, in the order in which they first appear: (n,) int64.

    >>> import polars as pl
    >>> from memlab.records.rankings import number_by_first_appearance
    >>> number_by_first_appearance(pl.Series(["b", "b", "a", "b"])).tolist()
    [0, 0, 1, 0]
    """
    numbers = ids.rle_id().to_numpy().astype(np.int64)
    is_first = np.diff(numbers, prepend=-1) != 0
    different_ids = ids.filter(is_first)
    if different_ids.n_unique() == len(different_ids):
        return numbers
    # Equal ids are no neighbours: they have the number of the first.
    numbered_ids = pl.DataFrame({"id": different_ids}).with_row_index("number")
    first_numbers = numbered_ids.select(pl.col("number").min().over("id")).to_series().to_numpy()
    return np.unique(first_numbers, return_inverse=True)[1][numbers]


def _is_ranked(query_numbers: np.ndarray, scores: np.ndarray) -> bool:
    """Say whether the rows of each query are neighbours already, the best first."""
    number_steps = np.diff(query_numbers)
    is_not_better = scores[1:] <= scores[:-1]
    is_in_order = (number_steps > 0) | ((number_steps == 0) & is_not_better)
    return bool(is_in_order.all())


_LOWEST, _LARGEST = -(2.0**127), float(np.finfo(np.float32).max)


def make_strictly_decreasing(scores: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Lower each score to at least one float32 step below the one before it in its group.

    float32, because trec_eval holds scores so. Floats of one sign order like their bit patterns, so
    "one step lower" is integer arithmetic: y[i] = min over j ≤ i of x[j] − (i − j). Numbers that
    float32 cannot hold are taken as its largest; below −2^127 there is room for eight million more
    steps.

    :param group: (n,) the rows of a group are neighbours.
    """
    float_bits = (
        np.clip(scores, _LOWEST, _LARGEST).astype(np.float32).view(np.int32).astype(np.int64)
    )
    ordered_bits = np.where(float_bits < 0, -(float_bits & 0x7FFFFFFF), float_bits)
    row_places = np.arange(len(ordered_bits))
    # So far apart that no number of a group is below one of the next.
    group_offsets = np.cumsum(np.diff(group, prepend=group[:1]) != 0) << 33
    lowered_bits = (
        np.minimum.accumulate(ordered_bits + row_places - group_offsets)
        + group_offsets
        - row_places
    )
    lowered_float_bits = np.where(
        lowered_bits < 0, -lowered_bits | 0x80000000, lowered_bits
    ).astype(np.uint32)
    return lowered_float_bits.view(np.float32).astype(np.float64)
