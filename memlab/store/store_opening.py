"""Opening a store: where it is, whether this memlab can read it, and what it notes about itself."""

from __future__ import annotations

import os
import re
import sys
from datetime import timedelta
from functools import partial
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab import __version__
from memlab.atomic_files import call_with_time_limit, make_absolute
from memlab.errors import StoreError
from memlab.store.database import MADE, Database
from memlab.store.table_schemas import LATER_TABLES, SCHEMA_VERSION, VERSIONED

if TYPE_CHECKING:
    from lancedb.db import DBConnection

_FILE_URI = re.compile(
    r"(?:file|file-object-store):(?://(?:localhost(?=/))?|(?=/))(?P<path>.*)", re.IGNORECASE
)
DEADLINE = 60.0
"""Seconds for the first answer of an object store."""
_INDEX_CACHE = 1 << 28  # bytes; by default LanceDB keeps up to 6 GB of indexes in memory


def open_database(uri: str | os.PathLike[str], *, create: bool = True) -> Database:
    """Open the database of a store, or make it.

    :raises StoreError: for a place that holds no store and may not become one, or a store that this
        memlab cannot read.
    """
    given_place = os.fspath(uri)
    if not given_place.strip() or "\0" in given_place:
        raise StoreError(f"store {given_place!r} names no place; expected a directory or a URI")
    store_place = absolute_store_place(uri)
    _refuse_unusable_place(store_place, create=create)
    database = Database(None, store_place)
    with database.translating_errors("opening"):
        database.connection = (
            _connect_lancedb(store_place)
            if database.is_local
            else _connect_within_deadline(store_place)
        )
        table_names = set(database.table_names())
        if not create and not table_names.intersection(("store", "datasets")):
            raise StoreError(
                f"{store_place} holds no memlab store; make it with `memlab ingest`, or correct "
                "the path"
            )
        noted_schema = read_store_note(database, "schema")
        _refuse_other_schema_version(database, noted_schema, table_names)
        if noted_schema is not None:
            database.made = _read_names_of_made_tables(database)
            for name in sorted(database.made - table_names):
                database.has_table(name)
        if not table_names or "://" in store_place or os.access(store_place, os.W_OK):
            for name in ("store", *VERSIONED):
                if name not in table_names:
                    database.open_or_create_table(name)
            if noted_schema is None:  # last, so that what was interrupted is done again
                made_tables = {f"{MADE}{name}": "" for name in VERSIONED}
                version_notes = {"memlab": __version__, "schema": str(SCHEMA_VERSION)}
                write_store_notes(database, **made_tables, **version_notes)
                database.made = set(VERSIONED)
    return database


def _refuse_unusable_place(store_place: str, *, create: bool) -> None:
    """Refuse a place that holds no store and may not become one.

    :raises StoreError: saying what is expected.
    """
    if store_place.startswith("db://"):
        raise StoreError(
            f"store {store_place} is a hosted service; expected a directory or an s3://, gs:// or "
            "az:// URI"
        )
    if "://" in store_place:
        return
    if os.path.isfile(store_place):
        raise StoreError(
            f"store {store_place} is a file; expected a directory: name one that is empty or new"
        )
    if not create and not os.path.isdir(store_place):
        raise StoreError(
            f"there is no store at {store_place}; make it with `memlab ingest`, or correct the path"
        )


def _refuse_other_schema_version(
    database: Database, noted_schema: str | None, table_names: set[str]
) -> None:
    """Refuse a store that was written with other tables.

    :param noted_schema: the number of its schema; one that was interrupted while it was made has
        none.
    :param table_names: of its tables.
    :raises StoreError: with both numbers.
    """
    schema_number = noted_schema or str(SCHEMA_VERSION)
    if noted_schema is None and table_names and "store" not in table_names:
        schema_number = "0"  # The first memlabs had no table of notes.
    if schema_number == str(SCHEMA_VERSION):
        return
    written_by = read_store_note(database, "memlab")
    raise StoreError(
        f"store {database.uri} has schema version {schema_number}, written by memlab {written_by}; "
        f"this is memlab {__version__}, which reads version {SCHEMA_VERSION}: ingest the files "
        "again into another store, or install the memlab that wrote it with pip"
    )


def absolute_store_place(uri: str | os.PathLike[str]) -> str:
    """Give the place of a store so that it stays the same in another working directory.

    :returns: the absolute path of a directory, also for a ``file://`` URI (whose path is taken as
        it is written, as LanceDB takes it) and for ``~``; any other URI as it is.

    >>> from memlab.store.store_opening import absolute_store_place
    >>> absolute_store_place("file:///data/store"), absolute_store_place("s3://bucket/store")
    ('/data/store', 's3://bucket/store')
    """
    place = os.fspath(uri)
    local_match = _FILE_URI.fullmatch(place)
    if local_match is None and "://" in place:
        return place
    local_path = place
    if local_match is not None:
        local_path = local_match["path"]
    if not local_path:
        return local_path
    return str(make_absolute(local_path))


def _read_names_of_made_tables(database: Database) -> set[str]:
    """Read which tables were made; stores of earlier memlabs do not say so of those that came
    later.
    """
    note_keys = database.read_table("store", ["key"])["key"]
    noted_tables = {*note_keys.filter(note_keys.str.starts_with(MADE)).str.strip_prefix(MADE)}
    return {*noted_tables, *VERSIONED}.difference(set(LATER_TABLES) - noted_tables)


def write_store_notes(database: Database, **note_by_key: str) -> None:
    """Note something about the store as a whole."""
    database.upsert_rows(
        "store", pl.DataFrame({"key": list(note_by_key), "value": list(note_by_key.values())})
    )


def read_store_note(database: Database, note_key: str) -> str | None:
    """Read what was noted about the store."""
    rows = database.read_table("store", ["value"], key=note_key)
    if rows.is_empty():
        return None
    return rows.item()


def _connect_within_deadline(store_place: str) -> DBConnection:
    """Connect to an object store; LanceDB itself asks one that does not answer for many minutes.

    :raises StoreError: when it did not answer in time.
    """
    try:
        return call_with_time_limit(DEADLINE, partial(_connect_lancedb, store_place))
    except TimeoutError as error:
        raise StoreError(
            f"store {store_place}: {error}; check the URI, the network and the endpoint "
            "(AWS_ENDPOINT)"
        ) from error


def _connect_lancedb(store_place: str) -> DBConnection:
    # Read when the library is imported; without it every retried write prints a warning.
    os.environ.setdefault("LANCEDB_LOG", "error")
    if "lancedb" not in sys.modules:
        _register_package_for_lazy_import("lance_namespace_urllib3_client")
    import lancedb

    # A handle without the interval does not see what other processes write.
    session = lancedb.Session(index_cache_size_bytes=_INDEX_CACHE)
    return lancedb.connect(store_place, read_consistency_interval=timedelta(0), session=session)


def _register_package_for_lazy_import(package_name: str) -> None:
    """Let modules of a package be imported without its own first file, which is run when something
    of it is asked for.

    That of LanceDB's client of a service takes more than half the time of importing LanceDB.
    """
    module_spec = None
    if package_name not in sys.modules:
        module_spec = find_spec(package_name)
    if module_spec is None or module_spec.loader is None:
        return
    module = module_from_spec(module_spec)
    loader = module_spec.loader

    def load_and_get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        vars(module).pop("__getattr__", None)
        loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = load_and_get
    sys.modules[package_name] = module
