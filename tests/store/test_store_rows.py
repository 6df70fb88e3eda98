"""Rows of a large table are read by a column's values as a search finds them, also where the table has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import memlab
from memlab import MemoryStore
from memlab.store import rows
from memlab.store.rows import Rows

COLUMNS = ("turn_id", "text", "n")


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(memlab.sample(["owen"], turns=200))
    return store


def searched(table: Any, sessions: list[str]) -> pl.DataFrame:
    every = table.search().select([*COLUMNS, "session_id"]).to_polars()
    return every.filter(pl.col("session_id").is_in(sessions)).select(COLUMNS).sort("turn_id")


@pytest.mark.parametrize("large", [0, 10**9])
def test_what_has_a_value_is_read_once_for_each_row(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(rows, "LARGE", large)
    table, known = store.database.table("turns"), Rows(store.database)
    some = table.search().select(["session_id"]).to_polars()["session_id"].unique().sort().to_list()[::3]
    for _ in range(2):
        found = known.read(table, "session_id", [*some, *some, "nowhere"], COLUMNS)
        assert found.sort("turn_id").equals(searched(table, some))
    assert known.read(table, "session_id", ["nowhere"], COLUMNS).height == 0
    assert known.read(table, "session_id", [], COLUMNS).height == 0


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_rows_that_moved_are_looked_for_again(store: MemoryStore, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setattr(rows, "LARGE", 0)
    table, known = store.database.table("turns"), Rows(store.database)
    some = table.search().select(["session_id"]).to_polars()["session_id"].unique().sort().to_list()
    known.read(table, "session_id", some, COLUMNS)
    other = MemoryStore.open(store.uri).database.table("turns")

    def change() -> None:
        first = searched(other, some)["turn_id"][0]
        other.delete(f"turn_id = '{first}'")
        other.optimize()

    if when == "before":
        change()
    else:
        plain = type(table).take_row_ids

        def late(self: Any, asked: list[int]) -> Any:
            monkeypatch.setattr(type(table), "take_row_ids", plain)
            change()
            return plain(self, asked)

        monkeypatch.setattr(type(table), "take_row_ids", late)
    found = known.read(table, "session_id", some, COLUMNS)
    assert found.sort("turn_id").equals(searched(other, some))
