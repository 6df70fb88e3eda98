"""Fill the first places with distinct sessions."""

from __future__ import annotations

import polars as pl

from memlab.errors import at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.select.candidates import reordered


@stage
def fill_sessions(run: Run, bench: Bench, *, sessions: int = 5, per_session: int = 1, candidates: int = 50) -> Run:
    """Walk down the ranking and put the first hits of each new session in front, until enough sessions are there.

    A question whose evidence lies in several sessions needs a turn of each, and one long talk about the subject can
    fill every place. The rest follows in its old order. A run of sessions stays as it is.

    :param sessions: how many distinct sessions come in front.
    :param per_session: how many turns of each.
    :param candidates: how many of the run's first documents to walk down; a session first seen later is not worth it.
    :raises DataError: for a count below 1.

    >>> from memlab import retrieve, sample
    >>> from memlab.select.fill_sessions import fill_sessions
    >>> bench = retrieve.Bench.of(sample(["owen"]), encoder=None)
    >>> plain = retrieve.bm25(bench)
    >>> session = bench.documents("turn").session
    >>> first = fill_sessions(plain, bench).top(3).frame["doc_id"].head(3)
    >>> len(set(session[bench.documents("turn").at(first)]))  # of the first question
    3
    """
    at_least(1, sessions=sessions, per_session=per_session, candidates=candidates)
    documents = bench.documents(run.level)
    session = pl.Series("session", documents.session[documents.at(run.frame["doc_id"])])
    within = ["query_id", "session"]
    front = (
        (pl.col("rank") <= candidates)
        & (pl.col("nth") < per_session)
        & (pl.col("first").rank("dense").over("query_id") <= sessions)
    )
    promoted = (
        run.frame.with_columns(session)
        .with_columns(nth=pl.int_range(pl.len()).over(within), first=pl.col("rank").min().over(within))
        .filter(front)
        .group_by("query_id", maintain_order=True)
        .agg(pl.col("rank") - 1)
    )
    return reordered(run, bench, [ranks.to_numpy() for ranks in promoted["rank"]])
