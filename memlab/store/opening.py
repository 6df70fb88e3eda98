"""Opening a store: where it is, whether this memlab can read it, and its earlier versions."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from importlib.util import find_spec, module_from_spec
from typing import Any, Self

import polars as pl

from memlab import __version__
from memlab.errors import StoreError
from memlab.store.database import Database, TableGroup
from memlab.store.schemas import SCHEMA_VERSION, VERSIONED

_INDEX_CACHE = 1 << 28  # bytes; by default LanceDB keeps up to 6 GB of indexes in memory


def open_database(uri: str | os.PathLike[str], *, create: bool = True) -> Database:
    """Open the database of a store, or make it.

    :raises StoreError: for a place that holds no store and may not become one, or a store that this
        memlab cannot read.
    """
    place = os.fspath(uri)
    local = "://" not in place
    if place.startswith("db://"):
        raise StoreError(
            f"store {place} is a hosted service; expected a directory or an s3://, gs:// or az:// URI"
        )
    if local and os.path.isfile(place):
        raise StoreError(
            f"store {place} is a file; expected a directory: name one that is empty or new"
        )
    if local and not create and not os.path.isdir(place):
        raise StoreError(
            f"there is no store at {place}; make it with `memlab ingest`, or correct the path"
        )
    database = Database(None, place)
    with database.guarded("opening"):
        database.connection = _connect(place)
        names = set(database.names())
        if not create and not names.intersection(("store", "datasets")):
            raise StoreError(
                f"{place} holds no memlab store; make it with `memlab ingest`, or correct the path"
            )
        # One without a number was interrupted while it was made; the first memlabs had no table of
        # notes.
        number = read_store_note(database, "schema") or (
            str(SCHEMA_VERSION) if not names or "store" in names else "0"
        )
        if number != str(SCHEMA_VERSION):
            raise StoreError(
                f"store {place} has schema version {number}, written by memlab {read_store_note(database, 'memlab')}; "
                f"this is memlab {__version__}, which reads version {SCHEMA_VERSION}: ingest the files again into "
                "another store, or install the memlab that wrote it with pip"
            )
        if not names or not local or os.access(place, os.W_OK):
            for name in ("store", *VERSIONED):
                if name not in names:
                    database.table(name)
            if (
                read_store_note(database, "schema") is None
            ):  # last, so that what was interrupted is done again
                write_store_note(database, memlab=__version__, schema=str(SCHEMA_VERSION))
    return database


def write_store_note(database: Database, **values: str) -> None:
    """Note something about the store as a whole."""
    database.write("store", pl.DataFrame({"key": list(values), "value": list(values.values())}))


def read_store_note(database: Database, key: str) -> str | None:
    """Read what was noted about the store."""
    rows = database.read("store", ["value"], key=key)
    return rows.item() if rows.height else None


def _connect(place: str) -> Any:
    # Read when the library is imported; without it every retried write prints a warning.
    os.environ.setdefault("LANCEDB_LOG", "error")
    if "lancedb" not in sys.modules:
        _defer_package_init("lance_namespace_urllib3_client")
    import lancedb

    # A handle without the interval does not see what other processes write.
    session = lancedb.Session(index_cache_size_bytes=_INDEX_CACHE)
    return lancedb.connect(place, read_consistency_interval=timedelta(0), session=session)


def _defer_package_init(package: str) -> None:
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


_MARGIN = timedelta(seconds=5)
"""How much later than asked LanceDB may look at the age of a version: it refuses to remove one that is tagged."""


def pin_run(database: Database, run_id: str, provenance: Mapping[str, Any]) -> None:
    """Tag the versions that a run's provenance names, so that they stay readable, where they are of this store."""
    versions, name = provenance.get("versions"), f"run-{run_id}"
    for table, version in versions.items() if isinstance(versions, Mapping) else ():
        if table in VERSIONED and version in _version_times(database.table(table)):
            there = database.table(table).tags
            # What an interrupted tagging left behind is moved.
            (there.update if name in there.list() else there.create)(name, version)


def _version_times(table: Any) -> dict[int, datetime]:
    return {int(v["version"]): v["timestamp"] for v in table.list_versions()}


def _tagged_versions(table: Any) -> set[int]:
    return {int(tag["version"]) for tag in table.tags.list().values()}


class Versions(TableGroup):
    """The versions of a store."""

    def versions(self) -> dict[str, int]:
        """Give the version of each table that a result can depend on; for :meth:`at` and for provenance."""
        with self.database.guarded("reading"):
            return {name: int(self.database.table(name).version) for name in VERSIONED}

    def at(self, versions: Mapping[str, int]) -> Self:
        """Look at earlier versions: a read-only store on exactly those.

        :param versions: as :meth:`versions` gave them; a run's provenance holds them.
        :raises StoreError: when a version was cleaned up.
        """
        database, uri = self.database, self.database.uri
        for table in VERSIONED:
            with database.guarded("reading"):
                there = sorted(_version_times(database.table(table)))
            if versions.get(table) not in there:
                raise StoreError(
                    f"table {table} of store {uri} has no version {versions.get(table)}; it has {there[0]} to "
                    f"{there[-1]}: it was cleaned up, or belongs to another store"
                )
        pinned = {table: int(versions[table]) for table in VERSIONED}
        return type(self)(Database(database.connection, uri, pinned=pinned))

    def optimize(self) -> pl.DataFrame:
        """Join small files, bring indexes up to date, and remove the versions before the oldest that is needed.

        What a saved run names, and the last finished state of an ingest that was interrupted, stay
        readable. Ingests, indexing and other calls of this wait meanwhile, in other processes too.

        :returns: ``table``, ``versions_before``, ``versions_after``.
        """
        database, rows = self.database, []
        with database.guarded("optimizing", writes="optimize"), ExitStack() as held:
            for dataset in database.datasets()["name"].sort():
                held.enter_context(database.alone(dataset))
            # A run made during an ingest names a listing whose dataset lies in older versions.
            seen = [None, *_tagged_versions(database.table("datasets"))]
            listed = pl.concat(
                database.read("datasets", ["complete", "finished"], at=at) for at in seen
            )
            needed = [
                json.loads(at)
                for at in listed.filter(~pl.col("complete"))["finished"].drop_nulls().unique()
            ]
            for name in sorted(database.names()):
                table = database.connection.open_table(name)
                before = _version_times(table)
                kept = [
                    before[v]
                    for v in (*_tagged_versions(table), *(at.get(name) for at in needed))
                    if v in before
                ]
                # First the files alone: what joins them is a version too.
                table.optimize(cleanup_older_than=timedelta(days=36_500))
                age = datetime.now(min(kept).tzinfo) - min(kept) + _MARGIN if kept else timedelta(0)
                with warnings.catch_warnings():
                    warnings.filterwarnings(
                        "ignore", message=".*removes every version except the latest.*"
                    )
                    table.optimize(cleanup_older_than=age)
                rows.append((name, len(before), len(table.list_versions())))
        return pl.DataFrame(
            rows, schema=["table", "versions_before", "versions_after"], orient="row"
        )
