"""Extractive, given and a language model's nodes; what they cost and keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from chat_server import KEY, ChatServer, said

import memlab
from memlab.errors import DataError
from memlab.rollup import ByModel, Extractive, Given, cost, kept, rollup
from memlab.summarize import share


@pytest.fixture
def two_weeks(talk: Any) -> pl.DataFrame:
    return talk(
        ("a", "2024-03-05 12:00", ["Ann: I sold my car to Joe for $900.", "Mel: Wow!", "Ann: I moved to Oslo in May."]),
        ("b", "2024-03-12 12:00", ["Mel: I bought three lamps in Bergen.", "Mel: The red lamp broke on Friday."]),
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("LAB_TEST_KEY", KEY)
    held = ChatServer()
    yield held
    held.close()


def answering(*points: tuple[str, list[int]]) -> Any:
    return said(json.dumps({"sentences": [{"text": text, "turns": numbers} for text, numbers in points]}))


def test_a_model_writes_nodes_with_their_turns(server: ChatServer, two_weeks: pl.DataFrame, laws: Any) -> None:
    server.answers = [lambda request: answering(("Somebody sold or bought.", [1, 2]))]
    nodes = rollup(two_weeks, summariser=ByModel(server.service()))
    laws(nodes, two_weeks)
    assert set(nodes["service"]) == {"lab"}
    assert set(nodes["text"]) == {"Somebody sold or bought."}
    of_session = nodes.filter(pl.col("kind") == "session")["evidence"].to_list()
    assert of_session == [[["u/a/1", "u/a/2"]], [["u/b/1", "u/b/2"]]]
    month = nodes.filter(pl.col("kind") == "month").row(0, named=True)
    assert month["evidence"] == [["u/a/1", "u/a/2", "u/b/1", "u/b/2"]], "evidence goes up through the layers"
    assert len(server.requests) == 5 == cost(nodes, two_weeks)["calls"].sum()
    prompts = [request["messages"][-1]["content"] for request in server.requests]
    assert any("[1] (5 March 2024) Ann: I sold my car to Joe for $900." in prompt for prompt in prompts)


@pytest.mark.parametrize(
    "answer", [said("no JSON"), answering(("Nothing of this was said.", [])), (500, {"error": {"message": "broken"}})]
)
def test_what_a_model_fails_on_is_picked_and_says_so(server: ChatServer, two_weeks: pl.DataFrame, answer: Any) -> None:
    server.answers = [lambda request: answer]
    nodes = rollup(two_weeks, summariser=ByModel(server.service(max_retries=0)))
    assert set(nodes["service"]) == {"extractive instead of lab"}
    plain = rollup(two_weeks)
    assert nodes["sentences"].to_list() == plain["sentences"].to_list()
    assert cost(nodes, two_weeks)["calls"].sum() == 5
    server.answers = [lambda request: answering(("It went well.", [1]))]
    again = rollup(two_weeks, summariser=ByModel(server.service()), previous=nodes)
    assert set(again["service"]) == {"lab"}, "it is asked again next time"


def test_given_summaries_stand_as_they_are(two_weeks: pl.DataFrame, laws: Any) -> None:
    text = "Ann sold her car to Joe. She has left the country for good, they say."
    sessions = pl.DataFrame({"session_id": ["u/a", "u/b"], "summary": [text, " "]})
    nodes = rollup(two_weeks, summariser=Given(sessions))
    laws(nodes, two_weeks)
    first, second = nodes.filter(pl.col("kind") == "session").rows(named=True)
    assert (first["text"], first["service"]) == (text, "given")
    assert first["evidence"] == [["u/a/1"], []], "a sentence that nothing supports stands on nothing"
    assert second["service"] == "extractive instead of given"
    week = nodes.filter(pl.col("kind") == "week").row(0, named=True)
    assert week["service"] == "extractive"
    assert week["sentences"] == ["Ann sold her car to Joe."]
    assert cost(nodes, two_weeks)["calls"].sum() == 0
    other = rollup(two_weeks, summariser=Given(sessions.with_columns(summary=pl.lit("Ann sold her car."))))
    assert set(other["node_id"]).isdisjoint(nodes["node_id"]), "another text makes other nodes"


def test_given_needs_its_columns() -> None:
    with pytest.raises(DataError, match="the sessions have no column 'summary'; they have session_id"):
        Given(pl.DataFrame({"session_id": ["a"]}))


def test_extractive_picks_values_first_and_keeps_its_bound() -> None:
    data = memlab.sample(["owen"], turns=200)
    nodes = rollup(data.turns, summariser=Extractive(max_sentences=4))
    assert nodes["sentences"].list.len().max() == 4
    assert share(nodes, data.turns)["share"].to_list() == [0.0], "nothing is said that no turn says"


def test_cost_and_what_is_kept(talk: Any, counting: Any) -> None:
    turns = talk(
        ("a", "2024-03-05 12:00", ["Ann: One two three.", "Mel: Four five."]), ("b", "2024-03-06 12:00", ["Ann: Six."])
    )
    nodes = rollup(turns, summariser=counting)
    columns = ("kind", "nodes", "calls", "tokens_in", "tokens_out")
    assert cost(nodes, turns).select(columns).rows() == [
        ("session", 2, 2, 9, 6),  # a full stop is a token
        ("week", 1, 1, 6, 4),
        ("month", 1, 1, 4, 4),
    ]
    held = kept(nodes, turns, ["u/a/1", "u/a/2", "u/b/1", "u/a/1"])
    assert held["evidence_kept"].to_list() == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    assert held["compression"].to_list() == pytest.approx([9 / 6, 9 / 4, 9 / 4])
    assert kept(nodes, turns)["evidence_kept"].null_count() == 3
