"""Resonance, the opposite of diversity: what resembles the first hits comes nearer to them."""

from __future__ import annotations

import math

import numpy as np

from memlab.errors import DataError, check_at_least
from memlab.records import Run
from memlab.registry import Count, Weight, stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.documents import standardise_rows
from memlab.retrieve.rankings_from_scores import rerank_by_scores
from memlab.select.selection_candidates import candidates_by_query

TENTH = 10
"""Rank of the hit that the first one has to stand clear of."""


@stage
def resonate(
    run: Run, bench: Bench, *, seeds: Count = 5, weight: Weight = 0.25, margin: Weight = 2.0
) -> Run:
    """Add to each score how similar the candidate is to the nearest of the first hits.

    Evidence items of one question resemble each other: where the first hits hold some, what
    resembles them is likely to be more. Both the scores and the similarities are standardised over
    the candidates of the query, so that a weight means the same after any stage. Similarity is the
    cosine of speaker-centred vectors (:mod:`memlab.embed.speaker_centring`). No document is
    compared with itself or with a copy, so that a first hit gains by the others alone. Documents
    that the run does not hold are not brought in.

    Where the first hit hardly stands out, the first hits are often wrong, and what resembles them
    is wrong too: such a query keeps its ranking. Defaults were chosen on ``data/train``.

    :param seeds: how many of the first hits the candidates are compared with.
    :param weight: of the similarity, against 1 for the score; 0 leaves the run as it is.
    :param margin: by how many standard deviations of the candidates' scores the first must lie
        above the tenth (the last, of fewer); 0: every query is reranked.
    :raises DataError: for ``seeds`` below 1, a weight or margin that is negative or infinite, or
        without embeddings.

    Source: the cluster hypothesis, van Rijsbergen, Information Retrieval (1979), ch. 3; similarity
    to the first hits as in Rocchio's feedback (1971), without a second search.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench, k=20)
    >>> nearer = memlab.select.resonate(plain, bench)
    >>> nearer.frame.height == plain.frame.height, nearer.frame.equals(plain.frame)
    (True, False)
    """
    check_at_least(1, seeds=seeds)
    for option_name, option_value in (("weight", weight), ("margin", margin)):
        check_at_least(0, **{option_name: option_value})
        if math.isinf(option_value):
            raise DataError(f"{option_name} is {option_value}; expected a finite number")
    vectors = bench.documents(run.level).speaker_centred()
    if weight == 0:
        return run
    scores = run.frame["score"].to_numpy().copy()
    query_start = 0
    for places, relevance in candidates_by_query(run, bench):
        query_end = query_start + len(places)
        own_scores = _standardise_values(relevance)
        if own_scores[0] - own_scores[:TENTH][-1] >= margin:
            similarity = _similarity_to_nearest_first_hit(vectors[places], seeds)
            scores[query_start:query_end] = own_scores + weight * _standardise_values(similarity)
        query_start = query_end
    return rerank_by_scores(run, bench, run.frame.with_columns(score=scores))


def _standardise_values(values: np.ndarray) -> np.ndarray:
    """Give the values (n,) mean 0 and standard deviation 1; equal ones give zeros."""
    return standardise_rows(values[None])[0]


def _similarity_to_nearest_first_hit(candidate_vectors: np.ndarray, n_first: int) -> np.ndarray:
    """Give the similarity of each document to the nearest of the first, copies aside: (n,).

    A document without such a neighbour gets the mean of the others, and so neither gains nor loses.

    :param candidate_vectors: (n, d) unit rows, best first.
    """
    # In float64 and rounded, so that equal texts are equally similar whatever the number of pairs.
    exact_vectors = candidate_vectors.astype(np.float64)
    similarity = (exact_vectors @ exact_vectors[:n_first].T).round(6)
    similarity[similarity >= 1] = -np.inf
    nearest = similarity.max(axis=1)
    is_compared = np.isfinite(nearest)
    if not is_compared.any():
        return np.zeros(len(nearest))
    nearest[~is_compared] = nearest[is_compared].mean()
    return nearest
