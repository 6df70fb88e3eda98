"""A store that this memlab wrote opens as it was; one of another version, or no store, is refused by a clear line."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from store_data import FakeEncoder, build
from tiny_store import DATA, FACT, SESSIONS, STORES, a_run

from memlab.errors import StoreError
from memlab.store import MemoryStore, schemas
from memlab.store.opening import write_store_note
from memlab.store.schemas import SCHEMA_VERSION, TABLES


def test_a_stored_store_opens_and_is_read_and_written(tmp_path: Path) -> None:
    with tarfile.open(STORES / f"version-{SCHEMA_VERSION}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    store = MemoryStore.open(tmp_path / "store", create=False)
    version = store.table("store").version
    assert store.dataset("tiny").fingerprint() == DATA.fingerprint()
    assert store.vectors.read(FakeEncoder(), "tiny").shape == (4, 8)
    assert store.vectors.backfill(FakeEncoder(), "tiny", progress=False) == 0
    run = store.runs.load(store.grids.load("tiny")["cells"][0])
    assert run.frame.equals(a_run().frame)
    assert store.at(run.provenance["versions"]).dataset("tiny").fingerprint() == DATA.fingerprint()
    assert store.knowledge.rows("facts", "tiny")["fact_id"].to_list() == [FACT.fact_id]
    assert store.knowledge.states("tiny")["session_id"].to_list() == SESSIONS[:1]
    assert MemoryStore.open(store.uri).table("store").version == version, "opening again writes nothing"
    store.ingest(build(name="another"))
    store.optimize()
    assert MemoryStore.open(store.uri, create=False).datasets()["name"].to_list() == ["another", "tiny"]


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    number = SCHEMA_VERSION + 1
    write_store_note(MemoryStore.open(tmp_path).database, schema=str(number), memlab="9.8")
    with pytest.raises(StoreError, match=rf"schema version {number}, written by memlab 9.8; .*ingest the files again"):
        MemoryStore.open(tmp_path)


def test_what_the_schema_version_covers_is_written_down() -> None:
    """Whoever changes a table raises the version, adds the store of it (see tiny_store.py), and this number."""
    described = repr([(name, table.columns, table.role, table.id) for name, table in TABLES.items()])
    assert (SCHEMA_VERSION, schemas.text_hashes([described])[0][:8]) == (9, "4ef20de4")
