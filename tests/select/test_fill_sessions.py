"""Distinct sessions in front."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab import retrieve
from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.select.fill_sessions import fill_sessions

Make = Callable[..., tuple[Run, Bench]]


@pytest.fixture(scope="module")
def talk() -> tuple[Run, Bench, dict[str, int]]:
    bench = Bench.of(memlab.sample(turns=300), encoder=None)
    documents = bench.documents("turn")
    return retrieve.bm25(bench, k=120), bench, dict(zip(documents.ids, documents.session.tolist(), strict=True))


def walked(ids: list[str], session: dict[str, int], sessions: int, per_session: int, candidates: int) -> list[str]:
    """The same in plain Python: one walk down the ranking."""
    front: list[str] = []
    seen: Counter[int] = Counter()
    for doc in ids[:candidates]:
        of = session[doc]
        if (of in seen or len(seen) < sessions) and seen[of] < per_session:
            front.append(doc)
            seen[of] += 1
    return front + [d for d in ids if d not in set(front)]


@settings(max_examples=30, deadline=None)
@given(sessions=st.integers(1, 30), per_session=st.integers(1, 4), candidates=st.integers(1, 150))
def test_one_walk_down_the_ranking(
    talk: tuple[Run, Bench, dict[str, int]], sessions: int, per_session: int, candidates: int
) -> None:
    run, bench, session = talk
    got = fill_sessions(run, bench, sessions=sessions, per_session=per_session, candidates=candidates).frame
    assert got.select("query_id", "rank").equals(run.frame.select("query_id", "rank"))
    assert got["query_id"].unique(maintain_order=True).equals(run.frame["query_id"].unique(maintain_order=True))
    after = dict(got.group_by("query_id").agg("doc_id").iter_rows())
    for query, ids in run.frame.group_by("query_id").agg("doc_id").iter_rows():
        assert after[query] == walked(ids, session, sessions, per_session, candidates)


def test_the_first_places_hold_as_many_sessions_as_can_be(talk: tuple[Run, Bench, dict[str, int]]) -> None:
    run, bench, session = talk
    before, after = (
        r.frame.group_by("query_id").agg("doc_id") for r in (run, fill_sessions(run, bench, candidates=200))
    )
    held = dict(before.iter_rows())
    gained = 0
    for query, ids in after.iter_rows():
        distinct = len({session[d] for d in ids[:5]})
        assert distinct == min(5, len({session[d] for d in ids}))
        gained += distinct > len({session[d] for d in held[query][:5]})
    assert gained


def test_one_session_or_a_run_of_sessions_stays(random_run: Make, talk: tuple[Run, Bench, dict[str, int]]) -> None:
    run, bench = random_run(30, 2)
    assert fill_sessions(run, bench).frame["doc_id"].equals(run.frame["doc_id"])
    of_sessions = retrieve.bm25(talk[1], level="session")
    assert fill_sessions(of_sessions, talk[1]).frame["doc_id"].equals(of_sessions.frame["doc_id"])


def test_a_query_is_filled_alone_as_among_many(talk: tuple[Run, Bench, dict[str, int]]) -> None:
    run, bench, _ = talk
    many = fill_sessions(run, bench).frame
    for query in np.unique(run.frame["query_id"].to_numpy())[[0, -1]]:
        alone = fill_sessions(replace(run, frame=run.frame.filter(pl.col("query_id") == query)), bench).frame
        assert alone.equals(many.filter(pl.col("query_id") == query))


def test_no_candidates_and_wrong_arguments(random_run: Make) -> None:
    run, bench = random_run()
    none = replace(run, frame=run.frame.head(0))
    assert fill_sessions(none, bench).frame.equals(none.frame)
    for name in ("sessions", "per_session", "candidates"):
        with pytest.raises(DataError, match=f"{name} is 0; expected at least 1"):
            fill_sessions(run, bench, **{name: 0})
