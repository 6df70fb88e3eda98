"""Coverage: a candidate is worth what it adds to the parts of the question that are covered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import check_at_least, check_between
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.decompose import split_questions
from memlab.retrieve.ranking import min_max_scale, require_turn_run
from memlab.retrieve.subqueries import search_subqueries
from memlab.select.candidates import candidates_by_query, reorder_run


@stage
def coverage(
    run: Run, bench: Bench, *, k: int = 20, candidates: int = 100, lambda_: float = 0.5
) -> Run:
    """Greedily maximise λ · relevance + (1 − λ) · coverage of the question's parts.

    The parts of a question are its words, weighted by their idf in the scope, and, where it
    compares or lists, its facets, each searched on its own (``hybrid``, or ``bm25`` without an
    encoder). A candidate matches a word as BM25 counts it, and a facet by its score in that search,
    both from 0 to 1. A part is covered by the best match among what is taken: facility location,
    which is monotone and submodular, so that the greedy choice reaches at least 1 − 1/e of the
    optimum. Once all parts are covered, relevance alone decides. Relevance is the run's score
    scaled to [0, 1] within the query; all parts together weigh 1, words and facets half each where
    there are both.

    :param k: how many to take; what is not taken follows in its old order.
    :param candidates: how many of the run's first documents to choose from.
    :param lambda_: 1 is pure relevance, 0 pure coverage.
    :raises DataError: for a parameter out of range, or a run of sessions.

    Source: Lin and Bilmes, A class of submodular functions for document summarization (ACL 2011).

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder=None)
    >>> plain = memlab.retrieve.bm25(bench)
    >>> memlab.select.coverage(plain, bench, lambda_=1.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    require_turn_run(run, "coverage")
    check_between(0, 1, lambda_=lambda_)
    check_at_least(1, k=k)
    first = list(candidates_by_query(run, bench, candidates))
    matches = _match_question_parts(run, bench, [at for at, _ in first])
    worth = zip((relevance for _, relevance in first), matches, strict=True)
    return reorder_run(
        run,
        bench,
        [_choose_greedily(lambda_ * rel, (1 - lambda_) * match, k) for rel, match in worth],
    )


def _choose_greedily(relevance: np.ndarray, matches: np.ndarray, k: int) -> np.ndarray:
    """Take the best candidate again and again: (c,) and (c, parts) → min(k, c) places."""
    left, covered, chosen = relevance.copy(), np.zeros(matches.shape[1]), []
    for _ in range(min(k, len(left))):
        # Rounded, so that equal candidates tie whatever was summed before: the better rank goes
        # first.
        best = int((left + np.maximum(matches - covered, 0).sum(axis=1)).round(9).argmax())
        covered = np.maximum(covered, matches[best])
        left[best] = -np.inf
        chosen.append(best)
    return np.array(chosen)


def _match_question_parts(
    run: Run, bench: Bench, candidates: Sequence[np.ndarray]
) -> Iterator[np.ndarray]:
    """Say of each query how well its candidates match the parts of the question: (c, parts), each times its weight."""
    documents = bench.documents("turn")
    queries = run.frame.select(pl.col("query_id").unique(maintain_order=True))
    queries = bench.asked(queries, "row", "scope", "text", "timestamp")
    facets, matches = _search_facets(queries, bench), dict[str, Any]()
    for (query_id, row, scope), at in zip(
        queries.select("query_id", "row", "scope").rows(), candidates, strict=True
    ):
        span, kinds = slice(*documents.spans[scope]), []
        words = documents.words_in(span)
        if scope not in matches:
            matches[scope] = words.matches(*words.normalisation)
        if known := [
            words.number[word]
            for word in dict.fromkeys(bench.query_words[row])
            if word in words.number
        ]:
            share = words.idf[known] / words.idf[known].sum()
            kinds.append(matches[scope][known][:, at - span.start].toarray().T * share)
        if own := facets.get(query_id):
            kinds.append(
                np.array([[facet.get(place, 0.0) for facet in own] for place in at.tolist()])
                / len(own)
            )
        yield (
            np.concatenate([kind / len(kinds) for kind in kinds], axis=1)
            if kinds
            else np.zeros((len(at), 0))
        )


def _search_facets(queries: pl.DataFrame, bench: Bench) -> dict[str, list[dict[int, float]]]:
    """Search the facets of the questions that have some: of each, the scaled scores by place."""
    parts = split_questions(queries, bench)
    hits = search_subqueries(bench, parts, retriever="bm25" if bench.encoder is None else "hybrid")
    placed = hits.select("part", score=min_max_scale("score", over="part")).with_columns(
        at=bench.documents("turn").at(hits["doc_id"])
    )
    found = {
        part: dict(own.select("at", "score").rows()) for (part,), own in placed.group_by("part")
    }
    facets: dict[str, list[dict[int, float]]] = {}
    for part, query_id in enumerate(parts["query_id"]):
        facets.setdefault(query_id, []).append(found.get(part, {}))
    return facets
