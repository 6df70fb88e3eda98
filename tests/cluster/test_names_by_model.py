"""Names of clusters by a model, and by their terms where it does not answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from model_server import ModelServer, say

from memlab import llm
from memlab.cluster.names_by_model import (
    CENTRAL,
    EDGE,
    SPREAD,
    TERMS,
    ClusterName,
    choose_shown_members,
    name_clusters,
)
from memlab.errors import DataError

TEXTS = {
    "boat": ["my boat is red", "a boat by the pier", "the boat leaks", "boat paint", "sold a boat"],
    "train": ["a late train", "the train to town", "train fares", "I missed a train", "one train"],
}
TURNS = pl.DataFrame(
    {
        "turn_id": [f"u/{i}" for i in range(11)],
        "speaker": ["Mel", "Jo"] * 5 + [None],
        "text": [*TEXTS["boat"], *TEXTS["train"], "hello"],
    }
)
LABELS = np.array([0] * 5 + [1] * 5 + [-1])
VECTORS = np.eye(3)[np.array([0] * 5 + [1] * 5 + [2])]

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def naming(label: str | None = None) -> Any:
    """Answer with a label that the prompt's first term makes, or with one that is given."""

    def mode(handler: Any, request: dict[str, Any]) -> None:
        asked = json.loads(request["messages"][-1]["content"])
        name = label or f"About {asked['terms'][0]}"
        say(json.dumps({"label": name, "sentence": "They talk."}), usage=USAGE)(handler, request)

    return mode


def test_a_model_names_clusters_by_turns_of_centre_and_edge_and_noise_has_no_name(
    server: ModelServer,
) -> None:
    server.modes = [naming()]
    named = name_clusters(TURNS, LABELS, VECTORS, service=server.service())
    assert named.names() == {0: "About boat", 1: "About train"}
    assert named.frame["sentence"].to_list() == ["They talk."] * 2
    assert named.frame["size"].to_list() == [5, 5]
    assert named.note == ""
    prompts = [json.loads(sent["messages"][-1]["content"]) for sent in server.requests]
    texts = [
        [entry["text"] for part in ("central", "edge") for entry in prompt[part]]
        for prompt in prompts
    ]
    assert sorted(sorted(each) for each in texts) == sorted(map(sorted, TEXTS.values()))
    sent = json.dumps(server.requests)
    assert "u/" not in sent, "ids of some benchmarks give labels away"


@pytest.mark.slow
def test_without_a_model_or_a_recording_names_are_terms_and_nothing_is_said() -> None:
    for service in (None, llm.RECORDED):
        named = name_clusters(TURNS, LABELS, VECTORS, service=service)
        assert [name.split(" · ")[0] for name in named.names().values()] == ["boat", "train"]
        assert named.frame["writer"].to_list() == [TERMS, TERMS]
        assert named.note == ""


def test_what_a_model_does_not_name_is_counted_and_named_by_its_terms(server: ModelServer) -> None:
    seven = "one two three four five six seven"
    for answer in ("{}", json.dumps({"label": seven, "sentence": "So."})):
        server.modes = [say(answer, usage=USAGE)]
        named = name_clusters(TURNS, LABELS, VECTORS, service=server.service())
        assert named.frame["writer"].to_list() == [TERMS, TERMS]
        assert named.note.startswith("2 of 2 cluster names came from no model (service ")


def test_clusters_that_a_model_calls_the_same_are_told_apart(server: ModelServer) -> None:
    server.modes = [naming("Going out")]
    named = name_clusters(TURNS, LABELS, VECTORS, service=server.service())
    assert named.names() == {0: "Going out · boat", 1: "Going out · train"}
    assert named.frame["given"].to_list() == ["Going out"] * 2


def test_only_some_are_asked_for_and_nothing_that_is_known(server: ModelServer) -> None:
    server.modes = [naming()]
    first = name_clusters(TURNS, LABELS, VECTORS, service=server.service(), only=[1])
    assert first.names() == {1: "About train"}
    assert len(server.requests) == 1
    key = first.frame["key"][0]
    known = {key: ClusterName(label="Rails", sentence="They ride.")}
    second = name_clusters(TURNS, LABELS, VECTORS, service=server.service(), known=known)
    assert second.names() == {0: "About boat", 1: "Rails"}
    assert second.frame["key"][1] == key
    assert len(server.requests) == 2


def test_an_estimate_asks_nobody(server: ModelServer) -> None:
    with llm.track_spending(estimate=True) as spent:
        name_clusters(TURNS, LABELS, VECTORS, service=server.service())
    assert server.requests == []
    assert spent.describe()["tasks"]["cluster_name"][0] == 2


def test_centre_spread_and_edge_are_apart_and_equal_texts_count_once() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8)) + 3
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [f"text {i // 2}" for i in range(40)]
    central, spread, edge = choose_shown_members(texts, vectors)
    assert (len(central), len(spread), len(edge)) == (CENTRAL, SPREAD, EDGE)
    shown = [texts[at] for at in central + spread + edge]
    assert len(set(shown)) == CENTRAL + SPREAD + EDGE
    near = vectors @ vectors.mean(axis=0)
    assert near[central].min() >= near[spread].max()
    assert near[spread].min() >= near[edge].max()
    assert choose_shown_members(["a"], vectors[:1]) == ([0], [], [])


def test_a_label_and_a_vector_for_each_turn() -> None:
    with pytest.raises(DataError, match="11 turns but 10 labels and 11 vectors"):
        name_clusters(TURNS, LABELS[1:], VECTORS)
