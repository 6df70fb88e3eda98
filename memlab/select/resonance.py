"""Resonance, the opposite of diversity: a candidate that resembles the first hits comes nearer to them."""

from __future__ import annotations

import math

import numpy as np

from memlab.errors import DataError, check_at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.documents import standardise_rows
from memlab.retrieve.ranking import rerank_by_scores
from memlab.select.candidates import candidates_by_query


@stage
def resonate(run: Run, bench: Bench, *, seeds: int = 5, weight: float = 0.25) -> Run:
    """Add to each score how similar the candidate is to the nearest of the first hits.

    Evidence items of one question resemble each other: where the first hits hold some, what
    resembles them is likely to be more. Both the scores and the similarities are standardised over
    the candidates of the query, so that the weight means the same after any stage. Similarity is
    the cosine of speaker-centred vectors (:mod:`memlab.embed.speaker_centring`). No document is
    compared with itself or with a copy, so that a first hit gains by the others alone. Documents
    that the run does not hold are not brought in.

    :param seeds: how many of the first hits the candidates are compared with.
    :param weight: of the similarity, against 1 for the score; 0 leaves the run as it is.
    :raises DataError: for ``seeds`` below 1, a weight that is negative or infinite, or without
        embeddings.

    Source: van Rijsbergen, Information Retrieval (1979), ch. 3, the cluster hypothesis; similarity
    to the first hits as in Rocchio's feedback, without a second search.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench, k=20)
    >>> nearer = memlab.select.resonate(plain, bench)
    >>> nearer.frame.height == plain.frame.height, nearer.frame.equals(plain.frame)
    (True, False)
    """
    check_at_least(1, seeds=seeds)
    check_at_least(0, weight=weight)
    if math.isinf(weight):
        raise DataError(f"weight is {weight}; expected a finite number")
    vectors = bench.documents(run.level).speaker_centred()
    if weight == 0:
        return run
    scores = [np.zeros(0)]
    for at, relevance in candidates_by_query(run, bench):
        similarity = _similarity_to_first(vectors[at], seeds)
        both = standardise_rows(np.stack([relevance, similarity]))
        scores.append(both[0] + weight * both[1])
    columns = run.frame.select("query_id", "doc_id", score=np.concatenate(scores))
    return rerank_by_scores(run, bench, columns)


def _similarity_to_first(vectors: np.ndarray, seeds: int) -> np.ndarray:
    """Give the similarity of each document to the nearest of the first that is neither itself nor a copy: (n,).

    A document without such a neighbour gets the mean of the others, and so neither gains nor loses.

    :param vectors: (n, d) unit rows, best first.
    """
    # In float64 and rounded, so that equal texts are equally similar whatever the number of pairs.
    wide = vectors.astype(np.float64)
    similarity = (wide @ wide[:seeds].T).round(6)
    similarity[similarity >= 1] = -np.inf
    nearest = similarity.max(axis=1)
    compared = np.isfinite(nearest)
    if not compared.any():
        return np.zeros(len(nearest))
    nearest[~compared] = nearest[compared].mean()
    return nearest
