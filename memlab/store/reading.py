"""Reading datasets: rows in the order in which they went in, of the last finished state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import polars as pl

from memlab.errors import StoreError
from memlab.records import Dataset
from memlab.store.database import Database
from memlab.store.schemas import DATASET_TABLES, TABLES, row_columns

T = TypeVar("T")

PRESENT: Mapping[str, int] = {}
"""The versions of no table: the rows that are there, also while an ingest is under way."""

_ATTEMPTS = 5
_GROUP = {"turns": "session_id", "sessions": "scope"}


def entry(database: Database, name: str) -> dict[str, Any]:
    """Give what is noted about a dataset: ``format``, ``language``, ``complete`` …

    :raises StoreError: when there is no such dataset.
    """
    listed = database.datasets()
    rows = listed.filter(name=name).rows(named=True)
    if not rows:
        names = ", ".join(listed["name"].sort()) or "none"
        raise StoreError(f"store {database.uri} has no dataset {name!r}; it has: {names}. Ingest it first")
    return rows[0]


def finished(about: Mapping[str, Any]) -> Mapping[str, int]:
    """Give the versions of the tables that hold a dataset whole, where its ingest is under way or was interrupted.

    :param about: see :func:`entry`.
    """
    return json.loads(about["finished"]) if about["finished"] and not about["complete"] else PRESENT


def _of_one_state(database: Database, name: str, read: Callable[[Mapping[str, int]], T]) -> T:
    """Read something of the last finished state of a dataset, again where an ingest began or ended meanwhile.

    :param read: takes the versions of the tables; those that it has not are read as they are.
    """
    after = entry(database, name)
    for _ in range(_ATTEMPTS):
        before, made = after, read(finished(after))
        after = entry(database, name)
        if after == before:
            break
    return made


def read_dataset(
    database: Database, name: str, *, scopes: Iterable[str] | None = None, at: Mapping[str, int] | None = None
) -> Dataset:
    """Read a dataset as it went in, or some of its scopes; ``at`` as for :func:`read_rows`."""
    about, wanted = entry(database, name), None if scopes is None else list(scopes)

    def tables(at: Mapping[str, int]) -> dict[str, pl.DataFrame]:
        scoped = {table: wanted if "scope" in TABLES[table].columns else None for table in DATASET_TABLES}
        return {table: read_rows(database, table, name, scopes=some, at=at) for table, some in scoped.items()}

    read = _of_one_state(database, name, tables) if at is None else tables(at)
    return Dataset(name, about["format"], **read, language=about["language"])


def read_rows(
    database: Database,
    table: str,
    dataset: str,
    *,
    scopes: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
    at: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """Read rows of a dataset in the order in which they went in.

    :param at: versions of tables, or :data:`PRESENT`; by default those of the last finished state.
    :raises StoreError: when a column does not exist.
    """
    wanted, only = list(row_columns(table) if columns is None else columns), None if scopes is None else list(scopes)
    group = [_GROUP[table]] if table in _GROUP and "n" in wanted else []
    ordered = list(dict.fromkeys([*wanted, "position", "key", *group]))

    def read(at: Mapping[str, int]) -> pl.DataFrame:
        return database.read(table, ordered, at=at.get(table), dataset=dataset, scope=only)

    rows = _of_one_state(database, dataset, read) if at is None else read(at)
    return in_order(table, rows).select(wanted)


def in_order(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Put rows in the order in which they went in; count ``n`` where a store of an earlier memlab left it out.

    :param rows: with ``position`` and ``key``; whole groups where they have ``n``.
    """
    rows = rows.sort("position", "key")
    if table in _GROUP and "n" in rows.columns and rows["n"].null_count():
        count = pl.int_range(1, pl.len() + 1, dtype=pl.Int32)
        rows = rows.with_columns(pl.col("n").fill_null(count.over(_GROUP[table])))
    return rows
