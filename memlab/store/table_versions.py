"""The versions of a store's tables: naming them, looking at earlier ones, removing those that
nothing needs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from memlab.errors import StoreError
from memlab.store.database import Database, TableGroup
from memlab.store.kept_states import KEPT, storage_version_by_kept_version
from memlab.store.table_schemas import LATER_TABLES, VERSIONED, TableVersions
from memlab.store.turn_vectors import drop_and_count_cached_turn_vectors
from memlab.store.version_cleaning import (
    RUN_TAG,
    compact_keeping_needed_versions,
    drop_unneeded_kept_versions,
    versions_before_interrupted_ingests,
    write_time_by_version,
)

if TYPE_CHECKING:
    from lancedb.table import Tags


def tag_versions_of_run(database: Database, run_id: str, provenance: Mapping[str, Any]) -> None:
    """Tag the versions that a run's provenance names, so that they stay readable, where they are of
    this store.
    """
    versions = provenance.get("versions")
    run_tag = RUN_TAG + run_id
    if not isinstance(versions, Mapping):
        return
    for table, version in versions.items():
        if table not in VERSIONED:
            continue
        if version in write_time_by_version(database.open_or_create_table(table)):
            # Another process may save the same run: its tag is then there already, and the same.
            database.retry_on_conflict(
                partial(
                    _create_or_move_tag, database.open_or_create_table(table).tags, run_tag, version
                )
            )


def _create_or_move_tag(table_tags: Tags, tag_name: str, version: int) -> None:
    """Name a version; what an interrupted tagging left behind is moved."""
    if tag_name in table_tags.list():
        table_tags.update(tag_name, version)
    else:
        table_tags.create(tag_name, version)


class Versions(TableGroup):
    """The versions of a store."""

    def versions(self) -> dict[str, int]:
        """Give the version of each table that a result can depend on; for :meth:`at` and for
        provenance.
        """
        self.database.protect_versions_from_cleaning()
        with self.database.translating_errors("reading"):
            # An older store that cannot be written may lack a table that came later.
            known_tables = filter(self.database.has_table, VERSIONED)
            current_versions = {
                name: int(self.database.open_or_create_table(name).version) for name in known_tables
            }
        pinned_versions = self.database.pinned or {}
        # A state that is kept apart has another number there than the one that it goes by.
        return {
            name: pinned_versions.get(name, version) for name, version in current_versions.items()
        }

    def at(self, versions: TableVersions) -> Self:
        """Look at earlier versions: a read-only store on exactly those.

        :param versions: as :meth:`versions` gave them; a run's provenance holds them. A table that
            came later than they were noted has no rows.
        :raises StoreError: when a version was cleaned up.
        """
        database = self.database
        uri = self.database.uri
        asked_tables = [name for name in VERSIONED if name not in LATER_TABLES or name in versions]
        pinned_versions = {table: versions[table] for table in asked_tables if table in versions}
        view = Database(database.connection, uri, pinned=pinned_versions)
        view.protect_versions_from_cleaning()
        for table in asked_tables:
            with database.translating_errors("reading"):
                physical_versions = write_time_by_version(database.open_or_create_table(table))
                known_versions = sorted(
                    {
                        *physical_versions,
                        *storage_version_by_kept_version(database.connection, table),
                    }
                )
            if versions.get(table) not in known_versions:
                raise StoreError(
                    f"table {table} of store {uri} has no version {versions.get(table)}; it has "
                    f"{known_versions[0]} to {known_versions[-1]}: it was cleaned up, or belongs "
                    "to another store"
                )
        return type(self)(view)

    def optimize(self) -> pl.DataFrame:
        """Join small files, bring indexes up to date, and remove earlier versions.

        What saved runs name (see :meth:`memlab.store.saved_runs.Runs.held`), and the last finished
        state of an ingest that was interrupted, stay readable: their rows are kept apart, what they
        share once, and their versions go too. Ingests, indexing and other calls of this wait
        meanwhile, in other processes too.

        :returns: ``table``, ``versions_before``, ``versions_after``.
        """
        database = self.database
        version_rows = []
        with (
            database.translating_errors("optimizing", refused_write="optimize"),
            ExitStack() as held_locks,
        ):
            for dataset in database.list_datasets()["name"].sort():
                held_locks.enter_context(database.locking_dataset_or_noting_versions(dataset))
            interrupted = versions_before_interrupted_ingests(database)
            for column in database.open_or_create_table("turns").schema.names:
                if column.startswith("vector_"):
                    # Stores of before have these vectors twice.
                    drop_and_count_cached_turn_vectors(database, column.removeprefix("vector_"))
            for name in sorted(database.table_names()):
                if name.startswith(KEPT):
                    continue
                table = database.open_table_unless_incomplete(name)
                if table is None:
                    continue  # It holds nothing.
                n_before = len(table.list_versions())
                compact_keeping_needed_versions(database, name, interrupted)
                n_after = len(database.connection.open_table(name).list_versions())
                version_rows.append((name, n_before, n_after))
            drop_unneeded_kept_versions(database, interrupted)
        return pl.DataFrame(
            version_rows, schema=["table", "versions_before", "versions_after"], orient="row"
        )
