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
from typing import Any

import polars as pl

from memlab.atomic_files import lock_path
from memlab.errors import StoreError
from memlab.store.database import READERS, Database, is_overtaken
from memlab.store.kept_states import KEPT, drop_states, keep_state, kept_versions, prune
from memlab.store.table_schemas import VERSIONED

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


def version_times(table: Any) -> dict[int, datetime]:
    """Give the versions of a table that are there, and when each was written."""
    return {
        int(version_entry["version"]): version_entry["timestamp"]
        for version_entry in table.list_versions()
    }


def interrupted_states(database: Database) -> list[Mapping[str, int]]:
    """Give the versions of the last finished states of datasets whose ingest is under way or was
    interrupted.

    Also of those that were at a state of the listing that a run needs: it was made during an
    ingest.
    """
    tagged_versions = _tagged_versions(database.table("datasets")).values()
    kept_apart = kept_versions(database.connection, "datasets")
    states = _unfinished_states(database)
    for version in sorted({*kept_apart, *tagged_versions}):
        states += _unfinished_states(database, version)
    return states


def _tagged_versions(table: Any) -> dict[str, int]:
    """Give the versions of a table that have tags, by tag."""
    return {tag: int(tag_entry["version"]) for tag, tag_entry in table.tags.list().items()}


def _unfinished_states(database: Database, version: int | None = None) -> list[Mapping[str, int]]:
    """Give the last finished states of datasets that are not whole, by a version of the list."""
    dataset_entries = database.read("datasets", ["complete", "finished"], at=version)
    unfinished = dataset_entries.filter(~pl.col("complete"))["finished"].drop_nulls()
    return [json.loads(state) for state in unfinished.unique()]


def clean_table(
    database: Database, name: str, interrupted: Iterable[Mapping[str, int]] = ()
) -> None:
    """Join the small files of a table, bring its indexes up to date, and remove its earlier
    versions.

    Those that runs have tagged, and those of states that were interrupted, are kept apart first;
    a version with any other tag stays, and all that came after it.
    """
    table = database.connection.open_table(name)
    needed_versions = {
        table_versions[name] for table_versions in interrupted if name in table_versions
    }
    for attempt in range(1, _ATTEMPTS + 1):
        _keep_apart(database, name, table, needed_versions)
        tagged_versions = {*_tagged_versions(table).values()}
        times_by_version = version_times(table)
        kept_times = [
            times_by_version[version] for version in tagged_versions.intersection(times_by_version)
        ]
        try:
            if kept_times:
                _prune_before(name, table, min(kept_times))
            else:
                prune(table)
            return
        except RuntimeError as error:
            if not _is_tagged(error) or attempt == _ATTEMPTS:
                raise


def _prune_before(name: str, table: Any, kept_since: datetime) -> None:
    """Join the small files of a table and remove the versions before one that stays."""
    table.optimize(cleanup_older_than=_NOTHING)
    kept_age = datetime.now(kept_since.tzinfo) - kept_since + _MARGIN
    if kept_age < _MARGIN:
        _log.warning(
            "the clock is behind version %s of table %s: earlier versions stay until it is set",
            kept_since.isoformat(sep=" ", timespec="seconds"),
            name,
        )
        return
    table.optimize(cleanup_older_than=kept_age)


def _is_tagged(error: RuntimeError) -> bool:
    """Say whether a version was not removed since a run was saved on it meanwhile."""
    return "tagged version" in str(error)


def _keep_apart(database: Database, name: str, table: Any, needed: Collection[int]) -> None:
    """Keep the states that are needed, and take the tags of runs from them."""
    known_versions = version_times(table)
    version_by_tag = _tagged_versions(table)
    version_by_run = {tag: version_by_tag[tag] for tag in version_by_tag if tag.startswith(RUN_TAG)}
    for version in sorted({*version_by_run.values(), *needed}.intersection(known_versions)):
        keep_state(database.connection, name, version)
    for tag in version_by_run:
        table.tags.delete(tag)


def drop_unneeded_states(database: Database, interrupted: Iterable[Mapping[str, int]] = ()) -> None:
    """Remove the kept states that no saved run and no interrupted ingest names."""
    wanted_states = list(interrupted)
    for provenance in database.read("runs", ["provenance"])["provenance"]:
        versions = json.loads(provenance).get("versions")
        if isinstance(versions, Mapping):
            wanted_states.append(versions)
    table_names = database.names()
    for name in VERSIONED:
        if KEPT + name in table_names:
            needed_versions = set()
            for wanted_state in wanted_states:
                if name in wanted_state:
                    needed_versions.add(wanted_state[name])
            drop_states(database.connection, name, needed=needed_versions)


def clean_when_due(database: Database, names: Iterable[str]) -> None:
    """Clean those of some tables whose history outweighs their content.

    Tables that results depend on are left for the next time while an ingest is under way, or a
    handle of some process has given or looked at versions; in an object store, which has no locks,
    for :meth:`memlab.store.table_versions.Versions.optimize`.
    """
    if not database.is_local or database.read_only:
        return
    try:
        with database.guarded("cleaning tables"):
            due_tables = set(filter(partial(_is_due, database), names))
            _clean_unless_overtaken(database, sorted(due_tables.difference(VERSIONED)))
            _clean_unless_read(database, sorted(due_tables.intersection(VERSIONED)))
    except StoreError as error:
        # What was asked for is done.
        _log.warning("%s; the tables are whole, and are cleaned the next time", error)


def _clean_unless_read(database: Database, names: Collection[str]) -> None:
    """Clean tables that results depend on, where nobody needs their versions."""
    if not names:
        return
    with ExitStack() as stack:
        readers = lock_path(Path(database.uri) / READERS, alone=True)
        if not stack.enter_context(readers):
            return
        if not database.hold_all_free(stack):
            return
        if not _unfinished_states(database):
            _clean_unless_overtaken(database, names, interrupted_states(database))


def _clean_unless_overtaken(
    database: Database, names: Iterable[str], interrupted: Collection[Mapping[str, int]] = ()
) -> None:
    """Clean tables; one that somebody writes to meanwhile is due again the next time."""
    for name in names:
        try:
            clean_table(database, name, interrupted)
        except RuntimeError as error:
            if is_overtaken(error) or _is_tagged(error):
                continue
            raise


def _is_due(database: Database, name: str) -> bool:
    if not database.holds(name):
        return False
    table = database.open_if_made(name)
    if table is None or table.version <= MOST_VERSIONS:
        return False  # to list versions takes longer than to read the number of the last
    n_versions = len(table.list_versions())
    if n_versions <= MOST_VERSIONS:
        return False
    for tag in table.tags.list():
        if not tag.startswith(RUN_TAG):
            # Of somebody else: what came later would stay, and be joined again and again.
            return False
    return n_versions > int(table.stats()["total_bytes"]) // VERSION_BYTES
