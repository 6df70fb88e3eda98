"""The first candidates of many queries as padded arrays, and runs with the chosen ones in front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from memlab.errors import at_least
from memlab.records import Run, strictly_decreasing
from memlab.retrieve.bench import Bench

CHUNK = 128


@dataclass(frozen=True)
class Candidates:
    """The first candidates of some queries, padded to one width.

    :param at: (q, c) place of each candidate among the bench's documents; 0 where padded.
    :param mask: (q, c) whether there is a candidate.
    :param relevance: (q, c) scores scaled to [0, 1] within each query; 0 where padded.
    """

    at: np.ndarray
    mask: np.ndarray
    relevance: np.ndarray


def chunks(run: Run, bench: Bench, n: int) -> Iterator[tuple[np.ndarray, Candidates]]:
    """Go through a run's queries, some at a time: numbers of the queries, and their first ``n`` candidates.

    :raises DataError: when ``n`` is not positive.
    """
    at_least(1, candidates=n)
    first = run.frame.filter(pl.col("rank") <= n)
    places, scores = bench.documents(run.level).at(first["doc_id"]), first["score"].to_numpy()
    begins = np.flatnonzero(first["rank"].to_numpy() == 1)
    lengths = np.diff(begins, append=len(scores))
    if len(begins):
        low, high = (np.repeat(way.reduceat(scores, begins), lengths) for way in (np.minimum, np.maximum))
        scores = np.divide(scores - low, high - low, out=np.ones(len(scores)), where=high > low)
    for start in range(0, len(begins), CHUNK):
        some = lengths[start : start + CHUNK]
        inside = slice(begins[start], begins[start] + some.sum())
        mask = np.arange(some.max()) < some[:, None]
        at, relevance = np.zeros(mask.shape, np.int64), np.zeros(mask.shape)
        at[mask], relevance[mask] = places[inside], scores[inside]
        yield start + np.arange(len(some)), Candidates(at, mask, relevance)


def each(run: Run, bench: Bench, n: int, choose: Callable[[np.ndarray, np.ndarray], np.ndarray], *, task: str) -> Run:
    """Put what is chosen of each query's first ``n`` candidates in front, in the order in which it was chosen.

    :param choose: takes unit rows (c, d) and relevance (c,) scaled to [0, 1] within the query, best first; gives
        places among them.
    :param task: what the progress bar says; it shows for five hundred queries and more.
    """
    from tqdm.auto import tqdm

    vectors, choices = bench.documents(run.level).vectors(), list[np.ndarray]()
    n_queries = run.frame["query_id"].n_unique()
    with tqdm(total=n_queries, desc=task, disable=n_queries < 500) as bar:
        for _, some in chunks(run, bench, n):
            for at, mask, relevance in zip(some.at, some.mask, some.relevance, strict=True):
                choices.append(choose(vectors[at[mask]], relevance[mask]))
                bar.update()
    return reordered(run, bench, choices)


def reordered(run: Run, bench: Bench, choices: list[np.ndarray]) -> Run:
    """Give the run with some candidates of each query in front, in a new order, and the rest behind as they were.

    Scores become 1 / rank, since those of the old order no longer fit.

    :param choices: for each query of the run, the ranks (from 0) of its choice in their new order.
    """
    rank = run.frame["rank"].to_numpy() - 1
    begins = np.flatnonzero(rank == 0)
    taken = np.concatenate([begins[:0], *(begin + choice for begin, choice in zip(begins, choices, strict=True))])
    left = np.ones(len(rank), bool)
    left[taken] = False
    front = rank < np.repeat([len(choice) for choice in choices], np.diff(begins, append=len(rank)))
    order = np.empty(len(rank), np.int64)
    order[front], order[~front] = taken, np.flatnonzero(left)
    longest = int(rank.max(initial=-1)) + 1
    scores = strictly_decreasing(1.0 / np.arange(1, longest + 1), np.zeros(longest))[rank]
    return bench.show(replace(run, frame=run.frame.with_columns(run.frame["doc_id"].gather(order), score=scores)))
