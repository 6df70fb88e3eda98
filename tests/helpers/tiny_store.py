"""The tiny stores in ``tests/store/data``.

``python tests/helpers/tiny_store.py`` writes the one of this version: to be run, and its file
added, by whoever raises ``memlab.store.table_schemas.SCHEMA_VERSION``.
"""

from __future__ import annotations

import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from store_data import NOW, FakeEncoder, build

from memlab.records import Fact, IndexEvent, IndexState, Run, frame, run_from_scores
from memlab.store import MemoryStore
from memlab.store.table_schemas import SCHEMA_VERSION

STORES = Path(__file__).parents[1] / "store" / "data"
DATA = build(2, 1, 2, name="tiny")
SESSIONS = DATA.sessions["session_id"].to_list()
FACT = Fact(
    "f",
    "scope-0",
    "Ann",
    "favourite drink",
    "tea",
    "stated",
    ["scope-0/session_0/1"],
    NOW,
    session_id=SESSIONS[0],
)


def a_run() -> Run:
    run = run_from_scores(
        np.array(["scope-0/q0"] * 2), np.array(["b", "a"]), np.array([2.0, 1.0]), level="turn", k=2
    )
    return replace(run, name="made by hand")


def fill(store: MemoryStore) -> None:
    """Put something into every kind of table."""
    store.ingest(DATA, now=NOW)
    store.vectors.backfill(FakeEncoder(), "tiny", progress=False)
    run = replace(a_run(), provenance={"versions": store.versions()})
    store.grids.save("tiny", {"cells": [store.runs.save(run, now=NOW)]}, now=NOW)
    read_session(store, "g")


def read_session(store: MemoryStore, generation: str) -> None:
    """Write what an index makes of the first session: one fact."""
    about = (SESSIONS[0], "scope-0")
    state = IndexState(*about, "indexed", "1", "d", generation, 1, None, "extractive", NOW)
    event = IndexEvent("e", *about, "created", NOW, 0.1, None, "1")
    rows = {"states": frame(IndexState, [state]), "events": frame(IndexEvent, [event])}
    store.knowledge.commit_sessions("tiny", rows_by_kind={"facts": frame(Fact, [FACT])}, **rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        fill(MemoryStore.open(directory))
        target = STORES / f"version-{SCHEMA_VERSION}.tar.xz"
        with tarfile.open(target, "w:xz") as archive:
            archive.add(directory, arcname="store")
