"""Selectors: diversity, budgets, new sessions, clusters, and of like turns the latest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
import pyversity
from hypothesis import given, settings
from hypothesis import strategies as st
from talk import world

import memlab
from memlab import datasets
from memlab.errors import DataError
from memlab.evaluate import stale_table
from memlab.records import Run, run_from_scores
from memlab.retrieve import Bench
from memlab.select import budget, by_cluster, current, dpp, expand_cluster, fill_sessions, mmr, msd
from memlab.select.greedy_selection import choose_diverse_ranks
from memlab.select.selection_candidates import candidates_by_query

DATA = datasets.load("data/facts/updates.jsonl")
BENCH = Bench.of(DATA, encoder="hashing", progress=False)
PLAIN = memlab.pipeline("dense").run(BENCH)
few = settings(max_examples=12)


def random_run(
    n: int = 40, queries: int = 3, *, seed: int = 0, dim: int = 8, copies: int = 1, levels: int = 0
) -> tuple[Run, Bench]:
    """Make a bench of ``n`` random unit vectors in one scope, and a run of random scores over some of them.

    :param copies: how many documents share a vector.
    :param levels: how many different scores there are; 0 for all different.
    """
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((-(-n // copies), dim)).astype(np.float32)
    vectors = np.tile(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), (copies, 1))[:n]
    data = world({"u": [["word " * (i % 7) for i in range(n)]]}, {"u": ["?"] * queries})
    bench = replace(Bench.of(data, encoder="hashing"), vectors=vectors)
    ids, asked = bench.documents("turn").ids, bench.queries["query_id"]
    pairs = [
        (query, ids[d]) for q, query in enumerate(asked) for d in rng.permutation(n)[: n - 5 * q]
    ]
    scores = rng.integers(0, levels, len(pairs)) if levels else rng.standard_normal(len(pairs))
    columns = [np.array(c, dtype=object) for c in zip(*pairs, strict=True)]
    return run_from_scores(*columns, scores.astype(float), level="turn", k=n), bench


@few
@given(
    seed=st.integers(0, 1000), copies=st.sampled_from([1, 4]), levels=st.sampled_from([0, 1, 3]),
    diversity=st.floats(0, 1), k=st.integers(1, 45),
)  # fmt: skip
def test_diversity_keeps_the_first_and_the_rest(
    seed: int, copies: int, levels: int, diversity: float, k: int
) -> None:
    run, bench = random_run(30, 2, seed=seed, copies=copies, levels=levels)
    for stage in (mmr, dpp, msd):
        strength = {"lambda_": 1 - diversity} if stage is mmr else {"diversity": diversity}
        got = stage(run, bench, k=k, **strength).frame
        assert got.select("query_id", "rank").equals(run.frame.select("query_id", "rank"))
        for (query,), rows in got.group_by("query_id"):
            before, after = (
                run.frame.filter(query_id=query)["doc_id"].to_list(),
                rows["doc_id"].to_list(),
            )
            assert sorted(after) == sorted(before)
            assert after[0] == before[0]
            assert after[k:] == [d for d in before if d in set(after[k:])]


@few
@given(
    seed=st.integers(0, 1000),
    copies=st.sampled_from([1, 4]),
    levels=st.sampled_from([0, 3]),
    diversity=st.floats(0.01, 1),
    k=st.integers(1, 45),
)
def test_choices_of_a_batch_are_those_of_the_library(
    seed: int, copies: int, levels: int, diversity: float, k: int
) -> None:
    run, bench = random_run(30, 4, seed=seed, copies=copies, levels=levels)
    vectors = bench.documents("turn").vectors()
    candidates = list(candidates_by_query(run, bench))
    for strategy in ("mmr", "msd", "dpp"):
        chosen = choose_diverse_ranks(
            candidates, vectors, strategy=strategy, diversity=diversity, k=k
        )
        for each, got in zip(candidates, chosen, strict=True):
            with np.errstate(all="ignore"):
                expected = pyversity.diversify(
                    vectors[each.places], each.relevance, k, strategy, diversity
                )
            ours = got.tolist()
            assert ours == expected.indices[: len(ours)].tolist()
            if strategy == "dpp":
                # It ends where nothing of a candidate is left that float32 can tell from rounding;
                # the library goes on, at times with NaN.
                assert not (expected.selection_scores[len(ours) :] >= 1e-3).any()
            else:
                assert len(ours) == len(expected.indices)


def test_copies_come_last() -> None:
    run, bench = random_run(40, 1, copies=4, dim=16)
    documents = bench.documents("turn")
    for got in (mmr(run, bench, lambda_=0.0, k=10), dpp(run, bench, diversity=0.8, k=10)):
        first = documents.vectors()[documents.at(got.frame["doc_id"].head(10))]
        assert len(np.unique(first, axis=0)) == 10


@few
@given(seed=st.integers(0, 100), tokens=st.integers(1, 140))
def test_a_budget_keeps_the_longest_beginning_that_fits(seed: int, tokens: int) -> None:
    run, bench = random_run(40, 3, seed=seed)
    length = dict(
        zip(bench.documents("turn").ids, bench.documents("turn").n_tokens.tolist(), strict=True)
    )
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
def test_of_similar_turns_of_one_speaker_the_later_is_first(
    similarity: float, candidates: int
) -> None:
    ranked = current(PLAIN, BENCH, similarity=similarity, candidates=candidates).frame
    documents, turns = BENCH.documents("turn"), BENCH.turns.rename({"turn_id": "doc_id"})
    for (query,), rows in ranked.group_by("query_id"):
        before, first = PLAIN.frame.filter(query_id=query)["doc_id"], rows["doc_id"][:candidates]
        assert rows["doc_id"][candidates:].equals(before[candidates:])
        assert first.sort().equals(before[:candidates].sort())
        vectors = documents.speaker_centred()[documents.at(first)].astype(np.float64)
        about = pl.DataFrame({"doc_id": first}).join(turns, on="doc_id", maintain_order="left")
        speaker, session, time = (
            about[c].to_numpy() for c in ("speaker", "session_id", "timestamp")
        )
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


def grouped(run: Run, bench: Bench, group: np.ndarray) -> tuple[Bench, list[int]]:
    """Give the documents of a group nearly the same direction; and the groups in order of rank."""
    noise = np.random.default_rng(0).standard_normal((len(group), 40)) * 0.01
    noise[np.bincount(group)[group] == 1] = 0
    vectors = (np.eye(40)[group] + noise).astype(np.float32)
    clear = replace(bench, vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return clear, group[clear.documents("turn").at(run.frame["doc_id"])].tolist()


@pytest.mark.parametrize(
    ("clustering", "group"),
    [
        ("kmeans", np.arange(40) % 4),
        ("hdbscan", np.r_[np.zeros(10, int), np.ones(10, int), np.arange(2, 22)]),
    ],
)
def test_the_best_of_each_clear_group_come_first(clustering: str, group: np.ndarray) -> None:
    """Four groups; or two tight ones among twenty loners, each of which is a cluster of its own.

    As they are encoded: centred, the loners are no longer exactly as far from each other.
    """
    run, bench = random_run(40, 1)
    clear, before = grouped(run, bench, group)
    taken = by_cluster(run, clear, clustering=clustering, n_clusters=4, centred=False)
    got = taken.frame["doc_id"]
    rounds = [before[:place].count(label) for place, label in enumerate(before)]
    assert got.equals(run.frame["doc_id"].gather(np.argsort(rounds, kind="stable")))


@pytest.mark.parametrize(("clustering", "size"), [("kmeans", 4), ("hdbscan", 3)])
@pytest.mark.parametrize("seeds", [1, 5])
def test_whole_clusters_follow_the_seeds(clustering: str, size: int, seeds: int) -> None:
    run, bench = random_run(40, 3, seed=3)
    clear, _ = grouped(run, bench, np.arange(40) % 10)
    documents = clear.documents("turn")
    group = dict(zip(documents.ids, (np.arange(40) % 10).tolist(), strict=True))
    vectors = dict(zip(documents.ids, documents.speaker_centred().astype(float), strict=True))
    got = expand_cluster(run, clear, seeds=seeds, cluster_size=size, clustering=clustering).frame
    assert got.height > run.frame.height, "members come that the run did not hold"
    for (query,), rows in got.group_by("query_id"):
        before = run.frame.filter(query_id=query)["doc_id"].to_list()
        first = before[:seeds]
        wanted = {d for d in group if group[d] in {group[s] for s in first}}
        outside = sorted(
            wanted - set(before), key=lambda d: -max(vectors[d] @ vectors[s] for s in first)
        )
        inside = [d for d in before[seeds:] if d in wanted]
        assert rows["doc_id"].to_list() == first + inside + outside + [
            d for d in before if d not in wanted
        ]


NAMES = np.repeat([0, 1], 60)
"""Who says each turn of :func:`named_bench`."""


def named_bench() -> tuple[Run, Bench]:
    """Give turns of two people about twenty subjects, encoded with a name that outweighs the subject, and a run."""
    rng = np.random.default_rng(0)
    subject = np.tile(np.arange(20), 6)
    vectors = 2 * np.eye(24)[NAMES] + np.eye(24)[2 + subject] + 0.05 * rng.normal(size=(120, 24))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    data = world({"u": [[f"word {i}" for i in range(120)]]}, {"u": ["?"]})
    speaker = pl.Series("speaker", np.array(["Ana", "Mika"])[NAMES])
    turns = data.turns.with_columns(speaker)
    bench = Bench.of(replace(data, turns=turns), encoder="hashing")
    bench = replace(bench, vectors=vectors.astype(np.float32))
    ids = bench.turns["turn_id"]
    asked = np.repeat(np.array([bench.queries["query_id"][0]], dtype=object), 120)
    scores = 1 / (1.0 + np.arange(120))
    return run_from_scores(asked, ids.to_numpy(), scores, level="turn", k=120), bench


def test_a_scope_is_clustered_once_for_all_rankings(monkeypatch: pytest.MonkeyPatch) -> None:
    run, bench = named_bench()
    monkeypatch.setattr(memlab.clusterers, "_functions", dict(memlab.clusterers))
    sizes = list[int]()

    @memlab.clusterer(name="counted")
    def counted(vectors: np.ndarray) -> np.ndarray:
        sizes.append(len(vectors))
        return np.arange(len(vectors)) % 2

    first = expand_cluster(run, bench, clustering="counted", seeds=1)
    again = expand_cluster(run, bench, clustering="counted", seeds=1)
    assert again.frame.equals(first.frame)
    assert len(sizes) == len(bench.documents("turn").spans)
    expand_cluster(run, bench, clustering="counted", seeds=1, centred=False)
    assert len(sizes) == 2 * len(bench.documents("turn").spans)
    del memlab.clusterers["counted"]

    @memlab.clusterer(name="counted")
    def counted_anew(vectors: np.ndarray) -> np.ndarray:
        return np.zeros(len(vectors), int)

    anew = expand_cluster(run, bench, clustering="counted", seeds=1)
    assert not anew.frame.equals(first.frame)


def test_clusters_are_of_subjects_and_as_encoded_of_speakers() -> None:
    run, bench = named_bench()
    at = dict(zip(bench.turns["turn_id"], range(120), strict=True))
    brought = {}
    for centred in (False, True):
        got = expand_cluster(run, bench, seeds=1, cluster_size=6, centred=centred).frame["doc_id"]
        brought[centred] = [at[doc] for doc in got.head(6)]
    assert {place % 20 for place in brought[True]} == {0}, "what is said"
    assert set(NAMES[brought[True]]) == {0, 1}
    assert set(NAMES[brought[False]]) == {0}, "who says it"


def test_branches_of_the_tree_follow_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six turns of each subject are a branch; the tree is made once, whatever is asked of it."""
    run, bench = named_bench()
    at = dict(zip(bench.turns["turn_id"], range(120), strict=True))
    short = run.top(8)
    before = [at[doc] for doc in short.frame["doc_id"]]
    subjects = dict[int, set[int]]()
    for seeds, branch in ((1, 6), (3, 6), (1, 2)):
        got = expand_cluster(short, bench, seeds=seeds, branch=branch).frame["doc_id"]
        places = [at[doc] for doc in got]
        assert places[:seeds] == before[:seeds]
        brought = set(places) - set(before)
        subjects[branch] = {place % 20 for place in brought}
        assert subjects[branch] <= {place % 20 for place in before[:seeds]}, "of their subjects"
        whole = {place for place in range(120) if place % 20 in {p % 20 for p in before[:seeds]}}
        assert branch < 6 or whole <= set(places)
        assert set(before) <= set(places), "nothing that the run holds is lost"
    everything = expand_cluster(short, bench, branch=120).frame
    assert everything.height == 120
    more = expand_cluster(short, bench, branch=500).frame
    assert more.equals(everything), "the whole scope is the largest branch"
    encoded = expand_cluster(short, bench, seeds=1, branch=30, centred=False).frame["doc_id"]
    assert {NAMES[at[doc]] for doc in encoded.head(20)} == {NAMES[before[0]]}, "who says it"
    monkeypatch.setattr("memlab.select.cluster_selection.merge_tree", None)
    again = expand_cluster(short, bench, branch=120).frame
    assert again.equals(everything), "kept"
    with pytest.raises(DataError, match="branch is 1; expected at least 2"):
        expand_cluster(short, bench, branch=1)


@pytest.mark.parametrize("stage", [mmr, dpp, msd, by_cluster, expand_cluster, current])
def test_each_compares_turns_both_ways(stage: Any) -> None:
    run, bench = named_bench()
    if stage is current:
        run = run.top(40)
    both = [
        stage(run, bench, centred=centred).frame["doc_id"].to_list() for centred in (True, False)
    ]
    assert sorted(both[0]) == sorted(both[1]) or stage is expand_cluster
    if stage is not current:  # which finds no later session here
        assert both[0] != both[1]


def test_a_clusterer_that_finds_no_cluster_says_that_the_ranking_is_unchanged() -> None:
    bench = memlab.Bench.of(memlab.sample(turns=60), encoder="hashing:64")
    plain = memlab.retrieve.dense(bench)
    how = {"clustering": "hdbscan", "min_cluster_size": 30, "candidates": 20}
    found = "hdbscan found no cluster of two among the first 20"
    advice = "raise candidates=20, or lower min_cluster_size=30$"
    with pytest.warns(UserWarning, match=f"{found} .*; {advice}"):
        same = memlab.select.by_cluster(plain, bench, **how)
    assert same.frame["doc_id"].equals(plain.frame["doc_id"])
