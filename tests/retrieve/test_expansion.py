"""Typed expansions and hypothetical turns with a language model that is played; pseudo-relevance feedback."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab import llm
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, bm25, dense, expand, hybrid, hyde, prf
from memlab.retrieve.expansion import KINDS, Expansion
from memlab.retrieve.subqueries import rank_by_vectors

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A language model that answers what is put in ``say``; what it is asked is in ``asked``."""
    played: dict[str, Any] = {"say": lambda text: Expansion(lex=text, vec=text, hyde="rain again"), "asked": []}

    def ask(requests: list[llm.Request], service: str) -> list[llm.Answer]:
        assert {(service, request.shape) for request in requests} <= {("recorded", Expansion)}
        texts = [json.loads(request.prompt)["question"] for request in requests]
        played["asked"] += texts
        return [llm.Answer(played["say"](text), "" if played["say"](text) else "not recorded") for text in texts]

    monkeypatch.setattr(llm, "ask", ask)
    return played


def test_each_kind_has_its_own_search(odd: Bench, played: dict[str, Any], ranking: Ranking) -> None:
    alone = odd.with_queries(odd.queries[1:2])
    played["say"] = lambda text: Expansion(lex="dentist tooth", vec="rain again", hyde="the doctor")
    found = {kind: ranking(expand(bm25(alone, k=1), alone, kinds=(kind,), k=50)) for kind in KINDS}
    assert found["hyde"] == ranking(hyde(bm25(alone, k=1), alone, k=50))
    (query,) = alone.queries["query_id"]
    for kind, search, text in (("lex", bm25, "dentist tooth"), ("vec", dense, "rain again")):
        asked = alone.with_queries(pl.DataFrame({"query_id": [query], "scope": ["ann"], "text": [text]}))
        best = ranking(search(asked, k=2))[query]
        assert [d for d in found[kind][query] if d in best] == best
        assert found[kind][query].index(best[0]) <= 1
    mean = alone.query_vectors + alone.embedder().encode(["the doctor"], kind="document")
    best = ranking(rank_by_vectors(alone, mean / np.linalg.norm(mean), k=2))[query]
    assert found["hyde"][query].index(best[0]) <= 1


def test_a_question_without_an_answer_keeps_its_ranking_and_the_first_places_are_guarded(
    odd: Bench, played: dict[str, Any], ranking: Ranking
) -> None:
    rain = Expansion(lex="rain again", vec="rain again", hyde="rain again")
    played["say"] = lambda text: None if "doctor" in text else rain
    run = hybrid(odd, k=5)
    with pytest.warns(UserWarning, match="expansions came from no model"):
        guarded, heavy = (ranking(expand(run, odd, weight=weight, k=5)) for weight in (0.5, 50.0))
    before = ranking(run)
    silent = odd.queries.filter(pl.col("text").str.contains("doctor"))["query_id"]
    assert {q: heavy[q] for q in silent} == {q: before[q] for q in silent}
    assert {q: ids[0] for q, ids in guarded.items()} == {q: ids[0] for q, ids in before.items()}
    assert heavy["ann/q1"][0] != before["ann/q1"][0]


def test_prf_finds_what_shares_words_with_the_first_results(world: Dataset) -> None:
    asked = Bench.of(world, encoder=None).with_queries(pl.DataFrame({"scope": ["ann"], "text": ["planted roses"]}))
    documents, run = asked.documents("turn"), bm25(asked, k=1)
    first, then = ([documents.texts[i] for i in documents.at(r.frame["doc_id"])] for r in (run, prf(run, asked)))
    assert first == ["we planted roses and tulips"]
    assert "tulips need water" in then[:3]
