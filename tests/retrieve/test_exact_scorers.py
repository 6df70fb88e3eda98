"""Dense, BM25, fusion and ties against straightforward references, on the exact path."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from store_data import build

from memlab.errors import DataError
from memlab.evaluate import evaluate
from memlab.pipelines import pipeline
from memlab.records import Dataset, Level, Question, Run, frame
from memlab.retrieve import Bench, bm25, dense, hybrid, rrf, sessions_from_turns
from memlab.retrieve.bm25 import bm25_scores
from memlab.retrieve.documents import cosines
from memlab.text.analysis import tokenize

Ranking = Callable[[Run], dict[str, list[str]]]


def lucene(documents: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    """BM25 as Lucene has it since version 8, one document at a time."""
    average = sum(map(len, documents)) / len(documents)
    df = Counter(word for document in documents for word in set(document))
    idf = {word: math.log(1 + (len(documents) - df[word] + 0.5) / (df[word] + 0.5)) for word in query}
    scores = []
    for document in documents:
        tf = Counter(document)
        norm = k1 * (1 - b + b * len(document) / average) if average else k1
        scores.append(sum(idf[word] * tf[word] / (tf[word] + norm) for word in query if tf[word]))
    return scores


@pytest.mark.parametrize("level", ["turn", "session"])
def test_dense_is_the_brute_force_product(some: Bench, ranking: Ranking, level: Level) -> None:
    documents, turns = some.documents(level), some.documents("turn")
    got = ranking(dense(some, level=level, k=10_000))
    wide = turns.embeddings.astype(np.float64)
    for i, (query, scope) in enumerate(some.queries.select("query_id", "scope").iter_rows()):
        scores = (wide @ some.query_vectors[i].astype(np.float64)).astype(np.float32)
        if level == "session":
            scores = np.array([scores[turns.session == s].max(initial=-1) for s in range(len(documents.ids))])
        own = range(*documents.spans[scope])
        best = sorted(own, key=lambda at: (-scores[at], documents.lot[at]))
        assert got[query] == documents.ids[best].tolist()


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize(("k1", "b"), [(None, None), (1.2, 0.75), (0.0, 0.0)])
def test_bm25_is_lucenes(some: Bench, level: Level, k1: float | None, b: float | None) -> None:
    documents, texts = tokenize(some.documents(level).texts), some.queries["text"].to_list()
    rows_seen = []
    for rows, span, scores in bm25_scores(some, level=level, k1=k1, b=b):
        rows_seen += rows.tolist()
        lengths = [len(document) for document in documents[span]]
        spread = (np.std(lengths) / np.mean(lengths)) ** 2 if any(lengths) else 0.0
        default = (0.9, min(1.0, max(0.4, spread))) if level == "turn" else (1.5, 0.75)
        used = default if k1 is None or b is None else (k1, b)
        for row, got in zip(rows, scores, strict=True):
            expected = lucene(documents[span], tokenize([texts[row]])[0], *used)
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)
    assert sorted(rows_seen) == list(range(len(texts)))


def test_equal_vectors_tie_exactly_whatever_the_batch() -> None:
    rng = np.random.default_rng(0)
    for dim, n in ((64, 40), (384, 700), (100, 17)):
        base, queries = rng.standard_normal((n // 4, dim)), rng.standard_normal((33, dim)).astype(np.float32)
        group = rng.integers(0, len(base), n)
        documents = (base / np.linalg.norm(base, axis=1, keepdims=True)).astype(np.float32)[group]
        many = cosines(queries, documents)
        assert (many == many[:, [int(np.flatnonzero(group == g)[0]) for g in group]]).all()
        for part in (slice(0, 1), slice(3, 8)):
            assert (many[part] == cosines(queries[part], documents)).all()


def fused(runs: Sequence[Run], weights: Sequence[float], k: int) -> dict[str, list[str]]:
    """Cormack's formula, a document at a time; what a run lists at no positive score gains nothing from it."""
    gains: dict[str, dict[str, float]] = defaultdict(dict)
    for run, weight in zip(runs, weights, strict=True):
        for query, document, rank, score in run.frame.iter_rows():
            before = gains[query].get(document, 0.0)
            gains[query][document] = before + (weight / (60 + rank) if score > 0 else 0.0)
    return {q: sorted(held, key=lambda d: -held[d])[:k] for q, held in gains.items()}


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize(("k", "weights"), [(200, (1.0, 1.0)), (5, (1.0, 1.0)), (50, (2, 1)), (9, (1, 0)), (9, (0, 0))])
def test_rankings_are_fused_by_reciprocal_ranks(
    some: Bench, ranking: Ranking, level: Level, k: int, weights: tuple[float, float]
) -> None:
    runs = [dense(some, level=level, k=k), bm25(some, level=level, k=k)]
    got = rrf(runs, weights=weights, k=k)
    assert (got.level, ranking(got)) == (level, fused(runs, weights, k))
    if weights == (1.0, 1.0):
        assert got.frame.equals(hybrid(some, level=level, k=k).frame)


def test_rankings_that_cannot_be_fused(odd: Bench) -> None:
    turns, sessions = bm25(odd, k=3), bm25(odd, level="session", k=3)
    for runs, weights, said in (
        ([turns, sessions], None, "cannot be fused"), ([turns, turns], [1], "2 runs have weights"),
        ([], None, "0 runs"), ([turns], [-1], "none negative"), ([turns], [float("nan")], "not a finite number"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=said):
            rrf(runs, weights=weights)


def test_sessions_rank_by_their_best_turn(chat: Bench, ranking: Ranking) -> None:
    of_turn = dict(chat.turns.select("turn_id", "session_id").iter_rows())
    for run in (dense(chat, k=7), bm25(chat)):
        expected = {q: list(dict.fromkeys(of_turn[d] for d in ids)) for q, ids in ranking(run).items()}
        assert ranking(sessions_from_turns(run, chat)) == expected
        assert ranking(sessions_from_turns(run, chat, k=2)) == {q: ids[:2] for q, ids in expected.items()}
    with pytest.raises(DataError, match="the run ranks sessions"):
        sessions_from_turns(sessions_from_turns(run, chat), chat)


@pytest.fixture(scope="module")
def ties() -> Dataset:
    """Give 40 messages a scope; the evidence of a question that shares no word with them is the first of its scope."""
    data, none = build(n_scopes=20, n_sessions=5, n_turns=8), None
    asked = [
        Question(f"{s}/q", s, "Zzz?", "1", "other", none, [f"{s}/session_0/1"], [f"{s}/session_0"]) for s in data.scopes
    ]
    return Dataset("ties", "chatlog", data.turns, data.sessions, frame(Question, asked))


@pytest.mark.parametrize("level", ["turn", "session"])
def test_a_question_without_a_match_finds_the_oldest_as_often_as_chance_does(ties: Dataset, level: Level) -> None:
    """Documents that tie stand in an order drawn by lot, not by age, and the report counts such questions."""
    run = pipeline("bm25").run(Bench.of(ties, encoder=None), level=level)
    assert 0 < run.frame.filter(rank=1)["doc_id"].str.contains("session_0").sum() < 12
    assert run.frame.equals(pipeline("bm25").run(Bench.of(ties, encoder=None), level=level).frame)
    if level == "turn":
        report = evaluate(run, ties)
        assert report.summary(measures="recall_all@10")["mean"].item() < 0.6, "a quarter by chance"
        assert report.provenance["ties"] == 20
