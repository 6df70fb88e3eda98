"""What killed processes left of unfinished writes goes, and nothing of a process that is writing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_data import NOW, FakeEncoder, build, work

from memlab.files import locked
from memlab.records import run_from_scores
from memlab.store import MemoryStore
from memlab.store.registry import DATASET_TABLES

UNFINISHED = ("data/.tmpAbC", "_transactions/.tmpAbC", "_versions/.tmpAbC", "_versions/9.manifest#1",
              "_refs/tags/t.json.tmp.0f-1#1", "_refs/tags/t.json.tmp.0f-1", "_indices/0f/.tmpAbC/part/0")  # fmt: skip
OTHERS = ("../results.lance.tmp", "../.tmpAbC", "../results/.tmpAbC")


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(build())
    return MemoryStore.open(store.uri)


def leave(store: MemoryStore, names: tuple[str, ...] = UNFINISHED) -> list[Path]:
    left = [Path(store.uri, "turns.lance", name) for name in names]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    return left


def test_leftovers_go_with_the_next_write_and_nothing_else_does(store: MemoryStore) -> None:
    tagged = store.tag("a.json.tmp.b")
    store = MemoryStore.open(store.uri)
    left, others = leave(store), leave(store, OTHERS)
    store.dataset("small")
    store.optimize(dry_run=True)
    assert all(path.exists() for path in left), "a read takes no time for it"
    store.ingest(build(name="more"))
    assert not any(path.exists() for path in left)
    leave(store)
    store.optimize()
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)
    assert store.tags() == {"a.json.tmp.b": tagged}


def test_what_another_process_is_writing_stays_until_it_is_gone(store: MemoryStore) -> None:
    worker = work("holding", store.uri)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "holding\n"
    left = leave(store)
    store.ingest(build(name="more"))
    store.database.sweep()
    assert all(path.exists() for path in left)
    worker.kill()
    worker.communicate()
    store.database.sweep()
    assert not any(path.exists() for path in left)


def test_a_write_waits_for_a_sweep(store: MemoryStore) -> None:
    writer = threading.Thread(target=store.ingest, args=(build(name="more"),))
    with locked(Path(store.uri, ".memlab.lock"), alone=True):
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
    writer.join()
    assert store.datasets()["name"].to_list() == ["more", "small"]


def test_every_write_holds_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lancedb

    seen = set[str]()

    def watch(owner: Any, name: str) -> None:
        write = getattr(owner, name)

        def watched(*args: Any, **options: Any) -> Any:
            with locked(tmp_path / "store" / ".memlab.lock", alone=True) as nobody:
                assert not nobody, f"{name} is not held"
            seen.add(name)
            return write(*args, **options)

        monkeypatch.setattr(owner, name, watched)

    for name in (writes := ("add", "delete", "add_columns", "create_index", "optimize")):
        watch(lancedb.table.LanceTable, name)
    watch(lancedb.db.LanceDBConnection, "create_table")
    watch(lancedb.merge.LanceMergeInsertBuilder, "execute")
    store, encoder = MemoryStore.open(tmp_path / "store"), FakeEncoder()
    store.ingest(build())
    store.ingest(build(2).take(["scope-0"]))
    store.ingest(build(n_turns=3))
    store.choose("small")
    store.vectors.backfill(encoder, "small", progress=False)
    store.search.create_indexes(encoder)
    store.runs.save(run_from_scores(*map(np.array, (["q"], ["d"], [1.0])), level="turn", k=1), now=NOW)
    store.tag("t")
    store.optimize()
    assert seen == {*writes, "create_table", "execute"}


@pytest.mark.slow
def test_four_writers_lose_nothing_to_sweeps(tmp_path: Path) -> None:
    place = tmp_path / "store"
    store = MemoryStore.open(place)
    workers = [work("steadily", str(place), str(w)) for w in range(4)]
    while any(worker.poll() is None for worker in workers):
        store.database.sweep()
    assert [worker.wait() for worker in workers] == [0] * 4
    for worker in workers:
        worker.communicate()
    for w in range(4):
        parts = [build(name=f"w{w}-{part}", seed=part) for part in range(3)]
        assert [store.dataset(part.name).fingerprint() for part in parts] == [part.fingerprint() for part in parts]
        assert all(len(store.vectors.read(FakeEncoder(), part.name)) == part.turns.height for part in parts)
    assert [store.table(t).count_rows() for t in DATASET_TABLES[:3]] == [24 * 12, 6 * 12, 3 * 12]
