"""A light reranker: relevance, recency and shared words, weighed without a model."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from memlab.errors import check_at_least, check_between
from memlab.records import Level, Run, Turn, frame
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.rankings_from_scores import min_max_scaled_expr, rerank_by_scores

RELEVANCE = 0.7
RECENCY = 0.1
SHARED = 0.2
LIFT = 1.25
LIFTED = 3
"""Factor for the documents of the sessions whose summaries fit best, and how many those are."""


@stage
def light(
    run: Run,
    bench: Bench,
    *,
    half_life_hours: Annotated[float, Field(ge=1e-6, le=1e9)] = 72.0,
    covered: Annotated[float, Field(ge=0, le=1e9)] = 0.5,
    window: Annotated[int, Field(ge=0)] = 1,
) -> Run:
    """Reorder by 0.7 · relevance + 0.1 · recency + 0.2 · shared words.

    Lift fitting sessions, lower what repeats.

    Relevance is the run's score scaled to [0, 1] within the query. Recency halves every
    ``half_life_hours`` before the question, or before the scope's last turn where the question has
    no time; a document without a time gets the mean of the query's others. Shared words are the
    share of the question's stemmed content words that the document holds. The sum is multiplied by
    1.25 where the session's summary is among the three best of the scope for the question, and by
    ``covered`` for a turn within ``window`` turns of one that ranks higher.

    A memory that answers with windows of a session has shown a covered turn already. Where only
    ranked turns count, ``covered`` below 1 costs complete recall on LoCoMo and LongMemEval.

    :param run: turns or sessions; sessions have no neighbours that cover them.
    :raises DataError: for a half-life, a factor or a window that cannot be used.

    >>> from memlab import retrieve, sample
    >>> from memlab.rerank import light
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> light(retrieve.bm25(bench, k=3), bench).frame["rank"].max()
    3
    """
    check_between(1e-6, 1e9, half_life_hours=half_life_hours)
    check_between(0, 1e9, covered=covered)
    check_at_least(0, window=window)
    documents = bench.documents(run.level)
    document_places = documents.at(run.frame["doc_id"])
    session_ids = bench.documents("session").ids[documents.session[document_places]]
    scored_rows = run.frame.with_columns(
        at=pl.Series(document_places, dtype=pl.Int64),
        session_id=pl.Series(session_ids, dtype=pl.String),
    )
    scored_rows = _add_recency_column(
        bench.join_question_columns(scored_rows, "row", "scope", "timestamp"),
        bench,
        run.level,
        half_life_hours,
    )
    question_words = [frozenset(words) for words in bench.query_words]
    words_by_place = {
        place: frozenset(documents.words[place]) for place in np.unique(document_places).tolist()
    }
    question_and_place = scored_rows.select("row", "at").iter_rows()
    shared_words = [
        len(question_words[question_row] & words_by_place[place])
        / max(1, len(question_words[question_row]))
        for question_row, place in question_and_place
    ]
    weighted_sum = (
        min_max_scaled_expr("score") * RELEVANCE
        + pl.col("recency") * RECENCY
        + pl.Series(shared_words, dtype=pl.Float64) * SHARED
    )
    scored_rows = scored_rows.join(
        _sessions_with_best_summaries(bench),
        on=["query_id", "session_id"],
        how="left",
        maintain_order="left",
    )
    scored_rows = scored_rows.with_columns(
        score=weighted_sum * pl.when("fits").then(LIFT).otherwise(1.0)
    )
    if run.level == "turn":
        scored_rows = scored_rows.with_columns(
            score=pl.col("score")
            * pl.when(_is_near_better_turn(scored_rows, window)).then(covered).otherwise(1.0)
        )
    return rerank_by_scores(run, bench, scored_rows)


def _add_recency_column(
    scored_rows: pl.DataFrame, bench: Bench, level: Level, half_life_hours: float
) -> pl.DataFrame:
    """Add 2 to the power of −age / half-life; what comes after the question has age 0."""
    session_times = bench.sessions.select("session_id", "start", "end")
    turns = bench.turns.join(
        session_times, on="session_id", how="left", maintain_order="left"
    ).with_columns(time=pl.coalesce("timestamp", "start"))
    sessions = session_times.select(time=pl.coalesce("end", "start"), doc_id="session_id")
    # A turn and a session may have one id: a chat log names both by what stands in it.
    document_times = turns.select("time", doc_id="turn_id") if level == "turn" else sessions
    last_times = turns.group_by("scope").agg(last=pl.col("time").max())
    age_hours = (pl.coalesce("timestamp", "last") - pl.col("time")).dt.total_seconds().clip(
        lower_bound=0
    ) / 3600
    recency = (-np.log(2) * age_hours / half_life_hours).exp()
    scored_rows = scored_rows.join(document_times, on="doc_id", how="left", maintain_order="left")
    scored_rows = scored_rows.join(
        last_times, on="scope", how="left", maintain_order="left"
    ).with_columns(recency=recency)
    return scored_rows.with_columns(
        pl.col("recency").fill_null(pl.col("recency").mean().over("query_id")).fill_null(0.0)
    )


def _sessions_with_best_summaries(bench: Bench) -> pl.DataFrame:
    """Find the sessions whose summaries share most with each question: ``query_id``,
    ``session_id``, ``fits``.
    """
    summarised_sessions = bench.sessions.filter(pl.col("summary").str.strip_chars() != "")
    other_role = pl.lit("other")
    summary_turns = summarised_sessions.select(
        "scope",
        "session_id",
        turn_id="session_id",
        n=pl.lit(1),
        speaker=other_role,
        role=other_role,
        text="summary",
    )
    summary_bench = bench.with_changes(
        turns=pl.concat([frame(Turn), summary_turns], how="diagonal_relaxed"),
        sessions=summarised_sessions,
        queries=bench.queries.filter(
            pl.col("scope").is_in(summarised_sessions["scope"].unique().implode())
        ),
    )
    best_sessions = bm25(summary_bench, k=LIFTED).frame.filter(pl.col("score") > 0)
    return best_sessions.select("query_id", session_id="doc_id", fits=True)


def _is_near_better_turn(scored_rows: pl.DataFrame, window: int) -> pl.Series:
    """Find the turns that have a better one of their session within ``window`` turns."""
    ranked_rows = (
        scored_rows.with_row_index("i")
        .sort("query_id", -pl.col("score"), "rank")
        .with_row_index("place")
    )
    has_better = pl.repeat(False, scored_rows.height, dtype=pl.Boolean, eager=True)
    for turn_step in (turn_step for turn_step in range(-window, window + 1) if turn_step):
        neighbour_places = ranked_rows.select(
            "query_id", "session_id", pl.col("at") + turn_step, beside="place"
        )
        neighbour_pairs = ranked_rows.join(
            neighbour_places, on=["query_id", "session_id", "at"], how="left"
        ).sort("i")
        has_better |= (neighbour_pairs["beside"] < neighbour_pairs["place"]).fill_null(False)
    return has_better
