"""Asking a memory something else on a question's behalf: its rewritings, its parts, what its first
hits mention.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel

from memlab import llm
from memlab.errors import DataError, warn_user
from memlab.records import Run
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.cosine import cosines
from memlab.retrieve.dense import dense
from memlab.retrieve.late_interaction import late
from memlab.retrieve.rank_fusion import combsum, hybrid, rank_by_gains, reciprocal_rank_gain
from memlab.retrieve.rankings_from_scores import rank

RETRIEVERS: Mapping[str, Callable[..., Run]] = {
    f.__name__: f for f in (dense, bm25, late, hybrid, combsum)
}

GUARD = {1: 0.05, 2: 0.02, 3: 0.02}
"""What the first places of a run gain, so that other lists cannot dilute an exact match."""


def search_subqueries(
    bench: Bench, asked: pl.DataFrame, *, retriever: str = "hybrid", k: int = 200
) -> pl.DataFrame:
    """Search turns with other texts than the questions' own, all of them in one batch.

    :param asked: ``query_id`` and ``text``: any number of rows a question, in the order in which
        they are asked.
    :param retriever: ``dense``, ``bm25``, ``late``, ``hybrid`` or ``combsum``.
    :returns: ``query_id``, ``part`` (the row of ``asked``), ``doc_id``, ``rank``, ``score``.
    :raises DataError: for an unknown retriever, or a question that the bench does not hold.

    >>> import polars as pl
    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.subquery_search import search_subqueries
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> question = bench.queries["query_id"][0]
    >>> asked = pl.DataFrame({"query_id": [question] * 2, "text": ["a new bike", "the old bike"]})
    >>> search_subqueries(bench, asked, retriever="bm25", k=3)["part"].to_list()
    [0, 0, 0, 1, 1, 1]
    """
    if retriever not in RETRIEVERS:
        raise DataError(f"retriever is {retriever!r}; choose from {', '.join(RETRIEVERS)}")
    parts = bench.asked(asked.select("query_id", "text"), "scope", "timestamp").with_row_index(
        "part"
    )
    queries = parts.with_columns(query_id=pl.col("part").cast(pl.String))
    hits = RETRIEVERS[retriever](bench.with_queries(queries), level="turn", k=k).frame.rename(
        {"query_id": "part"}
    )
    hits = hits.with_columns(pl.col("part").cast(pl.UInt32))
    of = parts.select("part", "query_id")
    return hits.join(of, on="part", maintain_order="left").select(
        "query_id", "part", "doc_id", "rank", "score"
    )


def rank_by_vectors(bench: Bench, vectors: np.ndarray, *, k: int = 200) -> Run:
    """Rank turns by their cosine with given vectors: (q, d) unit rows, one for each of the bench's
    queries.

    :raises DataError: without embeddings.
    """
    turns = bench.documents("turn").vectors()
    scored = (
        (rows, span, cosines(vectors[rows], turns[span])) for rows, span in bench.by_scope("turn")
    )
    return rank(bench, scored, level="turn", k=k)


def fuse_hits(
    run: Run, bench: Bench, hits: pl.DataFrame, *, weight: float | pl.Expr, k: int
) -> Run:
    """Fuse a run with what other queries found for its questions, by guarded reciprocal rank
    fusion.

    :param hits: ``query_id``, ``doc_id``, ``rank``, ``score``: a row for every place of every list;
        those of questions that the run does not hold are left out.
    :param weight: of a list, or of each row; the run's own list weighs 1, and its first three
        places are guarded.

    Source: the guard is that of the search tool qmd.
    """
    first = run.frame.filter((pl.col("rank") <= max(GUARD)) & (pl.col("score") > 0))
    guard = first.with_columns(gain=pl.col("rank").replace_strict(GUARD, return_dtype=pl.Float64))
    hits = hits.join(run.frame, on="query_id", how="semi", maintain_order="left")
    lists = [
        run.frame.with_columns(gain=reciprocal_rank_gain(1.0)),
        hits.with_columns(gain=reciprocal_rank_gain(weight)),
        guard,
    ]
    return replace(
        bench.show(rank_by_gains(lists, level=run.level, k=k)),
        name=run.name,
        provenance=run.provenance,
    )


def generate_per_question(
    asked: pl.DataFrame,
    service: str,
    *,
    task: str,
    shape: type[BaseModel],
    system: str,
    what: str,
    about: Sequence[Sequence[str]] | None = None,
) -> list[Any]:
    """Let a language model write something for each question, and warn where it does not answer.

    :param asked: a row a question: what the model reads, by name.
    :param task: of the request, as ``shape`` and ``system``; see :class:`memlab.llm.Request`.
    :param what: is written, in the plural.
    :param about: of each row, what its recorded answer is kept by; by default all that the model
        reads.
    :returns: for each row an instance of ``shape``, or ``None``.
    :raises ModelError: when no such service is set.
    """
    requests = [
        llm.Request(task, 1, tuple(key), json.dumps(row, ensure_ascii=False), shape, system)
        for key, row in zip(
            asked.rows() if about is None else about, asked.rows(named=True), strict=True
        )
    ]
    answers = llm.ask(requests, service)
    if line := llm.describe_unanswered(answers, what):
        warn_user(line)
    return [answer.value for answer in answers]
