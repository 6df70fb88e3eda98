"""A light reranker: relevance, recency and shared words, weighed without a model."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.records import Level, Run, Turn, frame
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.documents import Documents
from memlab.retrieve.ranking import reranked, scaled


@stage
def light(
    run: Run,
    bench: Bench,
    *,
    weights: Sequence[float] = (0.7, 0.1, 0.2),
    half_life_hours: float = 72.0,
    summary_boost: float = 1.25,
    sessions: int = 3,
    covered: float = 0.5,
    window: int = 1,
) -> Run:
    """Reorder by a weighted sum of relevance, recency and shared words; lift where a summary fits, lower what repeats.

    Relevance is the run's score scaled to [0, 1] within the query. Recency halves every ``half_life_hours`` before
    the question, or before the scope's last turn where the question has no time; a document without a time gets the
    mean of the query's others. Shared words are the share of the question's stemmed content words that the document
    holds. The sum is multiplied by ``summary_boost`` where the session's summary is among the ``sessions`` best of
    the scope for the question (BM25 over summaries; a session without a summary is never lifted), and by ``covered``
    for a turn within ``window`` turns of one that ranks higher: a reader who sees that one's surroundings has seen it.

    The factors come from a memory that answers with windows of a session: there a covered message is shown already.
    Here only what is ranked counts, and beside a piece of evidence often stands the next: on LoCoMo and LongMemEval
    ``covered=0.5`` costs complete recall. Recency of 72 hours suits an assistant's daily work; where questions look
    back over months it says little, and much weight on it hurts. ``weights=(0.7, 0, 0.3)`` with ``covered=1`` leaves
    both out.

    :param run: turns or sessions; sessions have no neighbours that cover them.
    :param weights: of relevance, recency and shared words.
    :param half_life_hours: the age at which recency is one half.
    :param summary_boost: factor for documents of the sessions whose summaries fit best; 1 for none.
    :param sessions: how many sessions a question lifts.
    :param covered: factor for a covered turn; 1 for none.
    :param window: how many turns to either side a turn covers.
    :raises DataError: for a negative weight or factor, a half-life that is not positive, or a wrong number of weights.

    >>> from memlab import retrieve, sample
    >>> from memlab.rerank import light
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> plain = retrieve.bm25(bench)
    >>> light(plain, bench, weights=(1, 0, 0), summary_boost=1, covered=1).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    _check(weights, half_life_hours, summary_boost, sessions, covered, window)
    documents = bench.documents(run.level)
    at = documents.at(run.frame["doc_id"])
    session_ids = bench.documents("session").ids[documents.session[at]]
    rows = run.frame.with_columns(
        pl.Series("at", at, dtype=pl.Int64), pl.Series("session_id", session_ids, dtype=pl.String)
    )
    rows = bench.asked(rows, "scope", "timestamp")
    rows = rows.with_columns(
        relevance=scaled("score"),
        recency=_recency(rows, bench, run.level, half_life_hours),
        shared=_shared_words(rows, bench, documents),
    )
    signals = zip(("relevance", "recency", "shared"), weights, strict=True)
    rows = rows.with_columns(score=pl.sum_horizontal(pl.col(signal) * weight for signal, weight in signals))
    if sessions and summary_boost != 1:
        rows = rows.join(_fitting(bench, sessions), on=["query_id", "session_id"], how="left", maintain_order="left")
        rows = rows.with_columns(score=pl.col("score") * pl.when("fits").then(summary_boost).otherwise(1.0))
    if window and covered != 1 and run.level == "turn":
        rows = rows.with_columns(score=pl.col("score") * np.where(_covered(rows, window), covered, 1.0))
    return reranked(run, bench, rows)


def _check(
    weights: Sequence[float], half_life_hours: float, boost: float, sessions: int, covered: float, window: int
) -> None:
    if len(weights) != 3 or not all(isfinite(w) and w >= 0 for w in weights):
        raise DataError(f"weights={tuple(weights)}; give three, none negative: relevance, recency, shared words")
    if not (isfinite(half_life_hours) and half_life_hours > 0):
        raise DataError(f"half_life_hours is {half_life_hours}; a half-life is longer than 0 hours")
    for name, factor in (("summary_boost", boost), ("covered", covered)):
        if not (isfinite(factor) and factor >= 0):
            raise DataError(f"{name} is {factor}; a factor is 0 or more, and 1 changes nothing")
    at_least(0, sessions=sessions, window=window)


def _recency(rows: pl.DataFrame, bench: Bench, level: Level, half_life_hours: float) -> pl.Series:
    """Give 2 to the power of −age / half-life; what comes after the question is as fresh as can be."""
    starts = bench.sessions.select("session_id", "start", "end")
    turns = bench.turns.join(starts, on="session_id", how="left").with_columns(time=pl.coalesce("timestamp", "start"))
    times = {
        "turn": turns.select("time", doc_id="turn_id"),
        "session": starts.select(time=pl.coalesce("end", "start"), doc_id="session_id"),
    }[level]
    last = turns.group_by("scope").agg(last=pl.col("time").max())
    age = (pl.coalesce("timestamp", "last") - pl.col("time")).dt.total_seconds().clip(lower_bound=0) / 3600
    recency = (-np.log(2) * age / half_life_hours).exp()
    return (
        rows.join(times, on="doc_id", how="left", maintain_order="left")
        .join(last, on="scope", how="left", maintain_order="left")
        .with_columns(recency=recency)
        .select(pl.col("recency").fill_null(pl.col("recency").mean().over("query_id")).fill_null(0.0))["recency"]
    )


def _shared_words(rows: pl.DataFrame, bench: Bench, documents: Documents) -> pl.Series:
    """Give the share of a question's words that a document holds; 0 for a question without words."""
    asked = dict(zip(bench.queries["query_id"], map(frozenset, bench.query_words), strict=True))
    # Most words of a document are in no question.
    wanted = frozenset().union(*asked.values())
    held = {at: wanted.intersection(documents.words[at]) for at in rows["at"].unique()}
    pairs = rows.select("query_id", "at").iter_rows()
    shares = [len(asked[query] & held[at]) / max(1, len(asked[query])) for query, at in pairs]
    return pl.Series(shares, dtype=pl.Float64)


def _fitting(bench: Bench, n: int) -> pl.DataFrame:
    """Find the sessions whose summaries share most with each question: ``query_id``, ``session_id``, ``fits``."""
    summarised = bench.sessions.filter(pl.col("summary").str.strip_chars() != "")
    role = pl.lit("other")
    turns = summarised.select(
        "scope", "session_id", turn_id="session_id", n=pl.lit(1), speaker=role, role=role, text="summary"
    )
    summaries = bench.but(
        turns=pl.concat([frame(Turn), turns], how="diagonal_relaxed"),
        sessions=summarised,
        queries=bench.queries.filter(pl.col("scope").is_in(summarised["scope"].unique().implode())),
    )
    best = bm25(summaries, k=n).frame.filter(pl.col("score") > 0)
    return best.select("query_id", session_id="doc_id", fits=True)


def _covered(rows: pl.DataFrame, window: int) -> np.ndarray:
    """Find the turns that have a better one of their session within ``window`` turns: (n,) bool."""
    query = rows["query_id"].rle_id().to_numpy().astype(np.int64)
    at = rows["at"].to_numpy()
    session = rows["session_id"].rank("dense").to_numpy()
    order = np.lexsort((rows["rank"].to_numpy(), -rows["score"].to_numpy(), query))
    better = np.empty(len(order), np.int64)
    better[order] = np.arange(len(order))
    # Queries lie so far apart that no window reaches from one into the next.
    key = query * (at.max(initial=0) + 1 + window) + at
    by_key = np.argsort(key)
    covered = np.zeros(len(key), bool)
    for step in (*range(-window, 0), *range(1, window + 1)):
        beside = by_key[np.searchsorted(key[by_key], key + step).clip(max=len(key) - 1)]
        covered |= (key[beside] == key + step) & (session[beside] == session) & (better[beside] < better)
    return covered
