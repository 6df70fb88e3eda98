"""Position-aware blending: a reranker counts more, the further down a document was retrieved."""

from __future__ import annotations

import polars as pl

from memlab.errors import DataError
from memlab.pipelines import Transforms, apply_transforms
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve import rankings_from_scores
from memlab.retrieve.bench import Bench
from memlab.retrieve.rankings_from_scores import min_max_scaled_expr


def blend_by_position(run: Run, reranked: Run, bench: Bench) -> Run:
    """Blend a ranking with what a reranker made of it: w · retrieval + (1 − w) · reranker, scores
    scaled to [0, 1].

    A reranker that is wrong with confidence can bury an exact match: w is .75 for the first three
    of the retrieval, .6 for the fourth to tenth and .4 below. A document that the reranker dropped
    gets 0 from it; one that only the reranker brings stays out.

    :param run: the retrieval, whose ranks give the weights.
    :param reranked: the same candidates in the reranker's order.
    :raises DataError: for runs of different levels.

    Source: the search tool qmd, "position-aware blending", with scaled scores in place of 1 / rank.
    """
    if run.level != reranked.level:
        raise DataError(
            f"the run ranks {run.level}s and the reranked one {reranked.level}s; blend at one level"
        )
    reranked_rows = reranked.frame.select(
        "query_id", "doc_id", reranker=min_max_scaled_expr("score")
    )
    first_weight = (
        pl.when(pl.col("rank") <= 3).then(0.75).when(pl.col("rank") <= 10).then(0.6).otherwise(0.4)
    )
    blended_score = first_weight * min_max_scaled_expr("score") + (1 - first_weight) * pl.col(
        "reranker"
    ).fill_null(0.0)
    blended_rows = run.frame.join(
        reranked_rows, on=["query_id", "doc_id"], how="left", maintain_order="left"
    )
    return rankings_from_scores.rerank_by_scores(
        run, bench, blended_rows.with_columns(score=blended_score)
    )


@stage
def blend(run: Run, bench: Bench, *, reranker: Transforms = "light") -> Run:
    """Blend a reranker with the ranking; documents that were ranked high keep more of their score.

    :param reranker: a stage that reranks, as it would be written in a pipeline:
        ``"light(half_life_hours=24.0)"``.

    >>> import memlab
    >>> str(memlab.pipeline("bm25 | blend(reranker='light(window=2)')"))
    "bm25 | blend(reranker='light(window=2)')"
    """
    return blend_by_position(run, apply_transforms(reranker, run, bench), bench)
