"""Ranking measures over a whole run at once.

A measure is a small value, like those of ``ir_measures``: ``measure("recall_all@10")``. Another one
is a function of what was judged and a cutoff, under ``@memlab.measures.register``:
``def all_but_one(judged, k)`` gives ``(judged.total(k) >= judged.n_relevant - 1).astype(float)``,
and ``"all_but_one@10"`` is then a measure.

Evidence is what has a grade of 1 or more. Every measure but ``ndcg`` counts evidence, whatever its
grade; for ``ndcg`` the grade is the gain.

====================  =============================================================================
recall_any            1 where any evidence item is among the first k (success@k)
recall_all            1 where every evidence item is among the first k
recall                share of the evidence among the first k
precision             share of the first k that is evidence, whether so many were returned or not
precision_returned    share of what was returned, up to k, that is evidence: it rewards a stage that
                      returns less
f1                    harmonic mean of precision_returned and recall
ndcg                  normalised discounted cumulative gain, discount log2(rank + 1), gain = grade,
                      as in trec_eval
ndcg_longmemeval      the same with LongMemEval's discount: 1, 1, log2(3), log2(4) …, binary gain
mrr                   1 / rank of the first evidence item
alpha_ndcg            ndcg with binary gain, halved for each earlier hit of the same session
                      (alpha = 0.5)
====================  =============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Level, Qrels, Run
from memlab.registry import measures as registered

ALPHA = 0.5


@dataclass(frozen=True, slots=True, repr=False)
class Measure:
    """One of ``memlab.measures`` and the depth ``k`` that it looks to.

    ``None`` reads the whole ranking.

    :raises DataError: when the name is unknown, or k is not a positive whole number.

    >>> from memlab.evaluate import Measure
    >>> Measure("recall_all", 10)
    recall_all@10
    """

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        if self.name not in registered:
            raise DataError(
                f"no measure is called {self.name!r}; there are {', '.join(registered)}"
            )
        if self.k is not None and (
            isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1
        ):
            raise DataError(
                f"the cutoff of {self.name} is {self.k!r}; expected a whole number from 1, or None"
            )

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    __repr__ = __str__


MeasureLike = str | Measure
"""A measure, or its name in tables."""


def read_measure(text: MeasureLike) -> Measure:
    """Read a measure as it is written in tables: ``recall_all@10``, ``mrr``.

    :raises DataError: when the text is not ``name`` or ``name@k``.

    >>> from memlab.evaluate import read_measure
    >>> read_measure("ndcg@5").k
    5
    """
    if isinstance(text, Measure):
        return text
    name_and_cutoff = re.fullmatch(r"\s*(\w+)\s*(?:@\s*(\d+)\s*)?", text)
    if name_and_cutoff is None:
        raise DataError(
            f"{text!r} is no measure; expected a name, and a cutoff where it has one: "
            "'recall_all@10'"
        )
    return Measure(name_and_cutoff[1], int(name_and_cutoff[2]) if name_and_cutoff[2] else None)


def read_measures(measures: MeasureLike | Iterable[MeasureLike]) -> tuple[Measure, ...]:
    """Read one or more measures; one that is named twice is kept once."""
    measure_list = [measures] if isinstance(measures, MeasureLike) else measures
    return tuple(dict.fromkeys(read_measure(measure_like) for measure_like in measure_list))


@dataclass(frozen=True)
class JudgedRun:
    """A run seen through its qrels; queries are numbered from 0.

    :param n_relevant: (q,) evidence items of each query; ``n_retrieved``: documents that the run
        has for it.
    :param hits: (h,) arrays over the retrieved evidence: ``query``, ``rank``, ``gain``, and
        ``earlier``, how many hits of the same query and subtopic rank better.
    :param ideal: (j,) arrays over all evidence, as an ideal run has it: ``query``, ``rank``,
        ``gain``, ``novelty``.
    """

    n_relevant: np.ndarray
    n_retrieved: np.ndarray
    hits: Mapping[str, np.ndarray]
    ideal: Mapping[str, np.ndarray]

    def total(self, k: int | None, values: np.ndarray | float = 1.0) -> np.ndarray:
        """Sum a value of each hit among the first k, for each query."""
        return self._sum_by_query(self.hits, values, k)

    def returned(self, k: int | None) -> np.ndarray:
        """Count the documents that were returned, up to k, for each query."""
        return self.n_retrieved if k is None else np.minimum(self.n_retrieved, k)

    def normalised(
        self, k: int | None, gains: np.ndarray, ideal: np.ndarray, discount: Discount
    ) -> np.ndarray:
        """Give discounted gain as a share of the best that any ranking could reach at k."""
        ideal_gain = self._sum_by_query(self.ideal, ideal * discount(self.ideal["rank"]), k)
        return self.total(k, gains * discount(self.hits["rank"])) / ideal_gain

    def _sum_by_query(
        self,
        hits_or_ideal_items: Mapping[str, np.ndarray],
        values_of_items: np.ndarray | float,
        k: int | None,
    ) -> np.ndarray:
        weights = np.broadcast_to(values_of_items, hits_or_ideal_items["query"].shape)
        is_within = slice(None) if k is None else hits_or_ideal_items["rank"] <= k
        query_sums = np.bincount(
            hits_or_ideal_items["query"][is_within],
            weights=weights[is_within],
            minlength=len(self.n_relevant),
        )
        return query_sums.astype(np.float64)


Discount = Callable[[np.ndarray], np.ndarray]


def log_discount(ranks: np.ndarray) -> np.ndarray:
    """Weigh a rank as Järvelin & Kekäläinen's successors do: 1 / log2(rank + 1)."""
    return 1.0 / np.log2(ranks + 1.0)


def longmemeval_discount(ranks: np.ndarray) -> np.ndarray:
    """Weigh a rank as LongMemEval's evaluation code does: 1 for ranks 1 and 2, then 1 / log2(rank).

    Source: LongMemEval (ICLR 2025), ``src/retrieval/eval_utils.py``, ``dcg``.
    """
    return 1.0 / np.maximum(1.0, np.log2(ranks))


@registered.register
def recall_any(judged: JudgedRun, k: int | None) -> np.ndarray:
    return (judged.total(k) > 0).astype(np.float64)


@registered.register
def recall_all(judged: JudgedRun, k: int | None) -> np.ndarray:
    return (judged.total(k) == judged.n_relevant).astype(np.float64)


@registered.register
def recall(judged: JudgedRun, k: int | None) -> np.ndarray:
    return judged.total(k) / judged.n_relevant


@registered.register
def precision(judged: JudgedRun, k: int | None) -> np.ndarray:
    if k is None:
        raise DataError("precision needs a cutoff; write precision@10")
    return judged.total(k) / k


@registered.register
def precision_returned(judged: JudgedRun, k: int | None) -> np.ndarray:
    return judged.total(k) / np.maximum(judged.returned(k), 1)


@registered.register
def f1(judged: JudgedRun, k: int | None) -> np.ndarray:
    return 2 * judged.total(k) / (judged.returned(k) + judged.n_relevant)


@registered.register
def ndcg(judged: JudgedRun, k: int | None) -> np.ndarray:
    # Järvelin & Kekäläinen, TOIS 2002; linear gain as in trec_eval's m_ndcg.c.
    return judged.normalised(k, judged.hits["gain"], judged.ideal["gain"], log_discount)


@registered.register
def ndcg_longmemeval(judged: JudgedRun, k: int | None) -> np.ndarray:
    hit_gains, ideal_gains = (np.ones(len(items["rank"])) for items in (judged.hits, judged.ideal))
    return judged.normalised(k, hit_gains, ideal_gains, longmemeval_discount)


@registered.register
def mrr(judged: JudgedRun, k: int | None) -> np.ndarray:
    first_rank = np.full(len(judged.n_relevant), np.inf)
    np.minimum.at(first_rank, judged.hits["query"], judged.hits["rank"])
    return np.where(first_rank <= (np.inf if k is None else k), 1.0 / first_rank, 0.0)


@registered.register
def alpha_ndcg(judged: JudgedRun, k: int | None) -> np.ndarray:
    return judged.normalised(
        k, (1 - ALPHA) ** judged.hits["earlier"], judged.ideal["novelty"], log_discount
    )


_TURN_MEASURES = (
    "recall_any@10 recall@10 recall_all@5 recall_all@10 recall_all@20 ndcg@10 mrr alpha_ndcg@10"
)
_SESSION_MEASURES = (
    "recall_any@5 recall@10 recall_all@5 recall_all@10 ndcg@10 ndcg_longmemeval@10 mrr"
)
DEFAULT_MEASURES: dict[Level, tuple[Measure, ...]] = {
    "turn": read_measures(_TURN_MEASURES.split()),
    "session": read_measures(_SESSION_MEASURES.split()),
}


def score_queries(
    run: Run, qrels: Qrels, measures: MeasureLike | Iterable[MeasureLike]
) -> pl.DataFrame:
    """Score each query that has evidence.

    A query with evidence that the run leaves out scores 0; a query of the run without evidence is
    left out, since nothing can be measured there. Documents without a judgement count as
    irrelevant.

    :returns: one row a query in the order of the qrels: ``query_id`` and a Float64 column a
        measure.
    :raises DataError: when the levels differ, a document is ranked or judged twice for a query, the
        ranks of a query are not 1 … n, or a measure gives something else than a finite number a
        query.

    >>> import polars as pl
    >>> from memlab.evaluate.ranking_measures import score_queries
    >>> from memlab.records import Qrels, Run
    >>> ranked = {"doc_id": ["s/1", "s/2"], "rank": [1, 2], "score": [2.0, 1.0]}
    >>> judged = {"doc_id": ["s/2", "s/9"], "relevance": 1, "subtopic": "s"}
    >>> run = Run(pl.DataFrame({"query_id": ["q"] * 2, **ranked}), "turn")
    >>> qrels = Qrels(pl.DataFrame({"query_id": ["q"] * 2, **judged}), "turn")
    >>> score_queries(run, qrels, ["recall_any@2", "recall_all@2", "mrr"]).row(0)
    ('q', 1.0, 0.0, 0.5)
    """
    if run.level != qrels.level:
        raise DataError(
            f"run {run.name!r} ranks {run.level}s and the qrels judge {qrels.level}s; read both at "
            "one level"
        )
    queries, judged = _check_ranks_and_make_judged_run(run, qrels)
    scores: dict[str, pl.Series] = {}
    for chosen_measure in read_measures(measures):
        query_values = np.asarray(
            registered[chosen_measure.name](judged, chosen_measure.k), dtype=np.float64
        )
        if query_values.shape != judged.n_relevant.shape or not np.isfinite(query_values).all():
            raise DataError(
                f"measure {chosen_measure} gave an array of {query_values.shape}, or what is no "
                f"number, for {len(judged.n_relevant)} queries; expected a finite number a query, "
                "as judged.n_relevant has"
            )
        scores[str(chosen_measure)] = pl.Series(query_values)
    return queries.select("query_id").with_columns(**scores)


def _check_ranks_and_make_judged_run(run: Run, qrels: Qrels) -> tuple[pl.DataFrame, JudgedRun]:
    relevant_items = qrels.frame.filter(pl.col("relevance") > 0)
    query_rows = (
        relevant_items.select("query_id").unique(maintain_order=True).with_row_index("query")
    )
    relevant_items = relevant_items.join(query_rows, on="query_id", maintain_order="left")
    ranked_documents = run.frame.select("query_id", "doc_id", "rank").join(
        query_rows, on="query_id"
    )
    _raise_if_ranks_are_faulty(ranked_documents, f"run {run.name!r} ranks")
    _raise_if_ranks_are_faulty(
        relevant_items.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query")),
        "the qrels judge",
    )
    row_number = pl.int_range(pl.len())
    grade_as_gain = pl.col("relevance").cast(pl.Float64)
    novelty = (1 - ALPHA) ** row_number.over("query", "subtopic").cast(pl.Float64)
    ideal_rows = relevant_items.with_columns(novelty=novelty).select(
        "query",
        rank=1 + row_number.over("query"),
        gain=grade_as_gain.sort(descending=True).over("query"),
        novelty=pl.col("novelty").sort(descending=True).over("query"),
    )
    hit_rows = ranked_documents.join(
        relevant_items.select("query", "doc_id", "relevance", "subtopic"),
        on=["query", "doc_id"],
        maintain_order="left_right",
    )
    hit_rows = hit_rows.sort("query", "rank").select(
        "query",
        "rank",
        gain=grade_as_gain,
        earlier=row_number.over("query", "subtopic").cast(pl.Float64),
    )
    return query_rows, JudgedRun(
        n_relevant=np.bincount(ideal_rows["query"].to_numpy(), minlength=query_rows.height),
        n_retrieved=np.bincount(ranked_documents["query"].to_numpy(), minlength=query_rows.height),
        hits={column.name: column.to_numpy() for column in hit_rows},
        ideal={column.name: column.to_numpy() for column in ideal_rows},
    )


def _raise_if_ranks_are_faulty(ranked_rows: pl.DataFrame, error_subject: str) -> None:
    """Refuse what would be scored wrongly: a document twice for a query, or ranks that are not 1 …
    n.
    """
    rank_column = pl.col("rank")
    n_rows = pl.len()
    ranks_by_query = ranked_rows.group_by("query_id").agg(
        n=n_rows,
        last=rank_column.max(),
        wrong=(rank_column.min() != 1)
        | (rank_column.max() != n_rows)
        | (rank_column.n_unique() < n_rows),
        twice=pl.col("doc_id").filter(pl.col("doc_id").is_duplicated()).first(),
    )
    faulty_queries = ranks_by_query.filter(pl.col("wrong") | pl.col("twice").is_not_null()).sort(
        "query_id"
    )
    for query_id, n_docs, last_rank, _, twice_ranked in faulty_queries.head(1).rows():
        fault_text = (
            f"document {twice_ranked!r} twice"
            if twice_ranked
            else f"{n_docs} documents up to rank {last_rank}"
        )
        raise DataError(
            f"{error_subject} {fault_text} for query {query_id!r}; expected each once, with ranks "
            f"from 1 to {n_docs}"
        )


def kendall_tau(stated: Sequence[Hashable], reference: Sequence[Hashable]) -> float:
    """Give Kendall's tau-b of a stated order of events against the right one: 1 for the same, −1
    for the reverse.

    Items of the reference that are not stated tie behind all that are; what is stated beyond it is
    left out. Nothing stated, or one item of several, says nothing of the order: 0.

    :param reference: at least two distinct items, the first event first.
    :raises DataError: when the reference has fewer, or an item stands twice.

    Source: Kendall, Biometrika 1945 (ties); BEAM (2025) judges its event orders so.

    >>> from memlab.evaluate import kendall_tau
    >>> swapped = kendall_tau(["c", "b", "a"], ["a", "b", "c"])
    >>> swapped, round(kendall_tau(["a", "c"], ["a", "b", "c", "d"]), 3)
    (-1.0, 0.548)
    """
    from scipy.stats import kendalltau

    if len(reference) < 2 or any(len(set(order)) < len(order) for order in (stated, reference)):
        raise DataError(
            f"orders are {[*stated]} and {[*reference]}; expected two items or more, each once"
        )
    stated_places = {
        item: position for position, item in enumerate(stated) if item in set(reference)
    }
    if len(stated_places) < 2:
        return 0.0
    places_of_reference = [stated_places.get(item, len(stated)) for item in reference]
    return float(kendalltau(places_of_reference, range(len(places_of_reference))).statistic)
