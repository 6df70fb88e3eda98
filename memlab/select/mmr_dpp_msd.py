"""Diversity: a candidate that resembles those already taken comes later. Three methods.

Candidates are compared by their speaker-centred vectors, see :mod:`memlab.embed.speaker_centring`;
with ``centred=False`` as they are encoded.
"""

from __future__ import annotations

from memlab.errors import check_at_least, check_between
from memlab.records import Run
from memlab.registry import Count, Share, stage
from memlab.retrieve.bench import Bench
from memlab.select.greedy_selection import Strategy, choose_diverse_ranks
from memlab.select.selection_candidates import (
    candidates_by_query,
    put_chosen_first,
    similarity_vectors,
)


@stage
def mmr(
    run: Run, bench: Bench, *, lambda_: Share = 0.7, k: Count = 50, centred: bool = True
) -> Run:
    """Maximal marginal relevance: λ · relevance − (1 − λ) · similarity to the nearest candidate
    that is taken.

    Relevance is the run's score scaled to [0, 1] within the query, so that λ means the same after
    any stage; similarity is the cosine of speaker-centred vectors, and 0 where it is negative.

    :param lambda_: 1 is pure relevance, 0 pure diversity.
    :param k: how many to take; what is not taken follows in its old order.
    :param centred: ``False`` compares candidates as they are encoded, speakers' names included.
    :raises DataError: for λ outside [0, 1], ``k`` below 1, or without embeddings.

    Source: Carbonell and Goldstein, The use of MMR (SIGIR 1998).

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench)
    >>> memlab.select.mmr(plain, bench, lambda_=1.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    check_between(0, 1, lambda_=lambda_)
    return _diversify_run(run, bench, "mmr", diversity=1 - lambda_, k=k, centred=centred)


@stage
def dpp(
    run: Run, bench: Bench, *, diversity: Share = 0.2, k: Count = 50, centred: bool = True
) -> Run:
    """Determinantal point process: greedily take the candidate that adds most volume to those
    taken.

    Greedy MAP inference over the kernel wᵢ · cos(i, j) · wⱼ with w = exp((1 − diversity) · z),
    where z is the run's score standardised over the query's candidates. MMR compares with the
    nearest document taken, a determinant with all of them together. A candidate that adds no
    volume, such as a copy, is not taken but follows in the old order.

    :param diversity: 0 is the ranking as it was, 1 pure diversity; ``k`` and ``centred`` as in
        :func:`mmr`.
    :raises DataError: for diversity outside [0, 1], ``k`` below 1, or without embeddings.

    Source: Chen, Zhang and Zhou, Fast greedy MAP inference for determinantal point process (NeurIPS
    2018).

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench)
    >>> memlab.select.dpp(plain, bench, diversity=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    return _diversify_run(run, bench, "dpp", diversity=diversity, k=k, centred=centred)


@stage
def msd(
    run: Run, bench: Bench, *, diversity: Share = 0.05, k: Count = 50, centred: bool = True
) -> Run:
    """Max-sum diversification: (1 − diversity) · relevance + diversity · Σ distance to all
    candidates that are taken.

    Relevance is as in :func:`mmr`, distance 1 − cosine of speaker-centred vectors. The sum grows
    with every document taken while relevance does not, so that late places go to outliers at almost
    any diversity: MMR is milder.

    :param diversity: 0 is the ranking as it was, 1 pure diversity; ``k`` and ``centred`` as in
        :func:`mmr`.
    :raises DataError: for diversity outside [0, 1], ``k`` below 1, or without embeddings.

    Source: Borodin, Lee and Ye, Max-sum diversification, monotone submodular functions and dynamic
    updates (PODS 2012).

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench)
    >>> memlab.select.msd(plain, bench, diversity=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    return _diversify_run(run, bench, "msd", diversity=diversity, k=k, centred=centred)


def _diversify_run(
    run: Run, bench: Bench, strategy: Strategy, *, diversity: float, k: int, centred: bool
) -> Run:
    check_between(0, 1, diversity=diversity)
    check_at_least(1, k=k)
    vectors = similarity_vectors(run, bench, centred=centred)
    if diversity == 0:
        return run
    candidates = list(candidates_by_query(run, bench))
    choices = choose_diverse_ranks(candidates, vectors, strategy=strategy, diversity=diversity, k=k)
    return put_chosen_first(run, bench, choices)
