"""The state of tables: what was read of them holds for it, whoever writes to them."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

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
        folder_status = (Path(store_uri) / f"{table_name}.lance" / "_versions").stat()
    except FileNotFoundError:
        return None
    return folder_status.st_ino, folder_status.st_mtime_ns
