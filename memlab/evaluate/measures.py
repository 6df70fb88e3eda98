"""Ranking measures over a whole run at once.

A measure is a small value, like those of ``ir_measures``: ``recall_all @ 10``, or ``measure("recall_all@10")``. Another
is a function of what was judged and a cutoff, under ``@memlab.measures.register``: ``def all_but_one(judged, k)`` gives
``(judged.total(k) >= judged.n_relevant - 1).astype(float)``, and ``"all_but_one@10"`` is then a measure.
:func:`score` joins a run with its qrels once and computes every measure from the few rows that hit, as array
operations over all queries.

====================  ===========================================================================================
recall_any            1 where any evidence item is among the first k (success@k)
recall_all            1 where every evidence item is among the first k
recall                share of the evidence among the first k
precision             share of the first k that is evidence, whether so many were returned or not
precision_returned    share of what was returned, up to k, that is evidence: it rewards a stage that returns less
f1                    harmonic mean of precision_returned and recall
ndcg                  normalised discounted cumulative gain, discount log2(rank + 1), gain = relevance
ndcg_longmemeval      the same with LongMemEval's discount: 1, 1, log2(3), log2(4) …, binary gain
mrr                   1 / rank of the first evidence item
alpha_ndcg            ndcg with a gain halved for each earlier hit of the same session (alpha = 0.5)
====================  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Level, Qrels, Run
from memlab.registry import measures as registered

ALPHA = 0.5


@dataclass(frozen=True, slots=True, repr=False)
class Measure:
    """One of ``memlab.measures`` and the depth ``k`` that it looks to; ``None`` reads the whole ranking.

    :raises DataError: when the name is unknown, or k is not a positive whole number.

    >>> from memlab.evaluate import Measure, recall_all
    >>> recall_all @ 10
    recall_all@10
    >>> recall_all @ 10 == Measure("recall_all", 10)
    True
    """

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        if self.name not in registered:
            raise DataError(f"no measure is called {self.name!r}; there are {', '.join(registered)}")
        if self.k is not None and (isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1):
            raise DataError(f"the cutoff of {self.name} is {self.k!r}; expected a whole number from 1, or None")

    def __matmul__(self, k: int) -> Measure:
        return replace(self, k=k)

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    __repr__ = __str__


def measure(text: str | Measure) -> Measure:
    """Read a measure as it is written in tables: ``recall_all@10``, ``mrr``.

    :raises DataError: when the text is not ``name`` or ``name@k``.

    >>> from memlab.evaluate import measure
    >>> measure("ndcg@5").k
    5
    """
    if isinstance(text, Measure):
        return text
    name, at, cutoff = text.strip().partition("@")
    if at and not cutoff.strip().isdecimal():
        raise DataError(f"measure {text!r} has the cutoff {cutoff!r}; expected a whole number, as in 'recall_all@10'")
    return Measure(name.strip(), int(cutoff) if at else None)


def measures_of(measures: str | Measure | Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Read one or more measures; one that is named twice is kept once."""
    listed = [measures] if isinstance(measures, (str, Measure)) else measures
    return tuple(dict.fromkeys(measure(m) for m in listed))


@dataclass(frozen=True)
class Judged:
    """A run seen through its qrels: the retrieved evidence, and the order an ideal run would have.

    ``hit_*`` are (h,) arrays over retrieved evidence, ``ideal_*`` (j,) arrays over all evidence, in ideal order.
    ``earlier`` counts the better ranked hits of the same query and subtopic; queries are numbered from 0.
    ``n_relevant`` and ``n_retrieved`` are (q,): evidence items, and documents that the run has for the query.
    """

    n_relevant: np.ndarray
    n_retrieved: np.ndarray
    hit_query: np.ndarray
    hit_rank: np.ndarray
    hit_gain: np.ndarray
    hit_earlier: np.ndarray
    ideal_query: np.ndarray
    ideal_rank: np.ndarray
    ideal_gain: np.ndarray
    ideal_novelty: np.ndarray

    def total(self, k: int | None, values: np.ndarray | float = 1.0) -> np.ndarray:
        """Sum a value of each hit among the first k, for each query."""
        return _sum(self.hit_query, self.hit_rank, values, k, len(self.n_relevant))

    def normalised(self, k: int | None, gains: np.ndarray, ideal: np.ndarray, discount: Discount) -> np.ndarray:
        """Give discounted gain as a share of the best that any ranking could reach at k."""
        best = _sum(self.ideal_query, self.ideal_rank, ideal * discount(self.ideal_rank), k, len(self.n_relevant))
        return self.total(k, gains * discount(self.hit_rank)) / best


def _sum(query: np.ndarray, rank: np.ndarray, values: np.ndarray | float, k: int | None, n: int) -> np.ndarray:
    weights = np.broadcast_to(values, query.shape)
    if k is not None:
        query, weights = query[rank <= k], weights[rank <= k]
    return np.bincount(query, weights=weights, minlength=n).astype(np.float64)


Discount = Callable[[np.ndarray], np.ndarray]


def log_discount(rank: np.ndarray) -> np.ndarray:
    """Weigh a rank as Järvelin & Kekäläinen's successors do: 1 / log2(rank + 1)."""
    return 1.0 / np.log2(rank + 1.0)


def longmemeval_discount(rank: np.ndarray) -> np.ndarray:
    """Weigh a rank as LongMemEval's evaluation code does: 1 for ranks 1 and 2, then 1 / log2(rank).

    Source: LongMemEval (ICLR 2025), ``src/retrieval/eval_utils.py``, ``dcg``.
    """
    return 1.0 / np.maximum(1.0, np.log2(rank))


def _own(function: Callable[[Judged, int | None], np.ndarray]) -> Measure:
    """Register one of memlab's own measures; its name is then the measure, as in ``recall_all @ 10``."""
    registered.register(function)
    return Measure(function.__name__)


@_own
def recall_any(judged: Judged, k: int | None) -> np.ndarray:
    return (judged.total(k) > 0).astype(np.float64)


@_own
def recall_all(judged: Judged, k: int | None) -> np.ndarray:
    return (judged.total(k) == judged.n_relevant).astype(np.float64)


@_own
def recall(judged: Judged, k: int | None) -> np.ndarray:
    return judged.total(k) / judged.n_relevant


@_own
def precision(judged: Judged, k: int | None) -> np.ndarray:
    if k is None:
        raise DataError("precision needs a cutoff; write precision@10")
    return judged.total(k) / k


@_own
def precision_returned(judged: Judged, k: int | None) -> np.ndarray:
    returned = judged.n_retrieved if k is None else np.minimum(judged.n_retrieved, k)
    return judged.total(k) / np.maximum(returned, 1)


@_own
def f1(judged: Judged, k: int | None) -> np.ndarray:
    returned = judged.n_retrieved if k is None else np.minimum(judged.n_retrieved, k)
    return 2 * judged.total(k) / (returned + judged.n_relevant)


@_own
def ndcg(judged: Judged, k: int | None) -> np.ndarray:
    return judged.normalised(k, judged.hit_gain, judged.ideal_gain, log_discount)


@_own
def ndcg_longmemeval(judged: Judged, k: int | None) -> np.ndarray:
    return judged.normalised(k, np.ones_like(judged.hit_gain), np.ones_like(judged.ideal_gain), longmemeval_discount)


@_own
def mrr(judged: Judged, k: int | None) -> np.ndarray:
    first = np.full(len(judged.n_relevant), np.inf)
    np.minimum.at(first, judged.hit_query, judged.hit_rank)
    return np.where(first <= (np.inf if k is None else k), 1.0 / first, 0.0)


@_own
def alpha_ndcg(judged: Judged, k: int | None) -> np.ndarray:
    return judged.normalised(k, (1 - ALPHA) ** judged.hit_earlier, judged.ideal_novelty, log_discount)


DEFAULT_MEASURES: dict[Level, tuple[Measure, ...]] = {
    "turn": (
        *(recall_any @ 10, recall @ 10, recall_all @ 5, recall_all @ 10, recall_all @ 20),
        *(ndcg @ 10, mrr, alpha_ndcg @ 10),
    ),
    "session": (
        *(recall_any @ 5, recall @ 10, recall_all @ 5, recall_all @ 10),
        *(ndcg @ 10, ndcg_longmemeval @ 10, mrr),
    ),
}


def score(run: Run, qrels: Qrels, measures: str | Measure | Iterable[str | Measure]) -> pl.DataFrame:
    """Score each query that has evidence.

    A query with evidence that the run leaves out scores 0; a query of the run without evidence is left out, since
    nothing can be measured there. Documents without a judgement count as irrelevant.

    :returns: one row a query in the order of the qrels: ``query_id`` and a Float64 column a measure.
    :raises DataError: when the levels differ, a document is ranked twice for a query, the ranks of a query are not
        1 … n, or a document is judged twice for a query.

    >>> import polars as pl
    >>> from memlab.evaluate import score
    >>> from memlab.records import Qrels, Run
    >>> ranked = pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["s/1", "s/2"], "rank": [1, 2], "score": [2.0, 1.0]})
    >>> judged = pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["s/2", "s/9"], "relevance": 1, "subtopic": "s"})
    >>> score(Run(ranked, "turn"), Qrels(judged, "turn"), ["recall_any@2", "recall_all@2", "mrr"]).row(0)
    ('q', 1.0, 0.0, 0.5)
    """
    wanted = measures_of(measures)
    if run.level != qrels.level:
        raise DataError(
            f"run {run.name!r} ranks {run.level}s and the qrels judge {qrels.level}s; "
            f"read the qrels at level {run.level!r}"
        )
    queries, judged = _judge(run, qrels)
    values = {str(m): pl.Series(_computed(m, judged), dtype=pl.Float64) for m in wanted}
    return queries.select("query_id").with_columns(**values)


def _computed(wanted: Measure, judged: Judged) -> np.ndarray:
    values = np.asarray(registered[wanted.name](judged, wanted.k), dtype=np.float64)
    if values.shape != judged.n_relevant.shape or not np.isfinite(values).all():
        raise DataError(
            f"measure {wanted} gave an array of {values.shape}, or what is no number, for {len(judged.n_relevant)} "
            "queries; expected a finite number a query, as judged.n_relevant has"
        )
    return values


def _judge(run: Run, qrels: Qrels) -> tuple[pl.DataFrame, Judged]:
    relevant = qrels.frame.filter(pl.col("relevance") > 0)
    for query, doc in (
        relevant.filter(pl.struct("query_id", "doc_id").is_duplicated()).select("query_id", "doc_id").head(1).rows()
    ):
        raise DataError(
            f"the qrels judge document {doc!r} twice for query {query!r}; expected one row a (query, document): keep "
            "one subtopic for it"
        )
    queries = relevant.select("query_id").unique(maintain_order=True).with_row_index("query")
    relevant = relevant.join(queries, on="query_id", maintain_order="left")
    ranked = run.frame.select("query_id", "doc_id", "rank").join(queries, on="query_id")
    _check(ranked, run.name)
    nth, gain = pl.int_range(pl.len()), pl.col("relevance").cast(pl.Float64)
    novelty = (1 - ALPHA) ** nth.over("query", "subtopic").cast(pl.Float64)
    best = relevant.with_columns(novelty=novelty).select(
        "query",
        rank=1 + nth.over("query"),
        gain=gain.sort(descending=True).over("query"),
        novelty=pl.col("novelty").sort(descending=True).over("query"),
    )
    hits = ranked.join(relevant.select("query", "doc_id", "relevance", "subtopic"), on=["query", "doc_id"])
    hits = hits.sort("query", "rank").select(
        "query", "rank", gain=gain, earlier=nth.over("query", "subtopic").cast(pl.Float64)
    )
    return queries, Judged(
        n_relevant=np.bincount(best["query"].to_numpy(), minlength=queries.height),
        n_retrieved=np.bincount(ranked["query"].to_numpy(), minlength=queries.height),
        **{f"hit_{name}": hits[name].to_numpy() for name in ("query", "rank", "gain", "earlier")},
        **{f"ideal_{name}": best[name].to_numpy() for name in ("query", "rank", "gain", "novelty")},
    )


def _check(ranked: pl.DataFrame, name: str) -> None:
    """Refuse a ranking that would be scored wrongly: a document twice, or ranks that are not 1 … n."""
    rank, n = pl.col("rank"), pl.len()
    twice = pl.col("doc_id").filter(pl.col("doc_id").is_duplicated()).first()
    ranks = ranked.group_by("query_id").agg(n=n, low=rank.min(), high=rank.max(), distinct=rank.n_unique(), twice=twice)
    wrong = pl.any_horizontal(pl.col("distinct") < pl.col("n"), pl.col("low") != 1, pl.col("high") != pl.col("n"))
    bad = ranks.filter(pl.col("twice").is_not_null() | wrong).sort(pl.col("twice").is_null(), "query_id")
    for query, n_docs, low, high, _, doc in bad.head(1).rows():
        if doc is not None:
            raise DataError(f"run {name!r} ranks document {doc!r} twice for query {query!r}; keep its best rank only")
        raise DataError(
            f"run {name!r} gives query {query!r} {n_docs} documents with ranks from {low} to {high}; expected 1 to "
            f"{n_docs}, each once: rank again after leaving documents out"
        )
