"""Adaptive k: more places for the questions that look as if they need more pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.language.questions import aggregation
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.select.candidates import chunks

STRONG = 0.5
"""A contender scores at least this share of the way from the last candidate to the first."""


@stage
def adaptive(
    run: Run, bench: Bench, *, k: int = 10, several: float = 1.5, typical: int = 10, candidates: int = 200
) -> Run:
    """Cut each question's ranking at k · √(contenders / ``typical``), times ``several`` where it counts or lists.

    Two things tell, before anything is read, that a question needs more than most. Its form: what counts, sums or
    lists takes several pieces (:func:`memlab.language.questions.aggregation`). And the shape of its scores: when one
    document stands out, it is likely to be the answer; when many score nearly alike, the ranking does not know, and
    the evidence lies deeper. The root halves that signal, because a count of contenders is a rough one; a cut at a
    gap of the scores, which trusts it wholly, loses evidence.

    Nothing is reordered. The mean of all k is near ``k`` where ``typical`` is; compare with a fixed k of the same mean
    (``n_retrieved`` in a report), by a measure deep enough to see everything kept, such as recall_all@100.

    :param k: places of a question of one piece with a ``typical`` number of contenders.
    :param several: how many times as many for a question of several pieces; at least 1.
    :param typical: contenders that a question usually has: about 10 after ``combsum`` and ``bm25``, 30 after
        ``hybrid`` and ``dense``, whose scores fall more slowly.
    :param candidates: how many of the run's first documents to look at, and the most to keep.
    :raises DataError: for a number out of range.

    >>> from memlab import retrieve, sample
    >>> from memlab.select.adaptive import adaptive
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> shorter = adaptive(retrieve.bm25(bench), bench, k=5).frame
    >>> shorter.group_by("query_id").len()["len"].n_unique() > 1
    True
    """
    at_least(1, k=k, typical=typical)
    if not 1 <= several < float("inf"):
        raise DataError(f"several is {several}; expected at least 1, which gives no form of question more")
    strong = [np.where(some.mask, some.relevance, -1.0) >= STRONG for _, some in chunks(run, bench, candidates)]
    contenders = np.concatenate([rows.sum(axis=1) for rows in strong]) if strong else np.zeros(0, np.int64)
    wanted = k * (pl.col("contenders") / typical).sqrt() * pl.when("aggregation").then(several).otherwise(1.0)
    sizes = (
        run.frame.select(pl.col("query_id").unique(maintain_order=True))
        .with_columns(contenders=pl.Series(contenders))
        .join(bench.queries.select("query_id", aggregation()), on="query_id", how="left", maintain_order="left")
        .select("query_id", k=wanted.round().clip(1, candidates).cast(pl.Int32))
    )
    frame = run.frame.join(sizes, on="query_id", how="left", maintain_order="left")
    return replace(run, frame=frame.filter(pl.col("rank") <= pl.col("k")).drop("k"))
