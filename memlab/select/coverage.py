"""Coverage: a document is worth what it adds to the parts of the question, not what it differs from its neighbours."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.select._candidates import chunks, reordered
from memlab.select._parts import parts_and_matches


@stage
def coverage(
    run: Run,
    bench: Bench,
    *,
    k: int = 20,
    candidates: int = 100,
    lambda_: float = 0.5,
    repeat: float = 0.0,
    retriever: str = "hybrid",
) -> Run:
    """Take, ``k`` times, the candidate of best λ · relevance + (1 − λ) · what it adds to the coverage of the question.

    The parts of a question are its words, weighted by their idf in the scope, and, where it compares or lists, its
    facets, each searched on its own (:func:`parts` shows them). A part is covered by the best match among what is
    taken; with ``repeat``, the second match counts that much of its own beside it, the third that much again. Once all
    parts are covered, relevance alone goes on choosing: "how many doctors did I see?" needs every turn that matches
    its only part.

    Relevance is the run's score scaled to [0, 1] within the query; all parts together weigh 1. The objective is
    monotone and submodular, so that the greedy choice reaches at least 1 − 1/e of the best there is.

    :param k: how many to take; what is not taken follows in its old order.
    :param candidates: how many of the run's first documents to choose from.
    :param lambda_: 1 is pure relevance, 0 pure coverage.
    :param repeat: in [0, 1], what a further match of a part is worth beside the one before: 0 is facility location,
        with 1 nothing saturates.
    :param retriever: what searches facets: ``dense``, ``bm25``, ``hybrid`` or ``combsum``.
    :raises DataError: for a parameter out of range, or a run of sessions.

    Source: Lin and Bilmes, A class of submodular functions for document summarization (ACL 2011).

    >>> from memlab import datasets, retrieve
    >>> from memlab.select.coverage import coverage
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder=None)
    >>> plain = retrieve.bm25(bench)
    >>> coverage(plain, bench, lambda_=1.0, retriever="bm25").frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    if not 0 <= lambda_ <= 1:
        raise DataError(f"lambda_ is {lambda_}; it lies between 0 (pure coverage) and 1 (pure relevance)")
    if not 0 <= repeat <= 1:
        raise DataError(f"repeat is {repeat}; it lies between 0 (one match is enough) and 1 (each counts in full)")
    if k < 1:
        raise DataError(f"k is {k}; take at least one")
    known, matches = parts_and_matches(run, bench, candidates, retriever=retriever)
    number = run.frame.select(pl.col("query_id").unique(maintain_order=True)).with_row_index("query")
    weighted = matches.join(known, on=["query_id", "part"], maintain_order="left").join(
        number, on="query_id", maintain_order="left"
    )
    query, part, rank = (weighted[column].to_numpy() for column in ("query", "part", "rank"))
    worth = (weighted["weight"] * weighted["match"]).to_numpy()
    chosen: list[np.ndarray] = []
    for numbers, some in chunks(run, bench, candidates):
        inside = (query >= numbers[0]) & (query <= numbers[-1])
        matched = np.zeros((*some.held.shape, int(part[inside].max(initial=-1)) + 1))
        matched[query[inside] - numbers[0], rank[inside] - 1, part[inside]] = worth[inside]
        relevance = np.where(some.held, lambda_ * some.relevance, -np.inf)
        taken = _greedy(relevance, (1 - lambda_) * matched, k, repeat)
        chosen.extend(row[:n] for row, n in zip(taken, some.held.sum(axis=1), strict=True))
    return reordered(run, bench, chosen)


def parts(run: Run, bench: Bench, *, candidates: int = 100, retriever: str = "hybrid") -> pl.DataFrame:
    """Show the parts that :func:`coverage` covers.

    :returns: ``query_id``, ``part``, ``text``, ``kind`` (``word``, stemmed, or ``facet``), ``weight`` (sums to 1
        within the question) and ``best``, the best match among the candidates; questions without parts have no rows.
    """
    known, matches = parts_and_matches(run, bench, candidates, retriever=retriever)
    best = matches.group_by("query_id", "part").agg(best=pl.col("match").max())
    return known.join(best, on=["query_id", "part"], how="left", maintain_order="left").with_columns(
        pl.col("best").fill_null(0.0)
    )


def covered(matches: np.ndarray, repeat: float) -> np.ndarray:
    """Say how well documents cover parts: the best match, plus ``repeat`` times the second, ``repeat``² the third …

    :param matches: (…, documents, parts) not negative.
    :returns: (…, parts).

    >>> import numpy as np
    >>> from memlab.select.coverage import covered
    >>> covered(np.array([[0.5], [1.0], [0.2]]), 0.5).tolist()
    [1.3]
    """
    ordered = -np.sort(-matches, axis=-2)
    return np.einsum("...dp,d->...p", ordered, float(repeat) ** np.arange(ordered.shape[-2]))


def gains(matches: np.ndarray, taken: np.ndarray, repeat: float) -> np.ndarray:
    """Say what each candidate would add to the coverage of all parts by what is taken.

    A match takes its place in order; those below move down by one, and lose 1 − ``repeat`` of what they count.

    :param matches: (q, candidates, parts).
    :param taken: (q, n taken, parts), each part's matches in decreasing order.
    :returns: (q, candidates).
    """
    discount = float(repeat) ** np.arange(taken.shape[1] + 1)
    place = (taken[:, None] >= matches[:, :, None]).sum(axis=2)
    counted = np.pad(taken * discount[:-1, None], ((0, 0), (0, 1), (0, 0)))
    below = counted[:, ::-1].cumsum(axis=1)[:, ::-1]
    return (discount[place] * matches - (1 - repeat) * np.take_along_axis(below, place, axis=1)).sum(axis=2)


def _greedy(relevance: np.ndarray, matches: np.ndarray, k: int, repeat: float) -> np.ndarray:
    """Take the best candidate again and again: (q, c) and (q, c, p) → (q, min(k, c)) columns."""
    relevance, rows = relevance.copy(), np.arange(len(relevance))
    taken = np.zeros((len(rows), 0, matches.shape[2]))
    order = np.zeros((len(rows), min(k, relevance.shape[1])), np.int64)
    for step in range(order.shape[1]):
        # Rounded, so that equal candidates tie whatever was summed before: the better rank goes first.
        best = np.round(relevance + gains(matches, taken, repeat), 9).argmax(axis=1)
        order[:, step] = best
        relevance[rows, best] = -np.inf
        taken = -np.sort(-np.concatenate([taken, matches[rows, best][:, None]], axis=1), axis=1)
    return order
