"""Dense retrieval: cosine of query and document embeddings."""

from __future__ import annotations

from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.cosine import cosines
from memlab.retrieve.documents import best_per_group
from memlab.retrieve.passages import best_passage_scores, cut_passages, passage_vectors
from memlab.retrieve.rankings_from_scores import Scored, rank


@stage
def dense(bench: Bench, *, level: Level = "turn", k: int = 200) -> Run:
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
    return rank(bench, dense_scores(bench, level=level), level=level, k=k)


def dense_scores(bench: Bench, *, level: Level) -> Scored:
    """Give the cosines of each scope, see :data:`memlab.retrieve.rankings_from_scores.Scored`."""
    vectors, row = passage_vectors(bench)
    session = bench.documents("turn").session
    for (rows, span), (_, turns) in zip(bench.by_scope(level), bench.by_scope("turn"), strict=True):
        place, start = cut_passages(bench).within(turns)
        read = vectors[turns] if place.stop - place.start == len(start) else vectors[row[place]]
        scores = best_passage_scores(cosines(bench.query_vectors[rows], read), start)
        if level == "session":
            scores = best_per_group(scores, session[turns] - span.start, span.stop - span.start)
        yield rows, span, scores
