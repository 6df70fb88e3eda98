"""Dense retrieval: cosine of query and document embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.arrays import best_of, cosines
from memlab.retrieve.bench import Bench
from memlab.retrieve.passages import best_passages, passage_vectors, passages
from memlab.retrieve.ranking import by_path

if TYPE_CHECKING:
    from memlab.store import MemoryStore


@stage
def dense(bench: Bench, *, level: Level = "turn", k: int = 200, path: str = "exact") -> Run:
    """Rank documents by the cosine of their embedding with the query's.

    A long turn ranks by its best passage, see :mod:`memlab.retrieve.passages`, and a session by its best turn: MiniLM
    reads 256 tokens, so the embedding of a whole session would be that of its beginning.

    :param k: places kept for each query.
    :param path: ``exact`` for one matrix product a scope, ``indexed`` for LanceDB's vector index: turns only, of
        a long one its beginning.
    :raises DataError: without embeddings, or for another path.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.dense(bench, k=3).frame["rank"].max()
    3
    """
    return by_path(path, bench, dense_scores(bench, level=level), _search, level=level, k=k)


def dense_scores(bench: Bench, *, level: Level) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
    """Give the cosines of each scope: rows of the queries, place of the documents, scores (q, n) float32."""
    session = bench.documents("turn").session
    vectors, row = passage_vectors(bench, bench.header)
    if bench.query_vectors is None:
        raise DataError("the queries are not embedded; make the bench with an encoder")
    for (rows, span), (_, turns) in zip(bench.by_scope(level), bench.by_scope("turn"), strict=True):
        place, start = passages(bench).within(turns)
        read = vectors[turns] if place.stop - place.start == len(start) else vectors[row[place]]
        scores = best_passages(cosines(bench.query_vectors[rows], read), start)
        if level == "session":
            scores = best_of(scores, session[turns] - span.start, span.stop - span.start)
        yield rows, span, scores


def _search(bench: Bench, store: MemoryStore, k: int) -> pl.DataFrame:
    # An index searches what the store holds: reading the turns' vectors fills it.
    if bench.encoder is None or bench.query_vectors is None or bench.turn_vectors is None:
        raise DataError("the queries are not embedded; make the bench with an encoder")
    column = store.vectors.column(bench.encoder, header=bench.header)
    scopes = bench.queries["scope"].to_list()
    return store.search.by_vector(bench.query_vectors, column=column, dataset=bench.name, scopes=scopes, k=k)
