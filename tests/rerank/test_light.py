"""The light reranker against a loop over documents, and what it may not depend on."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.records import Dataset, Level, Question, Run, Session, Turn, frame, run_from_scores
from memlab.rerank import light
from memlab.retrieve import Bench, bm25
from memlab.text.analysis import tokenize

START = datetime(2024, 5, 1, tzinfo=UTC)
WORDS = ["doctor", "rose", "water", "dentist", "bike", "the"]


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


def by_hand(run: Run, bench: Bench, half_life: float, covered: float, window: int) -> Any:
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
        value = 0.7 * relevance + 0.1 * np.array(recency) + 0.2 * np.array(shared)
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
@pytest.mark.parametrize(("half_life", "covered", "window"), [(72.0, 0.5, 1), (12.0, 0.25, 3), (12.0, 1.0, 1)])
def test_the_sum_by_hand(timed: bool, half_life: float, covered: float, window: int) -> None:
    for seed in range(2):
        bench = world(seed=seed, timed=timed, summaries=False)
        run = random_run(bench, seed=seed)
        got = light(run, bench, half_life_hours=half_life, covered=covered, window=window)
        expected = by_hand(run, bench, half_life, covered, window)
        pairs = list(got.frame.select("query_id", "doc_id").iter_rows())
        assert len(pairs) == len(expected) == run.frame.height
        assert got.frame["score"].to_list() == pytest.approx([expected[pair] for pair in pairs], abs=1e-6)


def test_turns_of_the_sessions_whose_summaries_fit_are_lifted() -> None:
    turns = [Turn(f"u/{s}/1", "u", f"u/{s}", 1, "user", "user", "x") for s in "abcd"]
    summaries = zip("abcd", ["nothing of it", "roses got water", "roses", None], strict=True)
    sessions = [Session(f"u/{s}", "u", i, None, None, 1, [], summary=t) for i, (s, t) in enumerate(summaries, 1)]
    asked = frame(Question, [Question("q", "u", "roses and water", None, "t", None, [], [])])
    bench = Bench.of(Dataset("w", "chatlog", frame(Turn, turns), frame(Session, sessions), asked), encoder=None)
    ids, scores = np.array([f"u/{s}/1" for s in "adbc"]), np.array([1.0, 0.9, 0.9, 0.0])
    run = run_from_scores(np.repeat("q", 4), ids, scores, level="turn", k=9)
    got = dict(light(run, bench).frame.select("doc_id", "score").iter_rows())
    expected = {"u/a/1": 0.7, "u/d/1": 0.63, "u/b/1": 0.63 * 1.25, "u/c/1": 0}
    assert got == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_a_turn_and_a_session_may_have_one_id(tmp_path: Path, level: Level) -> None:
    rows = [("1", "1"), ("1", "2"), ("2", "3")]
    log = [{"scope": "ann", "session": s, "id": i, "sender": "Ann", "text": f"tea {i}", "timestamp": 1.7e9 + int(i)}
           for s, i in rows]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, log)))
    data = memlab.load(tmp_path / "log.jsonl")
    assert {*data.turns["turn_id"]} & {*data.sessions["session_id"]}
    bench = memlab.Bench.of(data, encoder=None).with_queries(pl.DataFrame({"scope": ["ann"], "text": ["tea"]}))
    run = bm25(bench, level=level)
    assert sorted(light(run, bench).frame["doc_id"]) == sorted(run.frame["doc_id"])
