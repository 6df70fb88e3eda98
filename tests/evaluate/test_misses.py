"""Each cause by a case made for it, and what the counts by cause mean."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.evaluate import by_cause, misses
from memlab.evaluate.misses import CAUSES
from memlab.records import Dataset, Question, Run, Session, Turn, frame, run_from_scores

DAY = datetime(2026, 1, 1, tzinfo=UTC)
FILLER = "Lovely weather here."


def chat(
    turns: dict[int, str | tuple[str, str]],
    *,
    question: str = "What pets does Ann have?",
    answer: str | None = "A ferret",
    evidence: tuple[int, ...] = (1,),
    n: int = 40,
) -> Dataset:
    """One session of Ann's: filler but for the turns given, some with a caption."""
    held = {i: turns.get(i, FILLER) for i in range(1, n + 1)}
    rows = [
        Turn(f"a/s/{i}", "a", "a/s", i, "Ann", "user", *((said, None) if isinstance(said, str) else said))
        for i, said in held.items()
    ]
    asked = Question("a/q", "a", question, answer, "kind", None, [f"a/s/{i}" for i in evidence], ["a/s"])
    sessions = [Session("a/s", "a", 1, DAY, DAY, n, ["Ann"])]
    return Dataset("chat", "chatlog", frame(Turn, rows), frame(Session, sessions), frame(Question, [asked]))


def ranked(data: Dataset, *order: int) -> Run:
    """The turns of the first question, in that order."""
    ids = np.array([f"a/s/{i}" for i in order])
    query = np.array([data.questions["query_id"][0]] * len(order))
    return run_from_scores(query, ids, -np.arange(len(order), dtype=float), level="turn", k=100)


FAR = tuple(range(30, 41))
CASES = {
    "budget": chat({1: "My pets."}, evidence=(1, 20, 21)),
    "caption": chat({1: ("Look at him!", "a photo of a ferret in a basket")}),
    "pronouns": chat({1: "And so is he, very much."}),
    "label": chat({1: "I painted the fence.", 31: "The ferret bit me."}),
    "implied": chat({1: "Slinky stole my socks."}),
    "other words": chat({1: "I bought a ferret."}),
    "near miss": chat({1: "I own some pets."}),
    "outranked": chat({1: "I own some pets."}),
    "follow-on": chat({29: "I bought Slinky, a ferret."}, evidence=(29,)),
    "common words": chat(dict.fromkeys(range(1, 20), "So many pets.") | {1: "Our pets nap upstairs."}),
}


@pytest.mark.parametrize("cause", CASES)
def test_each_cause(cause: str) -> None:
    places = FAR[:3] if cause in ("budget", "near miss") else FAR
    data = CASES[cause]
    run = ranked(data, *places, *((1,) if cause == "near miss" else ()))
    k = 2 if cause == "budget" else 3 if cause == "near miss" else 10
    table = misses(run, data, k=k)
    assert set(table["cause"]) == {cause}


def test_a_row_says_what_was_missed_and_where() -> None:
    data = chat({1: ("Look at him!", "a ferret")}, evidence=(1, 30, 25))
    rows = misses(ranked(data, *FAR, 25), data, k=10).rows(named=True)
    assert [(row["doc_id"], row["rank"]) for row in rows] == [("a/s/1", None), ("a/s/25", 12)]
    assert rows[0]["text"] == "Look at him! [image: a ferret]"
    assert rows[1]["text"] == FILLER
    assert rows[0]["question"] == "What pets does Ann have?"
    assert rows[0]["answer"] == "A ferret"
    assert rows[0]["n_evidence_sessions"] == 1


def test_a_name_of_a_speaker_is_no_shared_word() -> None:
    data = chat({1: "Ann sleeps badly."}, question="Does Ann rest?", answer="Ann: badly not")
    assert misses(ranked(data, *FAR), data)["cause"].to_list() == ["other words"]
    data = chat({1: "Ann sleeps badly."}, question="Does Ann rest?", answer="No")
    assert misses(ranked(data, *FAR), data)["cause"].to_list() == ["implied"]


def test_what_cannot_be_analysed_is_refused() -> None:
    data = chat({1: "pets"})
    run, bare = ranked(data, 1), Dataset("bare", "chatlog", data.turns, data.sessions)
    for args, k in (((replace(run, level="session"), data), 10), ((run, data), 0), ((run, bare), 10)):
        with pytest.raises(DataError, match="give a ranking of turns, k from 1, and questions with evidence"):
            misses(*args, k=k)


pieces = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(sorted(CAUSES))), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(pieces)
def test_an_answer_is_solved_by_a_cause_that_stands_alone(rows: list[tuple[str, str]]) -> None:
    missed = pl.DataFrame(rows, schema=["query_id", "cause"], orient="row")
    table = by_cause(missed)
    assert table["cause"].to_list() == list(CAUSES)
    assert table["n"].sum() == len(rows)
    assert table["share"].sum() == pytest.approx(1)
    lost = {query for query, _ in rows}
    for cause, solved, alone in table.select("cause", "solved", "alone").iter_rows():
        complete = {q for q in lost if {c for query, c in rows if query == q} == {cause}}
        assert solved == len(complete)
        assert alone == pytest.approx(len(complete) / len(lost))
