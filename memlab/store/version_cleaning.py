"""Freeing what earlier versions of tables take: what runs and interrupted ingests need of them is
kept apart."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.atomic_files import lock_path
from memlab.errors import StoreError
from memlab.store.database import READERS, Database, is_write_conflict
from memlab.store.kept_states import (
    KEPT,
    compact_and_drop_old_versions,
    copy_version_rows_to_kept_table,
    drop_kept_versions_except_needed,
    storage_version_by_kept_version,
)
from memlab.store.table_schemas import VERSIONED, TableVersions

if TYPE_CHECKING:
    from lancedb.table import Table as LanceTable

_log = logging.getLogger(__name__)

RUN_TAG = "run-"
"""How the name of a tag begins that a saved run gave to a version."""

MOST_VERSIONS = 10
VERSION_BYTES = 100_000
"""A table is cleaned by who writes to it once it has more versions than the first, and more than
one for each of the second of bytes of its rows: its history stays lighter than its content."""

_MARGIN = timedelta(seconds=5)
"""How much later than asked LanceDB may look at the age of a version: it refuses to remove one that
is tagged."""

_NOTHING = timedelta(days=36_500)
"""An age that no version has."""

_ATTEMPTS = 3


def write_time_by_version(table: LanceTable) -> dict[int, datetime]:
    """Give the versions of a table that are there, and when each was written."""
    return {
        int(version_entry["version"]): version_entry["timestamp"]
        for version_entry in table.list_versions()
    }


def versions_before_interrupted_ingests(database: Database) -> list[TableVersions]:
    """Give the versions of the last finished states of datasets whose ingest is under way or was
    interrupted.

    Also of those that were at a state of the listing that a run needs: it was made during an
    ingest.
    """
    tagged_versions = _version_by_tag(database.open_or_create_table("datasets")).values()
    kept_apart = storage_version_by_kept_version(database.connection, "datasets")
    states = _last_versions_of_incomplete_datasets(database)
    for version in sorted({*kept_apart, *tagged_versions}):
        states += _last_versions_of_incomplete_datasets(database, version)
    return states


def _version_by_tag(table: LanceTable) -> dict[str, int]:
    """Give the versions of a table that have tags, by tag."""
    return {tag: int(tag_entry["version"]) for tag, tag_entry in table.tags.list().items()}


def _last_versions_of_incomplete_datasets(
    database: Database, datasets_table_version: int | None = None
) -> list[TableVersions]:
    """Give the last finished states of datasets that are not whole, by a version of the list."""
    dataset_entries = database.read_table(
        "datasets", ["complete", "finished"], version=datasets_table_version
    )
    unfinished = dataset_entries.filter(~pl.col("complete"))["finished"].drop_nulls()
    return [json.loads(state) for state in unfinished.unique()]


def compact_keeping_needed_versions(
    database: Database, table_name: str, interrupted_versions: Iterable[TableVersions] = ()
) -> None:
    """Join the small files of a table, bring its indexes up to date, and remove its earlier
    versions.

    Those that runs have tagged, and those of states that were interrupted, are kept apart first;
    a version with any other tag stays, and all that came after it.
    """
    table = database.connection.open_table(table_name)
    needed_versions = {
        table_versions[table_name]
        for table_versions in interrupted_versions
        if table_name in table_versions
    }
    for attempt in range(1, _ATTEMPTS + 1):
        _copy_needed_versions_and_untag_runs(database, table_name, table, needed_versions)
        tagged_versions = {*_version_by_tag(table).values()}
        times_by_version = write_time_by_version(table)
        kept_times = [
            times_by_version[version] for version in tagged_versions.intersection(times_by_version)
        ]
        try:
            if kept_times:
                _compact_and_remove_before_or_warn(table_name, table, min(kept_times))
            else:
                compact_and_drop_old_versions(table)
            return
        except RuntimeError as error:
            if not _is_refusal_of_tagged_version(error) or attempt == _ATTEMPTS:
                raise


def _compact_and_remove_before_or_warn(
    table_name: str, table: LanceTable, kept_since: datetime
) -> None:
    """Join the small files of a table and remove the versions before one that stays."""
    table.optimize(cleanup_older_than=_NOTHING)
    kept_age = datetime.now(kept_since.tzinfo) - kept_since + _MARGIN
    if kept_age < _MARGIN:
        _log.warning(
            "the clock is behind version %s of table %s: earlier versions stay until it is set",
            kept_since.isoformat(sep=" ", timespec="seconds"),
            table_name,
        )
        return
    table.optimize(cleanup_older_than=kept_age)


def _is_refusal_of_tagged_version(error: RuntimeError) -> bool:
    """Say whether a version was not removed since a run was saved on it meanwhile."""
    return "tagged version" in str(error)


def _copy_needed_versions_and_untag_runs(
    database: Database, table_name: str, table: LanceTable, needed_versions: Collection[int]
) -> None:
    """Keep the states that are needed, and take the tags of runs from them."""
    known_versions = write_time_by_version(table)
    version_by_tag = _version_by_tag(table)
    version_by_run = {tag: version_by_tag[tag] for tag in version_by_tag if tag.startswith(RUN_TAG)}
    for version in sorted(
        {*version_by_run.values(), *needed_versions}.intersection(known_versions)
    ):
        copy_version_rows_to_kept_table(database.connection, table_name, version)
    for tag in version_by_run:
        table.tags.delete(tag)


def drop_unneeded_kept_versions(
    database: Database, interrupted_versions: Iterable[TableVersions] = ()
) -> None:
    """Remove the kept states that no saved run and no interrupted ingest names."""
    wanted_states = list(interrupted_versions)
    for provenance in database.read_table("runs", ["provenance"])["provenance"]:
        versions = json.loads(provenance).get("versions")
        if isinstance(versions, Mapping):
            wanted_states.append(versions)
    table_names = database.table_names()
    for name in VERSIONED:
        if KEPT + name in table_names:
            needed_versions = set()
            for wanted_state in wanted_states:
                if name in wanted_state:
                    needed_versions.add(wanted_state[name])
            drop_kept_versions_except_needed(
                database.connection, name, needed_versions=needed_versions
            )


def clean_due_tables_or_warn(database: Database, tables: Iterable[str]) -> None:
    """Clean those of some tables whose history outweighs their content.

    Tables that results depend on are left for the next time while an ingest is under way, or a
    handle of some process has given or looked at versions; in an object store, which has no locks,
    for :meth:`memlab.store.table_versions.Versions.optimize`.
    """
    if not database.is_local or database.read_only:
        return
    try:
        with database.translating_errors("cleaning tables"):
            due_tables = set(filter(partial(_needs_cleaning, database), tables))
            _clean_tables_skipping_conflicts(database, sorted(due_tables.difference(VERSIONED)))
            _clean_tables_unless_in_use(database, sorted(due_tables.intersection(VERSIONED)))
    except StoreError as error:
        # What was asked for is done.
        _log.warning("%s; the tables are whole, and are cleaned the next time", error)


def _clean_tables_unless_in_use(database: Database, tables: Collection[str]) -> None:
    """Clean tables that results depend on, where nobody needs their versions."""
    if not tables:
        return
    with ExitStack() as stack:
        readers = lock_path(Path(database.uri) / READERS, alone=True)
        if not stack.enter_context(readers):
            return
        if not database.try_locking_all_datasets(stack):
            return
        if not _last_versions_of_incomplete_datasets(database):
            _clean_tables_skipping_conflicts(
                database, tables, versions_before_interrupted_ingests(database)
            )


def _clean_tables_skipping_conflicts(
    database: Database,
    tables: Iterable[str],
    interrupted_versions: Collection[TableVersions] = (),
) -> None:
    """Clean tables; one that somebody writes to meanwhile is due again the next time."""
    for name in tables:
        try:
            compact_keeping_needed_versions(database, name, interrupted_versions)
        except RuntimeError as error:
            if is_write_conflict(error) or _is_refusal_of_tagged_version(error):
                continue
            raise


def _needs_cleaning(database: Database, table_name: str) -> bool:
    if not database.has_table(table_name):
        return False
    table = database.open_table_unless_incomplete(table_name)
    if table is None or table.version <= MOST_VERSIONS:
        return False  # to list versions takes longer than to read the number of the last
    n_versions = len(table.list_versions())
    if n_versions <= MOST_VERSIONS:
        return False
    for tag in table.tags.list():
        if not tag.startswith(RUN_TAG):
            # Of somebody else: what came later would stay, and be joined again and again.
            return False
    table_statistics: Any = table.stats()
    return n_versions > int(table_statistics["total_bytes"]) // VERSION_BYTES
