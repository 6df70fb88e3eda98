"""Position-aware blending: a reranker may say more, the further down retrieval has put a document."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import polars as pl

from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import reranked as ranked_again
from memlab.retrieve.ranking import scaled

FIRST, NEXT = 3, 10


def position_aware(
    run: Run, reranked: Run, bench: Bench, *, weights: Sequence[float] = (0.75, 0.60, 0.40), by: str = "score"
) -> Run:
    """Blend a ranking with what a reranker made of it: w · retrieval + (1 − w) · reranker, w by the retrieval's rank.

    A reranker that is wrong with confidence can bury an exact match. Here the first three documents keep three
    quarters of their retrieval score, while among the many further down the reranker decides.

    Both lists' scores are scaled to [0, 1] within the query. qmd takes 1 / rank for the retrieval, which forgets how
    close the second came to the first and lets the reranker overrule all but the first few; with the rerankers and
    datasets at hand the scaled scores lost less. A document that the reranker has dropped gets 0 from
    it; one that only the reranker brings stays out, for there is no retrieval to weigh it with.

    :param run: the retrieval, whose ranks give the weights.
    :param reranked: the same candidates in the reranker's order.
    :param weights: of the retrieval in places 1 to 3, in 4 to 10, and below.
    :param by: what a place in the retrieval is worth: ``score`` for its scaled score, ``rank`` for 1 / rank.
    :raises DataError: for other than three weights in [0, 1], an unknown ``by``, or runs of different levels.

    Source: the search tool qmd, "position-aware blending".

    >>> import numpy as np
    >>> from memlab import retrieve, sample
    >>> from memlab.rerank import light, position_aware
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> plain = retrieve.bm25(bench)
    >>> blended = position_aware(plain, light(plain, bench), bench, weights=(1, 1, 1))
    >>> blended.frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    if len(weights) != 3 or not all(isfinite(w) and 0 <= w <= 1 for w in weights):
        raise DataError(f"weights={tuple(weights)}; give three in [0, 1]: for places 1 to 3, 4 to 10, and below")
    if by not in ("rank", "score"):
        raise DataError(f"by is {by!r}; choose 'rank' or 'score'")
    if run.level != reranked.level:
        raise DataError(f"the run ranks {run.level}s and the reranked one {reranked.level}s; blend at one level")
    second = reranked.frame.select("query_id", "doc_id", reranker=scaled("score"))
    place = pl.col("rank")
    w = pl.when(place <= FIRST).then(weights[0]).when(place <= NEXT).then(weights[1]).otherwise(weights[2])
    retrieval = 1 / place if by == "rank" else scaled("score")
    blended = (
        run.frame.with_columns(w=w, retrieval=retrieval)
        .join(second, on=["query_id", "doc_id"], how="left", maintain_order="left")
        .with_columns(pl.col("reranker").fill_null(0.0))
        .with_columns(score=pl.col("w") * pl.col("retrieval") + (1 - pl.col("w")) * pl.col("reranker"))
    )
    return ranked_again(run, bench, blended)
