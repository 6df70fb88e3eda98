"""Two writers of one scope both keep their turns, readers see whole states, and a store on a read-only disk is read."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from stand_in import StandIn
from store_data import build

from memlab import Bench, files, pipeline
from memlab.cli.data import ingest
from memlab.embed import load
from memlab.errors import StoreError
from memlab.records import Dataset
from memlab.store import MemoryStore
from memlab.store import database as databases


def log(path: Path, ids: range) -> Path:
    each = {"scope": "a", "session": "s", "sender": "Ann", "role": "user"}
    lines = [each | {"text": f"I like tea number {i}.", "id": str(i)} for i in ids]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_what_another_writer_adds_to_a_scope_between_reading_and_writing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place: dict[str, Any] = {"store": str(tmp_path / "store"), "encoder": "hashing:64", "into": "log"}
    first, mine, others = (log(tmp_path / f"{i}.jsonl", range(10 * i, 10 * i + 10)) for i in range(3))
    ingest(first, **place)
    read, began = MemoryStore.dataset, list[threading.Thread]()

    def meets_another(store: MemoryStore, name: str, *, scopes: Any = None) -> Dataset:
        there = read(store, name, scopes=scopes)
        if scopes and not began:
            began.append(threading.Thread(target=ingest, args=(others,), kwargs=place))
            began[0].start()
            began[0].join(3)
        return there

    monkeypatch.setattr(MemoryStore, "dataset", meets_another)
    ingest(mine, **place)
    began[0].join()
    after = MemoryStore.open(tmp_path / "store").dataset("log")
    assert sorted(after.turns["turn_id"]) == sorted(f"a/{i}" for i in range(30))
    assert after.sessions["n_turns"].to_list() == [30]


def test_without_locks_one_of_two_writers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "locked", lambda *_, **__: files.locked(tmp_path / "no" / "folder"))
    store, other = (MemoryStore.open(tmp_path / "store") for _ in range(2))
    store.ingest(build())
    with store.alone("small"):
        there = store.dataset("small")
        other.ingest(build(n_turns=6))
        with pytest.raises(StoreError, match=r"another process wrote .* run it again"):
            store.ingest(there)
    assert store.dataset("small").turns.height == build(n_turns=6).turns.height


def test_a_reader_during_an_ingest_sees_the_last_finished_state(tmp_path: Path) -> None:
    before, after = build(), build(n_turns=6, seed=1)
    store, reader, encoder = (
        MemoryStore.open(tmp_path / "store"),
        MemoryStore.open(tmp_path / "store"),
        load("hashing:64"),
    )
    store.ingest(before)
    store.vectors.backfill(encoder, "small", progress=False)
    states = []

    def parts() -> Iterator[Dataset]:
        for scope in after.scopes:
            yield after.take([scope])
            states.append(reader.dataset("small"))
            assert_frame_equal(reader.turns("small"), before.turns)
            assert reader.vectors.read(encoder, "small").shape == (before.turns.height, 64)
            bench = Bench.of(states[-1], encoder=encoder, store=reader, ingest=False, progress=False)
            assert bench.turn_vectors.shape == (before.turns.height, 64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memlab.store.writing.BATCH_TURNS", 1)
        store.ingest(parts())
    assert [state.fingerprint() for state in states] == [before.fingerprint()] * 3
    assert reader.dataset("small").fingerprint() == after.fingerprint()


def test_after_an_interruption_the_last_finished_state_is_read_until_a_run_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, before = MemoryStore.open(tmp_path / "store"), build()
    store.ingest(before)

    def broken() -> Iterator[Dataset]:
        longer = build(n_turns=6)
        yield from (longer.take([scope]) for scope in longer.scopes)
        raise StoreError("stopped")

    monkeypatch.setattr("memlab.store.writing.BATCH_TURNS", 1)
    for _ in range(2):  # the second does not take what the first left for whole
        with pytest.raises(StoreError, match="stopped"):
            store.ingest(broken())
    assert store.datasets()["complete"].to_list() == [False]
    store.optimize()
    assert store.dataset("small").fingerprint() == before.fingerprint()
    store.ingest(build(n_turns=6))
    assert store.dataset("small").fingerprint() == build(n_turns=6).fingerprint()


def test_search_on_a_read_only_disk_warns_of_what_cannot_be_remembered(
    little_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, encoder = MemoryStore.open(little_disk / "store"), StandIn()
    store.ingest(build())
    subprocess.run(["mount", "-o", "remount,ro", str(little_disk)], check=True)
    again = MemoryStore.open(little_disk / "store")
    asked = pl.DataFrame({"scope": ["scope-0"], "text": ["Where is my violin?"]})
    bench = Bench.of(again.dataset("small"), encoder=encoder, store=again, ingest=False, progress=False)
    run = pipeline("best").run(bench.with_queries(asked))
    assert run.frame.height == 8
    assert "cannot be written" in caplog.text


def test_two_ingests_of_several_datasets_do_not_wait_for_each_other(tmp_path: Path) -> None:
    store, other = (MemoryStore.open(tmp_path / "store") for _ in range(2))
    one, two = build(name="one"), build(name="two")
    waiting = threading.Thread(target=other.ingest, args=([two, one],), daemon=True)
    with store.alone("one"):
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
        ingest_two = threading.Thread(target=MemoryStore.open(tmp_path / "store").ingest, args=(two,), daemon=True)
        ingest_two.start()
        ingest_two.join(20)
        assert not ingest_two.is_alive()
    waiting.join(20)
    assert store.dataset("one").fingerprint() == one.fingerprint()
