"""Questions asked part by part or expanded; what knows English alone leaves other languages be."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from talk import ranking

from memlab import llm
from memlab.datasets import chatlog
from memlab.pipelines import pipeline
from memlab.retrieve import Bench, bm25, dense, expand, hybrid, hyde
from memlab.retrieve.query_expansion import KINDS, Expansion
from memlab.retrieve.question_decomposition import Split, decompose, split_into_subquestions
from memlab.retrieve.subquery_search import rank_turns_by_vectors
from memlab.text.question_forms import split_question
from memlab.text.text_analyser import english_rules_apply_or_warn


def asking(bench: Bench, *texts: str) -> Bench:
    ids = [f"new-{i}" for i in range(len(texts))]
    return bench.with_queries(
        pl.DataFrame({"query_id": ids, "scope": ["ann"] * len(ids), "text": list(texts)})
    )


def test_each_side_of_a_pair_gets_its_turn_to_the_front(odd: Bench) -> None:
    """The question's own list is full of doctors; the dentist is asked for alone."""
    ours = asking(odd, "What did I do for the doctor doctor doctor and the dentist?")
    run = bm25(ours)
    got = decompose(run, ours, retriever="bm25", weight=4.0)
    before, after = (frame["doc_id"].index_of("ann/s1/2") for frame in (run.frame, got.frame))
    assert after < before


def test_a_window_brings_its_best_turn(odd: Bench) -> None:
    """Here each of three sessions is a window; the fourth is empty."""
    ours = asking(odd, "How many doctors water tulips?", "Why?")
    run = bm25(ours)
    before, found = ranking(run), ranking(decompose(run, ours, retriever="bm25", weight=9.0))
    best = {next(d for d in before["new-0"] if d.startswith(f"ann/s{n}")) for n in (1, 3, 4)}
    assert set(found["new-0"][:3]) == best != set(before["new-0"][:3])
    assert found["new-1"] == before["new-1"], "only what counts or lists"


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A language model that answers what is put in ``say``; what it was asked for is in ``asked``."""
    played: dict[str, Any] = {"asked": set()}

    def ask(requests: list[llm.Request], service: str) -> list[llm.Answer]:
        played["asked"] |= {(service, request.shape) for request in requests}
        values = [played["say"](json.loads(request.prompt)["question"]) for request in requests]
        return [llm.Answer(value, "" if value else "not recorded") for value in values]

    monkeypatch.setattr(llm, "ask", ask)
    return played


def test_a_language_model_splits_the_questions(odd: Bench, played: dict[str, Any]) -> None:
    ours = asking(odd, "a", "b", "c")
    played["say"] = {"a": Split(questions=["roses?", "", "tulips?"]), "b": Split(questions=[])}.get
    with pytest.warns(UserWarning, match="1 of 3 decompositions"):
        split = split_into_subquestions(ours.queries, ours, "lab")
    assert split.rows() == [("new-0", "roses?"), ("new-0", "tulips?")]
    assert played["asked"] == {("lab", Split)}
    with pytest.warns(UserWarning, match="1 of 3 decompositions"):
        found = decompose(bm25(ours), ours, service="lab", weight=9.0).frame
    assert {"ann/s3/4", "ann/s4/1"} & set(found.filter(query_id="new-0")["doc_id"].head(2))


PARTS = [
    ("What do Ann and Bob both like?", "What do {} like", "Ann; Bob"),
    (
        "What will Al do with Scout, Toby, and Buddy?",
        "What will Al do with {}",
        "Scout; Toby; Buddy",
    ),
    (
        "How many kitchen items did I replace or fix?",
        "How many kitchen items did I {}",
        "replace; fix",
    ),
    (
        "How much more did I spend in Hawaii compared to Tokyo?",
        "How much more did I spend in {}",
        "Hawaii; Tokyo",
    ),
    (
        "Which did I wash first, the bike or the car?",
        "Which did I wash first {}",
        "the bike; the car",
    ),
    ("What passed between my trip and the show?", "What passed between {}", "my trip; the show"),
    (
        "How often did I play before? How often do I play now?",
        "How often {}",
        "did I play before; do I play now",
    ),
    ("How many tops have I bought from H&M so far?", "", ""),
    ('What does "Salt and Pepper" mean to Tim?', "", ""),
    ("Where did I go and why?", "", ""),
    ("?", "", ""),
]


@pytest.mark.parametrize(("text", "pattern", "members"), PARTS)
def test_parts(text: str, pattern: str, members: str) -> None:
    assert split_question(text) == [
        pattern.format(member) for member in members.split("; ") if member
    ]


@given(st.text(max_size=60) | st.sampled_from(["Ann and Bob", "the a, the b, and", "'x' and 'y'?"]))
def test_parts_are_texts_of_their_own(text: str) -> None:
    parts = split_question(text)
    assert len(set(parts)) == len(parts)
    assert text not in parts
    assert all(part.strip() for part in parts)


def test_german_is_ranked_by_its_stems_and_its_questions_stay_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = [
        "Wir haben zwei Wohnungen besichtigt.",
        "Die Ärzte geben mir frei.",
        "Die Hunde bellen jede Nacht.",
    ]
    asked = [
        "Welche Wohnung hat Anna besichtigt?",
        "Welcher Arzt gab Anna frei?",
        "Wessen Hund und Nacht?",
    ]
    rows = [
        {"scope": "x", "sender": "Anna", "text": text, "id": f"m{n}"} for n, text in enumerate(said)
    ]
    rows += [
        {"question": text, "scope": "x", "evidence": [f"m{n}"]} for n, text in enumerate(asked)
    ]
    bench = Bench.of(replace(chatlog.dataset(rows, "german"), language="de"), encoder="hashing:64")
    english_rules_apply_or_warn.cache_clear()
    with caplog.at_level(logging.WARNING, "memlab"):
        runs = [
            pipeline(f"bm25{after}").run(bench) for after in ("", " | decompose(retriever='bm25')")
        ]
    assert runs[0].frame.filter(rank=1)["doc_id"].to_list() == ["x/m0", "x/m1", "x/m2"]
    assert runs[1].frame["doc_id"].equals(runs[0].frame["doc_id"])
    assert runs[0].provenance["language"] == "de"
    assert len(caplog.records) == 1, "English rules are left out, which is said once"


def test_each_kind_has_its_own_search(odd: Bench, played: dict[str, Any]) -> None:
    alone = odd.with_queries(odd.queries[1:2])
    played["say"] = lambda text: Expansion(lex="dentist tooth", vec="rain again", hyde="the doctor")
    found = {kind: ranking(expand(bm25(alone, k=1), alone, kinds=(kind,), k=50)) for kind in KINDS}
    assert played["asked"] == {("recorded", Expansion)}
    assert found["hyde"] == ranking(hyde(bm25(alone, k=1), alone, k=50))
    (query,) = alone.queries["query_id"]
    for kind, search, text in (("lex", bm25, "dentist tooth"), ("vec", dense, "rain again")):
        best = ranking(search(asking(odd, text), k=2))["new-0"]
        assert [d for d in found[kind][query] if d in best] == best
        assert found[kind][query].index(best[0]) <= 1
    mean = alone.query_vectors + alone.embedder().encode(["the doctor"], kind="document")
    best = ranking(rank_turns_by_vectors(alone, mean / np.linalg.norm(mean), k=2))[query]
    assert found["hyde"][query].index(best[0]) <= 1


def test_a_question_without_an_answer_keeps_its_ranking_and_the_first_places_are_guarded(
    odd: Bench, played: dict[str, Any]
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
