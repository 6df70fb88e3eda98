"""Reading datasets: rows in the order in which they went in, of the last finished state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import polars as pl

from memlab.errors import StoreError
from memlab.records import Dataset
from memlab.store.database import Database
from memlab.store.schemas import DATASET_TABLES, TABLES, row_columns

T = TypeVar("T")

CURRENT_VERSIONS: Mapping[str, int] = {}
"""The versions of no table: the rows that are there, also while an ingest is under way."""

_ATTEMPTS = 5


def read_dataset_entry(database: Database, name: str) -> dict[str, Any]:
    """Give what is noted about a dataset: ``format``, ``language``, ``complete`` …

    :raises StoreError: when there is no such dataset.
    """
    listed = database.datasets()
    rows = listed.filter(name=name).rows(named=True)
    if not rows:
        names = ", ".join(listed["name"].sort()) or "none"
        raise StoreError(
            f"store {database.uri} has no dataset {name!r}; it has: {names}. Ingest it first"
        )
    return rows[0]


def finished_versions(about: Mapping[str, Any]) -> Mapping[str, int]:
    """Give the versions of the tables that hold a dataset whole, where its ingest is under way or was interrupted.

    :param about: see :func:`read_dataset_entry`.
    """
    return (
        json.loads(about["finished"])
        if about["finished"] and not about["complete"]
        else CURRENT_VERSIONS
    )


def read_finished_state(database: Database, name: str, read: Callable[[Mapping[str, int]], T]) -> T:
    """Read something of the last finished state of a dataset, again where an ingest began or ended meanwhile.

    :param read: takes the versions of the tables; those that it has not are read as they are.
    """
    after = read_dataset_entry(database, name)
    for _ in range(_ATTEMPTS):
        before = after
        try:
            made = read(finished_versions(before))
        except StoreError:
            # What was read may have been cleaned away once the ingest had ended.
            after = read_dataset_entry(database, name)
            if after == before:
                raise
            continue
        after = read_dataset_entry(database, name)
        if after == before:
            return made
    return read(finished_versions(after))


def read_dataset(
    database: Database, name: str, *, at: Mapping[str, int], scopes: Iterable[str] | None = None
) -> Dataset:
    """Read a dataset as it went in, or some of its scopes.

    :param at: versions of tables, as :func:`read_finished_state` gives them, or
        :data:`CURRENT_VERSIONS`.
    """
    about, wanted = read_dataset_entry(database, name), None if scopes is None else list(scopes)
    tables: dict[str, Any] = {
        table: read_rows(
            database,
            table,
            name,
            scopes=wanted if "scope" in TABLES[table].columns else None,
            at=at,
        )
        for table in DATASET_TABLES
    }
    return Dataset(name, about["format"], **tables, language=about["language"])


def read_rows(
    database: Database,
    table: str,
    dataset: str,
    *,
    scopes: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
    at: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """Read rows of a dataset in the order in which they went in.

    :param at: versions of tables, or :data:`CURRENT_VERSIONS`; by default those of the last
        finished state.
    :raises StoreError: when a column does not exist.
    """
    wanted, only = (
        list(row_columns(table) if columns is None else columns),
        None if scopes is None else list(scopes),
    )
    ordered = list(dict.fromkeys([*wanted, "position", "key"]))

    def read(at: Mapping[str, int]) -> pl.DataFrame:
        return database.read(table, ordered, at=at.get(table), dataset=dataset, scope=only)

    rows = read_finished_state(database, dataset, read) if at is None else read(at)
    # Most were written in order: to see that takes a part of the time of sorting.
    in_order = (rows["position"].diff() > 0).all()
    return (rows if in_order else rows.sort("position", "key")).select(wanted)
