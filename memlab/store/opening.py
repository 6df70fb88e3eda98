"""Opening a store: where it is, whether this memlab can read it, and what an older one still needs.

An older store is brought to the present schema where it is opened: the columns that its tables lack are added, empty.
A change of the schema that needs more than that does it in ``_migrate``.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import polars as pl

from memlab import __version__
from memlab.errors import StoreError
from memlab.store.database import Database, guarded
from memlab.store.registry import SCHEMA_VERSION, TABLES, VERSIONED

_importing = threading.Lock()
_CLIENT = "lance_namespace_urllib3_client"
_INDEX_CACHE = 1 << 28  # bytes; by default LanceDB keeps up to 6 GB of indexes in memory
_MARKS = ("store", "datasets")
"""One of these tables makes a database a store; the first is younger than the oldest stores."""


def open_database(
    uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None, create: bool = True
) -> Database:
    """Open the database of a store, make it, or bring an older one to the present schema.

    :raises StoreError: for a place that holds no store and may not become one, or a store of a newer memlab.
    """
    place = os.fspath(uri)
    connection = _connect(place, storage_options=storage_options, create=create)
    database = Database(connection, place)
    with database.guarded("opening"):
        names = set(database.names())
        if not create and not names.intersection(_MARKS):
            raise StoreError(f"{place} holds no memlab store; make it with `memlab ingest`, or correct the path")
        number = int(noted(database, "schema") or 0)
        if number > SCHEMA_VERSION:
            raise StoreError(
                f"store {place} has schema version {number}, written by memlab {noted(database, 'memlab')}; this is "
                f"memlab {__version__}, which reads up to {SCHEMA_VERSION}: update it with "
                "`pip install --upgrade memlab`, or name another store"
            )
    if names and "://" not in place and not os.access(place, os.W_OK):
        return database  # what an older schema lacks is read as null
    with database.guarded("opening"):
        for name in ("store", *VERSIONED):
            if name not in names:
                database.table(name)
    if not names:
        note(database, memlab=__version__, schema=str(SCHEMA_VERSION))
    elif number < SCHEMA_VERSION:
        with database.guarded(f"bringing schema version {number} to {SCHEMA_VERSION}"):
            _migrate(database)
    return database


def note(database: Database, **values: str) -> None:
    """Note something about the store as a whole."""
    database.write("store", pl.DataFrame({"key": list(values), "value": list(values.values())}))


def noted(database: Database, key: str) -> str | None:
    """Read what was noted about the store."""
    rows = database.read("store", ["value"], key=key)
    return rows.item() if rows.height else None


def _migrate(database: Database) -> None:
    """Add the columns that tables lack; the number is written last, so an interrupted migration is done again."""
    present = set(database.names())
    for name, table in TABLES.items():
        if name in present:
            add_columns(database, name, list(table.arrow()))
    for name in present:
        if name.startswith(("counts_", "postings_")):  # of a search through large scopes that is no more
            database.connection.drop_table(name)
    note(database, memlab=__version__, schema=str(SCHEMA_VERSION))


def add_columns(database: Database, name: str, fields: list[Any]) -> None:
    """Give a table the columns that it lacks, empty, as one version."""

    def lacking() -> list[Any]:
        there = database.table(name).schema.names
        return [field for field in fields if field.name not in there]

    if lacking():
        try:
            with database.writing():
                database.table(name).add_columns(lacking())
        except (OSError, RuntimeError, ValueError):
            if lacking():  # else another process added them
                raise


@contextmanager
def _built_when_used() -> Iterator[None]:
    """Leave a client of a service that LanceDB brings until it is used: it takes half the time of the import."""
    import pydantic

    with _importing:
        if "lancedb" in sys.modules:
            yield
            return
        _open_when_asked(_CLIENT)
        pydantic.BaseModel.model_config["defer_build"] = True
        try:
            yield
        finally:
            del pydantic.BaseModel.model_config["defer_build"]


def _open_when_asked(package: str) -> None:
    """Let modules of a package be imported, and run its own first file when something of that is asked for."""
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
        if Path(place).is_file():
            raise StoreError(f"store {place} is a file; expected a directory: name one that is empty or new")
        if not create and not Path(place).is_dir():
            raise StoreError(f"there is no store at {place}; make it with `memlab ingest`, or correct the path")
    # Read when the library is imported; without it every retried write prints a warning.
    os.environ.setdefault("LANCEDB_LOG", "error")
    with _built_when_used():
        import lancedb

    options = dict(storage_options) if storage_options else None
    with guarded("opening", place):
        # A handle without this does not see what other processes write.
        return lancedb.connect(
            place,
            storage_options=options,
            read_consistency_interval=timedelta(0),
            session=lancedb.Session(index_cache_size_bytes=_INDEX_CACHE),
        )
