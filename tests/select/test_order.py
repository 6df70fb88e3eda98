"""Reorderings: diversity, budgets, coverage of the question, new sessions in front, of like turns the latest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import memlab
from memlab import datasets
from memlab.datasets import chatlog
from memlab.evaluate.stale import stale_table
from memlab.records import Run, run_from_scores
from memlab.retrieve import Bench
from memlab.select import budget, current, dpp, fill_sessions, mmr, msd
from memlab.select.coverage import _choose_greedily, coverage

Make = Callable[..., tuple[Run, Bench]]
DATA = datasets.load("data/facts/updates.jsonl")
BENCH = Bench.of(DATA, encoder="hashing", progress=False)
PLAIN = memlab.pipeline("dense").run(BENCH)
few = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(
    seed=st.integers(0, 1000), copies=st.sampled_from([1, 4]), levels=st.sampled_from([0, 1, 3]),
    diversity=st.floats(0, 1), k=st.integers(1, 45),
)  # fmt: skip
def test_diversity_keeps_the_first_and_the_rest(
    random_run: Make, seed: int, copies: int, levels: int, diversity: float, k: int
) -> None:
    run, bench = random_run(30, 2, seed=seed, copies=copies, levels=levels)
    for stage in (mmr, dpp, msd):
        strength = {"lambda_": 1 - diversity} if stage is mmr else {"diversity": diversity}
        got = stage(run, bench, k=k, **strength).frame
        assert got.select("query_id", "rank").equals(run.frame.select("query_id", "rank"))
        for (query,), rows in got.group_by("query_id"):
            before, after = run.frame.filter(query_id=query)["doc_id"].to_list(), rows["doc_id"].to_list()
            assert sorted(after) == sorted(before)
            assert after[0] == before[0]
            assert after[k:] == [d for d in before if d in set(after[k:])]


def test_copies_come_last(random_run: Make) -> None:
    run, bench = random_run(40, 1, copies=4, dim=16)
    documents = bench.documents("turn")
    for got in (mmr(run, bench, lambda_=0.0, k=10), dpp(run, bench, diversity=0.8, k=10)):
        first = documents.vectors()[documents.at(got.frame["doc_id"].head(10))]
        assert len(np.unique(first, axis=0)) == 10


@few
@given(seed=st.integers(0, 100), tokens=st.integers(1, 140))
def test_a_budget_keeps_the_longest_beginning_that_fits(random_run: Make, seed: int, tokens: int) -> None:
    run, bench = random_run(40, 3, seed=seed)
    length = dict(zip(bench.documents("turn").ids, bench.documents("turn").n_tokens.tolist(), strict=True))
    got = budget(run, bench, tokens=tokens)
    for (query,), rows in run.frame.group_by("query_id"):
        kept = got.frame.filter(query_id=query)
        assert kept.equals(rows.head(kept.height))
        spent = np.cumsum([length[d] for d in rows["doc_id"]])
        assert kept.height == (spent <= tokens).sum()


@few
@given(sessions=st.integers(1, 30), candidates=st.integers(1, 150))
def test_new_sessions_come_in_one_walk_down_the_ranking(sessions: int, candidates: int) -> None:
    documents = BENCH.documents("turn")
    session = dict(zip(documents.ids, documents.session.tolist(), strict=True))
    got = fill_sessions(PLAIN, BENCH, sessions=sessions, candidates=candidates).frame
    for (query,), rows in got.group_by("query_id"):
        before, front = PLAIN.frame.filter(query_id=query)["doc_id"].to_list(), dict[int, str]()
        for d in before[:candidates]:
            front.setdefault(session[d], d)
        first = list(front.values())[:sessions]
        assert rows["doc_id"].to_list() == first + [d for d in before if d not in first]


@few
@given(similarity=st.floats(-1, 1), candidates=st.integers(1, 30))
def test_of_similar_turns_of_one_speaker_the_later_is_first(similarity: float, candidates: int) -> None:
    ranked = current(PLAIN, BENCH, similarity=similarity, candidates=candidates).frame
    documents, turns = BENCH.documents("turn"), BENCH.turns.rename({"turn_id": "doc_id"})
    for (query,), rows in ranked.group_by("query_id"):
        before, first = PLAIN.frame.filter(query_id=query)["doc_id"], rows["doc_id"][:candidates]
        assert rows["doc_id"][candidates:].equals(before[candidates:])
        assert first.sort().equals(before[:candidates].sort())
        vectors = documents.vectors()[documents.at(first)].astype(np.float64)
        about = pl.DataFrame({"doc_id": first}).join(turns, on="doc_id", maintain_order="left")
        speaker, session, time = (about[c].to_numpy() for c in ("speaker", "session_id", "timestamp"))
        above, below = np.triu_indices(len(first), 1)
        same = (vectors @ vectors.T).round(6)[above, below] >= similarity
        same &= (speaker[above] == speaker[below]) & (session[above] != session[below])
        assert (time[above][same] >= time[below][same]).all()


def test_what_holds_comes_to_the_front_whatever_the_order_of_rows() -> None:
    ours = current(PLAIN, BENCH, similarity=0.2)
    before, after = stale_table([PLAIN, ours], DATA)["current first"]
    assert after > before
    shuffled = replace(DATA, turns=DATA.turns.sample(fraction=1.0, shuffle=True, seed=0))
    other = Bench.of(shuffled, encoder="hashing", progress=False)
    assert current(PLAIN, other, similarity=0.2).frame.equals(ours.frame)


MATCHES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(0, 4)), elements=st.integers(0, 4).map(float))


@given(MATCHES, st.integers(1, 7))
def test_each_choice_adds_most_to_the_best_match_of_every_part(matches: np.ndarray, k: int) -> None:
    relevance, taken = np.linspace(1, 0, len(matches)), list[int]()
    for place in _choose_greedily(relevance, matches, k).tolist():
        left = [i for i in range(len(matches)) if i not in taken]
        worth = {i: relevance[i] + matches[[*taken, i]].max(axis=0).sum() for i in left}
        assert place == max(worth, key=lambda i: round(worth[i], 9))
        taken.append(place)
    assert len(taken) == min(k, len(matches))


def test_a_part_that_is_covered_lets_another_through() -> None:
    """A run ranks all in the order of the conversation."""
    said = ["the piano again", "piano lessons", "a piano concert", "we sold the car", "nothing"]
    rows = [{"scope": "u", "session": "s", "id": str(i), "sender": "user", "text": text} for i, text in enumerate(said)]
    asked = {"scope": "u", "question": "Did we sell the car or the piano?", "query_id": "q"}
    bench = Bench.of(chatlog.dataset([*rows, asked], "small"), encoder="hashing:32")
    ids = bench.documents("turn").ids
    run = run_from_scores(["q"] * len(ids), ids, -np.arange(len(ids)), level="turn", k=9)
    for parameters, expected in (({"k": 2, "lambda_": 0.3}, [0, 3, 1, 2, 4]), ({"lambda_": 1.0}, [0, 1, 2, 3, 4])):
        got = coverage(run, bench, **parameters).frame
        assert bench.documents("turn").at(got["doc_id"]).tolist() == expected
