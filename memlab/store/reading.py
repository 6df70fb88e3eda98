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


def datasets(database: Database) -> pl.DataFrame:
    """List what is stored; see :meth:`memlab.store.MemoryStore.datasets`."""
    return database.datasets().select(list(row_columns("datasets"))).drop("finished").sort("name")


def require(database: Database, name: str) -> tuple[str, str, bool]:
    """Give the format and the language of a dataset, and whether its ingest came to an end.

    :raises StoreError: when there is no such dataset.
    """
    listed = datasets(database)
    row = listed.filter(pl.col("name") == name).select("format", "language", "complete").rows()
    if not row:
        names = ", ".join(listed["name"]) or "none"
        raise StoreError(f"store {database.uri} has no dataset {name!r}; it has: {names}. Ingest it first")
    return row[0]


def _state(database: Database, name: str) -> tuple[Any, ...]:
    state = database.datasets().filter(name=name).select("complete", "finished", "ingested_at").rows()
    return state[0] if state else (True, None, None)


def last_finished(database: Database, name: str) -> Mapping[str, int]:
    """Give the versions of the tables that hold a dataset whole, where its ingest is under way or was interrupted."""
    return _finished(_state(database, name))


def _finished(state: tuple[Any, ...]) -> Mapping[str, int]:
    complete, finished, _ = state
    return json.loads(finished) if finished and not complete else PRESENT


def _of_one_state(database: Database, name: str, read: Callable[[Mapping[str, int]], T]) -> T:
    """Read something of the last finished state of a dataset, again where an ingest began or ended meanwhile.

    :param read: takes the versions of the tables; those that it has not are read as they are.
    """
    after = _state(database, name)
    for _ in range(_ATTEMPTS):
        before, made = after, read(_finished(after))
        after = _state(database, name)
        if after == before:
            break
    return made


def read_dataset(
    database: Database,
    name: str,
    kind: str,
    language: str,
    scopes: Iterable[str] | None = None,
    *,
    at: Mapping[str, int] | None = None,
) -> Dataset:
    """Read a dataset as it went in, or some of its scopes; ``at`` as for :func:`read_rows`."""
    wanted = None if scopes is None else list(scopes)

    def tables(at: Mapping[str, int]) -> dict[str, pl.DataFrame]:
        scoped = {table: wanted if "scope" in row_columns(table) else None for table in DATASET_TABLES}
        return {table: read_rows(database, table, name, scopes=some, at=at) for table, some in scoped.items()}

    read = _of_one_state(database, name, tables) if at is None else tables(at)
    return Dataset(name, kind, **read, language=language)


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
    types, wanted = TABLES[table].columns, list(row_columns(table) if columns is None else columns)
    if set(wanted) - set(types):
        there = database.table(table).schema.names
        if unknown := [column for column in wanted if column not in types and column not in there]:
            names = ", ".join(there)
            raise StoreError(f"table {table} of store {database.uri} has no column {unknown[0]!r}; it has {names}")
    only = None if scopes is None else list(scopes)
    if only is not None and not only:
        return pl.DataFrame(schema={column: types.get(column, pl.String()) for column in wanted})
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
        rows = rows.with_columns(pl.col("n").fill_null(pl.int_range(1, pl.len() + 1).over(_GROUP[table])))
    return rows
