"""What holds before what held: of turns that say alike, the latest first."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import of_turns
from memlab.select.candidates import chunks, reordered


@stage
def current(run: Run, bench: Bench, *, similarity: float = 0.55, candidates: int = 10) -> Run:
    """Put each turn behind later ones of the same speaker, in other sessions, that are about the same thing.

    What was superseded, corrected or has ended is mostly told in the words of its question, and so it ranks above what
    replaced it. Only the order of the first ``candidates`` changes: complete recall at that cut-off is what it was.
    Nothing is read but time, speaker and likeness: a repetition is treated as a change is.

    :param similarity: least cosine of two turns that are about the same thing.
    :param candidates: how many of the run's first turns are put in order.
    :raises DataError: for a ranking of sessions, a similarity outside [−1, 1], or without embeddings.

    >>> from memlab import retrieve, sample, select
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> select.current(plain, bench, similarity=1.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    of_turns(run, "current")
    if not -1 <= similarity <= 1:
        raise DataError(f"similarity is {similarity}; a cosine lies between -1 and 1")
    vectors = bench.documents("turn").vectors()
    about = bench.turns.select(
        speaker=pl.col("speaker").rank("dense"),
        session=pl.col("session_id").rank("dense"),
        time=pl.struct(pl.col("timestamp").forward_fill().over("scope"), pl.int_range(pl.len())).rank("ordinal"),
    )
    speaker, session, time = (about[column].to_numpy() for column in ("speaker", "session", "time"))
    choices: list[np.ndarray] = []
    for _, some in chunks(run, bench, candidates):
        embedded = vectors[some.at].astype(np.float64)
        alike = (embedded @ embedded.transpose(0, 2, 1)).round(6) >= similarity
        alike &= some.mask[:, :, None] & some.mask[:, None]
        alike &= speaker[some.at][:, :, None] == speaker[some.at][:, None]
        alike &= session[some.at][:, :, None] != session[some.at][:, None]
        later = alike & (time[some.at][:, :, None] < time[some.at][:, None])
        times = time[some.at]
        choices += [_order(*each) for each in zip(later, times, some.mask.sum(1), strict=True)]
    return reordered(run, bench, choices)


def _order(later: np.ndarray, times: np.ndarray, n: int) -> np.ndarray:
    """Go through ranks; before each goes whatever is later and about the same, the latest first."""
    done: dict[int, None] = {}
    stack = list(range(n))[::-1]
    while stack:
        place = stack.pop()
        if place in done:
            continue
        before = [at for at in np.flatnonzero(later[place]) if at not in done]
        if before:
            stack += [place, *sorted(map(int, before), key=lambda at: times[at])]
        else:
            done[place] = None
    return np.fromiter(done, np.int64, n)
