"""Two-stage retrieval: what comes first and what follows; summaries as a key; storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from memlab import embed
from memlab.errors import DataError
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, summary_storage, two_stage
from memlab.retrieve.two_stage import summary_vectors

Ranking = Callable[[Run], dict[str, list[str]]]
SUMMARIES = {
    "ann/s1": "Ann saw the doctor and the dentist",
    "ann/s2": "roses tulips water",
    "ann/s4": "  ",
    "cyd/s1": "a doctor and roses",
    "cyd/s2": "water?",
}


@pytest.fixture(scope="module")
def summed(world: Dataset) -> Dataset:
    """The small world, some of whose sessions have a summary; that of the empty session is a question word by word."""
    summary = pl.col("session_id").replace_strict(SUMMARIES, default=None, return_dtype=pl.String)
    return replace(world, name="summed", sessions=world.sessions.with_columns(summary=summary))


@pytest.fixture(scope="module", params=["world", "summed", "talk"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench.of(request.getfixturevalue(request.param), encoder="hashing:32")


@pytest.mark.parametrize(("n_sessions", "n_turns"), [(5, 3), (1, 1), (2, 50), (50, 1)])
def test_turns_of_the_first_sessions_come_first_and_all_others_follow(
    bench: Bench, ranking: Ranking, n_sessions: int, n_turns: int
) -> None:
    home = dict(bench.turns.select("turn_id", "session_id").iter_rows())
    sessions = ranking(two_stage(bench, level="session", k=999))
    for query, turns in ranking(two_stage(bench, k=999, sessions=n_sessions, turns=n_turns)).items():
        sizes = Counter(home[turn] for turn in turns)
        assert sizes.total() == len(set(turns)), "every turn of the scope, once"
        # A session without turns has nothing to give.
        chosen = {each: min(n_turns, sizes[each]) for each in [s for s in sessions[query] if s in sizes][:n_sessions]}
        assert Counter(home[turn] for turn in turns[: sum(chosen.values())]) == chosen


def test_a_first_stage_that_keeps_all_ranks_by_the_sum(bench: Bench, ranking: Ranking) -> None:
    whole = ranking(two_stage(bench, k=999, sessions=999, turns=999))
    none = ranking(two_stage(bench, k=999, sessions=1, turns=1))
    for query, turns in whole.items():
        assert [turn for turn in turns if turn != none[query][0]] == none[query][1:]


def test_values_that_cannot_be_used(world: Dataset, summed: Dataset) -> None:
    bench = Bench.of(world, encoder="hashing:32")
    for wrong, message in (({"sessions": 0}, "sessions is 0"), ({"turns": -1}, "turns is -1"), ({"k": 0}, "k is 0")):
        with pytest.raises(DataError, match=message):
            two_stage(bench, **wrong)
    for data in (world, summed):
        with pytest.raises(DataError, match="make the bench with an encoder"):
            two_stage(Bench.of(data, encoder=None))


def test_summaries_are_a_further_key_and_other_sessions_fall_back_to_their_document(summed: Dataset) -> None:
    bench, encoder = Bench.of(summed, encoder="hashing:32"), embed.load("hashing:32")
    documents, vectors = bench.documents("session"), summary_vectors(bench)
    assert vectors is not None
    for at, session in enumerate(documents.ids):
        text = SUMMARIES.get(session, "").strip()
        assert np.array_equal(vectors[at], encoder.encode([text])[0] if text else documents.vectors()[at]), session
    assert summary_vectors(bench.with_queries(bench.queries)) is vectors, "encoded once"
    blank = summed.sessions.with_columns(summary=pl.lit(" "))
    assert summary_vectors(Bench.of(replace(summed, sessions=blank), encoder="hashing:32")) is None


def test_storage_counts_bytes(summed: Dataset) -> None:
    bench = Bench.of(summed, encoder="hashing:32")
    turns, summaries = summary_storage(bench).rows(named=True)
    texts = [text.strip() for text in SUMMARIES.values() if text.strip()]
    assert turns["n"] == summed.turns.height
    assert turns["text_bytes"] == sum(len(text.encode()) for text in bench.documents("turn").texts)
    assert (turns["vector_bytes"], turns["share"]) == (turns["n"] * 32 * 4, 1.0)
    assert (summaries["n"], summaries["text_bytes"]) == (4, sum(len(text.encode()) for text in texts))
    bytes_of_turns = turns["text_bytes"] + turns["vector_bytes"]
    assert summaries["share"] == pytest.approx((summaries["text_bytes"] + 4 * 32 * 4) / bytes_of_turns)
