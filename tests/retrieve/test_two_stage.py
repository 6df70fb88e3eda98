"""Sessions first, then turns; turns of an assistant are held back, but for questions about what it said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import embed
from memlab.datasets import chatlog
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, two_stage
from memlab.retrieve.fusion import ASKS_ASSISTANT, assistant_penalty, assistant_turn_mask
from memlab.retrieve.two_stage import summary_vectors

Ranking = Callable[[Run], dict[str, list[str]]]
SUMMARIES = {
    "ann/s1": "Ann saw the doctor and the dentist", "ann/s2": "roses tulips water", "ann/s4": "  ",
    "cyd/s1": "a doctor and roses", "cyd/s2": "water?",
}  # fmt: skip


@pytest.fixture(scope="module")
def summed(world: Dataset) -> Bench:
    """The small world, some of whose sessions have a summary; that of the empty session is a question word by word."""
    summary = pl.col("session_id").replace_strict(SUMMARIES, default=None, return_dtype=pl.String)
    return Bench.of(replace(world, sessions=world.sessions.with_columns(summary=summary)), encoder="hashing:64")


@pytest.mark.parametrize("name", ["odd", "summed", "chat"])
@pytest.mark.parametrize(("n_sessions", "n_turns"), [(5, 3), (1, 1), (2, 50)])
def test_turns_of_the_first_sessions_come_first_and_all_others_follow(
    request: pytest.FixtureRequest, ranking: Ranking, name: str, n_sessions: int, n_turns: int
) -> None:
    bench: Bench = request.getfixturevalue(name)
    home = dict(bench.turns.select("turn_id", "session_id").iter_rows())
    sessions = ranking(two_stage(bench, level="session", k=999))
    for query, turns in ranking(two_stage(bench, k=999, sessions=n_sessions, turns=n_turns)).items():
        sizes = Counter(home[turn] for turn in turns)
        assert sizes.total() == len(set(turns)), "every turn of the scope, once"
        # A session without turns has nothing to give.
        chosen = {each: min(n_turns, sizes[each]) for each in [s for s in sessions[query] if s in sizes][:n_sessions]}
        assert Counter(home[turn] for turn in turns[: sum(chosen.values())]) == chosen


def test_summaries_are_a_further_key_and_other_sessions_fall_back_to_their_document(odd: Bench, summed: Bench) -> None:
    documents, vectors = summed.documents("session"), summary_vectors(summed)
    assert vectors is not None
    for at, session in enumerate(documents.ids):
        text = SUMMARIES.get(session, "").strip()
        own = embed.load("hashing:64").encode([text])[0] if text else documents.vectors()[at]
        assert np.array_equal(vectors[at], own), session
    assert summary_vectors(summed.with_queries(summed.queries)) is vectors, "encoded once"
    assert summary_vectors(odd) is None


SAID = (
    "We have nine thousand for the kitchen.", "A kitchen budget of nine thousand is a fair kitchen budget.",
    "The tiles come on Friday.", "Then the floor should be dry by Thursday.",
)  # fmt: skip
MIXED = ("user", "assistant") * 2


def log(roles: tuple[str, ...], *questions: str) -> Bench:
    about = {"scope": "u", "session": "s", "timestamp": "2024-03-01T10:00:00Z"}
    said = enumerate(zip(roles, SAID, strict=True), 1)
    rows = [about | {"id": str(i), "role": role, "text": text} for i, (role, text) in said]
    rows += [{"scope": "u", "question": text, "evidence": ["1"]} for text in questions]
    return Bench.of(chatlog.dataset(rows, "log"), encoder="hashing")


def test_what_it_said_is_first_only_where_that_is_asked() -> None:
    bench = log(MIXED, "What is my kitchen budget?", "What did you suggest about the kitchen budget?")
    for text, expected in (("combsum", [1, 1]), ("combsum(assistant=3)", [0, 1])):
        first = memlab.pipeline(text).run(bench).top(1).frame["doc_id"]
        assert bench.documents("turn").at(first).tolist() == expected
    assert assistant_turn_mask(bench).tolist() == [False, True, False, True]
    lowered = assistant_penalty(bench, np.array([0, 1]), slice(0, 4), 2.0)
    assert lowered is not None
    assert lowered.tolist() == [[0, 2, 0, 2], [0, 0, 0, 0]]


def test_where_one_kind_speaks_alone_nothing_changes() -> None:
    bench = log(("assistant",) * len(SAID), "What is my kitchen budget?")
    plain, held_back = (memlab.pipeline(text).run(bench).frame for text in ("combsum", "combsum(assistant=1)"))
    assert plain.equals(held_back)


def test_what_is_asked_of_the_assistant() -> None:
    of_it = ["Which hotel did you recommend?", "What was the third title on the list you gave me?"]
    of_user = ["Can you tell me where I live?", "Which hotel did I book?"]
    assert pl.Series(of_it + of_user).str.contains(ASKS_ASSISTANT).to_list() == [True, True, False, False]
