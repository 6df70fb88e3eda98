"""Document bias: what is already in play in a conversation ranks a little higher, and nothing is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from memlab.errors import DataError
from memlab.records import Qrels, Run, run_from_scores
from memlab.retrieve import Bench

FACTOR = 1.15


def bias(
    run: Run, bench: Bench, *, active: pl.DataFrame | Sequence[str], factor: float = FACTOR, level: str = "session"
) -> Run:
    """Multiply the scores of what is in play by a factor, and rank anew; every document stays.

    A product needs positive scores: where a question's lowest is not above 0 (sums of standardised scores), all of its
    scores are first raised so that the lowest is 0. The factor then means more the longer the ranking is; positive
    scores (BM25, reciprocal ranks) are taken as they are.

    :param active: ids in play for every question, such as :meth:`memlab.context.SessionMemory.in_play` gives; or a
        frame of ``query_id`` and ``id``.
    :param factor: at least 1; 1 leaves the ranking as it is.
    :param level: whether the ids in play are of turns or of sessions: with ``session`` all turns of a session in play
        are.
    :raises DataError: for a factor below 1, or turns in play in a ranking of sessions.

    >>> from memlab import context, retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> run = retrieve.bm25(bench)
    >>> raised = context.bias(run, bench, active=[bench.sessions["session_id"][0]])
    >>> sorted(raised.frame["doc_id"]) == sorted(run.frame["doc_id"])
    True
    """
    if not 1 <= factor < float("inf"):
        raise DataError(f"factor is {factor}; a bias is 1 or more, so that it never hides anything")
    if level not in ("turn", "session") or (level == "turn" and run.level == "session"):
        raise DataError(f"level is {level!r} for a ranking of {run.level}s; choose turn (for turns) or session")
    if not isinstance(active, pl.DataFrame):
        active = run.frame.select(pl.col("query_id").unique()).join(
            pl.DataFrame({"id": [*active]}, {"id": pl.String}), how="cross"
        )
    rows = run.frame.with_columns(id=_ids(run, bench, level))
    played = active.select("query_id", "id").unique().with_columns(played=True)
    rows = rows.join(played, on=["query_id", "id"], how="left", maintain_order="left")
    lowest = pl.col("score").min().over("query_id")
    raised = pl.col("score") - pl.when(lowest > 0).then(0.0).otherwise(lowest)
    scores = rows.select(raised * pl.when("played").then(factor).otherwise(1.0))["score"].to_numpy()
    k = int(run.frame["rank"].to_numpy().max(initial=1))
    ids = rows["query_id"].to_numpy(), rows["doc_id"].to_numpy()
    ranked = run_from_scores(*ids, scores, level=run.level, k=k)
    return replace(bench.show(ranked), name=run.name, provenance=run.provenance)


def _ids(run: Run, bench: Bench, level: str) -> pl.Series:
    """Give what may be in play about each document: itself, or its session."""
    if level == run.level:
        return run.frame["doc_id"]
    documents = bench.documents("turn")
    sessions = bench.documents("session").ids[documents.session[documents.at(run.frame["doc_id"])]]
    return pl.Series(sessions, dtype=pl.String)


def rank_changes(before: Run, after: Run, gold: Qrels) -> pl.DataFrame:
    """Say of every piece of evidence (``gold``, by :func:`memlab.qrels`) where a bias moved it.

    :returns: ``query_id``, ``doc_id``, ``session`` that it belongs to, ``rank_before``, ``rank_after`` (null
        where it is not ranked) and ``gain`` (places won; below 0 places lost).
    """
    ranks = [run.frame.select("query_id", "doc_id", rank=pl.col("rank").cast(pl.Int64)) for run in (before, after)]
    keys = ["query_id", "doc_id"]
    return (
        gold.frame.select(*keys, session="subtopic")
        .join(ranks[0].rename({"rank": "rank_before"}), on=keys, how="left", maintain_order="left")
        .join(ranks[1].rename({"rank": "rank_after"}), on=keys, how="left", maintain_order="left")
        .with_columns(gain=pl.col("rank_before") - pl.col("rank_after"))
    )


def follow_ups(moves: pl.DataFrame, active: pl.DataFrame, *, k: int = 10) -> pl.DataFrame:
    """Weigh what a bias gains on questions that stay with what is in play against what it hides on the others.

    :param moves: what :func:`rank_changes` gave, for turns or sessions.
    :param active: ``query_id`` and ``id`` of the *sessions* that were in play.
    :param k: places that count.
    :returns: for ``stays`` (all evidence is of sessions in play), ``turns away`` (none is) and ``mixed``: ``n``
        questions, complete recall ``before`` and ``after`` at ``k``, how many questions were ``won`` and ``lost``, and
        the mean ``gain`` in places.
    """
    played = active.select("query_id", session="id", played=pl.lit(True)).unique()
    rows = moves.join(played, on=["query_id", "session"], how="left", maintain_order="left")
    first = [(pl.col(f"rank_{when}") <= k).fill_null(False).all().alias(when) for when in ("before", "after")]
    in_play = pl.col("played").fill_null(False)
    each = rows.group_by("query_id", maintain_order=True).agg(
        *first, pl.col("gain").mean(), all=in_play.all(), any=in_play.any()
    )
    group = pl.when("all").then(pl.lit("stays")).when("any").then(pl.lit("mixed")).otherwise(pl.lit("turns away"))
    return (
        each.group_by(group=group)
        .agg(
            n=pl.len(),
            before=pl.col("before").mean(),
            after=pl.col("after").mean(),
            won=(~pl.col("before") & pl.col("after")).sum(),
            lost=(pl.col("before") & ~pl.col("after")).sum(),
            gain=pl.col("gain").mean(),
        )
        .sort("group")
    )
