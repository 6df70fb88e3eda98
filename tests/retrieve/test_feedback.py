"""Searching for what is like what is found, and for what is not, against the formulas."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from memlab import retrieve
from memlab.errors import DataError
from memlab.language.analysis import tokenize
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, bm25, dense, hybrid, negative_feedback, prf, sessions_from_turns
from memlab.retrieve.arrays import standardised
from memlab.retrieve.feedback import FEEDBACK, TERMS, THRESHOLD
from memlab.retrieve.subqueries import by_vectors

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture(scope="module")
def chat(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:32")


@pytest.fixture(scope="module")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


def from_zero(scores: dict[str, float], k: int) -> dict[str, float]:
    best = dict(sorted(scores.items(), key=lambda item: -item[1])[:k])
    spread = float(np.std(list(best.values()), ddof=1)) if len(best) > 1 else 0.0
    low = min(best.values())
    return {d: (s - low) / spread if spread > 1e-9 else 0.0 for d, s in best.items()}


def okapi(words: dict[str, float], texts: list[list[str]]) -> list[float]:
    """BM25 by its formula, with a weight for each word of the query."""
    mean = sum(map(len, texts)) / len(texts)
    b = min(1.0, max(0.4, float(np.var([len(text) for text in texts])) / mean**2))
    total = [0.0] * len(texts)
    for word, weight in words.items():
        df = sum(word in text for text in texts)
        idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        for i, text in enumerate(texts):
            tf = text.count(word)
            total[i] += weight * idf * tf / (tf + 0.9 * (1 - b + b * len(text) / mean))
    return total


def rm3(question: list[str], feedback: list[list[str]], texts: list[list[str]]) -> dict[str, float]:
    model: Counter[str] = Counter()
    for text in feedback:
        for word in text:
            if sum(word in other for other in texts) <= max(5, 0.1 * len(texts)):
                model[word] += 1 / len(text) / len(feedback)
    floor = sorted(model.values(), reverse=True)[min(TERMS, len(model)) - 1] if model else 0.0
    kept = {word: share for word, share in model.items() if share >= floor - 1e-12}
    words: Counter[str] = Counter()
    asked = [word for word in question if any(word in text for text in texts)]
    for word in asked:
        words[word] += 0.5 / len(asked)
    for word, share in kept.items():
        words[word] += 0.5 * share / sum(kept.values())
    return words


def test_prf_follows_its_formulas(chat: Bench) -> None:
    run, documents = hybrid(chat, k=50), chat.documents("turn")
    got = prf(run, chat, weight=0.7, k=50)
    for row in range(0, chat.queries.height, 5):
        query, scope, text = chat.queries.select("query_id", "scope", "text").row(row)
        span = slice(*documents.spans[scope])
        ids, words = documents.ids[span].tolist(), tokenize(documents.texts[span])
        mine = run.frame.filter(query_id=query)
        first = [ids.index(d) for d in mine["doc_id"].to_list()[:FEEDBACK]]
        total = Counter(from_zero(dict(zip(mine["doc_id"], mine["score"], strict=True)), 50))
        vectors = documents.vectors()[span].astype(float)
        moved = chat.query_vectors[row] + 0.75 * vectors[first].mean(axis=0)
        rocchio = (vectors @ (moved / np.linalg.norm(moved))).tolist()
        for scores in (okapi(rm3(tokenize([text])[0], [words[i] for i in first], words), words), rocchio):
            for d, gain in from_zero(dict(zip(ids, scores, strict=True)), 50).items():
                total[d] += 0.7 * gain
        found = got.frame.filter(query_id=query)
        expected = sorted(total.values(), reverse=True)[:50]
        np.testing.assert_allclose(found["score"].to_numpy(), expected, atol=2e-3)
        for d, score in zip(found["doc_id"].to_list()[:20], found["score"], strict=False):
            assert abs(total[d] - score) < 2e-3


def test_prf_finds_what_shares_words_with_the_first_results(world: Dataset) -> None:
    asked = Bench.of(world, encoder=None).with_queries(pl.DataFrame({"scope": ["ann"], "text": ["planted roses"]}))
    documents = asked.documents("turn")
    run = bm25(asked, k=1)
    assert documents.texts[documents.at(run.frame["doc_id"])[0]] == "we planted roses and tulips"
    texts = [documents.texts[i] for i in documents.at(prf(run, asked).frame["doc_id"])]
    assert "tulips need water" in texts[:3]


def test_without_feedback_a_ranking_stays(odd: Bench, ranking: Ranking) -> None:
    run = bm25(odd)
    assert prf(replace(run, frame=run.frame.clear()), odd).frame.height == 0
    unmatched = run.frame.filter(pl.col("score").max().over("query_id") <= 0)["query_id"].unique().to_list()
    assert len(unmatched) >= 3
    before, after = ranking(run), ranking(prf(run, odd))
    assert {q: after[q] for q in unmatched} == {q: before[q] for q in unmatched}
    assert after != before
    assert ranking(prf(run, odd, weight=0.0)) == before


def test_search_by_the_queries_own_vectors_is_dense(chat: Bench) -> None:
    assert by_vectors(chat, chat.query_vectors, k=20).frame.equals(dense(chat, k=20).frame)


def one_at_a_time(run: Run, bench: Bench, query: str, *, rounds: int, beta: float) -> list[str]:
    """The rounds of negative feedback as its docstring tells them, by sums over words."""
    documents = bench.documents("turn")
    row = bench.queries["query_id"].to_list().index(query)
    span = slice(*documents.spans[bench.queries["scope"][row]])
    ids, embeddings = documents.ids[span].tolist(), documents.embeddings[span].astype(np.float64)
    mine = run.frame.filter(query_id=query)
    score = dict(zip(mine["doc_id"], standardised(mine["score"].to_numpy()[None])[0], strict=True))
    relevance = np.array([score.get(d, min(score.values()) - 1e-9) for d in ids])
    words, texts = tokenize([bench.queries["text"][row]])[0], tokenize(documents.texts[span])
    terms = np.array([okapi({word: 1.0}, texts) for word in words]).reshape(len(words), len(ids))

    def fit(found: list[str], beta: float) -> np.ndarray:
        at = [ids.index(d) for d in found]
        mean = embeddings[at].sum(axis=0)
        moved = bench.query_vectors[row] - beta * mean / max(np.linalg.norm(mean), 1e-12)
        moved /= max(np.linalg.norm(moved), 1e-12)
        lexical = sum((term * max(1 - beta * (term[at] > 0).mean(), 0) for term in terms), np.zeros(len(ids)))
        return standardised((embeddings @ moved)[None])[0] + standardised(lexical[None])[0]

    found = mine["doc_id"].to_list()[:FEEDBACK]
    base = fit(found, 0.0)
    for _ in range(rounds):
        value = relevance + fit(found, beta) - base
        new = [i for i in np.argsort(-np.round(value, 5), kind="stable") if ids[i] not in found]
        if value[new[0]] < THRESHOLD:
            break
        found.append(ids[new[0]])
    return (found + [d for d in mine["doc_id"] if d not in found])[: int(run.frame["rank"].max())]


@pytest.mark.parametrize("k", [12, 200])
@pytest.mark.parametrize("beta", [-0.4, 0.1, 0.7])
def test_negative_feedback_is_what_its_words_say(chat: Bench, ranking: Ranking, beta: float, k: int) -> None:
    run = hybrid(chat, k=k)
    got = ranking(negative_feedback(run, chat, rounds=3, beta=beta))
    asked = chat.queries["query_id"].gather_every(3).to_list()
    same = [got[q][:8] == one_at_a_time(run, chat, q, rounds=3, beta=beta)[:8] for q in asked]
    # Turns that differ by less than the reference rounds to may change places.
    assert np.mean(same) > 0.9


@pytest.mark.parametrize("first", [retrieve.dense, retrieve.bm25, retrieve.combsum])
@pytest.mark.parametrize("k", [1, 7, 200])
def test_negative_feedback_keeps_the_first_and_finds_others(chat: Bench, first: Callable[..., Run], k: int) -> None:
    run = first(chat, k=k)
    assert negative_feedback(run, chat, beta=0.0).frame["doc_id"].equals(run.frame["doc_id"])
    moved = negative_feedback(run, chat, beta=1.0).frame
    kept = pl.col("rank") <= FEEDBACK
    assert moved.filter(kept)["doc_id"].equals(run.frame.filter(kept)["doc_id"])
    assert moved["rank"].max() <= k
    assert not moved.select("query_id", "doc_id").is_duplicated().any()


def test_words_alone_do_without_embeddings(talk: Dataset) -> None:
    bench = Bench.of(talk, encoder=None)
    run = bm25(bench)
    assert not negative_feedback(run, bench, beta=1.0).frame["doc_id"].equals(run.frame["doc_id"])
    assert prf(run, bench).frame.height


def test_what_goes_in_is_kept_and_wrong_arguments(odd: Bench) -> None:
    run = replace(bm25(odd), name="mine", provenance={"x": 1})
    got = negative_feedback(run, odd)
    assert (got.name, got.provenance, got.text_of is not None) == ("mine", {"x": 1}, True)
    none = replace(run, frame=run.frame.clear())
    assert negative_feedback(none, odd).frame.equals(none.frame)
    for stage, wrong, message in (
        (negative_feedback, {"rounds": 0}, "rounds is 0"),
        (negative_feedback, {"beta": 1.5}, "beta is 1.5"),
        (negative_feedback, {"beta": float("nan")}, "beta is nan"),
        (prf, {"weight": -1.0}, "weight is -1"),
    ):
        with pytest.raises(DataError, match=message):
            stage(run, odd, **wrong)
        with pytest.raises(DataError, match="takes a ranking of turns"):
            stage(sessions_from_turns(run, odd), odd)
