"""Fusion of several rankings (``rrf``, ``hybrid``), or of several scores of turns and sessions
(``combsum``).

What an assistant says resembles a question more, and holds its answer less, than what the user
says: it repeats, in more words, what the user said, and goes on about it for pages. So where a
question is not about what the assistant said itself,
:func:`assistant_penalty_in_deviations` holds its turns back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import AfterValidator

from memlab.errors import DataError
from memlab.records import Level, Run, run_from_scores
from memlab.records.rankings import number_by_first_appearance
from memlab.registry import Count, Weight, stage
from memlab.retrieve.bench import Bench, cache_per_bench
from memlab.retrieve.bm25 import bm25, bm25_scores, estimate_absent_bm25_scores
from memlab.retrieve.dense import dense, dense_scores
from memlab.retrieve.documents import (
    NO_SCORES,
    MeanAndDeviation,
    best_score_per_group,
    estimate_mean_and_deviation_of_scope,
    lower_by_deviations,
    standardise_rows,
)
from memlab.retrieve.late_interaction import late_scores
from memlab.retrieve.rankings_from_scores import ScopeScores, rank_scope_scores
from memlab.text.question_patterns import question_patterns

ASSISTANT = 1.0
"""Standard deviations: of 0 to 2 on chats of ``data/train`` and a former sample.

See ``docs/evaluation/results.md``.
"""


@cache_per_bench
def is_assistant_turn(bench: Bench) -> np.ndarray:
    """Say of each turn of a bench, in the order of its documents, whether an assistant speaks it:
    (n,).
    """
    documents = bench.documents("turn")
    is_assistants = np.zeros(len(documents.ids), bool)
    is_assistants[documents.at(bench.turns.filter(role="assistant")["turn_id"])] = True
    return is_assistants


def assistant_penalty_in_deviations(
    bench: Bench, query_rows: np.ndarray, turn_span: slice, deviations: float = ASSISTANT
) -> np.ndarray | None:
    """Say by how many standard deviations the scores of turns are lowered: (q, n), or ``None``
    where by none.

    Turns of an assistant are, but for questions that ask what it said (in English, German or
    Spanish).

    :param query_rows: (q,) rows of the questions of a scope.
    :param turn_span: where its n turns are.
    """
    is_assistants = is_assistant_turn(bench)[turn_span]
    if not deviations or is_assistants.all() or not is_assistants.any():
        return None
    pattern = question_patterns(bench.language)["asks_of_assistant"]
    asks_of_assistant = bench.queries["text"][query_rows].str.contains(pattern).to_numpy()
    return np.where(asks_of_assistant[:, None], 0.0, deviations * is_assistants)


RRF_K = 60
SCORERS: Mapping[str, Callable[..., Iterator[ScopeScores]]] = {
    "dense": dense_scores,
    "bm25": bm25_scores,
    "late": late_scores,
}


def _require_weight_of_each_scorer(weights: Sequence[float]) -> Sequence[float]:
    if len(weights) != len(SCORERS) or min(weights) < 0:
        raise ValueError(f"expected three weights, none negative: {', '.join(SCORERS)}")
    return weights


ScorerWeights = Annotated[Sequence[float], AfterValidator(_require_weight_of_each_scorer)]
"""Type of a stage's parameter that weighs :data:`SCORERS`: checked when it is read."""


def rrf(runs: Sequence[Run], *, weights: Sequence[float] | None = None, k: int = 200) -> Run:
    """Fuse rankings: a document scores Σ weight / (60 + rank) over the runs that hold it.

    Ranks count from 1. A document that a run lists at a score of 0 or less, as BM25 does to fill
    its places, gains nothing from that run.

    :param weights: one a run, not negative; all 1 by default.
    :raises DataError: when runs are of different levels, or weights do not fit.

    Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (SIGIR 2009).

    >>> import numpy as np
    >>> from memlab.records import run_from_scores
    >>> from memlab.retrieve import rrf
    >>> q, scores = np.array(["q"] * 3), np.array([3.0, 2.0, 1.0])
    >>> original = run_from_scores(q, np.array(["a", "b", "c"]), scores, level="turn", k=9)
    >>> expansion = run_from_scores(q, np.array(["c", "d", "b"]), scores, level="turn", k=9)
    >>> rrf([original, expansion]).frame["doc_id"].to_list()
    ['c', 'b', 'a', 'd']
    """
    weights = [1.0] * len(runs) if weights is None else list(weights)
    if len(weights) != len(runs) or not runs or min(weights) < 0:
        raise DataError(
            f"{len(runs)} runs have weights {weights}; give one weight a run, none negative"
        )
    if len({ranking.level for ranking in runs}) > 1:
        raise DataError("runs of turns and runs of sessions cannot be fused; rank at one level")
    gain_lists = []
    for ranking, weight in zip(runs, weights, strict=True):
        gain_lists.append(ranking.frame.with_columns(gain=reciprocal_rank_gain_expr(weight)))
    return rank_by_summed_gains(gain_lists, level=runs[0].level, k=k)


def reciprocal_rank_gain_expr(weight: float | pl.Expr) -> pl.Expr:
    """Say what each row of a ranking gains from it: weight / (60 + rank).

    It is 0 where the score is not above 0.
    """
    gain = weight / (float(RRF_K) + pl.col("rank"))
    return pl.when(pl.col("score") > 0).then(gain).otherwise(0.0)


def rank_by_summed_gains(gain_lists: Iterable[pl.DataFrame], *, level: Level, k: int) -> Run:
    """Rank by sums over lists, of ``query_id``, ``doc_id``, ``gain`` each."""
    all_gains = pl.concat(part.select("query_id", "doc_id", "gain") for part in gain_lists)
    summed_gains = _sum_gains_of_pairs(all_gains)
    return run_from_scores(
        summed_gains["query_id"],
        summed_gains["doc_id"],
        summed_gains["gain"].to_numpy(),
        level=level,
        k=k,
    )


def _sum_gains_of_pairs(all_gains: pl.DataFrame) -> pl.DataFrame:
    """Sum the gains of each query and document; of equal sums the pair that appears first stands
    first.
    """
    doc_ids = all_gains["doc_id"]
    doc_numbers = doc_ids.cast(pl.Enum(doc_ids.unique())).to_physical().to_numpy()
    query_numbers = number_by_first_appearance(all_gains["query_id"])
    _, first_rows, pair_of_row, n_rows = np.unique(
        query_numbers << 32 | doc_numbers,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    # Two numbers have one sum; of more it depends on the order, and that of polars stays.
    if n_rows.max(initial=0) > 2:
        pair_groups = all_gains.group_by("query_id", "doc_id", maintain_order=True)
        return pair_groups.agg(pl.col("gain").sum())
    sums = np.bincount(pair_of_row, all_gains["gain"])
    # Ranked already: the ids, which take longest, are gathered once.
    best_first = np.lexsort((first_rows, -sums, query_numbers[first_rows]))
    ranked_rows = first_rows[best_first]
    return pl.DataFrame(
        {
            "query_id": all_gains["query_id"].gather(ranked_rows),
            "doc_id": doc_ids.gather(ranked_rows),
            "gain": sums[best_first],
        }
    )


@stage
def hybrid(bench: Bench, *, level: Level = "turn", k: Count = 200) -> Run:
    """Fuse the dense and the BM25 ranking, each ``k`` deep, by :func:`rrf`.

    :raises DataError: without embeddings.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.hybrid(bench, k=5).frame["rank"].max()
    5
    """
    return bench.show(rrf([dense(bench, level=level, k=k), bm25(bench, level=level, k=k)], k=k))


def _mean_and_deviation_of_best_turns(
    best_turn_scores: np.ndarray, turn_spread: MeanAndDeviation | None
) -> MeanAndDeviation | None:
    """Estimate the spread of the best turns of all sessions of a scope.

    Candidate sessions are few and similar, so that their own spread is uncertain; that of turns is
    known better, and off by a factor. The geometric mean of both came nearest to exact search.

    :param best_turn_scores: (q, n_sessions) of the candidates; ``turn_spread`` that of the turns,
        ``None`` where all are at hand.
    """
    if turn_spread is None:
        return None
    return turn_spread[0], np.sqrt(turn_spread[1] * best_turn_scores.std(axis=1, keepdims=True))


@stage
def combsum(
    bench: Bench,
    *,
    level: Level = "turn",
    k: Count = 200,
    turn: ScorerWeights = (1.0, 1.0, 0.0),
    session: ScorerWeights = (1.0, 1.0, 0.0),
    assistant: Weight = 0.0,
) -> Run:
    """Rank by the weighted sum of scores standardised per query, of turns and their sessions.

    A turn is worth its own scores and those of the session that it stands in; a session, its own
    scores and those of its best turn. Scores keep how much better one document is than the next,
    which ranks forget: on LoCoMo and LongMemEval this beats reciprocal rank fusion.

    :param turn: weights of the turn's dense, BM25 and late-interaction scores (for sessions: of the
        best turn's).
    :param session: weights of the session's dense (best turn), BM25 (of the whole session) and
        late-interaction (best turn) scores.
    :param assistant: by how many standard deviations every score of a turn that an assistant speaks
        is lowered first, but for questions that ask what it said; ``best`` has 1.
    :raises DataError: for other than three weights, a negative one or none above 0, a number below
        0 or infinite for ``assistant``, or without embeddings.

    Source: CombSUM, Fox and Shaw, Combination of Multiple Searches (TREC-2, 1994); standardised
    scores: Renda and Straccia, Web Metasearch: Rank vs. Score Based Rank Aggregation (SAC 2003).

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.combsum(bench, k=5).frame["rank"].max()
    5
    """
    if not 0 <= assistant < float("inf"):
        raise DataError(
            f"assistant is {assistant}; expected a number of standard deviations from 0 on"
        )
    for argument_name, weights in (("turn", turn), ("session", session)):
        if len(weights) != len(SCORERS) or min(weights) < 0 or not any((*turn, *session)):
            expectation = (
                f"combsum takes three weights, none negative and not all 0: {', '.join(SCORERS)}"
            )
            raise DataError(f"{argument_name}={tuple(weights)}; {expectation}")
    return rank_scope_scores(
        bench, _weighted_sum_of_scores(bench, level, turn, session, assistant), level=level, k=k
    )


def _weighted_sum_of_scores(
    bench: Bench,
    level: Level,
    turn_weights: Sequence[float],
    session_weights: Sequence[float],
    assistant_deviations: float,
) -> Iterator[ScopeScores]:
    """Sum the scores of each scope: (q, n) of its turns or its sessions, by ``level``."""
    weights_by_scorer = {}
    for scorer_name, turn_weight, session_weight in zip(
        SCORERS, turn_weights, session_weights, strict=True
    ):
        if turn_weight or session_weight:
            weights_by_scorer[scorer_name] = (turn_weight, session_weight)
    turn_scores = [SCORERS[scorer_name](bench, level="turn") for scorer_name in weights_by_scorer]
    session_bm25 = bm25_scores(bench, level="session") if session_weights[1] else None
    absent_turns = bench.documents("turn").n_absent
    absent_sessions = bench.documents("session").n_absent
    session_of_turn = bench.documents("turn").session
    for (query_rows, turn_span), (_, session_span), *scope_scores in zip(
        bench.by_scope("turn"), bench.by_scope("session"), *turn_scores, strict=True
    ):
        session_of_column = session_of_turn[turn_span] - session_span.start
        n_sessions = session_span.stop - session_span.start
        assistant_deviation = assistant_penalty_in_deviations(
            bench, query_rows, turn_span, assistant_deviations
        )
        n_documents = len(session_of_column) if level == "turn" else n_sessions
        summed_scores = np.zeros((len(query_rows), n_documents))
        for scorer_name, (_, _, scores) in zip(weights_by_scorer, scope_scores, strict=True):
            turn_weight, session_weight = weights_by_scorer[scorer_name]
            absent_scores = None
            if scorer_name == "bm25":
                absent_scores = estimate_absent_bm25_scores(
                    bench, query_rows, turn_span, level="turn"
                )
            turn_spread = estimate_mean_and_deviation_of_scope(scores, absent_turns, absent_scores)
            if assistant_deviation is not None:
                scores = lower_by_deviations(scores, assistant_deviation, turn_spread)
                turn_spread = estimate_mean_and_deviation_of_scope(
                    scores, absent_turns, absent_scores
                )

            # A session is worth its best turn, but by BM25 the whole of it where it is asked for.
            best_scores = best_score_per_group(scores, session_of_column, n_sessions)
            if scorer_name == "bm25":
                best_spread = estimate_mean_and_deviation_of_scope(
                    best_scores, absent_sessions, NO_SCORES
                )
            else:
                best_spread = _mean_and_deviation_of_best_turns(best_scores, turn_spread)
            best_scores = standardise_rows(best_scores, best_spread)
            if level == "turn":
                summed_scores += turn_weight * standardise_rows(scores, turn_spread)
            else:
                summed_scores += turn_weight * best_scores
            if not session_weight:
                continue
            if scorer_name == "bm25" and session_bm25:
                _, _, session_scores = next(session_bm25)
                absent_scores = estimate_absent_bm25_scores(
                    bench, query_rows, session_span, level="session"
                )
                best_scores = standardise_rows(
                    session_scores,
                    estimate_mean_and_deviation_of_scope(
                        session_scores, absent_sessions, absent_scores
                    ),
                )
            summed_scores += session_weight * (
                best_scores[:, session_of_column] if level == "turn" else best_scores
            )
        yield ScopeScores(query_rows, turn_span if level == "turn" else session_span, summed_scores)
