"""Datasets go in and come out as they were, however they are written, and from a store that this memlab wrote."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from store_data import NOW, FakeEncoder, awkward, build, edited
from tiny_store import DATA, FACT, SESSIONS, STORES, a_run, read_session

from memlab.datasets import chatlog
from memlab.errors import DataError, StoreError
from memlab.records import Dataset, Fact, frame
from memlab.store import MemoryStore, table_schemas
from memlab.store.database import Database
from memlab.store.store_opening import write_store_notes
from memlab.store.table_schemas import DATASET_TABLES, SCHEMA_VERSION, TABLES


def assert_same(a: Dataset, b: Dataset) -> None:
    for table in DATASET_TABLES:
        assert_frame_equal(getattr(a, table), getattr(b, table))
    assert a.fingerprint() == b.fingerprint()


def test_what_is_retrieved_of_a_turn_is_stored_where_it_is_not_its_text(store: MemoryStore) -> None:
    said = [
        {"scope": "ida", "role": "user", "text": "It rains"},
        {"scope": "ida", "role": "assistant", "text": "Take a coat"},
        {"scope": "ida", "sender": "Per", "text": "Hi"},
        {"scope": "ida", "role": "user", "text": "Look", "caption": "a kite"},
    ]
    contents = ["It rains", "Take a coat", "Per: Hi", "Look a kite."]
    for more in ([], [{"scope": "ida", "role": "user", "text": "Bye"}]):
        data = chatlog.dataset(said + more, "talk")
        store.ingest(data, now=NOW)
        assert_same(store.dataset("talk"), data)
        raw = (
            store.database.open_or_create_table("turns")
            .search()
            .select(["position", "content"])
            .to_polars()
        )
        stored = raw.sort("position")["content"].to_list()
        assert stored == [None, None, *contents[2:], *[None] * len(more)]
        rows = store.turns("talk", columns=["content", "content_hash", "text"])
        assert rows["content"].to_list() == [*contents, *(each["text"] for each in more)]
        assert table_schemas.hash_text_column(rows["content"]).equals(rows["content_hash"])
    # A store of an earlier memlab has such texts twice.
    table = store.database.open_or_create_table("turns")
    table.update(where="text = 'It rains'", values={"content": "It rains"})
    again = store.turns("talk", columns=["content"])
    assert again.equals(rows.select("content"))


def test_a_dataset_comes_out_as_it_went_in(store: MemoryStore) -> None:
    data = awkward()
    report = store.ingest(data, now=NOW)
    assert report["inserted"].to_list() == [getattr(data, t).height for t in DATASET_TABLES]
    assert_same(store.dataset(data.name), data)
    row = store.datasets().row(0, named=True)
    assert row["fingerprint"] == data.fingerprint()
    assert (row["name"], row["format"], row["complete"], row["ingested_at"]) == (
        data.name,
        data.format,
        True,
        NOW,
    )
    assert (row["turns"], row["questions"]) == (data.turns.height, data.questions.height)
    for scope in data.scopes:
        assert_frame_equal(
            store.turns(data.name, scopes=[scope]), data.turns.filter(pl.col("scope") == scope)
        )
    assert store.turns(data.name, scopes=["'; --", "%", "' OR 1=1 --"])["scope"].to_list() == [
        "'; --"
    ]
    assert store.turns(data.name, scopes=[]).height == 0
    assert store.sessions(data.name, columns=["participants"])["participants"].to_list()[:2] == [
        ["'; --", "é"],
        [],
    ]
    with pytest.raises(StoreError, match="no column 'nope'; it has key"):
        store.turns(data.name, columns=["nope"])


def test_writing_twice_is_writing_once_and_a_changed_row_is_rewritten_alone(
    store: MemoryStore,
) -> None:
    data = build()
    store.ingest(data, now=NOW)
    versions = store.versions()
    again = store.ingest(data, now=NOW + timedelta(days=1))
    assert again.select("inserted", "updated").sum().row(0) == (0, 0)
    assert again["unchanged"].to_list()[:3] == [24, 6, 3]
    assert store.versions() == versions, "an unchanged dataset makes no new version"
    changed = edited(data, "scope-1/session_0/2", text="something else")
    assert store.ingest(changed).filter(table="turns").row(0)[2:] == (0, 1, 23, 0)
    assert_same(store.dataset("small"), changed)


def in_one(data: Dataset) -> list[Dataset]:
    return [data]


def by_scope(data: Dataset) -> list[Dataset]:
    return [data.take([scope]) for scope in data.scopes]


def with_copies(data: Dataset) -> list[Dataset]:
    return [replace(data, turns=pl.concat([data.turns, data.turns.head(2)]))]


@pytest.mark.parametrize("divide", [in_one, by_scope, with_copies])
@pytest.mark.parametrize("others", [False, True], ids=["an empty store", "beside others"])
@pytest.mark.slow
def test_the_fingerprint_is_that_of_what_is_stored(
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    divide: Callable[[Dataset], list[Dataset]],
    others: bool,
) -> None:
    """A dataset that was written into an empty place is not read back: here it is."""
    monkeypatch.setattr("memlab.store.ingestion.BATCH_TURNS", 1)
    if others:
        store.ingest(build(name="other"))
        store.vectors.backfill(FakeEncoder(), "other", progress=False)
    data = awkward()
    for given in (data, edited(data, data.turns["turn_id"][0], text="something else")):
        store.ingest(divide(given))
        stored = store.dataset(data.name)
        listed = store.datasets().row(by_predicate=pl.col("name") == data.name, named=True)
        assert listed["fingerprint"] == stored.fingerprint()
        sizes = [getattr(stored, table).height for table in ("turns", "sessions", "questions")]
        assert [listed["turns"], listed["sessions"], listed["questions"]] == sizes
        assert_frame_equal(stored.turns, given.turns)
    assert store.vectors.backfill(FakeEncoder(), data.name, progress=False) == data.turns.height


@pytest.mark.parametrize("last", range(3))
def test_a_first_ingest_that_dies_at_any_write_is_done_again(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    data, write, written = awkward(), Database.upsert_rows, list[str]()

    def dies(database: Database, name: str, rows: pl.DataFrame, **options: Any) -> None:
        if len(written) > last:
            raise OSError("No space left on device (os error 28)")
        written.append(name)
        write(database, name, rows, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "upsert_rows", dies)
        with pytest.raises(StoreError, match="the disk is full"):
            store.ingest(data)
    assert written[0] == "datasets", "it is listed before its first row is written"
    assert not store.whole(data.name)
    store.ingest(data)
    assert_same(store.dataset(data.name), data)
    assert store.table("turns").count_rows() == data.turns.height


def test_rows_whose_entry_was_removed_by_hand_are_written_over(store: MemoryStore) -> None:
    store.ingest(build())
    store.table("datasets").delete("name = 'small'")
    fewer = build(n_turns=2)
    store.ingest(fewer)
    assert_same(store.dataset("small"), fewer)
    assert store.table("turns").count_rows() == fewer.turns.height


def test_datasets_with_the_same_ids_do_not_meet(store: MemoryStore) -> None:
    one, two = build(name="a", seed=1), build(name="a/scope-0", seed=2)
    store.ingest([one, two])
    assert_same(store.dataset("a"), one)
    assert_same(store.dataset("a/scope-0"), two)
    assert store.datasets()["name"].to_list() == ["a", "a/scope-0"]
    assert store.ingest([]).height == 0
    with pytest.raises(DataError, match="empty"):
        store.ingest(replace(one, name=""))


def test_identical_copies_are_one_row_and_different_ones_an_error(store: MemoryStore) -> None:
    data = build()
    store.ingest(replace(data, turns=pl.concat([data.turns, data.turns.head(2)])))
    assert_same(store.dataset("small"), data)
    clash = data.turns.head(1).with_columns(text=pl.lit("other"))
    with pytest.raises(
        StoreError,
        match=r"dataset 'b', table turns: id 'scope-0/session_0/1' stands for 2 different",
    ):
        store.ingest(replace(data, name="b", turns=pl.concat([data.turns, clash])))
    assert "b" not in store.datasets()["name"]


def test_opening(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("x")
    for place, create, word in (
        (tmp_path / "none", False, r"there is no store at .*; make it with"),
        (tmp_path / "dir", False, "holds no memlab store"),
        (tmp_path / "file", True, "is a file; expected a directory"),
        ("db://x", True, "db://x is a hosted service"),
    ):
        with pytest.raises(StoreError, match=word):
            MemoryStore.open(place, create=create)
    assert not (tmp_path / "none").exists()
    memory = MemoryStore.open("memory://anywhere")
    memory.ingest(build())
    assert_same(memory.dataset("small"), build())
    MemoryStore.open((tmp_path / "dir").as_uri()).ingest(build())
    assert_same(MemoryStore.open(str(tmp_path / "dir"), create=False).dataset("small"), build())


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
    # It is of a memlab whose facts had another layout.
    assert store.knowledge.rows("facts", "tiny").is_empty()
    assert store.knowledge.count_facts_of_earlier_layout("tiny") == 1
    assert store.knowledge.session_states("tiny")["session_id"].to_list() == SESSIONS[:1]
    assert MemoryStore.open(store.uri).table("store").version == version, (
        "opening again writes nothing"
    )
    read_session(store, "another generation")
    assert store.knowledge.rows("facts", "tiny").to_dicts() == frame(Fact, [FACT]).to_dicts()
    assert store.knowledge.count_facts_of_earlier_layout("tiny") == 0
    assert store.table("facts").count_rows() == 0
    store.ingest(build(name="another"))
    store.optimize()
    assert MemoryStore.open(store.uri, create=False).datasets()["name"].to_list() == [
        "another",
        "tiny",
    ]


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    number = SCHEMA_VERSION + 1
    write_store_notes(MemoryStore.open(tmp_path).database, schema=str(number), memlab="9.8")
    with pytest.raises(
        StoreError,
        match=rf"schema version {number}, written by memlab 9.8; .*ingest the files again",
    ):
        MemoryStore.open(tmp_path)


def test_what_the_schema_version_covers_is_written_down() -> None:
    """Whoever changes a table raises the version, adds the store of it (see tiny_store.py), and this number.

    Columns in ``Table.later`` are read as null from stores without them, and tables in
    ``LATER_TABLES`` as empty: they need no other version.
    A new cache changes no table: it is made when it is first filled.
    """
    described = {
        name: repr((name, table.columns, table.role, table.id)) for name, table in TABLES.items()
    }
    later = [described.pop(name) for name in table_schemas.LATER_TABLES]
    first = f"[{', '.join(described.values())}]"
    assert (SCHEMA_VERSION, table_schemas.hash_texts([first])[0][:8]) == (9, "47d967cb")
    hashes = [each[:8] for each in table_schemas.hash_texts(later)]
    assert hashes == ["b0ae9cea", "e05992a1"]
