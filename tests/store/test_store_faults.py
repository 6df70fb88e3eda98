"""Full disks, forbidden places, other writers and kills leave whole tables, and an error that says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from store_data import FakeEncoder, build, work

from memlab.errors import StoreError
from memlab.store import MemoryStore
from memlab.store.database import Database
from memlab.store.schemas import DATASET_TABLES


@pytest.mark.slow
def test_a_killed_ingest_run_again_ends_in_the_same_tables(tmp_path: Path) -> None:
    worker = work(str(tmp_path / "store"))
    assert worker.stdout is not None
    for _ in range(4):
        assert worker.stdout.readline().startswith("scope-")
    worker.kill()
    worker.communicate()
    store, data = MemoryStore.open(tmp_path / "store"), build(20, 2, 6)
    assert 0 < store.table("turns").count_rows() < data.turns.height
    with pytest.raises(StoreError, match="interrupted; run it again"):
        store.dataset("small")
    clean = MemoryStore.open(tmp_path / "clean")
    for each in (store, clean):
        each.ingest(data)
    for table in DATASET_TABLES:
        ours, theirs = (s.table(table).to_arrow().sort_by("key") for s in (store, clean))
        assert ours.equals(theirs), table


@pytest.mark.slow
def test_a_full_disk(little_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore.open(little_disk / "store")
    store.ingest(build())
    store.vectors.backfill(FakeEncoder(), "small", progress=False)
    ballast = little_disk / "ballast"
    free = os.statvfs(little_disk)
    ballast.write_bytes(b"x" * (free.f_bavail * free.f_frsize - 40_000))
    large = build(40, 10, 40, name="large")
    turns = store.versions()["turns"]
    with pytest.raises(StoreError, match="the disk is full: free some space, then run it again"):
        store.ingest(large)
    assert store.encode(FakeEncoder(256), [f"text {i}" for i in range(500)], progress=False).shape == (500, 256)
    assert "the disk is full" in caplog.text, "a cache that cannot be written is a warning"
    assert store.versions()["turns"] == turns
    with pytest.raises(StoreError, match="the disk is full"):
        store.vectors.backfill(FakeEncoder(4096), "small", progress=False)  # its column may be there, empty
    assert store.dataset("small").fingerprint() == build().fingerprint()
    assert store.vectors.read(FakeEncoder(), "small").shape == (24, 8)
    ballast.unlink()
    store.ingest(large)
    assert store.dataset("large").fingerprint() == large.fingerprint()


def test_a_place_that_cannot_be_written(little_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    MemoryStore.open(little_disk / "store").ingest(build())
    subprocess.run(["mount", "-o", "remount,ro", str(little_disk)], check=True)
    again = MemoryStore.open(little_disk / "store")
    assert again.dataset("small").fingerprint() == build().fingerprint()
    assert again.ingest(build())["inserted"].sum() == 0, "nothing new needs no write"
    assert again.encode(FakeEncoder(), ["a"]).shape == (1, 8)
    assert "cannot be written" in caplog.text, "a cache that cannot be written is a warning"
    with pytest.raises(StoreError, match="cannot be written: correct its permissions or credentials, or name another"):
        again.ingest(build(name="more"))
    with pytest.raises(StoreError, match="cannot be written"):
        MemoryStore.open(little_disk / "other")


@pytest.mark.parametrize("first", [True, False], ids=["the first ingest", "a later one"])
def test_an_ingest_of_other_scopes_takes_back_what_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    store = MemoryStore.open(tmp_path / "store")
    one, two, three = (build(name="log").take([f"scope-{n}"]) for n in range(3))
    if not first:
        store.ingest(one)
    write = Database.write

    def breaks(database: Database, name: str, rows: Any, **options: Any) -> None:
        if name == "sessions":
            raise OSError("No space left on device (os error 28)")
        write(database, name, rows, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", breaks)
        with pytest.raises(StoreError, match="the disk is full"):
            store.ingest(two)
    assert store.whole("log") is not first
    store.ingest(three)
    log, before = store.dataset("log"), [] if first else one.scopes
    assert log.scopes == [*before, *three.scopes]
    assert log.sessions["n_turns"].sum() == log.turns.height
    store.ingest(two)
    assert {*store.dataset("log").scopes} == {*before, *two.scopes, *three.scopes}
