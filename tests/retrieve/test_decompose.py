"""Questions asked part by part."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import llm, retrieve
from memlab.records import Dataset, Run
from memlab.retrieve import Bench
from memlab.retrieve.decompose import WINDOWS, _best_turn_per_window, decompose, split_by_rules, split_questions

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


def test_a_window_brings_its_best_turn(talk: Dataset) -> None:
    bench = Bench.of(talk, encoder=None)
    scope = max(talk.scopes, key=lambda each: talk.sessions.filter(scope=each).height)
    ours = bench.with_queries(
        pl.DataFrame({"scope": [scope] * 2, "text": ["How many times did we talk of work?", "Why?"]})
    )
    run, documents = retrieve.bm25(ours, k=999), ours.documents("turn")
    first, end = ours.documents("session").spans[scope]
    windows = min(WINDOWS, end - first)
    found = _best_turn_per_window(run, ours, ours.queries)
    assert found["query_id"].unique().to_list() == ["query-0"], "only what counts or lists"
    ranked = run.frame.filter(query_id="query-0")["doc_id"]
    window = (documents.session[documents.at(ranked)] - first) * windows // (end - first)
    best = dict(zip(window[::-1].tolist(), ranked.reverse(), strict=True))
    assert sorted(found["doc_id"]) == sorted(best.values())
    assert set(found["lists"]) == {windows}


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
        split = split_questions(ours.queries, ours, "lab")
    assert split.rows() == [("new-0", "roses?"), ("new-0", "tulips?")]
    with pytest.warns(UserWarning, match="1 of 3 decompositions"):
        found = decompose(retrieve.bm25(ours), ours, service="lab", weight=9.0).frame
    assert {"ann/s3/4", "ann/s4/1"} & set(found.filter(pl.col("query_id") == "new-0")["doc_id"].head(2))


PARTS = [
    ("What do Ann and Bob both like?", "What do {} like", "Ann; Bob"),
    ("What will Al do with Scout, Toby, and Buddy?", "What will Al do with {}", "Scout; Toby; Buddy"),
    ("How much did I spend on my coworker and brother?", "How much did I spend on my {}", "coworker; brother"),
    ("How many kitchen items did I replace or fix?", "How many kitchen items did I {}", "replace; fix"),
    ("What if I sold the old ring and the clay vase?", "What if I sold the {}", "old ring; clay vase"),
    ("How much more did I spend in Hawaii compared to Tokyo?", "How much more did I spend in {}", "Hawaii; Tokyo"),
    ("Which did I wash first, the bike or the car?", "Which did I wash first {}", "the bike; the car"),
    ("What passed between my trip and the show?", "What passed between {}", "my trip; the show"),
    ("How often did I play before? How often do I play now?", "How often {}", "did I play before; do I play now"),
    ("How many tops have I bought from H&M so far?", "", ""),
    ('What does "Salt and Pepper" mean to Tim?', "", ""),
    ("Where did I go and why?", "", ""),
    ("and, or", "", ""),
    ("?", "", ""),
]


@pytest.mark.parametrize(("text", "pattern", "members"), PARTS)
def test_parts(text: str, pattern: str, members: str) -> None:
    parts = split_by_rules(pl.DataFrame({"query_id": ["q"], "text": [text]}))["text"].to_list()
    assert parts == [pattern.format(member) for member in members.split("; ") if member]


@given(
    st.lists(st.text(max_size=60) | st.sampled_from(["Ann and Bob", "the a, the b, and", "'x' and 'y'?"]), max_size=5)
)
def test_parts_are_texts_of_their_own(texts: list[str]) -> None:
    queries = pl.DataFrame({"query_id": [str(i) for i in range(len(texts))], "text": pl.Series(texts, dtype=pl.String)})
    parts = split_by_rules(queries)
    assert not parts.is_duplicated().any()
    assert not parts.join(queries, on=["query_id", "text"], how="semi").height
    assert not parts.filter(pl.col("text").str.strip_chars() == "").height
