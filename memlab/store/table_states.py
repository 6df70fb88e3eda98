"""The state of tables: what was read of them holds for it, whoever writes to them."""

from __future__ import annotations

import os
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any

from memlab.store.database import Database


def read_table_states(database: Database, *table_names: str) -> tuple[Hashable, ...]:
    """Give the versions of tables, and the state of their files.

    A store that stands where another one stood may have tables of the same versions.

    :raises StoreError: where there is no store any more.

    >>> import memlab, tempfile
    >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
    >>> before = read_table_states(store.database, "turns")
    >>> store.ingest(memlab.sample(turns=20)).height > 0
    True
    >>> before == read_table_states(store.database, "turns")
    False
    """
    table_states = list[Hashable]()
    with database.translating_errors("reading"):
        for name in table_names:
            table_states.append(int(database.open_or_create_table(name).version))
            table_states.append(_inode_and_time_of_versions_folder(database.uri, name))
    return tuple(table_states)


def _inode_and_time_of_versions_folder(store_uri: str, table_name: str) -> tuple[int, int] | None:
    """Give number and time of the folder of a table's versions; ``None`` where there is none."""
    if "://" in store_uri:
        return None
    try:
        folder_status = _versions_folder(Path(store_uri), table_name).stat()
    except FileNotFoundError:
        return None
    return _number_and_time(folder_status)


def _versions_folder(store_folder: Path, table_name: str) -> Path:
    return store_folder / f"{table_name}.lance" / "_versions"


def list_files_of_local_tables(store_folder: Path, *table_names: str) -> dict[str, list[Any]]:
    """List what tells one state of tables from another, without opening the store.

    :param store_folder: of a store of this machine.
    :returns: of each table number and time of the folder of its versions, and the names, numbers
        and times of the files in it; a table that is not there has none.

    >>> import memlab, tempfile
    >>> from pathlib import Path
    >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
    >>> before = list_files_of_local_tables(Path(store.uri), "turns")
    >>> store.ingest(memlab.sample(turns=20)).height > 0
    True
    >>> before == list_files_of_local_tables(Path(store.uri), "turns")
    False
    """
    files_by_table = dict[str, list[Any]]()
    for table_name in table_names:
        versions_folder = _versions_folder(store_folder, table_name)
        files_by_table[table_name] = []
        with suppress(FileNotFoundError):
            files_by_table[table_name] = [
                (version_path.name, *_number_and_time(version_path.stat()))
                for version_path in (versions_folder, *sorted(versions_folder.iterdir()))
            ]
    return files_by_table


def _number_and_time(file_status: os.stat_result) -> tuple[int, int]:
    return file_status.st_ino, file_status.st_mtime_ns
