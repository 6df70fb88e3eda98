"""Fusion: several rankings (``rrf``, ``hybrid``) or several scores (``combsum``, ``best``) into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenEncoder
from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.arrays import best_of, lowered, standardised
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25, bm25_scores
from memlab.retrieve.dense import dense, dense_scores
from memlab.retrieve.late import late_scores
from memlab.retrieve.ranking import added, rank
from memlab.retrieve.speakers import ASSISTANT, lowered_by

RRF_K = 60
GUARD = {1: 0.05, 2: 0.02, 3: 0.02}
SCORERS: Mapping[str, Callable[..., Any]] = {"dense": dense_scores, "bm25": bm25_scores, "late": late_scores}


def rrf(
    runs: Sequence[Run],
    *,
    weights: Sequence[float] | None = None,
    k: int = 200,
    rrf_k: int = RRF_K,
    guard: bool = False,
) -> Run:
    """Fuse rankings: a document scores Σ weight / (rrf_k + rank) over the runs that hold it, ranks from 1.

    A document that a run lists at a score of 0 or less, as BM25 does to fill its places, gains nothing from that run.

    :param weights: one a run, not negative; all 1 by default. Usual for expansions: 2 for the run of the original
        query, 1 for that of an expansion.
    :param guard: add .05 to the first and .02 to the second and third document of the first run, so that the other
        runs cannot dilute an exact match.
    :raises DataError: when runs are of different levels, or weights do not fit.

    Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (SIGIR 2009); the guard is that of the search tool qmd.

    >>> import numpy as np
    >>> from memlab.records import run_from_scores
    >>> from memlab.retrieve import rrf
    >>> q, scores = np.array(["q"] * 3), np.array([3.0, 2.0, 1.0])
    >>> original = run_from_scores(q, np.array(["a", "b", "c"]), scores, level="turn", k=9)
    >>> expansion = run_from_scores(q, np.array(["c", "d", "b"]), scores, level="turn", k=9)
    >>> rrf([original, expansion]).frame["doc_id"].to_list()
    ['c', 'b', 'a', 'd']
    >>> rrf([original, expansion], weights=(2, 1), guard=True).frame["doc_id"].to_list()
    ['a', 'c', 'b', 'd']
    """
    weights = [1.0] * len(runs) if weights is None else list(weights)
    if len(weights) != len(runs) or not runs:
        raise DataError(f"{len(runs)} runs and {len(weights)} weights; give one weight a run")
    if len({run.level for run in runs}) > 1:
        raise DataError("runs of turns and runs of sessions cannot be fused; rank at one level")
    if min(weights) < 0:
        raise DataError(f"weights={weights}; none may be negative")
    lists = [run.frame.with_columns(weight=pl.lit(float(w))) for run, w in zip(runs, weights, strict=True)]
    return rrf_lists(pl.concat(lists), runs[0], k=k, rrf_k=rrf_k, guard=guard)


def rrf_lists(lists: pl.DataFrame, original: Run, *, k: int = 200, rrf_k: int = RRF_K, guard: bool = True) -> Run:
    """Fuse any number of lists a query, as :func:`rrf` does.

    :param lists: ``query_id``, ``doc_id``, ``rank``, ``score``, ``weight``: a row for every place of every list, the
        original's among them; a query may have more lists than another.
    :param original: the run whose first places ``guard`` protects, and whose level is meant.
    """
    if rrf_k < 0:
        raise DataError(f"rrf_k={rrf_k}; it may not be negative")
    gain = pl.when(pl.col("score") > 0).then(pl.col("weight") / (float(rrf_k) + pl.col("rank"))).otherwise(0.0)
    parts = [lists.select("query_id", "doc_id", gain=gain)]
    if guard:
        first = original.frame.filter((pl.col("rank") <= max(GUARD)) & (pl.col("score") > 0))
        bonus = pl.col("rank").replace_strict(GUARD, return_dtype=pl.Float64)
        parts.append(first.select("query_id", "doc_id", gain=bonus))
    return added(parts, level=original.level, k=k)


@stage
def hybrid(
    bench: Bench,
    *,
    level: Level = "turn",
    k: int = 200,
    weights: Sequence[float] = (1.0, 1.0),
    rrf_k: int = RRF_K,
    path: str = "exact",
) -> Run:
    """Fuse the dense and the BM25 ranking, each ``k`` deep.

    :param weights: of the dense and of the BM25 ranking.
    :param rrf_k: the constant of reciprocal rank fusion.
    :param path: ``exact`` or ``indexed``, for both rankings.

    Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (SIGIR 2009).

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.hybrid(bench, k=5, weights=(2, 1)).frame["rank"].max()
    5
    """
    if len(weights) != 2:
        raise DataError(f"weights={tuple(weights)}; hybrid takes two, for dense and for BM25")
    runs = [dense(bench, level=level, k=k, path=path), bm25(bench, level=level, k=k, path=path)]
    return bench.show(rrf(runs, weights=weights, k=k, rrf_k=rrf_k))


@stage
def combsum(
    bench: Bench,
    *,
    level: Level = "turn",
    k: int = 200,
    turn: Sequence[float] = (1.0, 1.0, 0.0),
    session: Sequence[float] = (1.0, 1.0, 0.0),
    assistant: float = 0.0,
) -> Run:
    """Rank by the weighted sum of scores standardised per query, over turn and session evidence together.

    A turn is worth its own scores and those of the session that it stands in; a session, its own scores and those of
    its best turn. Scores keep how much better one document is than the next, which ranks forget: on LoCoMo and
    LongMemEval this beats reciprocal rank fusion.

    :param turn: weights of the turn's dense, BM25 and late-interaction scores (for sessions: of the best turn's).
    :param session: weights of the session's dense (best turn), BM25 (of the whole session) and late-interaction (best
        turn) scores.
    :param assistant: by how many standard deviations every score of a turn that an assistant speaks is lowered first,
        but for questions that ask what it said; ``best`` has 1.
    :raises DataError: for other than three weights, a negative one or none above 0, a number below 0 or
        infinite for ``assistant``, or without embeddings.

    Source: CombSUM, Fox and Shaw, Combination of Multiple Searches (TREC-2, 1994); standardised scores: Renda and
    Straccia, Web Metasearch: Rank vs. Score Based Rank Aggregation (SAC 2003).

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.combsum(bench, k=5).frame["rank"].max()
    5
    """
    if not 0 <= assistant < float("inf"):
        raise DataError(f"assistant is {assistant}; expected a number of standard deviations from 0 on")
    for name, weights in (("turn", turn), ("session", session)):
        if len(weights) != len(SCORERS) or min(weights) < 0:
            raise DataError(
                f"{name}={tuple(weights)}; combsum takes three weights, none negative: {', '.join(SCORERS)}"
            )
    if not any((*turn, *session)):
        raise DataError("every weight of combsum is 0; give at least one")
    return rank(bench, _combined(bench, level, turn, session, assistant), level=level, k=k)


@stage
def best(bench: Bench, *, level: Level = "turn", k: int = 200) -> Run:
    """Rank by what finds most without training: :func:`combsum` with late interaction in it, which counts twice.

    The default everywhere: ``combsum(turn=(1, 1, 2), session=(1, 1, 2), assistant=1)``, the best untrained pipeline on
    LoCoMo and on LongMemEval. An encoder that gives no token embeddings leaves late interaction out; a bench without an
    encoder ranks by BM25 alone.

    What it costs: token embeddings of every turn, encoded once, which takes about as long as encoding the turns and
    1.5 kB a turn of LoCoMo in the store.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.best(bench).frame.equals(retrieve.combsum(bench, assistant=1).frame)
    True
    """
    if bench.turn_vectors is None:
        return bm25(bench, level=level, k=k)
    weights = (1.0, 1.0, 2.0 if isinstance(bench.encoder, TokenEncoder) else 0.0)
    return combsum(bench, level=level, k=k, turn=weights, session=weights, assistant=ASSISTANT)


def _combined(
    bench: Bench, level: Level, turn: Sequence[float], session: Sequence[float], assistant: float
) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
    used = {name: weights for name, *weights in zip(SCORERS, turn, session, strict=True) if any(weights)}
    of_turns = [SCORERS[name](bench, level="turn") for name in used]
    of_sessions = bm25_scores(bench, level="session") if session[1] else None
    number = bench.documents("turn").session
    for (rows, turns), (_, sessions), *scored in zip(
        bench.by_scope("turn"), bench.by_scope("session"), *of_turns, strict=True
    ):
        group, n_sessions = number[turns] - sessions.start, sessions.stop - sessions.start
        span = turns if level == "turn" else sessions
        of_turn_weight = bench.documents("turn").weight_in(turns)
        of_session_weight = bench.documents("session").weight_in(sessions)
        weight = of_turn_weight if level == "turn" else of_session_weight
        less = lowered_by(bench, rows, turns, assistant)
        total = np.zeros((len(rows), span.stop - span.start))
        for (name, (of_turn, of_session)), (_, _, scores) in zip(used.items(), scored, strict=True):
            if less is not None:
                scores = lowered(scores, less, of_turn_weight)
            best = best_of(scores, group, n_sessions)
            total += of_turn * standardised(scores if level == "turn" else best, weight)
            if of_session:
                whole = standardised(
                    next(of_sessions)[2] if name == "bm25" and of_sessions else best, of_session_weight
                )
                total += of_session * (whole[:, group] if level == "turn" else whole)
        yield rows, span, total
