"""Session rankings that come from turn rankings."""

from __future__ import annotations

import polars as pl

from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.retrieve.bench import Bench


def sessions_from_turns(run: Run, bench: Bench, *, k: int = 200) -> Run:
    """Rank sessions by their best turn in a ranking of turns.

    :param run: a ranking of turns, at the end of any pipeline.
    :returns: a ranking of the sessions that have a turn in it.
    :raises DataError: when the run ranks sessions already.

    >>> from memlab import datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder=None)
    >>> retrieve.sessions_from_turns(retrieve.bm25(bench), bench).level
    'session'
    """
    if run.level != "turn":
        raise DataError("the run ranks sessions already")
    session = bench.documents("turn").session[bench.documents("turn").at(run.frame["doc_id"])]
    best = (
        run.frame.select("query_id", "score", doc_id=pl.Series(bench.documents("session").ids[session]))
        .group_by("query_id", "doc_id", maintain_order=True)
        .agg(pl.col("score").max())
    )
    ranked = run_from_scores(
        best["query_id"].to_numpy(), best["doc_id"].to_numpy(), best["score"].to_numpy(), level="session", k=k
    )
    return bench.show(ranked)
