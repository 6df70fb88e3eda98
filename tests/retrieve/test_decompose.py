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
from memlab.retrieve.decompose import contributions, decompose, parts

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture(scope="module")
def bench(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


def asking(bench: Bench, *texts: str, scope: str = "ann") -> Bench:
    ids = [f"new-{i}" for i in range(len(texts))]
    return bench.with_queries(pl.DataFrame({"query_id": ids, "scope": [scope] * len(ids), "text": list(texts)}))


def test_each_side_of_a_pair_gets_its_turn_to_the_front(bench: Bench) -> None:
    """The question's own list is full of doctors; the dentist is asked for alone."""
    ours = asking(bench, "What did I do for the doctor doctor doctor and the dentist?")
    run = retrieve.bm25(ours)
    got = decompose(run, ours, retriever="bm25", weight=4.0, windows=0)
    place = {d: i for i, d in enumerate(got.frame["doc_id"])}
    before = {d: i for i, d in enumerate(run.frame["doc_id"])}
    assert place["ann/s1/2"] < before["ann/s1/2"]


def test_the_parts_are_shown(bench: Bench) -> None:
    ours = asking(bench, "How many roses and tulips did we plant?", "Where do I live?", "roses and tulips", "How many?")
    shown = parts(ours, windows=2)
    assert shown.rows() == [
        ("new-0", 1, "How many roses did we plant", "facet", None),
        ("new-0", 2, "How many tulips did we plant", "facet", None),
        ("new-0", 3, "How many roses and tulips did we plant?", "window", 0),
        ("new-0", 4, "How many roses and tulips did we plant?", "window", 1),
        ("new-2", 1, "roses", "facet", None),
        ("new-2", 2, "tulips", "facet", None),
        ("new-3", 1, "How many?", "window", 0),
        ("new-3", 2, "How many?", "window", 1),
    ]
    assert parts(ours, windows=0)["window"].null_count() == 4
    assert parts(ours, windows=99)["window"].max() == 3, "one window for each session"


@pytest.mark.parametrize("windows", [1, 2, 3, 4, 50])
def test_a_window_brings_its_best_turn(bench: Bench, windows: int) -> None:
    ours = asking(bench, "How many times did I see the doctor?")
    run = retrieve.bm25(ours)
    found = contributions(run, ours, retriever="hybrid", windows=windows, depth=5)
    documents = ours.documents("turn")
    sessions = documents.session[documents.at(found["doc_id"])]
    stretch = sessions * min(windows, 4) // 4
    ranked = run.frame["doc_id"].to_list()
    of_run = documents.session[documents.at(run.frame["doc_id"])] * min(windows, 4) // 4
    assert sorted(set(stretch)) == sorted(set(of_run))
    assert len(stretch) == len(set(stretch))
    for document, window in zip(found["doc_id"], stretch, strict=True):
        assert document == next(d for d, w in zip(ranked, of_run, strict=True) if w == window)


def test_a_turn_may_be_found_by_several_parts(bench: Bench) -> None:
    ours = asking(bench, "Did I water the roses and the tulips?")
    found = contributions(retrieve.bm25(ours), ours, retriever="bm25", windows=0, depth=3)
    assert found["part"].unique(maintain_order=True).to_list() == [1, 2]
    assert found.group_by("doc_id").len()["len"].max() == 2


def test_other_questions_keep_their_ranking(bench: Bench, ranking: Ranking) -> None:
    ours = asking(bench, "Where do I live?", "roses tulips", "", "How many roses and tulips?")
    run = retrieve.combsum(ours)
    got, before = ranking(decompose(run, ours)), ranking(run)
    assert [got[q] == before[q] for q in before] == [True, True, True, False]


@pytest.mark.parametrize("k", [1, 3, 200])
@pytest.mark.parametrize("first", [retrieve.bm25, retrieve.hybrid, retrieve.combsum])
def test_no_weight_no_change(bench: Bench, ranking: Ranking, first: Callable[..., Run], k: int) -> None:
    ours = asking(bench, "How many roses and tulips?", "Did Ann and Bob see the doctor?", "no")
    run = first(ours, k=k)
    assert ranking(decompose(run, ours, weight=0.0)) == ranking(run)
    assert decompose(run, ours).frame["rank"].max() <= k


def test_a_question_alone_ranks_as_among_many(talk: Dataset) -> None:
    bench = Bench.of(talk, encoder="hashing:32")
    run = retrieve.hybrid(bench, k=30)
    many = decompose(run, bench, windows=3).frame
    for query in bench.queries["query_id"].gather_every(17):
        own = bench.with_queries(bench.queries.filter(pl.col("query_id") == query))
        alone = decompose(replace(run, frame=run.frame.filter(pl.col("query_id") == query)), own, windows=3).frame
        assert alone.equals(many.filter(pl.col("query_id") == query))


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
        split = parts(ours, windows=8, service="lab")
    assert split.select("query_id", "text", "kind").rows() == [
        ("new-0", "roses?", "facet"),
        ("new-0", "tulips?", "facet"),
    ]
    run = retrieve.bm25(ours)
    with pytest.warns(UserWarning, match="1 of 3 decompositions"):
        found = decompose(run, ours, service="lab", weight=9.0, depth=1).frame
    assert {"ann/s3/4", "ann/s4/1"} & set(found.filter(pl.col("query_id") == "new-0")["doc_id"].head(2))


def test_wrong_arguments(bench: Bench) -> None:
    run = retrieve.bm25(bench)
    for wrong, message in (
        ({"windows": -1}, "windows is -1"),
        ({"depth": 0}, "depth is 0"),
        ({"weight": -0.1}, "weight is -0.1"),
        ({"retriever": "mmr"}, "retriever is 'mmr'; choose from dense"),
    ):
        with pytest.raises(DataError, match=message):
            decompose(run, bench, **wrong)
    with pytest.raises(DataError, match="give it a ranking of turns"):
        decompose(retrieve.bm25(bench, level="session"), bench)
    with pytest.raises(ModelError, match=r"llm\.services\.nowhere"):
        decompose(run, bench, service="nowhere")
