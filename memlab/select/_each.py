"""One query's candidates after another, for libraries that choose for one query at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memlab.records import Run
from memlab.retrieve.bench import Bench
from memlab.select._candidates import chunks


def each(run: Run, bench: Bench, n: int, *, task: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Go through a run's queries: places of the first ``n`` candidates among the documents, and their relevance.

    :param task: what the progress bar says; it shows for five hundred queries and more.
    :returns: places (c,) and relevance (c,) scaled to [0, 1] within the query, best first.
    """
    from tqdm.auto import tqdm

    n_queries = run.frame["query_id"].n_unique()
    with tqdm(total=n_queries, desc=task, disable=n_queries < 500) as bar:
        for _, some in chunks(run, bench, n):
            for at, mask, relevance in zip(some.at, some.held, some.relevance, strict=True):
                yield at[mask], relevance[mask]
                bar.update()
