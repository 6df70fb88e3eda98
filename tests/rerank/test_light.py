"""The light reranker and position-aware blending: their sums, by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memlab.errors import DataError
from memlab.records import Dataset, Question, Session, Turn, frame, run_from_scores
from memlab.rerank import blend_by_position, light
from memlab.retrieve import Bench, bm25, sessions_from_turns

NOW = datetime(2026, 3, 4, 9, tzinfo=UTC)
AGO = NOW - timedelta(hours=72)


def roses(asked: datetime | None) -> Bench:
    """Four turns in three sessions, which have the same ids; nobody knows when one of them was."""
    said = [("1", "roses need water", AGO), ("1", "roses", None), ("2", "nothing", None), ("3", "water", NOW)]
    turns = [Turn(f"{i}", "u", s, i + 1, "user", "user", text, None, time) for i, (s, text, time) in enumerate(said)]
    about = (AGO, "nothing of it"), (None, None), (NOW, "the water is cold")
    sessions = [Session(f"{n}", "u", n, at, at, 1, [], summary=text) for n, (at, text) in enumerate(about, 1)]
    question = Question("q", "u", "roses and water", None, "t", asked, [], [])
    data = Dataset("w", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, [question]))
    return Bench.of(data, encoder=None)


@pytest.mark.parametrize(
    ("asked", "parameters", "recency", "lowered"),
    [
        (None, {}, [0.5, 0.5, 2 / 3, 1.0], 0.5),  # as of the last turn; without a time the mean of the others
        (AGO, {}, [1.0, 1.0, 1.0, 1.0], 0.5),  # what comes after the question is as fresh as can be
        (NOW, {"half_life_hours": 36.0, "covered": 0.25}, [0.25, 0.25, 0.5, 1.0], 0.25),
        (NOW, {"window": 0}, [0.5, 0.5, 2 / 3, 1.0], 1.0),
    ],
)
def test_the_sum_by_hand(
    asked: datetime | None, parameters: dict[str, float], recency: list[float], lowered: float
) -> None:
    bench, scores = roses(asked), np.array([5.0, 4.0, 2.0, 0.0])
    run = run_from_scores(np.repeat("q", 4), np.array([*"0123"]), scores, level="turn", k=9)
    expected = 0.7 * scores / 5 + 0.1 * np.array(recency) + 0.2 * np.array([1.0, 0.5, 0.0, 0.5])
    expected *= [1.0, lowered, 1.0, 1.25]  # the second stands beside a better one; the last one's summary fits
    got = dict(light(run, bench, **parameters).frame.select("doc_id", "score").iter_rows())
    assert got == pytest.approx(dict(zip("0123", expected.tolist(), strict=True)), abs=1e-6)
    sessions = bm25(bench, level="session")
    assert sorted(light(sessions, bench, **parameters).frame["doc_id"]) == sorted(sessions.frame["doc_id"])


def test_the_further_down_the_more_a_reranker_may_say(bench: Bench) -> None:
    """.75, .6 and .4 of the retrieval, 1 to 0 in twelve steps; the reranker says 1, .5 and 0, and dropped the rest."""
    ids, query = bench.documents("turn").ids[:13], np.repeat(bench.queries["query_id"][0], 12)
    run = run_from_scores(query, ids[:12], np.arange(12.0)[::-1], level="turn", k=12)
    said, scores = ids[[12, 11, 3, 0]], np.array([9.0, 9.0, 5.0, 1.0])  # one that the retrieval has not
    got = blend_by_position(run, run_from_scores(query[:4], said, scores, level="turn", k=4), bench)
    assert bench.documents("turn").at(got.frame["doc_id"]).tolist() == [0, 1, 3, 2, 11, 4, 5, 6, 7, 8, 9, 10]
    with pytest.raises(DataError, match="ranks turns and the reranked one sessions"):
        blend_by_position(run, sessions_from_turns(run, bench), bench)
