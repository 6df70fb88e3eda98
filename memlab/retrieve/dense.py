"""Dense retrieval: cosine of query and document embeddings."""

from __future__ import annotations

from collections.abc import Iterator

from memlab.records import Level, Run
from memlab.registry import Count, stage
from memlab.retrieve.bench import Bench, rank_or_reuse
from memlab.retrieve.cosine import cosines
from memlab.retrieve.documents import best_score_per_group
from memlab.retrieve.passages import (
    best_passage_scores,
    cut_long_turns_into_passages,
    distinct_vectors_and_row_of_passage,
)
from memlab.retrieve.rankings_from_scores import ScopeScores, rank_scope_scores


@stage
def dense(bench: Bench, *, level: Level = "turn", k: Count = 200) -> Run:
    """Rank documents by the cosine of their embedding with the query's.

    A long turn ranks by its best passage, see :mod:`memlab.retrieve.passages`, and a session by its
    best turn: MiniLM reads 256 tokens, so the embedding of a whole session would be that of its
    beginning.

    :param k: places kept for each query.
    :raises DataError: without embeddings.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.dense(bench, k=3).frame["rank"].max()
    3
    """

    def rank() -> Run:
        return rank_scope_scores(bench, dense_scores(bench, level=level), level=level, k=k)

    return rank_or_reuse(bench, ("dense", level, k), rank)


def dense_scores(bench: Bench, *, level: Level) -> Iterator[ScopeScores]:
    """Score the documents of each scope by cosine: a block of scores each."""
    vectors, row_of_passage = distinct_vectors_and_row_of_passage(bench)
    session_of_turn = bench.documents("turn").session
    for (query_rows, document_span), (_, turn_span) in zip(
        bench.by_scope(level), bench.by_scope("turn"), strict=True
    ):
        passage_span, passage_starts = cut_long_turns_into_passages(bench).passage_span_and_starts(
            turn_span
        )
        passage_rows = (
            vectors[turn_span]
            if passage_span.stop - passage_span.start == len(passage_starts)
            else vectors[row_of_passage[passage_span]]
        )
        scores = best_passage_scores(
            cosines(bench.require_query_vectors()[query_rows], passage_rows), passage_starts
        )
        if level == "session":
            scores = best_score_per_group(
                scores,
                session_of_turn[turn_span] - document_span.start,
                document_span.stop - document_span.start,
            )
        yield ScopeScores(query_rows, document_span, scores)
