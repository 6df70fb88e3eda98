"""From score matrices to a Run, without a loop over queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from memlab.errors import DataError
from memlab.records import Level, Run, run_from_scores, top
from memlab.retrieve.bench import Bench


def rank(bench: Bench, scored: Iterable[tuple[np.ndarray, slice, np.ndarray]], *, level: Level, k: int) -> Run:
    """Rank the documents of each scope for its queries; ties stay in the scope's order of time.

    :param scored: for each scope the rows of its queries, the place of its documents, and scores (q, n).
    :raises DataError: when ``k`` is not positive.
    """
    if k < 1:
        raise DataError(f"k is {k}; a ranking needs at least one place")
    rows, documents, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for queries, span, scores in scored:
        row, column = top(scores, k)
        rows.append(queries[row])
        documents.append(span.start + column)
        values.append(scores[row, column])
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    query_ids = bench.queries["query_id"].to_numpy()[row[order]]
    doc_ids = bench.documents(level).ids[np.concatenate(documents)[order]]
    run = run_from_scores(query_ids, doc_ids, np.concatenate(values)[order].astype(np.float64), level=level, k=k)
    return bench.show(run)
