"""Asking a memory something else on a question's behalf: its rewritings, its parts, what its first
hits mention.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

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
from memlab.retrieve.rank_fusion import (
    combsum,
    hybrid,
    rank_by_summed_gains,
    reciprocal_rank_gain_expr,
)
from memlab.retrieve.rankings_from_scores import ScopeScores, rank_scope_scores

AnswerType = TypeVar("AnswerType", bound=BaseModel)

RETRIEVERS: Mapping[str, Callable[..., Run]] = {
    f.__name__: f for f in (dense, bm25, late, hybrid, combsum)
}

GUARD = {1: 0.05, 2: 0.02, 3: 0.02}
"""What the first places of a run gain, so that other lists cannot dilute an exact match."""


def search_subqueries(
    bench: Bench, subqueries: pl.DataFrame, *, retriever: str = "hybrid", k: int = 200
) -> pl.DataFrame:
    """Search turns with other texts than the questions' own, all of them in one batch.

    :param subqueries: ``query_id`` and ``text``: any number of rows a question, in the order in
        which they are asked.
    :param retriever: ``dense``, ``bm25``, ``late``, ``hybrid`` or ``combsum``.
    :returns: ``query_id``, ``part`` (the row of ``subqueries``), ``doc_id``, ``rank``, ``score``.
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
    placed_subqueries = bench.join_question_columns(
        subqueries.select("query_id", "text"), "scope", "timestamp"
    ).with_row_index("part")
    subquery_rows = placed_subqueries.with_columns(query_id=pl.col("part").cast(pl.String))
    hits = RETRIEVERS[retriever](bench.with_queries(subquery_rows), level="turn", k=k).frame.rename(
        {"query_id": "part"}
    )
    hits = hits.with_columns(pl.col("part").cast(pl.UInt32))
    query_of_part = placed_subqueries.select("part", "query_id")
    return hits.join(query_of_part, on="part", maintain_order="left").select(
        "query_id", "part", "doc_id", "rank", "score"
    )


def rank_turns_by_vectors(bench: Bench, question_vectors: np.ndarray, *, k: int = 200) -> Run:
    """Rank turns by their cosine with given vectors: (q, d) unit rows, one for each of the bench's
    queries.

    :raises DataError: without embeddings.
    """
    turn_vectors = bench.documents("turn").vectors()
    scope_scores = (
        ScopeScores(
            query_rows, turn_span, cosines(question_vectors[query_rows], turn_vectors[turn_span])
        )
        for query_rows, turn_span in bench.by_scope("turn")
    )
    return rank_scope_scores(bench, scope_scores, level="turn", k=k)


def fuse_run_with_hits(
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
    first_places = run.frame.filter((pl.col("rank") <= max(GUARD)) & (pl.col("score") > 0))
    guard_gains = first_places.with_columns(
        gain=pl.col("rank").replace_strict(GUARD, return_dtype=pl.Float64)
    )
    hits = hits.join(run.frame, on="query_id", how="semi", maintain_order="left")
    gain_lists = [
        run.frame.with_columns(gain=reciprocal_rank_gain_expr(1.0)),
        hits.with_columns(gain=reciprocal_rank_gain_expr(weight)),
        guard_gains,
    ]
    return replace(
        bench.show(rank_by_summed_gains(gain_lists, level=run.level, k=k)),
        name=run.name,
        provenance=run.provenance,
    )


def ask_model_per_question_and_warn(
    model_inputs: pl.DataFrame,
    service: str,
    *,
    task: str,
    answer_type: type[AnswerType],
    system_prompt: str,
    answers_name: str,
    answer_keys: Sequence[Sequence[str]] | None = None,
) -> list[AnswerType | None]:
    """Let a language model write something for each question, and warn where it does not answer.

    :param model_inputs: a row a question: what the model reads, by name.
    :param task: of the request, as ``answer_type`` and ``system_prompt``; see
        :class:`memlab.llm.Request`.
    :param answers_name: is written, in the plural.
    :param answer_keys: of each row, what its recorded answer is kept by; by default all that the
        model reads.
    :returns: for each row an instance of ``answer_type``, or ``None``.
    :raises ModelError: when no such service is set.
    """
    requests = [
        llm.Request(
            task,
            1,
            tuple(answer_key),
            json.dumps(model_input, ensure_ascii=False),
            answer_type,
            system_prompt,
        )
        for answer_key, model_input in zip(
            model_inputs.rows() if answer_keys is None else answer_keys,
            model_inputs.rows(named=True),
            strict=True,
        )
    ]
    answers = llm.ask(requests, service)
    if unanswered_note := llm.describe_unanswered(answers, answers_name):
        warn_user(unanswered_note)
    return [answer.value for answer in answers]
