"""Opening a store: where it is, whether this memlab can read it, and what it notes about itself."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

import polars as pl
import pydantic

from memlab import __version__
from memlab.atomic_files import call_within, fix_place
from memlab.errors import StoreError
from memlab.store.database import MADE, Database
from memlab.store.table_schemas import LATER_TABLES, SCHEMA_VERSION, VERSIONED

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
    store_place = absolute_place(uri)
    _refuse_place(store_place, create=create)
    database = Database(None, store_place)
    with database.guarded("opening"):
        database.connection = (
            _connect(store_place) if database.is_local else _connect_remote(store_place)
        )
        table_names = set(database.names())
        if not create and not table_names.intersection(("store", "datasets")):
            raise StoreError(
                f"{store_place} holds no memlab store; make it with `memlab ingest`, or correct "
                "the path"
            )
        noted_schema = read_store_note(database, "schema")
        _refuse_schema(database, noted_schema, table_names)
        if noted_schema is not None:
            database.made = _read_made_tables(database)
            for name in sorted(database.made):
                database.holds(name)
        if not table_names or "://" in store_place or os.access(store_place, os.W_OK):
            for name in ("store", *VERSIONED):
                if name not in table_names:
                    database.table(name)
            if noted_schema is None:  # last, so that what was interrupted is done again
                made_tables = {f"{MADE}{name}": "" for name in VERSIONED}
                version_notes = {"memlab": __version__, "schema": str(SCHEMA_VERSION)}
                write_store_note(database, **made_tables, **version_notes)
                database.made = set(VERSIONED)
    return database


def _refuse_place(place: str, *, create: bool) -> None:
    """Refuse a place that holds no store and may not become one.

    :raises StoreError: saying what is expected.
    """
    if place.startswith("db://"):
        raise StoreError(
            f"store {place} is a hosted service; expected a directory or an s3://, gs:// or "
            "az:// URI"
        )
    if "://" in place:
        return
    if os.path.isfile(place):
        raise StoreError(
            f"store {place} is a file; expected a directory: name one that is empty or new"
        )
    if not create and not os.path.isdir(place):
        raise StoreError(
            f"there is no store at {place}; make it with `memlab ingest`, or correct the path"
        )


def _refuse_schema(database: Database, noted_schema: str | None, names: set[str]) -> None:
    """Refuse a store that was written with other tables.

    :param noted_schema: the number of its schema; one that was interrupted while it was made has
        none.
    :param names: of its tables.
    :raises StoreError: with both numbers.
    """
    schema_number = noted_schema or str(SCHEMA_VERSION)
    if noted_schema is None and names and "store" not in names:
        schema_number = "0"  # The first memlabs had no table of notes.
    if schema_number == str(SCHEMA_VERSION):
        return
    written_by = read_store_note(database, "memlab")
    raise StoreError(
        f"store {database.uri} has schema version {schema_number}, written by memlab {written_by}; "
        f"this is memlab {__version__}, which reads version {SCHEMA_VERSION}: ingest the files "
        "again into another store, or install the memlab that wrote it with pip"
    )


def absolute_place(uri: str | os.PathLike[str]) -> str:
    """Give the place of a store so that it stays the same in another working directory.

    :returns: the absolute path of a directory, also for a ``file://`` URI (whose path is taken as
        it is written, as LanceDB takes it) and for ``~``; any other URI as it is.

    >>> from memlab.store.store_opening import absolute_place
    >>> absolute_place("file:///data/store"), absolute_place("s3://bucket/store")
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
    return str(fix_place(local_path))


def _read_made_tables(database: Database) -> set[str]:
    """Read which tables were made; stores of earlier memlabs do not say so of those that came
    later.
    """
    note_keys = database.read("store", ["key"])["key"]
    noted_tables = {*note_keys.filter(note_keys.str.starts_with(MADE)).str.strip_prefix(MADE)}
    return {*noted_tables, *VERSIONED}.difference(set(LATER_TABLES) - noted_tables)


def write_store_note(database: Database, **values: str) -> None:
    """Note something about the store as a whole."""
    database.write("store", pl.DataFrame({"key": list(values), "value": list(values.values())}))


def read_store_note(database: Database, key: str) -> str | None:
    """Read what was noted about the store."""
    rows = database.read("store", ["value"], key=key)
    if rows.is_empty():
        return None
    return rows.item()


def _connect_remote(place: str) -> Any:
    """Connect to an object store; LanceDB itself asks one that does not answer for many minutes.

    :raises StoreError: when it did not answer in time.
    """
    try:
        return call_within(DEADLINE, partial(_connect, place))
    except TimeoutError as error:
        raise StoreError(
            f"store {place}: {error}; check the URI, the network and the endpoint (AWS_ENDPOINT)"
        ) from error


def _connect(place: str) -> Any:
    # Read when the library is imported; without it every retried write prints a warning.
    os.environ.setdefault("LANCEDB_LOG", "error")
    with _quick_definitions():
        import lancedb

    # A handle without the interval does not see what other processes write.
    session = lancedb.Session(index_cache_size_bytes=_INDEX_CACHE)
    return lancedb.connect(place, read_consistency_interval=timedelta(0), session=session)


@contextmanager
def _quick_definitions() -> Iterator[None]:
    """Let LanceDB be imported in half the time: what may never be needed is made when asked for.

    The package of its client of a service is run later, and the client's two hundred models build
    their validators when the first one is validated. That each method overrides another is not
    looked up in the bytecode, as it is not from Python 3.12 on.
    """
    if "lancedb" in sys.modules:
        yield
        return
    _defer_package_init("lance_namespace_urllib3_client")
    model_config = pydantic.BaseModel.model_config
    pydantic.BaseModel.model_config = {**model_config, "defer_build": True}
    try:
        with suppress(ModuleNotFoundError):
            import_module("lance_namespace")
    finally:
        pydantic.BaseModel.model_config = model_config
    unchecked: Any = ModuleType("overrides")
    unchecked.override = _unchanged
    unchecked.EnforceOverrides = object
    is_stand_in = sys.modules.setdefault("overrides", unchecked) is unchecked
    try:
        yield
    finally:
        if is_stand_in:
            del sys.modules["overrides"]


def _unchanged(method: Any) -> Any:
    """Give a method as it is."""
    return method


def _defer_package_init(package: str) -> None:
    """Let modules of a package be imported without its own first file, which is run when something
    of it is asked for.

    That of LanceDB's client of a service takes more than half the time of importing LanceDB.
    """
    module_spec = None
    if package not in sys.modules:
        module_spec = find_spec(package)
    if module_spec is None or module_spec.loader is None:
        return
    module = module_from_spec(module_spec)
    loader = module_spec.loader

    def asked(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        vars(module).pop("__getattr__", None)
        loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = asked
    sys.modules[package] = module
