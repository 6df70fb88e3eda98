"""Decomposition: a question that takes several evidence items is asked part by part, split by rules
or by a model.
"""

from __future__ import annotations

from typing import Literal

import polars as pl
from pydantic import BaseModel

from memlab.errors import check_at_least
from memlab.records import Run
from memlab.registry import Weight, stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.rankings_from_scores import deepest_rank_or_one, refuse_session_run
from memlab.retrieve.subquery_search import (
    ask_model_per_question_and_warn,
    fuse_run_with_hits,
    search_subqueries,
)
from memlab.text.question_forms import asks_for_aggregation, split_question
from memlab.text.text_analyser import english_rules_apply_or_warn

WINDOWS, TURNS, MOST = 8, 5, 8
"""Stretches of equally many sessions that the time of each scope is cut into, turns that a part of
a question may bring, and parts that a language model may give: more are not parts of one
question."""

TASK = (
    "A question is asked of a long conversation. If its answer needs several things to be looked "
    "up, such as each of two people, each item of a list or both sides of a comparison, write one "
    "short question for each of them. If one look-up is enough, write none."
)


class Split(BaseModel, extra="forbid"):
    """What a language model answers."""

    questions: list[str]


Subretriever = Literal["dense", "bm25", "late", "hybrid", "combsum"]
"""What answers the parts of a question; see :data:`memlab.retrieve.subquery_search.RETRIEVERS`."""


@stage
def decompose(
    run: Run,
    bench: Bench,
    *,
    retriever: Subretriever = "hybrid",
    weight: Weight = 0.5,
    service: str | None = None,
) -> Run:
    """Search for the parts of a question and fuse the results with the run.

    A question that joins, compares or lists several things (:mod:`memlab.text.question_forms`) is
    asked once for each, so that one of them cannot fill the first places alone. An aggregation also
    brings the best turn of each of eight stretches of the scope's time. A turn that several parts
    find gains from each. Every other question keeps its ranking.

    :param retriever: what answers the parts: ``dense``, ``bm25``, ``late``, ``hybrid`` or
        ``combsum``.
    :param weight: of all parts together and of all stretches together, against 1 for the run.
    :param service: a language model that splits the questions, see :func:`memlab.llm.ask`; ``None``
        for the rules.
    :raises DataError: for a ranking of sessions, an unknown retriever, or a negative weight.
    :raises ModelError: when no such service is set.

    Source: Perez, Lewis, Yih, Cho and Kiela, Unsupervised Question Decomposition (EMNLP 2020), for
    the parts; Santos, Macdonald and Ounis, Exploiting Query Reformulations for Web Search Result
    Diversification (WWW 2010), for fusing what they find.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.question_decomposition import decompose
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.hybrid(bench)
    >>> decompose(plain, bench, weight=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    refuse_session_run(run, "decompose")
    check_at_least(0, weight=weight)
    ranked_questions = bench.queries.join(
        run.frame, on="query_id", how="semi", maintain_order="left"
    )
    subquery_hits = search_subqueries(
        bench,
        split_into_subquestions(ranked_questions, bench, service),
        retriever=retriever,
        k=TURNS,
    )
    subquery_hits = subquery_hits.with_columns(lists=pl.col("part").n_unique().over("query_id"))
    hit_columns = ["query_id", "doc_id", "rank", "score", pl.col("lists").cast(pl.Int64)]
    hit_lists = (
        subquery_hits.select(hit_columns),
        _best_turns_per_window_if_aggregating(run, bench, ranked_questions).select(hit_columns),
    )
    hits = pl.concat(hit_lists).with_columns(weight=weight / pl.col("lists"))
    return fuse_run_with_hits(run, bench, hits, weight=pl.col("weight"), k=deepest_rank_or_one(run))


def split_into_subquestions(
    queries: pl.DataFrame, bench: Bench, service: str | None = None
) -> pl.DataFrame:
    """Split questions by rules, or let a language model split them: ``query_id``, ``text``.

    A question that asks for one thing has no rows, nor has one that the model gives no answer to.
    """
    if service:
        model_inputs = queries.select(question="text")
        model_answers = ask_model_per_question_and_warn(
            model_inputs,
            service,
            task="decompose",
            answer_type=Split,
            system_prompt=TASK,
            answers_name="decompositions",
        )
        subquestions = [
            [] if model_answer is None else model_answer.questions[:MOST]
            for model_answer in model_answers
        ]
    else:
        has_rules = english_rules_apply_or_warn(bench.language, "the splitting of questions")
        subquestions = [split_question(text) if has_rules else [] for text in queries["text"]]
    subquestion_texts = pl.Series("text", subquestions, dtype=pl.List(pl.String))
    return (
        queries.select("query_id", subquestion_texts).explode("text").filter(pl.col("text") != "")
    )


def _best_turns_per_window_if_aggregating(
    run: Run, bench: Bench, questions: pl.DataFrame
) -> pl.DataFrame:
    """Take the run's best turn of each stretch of time, as first of a list of its own, where a
    question aggregates.

    :returns: a run's columns and ``lists``, how many the question has.
    """
    aggregating_questions = questions.filter(
        asks_for_aggregation() if bench.language == "en" else pl.lit(False)
    ).select("query_id", "scope")
    sessions, turns = bench.documents("session"), bench.documents("turn")
    scope_spans = [
        (scope_name, best_hits, last_session - best_hits)
        for scope_name, (best_hits, last_session) in sessions.spans.items()
    ]
    scopes_with_sizes = pl.DataFrame(
        scope_spans, schema={"scope": pl.String, "first": pl.Int64, "n": pl.Int64}, orient="row"
    )
    session_of_hit = pl.Series(
        "session", turns.session[turns.at(run.frame["doc_id"])], dtype=pl.Int64
    )
    run_of_aggregations = run.frame.with_columns(session_of_hit).join(
        aggregating_questions, on="query_id", maintain_order="left"
    )
    window_number = (
        (pl.col("session") - pl.col("first"))
        * pl.min_horizontal("n", pl.lit(WINDOWS))
        // pl.col("n")
    )
    placed_hits = run_of_aggregations.join(
        scopes_with_sizes, on="scope", maintain_order="left"
    ).with_columns(window=window_number)
    best_hits = placed_hits.unique(["query_id", "window"], keep="first", maintain_order=True)
    return best_hits.with_columns(rank=pl.lit(1, pl.Int32), lists=pl.len().over("query_id"))
