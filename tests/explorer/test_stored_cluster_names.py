"""Names of clusters that a model gave: on the map, in the store, and gone with what they stand on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from explored import DATA, PLACES, SCOPE
from model_server import ModelServer, say

import memlab
from memlab.explorer import build_scene
from memlab.explorer.map_drawing import draw_view, scene_payload
from memlab.explorer.map_scene import clusters_request
from memlab.llm import recorded_answers

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def naming(handler: Any, request: dict[str, Any]) -> None:
    terms = json.loads(request["messages"][-1]["content"])["terms"]
    say(json.dumps({"label": f"About {terms[0]}", "sentence": "They talk."}), usage=USAGE)(
        handler, request
    )


def stored_bench(tmp_path: Path, data: memlab.Dataset = DATA) -> memlab.Bench:
    store = memlab.MemoryStore.open(tmp_path / "store")
    return memlab.Bench.of(data, encoder="hashing", store=store)


def test_names_stand_on_the_map_and_a_store_is_not_asked_for_twice(
    server: ModelServer, tmp_path: Path
) -> None:
    server.modes = [naming]
    bench = stored_bench(tmp_path)
    first = build_scene(bench, SCOPE, places=PLACES, service=server.service())
    assert len(server.requests) == 3
    assert all(name.startswith("About ") for name in first.names.values())
    labels = scene_payload(first, bench)["labels"]
    assert {label["sentence"] for label in labels} == {"They talk."}
    drawn = draw_view(first, {}, k=5, colour="cluster", until=None, picked=[])
    texts = [note.text for note in drawn.layout.annotations]
    assert any("names by a language model (lab)" in text for text in texts)
    again = build_scene(stored_bench(tmp_path), SCOPE, places=PLACES, service=server.service())
    assert again.names == first.names
    assert len(server.requests) == 3
    build_scene(bench, SCOPE, places=PLACES, service=server.service(model="another"))
    assert len(server.requests) == 6, "another model is asked"


def test_a_name_goes_with_the_message_that_it_stands_on(
    server: ModelServer, tmp_path: Path
) -> None:
    server.modes = [naming]
    bench = stored_bench(tmp_path)
    build_scene(bench, SCOPE, places=PLACES, service=server.service())
    rows = bench.store.nodes.rows(DATA.name)
    assert rows["kind"].to_list() == ["map"] * 3
    assert rows["service"].unique().to_list() == ["lab"]
    gone = rows["turns"][0][0]
    fewer = replace(
        DATA, turns=DATA.turns.filter(pl.col("turn_id") != gone), questions=DATA.questions.clear()
    )
    bench.store.ingest(fewer)
    left = bench.store.nodes.rows(DATA.name, emptied=True)
    assert left.filter(pl.col("turns").list.contains(gone)).is_empty()
    of_the_cluster = left.filter(node_id=rows["node_id"][0])
    assert of_the_cluster["text"].to_list() in ([], [""])
    assert of_the_cluster["topics"].explode().drop_nulls().is_empty()


def test_new_clusters_are_named_and_the_others_keep_their_names(
    server: ModelServer, tmp_path: Path
) -> None:
    server.modes = [naming]
    bench = memlab.Bench.of(DATA, encoder="hashing")
    how = {"scope": SCOPE, "places": PLACES, "clustering": "hdbscan"}
    explorer = memlab.explore(bench, "bm25", service=server.service(), **how)
    before = dict(explorer.scene.names)
    asked = len(server.requests)
    explorer.select(explorer.scene.turns["turn_id"].head(60).to_list())
    explorer.cluster_again()
    kept = before.keys() & explorer.scene.names.keys()
    assert kept
    assert all(explorer.scene.names[label] == before[label] for label in kept)
    assert len(server.requests) - asked == len(explorer.scene.names.keys() - before.keys())
    assert explorer.scene.sentences.keys() == explorer.scene.names.keys()


@pytest.mark.slow
def test_clusters_of_a_map_are_read_where_they_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = memlab.Bench.of(DATA, encoder="hashing")
    alone = build_scene(bench, SCOPE, places=PLACES.drop("label"), clustering="hdbscan")
    how = {"seed": 0, "centred": True}
    request = clusters_request(bench, alone.turns, "hdbscan", **how)
    assert request is not None
    labels = [n % 2 for n in range(alone.turns.height)]
    row = {"task": request.task, "version": request.version, "key": request.key}
    row |= {"answer": {"labels": labels}, "tokens": [0, 0]}
    file = tmp_path / "recorded.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    monkeypatch.setattr(recorded_answers, "DEFAULT_RECORDINGS", (file, file))
    read = build_scene(bench, SCOPE, places=PLACES.drop("label"), clustering="hdbscan")
    assert read.turns["label"].to_list() == labels
    for changed in ({"service": None}, {"seed": 1}, {"centred": False}):
        other = build_scene(
            bench, SCOPE, places=PLACES.drop("label"), clustering="hdbscan", **changed
        )
        assert other.turns["label"].to_list() != labels


def test_what_is_not_named_is_said_once(server: ModelServer) -> None:
    server.modes = [say("{}", usage=USAGE)]
    bench = memlab.Bench.of(DATA, encoder="hashing")
    with pytest.warns(UserWarning, match="3 of 3 cluster names came from no model") as caught:
        scene = build_scene(bench, SCOPE, places=PLACES, service=server.service())
    assert len(caught) == 1
    assert scene.named_by == ""
    assert scene.names == build_scene(bench, SCOPE, places=PLACES, service=None).names
    with pytest.raises(memlab.errors.ModelError, match="no language model 'nobody'"):
        build_scene(bench, SCOPE, places=PLACES, service="nobody")
