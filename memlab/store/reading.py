"""Reading datasets back, columnar and in the order in which they went in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from memlab.errors import StoreError
from memlab.records import Dataset, schema
from memlab.store.tables import ROWS, SCHEMAS, in_dataset, read

if TYPE_CHECKING:
    from memlab.store.memory import MemoryStore


def datasets(store: MemoryStore) -> pl.DataFrame:
    """List what is stored; see :meth:`memlab.store.MemoryStore.datasets`."""
    return read(store.table("datasets"), [c for c in SCHEMAS["datasets"] if c != "key"]).sort("name")


def known(store: MemoryStore, name: str) -> tuple[str, bool]:
    """Give the format of a dataset, and whether its ingest came to an end.

    :raises StoreError: when there is no such dataset.
    """
    there = datasets(store)
    row = there.filter(pl.col("name") == name).select("format", "complete").rows()
    if not row:
        held = ", ".join(there["name"]) or "none"
        raise StoreError(f"store {store.uri} has no dataset {name!r}; it has: {held}. Ingest it first")
    return row[0]


def whole_dataset(store: MemoryStore, name: str) -> Dataset:
    """Read a dataset; see :meth:`memlab.store.MemoryStore.dataset`."""
    kind, complete = known(store, name)
    if not complete:
        raise StoreError(f"the ingest of {name!r} into store {store.uri} was interrupted; run it again to finish it")
    return read_dataset(store, name, kind)


def read_dataset(store: MemoryStore, name: str, kind: str) -> Dataset:
    """Read a dataset as it went in, whether or not its ingest came to an end."""
    return Dataset(name, kind, **{table: read_rows(store, table, name) for table in ROWS})


def read_rows(
    store: MemoryStore,
    table: str,
    dataset: str,
    *,
    scopes: list[str] | None = None,
    columns: list[str] | None = None,
) -> pl.DataFrame:
    """Read rows of a dataset in the order in which they went in.

    :raises StoreError: when a column does not exist.
    """
    wanted = columns or list(schema(ROWS[table]))
    there = store.table(table).schema.names
    unknown = [c for c in wanted if c not in there]
    if unknown:
        raise StoreError(f"table {table} of store {store.uri} has no column {unknown[0]!r}; it has {', '.join(there)}")
    if scopes is not None and not scopes:
        return pl.DataFrame(schema=SCHEMAS[table]).select(wanted)
    rows = read(
        store.table(table), list(dict.fromkeys([*wanted, "position", "key"])), where=in_dataset(dataset, scopes)
    )
    return rows.sort("position", "key").select(wanted)
