"""The first candidates of each query, and rankings with the chosen ones in front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from memlab.errors import at_least
from memlab.records import Run, strictly_decreasing
from memlab.retrieve.bench import Bench


def candidates_of(run: Run, bench: Bench, n: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Go through the queries of a run, in its order.

    :param n: how many of each query's first documents; ``None`` for all.
    :returns: for each query, best first: places among the bench's documents (c,), and scores scaled to [0, 1] (c,), all
        1 where they are equal.
    :raises DataError: when ``n`` is not positive, or for a document that the bench does not hold.
    """
    if n is not None:
        at_least(1, candidates=n)
        run = run.top(n)
    first = run.frame
    places, scores = bench.documents(run.level).at(first["doc_id"]), first["score"].to_numpy()
    begins = np.flatnonzero(first["rank"].to_numpy() == 1)
    for start, end in zip(begins, np.append(begins, len(scores))[1:], strict=True):
        own = scores[start:end]
        spread = own[0] - own[-1]
        yield places[start:end], (own - own[-1]) / spread if spread > 0 else np.ones(len(own))


def reordered(run: Run, bench: Bench, choices: Sequence[np.ndarray]) -> Run:
    """Give the run with some documents of each query in front, in a new order, and the rest behind as they were.

    Scores become 1 / rank, since those of the old order no longer fit.

    :param choices: for each query of the run, the ranks (from 0) of its choice in their new order.
    """
    rank = run.frame["rank"].to_numpy() - 1
    begins = np.flatnonzero(rank == 0)
    order = np.arange(len(rank))
    for start, end, choice in zip(begins, np.append(begins, len(rank))[1:], choices, strict=True):
        order[start:end] = start + np.r_[choice, np.setdiff1d(np.arange(end - start), choice)]
    longest = int(rank.max(initial=-1)) + 1
    scores = strictly_decreasing(1.0 / np.arange(1, longest + 1), np.zeros(longest))[rank]
    return bench.show(replace(run, frame=run.frame.with_columns(pl.col("doc_id").gather(order), score=scores)))
