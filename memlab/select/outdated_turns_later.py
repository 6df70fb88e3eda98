"""An order in which what a speaker said later on the same subject comes before what it replaces."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from memlab.errors import check_between
from memlab.records import Run
from memlab.registry import Count, stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.rankings_from_scores import refuse_session_run
from memlab.select.selection_candidates import (
    candidates_by_query,
    put_chosen_first,
    similarity_vectors,
)

Cosine = Annotated[float, Field(ge=-1, le=1)]


@stage
def current(
    run: Run,
    bench: Bench,
    *,
    similarity: Cosine = 0.25,
    candidates: Count = 10,
    centred: bool = True,
) -> Run:
    """Rank a turn below later turns of the same speaker, in other sessions, about the same thing.

    A statement that was superseded, corrected or ended often shares more words with the question
    than its successor, and so ranks above it. Only the order of the first ``candidates`` changes:
    complete recall at that cut-off stays. Nothing is read but time, speaker and similarity, so that
    a repetition is treated as a change is.

    :param similarity: least cosine of the speaker-centred vectors of two turns that are about the
        same thing, chosen on ``data/train``; for turns as they are encoded .55 is about as much.
    :param candidates: how many of the run's first turns are put in order.
    :param centred: ``False`` compares turns as they are encoded, speakers' names included.
    :raises DataError: for a ranking of sessions, a similarity outside [−1, 1], or without
        embeddings.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench)
    >>> ordered = memlab.select.current(plain, bench, similarity=1.0, candidates=1)
    >>> ordered.frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    refuse_session_run(run, "current")
    check_between(-1, 1, similarity=similarity)
    documents = bench.documents("turn")
    vectors = similarity_vectors(run, bench, centred=centred)
    session_numbers = documents.session
    turns = documents.place_of_id.join(
        bench.turns.rename({"turn_id": "doc_id"}), on="doc_id", maintain_order="left"
    )
    time_order = pl.struct(pl.col("timestamp").forward_fill().over("scope"), "at")
    turn_ranks = turns.select(pl.col("speaker").rank("dense"), time=time_order.rank("dense"))
    speaker = turn_ranks["speaker"].cast(pl.Int64).to_numpy()
    time_rank = turn_ranks["time"].cast(pl.Int64).to_numpy()
    choices = []
    for places, _ in candidates_by_query(run, bench, candidates):
        query_vectors = vectors[places].astype(np.float64)
        successor = (query_vectors @ query_vectors.T).round(6) >= similarity
        successor &= (speaker[places][:, None] == speaker[places]) & (
            session_numbers[places][:, None] != session_numbers[places]
        )
        successor &= time_rank[places][:, None] < time_rank[places]
        choices.append(_order_successors_first(successor, time_rank[places]))
    return put_chosen_first(run, bench, choices)


def _order_successors_first(is_successor: np.ndarray, time_ranks: np.ndarray) -> np.ndarray:
    """Walk down the ranking and put the successors of a document before it, the latest first.

    :param is_successor: (n, n) whether the document of a column succeeds that of a row.
    """
    placed_turns: dict[int, None] = {}

    def place_after_successors(own_place: int) -> None:
        for later_place in sorted(
            np.flatnonzero(is_successor[own_place]).tolist(),
            key=lambda successor_place: -time_ranks[successor_place],
        ):
            if later_place not in placed_turns:
                place_after_successors(later_place)
        placed_turns[own_place] = None

    for turn_place in range(len(time_ranks)):
        if turn_place not in placed_turns:
            place_after_successors(turn_place)
    return np.array(list(placed_turns), np.int64)
