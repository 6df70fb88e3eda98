"""Earlier states of tables that something needs, kept apart, so that the versions of the tables can
go.

LanceDB removes the versions before a time, and refuses where one of them has a tag: the oldest
version that a saved run names would keep every later one. So the rows of such a version go into
another table, ``kept_turns`` for ``turns``, each state as a difference to the one before it. A
branch holds each state there: of what states share there is one copy, and a state whose branch is
gone goes with the next cleaning. Vectors of turns are not kept: they are read by text, from the
turns as they are or from the cache.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

from memlab.store.table_schemas import TABLES, build_required_row_filter, to_arrow_table

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table as LanceTable

KEPT = "kept_"
"""How the name of the other table begins."""
_LETTERS = {"v": "w", "w": "v"}
"""What a branch begins with, before the version: the other one when it is written anew."""


def storage_version_by_kept_version(connection: DBConnection, table_name: str) -> dict[int, int]:
    """Give the versions of a table that are kept, each with its version in the other table."""
    if KEPT + table_name not in connection.list_tables(limit=10_000).tables:
        return {}
    branches = connection.open_table(KEPT + table_name).branches.list()
    return {
        int(branch[1:]): int(branch_entry["parent_version"])
        for branch, branch_entry in branches.items()
    }


def copy_version_rows_to_kept_table(
    connection: DBConnection, table_name: str, version: int
) -> None:
    """Keep the rows of a version of a table; one that is kept already, or is gone, is left.

    Interrupted, it can be done again: a state counts once its branch is there.
    """
    table = connection.open_table(table_name)
    if version in storage_version_by_kept_version(connection, table_name):
        return
    table.checkout(version)
    schema = TABLES[table_name].arrow_schema()
    known_columns = set(table.schema.names)
    version_rows = _read_all_rows(table, list(filter(known_columns.__contains__, schema.names)))
    for column, column_type in TABLES[table_name].columns.items():
        if column not in known_columns:
            version_rows = version_rows.with_columns(pl.lit(None, column_type).alias(column))
    version_rows = version_rows.select(schema.names)
    kept_table = connection.create_table(KEPT + table_name, schema=schema, exist_ok=True)
    rows_before = _read_all_rows(kept_table, schema.names)
    gone_rows = rows_before.join(
        version_rows, on=version_rows.columns, how="anti", nulls_equal=True
    )
    new_rows = version_rows.join(rows_before, on=version_rows.columns, how="anti", nulls_equal=True)
    if gone_rows.height:
        kept_table.delete(build_required_row_filter(key=gone_rows["key"]))
    if new_rows.height:
        kept_table.add(to_arrow_table(new_rows, schema))
    kept_table.branches.create(f"v{version}", from_version=kept_table.version)


def open_table_at_version(connection: DBConnection, table_name: str, version: int) -> LanceTable:
    """Give the LanceDB table of a version of a table, read-only, wherever its rows are."""
    kept_by_version = storage_version_by_kept_version(connection, table_name)
    if version in kept_by_version:
        table = connection.open_table(KEPT + table_name)
        table.checkout(kept_by_version[version])
        return table
    table = connection.open_table(table_name)
    table.checkout(version)
    return table


def drop_kept_versions_except_needed(
    connection: DBConnection, table_name: str, *, needed_versions: Collection[int]
) -> None:
    """Remove the kept states of a table that nothing needs, and the files that they alone had."""
    dropped_versions = storage_version_by_kept_version(connection, table_name).keys() - set(
        needed_versions
    )
    if not dropped_versions:
        return
    kept_table = connection.open_table(KEPT + table_name)
    for branch in kept_table.branches.list():
        if int(branch[1:]) in dropped_versions:
            kept_table.branches.delete(branch)
    if kept_table.branches.list():
        _recreate_branches(kept_table)
        compact_and_drop_old_versions(kept_table)
    else:
        connection.drop_table(KEPT + table_name)


def _recreate_branches(kept_table: LanceTable) -> None:
    """Write the branches of a table anew, so that a cleaning sees what they hold.

    A branch names the place of its table, and in a store that was copied or moved it holds nothing:
    a cleaning there would remove every kept state. A state that was interrupted between the two
    steps has both branches, which name one version.
    """
    branches = kept_table.branches.list()
    known_branches = set(branches)
    for branch, branch_entry in branches.items():
        renewed_name = _LETTERS[branch[0]] + branch[1:]
        if renewed_name not in known_branches:
            kept_table.branches.create(renewed_name, from_version=branch_entry["parent_version"])
            known_branches.add(renewed_name)
        kept_table.branches.delete(branch)
        known_branches.remove(branch)


def compact_and_drop_old_versions(table: LanceTable) -> None:
    """Join the small files of a table and remove all of its versions but the last, and those of
    branches.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*removes every version except the latest.*")
        table.optimize(cleanup_older_than=timedelta(0))


def _read_all_rows(table: LanceTable, columns: list[str]) -> pl.DataFrame:
    rows: pl.DataFrame = table.search().select(columns).to_polars()
    return rows
