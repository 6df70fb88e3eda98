"""The state of tables: what was read of them holds for it, whoever writes to them."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from memlab.store.database import Database


def read_table_state(database: Database, *names: str) -> tuple[Hashable, ...]:
    """Give the versions of tables, and the state of their files.

    A store that stands where another one stood may have tables of the same versions.

    :raises StoreError: where there is no store any more.

    >>> import memlab, tempfile
    >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
    >>> before = read_table_state(store.database, "turns")
    >>> store.ingest(memlab.sample(turns=20)).height > 0
    True
    >>> before == read_table_state(store.database, "turns")
    False
    """
    with database.guarded("reading"):
        versions = [int(database.table(name).version) for name in names]
        return (*versions, *(_read_file_state(database.uri, name) for name in names))


def _read_file_state(uri: str, table: str) -> tuple[int, int] | None:
    """Give number and time of the folder of a table's versions; ``None`` where there is none."""
    if "://" in uri:
        return None
    try:
        about = (Path(uri) / f"{table}.lance" / "_versions").stat()
    except FileNotFoundError:
        # The URI may be a relative path of another working directory.
        return None
    return about.st_ino, about.st_mtime_ns
