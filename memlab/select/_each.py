"""One query's candidates after another, for what chooses for one query at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from memlab.records import Run
from memlab.retrieve.bench import Bench
from memlab.select._candidates import chunks, reordered


def each(run: Run, bench: Bench, n: int, choose: Callable[[np.ndarray, np.ndarray], np.ndarray], *, task: str) -> Run:
    """Put what is chosen of each query's first ``n`` candidates in front, in the order in which it was chosen.

    :param choose: takes unit rows (c, d) and relevance (c,) scaled to [0, 1] within the query, best first; gives
        places among them.
    :param task: what the progress bar says; it shows for five hundred queries and more.
    """
    from tqdm.auto import tqdm

    vectors, chosen = bench.documents(run.level).vectors(), list[np.ndarray]()
    n_queries = run.frame["query_id"].n_unique()
    with tqdm(total=n_queries, desc=task, disable=n_queries < 500) as bar:
        for _, some in chunks(run, bench, n):
            for at, mask, relevance in zip(some.at, some.held, some.relevance, strict=True):
                chosen.append(choose(vectors[at[mask]], relevance[mask]))
                bar.update()
    return reordered(run, bench, chosen)
