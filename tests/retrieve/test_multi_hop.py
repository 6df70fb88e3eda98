"""Retrieve, read, ask for what is missing, again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from memlab import llm, retrieve
from memlab.errors import DataError, ModelError
from memlab.records import Dataset, Run, Session, Turn, frame
from memlab.retrieve import Bench
from memlab.retrieve.multi_hop import mentions, multi_hop

Ranking = Callable[[Run], dict[str, list[str]]]

SAID = [
    ["Sam: My sister moved to Lisbon last spring.", "Sam: Rain again."],
    ["Sam: The tram in Lisbon broke down, and the parrot was late.", "Sam: Nothing new."],
    ["Sam: A parrot bit me.", "Sam: Nothing new."],
]


@pytest.fixture(scope="module")
def trip() -> Bench:
    turns = [
        Turn(f"u/{s}/{n}", "u", f"u/{s}", n, "user", "user", text)
        for s, talk in enumerate(SAID, 1)
        for n, text in enumerate(talk, 1)
    ]
    sessions = [Session(f"u/{s}", "u", s, None, None, len(talk), []) for s, talk in enumerate(SAID, 1)]
    data = Dataset("trip", "chatlog", frame(Turn, turns), frame(Session, sessions))
    asked = pl.DataFrame({"query_id": ["q"], "scope": ["u"], "text": ["Where does my sister live?"]})
    return Bench.of(data, encoder=None).with_queries(asked)


@pytest.fixture(scope="module")
def bench(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


def test_a_hit_leads_to_the_next(trip: Bench, ranking: Ranking, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question finds the sister; only what is said of her names the city, and the city the parrot."""
    module = sys.modules["memlab.retrieve.multi_hop"]
    monkeypatch.setattr(module, "MENTIONS", 1)
    run = retrieve.bm25(trip)
    assert run.frame.filter(pl.col("score") > 1e-6)["doc_id"].to_list() == ["u/1/1"], "the others tie at 0"
    for hops, reads, found in ((1, 1, ["u/1/1", "u/2/1"]), (2, 2, ["u/1/1", "u/2/1", "u/3/1"])):
        monkeypatch.setattr(module, "READS", reads)
        assert ranking(multi_hop(run, trip, hops=hops, retriever="bm25"))["q"][: len(found)] == found


def test_mentions_are_rare_new_and_lead_somewhere(trip: Bench) -> None:
    text = SAID[0][0]
    read = pl.DataFrame({"query_id": ["q"], "rank": [1], "text": [text]})
    first = mentions(read, trip, trip.queries)
    # "sister" is in the question, "moved" and "spring" stand in no other turn.
    assert first["mention"].to_list() == ["Lisbon", "Sam"]
    assert first["worth"].is_sorted(descending=True)
    known = pl.DataFrame({"query_id": ["q", "q"], "text": ["Where does my sister live?", "Lisbon's trams"]})
    assert mentions(read, trip, known)["mention"].to_list() == ["Sam"]
    assert mentions(read.clear(), trip, trip.queries).height == 0


def test_what_leads_nowhere_stays_as_it_was(bench: Bench, ranking: Ranking) -> None:
    run = retrieve.bm25(bench)
    some = replace(run, name="mine", frame=run.frame.filter(pl.col("query_id").is_in(["bob/q0", "ann/q0"])))
    got = multi_hop(some, bench)
    assert ranking(got)["bob/q0"] == ranking(run)["bob/q0"]
    assert list(ranking(got)) == ["ann/q0", "bob/q0"]
    assert (got.name, got.provenance, got.text_of is not None) == ("mine", run.provenance, True)
    none = replace(run, frame=run.frame.head(0))
    assert multi_hop(none, bench).frame.equals(none.frame)


def test_a_language_model_asks_until_it_has_enough(trip: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = trip.with_queries(pl.DataFrame({"scope": ["u"] * 3, "text": ["my sister", "rain", "parrot"]}))
    prompts: list[list[str]] = []

    def ask(requests: list[llm.Request], service: str) -> list[llm.Answer]:
        assert service == "lab"
        prompts.append([request.prompt for request in requests])
        queries = ["the tram", " ", " "] if len(prompts) == 1 else ["bit"]
        return [llm.Answer(request.shape(query=query)) for request, query in zip(requests, queries, strict=True)]

    monkeypatch.setattr(llm, "ask", ask)
    run = retrieve.bm25(ours)
    monkeypatch.setattr(sys.modules["memlab.retrieve.multi_hop"], "READS", 1)
    got = multi_hop(run, ours, hops=2, retriever="bm25", service="lab")
    assert [len(asked) for asked in prompts] == [3, 1]
    assert json.loads(prompts[0][0])["question"] == "my sister"
    assert "My sister moved" in prompts[0][0]
    assert json.loads(prompts[1][0])["searched"] == ["the tram"]
    places = got.frame.filter(pl.col("query_id") == "query-0")["doc_id"].to_list()
    assert set(places[:3]) == {"u/1/1", "u/2/1", "u/3/1"}
    others = [frame.filter(pl.col("query_id") != "query-0")["doc_id"] for frame in (got.frame, run.frame)]
    assert others[0].equals(others[1])


def test_wrong_arguments(bench: Bench) -> None:
    run = retrieve.bm25(bench)
    for wrong, message in (
        ({"hops": 0}, "hops is 0"),
        ({"weight": -0.1}, "weight is -0.1"),
        ({"retriever": "mmr"}, "retriever is 'mmr'; choose from dense"),
    ):
        with pytest.raises(DataError, match=message):
            multi_hop(run, bench, **wrong)
    with pytest.raises(DataError, match="give it a ranking of turns"):
        multi_hop(retrieve.bm25(bench, level="session"), bench)
    with pytest.raises(ModelError, match=r"llm\.services\.nowhere"):
        multi_hop(run, bench, service="nowhere")
