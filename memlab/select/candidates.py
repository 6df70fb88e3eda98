"""The first candidates of many queries as padded arrays, and runs with the chosen ones in front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from memlab.errors import at_least
from memlab.records import Run, strictly_decreasing
from memlab.retrieve.arrays import starts
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
    places = bench.documents(run.level).at(first["doc_id"])
    query = first["query_id"].rle_id().to_numpy()
    scores = first["score"].to_numpy()
    rank = first["rank"].to_numpy() - 1
    for start in range(0, int(query[-1]) + 1 if len(query) else 0, CHUNK):
        inside = (query >= start) & (query < start + CHUNK)
        cell = query[inside] - start, rank[inside]
        shape = (int(cell[0].max()) + 1, int(cell[1].max()) + 1)
        at, mask, relevance = np.zeros(shape, np.int64), np.zeros(shape, bool), np.full(shape, np.nan)
        at[cell], mask[cell], relevance[cell] = places[inside], True, scores[inside]
        low = np.nanmin(relevance, axis=1, keepdims=True)
        spread = np.nanmax(relevance, axis=1, keepdims=True) - low
        scaled = np.divide(relevance - low, spread, out=np.ones(shape), where=spread > 0)
        yield start + np.arange(shape[0]), Candidates(at, mask, np.where(mask, scaled, 0.0))


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
    query = run.frame["query_id"].rle_id().to_numpy().astype(np.int64)
    key = np.arange(len(query)) + 2 * len(query) * query
    first = starts(query) if len(query) else np.zeros(0, np.int64)
    for begin, choice in zip(first, choices, strict=True):
        key[begin + choice] = len(query) * (2 * int(query[begin]) - 1) + np.arange(len(choice))
    # Nearly in order as it is, which a stable sort makes use of.
    documents = run.frame["doc_id"].gather(np.argsort(key, kind="stable"))
    scores = strictly_decreasing(1.0 / run.frame["rank"].to_numpy(), query)
    return bench.show(replace(run, frame=run.frame.with_columns(documents, score=scores)))
