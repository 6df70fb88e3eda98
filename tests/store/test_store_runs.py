"""Runs are kept with where they came from, and the versions that they saw stay readable."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from store_data import NOW, FakeEncoder, build

from memlab.errors import StoreError
from memlab.records import Dataset, Run, run_from_scores
from memlab.store import MemoryStore, opening


def a_run(store: MemoryStore, *, name: str = "dense", seed: int = 0) -> Run:
    rng = np.random.default_rng(seed)
    queries, documents = np.repeat(["b'q", "a"], 5), np.tile([f"d{i}/'" for i in range(5)], 2)
    run = run_from_scores(queries, documents, rng.random(10), level="turn", k=4)
    provenance = {"versions": store.versions(), "seed": np.int64(seed), "dataset": {"fingerprint": "é"}}
    return replace(run, name=name, provenance=provenance)


def edited(data: Dataset) -> Dataset:
    return replace(data, turns=data.turns.with_columns(text=pl.lit("all is new")))


def test_a_run_comes_back_as_it_was_and_is_kept_once(store: MemoryStore) -> None:
    run = a_run(store)
    run_id = store.runs.save(run, measures={"recall_all@10": 0.5}, now=NOW)
    got = store.runs.load(run_id)
    assert got.frame.equals(run.frame)
    assert (got.name, got.level) == ("dense", "turn")
    assert got.provenance == {"versions": store.versions(), "seed": 0, "dataset": {"fingerprint": "é"}}
    assert store.runs.save(a_run(store), now=NOW + timedelta(days=1)) == run_id
    assert run_id not in (store.runs.save(a_run(store, seed=1)), store.runs.save(a_run(store, name="bm25")))
    store.runs.save(a_run(store), measures={"mrr": 1.0}, now=NOW + timedelta(days=2))
    row = store.runs.listing().filter(run_id=run_id).row(0, named=True)
    assert (row["queries"], row["rows"], row["measures"], row["saved_at"]) == (2, 8, '{"mrr": 1.0}', NOW)
    assert store.runs.listing().height == 3
    assert store.table("rankings").count_rows() == 6
    empty = replace(run, frame=run.frame.clear())
    assert store.runs.load(store.runs.save(empty)).frame.equals(empty.frame)
    with pytest.raises(StoreError, match="no run 'nope'; store"):
        store.runs.load("nope")


def test_a_view_is_read_only_and_stays_where_it_is(store: MemoryStore) -> None:
    data, encoder = build(), FakeEncoder()
    store.ingest(data)
    view = store.at(store.versions())
    writes = {
        "ingest": lambda: view.ingest(edited(data)),
        "backfill": lambda: view.vectors.backfill(encoder, "small"),
        "create_indexes": view.search.create_indexes,
        "optimize": view.optimize,
        "save a run": lambda: view.runs.save(a_run(store)),
        "sweep": lambda: view.knowledge.sweep("small"),
    }
    for name, write in writes.items():
        with pytest.raises(StoreError, match=f"^{name}: this is a view on versions .* open the store itself"):
            write()
    assert view.encode(encoder, ["a"]).shape == view.encode(encoder, ["a"]).shape == (1, 8)
    assert len(encoder.asked) == 2, "a view remembers nothing"
    store.ingest(edited(data))
    assert view.dataset("small").fingerprint() == data.fingerprint()
    for wrong, word in (({**store.versions(), "turns": 99}, "turns .* has no version 99; it has 1 to "),
                        ({"turns": 1}, "sessions .* has no version None")):  # fmt: skip
        with pytest.raises(StoreError, match=word):
            store.at(wrong)


def test_optimizing_keeps_what_tags_and_runs_need(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_MARGIN", timedelta(seconds=0.1))
    data, encoder = build(4), FakeEncoder()
    store.ingest(data.take(data.scopes[:1]))
    early = store.versions()
    time.sleep(0.3)
    store.ingest(data.take(data.scopes[1:2]))
    seen, run_id = store.dataset("small").fingerprint(), store.runs.save(a_run(store))
    for scope in data.scopes[2:]:
        store.ingest(data.take([scope]))
    store.vectors.backfill(encoder, "small", progress=False)
    report = store.optimize()
    turns = report.filter(table="turns").row(0, named=True)
    assert turns["versions_after"] < turns["versions_before"]
    assert "embeddings_fake_8" in report["table"]
    assert store.at(store.runs.load(run_id).provenance["versions"]).dataset("small").fingerprint() == seen
    with pytest.raises(StoreError, match="was cleaned up"):
        store.at(early)
    assert store.dataset("small").fingerprint() == data.fingerprint()
    assert store.vectors.read(encoder, "small").shape == (32, 8)
