"""Dense and BM25 against straightforward references, on the exact path."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from memlab.records import Dataset, Level, Run
from memlab.retrieve import Bench, dense
from memlab.retrieve.arrays import best_per_group, cosines
from memlab.retrieve.bm25 import bm25_scores
from memlab.text.analysis import tokenize

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture(scope="module")
def bench(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:64")


@pytest.fixture(scope="module")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:64")


def lucene(documents: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    """BM25 as Lucene has it since version 8, one document at a time."""
    average = sum(map(len, documents)) / len(documents)
    df = Counter(word for document in documents for word in set(document))
    scores = []
    for document in documents:
        tf = Counter(document)
        norm = k1 * (1 - b + b * len(document) / average) if average else k1
        scores.append(
            sum(
                math.log(1 + (len(documents) - df[word] + 0.5) / (df[word] + 0.5)) * tf[word] / (tf[word] + norm)
                for word in query
                if tf[word]
            )
        )
    return scores


@pytest.mark.parametrize("level", ["turn", "session"])
def test_dense_is_the_brute_force_product(bench: Bench, ranking: Ranking, level: Level) -> None:
    turns, queries, documents = bench.turns.with_row_index("row"), bench.queries, bench.documents(level)
    lots = pl.DataFrame({"doc_id": documents.ids.tolist(), "lot": documents.lot})
    got = ranking(dense(bench, level=level, k=10_000))
    for i, (query, scope) in enumerate(queries.select("query_id", "scope").iter_rows()):
        mine = turns.filter(pl.col("scope") == scope)
        own = bench.turn_vectors[bench.documents("turn").at(mine["turn_id"])].astype(np.float64)
        cosine = own @ bench.query_vectors[i].astype(np.float64)
        scored = mine.select(doc_id="turn_id", session="session_id", score=pl.Series(cosine.astype(np.float32)))
        if level == "session":
            scored = (
                scored.group_by("session", maintain_order=True).agg(pl.col("score").max()).rename({"session": "doc_id"})
            )
        best = scored.join(lots, on="doc_id").sort("score", "lot", descending=[True, False])
        assert got[query] == best["doc_id"].to_list()


@pytest.mark.parametrize("name", ["bench", "odd"])
@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize(("k1", "b"), [(None, None), (1.2, 0.75), (0.0, 0.0)])
def test_bm25_is_lucenes(
    request: pytest.FixtureRequest, name: str, level: Level, k1: float | None, b: float | None
) -> None:
    some: Bench = request.getfixturevalue(name)
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


def test_length_counts_as_much_as_lengths_differ(talk: Dataset) -> None:
    """Where every second turn is long, a short turn with the word ranks before a long one that holds it by the way."""
    chatter = " ".join(f"word{i}" for i in range(400))
    even = talk.turns.filter(pl.col("text").str.split(" ").list.len().is_between(6, 12))
    odd_turns = pl.int_range(pl.len()) % 2 == 1
    long = even.with_columns(text=pl.when(odd_turns).then(pl.col("text") + " " + chatter).otherwise("text"))
    for turns, least, most in ((even, 0.4, 0.5), (long, 0.6, 1.0)):
        bench = Bench.of(replace(talk, turns=turns), encoder=None)
        for _, span in bench.by_scope("turn"):
            _, b = bench.documents("turn").words_in(span).normalisation
            assert least <= b <= most


def test_equal_vectors_tie_exactly_whatever_the_batch() -> None:
    rng = np.random.default_rng(0)
    for dim, n in ((64, 40), (384, 700), (100, 17)):
        base = rng.standard_normal((n // 4, dim)).astype(np.float32)
        base /= np.linalg.norm(base, axis=1, keepdims=True)
        group = rng.integers(0, len(base), n)
        queries = rng.standard_normal((33, dim)).astype(np.float32)
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        many = cosines(queries, base[group])
        first = np.array([np.flatnonzero(group == g)[0] for g in group])
        assert (many == many[:, first]).all()
        assert (many[:1] == cosines(queries[:1], base[group])).all()
        assert (many[3:8] == cosines(queries[3:8], base[group])).all()


def test_a_session_without_turns_ranks_last(odd: Bench, ranking: Ranking) -> None:
    assert all(r[-1] == "ann/s2" for q, r in ranking(dense(odd, level="session")).items() if q.startswith("ann"))
    assert not odd.documents("session").embeddings[1].any()
    got = best_per_group(np.array([[0.5, -0.25, 0.75]]), np.array([0, 0, 2]), 4)
    assert got.tolist() == [[0.5, -1.0, 0.75, -1.0]]
    assert best_per_group(np.zeros((0, 3)), np.array([0, 0, 1]), 2).shape == (0, 2)
