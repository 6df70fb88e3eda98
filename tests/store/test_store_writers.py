"""Writers of one scope, full disks, forbidden places and interruptions leave whole tables, or a clear error."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal
from store_data import FakeEncoder, build, ingest_slowly

from memlab import Bench
from memlab.cli.ingest_fetch_info import ingest
from memlab.datasets import stream
from memlab.embed import load
from memlab.errors import StoreError
from memlab.records import Dataset
from memlab.store import MemoryStore
from memlab.store import database as databases
from memlab.store.table_schemas import DATASET_TABLES


def log(path: Path, ids: range) -> Path:
    each = {"scope": "a", "session": "s", "sender": "Ann", "role": "user"}
    lines = [each | {"text": f"I like tea number {i}.", "id": str(i)} for i in ids]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.mark.slow
def test_what_another_writer_adds_to_a_scope_between_reading_and_writing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place: dict[str, Any] = {
        "store": str(tmp_path / "store"),
        "encoder": "hashing:64",
        "into": "log",
    }
    first, mine, others = (
        log(tmp_path / f"{i}.jsonl", range(10 * i, 10 * i + 10)) for i in range(3)
    )
    ingest(first, **place)
    read, began = MemoryStore.dataset, list[threading.Thread]()

    def meets_another(store: MemoryStore, name: str, *, scopes: Any = None) -> Dataset:
        there = read(store, name, scopes=scopes)
        if scopes and not began:
            began.append(threading.Thread(target=ingest, args=(others,), kwargs=place))
            began[0].start()
            began[0].join(0.5)
        return there

    monkeypatch.setattr(MemoryStore, "dataset", meets_another)
    ingest(mine, **place)
    began[0].join()
    after = MemoryStore.open(tmp_path / "store").dataset("log")
    assert sorted(after.turns["turn_id"]) == sorted(f"a/{i}" for i in range(30))
    assert after.sessions["n_turns"].to_list() == [30]


def test_writers_of_the_same_new_keys_make_no_copies(store: MemoryStore) -> None:
    data, together = build(3, 2, 10), threading.Barrier(3)

    def write() -> None:
        mine = MemoryStore.open(store.uri)
        together.wait()
        mine.ingest(data)

    with ThreadPoolExecutor(3) as pool:
        for writing in [pool.submit(write) for _ in range(3)]:
            writing.result()
    assert [store.table(t).count_rows() for t in DATASET_TABLES] == [60, 6, 3, 0, 0]
    assert store.dataset("small").fingerprint() == data.fingerprint()


def test_without_locks_one_of_two_writers_is_told(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "lock_path", lambda *_, **__: nullcontext(False))
    store.ingest(build())
    with store.alone("small"):
        there = store.dataset("small")
        MemoryStore.open(store.uri).ingest(build(n_turns=6))
        with pytest.raises(StoreError, match=r"another process wrote .* run it again"):
            store.ingest(there)
    assert store.dataset("small").turns.height == build(n_turns=6).turns.height


@pytest.mark.slow
def test_readers_see_the_last_finished_state_during_an_ingest_and_after_an_interruption(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after, encoder = build(), build(n_turns=6, seed=1), load("hashing:64")
    reader = MemoryStore.open(store.uri)
    store.ingest(before)
    store.vectors.backfill(encoder, "small", progress=False)
    seen = []

    def parts(*, broken: bool = False) -> Iterator[Dataset]:
        for scope in after.scopes:
            yield after.take([scope])
            seen.append(reader.dataset("small").fingerprint())
            if not broken:
                assert_frame_equal(reader.turns("small"), before.turns)
                bench = Bench.of(
                    before, encoder=encoder, store=reader, ingest=False, progress=False
                )
                assert bench.turn_vectors.shape == (before.turns.height, 64)
        if broken:
            raise StoreError("stopped")

    monkeypatch.setattr("memlab.store.ingestion.BATCH_TURNS", 1)
    for _ in range(2):  # the second does not take what the first left for whole
        with pytest.raises(StoreError, match="stopped"):
            store.ingest(parts(broken=True))
    assert store.datasets()["complete"].to_list() == [False]
    store.optimize()
    store.ingest(parts())
    assert set(seen) == {before.fingerprint()}
    assert reader.dataset("small").fingerprint() == after.fingerprint()


def test_two_ingests_of_several_datasets_do_not_wait_for_each_other(store: MemoryStore) -> None:
    one, two = build(name="one"), build(name="two")
    waiting = threading.Thread(
        target=MemoryStore.open(store.uri).ingest, args=([two, one],), daemon=True
    )
    with store.alone("one"):
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        ingest_two = threading.Thread(
            target=MemoryStore.open(store.uri).ingest, args=(two,), daemon=True
        )
        ingest_two.start()
        ingest_two.join(20)
        assert not ingest_two.is_alive()
    waiting.join(20)
    assert store.dataset("one").fingerprint() == one.fingerprint()


@pytest.mark.slow
def test_a_killed_ingest_run_again_ends_in_the_same_tables(
    store: MemoryStore, tmp_path: Path
) -> None:
    written, at = multiprocessing.Pipe()
    worker = multiprocessing.get_context("spawn").Process(
        target=ingest_slowly, args=(store.uri, at)
    )
    worker.start()
    at.close()
    for _ in range(4):
        assert written.recv().startswith("scope-")
    worker.kill()
    worker.join()
    data, clean = build(20, 2, 6), MemoryStore.open(tmp_path / "clean")
    assert 0 < store.table("turns").count_rows() < data.turns.height
    with pytest.raises(StoreError, match="interrupted; run it again"):
        store.dataset("small")
    for each in (store, clean):
        each.ingest(data)
    for table in DATASET_TABLES:
        ours, theirs = (s.table(table).to_arrow().sort_by("key") for s in (store, clean))
        assert ours.equals(theirs), table


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)]
    if (
        sys.platform != "linux"
        or os.geteuid() != 0
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("no right to mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


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
    assert store.encode(
        FakeEncoder(256), [f"text {i}" for i in range(500)], progress=False
    ).shape == (500, 256)
    assert "the disk is full" in caplog.text, "a cache that cannot be written is a warning"
    assert store.versions()["turns"] == turns
    with pytest.raises(StoreError, match="the disk is full"):
        store.vectors.backfill(
            FakeEncoder(4096), "small", progress=False
        )  # its column may be there, empty
    assert store.dataset("small").fingerprint() == build().fingerprint()
    assert store.vectors.read(FakeEncoder(), "small").shape == (24, 8)
    ballast.unlink()
    store.ingest(large)
    assert store.dataset("large").fingerprint() == large.fingerprint()


def test_a_place_that_cannot_be_written(
    little_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    MemoryStore.open(little_disk / "store").ingest(build())
    subprocess.run(["mount", "-o", "remount,ro", str(little_disk)], check=True)
    again = MemoryStore.open(little_disk / "store")
    assert again.dataset("small").fingerprint() == build().fingerprint()
    assert again.ingest(build())["inserted"].sum() == 0, "nothing new needs no write"
    assert again.encode(FakeEncoder(), ["a"]).shape == (1, 8)
    assert "cannot be written" in caplog.text, "a cache that cannot be written is a warning"
    with pytest.raises(
        StoreError,
        match="cannot be written: correct its permissions or credentials, or name another",
    ):
        again.ingest(build(name="more"))
    with pytest.raises(StoreError, match="cannot be written"):
        MemoryStore.open(little_disk / "other")


@pytest.mark.parametrize("first", [True, False], ids=["the first ingest", "a later one"])
def test_an_ingest_of_other_scopes_takes_back_what_was_interrupted(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    one, two, three = (build(name="log").take([f"scope-{n}"]) for n in range(3))
    if not first:
        store.ingest(one)
    write = databases.Database.upsert_rows

    def breaks(database: databases.Database, name: str, rows: Any, **options: Any) -> None:
        if name == "sessions":
            raise OSError("No space left on device (os error 28)")
        write(database, name, rows, **options)

    with monkeypatch.context() as patch:
        patch.setattr(databases.Database, "upsert_rows", breaks)
        with pytest.raises(StoreError, match="the disk is full"):
            store.ingest(two)
    assert store.whole("log") is not first
    store.ingest(three)
    log, before = store.dataset("log"), [] if first else one.scopes
    assert log.scopes == [*before, *three.scopes]
    assert log.sessions["n_turns"].sum() == log.turns.height
    store.ingest(two)
    assert {*store.dataset("log").scopes} == {*before, *two.scopes, *three.scopes}


def test_a_writer_that_added_to_an_older_state_of_a_scope_is_refused(
    store: MemoryStore, tmp_path: Path
) -> None:
    first, mine, others = (
        log(tmp_path / f"{i}.jsonl", range(10 * i, 10 * i + 2)) for i in range(3)
    )
    store.ingest(stream(first, name="log"))
    other = MemoryStore.open(store.uri)

    def read_into(where: MemoryStore, path: Path) -> list[Dataset]:
        return list(stream(path, into=lambda scopes: where.dataset("log", scopes=scopes)))

    read, read_by_other = read_into(store, mine), read_into(other, others)
    other.ingest(read_by_other)
    with pytest.raises(StoreError, match=r"wrote to scope 'a' of 'log' after it was read: run it"):
        store.ingest(read)
    again = read_into(store, mine)
    for _ in range(2):  # what was written is written once more
        store.ingest(again)
    ids = sorted(store.dataset("log").turns["turn_id"])
    assert ids == sorted(f"a/{i}" for i in (0, 1, 10, 11, 20, 21))


def test_a_writer_that_adds_a_scope_which_another_added_meanwhile_is_refused(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = tmp_path / "bo.jsonl"
    line = {"scope": "bo", "sender": "Bo", "text": "I like ginger tea."}
    path.write_text(json.dumps(line))
    store.ingest(stream(log(tmp_path / "0.jsonl", range(2)), name="log"))
    read = list(stream(path, into=lambda scopes: store.dataset("log", scopes=scopes)))
    path.write_text(json.dumps(line | {"text": "I moved to Bodø."}))
    MemoryStore.open(store.uri).ingest(
        stream(path, into=lambda scopes: store.dataset("log", scopes=scopes))
    )
    with pytest.raises(StoreError, match="wrote to scope 'bo'"):
        store.ingest(read)
    assert store.dataset("log").scopes == ["a", "bo"]
