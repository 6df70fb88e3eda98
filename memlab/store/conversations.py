"""Reading datasets back, columnar and in the order in which they went in."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from memlab.errors import StoreError
from memlab.records import Dataset
from memlab.store.database import Database
from memlab.store.registry import DATASET_TABLES, TABLES, in_dataset, row_columns

LANGUAGE = pl.col("language").fill_null(Dataset.language)
"""What people speak in a dataset; stores of versions 0 and 1 did not note it."""


def datasets(database: Database) -> pl.DataFrame:
    """List what is stored; see :meth:`memlab.store.MemoryStore.datasets`."""
    return database.read("datasets", list(row_columns("datasets"))).sort("name").with_columns(LANGUAGE)


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


def whole_dataset(database: Database, name: str, scopes: Iterable[str] | None = None) -> Dataset:
    """Read a dataset; see :meth:`memlab.store.MemoryStore.dataset`."""
    kind, language, complete = require(database, name)
    if not complete:
        raise StoreError(f"the ingest of {name!r} into store {database.uri} was interrupted; run it again to finish it")
    return read_dataset(database, name, kind, language, scopes)


def read_dataset(
    database: Database, name: str, kind: str, language: str, scopes: Iterable[str] | None = None
) -> Dataset:
    """Read a dataset as it went in, or some of its scopes, whether or not its ingest came to an end."""
    wanted = None if scopes is None else list(scopes)
    tables = {
        table: read_rows(database, table, name, scopes=wanted if "scope" in row_columns(table) else None)
        for table in DATASET_TABLES
    }
    return Dataset(name, kind, **tables, language=language)


def read_rows(
    database: Database,
    table: str,
    dataset: str,
    *,
    scopes: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
) -> pl.DataFrame:
    """Read rows of a dataset in the order in which they went in.

    :raises StoreError: when a column does not exist.
    """
    wanted = list(row_columns(table) if columns is None else columns)
    there = {*database.table(table).schema.names, *TABLES[table].columns}
    unknown = [column for column in wanted if column not in there]
    if unknown:
        names = ", ".join(database.table(table).schema.names)
        raise StoreError(f"table {table} of store {database.uri} has no column {unknown[0]!r}; it has {names}")
    only = None if scopes is None else list(scopes)
    if only is not None and not only:
        return pl.DataFrame(schema={column: TABLES[table].columns.get(column, pl.String()) for column in wanted})
    ordered = list(dict.fromkeys([*wanted, "position", "key"]))
    return database.read(table, ordered, where=in_dataset(dataset, only)).sort("position", "key").select(wanted)
