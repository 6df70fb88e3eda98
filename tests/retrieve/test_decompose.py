"""Questions asked part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from memlab import llm, retrieve
from memlab.errors import DataError, ModelError
from memlab.records import Dataset, Run
from memlab.retrieve import Bench
from memlab.retrieve.decompose import WINDOWS, _windows, decompose, parts

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture(scope="module")
def bench(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


def asking(bench: Bench, *texts: str) -> Bench:
    ids = [f"new-{i}" for i in range(len(texts))]
    return bench.with_queries(pl.DataFrame({"query_id": ids, "scope": ["ann"] * len(ids), "text": list(texts)}))


def test_each_side_of_a_pair_gets_its_turn_to_the_front(bench: Bench) -> None:
    """The question's own list is full of doctors; the dentist is asked for alone."""
    ours = asking(bench, "What did I do for the doctor doctor doctor and the dentist?")
    run = retrieve.bm25(ours)
    got = decompose(run, ours, retriever="bm25", weight=4.0)
    place = {d: i for i, d in enumerate(got.frame["doc_id"])}
    before = {d: i for i, d in enumerate(run.frame["doc_id"])}
    assert place["ann/s1/2"] < before["ann/s1/2"]


def test_the_parts_are_shown(bench: Bench) -> None:
    ours = asking(bench, "How many roses and tulips did we plant?", "Where do I live?", "roses and tulips", "How many?")
    assert parts(ours.queries, ours).rows() == [
        ("new-0", "How many roses did we plant"),
        ("new-0", "How many tulips did we plant"),
        ("new-2", "roses"),
        ("new-2", "tulips"),
    ]
    german = ours.but(language="de")
    assert parts(german.queries, german).is_empty()


def test_a_window_brings_its_best_turn(talk: Dataset) -> None:
    bench = Bench.of(talk, encoder=None)
    scope = max(talk.scopes, key=lambda each: talk.sessions.filter(scope=each).height)
    ours = bench.with_queries(
        pl.DataFrame({"scope": [scope] * 2, "text": ["How many times did we talk of work?", "Why?"]})
    )
    run, documents = retrieve.bm25(ours, k=999), ours.documents("turn")
    first, end = ours.documents("session").spans[scope]
    windows = min(WINDOWS, end - first)
    found = _windows(run, ours, ours.queries)
    assert found["query_id"].unique().to_list() == ["query-0"], "only what counts or lists"
    ranked = run.frame.filter(query_id="query-0")["doc_id"]
    window = (documents.session[documents.at(ranked)] - first) * windows // (end - first)
    best = dict(zip(window[::-1].tolist(), ranked.reverse(), strict=True))
    assert sorted(found["doc_id"]) == sorted(best.values())
    assert set(found["lists"]) == {windows}


def test_other_questions_keep_their_ranking(bench: Bench, ranking: Ranking) -> None:
    ours = asking(bench, "Where do I live?", "roses tulips", "", "How many roses and tulips?")
    run = retrieve.combsum(ours)
    got, before = ranking(decompose(run, ours)), ranking(run)
    assert [got[q] == before[q] for q in before] == [True, True, True, False]


def test_only_the_questions_of_the_run_are_answered(bench: Bench) -> None:
    run = retrieve.bm25(bench)
    some = replace(run, name="mine", frame=run.frame.filter(pl.col("query_id") == "ann/q0"))
    got = decompose(some, bench)
    assert got.frame["query_id"].unique().to_list() == ["ann/q0"]
    assert (got.name, got.provenance, got.text_of is not None) == ("mine", run.provenance, True)
    none = replace(run, frame=run.frame.head(0))
    assert decompose(none, bench).frame.equals(none.frame)


def test_a_language_model_splits_the_questions(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = asking(bench, "a", "b", "c")
    answers = {"a": ["roses?", "", "tulips?"], "b": []}

    def ask(requests: list[llm.Request], service: str) -> list[llm.Answer]:
        assert service == "lab"
        texts = [request.about[0] for request in requests]
        split = [
            request.shape(questions=answers[t]) if t in answers else None
            for request, t in zip(requests, texts, strict=True)
        ]
        return [llm.Answer(value, "" if value else "not recorded") for value in split]

    monkeypatch.setattr(llm, "ask", ask)
    with pytest.warns(UserWarning, match="1 of 3 decompositions"):
        split = parts(ours.queries, ours, "lab")
    assert split.rows() == [("new-0", "roses?"), ("new-0", "tulips?")]
    with pytest.warns(UserWarning, match="1 of 3 decompositions"):
        found = decompose(retrieve.bm25(ours), ours, service="lab", weight=9.0).frame
    assert {"ann/s3/4", "ann/s4/1"} & set(found.filter(pl.col("query_id") == "new-0")["doc_id"].head(2))


def test_wrong_arguments(bench: Bench) -> None:
    run = retrieve.bm25(bench)
    for wrong, message in (({"weight": -0.1}, "weight is -0.1"), ({"retriever": "mmr"}, "retriever is 'mmr'")):
        with pytest.raises(DataError, match=message):
            decompose(run, bench, **wrong)
    with pytest.raises(DataError, match="give it a ranking of turns"):
        decompose(retrieve.bm25(bench, level="session"), bench)
    with pytest.raises(ModelError, match=r"llm\.services\.nowhere"):
        decompose(run, bench, service="nowhere")
