"""New sessions in front, and of turns about the same thing the latest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab import datasets
from memlab.evaluate.stale import stale_table
from memlab.retrieve import Bench
from memlab.select import current, fill_sessions

DATA = datasets.load("data/facts/updates.jsonl")
BENCH = Bench.of(DATA, encoder="hashing", progress=False)
PLAIN = memlab.pipeline("dense").run(BENCH)


@settings(max_examples=15)
@given(sessions=st.integers(1, 30), candidates=st.integers(1, 150))
def test_one_walk_down_the_ranking(sessions: int, candidates: int) -> None:
    documents = BENCH.documents("turn")
    session = dict(zip(documents.ids, documents.session.tolist(), strict=True))
    got = fill_sessions(PLAIN, BENCH, sessions=sessions, candidates=candidates).frame
    for (query,), rows in got.group_by("query_id"):
        before = PLAIN.frame.filter(query_id=query)["doc_id"].to_list()
        front = list({session[d]: d for d in before[:candidates][::-1]}.values())[::-1]
        front = sorted(front, key=before.index)[:sessions]
        assert rows["doc_id"].to_list() == front + [d for d in before if d not in front]


@settings(max_examples=10)
@given(similarity=st.floats(-1, 1), candidates=st.integers(1, 30))
def test_of_similar_turns_of_one_speaker_the_later_is_first(similarity: float, candidates: int) -> None:
    ranked = current(PLAIN, BENCH, similarity=similarity, candidates=candidates).frame
    documents, turns = BENCH.documents("turn"), BENCH.turns.rename({"turn_id": "doc_id"})
    for (query,), rows in ranked.group_by("query_id"):
        before = PLAIN.frame.filter(query_id=query)["doc_id"]
        assert rows["doc_id"][candidates:].equals(before[candidates:])
        first = rows["doc_id"][:candidates]
        assert first.sort().equals(before[:candidates].sort())
        vectors = documents.vectors()[documents.at(first)].astype(np.float64)
        about = pl.DataFrame({"doc_id": first}).join(turns, on="doc_id", maintain_order="left")
        speaker, session, time = (about[c].to_numpy() for c in ("speaker", "session_id", "timestamp"))
        above, below = np.triu_indices(len(first), 1)
        same = (vectors @ vectors.T).round(6)[above, below] >= similarity
        same &= (speaker[above] == speaker[below]) & (session[above] != session[below])
        assert (time[above][same] >= time[below][same]).all()


def test_turns_in_another_order_of_rows_are_dated_the_same() -> None:
    shuffled = replace(DATA, turns=DATA.turns.sample(fraction=1.0, shuffle=True, seed=0))
    other = Bench.of(shuffled, encoder="hashing", progress=False)
    assert current(PLAIN, other, similarity=0.2).frame.equals(current(PLAIN, BENCH, similarity=0.2).frame)


def test_it_brings_what_holds_to_the_front() -> None:
    before, after = stale_table([PLAIN, current(PLAIN, BENCH, similarity=0.2)], DATA)["current first"]
    assert after > before
