"""The versions of a store's tables: naming them, looking at earlier ones, removing those that nothing needs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self

import polars as pl

from memlab.errors import StoreError
from memlab.store.database import Database, TableGroup
from memlab.store.schemas import LATER_TABLES, VERSIONED
from memlab.store.vectors import drop_copies

_MARGIN = timedelta(seconds=5)
"""How much later than asked LanceDB may look at the age of a version: it refuses to remove one that is tagged."""


def pin_run(database: Database, run_id: str, provenance: Mapping[str, Any]) -> None:
    """Tag the versions that a run's provenance names, so that they stay readable, where they are of this store."""
    versions, name = provenance.get("versions"), f"run-{run_id}"
    for table, version in versions.items() if isinstance(versions, Mapping) else ():
        if table in VERSIONED and version in _version_times(database.table(table)):
            # Another process may save the same run: its tag is then there already, and the same.
            database.retried(partial(_tag, database.table(table).tags, name, version))


def _tag(tags: Any, name: str, version: int) -> None:
    """Name a version; what an interrupted tagging left behind is moved."""
    if name in tags.list():
        tags.update(name, version)
    else:
        tags.create(name, version)


def _version_times(table: Any) -> dict[int, datetime]:
    return {int(v["version"]): v["timestamp"] for v in table.list_versions()}


def _tagged_versions(table: Any) -> set[int]:
    return {int(tag["version"]) for tag in table.tags.list().values()}


class Versions(TableGroup):
    """The versions of a store."""

    def versions(self) -> dict[str, int]:
        """Give the version of each table that a result can depend on; for :meth:`at` and for provenance."""
        with self.database.guarded("reading"):
            # An older store that cannot be written may lack a table that came later.
            there = [name for name in VERSIONED if self.database.holds(name)]
            return {name: int(self.database.table(name).version) for name in there}

    def at(self, versions: Mapping[str, int]) -> Self:
        """Look at earlier versions: a read-only store on exactly those.

        :param versions: as :meth:`versions` gave them; a run's provenance holds them. A table that
            came later than they were noted has no rows.
        :raises StoreError: when a version was cleaned up.
        """
        database, uri = self.database, self.database.uri
        asked = [name for name in VERSIONED if name not in LATER_TABLES or name in versions]
        for table in asked:
            with database.guarded("reading"):
                there = sorted(_version_times(database.table(table)))
            if versions.get(table) not in there:
                raise StoreError(
                    f"table {table} of store {uri} has no version {versions.get(table)}; it has {there[0]} to "
                    f"{there[-1]}: it was cleaned up, or belongs to another store"
                )
        pinned = {table: int(versions[table]) for table in asked}
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
            for column in database.table("turns").schema.names:
                if column.startswith("vector_"):
                    # Stores of before have these vectors twice.
                    drop_copies(database, column.removeprefix("vector_"))
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
