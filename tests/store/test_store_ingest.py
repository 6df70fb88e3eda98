"""Datasets go in and come out as they were, however often and however they are written."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from store_data import NOW, awkward, build, edited

from memlab.errors import DataError, StoreError
from memlab.records import Dataset, Session, Turn, frame
from memlab.store import MemoryStore

TABLES = ("turns", "sessions", "questions", "annotations", "issues")


def assert_same(a: Dataset, b: Dataset) -> None:
    for table in TABLES:
        assert_frame_equal(getattr(a, table), getattr(b, table))
    assert a.fingerprint() == b.fingerprint()


@pytest.mark.parametrize("data", [build(), awkward()], ids=["plain", "awkward"])
def test_a_dataset_comes_out_as_it_went_in(store: MemoryStore, data: Dataset) -> None:
    report = store.ingest(data, now=NOW)
    assert report["inserted"].to_list() == [getattr(data, t).height for t in TABLES]
    assert_same(store.dataset(data.name), data)
    row = store.datasets().row(0, named=True)
    assert row["fingerprint"] == data.fingerprint()
    assert (row["name"], row["format"], row["complete"], row["ingested_at"]) == (data.name, data.format, True, NOW)
    assert (row["turns"], row["questions"]) == (data.turns.height, data.questions.height)


def test_writing_twice_is_writing_once(store: MemoryStore) -> None:
    data = build()
    store.ingest(data, now=NOW)
    versions = store.versions()
    again = store.ingest(data, now=NOW + timedelta(days=1))
    assert again.select("inserted", "updated").sum().row(0) == (0, 0)
    assert again["unchanged"].to_list()[:3] == [24, 6, 3]
    assert store.versions() == versions, "an unchanged dataset makes no new version"


def test_a_changed_row_is_rewritten_alone(store: MemoryStore) -> None:
    data = build()
    store.ingest(data)
    changed = edited(data, "scope-1/session_0/2", text="something else")
    report = store.ingest(changed)
    assert report.filter(table="turns").row(0)[2:] == (0, 1, 23, 0)
    assert_same(store.dataset("small"), changed)
    assert store.datasets()["fingerprint"].item() == changed.fingerprint()


def test_datasets_with_the_same_ids_do_not_meet(store: MemoryStore) -> None:
    one, two = build(name="a", seed=1), build(name="a/scope-0", seed=2)
    store.ingest([one, two])
    assert_same(store.dataset("a"), one)
    assert_same(store.dataset("a/scope-0"), two)
    assert store.datasets()["name"].to_list() == ["a", "a/scope-0"]


def test_rows_of_scopes_and_columns(store: MemoryStore) -> None:
    data = awkward()
    store.ingest(data)
    for scope in data.scopes:
        got = store.turns(data.name, scopes=[scope])
        assert_frame_equal(got, data.turns.filter(pl.col("scope") == scope))
    assert store.turns(data.name, scopes=["'; --", "%", "' OR 1=1 --"])["scope"].to_list() == ["'; --"]
    assert store.turns(data.name, scopes=[]).height == 0
    assert store.sessions(data.name, columns=["participants"])["participants"].to_list()[:2] == [["'; --", "é"], []]
    assert store.questions(data.name)["query_id"].to_list() == ["q'1", 'q"2']
    with pytest.raises(StoreError, match="no column 'nope'; it has key"):
        store.turns(data.name, columns=["nope"])


def test_identical_copies_are_one_row_and_different_ones_an_error(store: MemoryStore) -> None:
    data = build()
    store.ingest(replace(data, turns=pl.concat([data.turns, data.turns.head(2)])))
    assert_same(store.dataset("small"), data)
    clash = data.turns.head(1).with_columns(text=pl.lit("other"))
    with pytest.raises(StoreError, match=r"dataset 'b', table turns: id 'scope-0/session_0/1' stands for 2 different"):
        store.ingest(replace(data, name="b", turns=pl.concat([data.turns, clash])))
    assert "b" not in store.datasets()["name"]


def test_an_empty_stream_and_an_empty_dataset(store: MemoryStore) -> None:
    assert store.ingest([]).height == 0
    empty = Dataset("empty", "chatlog", frame(Turn), frame(Session))
    store.ingest(empty)
    assert_same(store.dataset("empty"), empty)
    with pytest.raises(DataError, match="empty"):
        store.ingest(replace(empty, name=""))


def test_opening(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no store at .*; make it with"):
        MemoryStore.open(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()
    (tmp_path / "dir").mkdir()
    with pytest.raises(StoreError, match="holds no memlab store"):
        MemoryStore.open(tmp_path / "dir", create=False)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file; expected a directory"):
        MemoryStore.open(tmp_path / "file")
    with pytest.raises(StoreError, match="db://x is a hosted service"):
        MemoryStore.open("db://x")
    MemoryStore.open(tmp_path / "dir").ingest(build())
    assert MemoryStore.open(str(tmp_path / "dir"), create=False).dataset("small").turns.height == 24


def test_a_uri_instead_of_a_path(tmp_path: Path) -> None:
    store = MemoryStore.open("memory://anywhere")
    store.ingest(build())
    assert_same(store.dataset("small"), build())
    MemoryStore.open((tmp_path / "store").as_uri()).ingest(build())
    assert_same(MemoryStore.open(tmp_path / "store", create=False).dataset("small"), build())


def test_importing_the_store_does_not_import_lancedb() -> None:
    code = "import sys, memlab.store; sys.exit('lancedb' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
