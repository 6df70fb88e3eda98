"""Expansions: feedback against its formulas, and the typed expansions with a language model that is played."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab import DataError, ModelError, llm
from memlab.language.analysis import tokenize
from memlab.records import Dataset, Run, run_from_scores
from memlab.retrieve import Bench, bm25, combsum, dense, expansion, hybrid, sessions_from_turns
from memlab.retrieve.expansion import Expansion, expand
from memlab.retrieve.feedback import prf
from memlab.retrieve.subqueries import by_vectors

Ranking = Callable[[Run], dict[str, list[str]]]
Renamed = Callable[[Dataset, int], tuple[Dataset, dict[str, str]]]
NOTHING = run_from_scores(np.array([], object), np.array([], object), np.array([]), level="turn", k=1)


@pytest.fixture(scope="module")
def bench(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:32")


@pytest.fixture(scope="module")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


def one(bench: Bench, row: int) -> Bench:
    """Give the bench with one of its questions."""
    return bench.with_queries(bench.queries[row : row + 1])


def standardised(scores: dict[str, float], k: int) -> dict[str, float]:
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


def rm3(question: list[str], feedback: list[list[str]], texts: list[list[str]], n_terms: int) -> dict[str, float]:
    model: Counter[str] = Counter()
    for text in feedback:
        for word in text:
            if sum(word in other for other in texts) <= max(5, 0.1 * len(texts)):
                model[word] += 1 / len(text) / len(feedback)
    floor = sorted(model.values(), reverse=True)[min(n_terms, len(model)) - 1] if model else 0.0
    kept = {word: share for word, share in model.items() if share >= floor - 1e-12}
    words: Counter[str] = Counter()
    asked = [word for word in question if any(word in text for text in texts)]
    for word in asked:
        words[word] += 0.5 / len(asked)
    for word, share in kept.items():
        words[word] += 0.5 * share / sum(kept.values())
    return words


@pytest.mark.parametrize("kinds", [("rm3",), ("rocchio",), ("rm3", "rocchio")])
def test_feedback_follows_its_formulas(bench: Bench, kinds: Sequence[str]) -> None:
    run, documents = hybrid(bench, k=50), bench.documents("turn")
    got = prf(run, bench, n_docs=4, n_terms=6, weight=0.7, kinds=kinds, k=50)
    assert bench.query_vectors is not None
    for row in range(0, bench.queries.height, 5):
        query, scope, text = bench.queries.select("query_id", "scope", "text").row(row)
        span = slice(*documents.spans[scope])
        ids = documents.ids[span].tolist()
        words = tokenize(documents.texts[span])
        mine = run.frame.filter(pl.col("query_id") == query)
        first = [ids.index(d) for d in mine["doc_id"].to_list()[:4]]
        total = Counter(standardised(dict(zip(mine["doc_id"], mine["score"], strict=True)), 50))
        lists = {}
        if "rm3" in kinds:
            weights = rm3(tokenize([text])[0], [words[i] for i in first], words, 6)
            lists["rm3"] = okapi(weights, words)
        if "rocchio" in kinds:
            vectors = documents.vectors()[span].astype(float)
            moved = bench.query_vectors[row] + 0.75 * vectors[first].mean(axis=0)
            lists["rocchio"] = (vectors @ (moved / np.linalg.norm(moved))).tolist()
        for scores in lists.values():
            for d, gain in standardised(dict(zip(ids, scores, strict=True)), 50).items():
                total[d] += 0.7 * gain
        found = got.frame.filter(pl.col("query_id") == query)
        expected = sorted(total.values(), reverse=True)[:50]
        np.testing.assert_allclose(found["score"].to_numpy(), expected, atol=2e-3)
        for d, score in zip(found["doc_id"].to_list()[:20], found["score"], strict=False):
            assert abs(total[d] - score) < 2e-3


def test_feedback_finds_what_shares_words_with_the_first_results(odd: Bench) -> None:
    question = pl.DataFrame({"scope": ["ann"], "text": ["planted roses"]})
    asked = replace(odd.with_queries(question), encoder=None)
    documents = asked.documents("turn")
    run = bm25(asked, k=1)
    assert documents.texts[documents.at(run.frame["doc_id"])[0]] == "we planted roses and tulips"
    again = prf(run, asked, n_docs=1, kinds=("rm3",))
    texts = [documents.texts[i] for i in documents.at(again.frame["doc_id"])]
    assert "tulips need water" in texts[:3]


@pytest.mark.parametrize("retriever", [bm25, dense, hybrid, combsum])
def test_a_question_has_the_same_ranking_alone_as_in_the_batch(odd: Bench, retriever: Any, ranking: Ranking) -> None:
    whole = ranking(prf(retriever(odd), odd))
    for row in range(odd.queries.height):
        alone = one(odd, row)
        (query,) = alone.queries["query_id"]
        assert ranking(prf(retriever(alone), alone)).get(query) == whole.get(query)


def test_renaming_every_id_renames_the_ranking(world: Dataset, odd: Bench, renamed: Renamed, ranking: Ranking) -> None:
    data, names = renamed(world, 1)
    other = Bench.of(data, encoder="hashing:32")
    one, two = (ranking(prf(hybrid(b, k=6), b)) for b in (odd, other))
    assert two == {names[q]: [names[d] for d in ids] for q, ids in one.items()}


def test_without_feedback_a_ranking_stays(odd: Bench, ranking: Ranking) -> None:
    assert prf(NOTHING, odd).frame.height == 0
    run = bm25(odd)
    unmatched = run.frame.filter(pl.col("score").max().over("query_id") <= 0)["query_id"].unique().to_list()
    assert len(unmatched) >= 3
    before, after = ranking(run), ranking(prf(run, odd))
    assert {q: after[q] for q in unmatched} == {q: before[q] for q in unmatched}
    assert after != before


def test_extremes_of_the_parameters(odd: Bench, ranking: Ranking) -> None:
    run = hybrid(odd, k=1)
    assert ranking(prf(run, odd, weight=0.0, k=1)) == ranking(run)
    deep = prf(run, odd, n_docs=10_000, n_terms=10_000, k=10_000)
    n = {scope: last - first for scope, (first, last) in odd.documents("turn").spans.items()}
    for query, ids in ranking(deep).items():
        assert len(set(ids)) == len(ids) == n[query.split("/")[0]]


def test_what_prf_cannot_use(odd: Bench, world: Dataset) -> None:
    run = bm25(odd)
    for wrong in ({"n_docs": 0}, {"n_terms": 0}, {"weight": -1.0}):
        with pytest.raises(DataError, match="expected at least"):
            prf(run, odd, **wrong)
    for kinds in ((), ("rm3", "rm3"), ("lex",)):
        with pytest.raises(DataError, match="choose from rm3, rocchio, each once"):
            prf(run, odd, kinds=kinds)
    with pytest.raises(DataError, match="takes a ranking of turns"):
        prf(sessions_from_turns(run, odd), odd)
    plain = Bench.of(world, encoder=None)
    with pytest.raises(DataError, match="make the bench with an encoder"):
        prf(bm25(plain), plain)
    assert prf(bm25(plain), plain, kinds=("rm3",)).frame.height


def test_search_by_the_queries_own_vectors_is_dense(bench: Bench) -> None:
    assert bench.query_vectors is not None
    assert by_vectors(bench, bench.query_vectors, k=20).frame.equals(dense(bench, k=20).frame)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A language model that answers what is put in ``say``; what it is asked is in ``asked``."""
    played: dict[str, Any] = {"say": lambda text: Expansion(lex=text, vec=text, hyde=text), "asked": []}

    def ask(requests: list[llm.Request], service: str) -> list[llm.Answer]:
        assert service == "recorded"
        assert {request.shape for request in requests} <= {Expansion}
        texts = [json.loads(request.prompt)["question"] for request in requests]
        played["asked"] += texts
        return [llm.Answer(played["say"](text), "" if played["say"](text) else "not recorded") for text in texts]

    monkeypatch.setattr(llm, "ask", ask)
    return played


def test_each_kind_has_its_own_search(odd: Bench, played: dict[str, Any], ranking: Ranking) -> None:
    alone = one(odd, 1)
    played["say"] = lambda text: Expansion(lex="dentist tooth", vec="rain again", hyde="the doctor")
    found = {kind: ranking(expand(bm25(alone, k=1), alone, kinds=(kind,), k=50)) for kind in ("lex", "vec", "hyde")}
    (query,) = alone.queries["query_id"]
    asked = {
        k: alone.with_queries(pl.DataFrame({"query_id": [query], "scope": ["ann"], "text": [t]}))
        for k, t in (("lex", "dentist tooth"), ("vec", "rain again"))
    }
    for kind, search in (("lex", bm25), ("vec", dense)):
        best = ranking(search(asked[kind], k=2))[query]
        assert [d for d in found[kind][query] if d in best] == best
        assert found[kind][query].index(best[0]) <= 1
    assert alone.encoder is not None
    assert alone.query_vectors is not None
    mean = alone.query_vectors + alone.encoder.encode(["the doctor"], kind="document")
    best = ranking(by_vectors(alone, mean / np.linalg.norm(mean), k=2))[query]
    assert found["hyde"][query].index(best[0]) <= 1


def test_the_model_is_asked_for_the_questions_of_the_run(odd: Bench, played: dict[str, Any]) -> None:
    assert expand(NOTHING, odd).frame.height == 0
    assert played["asked"] == []
    run = hybrid(odd)
    some = replace(run, frame=run.frame.filter(pl.col("query_id").is_in(["ann/q1", "cyd/q0"])))
    assert set(expand(some, odd).frame["query_id"]) == {"ann/q1", "cyd/q0"}
    assert played["asked"] == ["roses tulips water", "roses roses doctor"]


def test_a_question_without_an_answer_keeps_its_ranking(odd: Bench, played: dict[str, Any], ranking: Ranking) -> None:
    played["say"] = lambda text: None if "doctor" in text else Expansion(lex="water", vec="water", hyde="water")
    run = hybrid(odd, k=5)
    with pytest.warns(UserWarning, match="expansions came from no model"):
        after = ranking(expand(run, odd, weight=5.0, guard=False, k=5))
    before = ranking(run)
    silent = [q for q, text in odd.queries.select("query_id", "text").iter_rows() if "doctor" in text]
    assert {q: after[q] for q in silent} == {q: before[q] for q in silent}
    assert after != before


def test_weight_and_guard(odd: Bench, played: dict[str, Any], ranking: Ranking) -> None:
    played["say"] = lambda text: Expansion(lex="rain again", vec="rain again", hyde="rain again")
    run = hybrid(odd, k=5)
    first = {q: ids[0] for q, ids in ranking(run).items()}
    guarded, loud = (ranking(expand(run, odd, weight=w, guard=g)) for w, g in ((0.5, True), (5.0, False)))
    assert {q: ids[0] for q, ids in guarded.items()} == first
    assert loud["ann/q1"][0] != first["ann/q1"]
    with pytest.raises(DataError, match="weight is -1"):
        expand(run, odd, weight=-1.0)


def test_what_expand_cannot_use(odd: Bench, world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = bm25(odd)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"no language model 'lab' is set.*memlab.toml: \[llm.services.lab\]"):
        expand(run, odd, service="lab")
    with pytest.raises(DataError, match="choose from lex, vec, hyde, each once"):
        expand(run, odd, kinds=("lex", "rm3"))
    with pytest.raises(DataError, match="takes a ranking of turns"):
        expand(sessions_from_turns(run, odd), odd)
    plain = Bench.of(world, encoder=None)
    with pytest.raises(DataError, match="make the bench with an encoder, or use 'lex'"):
        expand(bm25(plain), plain)


def test_hypothetical_turns_are_embedded_through_the_store(
    world: Dataset, tmp_path: Path, played: dict[str, Any], odd: Bench
) -> None:
    stored = Bench.of(world, encoder="hashing:32", store=str(tmp_path / "store"))
    plain, kept = (expand(hybrid(b), b) for b in (odd, stored))
    assert kept.frame.equals(plain.frame)


def test_keywords_need_no_encoder(world: Dataset, played: dict[str, Any]) -> None:
    plain = Bench.of(world, encoder=None)
    assert expand(bm25(plain), plain, kinds=("lex",)).frame.height


def test_the_schema_suits_strict_servers() -> None:
    schema = Expansion.model_json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(schema["properties"]) == {"lex", "vec", "hyde"}
    assert all(kind in json.dumps(expansion.INSTRUCTION) for kind in expansion.KINDS)
