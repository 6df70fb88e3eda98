"""Greedy selection for many queries at once: maximal marginal relevance, sums of distances,
determinants.

Each step takes one candidate for every query of a batch, so that few calls do the work of many.
Queries do not meet: what is chosen for one does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from memlab.select.selection_candidates import QueryCandidates

Strategy = Literal["mmr", "dpp", "msd"]

_BATCH_FLOATS = 1 << 18
"""Of the vectors of a batch, one megabyte: larger ones leave a core's own cache, smaller ones take
more calls.
"""

_EPSILON = float(np.finfo(np.float32).eps)

# Share of a candidate's own volume below which float32 cannot tell what it adds from nothing.
_NO_VOLUME = 1e-5


class _CandidateBatch(NamedTuple):
    """The candidates of b queries, filled up to the c of the longest.

    :param vectors: of each query (c of its own, d) float32 unit rows.
    :param places: of each query its part of ``cosines``.
    :param cosines: (b, c) float32, the similarities that were asked for last.
    :param relevance: (b, c) float32.
    :param taken: (b, c) bool, what cannot be taken: at first what fills up.
    :param steps: how many to take.
    """

    vectors: list[np.ndarray]
    places: list[np.ndarray]
    cosines: np.ndarray
    relevance: np.ndarray
    taken: np.ndarray
    steps: int

    def cosines_with_picks(self, picked_columns: np.ndarray) -> np.ndarray:
        """Give the cosines of one candidate of each query, (b,), with all: (b, c), until it is
        called again.
        """
        for query_vectors, cosine_row, picked_row in zip(
            self.vectors, self.places, picked_columns.tolist(), strict=True
        ):
            if picked_row < len(query_vectors):
                np.dot(query_vectors, query_vectors[picked_row], out=cosine_row)
        return self.cosines


def choose_diverse_ranks(
    candidates: Sequence[QueryCandidates],
    vectors: np.ndarray,
    *,
    strategy: Strategy,
    diversity: float,
    k: int,
) -> list[np.ndarray]:
    """Choose for each query up to ``k`` of its candidates: their ranks from 0, in the order in
    which they are taken.

    A determinant that is used up ends a choice sooner: from there on the order would say how
    float32 rounds.

    :param vectors: (n, d) float32 unit rows.
    :param diversity: 0 is relevance alone, 1 is diversity alone.

    Source: Carbonell and Goldstein (SIGIR 1998) for ``mmr``; Borodin, Lee and Ye (PODS 2012) for
    ``msd``; Chen, Zhang and Zhou (NeurIPS 2018), algorithm 1, for ``dpp``. The definitions of
    scores, weights and similarities are those of the library pyversity 0.2.

    >>> import numpy as np
    >>> from memlab.select.greedy_selection import choose_diverse_ranks
    >>> from memlab.select.selection_candidates import QueryCandidates
    >>> asked = [QueryCandidates(np.array([0, 1, 2]), np.array([1.0, 0.9, 0.0]))]
    >>> vectors = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    >>> (ranks,) = choose_diverse_ranks(asked, vectors, strategy="mmr", diversity=0.6, k=2)
    >>> ranks.tolist()
    [0, 2]
    """
    take_candidates = {
        "mmr": _pick_by_marginal_relevance,
        "msd": _pick_by_distance_sum,
        "dpp": _pick_by_volume,
    }[strategy]
    choices: list[np.ndarray] = [np.zeros(0, np.int64)] * len(candidates)
    candidate_counts = [len(query_candidates.places) for query_candidates in candidates]
    if not candidate_counts:
        return []
    used_places, vector_slots = np.unique(
        np.concatenate([query_candidates.places for query_candidates in candidates]),
        return_inverse=True,
    )
    unit_vectors = _scale_rows_to_unit(vectors[used_places])
    rows_by_query = np.split(vector_slots, np.cumsum(candidate_counts)[:-1])
    # Products this small gain nothing from a second thread, and wait for it.
    with ThreadpoolController().limit(limits=1, user_api="blas"), np.errstate(all="ignore"):
        for batch_queries in _query_batches_of_similar_size(candidate_counts, vectors.shape[1]):
            batch_vectors = [
                unit_vectors.take(rows_by_query[query_number], axis=0)
                for query_number in batch_queries
            ]
            relevance = [candidates[query_number].relevance for query_number in batch_queries]
            batch = _pad_to_batch(batch_vectors, relevance, k)
            picked_rows, stable_counts = take_candidates(batch, diversity)
            for query_number, query_picks, stable_count in zip(
                batch_queries, picked_rows, stable_counts, strict=True
            ):
                choices[query_number] = query_picks[
                    : min(stable_count, candidate_counts[query_number])
                ]
    return choices


def _query_batches_of_similar_size(
    candidate_counts: list[int], vector_dim: int
) -> Iterator[list[int]]:
    """Cut queries into batches of similar numbers of candidates, the longest first."""
    largest_first = np.argsort(-np.array(candidate_counts, np.int64), kind="stable").tolist()
    batch_start = 0
    while batch_start < len(largest_first):
        batch_size = max(
            1, _BATCH_FLOATS // (candidate_counts[largest_first[batch_start]] * vector_dim)
        )
        yield largest_first[batch_start : batch_start + batch_size]
        batch_start += batch_size


def _pad_to_batch(
    query_vectors: list[np.ndarray], relevances: list[np.ndarray], max_picks: int
) -> _CandidateBatch:
    """Put the candidates of some queries, the longest first, into arrays of one width."""
    batch_shape = len(query_vectors), len(query_vectors[0])
    relevance = np.zeros(batch_shape, np.float32)
    is_taken = np.ones(batch_shape, bool)
    for row, query_relevance in enumerate(relevances):
        relevance_row = query_relevance.astype(np.float32)
        relevance[row, : len(relevance_row)] = relevance_row
        is_taken[row, : len(relevance_row)] = False
    cosines = np.zeros(batch_shape, np.float32)
    cosine_rows = []
    for cosine_row, unit_vectors in zip(cosines, query_vectors, strict=True):
        cosine_rows.append(cosine_row[: len(unit_vectors)])
    return _CandidateBatch(
        query_vectors, cosine_rows, cosines, relevance, is_taken, min(max_picks, batch_shape[1])
    )


def _exponentials_of_standardised_relevance(relevance: np.ndarray, strength: float) -> np.ndarray:
    """Give exp(strength · z) of relevances (c,), standardised over the candidates of a query."""
    mean_relevance = float(relevance.mean())
    relevance_spread = float(relevance.std() + _EPSILON)
    weights: np.ndarray = np.exp(strength * (relevance - mean_relevance) / relevance_spread)
    return weights


def _scale_rows_to_unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows (n, d) to length 1; zeros stay zeros."""
    row_lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit_vectors: np.ndarray = vectors / np.maximum(row_lengths, _EPSILON)
    return unit_vectors


class _Picks(NamedTuple):
    """What was picked for each query of a batch.

    :param columns: (b, steps) candidates, in the order in which they were picked.
    :param n_reliable: (b,) how many of them count.
    """

    columns: np.ndarray
    n_reliable: np.ndarray


def _pick_by_marginal_relevance(batch: _CandidateBatch, diversity: float) -> _Picks:
    """Take what is relevant and unlike the nearest that was taken."""
    nearest = np.full(batch.relevance.shape, -np.inf, np.float32)

    def nearest_similarity(similarity: np.ndarray) -> np.ndarray:
        np.maximum(similarity, 0.0, out=similarity)
        np.minimum(similarity, 1.0, out=similarity)
        np.maximum(nearest, similarity, out=nearest)
        return nearest

    return _pick_by_penalised_relevance(batch, 1.0 - diversity, nearest_similarity)


def _pick_by_distance_sum(batch: _CandidateBatch, diversity: float) -> _Picks:
    """Take what is relevant and far from all that were taken."""
    distance = np.zeros(batch.relevance.shape, np.float32)

    def negative_distance_sum(similarity: np.ndarray) -> np.ndarray:
        np.maximum(similarity, -1.0, out=similarity)
        np.minimum(similarity, 1.0, out=similarity)
        np.add(distance, 1.0 - similarity, out=distance)
        return -distance

    return _pick_by_penalised_relevance(batch, 1.0 - diversity, negative_distance_sum)


def _pick_by_penalised_relevance(
    batch: _CandidateBatch, relevance_share: float, penalty: Callable[[np.ndarray], np.ndarray]
) -> _Picks:
    """Take the most relevant, then step by step the best of share · relevance − (1 − share) ·
    penalty.

    :param penalty: takes the similarities with what was taken last, (b, c), and gives what they
        cost.
    """
    query_rows = np.arange(len(batch.relevance))
    picked_rows = np.zeros((len(query_rows), batch.steps), np.int64)
    relevance = relevance_share * batch.relevance
    relevance[batch.taken] = -np.inf
    picked_rows[:, 0] = np.where(batch.taken, -np.inf, batch.relevance).argmax(axis=1)
    for pick_number in range(1, batch.steps):
        last_picks = picked_rows[:, pick_number - 1]
        relevance[query_rows, last_picks] = -np.inf
        scores = relevance - (1.0 - relevance_share) * penalty(batch.cosines_with_picks(last_picks))
        picked_rows[:, pick_number] = scores.argmax(axis=1)
    return _Picks(picked_rows, np.full(len(query_rows), batch.steps))


def _pick_by_volume(batch: _CandidateBatch, diversity: float) -> _Picks:
    """Take what adds most volume to all that were taken."""
    weights = np.zeros(batch.relevance.shape, np.float32)
    for row, query_vectors in enumerate(batch.vectors):
        query_relevance = batch.relevance[row, : len(query_vectors)]
        weights[row, : len(query_vectors)] = _exponentials_of_standardised_relevance(
            query_relevance, 1 - diversity
        )
    query_rows = np.arange(len(weights))
    picked_rows = np.zeros((len(query_rows), batch.steps), np.int64)
    volume_gains = np.zeros((len(query_rows), batch.steps), np.float32)
    volume_left = (weights * weights + _EPSILON).astype(np.float32)
    projections = np.zeros((*weights.shape, batch.steps), np.float32)
    is_taken = batch.taken.copy()
    for pick_number in range(batch.steps):
        volume_left[is_taken] = -np.inf
        best_places = volume_left.argmax(axis=1)
        picked_rows[:, pick_number], volume_gains[:, pick_number] = (
            best_places,
            volume_left[query_rows, best_places],
        )
        is_taken[query_rows, best_places] = True
        if pick_number == batch.steps - 1:
            break
        query_vectors = (
            weights
            * batch.cosines_with_picks(best_places)
            * weights[query_rows, best_places][:, None]
        )
        earlier_projections = projections[:, :, :pick_number]
        query_vectors -= np.matmul(
            earlier_projections, earlier_projections[query_rows, best_places][:, :, None]
        )[:, :, 0]
        new_projection = query_vectors / (np.sqrt(volume_gains[:, pick_number])[:, None] + _EPSILON)
        projections[:, :, pick_number] = new_projection
        volume_left -= new_projection * new_projection
        np.maximum(volume_left, 0.0, out=volume_left)
    pick_weights = np.take_along_axis(weights, picked_rows, axis=1)
    return _Picks(picked_rows, _count_picks_with_volume(volume_gains, pick_weights))


def _count_picks_with_volume(volume_gains: np.ndarray, pick_weights: np.ndarray) -> np.ndarray:
    """Count the choices until a determinant is used up, of those with gains and weights (b, steps):
    (b,).
    """
    is_used_up = ~(volume_gains > _NO_VOLUME * pick_weights * pick_weights)
    return np.where(is_used_up.any(axis=1), is_used_up.argmax(axis=1), volume_gains.shape[1])
