"""Reading datasets: rows in the order in which they went in, of the last finished state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import polars as pl

from memlab.errors import StoreError
from memlab.records import Dataset
from memlab.store.database import Database, sort_in_dataset_order
from memlab.store.table_schemas import DATASET_TABLES, TABLES, TableVersions, type_by_record_column

T = TypeVar("T")

DatasetEntry = Mapping[str, Any]
"""A row of the table ``datasets``: what is noted about a dataset."""

CURRENT_VERSIONS: TableVersions = {}
"""The versions of no table: the rows that are there, also while an ingest is under way."""

_ATTEMPTS = 5


def read_dataset_entry(database: Database, dataset: str) -> DatasetEntry:
    """Give what is noted about a dataset: ``format``, ``language``, ``complete`` …

    :raises StoreError: when there is no such dataset.
    """
    dataset_entries = database.list_datasets()
    matching_entries = dataset_entries.filter(name=dataset).rows(named=True)
    if not matching_entries:
        known_names = ", ".join(dataset_entries["name"].sort()) or "none"
        raise StoreError(
            f"store {database.uri} has no dataset {dataset!r}; it has: {known_names}. Ingest it "
            "first"
        )
    return matching_entries[0]


def last_finished_or_current_versions(dataset_entry: DatasetEntry) -> TableVersions:
    """Give the versions of the tables that hold a dataset whole, where its ingest is under way or
    was interrupted.

    :param dataset_entry: see :func:`read_dataset_entry`.
    """
    if dataset_entry["complete"] or not dataset_entry["finished"]:
        return CURRENT_VERSIONS
    versions: TableVersions = json.loads(dataset_entry["finished"])
    return versions


def read_last_finished_state(
    database: Database, dataset: str, read_at_versions: Callable[[TableVersions], T]
) -> T:
    """Read something of the last finished state of a dataset, again where an ingest began or ended
    meanwhile.

    :param read_at_versions: takes the versions of the tables; those that it has not are read as
        they are.
    """
    entry_after = read_dataset_entry(database, dataset)
    for _ in range(_ATTEMPTS):
        entry_before = entry_after
        try:
            read_state = read_at_versions(last_finished_or_current_versions(entry_before))
        except StoreError:
            # What was read may have been cleaned away once the ingest had ended.
            entry_after = read_dataset_entry(database, dataset)
            if entry_after == entry_before:
                raise
            continue
        entry_after = read_dataset_entry(database, dataset)
        if entry_after == entry_before:
            return read_state
    return read_at_versions(last_finished_or_current_versions(entry_after))


def read_dataset(
    database: Database,
    dataset: str,
    *,
    versions: TableVersions,
    scopes: Iterable[str] | None = None,
    known_turns: pl.DataFrame | None = None,
) -> Dataset:
    """Read a dataset as it went in, or some of its scopes.

    :param versions: versions of tables, as :func:`read_last_finished_state` gives them, or
        :data:`CURRENT_VERSIONS`.
    :param known_turns: its turns, where they need not be read.
    """
    dataset_entry = read_dataset_entry(database, dataset)
    tables = dict[str, Any]()
    if scopes is not None:
        scopes = list(scopes)
    for table in DATASET_TABLES:
        if table == "turns" and known_turns is not None:
            tables[table] = known_turns
            continue
        table_scopes = scopes
        if "scope" not in TABLES[table].columns:
            table_scopes = None
        tables[table] = read_dataset_rows(
            database, table, dataset, scopes=table_scopes, versions=versions
        )
    return Dataset(dataset, dataset_entry["format"], **tables, language=dataset_entry["language"])


def read_dataset_rows(
    database: Database,
    table_name: str,
    dataset: str,
    *,
    scopes: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
    versions: TableVersions | None = None,
) -> pl.DataFrame:
    """Read rows of a dataset in the order in which they went in.

    :param versions: versions of tables, or :data:`CURRENT_VERSIONS`; by default those of the last
        finished state.
    :raises StoreError: when a column does not exist.
    """
    is_whole_row = table_name == "turns" and columns is None
    if columns is None:
        columns = type_by_record_column(table_name)
    wanted_columns = list(columns)
    wanted_scopes = scopes
    if wanted_scopes is not None:
        wanted_scopes = list(wanted_scopes)
    ordered_columns = list(dict.fromkeys([*wanted_columns, "position", "key"]))

    def read_at_versions(table_versions: TableVersions) -> pl.DataFrame:
        is_present = is_whole_row and not table_versions and not database.read_only
        if wanted_scopes and is_present and database.has_locked_dataset(dataset):
            return database.read_locked_turns(dataset, wanted_scopes)
        return database.read_table(
            table_name,
            ordered_columns,
            version=table_versions.get(table_name),
            dataset=dataset,
            scope=wanted_scopes,
        )

    dataset_rows = (
        read_last_finished_state(database, dataset, read_at_versions)
        if versions is None
        else read_at_versions(versions)
    )
    return sort_in_dataset_order(dataset_rows).select(wanted_columns)
