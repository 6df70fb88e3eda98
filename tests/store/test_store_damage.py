"""Lack is not damage: what a store says of missing files, of a full table of handles, of a folder that moved."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from store_data import FakeEncoder, build

from memlab.errors import StoreError
from memlab.store import MemoryStore, table_versions
from memlab.store.database import Database

DAMAGED = "missing or damaged: restore a copy, or remove the store and ingest again"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("filled") / "store"
    store = MemoryStore.open(place)
    store.ingest(build())
    encoder = FakeEncoder()
    store.vectors.backfill(encoder, "small", progress=False)
    store.search.create_indexes(encoder)
    return place


@pytest.fixture
def place(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "store"))


class PanicException(BaseException):
    """Named as a library in Rust names its own."""


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (
            RuntimeError("Panicked: unwrap on IO error: Too many open files (os error 24)"),
            "ulimit -n",
        ),
        (PanicException("Too many open files"), "ulimit -n"),
        (PanicException("failed to spawn thread: Os { code: 11 }"), "no thread"),
        (MemoryError(), "the memory does not suffice"),
        (RuntimeError("lance error: Resources exhausted: 2 GB"), "the memory does not suffice"),
        (OSError("Cannot allocate memory (os error 12)"), "the memory does not suffice"),
        (PanicException("index out of bounds"), DAMAGED),
        (RuntimeError("lance error: Not found: a.lance/data/1.lance"), DAMAGED),
        (RuntimeError("LanceError(IO): Generic memory error: Invalid range 0..17"), DAMAGED),
        (RuntimeError("Commit conflict for version 4"), "another process wrote"),
        (RuntimeError("something else"), "run it again"),
    ],
    ids=str,
)
def test_an_error_of_the_database_says_what_to_do(
    store: MemoryStore, error: BaseException, advice: str
) -> None:
    with (
        pytest.raises(StoreError, match="reading turns failed") as raised,
        store.database.translating_errors("reading turns"),
    ):
        raise error
    assert advice in str(raised.value)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("folder", ["data", "_indices"])
@pytest.mark.parametrize("is_removed", [True, False])
def test_a_file_that_is_gone_or_cut_short_is_damage(
    place: Path, folder: str, is_removed: bool
) -> None:
    for file in [each for each in place.glob(f"*.lance/{folder}/**/*") if each.is_file()]:
        if is_removed:
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    def search() -> None:
        store = MemoryStore.open(place)
        store.search.by_text(["dentist"], dataset="small", scopes=["scope-0"], k=3)

    with pytest.raises(StoreError) as raised:
        search()
    assert DAMAGED in str(raised.value)


@pytest.mark.parametrize("table", ["turns", "questions", "datasets", "runs"])
def test_a_missing_table_is_an_error_and_is_not_made_anew(place: Path, table: str) -> None:
    MemoryStore.open(place).table("runs")
    store = MemoryStore.open(place)
    shutil.rmtree(place / f"{table}.lance")
    said = f"table {table} of store .* is missing"
    with pytest.raises(StoreError, match=said):
        store.database.read_table(table, ["key"])
    for create in (True, False):
        with pytest.raises(StoreError, match=said):
            MemoryStore.open(place, create=create)
    assert not (place / f"{table}.lance").exists()


def test_a_cache_that_is_missing_is_made_again(place: Path) -> None:
    (words,) = place.glob("words_*.lance")
    shutil.rmtree(words)
    store = MemoryStore.open(place)
    store.search.create_indexes()
    found = store.search.by_text(["dentist"], dataset="small", scopes=["scope-0"], k=3)
    assert found.height > 0


def test_a_store_that_moved_while_it_was_open_is_one_error(place: Path, tmp_path: Path) -> None:
    store = MemoryStore.open(place)
    store.dataset("small")
    moved = place.rename(tmp_path / "moved")
    calls = (
        store.datasets,
        store.versions,
        lambda: store.dataset("small"),
        lambda: store.ingest(build(n_turns=5)),
        lambda: store.choose("small"),
        lambda: store.grids.save("g", {}),
        lambda: store.search.by_text(["tea"], dataset="small", scopes=["scope-0"], k=1),
    )
    for call in calls:
        with pytest.raises(StoreError, match="moved or removed while it was open"):
            call()
        assert not place.exists()
    assert MemoryStore.open(moved, create=False).dataset("small").turns.height == 24


@contextmanager
def few_handles(most: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_lack_of_handles_is_not_called_damage(place: Path) -> None:
    store = MemoryStore.open(place)
    with few_handles(3), pytest.raises(StoreError) as raised:  # those of a process that began
        store.dataset("small")
    assert "ulimit -n" in str(raised.value)
    assert store.dataset("small").turns.height == 24


class _Tags:
    """Tags of a table to which another process adds one between our look and our write."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.is_first = True

    def list(self) -> dict[str, int]:
        return dict(self.names)

    def create(self, name: str, version: int) -> None:
        if self.is_first:
            self.is_first, self.names[name] = False, version
        if name in self.names:
            raise ValueError(f"Ref conflict error: tag {name} already exists")
        self.names[name] = version

    def update(self, name: str, version: int) -> None:
        self.names[name] = version


def test_two_processes_that_tag_the_same_run_both_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    tags: Any = _Tags()

    class Table:
        def list_versions(self) -> list[dict[str, Any]]:
            return [{"version": 3, "timestamp": None}]

    table = Table()
    monkeypatch.setattr(Table, "tags", tags, raising=False)
    database = Database(None, "nowhere")
    monkeypatch.setattr(database, "open_or_create_table", lambda _: table)
    table_versions.tag_versions_of_run(database, "r", {"versions": {"turns": 3}})
    assert tags.names == {"run-r": 3}


def _height_without(place: Path, files: list[Path], torn: Path) -> int | None:
    """Give the number of turns that a copy without some files reads; ``None`` where it refuses."""
    shutil.copytree(place, torn)
    for file in files:
        (torn / file.relative_to(place)).unlink()
    with suppress(StoreError):
        return MemoryStore.open(torn).dataset("small").turns.height
    return None


@pytest.mark.parametrize("table", ["turns", "sessions"])
def test_an_earlier_state_does_not_pass_as_the_newest(place: Path, table: str) -> None:
    grown = build(n_sessions=9)
    MemoryStore.open(place).ingest(grown)
    newest_first = sorted((place / f"{table}.lance" / "_versions").glob("*.manifest"))
    heights = []
    for number in range(1, len(newest_first) + 1):
        torn = place.with_name(f"torn-{number}")
        heights.append(_height_without(place, newest_first[:number], torn))
    assert {*heights} <= {None, grown.turns.height}
    assert heights[-1] is None


@pytest.mark.parametrize("table", ["runs", "nodes", "somebody_elses"])
def test_a_table_whose_making_was_killed_is_made(tmp_path: Path, table: str) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(build())
    torso = tmp_path / "store" / f"{table}.lance"
    if table == "nodes":  # A table of every store; that it was made is not noted yet.
        shutil.rmtree(torso)
        store.database.delete_rows("store", key=f"table {table}")
    (torso / "_transactions").mkdir(parents=True)
    (torso / "_transactions" / "0-1.txn").write_bytes(b"")
    again = MemoryStore.open(tmp_path / "store")
    again.optimize()
    assert again.runs.listing().height == 0
    assert again.nodes.rows("small").height == 0
    assert again.dataset("small").fingerprint() == build().fingerprint()


def test_a_kill_between_a_table_and_its_note_leaves_no_table_unnoted(tmp_path: Path) -> None:
    place = tmp_path / "store"
    store = MemoryStore.open(place)
    store.ingest(build())
    store.table("facts")
    store.database.delete_rows("store", key="table facts")  # as the kill leaves it
    again = MemoryStore.open(place).database
    rows = again.read_table("facts", ["key"])
    assert rows.is_empty()
    again.upsert_row("facts", "a")
    assert again.has_rows("store", key="table facts")
    shutil.rmtree(place / "facts.lance")
    with pytest.raises(StoreError, match=r"table facts of store .* is missing"):
        MemoryStore.open(place)
