"""The light reranker against a loop over documents, and each of its parts alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab.errors import DataError
from memlab.language.analysis import tokenize
from memlab.records import Dataset, Level, Question, Run, Session, Turn, frame, run_from_scores
from memlab.rerank import light
from memlab.retrieve import Bench, bm25, sessions_from_turns

START = datetime(2024, 5, 1, tzinfo=UTC)
WORDS = ["doctor", "rose", "water", "dentist", "bike", "the"]
ALONE = {"summary_boost": 1.0, "covered": 1.0}


def world(*, seed: int = 0, timed: bool = True, summaries: bool = True) -> Bench:
    """Two scopes of a few sessions with random words; some turns, sessions and questions without a time."""
    rng = np.random.default_rng(seed)
    turns, sessions, questions = [], [], []
    for scope in ("a", "b"):
        for s in range(1, 6):
            name, at, size = f"{scope}/s{s}", START + timedelta(days=s), int(rng.integers(0, 7))
            said = [" ".join(rng.choice(WORDS, rng.integers(0, 4))) for _ in range(size)]
            dates = [at + timedelta(hours=n) if timed and rng.random() < 0.7 else None for n in range(size)]
            rows = zip(said, dates, strict=True)
            turns += [
                Turn(f"{name}/{n}", scope, name, n, "user", "user", t, None, d) for n, (t, d) in enumerate(rows, 1)
            ]
            dated = at if timed and s % 2 else None
            text = " ".join(rng.choice(WORDS, 3)) if summaries and s != 3 else [None, "", " "][s % 3]
            sessions.append(Session(name, scope, s, dated, dated, size, ["user"], summary=text))
        for q in range(4):
            text = " ".join(rng.choice([*WORDS, "zyzzyva"], q))
            when = START + timedelta(days=3) if q % 2 and timed else None
            questions.append(Question(f"{scope}/q{q}", scope, text, "", "t", when, [], []))
    return Bench.of(
        Dataset("w", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions)), encoder=None
    )


def random_run(bench: Bench, *, seed: int = 0, n: int = 9) -> Run:
    rng = np.random.default_rng(seed)
    rows = [
        (query, document, score)
        for query, scope in bench.queries.select("query_id", "scope").iter_rows()
        for ids in [bench.turns.filter(pl.col("scope") == scope)["turn_id"].to_numpy()]
        for document, score in zip(rng.permutation(ids)[:n], rng.standard_normal(n), strict=False)
    ]
    queries, documents, scores = (np.array(column) for column in zip(*rows, strict=True))
    return run_from_scores(queries, documents, scores, level="turn", k=100)


def by_hand(run: Run, bench: Bench, weights: tuple[float, ...], half_life: float, covered: float, window: int) -> Any:
    """Relevance, recency, shared words and covered turns, as the docstring says them."""
    turns = {t["turn_id"]: t for t in bench.turns.iter_rows(named=True)}
    sessions = {s["session_id"]: s for s in bench.sessions.iter_rows(named=True)}
    asked = {q["query_id"]: q for q in bench.queries.iter_rows(named=True)}

    def time(turn: dict[str, Any]) -> datetime | None:
        return turn["timestamp"] or sessions[turn["session_id"]]["start"]

    result = {}
    for (query,), rows in run.frame.group_by("query_id", maintain_order=True):
        ids, scores = rows["doc_id"].to_list(), rows["score"].to_numpy()
        spread = scores.max() - scores.min()
        relevance = (scores - scores.min()) / spread if spread else np.ones(len(scores))
        times = [time(t) for t in turns.values() if t["scope"] == asked[query]["scope"]]
        now = asked[query]["timestamp"] or max((t for t in times if t is not None), default=None)
        ages = [time(turns[d]) and max((now - time(turns[d])).total_seconds() / 3600, 0) for d in ids]
        known = [0.5 ** (age / half_life) for age in ages if age is not None]
        recency = [np.mean(known or [0]) if age is None else 0.5 ** (age / half_life) for age in ages]
        words, *held = (set(t) for t in tokenize([asked[query]["text"], *(turns[d]["text"] for d in ids)]))
        shared = [len(words & h) / len(words) if words else 0.0 for h in held]
        value = weights[0] * relevance + weights[1] * np.array(recency) + weights[2] * np.array(shared)
        order = sorted(range(len(ids)), key=lambda i: -value[i])
        for place, i in enumerate(order):
            one = turns[ids[i]]
            better = [turns[ids[j]] for j in order[:place]]
            if any(one["session_id"] == b["session_id"] and abs(one["n"] - b["n"]) <= window for b in better):
                result[query, ids[i]] = value[i] * covered
            else:
                result[query, ids[i]] = value[i]
    return result


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(("weights", "half_life"), [((0.7, 0.1, 0.2), 72.0), ((0.2, 0.8, 0.3), 12.0)])
@pytest.mark.parametrize(("covered", "window"), [(0.5, 1), (0.25, 3), (1.0, 1), (0.5, 0)])
def test_the_sum_by_hand(
    timed: bool, weights: tuple[float, ...], half_life: float, covered: float, window: int
) -> None:
    for seed in range(2):
        bench = world(seed=seed, timed=timed)
        run = random_run(bench, seed=seed)
        sizes = {"half_life_hours": half_life, "covered": covered, "window": window}
        got = light(run, bench, weights=weights, summary_boost=1, **sizes)
        expected = by_hand(run, bench, weights, half_life, covered, window)
        pairs = list(got.frame.select("query_id", "doc_id").iter_rows())
        assert len(pairs) == len(expected) == run.frame.height
        assert got.frame["score"].to_list() == pytest.approx([expected[pair] for pair in pairs], abs=1e-6)


def one_scope(said: list[str], **columns: list[Any]) -> tuple[Run, Bench]:
    """One session; the run ranks its turns in order, all nearly alike."""
    turns = [Turn(f"u/s/{i}", "u", "u/s", i, "user", "user", t) for i, t in enumerate(said, 1)]
    rows = frame(Turn, turns).with_columns(pl.Series(k, v, dtype=frame(Turn).schema[k]) for k, v in columns.items())
    asked = frame(Question, [Question("q", "u", "roses and water", None, "t", None, [], [])])
    data = Dataset("w", "chatlog", rows, frame(Session, [Session("u/s", "u", 1, None, None, len(said), [])]), asked)
    ids = rows["turn_id"].to_numpy()
    scores = np.arange(len(ids), 0.0, -1.0)
    run = run_from_scores(np.repeat("q", len(ids)), ids, scores, level="turn", k=99)
    return run, Bench.of(data, encoder=None)


def test_shared_words_are_a_share_of_the_questions_words() -> None:
    run, bench = one_scope(["a bike", "the rose", "ROSES, and roses", "Watering the rose"])
    got = light(run, bench, weights=(0, 0, 1), **ALONE).frame
    assert got["doc_id"].to_list() == ["u/s/4", "u/s/2", "u/s/3", "u/s/1"]
    assert got["score"].to_list() == pytest.approx([1, 0.5, 0.5, 0], abs=1e-6)


def test_recency_halves_every_half_life() -> None:
    times = [START, START + timedelta(hours=48), START + timedelta(hours=24), None]
    run, bench = one_scope(["x"] * 4, timestamp=times)
    got = light(run, bench, weights=(0, 1, 0), half_life_hours=24, **ALONE).frame
    assert got["doc_id"].to_list() == ["u/s/2", "u/s/4", "u/s/3", "u/s/1"]
    assert got["score"].to_list() == pytest.approx([1, 1.75 / 3, 0.5, 0.25], abs=1e-6)


def test_recency_counts_from_the_question_where_it_has_a_time() -> None:
    times = [START, START + timedelta(hours=48)]
    run, bench = one_scope(["x"] * 2, timestamp=times)
    later = replace(bench, queries=bench.queries.with_columns(timestamp=pl.lit(START + timedelta(hours=24))))
    got = light(run, later, weights=(0, 1, 0), half_life_hours=24, **ALONE).frame
    # The second was said after the question was asked: nothing is fresher than fresh.
    assert dict(got.select("doc_id", "score").iter_rows()) == pytest.approx({"u/s/2": 1.0, "u/s/1": 0.5})


def test_documents_without_any_time_keep_their_order() -> None:
    run, bench = one_scope(["x"] * 5)
    assert light(run, bench, weights=(0, 1, 0), **ALONE).frame["doc_id"].equals(run.frame["doc_id"])


@pytest.mark.parametrize(("window", "alone"), [(0, {1, 2, 3, 4, 5}), (1, {1, 3, 5}), (2, {1})])
def test_a_turn_near_a_better_one_counts_half(window: int, alone: set[int]) -> None:
    """In the order of the talk the turns score 1, .6, .9, .5, .8; a covered turn covers too."""
    run, bench = one_scope(["x"] * 5)
    scores = [1.0, 0.6, 0.9, 0.5, 0.8]
    run = run_from_scores(np.repeat("q", 5), bench.documents("turn").ids, np.array(scores), level="turn", k=9)
    got = light(run, bench, weights=(1, 0, 0), summary_boost=1, covered=0.5, window=window).frame
    relevance = [(s - 0.5) / 0.5 for s in scores]
    expected = {f"u/s/{i}": r * (1 if i in alone else 0.5) for i, r in enumerate(relevance, 1)}
    assert dict(got.select("doc_id", "score").iter_rows()) == pytest.approx(expected, abs=1e-6)


def test_only_neighbours_in_the_same_session_cover() -> None:
    turns = [Turn(f"u/{s}/{n}", "u", f"u/{s}", n, "user", "user", "x") for s in "st" for n in (1, 2)]
    sessions = [Session(f"u/{s}", "u", i, None, None, 2, []) for i, s in enumerate("st", 1)]
    asked = [Question(q, "u", "x", None, "t", None, [], []) for q in ("q", "r")]
    bench = Bench.of(
        Dataset("w", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, asked)), encoder=None
    )
    ids = np.array(["u/s/2", "u/t/1", "u/s/1", "u/t/2"] * 2)
    run = run_from_scores(np.repeat(["q", "r"], 4), ids, np.array([4.0, 3, 2, 1, 1, 2, 3, 4]), level="turn", k=9)
    got = light(run, bench, weights=(1, 0, 0), summary_boost=1, covered=0.1).frame
    kept = dict(got.filter(pl.col("query_id") == "q").select("doc_id", "score").iter_rows())
    assert kept == pytest.approx({"u/s/2": 1, "u/t/1": 2 / 3, "u/s/1": 1 / 30, "u/t/2": 0}, abs=1e-6)
    other = dict(got.filter(pl.col("query_id") == "r").select("doc_id", "score").iter_rows())
    assert other == pytest.approx({"u/t/2": 1, "u/s/1": 2 / 3, "u/t/1": 1 / 30, "u/s/2": 0}, abs=1e-6)


def test_turns_of_the_sessions_whose_summaries_fit_best_are_lifted() -> None:
    turns = [Turn(f"u/{s}/1", "u", f"u/{s}", 1, "user", "user", "x") for s in "abcd"]
    summaries = ["nothing of it", "roses got water", "roses", None]
    sessions = [
        Session(f"u/{s}", "u", i, None, None, 1, [], summary=t)
        for i, (s, t) in enumerate(zip("abcd", summaries, strict=True), 1)
    ]
    asked = frame(Question, [Question("q", "u", "roses and water", None, "t", None, [], [])])
    bench = Bench.of(Dataset("w", "chatlog", frame(Turn, turns), frame(Session, sessions), asked), encoder=None)
    scores = np.array([1.0, 0.9, 0.9, 0.0])
    run = run_from_scores(np.repeat("q", 4), np.array([f"u/{s}/1" for s in "adbc"]), scores, level="turn", k=9)
    for sessions_lifted, lifted in ((0, set()), (1, {"u/b/1"}), (2, {"u/b/1", "u/c/1"}), (4, {"u/b/1", "u/c/1"})):
        weights = (0.5, 0, 0)
        plain, got = (
            dict(
                light(run, bench, weights=weights, summary_boost=boost, sessions=sessions_lifted, covered=1)
                .frame.select("doc_id", "score")
                .iter_rows()
            )
            for boost in (1.0, 1.25)
        )
        expected = {d: score * (1.25 if d in lifted else 1.0) for d, score in plain.items()}
        assert got == pytest.approx(expected, abs=1e-6), sessions_lifted


def test_sessions_have_recency_words_and_summaries_but_no_cover() -> None:
    bench = world(seed=2)
    run = sessions_from_turns(random_run(bench, seed=2), bench)
    got = light(run, bench)
    assert got.level == "session"
    assert got.frame.equals(light(run, bench, covered=0.1, window=9).frame)
    assert not got.frame.equals(light(run, bench, weights=(1, 0, 0)).frame)
    assert not got.frame.equals(light(run, bench, summary_boost=1).frame)


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 50),
    weights=st.lists(st.floats(0, 1), min_size=3, max_size=3),
    boost=st.floats(0, 2),
    covered=st.floats(0, 1),
    window=st.integers(0, 3),
)
def test_laws(seed: int, weights: list[float], boost: float, covered: float, window: int) -> None:
    bench = world(seed=seed % 5)
    run = random_run(bench, seed=seed)
    options: dict[str, Any] = {"weights": weights, "summary_boost": boost, "covered": covered, "window": window}
    got = light(run, bench, **options)
    pairs = [r.frame.select("query_id", "doc_id").sort(pl.all()) for r in (run, got)]
    assert pairs[0].equals(pairs[1])
    assert got.frame["query_id"].unique(maintain_order=True).equals(run.frame["query_id"].unique(maintain_order=True))
    for query in ("a/q0", "b/q3"):
        mine = run.frame.filter(pl.col("query_id") == query)
        alone = replace(bench, queries=bench.queries.filter(pl.col("query_id") == query))
        expected = got.frame.filter(pl.col("query_id") == query)
        assert light(replace(run, frame=mine), alone, **options).frame.equals(expected)
    scaled_up = replace(run, frame=run.frame.with_columns(score=pl.col("score") * 4 + 8))
    assert light(scaled_up, bench, **options).frame["doc_id"].equals(got.frame["doc_id"])


def test_relevance_alone_is_the_ranking_as_it_was() -> None:
    bench = world()
    run = random_run(bench)
    assert light(run, bench, weights=(1, 0, 0), **ALONE).frame["doc_id"].equals(run.frame["doc_id"])
    assert light(run, bench, weights=(0, 0, 0)).frame["doc_id"].equals(run.frame["doc_id"])


@pytest.mark.parametrize("level", ["turn", "session"])
def test_no_summaries_no_times_no_matches(level: Level) -> None:
    bench = world(timed=False, summaries=False)
    run = bm25(bench, level=level, k=500)
    got = light(run, bench)
    assert got.frame["doc_id"].len() == run.frame.height
    nothing = got.frame.filter(pl.col("query_id") == "a/q0")["doc_id"]
    if level == "session":
        assert nothing.equals(run.frame.filter(pl.col("query_id") == "a/q0")["doc_id"])


def test_what_goes_in_is_kept() -> None:
    bench = Bench.of(memlab.sample(["owen"], turns=120), encoder=None)
    run = replace(bm25(bench, k=20), name="mine", provenance={"x": 1})
    before = run.frame.clone()
    got = light(run, bench)
    assert (got.name, got.provenance, got.level) == ("mine", {"x": 1}, "turn")
    assert run.frame.equals(before)
    assert got.text_of is not None
    assert not got.frame["doc_id"].equals(run.frame["doc_id"])
    none = replace(run, frame=run.frame.head(0))
    assert light(none, bench).frame.equals(none.frame)
    assert light(run.top(1), bench).frame["doc_id"].equals(run.top(1).frame["doc_id"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"weights": (1, 1)}, "give three, none negative"),
        ({"weights": (1, -1, 1)}, "give three, none negative"),
        ({"weights": (1, float("nan"), 1)}, "give three, none negative"),
        ({"half_life_hours": 0}, "half_life_hours is 0; a half-life is longer"),
        ({"half_life_hours": float("inf")}, "half_life_hours is inf"),
        ({"summary_boost": -1.0}, "summary_boost is -1.0; a factor"),
        ({"covered": float("nan")}, "covered is nan"),
        ({"window": -1}, "window is -1"),
        ({"sessions": -1}, "sessions is -1"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], message: str) -> None:
    bench = world()
    with pytest.raises(DataError, match=message):
        light(random_run(bench), bench, **wrong)


def test_a_question_or_document_of_another_bench() -> None:
    bench = world()
    run = random_run(bench)
    with pytest.raises(DataError, match="question 'x' is not in this bench"):
        light(replace(run, frame=run.frame.with_columns(query_id=pl.lit("x"))), bench)
    with pytest.raises(DataError, match="document 'x' is not in this bench"):
        light(replace(run, frame=run.frame.with_columns(doc_id=pl.lit("x"))), bench)
