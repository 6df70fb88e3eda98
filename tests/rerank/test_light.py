"""The light reranker and position-aware blending against loops over documents, and what they may not depend on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.datasets import chatlog
from memlab.errors import DataError
from memlab.records import Dataset, Level, Question, Run, Session, Turn, frame, run_from_scores
from memlab.rerank import blend_by_position, light
from memlab.retrieve import Bench, bm25, sessions_from_turns
from memlab.text.analysis import tokenize


def partly_timed(small: Dataset, timed: bool) -> Bench:
    """Give a bench where some turns, sessions and questions, or all, have no time."""
    some = [pl.when(pl.lit(timed) & (n % m > 0)) for n, m in ((pl.col("n"), 3), (pl.col("n"), 2), (pl.row_index(), 2))]
    data = replace(
        small, turns=small.turns.with_columns(timestamp=some[0].then("timestamp")),
        sessions=small.sessions.with_columns(start=some[1].then("start")),
        questions=small.questions.with_columns(timestamp=some[2].then("timestamp")),
    )  # fmt: skip
    return Bench.of(data, encoder=None)


def random_run(bench: Bench, *, seed: int = 0, k: int = 9) -> Run:
    frame = bm25(bench, k=k).frame
    scores = np.random.default_rng(seed).standard_normal(frame.height)
    return run_from_scores(frame["query_id"], frame["doc_id"], scores, level="turn", k=k)


def by_hand(run: Run, bench: Bench, half_life: float, covered: float, window: int) -> Any:
    """Relevance, recency, shared words and covered turns, as the docstring says them."""
    turns = {t["turn_id"]: t for t in bench.turns.iter_rows(named=True)}
    starts = dict(bench.sessions.select("session_id", "start").iter_rows())
    asked = {q["query_id"]: q for q in bench.queries.iter_rows(named=True)}
    time = {name: t["timestamp"] or starts[t["session_id"]] for name, t in turns.items()}
    result = {}
    for (query,), rows in run.frame.group_by("query_id", maintain_order=True):
        ids, scores = rows["doc_id"].to_list(), rows["score"].to_numpy()
        spread = scores.max() - scores.min()
        relevance = (scores - scores.min()) / spread if spread else np.ones(len(scores))
        times = [time[name] for name, t in turns.items() if t["scope"] == asked[query]["scope"]]
        now = asked[query]["timestamp"] or max((t for t in times if t is not None), default=None)
        ages = [time[d] and max((now - time[d]).total_seconds() / 3600, 0) for d in ids]
        known = [0.5 ** (age / half_life) for age in ages if age is not None]
        recency = [np.mean(known or [0]) if age is None else 0.5 ** (age / half_life) for age in ages]
        words, *held = (set(t) for t in tokenize([asked[query]["text"], *(turns[d]["text"] for d in ids)]))
        shared = [len(words & h) / len(words) if words else 0.0 for h in held]
        value = 0.7 * relevance + 0.1 * np.array(recency) + 0.2 * np.array(shared)
        order = sorted(range(len(ids)), key=lambda i: -value[i])
        for place, i in enumerate(order):
            one, better = turns[ids[i]], [turns[ids[j]] for j in order[:place]]
            near = any(one["session_id"] == b["session_id"] and abs(one["n"] - b["n"]) <= window for b in better)
            result[query, ids[i]] = value[i] * (covered if near else 1.0)
    return result


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(("half_life", "covered", "window"), [(72.0, 0.5, 1), (12.0, 0.25, 3), (12.0, 1.0, 1)])
def test_the_sum_by_hand(small: Dataset, timed: bool, half_life: float, covered: float, window: int) -> None:
    bench = partly_timed(small, timed)
    run = random_run(bench)
    got = light(run, bench, half_life_hours=half_life, covered=covered, window=window)
    expected = by_hand(run, bench, half_life, covered, window)
    found = {(query, document): score for query, document, _, score in got.frame.iter_rows()}
    assert found == pytest.approx(expected, abs=1e-6)


def test_turns_of_the_sessions_whose_summaries_fit_are_lifted() -> None:
    turns = [Turn(f"u/{s}/1", "u", f"u/{s}", 1, "user", "user", "x") for s in "abcd"]
    summaries = zip("abcd", ["nothing of it", "roses got water", "roses", None], strict=True)
    sessions = [Session(f"u/{s}", "u", i, None, None, 1, [], summary=t) for i, (s, t) in enumerate(summaries, 1)]
    asked = frame(Question, [Question("q", "u", "roses and water", None, "t", None, [], [])])
    bench = Bench.of(Dataset("w", "chatlog", frame(Turn, turns), frame(Session, sessions), asked), encoder=None)
    ids, scores = np.array([f"u/{s}/1" for s in "adbc"]), np.array([1.0, 0.9, 0.9, 0.0])
    run = run_from_scores(np.repeat("q", 4), ids, scores, level="turn", k=9)
    got = dict(light(run, bench).frame.select("doc_id", "score").iter_rows())
    assert got == pytest.approx({"u/a/1": 0.7, "u/d/1": 0.63, "u/b/1": 0.63 * 1.25, "u/c/1": 0}, abs=1e-6)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_a_turn_and_a_session_may_have_one_id(level: Level) -> None:
    rows = [{"scope": "ann", "session": s, "id": i, "sender": "Ann", "text": f"tea {i}", "timestamp": 1.7e9}
            for s, i in (("1", "1"), ("1", "2"), ("2", "3"))]  # fmt: skip
    data = chatlog.dataset(rows, "ids")
    assert {*data.turns["turn_id"]} & {*data.sessions["session_id"]}
    bench = Bench.of(data, encoder=None).with_queries(pl.DataFrame({"scope": ["ann"], "text": ["tea"]}))
    run = bm25(bench, level=level)
    assert sorted(light(run, bench).frame["doc_id"]) == sorted(run.frame["doc_id"])


def scale(value: float, values: list[float]) -> float:
    return (value - min(values)) / (max(values) - min(values)) if max(values) > min(values) else 1.0


def test_blending_by_hand(bench: Bench) -> None:
    run, other = random_run(bench, k=30), random_run(bench, seed=1, k=5)
    dropped = pl.col("query_id") != run.frame["query_id"][0]  # all of one question
    reranked = replace(other, frame=other.frame.filter(dropped))
    got = blend_by_position(run, reranked, bench)
    for (query,), rows in run.frame.group_by("query_id"):
        second = dict(reranked.frame.filter(query_id=query).select("doc_id", "score").iter_rows())
        scores = {}
        for document, rank, score in rows.select("doc_id", "rank", "score").iter_rows():
            w = 0.75 if rank <= 3 else 0.6 if rank <= 10 else 0.4
            own = scale(second[document], list(second.values())) if document in second else 0.0
            scores[document] = w * scale(score, rows["score"].to_list()) + (1 - w) * own
        assert got.frame.filter(query_id=query)["doc_id"].to_list() == sorted(scores, key=lambda d: -scores[d])
    shorter = blend_by_position(run.top(2), other, bench)
    assert shorter.frame["rank"].max() == 2, "what the reranker alone brings stays out"
    with pytest.raises(DataError, match="ranks turns and the reranked one sessions"):
        blend_by_position(run, sessions_from_turns(run, bench), bench)
