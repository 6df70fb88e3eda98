"""Opening a store: where it is, whether this memlab can read it, and what an older one still needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from importlib.util import find_spec, module_from_spec
from typing import Any

import polars as pl

from memlab import __version__
from memlab.errors import StoreError
from memlab.store.database import Database, guarded
from memlab.store.schemas import OLDEST, SCHEMA_VERSION, TABLES, VERSIONED

_INDEX_CACHE = 1 << 28  # bytes; by default LanceDB keeps up to 6 GB of indexes in memory


def open_database(
    uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None, create: bool = True
) -> Database:
    """Open the database of a store, make it, or bring an older one to the present schema.

    :raises StoreError: for a place that holds no store and may not become one, or a store that this memlab cannot read.
    """
    place = os.fspath(uri)
    database = Database(_connect(place, storage_options=storage_options, create=create), place)
    with database.guarded("opening"):
        names = set(database.names())
        if not create and not names.intersection(("store", "datasets")):
            raise StoreError(f"{place} holds no memlab store; make it with `memlab ingest`, or correct the path")
        # One whose table of notes holds no number was interrupted while it was made; the first ones had no such table.
        number = int(noted(database, "schema") or (OLDEST if not names or "store" in names else 0))
        if not OLDEST <= number <= SCHEMA_VERSION:
            mend = "update it with `pip install --upgrade memlab`" if number > OLDEST else "ingest the files again"
            raise StoreError(
                f"store {place} has schema version {number}, written by memlab {noted(database, 'memlab')}; this is "
                f"memlab {__version__}, which reads {OLDEST} to {SCHEMA_VERSION}: {mend}, or name another store"
            )
        if names and "://" not in place and not os.access(place, os.W_OK):
            return database  # what an older schema lacks is read as null
        for name in ("store", *VERSIONED):
            if name not in names:
                database.table(name)
        if number < SCHEMA_VERSION:
            _migrate(database)
        if not names or number < SCHEMA_VERSION:  # last, so that what was interrupted is done again
            note(database, memlab=__version__, schema=str(SCHEMA_VERSION))
    return database


def note(database: Database, **values: str) -> None:
    """Note something about the store as a whole."""
    database.write("store", pl.DataFrame({"key": list(values), "value": list(values.values())}))


def noted(database: Database, key: str) -> str | None:
    """Read what was noted about the store."""
    rows = database.read("store", ["value"], key=key)
    return rows.item() if rows.height else None


def _migrate(database: Database) -> None:
    """Add the columns that tables lack, and drop the caches of a search that is no more."""
    for name in database.names():
        if name in TABLES:
            add_columns(database, name, list(TABLES[name].arrow()))
        elif name.startswith(("counts_", "postings_")):
            database.connection.drop_table(name)


def add_columns(database: Database, name: str, fields: list[Any]) -> None:
    """Give a table the columns that it lacks, empty, as one version."""

    def lacking() -> list[Any]:
        there = database.table(name).schema.names
        return [field for field in fields if field.name not in there]

    if lacking():
        try:
            database.table(name).add_columns(lacking())
        except (OSError, RuntimeError, ValueError):
            if lacking():  # else another process added them
                raise


def _leave_unread(package: str) -> None:
    """Let modules of a package be imported without its own first file, which is run when something of it is asked for.

    That of LanceDB's client of a service takes more than half the time of importing LanceDB.
    """
    spec = None if package in sys.modules else find_spec(package)
    if spec is None or spec.loader is None:
        return
    module, loader = module_from_spec(spec), spec.loader

    def asked(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        vars(module).pop("__getattr__", None)
        loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = asked
    sys.modules[package] = module


def _connect(place: str, *, storage_options: Mapping[str, str] | None, create: bool) -> Any:
    if place.startswith("db://"):
        raise StoreError(
            f"store {place} is a hosted service, which memlab does not speak; expected a directory or an "
            "s3://, gs:// or az:// URI"
        )
    if "://" not in place:
        if os.path.isfile(place):
            raise StoreError(f"store {place} is a file; expected a directory: name one that is empty or new")
        if not create and not os.path.isdir(place):
            raise StoreError(f"there is no store at {place}; make it with `memlab ingest`, or correct the path")
    # Read when the library is imported; without it every retried write prints a warning.
    os.environ.setdefault("LANCEDB_LOG", "error")
    if "lancedb" not in sys.modules:
        _leave_unread("lance_namespace_urllib3_client")
    import lancedb

    with guarded("opening", place):
        return lancedb.connect(
            place,
            storage_options=dict(storage_options) if storage_options else None,
            # A handle without this does not see what other processes write.
            read_consistency_interval=timedelta(0),
            session=lancedb.Session(index_cache_size_bytes=_INDEX_CACHE),
        )
