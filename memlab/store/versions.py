"""Versions: tags, views on earlier versions, and cleaning up."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import StoreError
from memlab.store.tables import SCHEMAS, VERSIONED, guarded, read

if TYPE_CHECKING:
    from memlab.store.memory import MemoryStore

RUN_TAG = "run-"
_TAG = re.compile(r"[A-Za-z0-9._-]+")


def tag(store: MemoryStore, name: str) -> dict[str, int]:
    """Name the present versions; see :meth:`memlab.store.MemoryStore.tag`."""
    if not _TAG.fullmatch(name) or name.startswith(RUN_TAG):
        raise StoreError(f"tag {name!r}: expected letters, digits, '.', '-' and '_', not beginning with {RUN_TAG!r}")
    there = tags(store).get(name)
    now = store.versions()
    if there is not None and there != now:
        raise StoreError(f"tag {name!r} of store {store.uri} is taken, for versions {there}; choose another name")
    with guarded(f"tagging {name!r}", store.uri):
        pin(store, name, now)
    return now


def pin(store: MemoryStore, name: str, versions: Mapping[str, int]) -> None:
    """Tag versions of tables; the last table is what makes the tag whole, so one that was interrupted is not seen."""
    for table in VERSIONED:
        if table in versions:
            held = store.table(table).tags
            # What an interrupted tagging left behind is moved.
            (held.update if name in held.list() else held.create)(name, versions[table])


def tags(store: MemoryStore) -> dict[str, dict[str, int]]:
    """Give the whole tags."""
    held = {table: store.table(table).tags.list() for table in VERSIONED}
    return {
        name: {table: int(held[table][name]["version"]) for table in VERSIONED}
        for name in sorted(held[VERSIONED[-1]])
        if not name.startswith(RUN_TAG) and all(name in held[table] for table in VERSIONED)
    }


def resolve(store: MemoryStore, what: str | Mapping[str, int]) -> dict[str, int]:
    """Turn a tag or versions into versions that exist.

    :raises StoreError: when there is no such tag or version.
    """
    if isinstance(what, str):
        known = tags(store)
        if what not in known:
            raise StoreError(f"store {store.uri} has no tag {what!r}; it has: {', '.join(known) or 'none'}")
        return known[what]
    for table in VERSIONED:
        if table not in what:
            raise StoreError(
                f"versions {dict(what)} name no version of table {table!r}; give what store.versions() gave"
            )
        there = [int(v["version"]) for v in store.table(table).list_versions()]
        if what[table] not in there:
            raise StoreError(
                f"table {table} of store {store.uri} has no version {what[table]}; it has {there[0]} to {there[-1]}: "
                "it was cleaned up, or belongs to another store"
            )
    return {table: int(what[table]) for table in VERSIONED}


def optimize(store: MemoryStore) -> pl.DataFrame:
    """Compact, index and clean up; see :meth:`memlab.store.MemoryStore.optimize`."""
    _pin_runs(store)
    rows = []
    for name in sorted({*SCHEMAS, *(n for n in store.table_names() if n.startswith("embeddings_"))}):
        table = store.database.open_table(name)
        before = len(table.list_versions())
        table.optimize(cleanup_older_than=timedelta(days=36_500))
        _clean(table)
        rows.append((name, before, len(table.list_versions())))
    return pl.DataFrame(rows, schema=["table", "versions_before", "versions_after"], orient="row")


def _clean(table: Any) -> None:
    """Remove the versions before the oldest one that is needed.

    The age of a version grows until LanceDB looks at it, by more on a busy machine: it is asked again with more room.
    """
    for room in (0.001, 0.1, 10.0, 1_000.0):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*removes every version except the latest.*")
            try:
                table.optimize(cleanup_older_than=_age_of_oldest_needed(table, timedelta(seconds=room)))
                return
            except RuntimeError as error:
                if "tagged version" not in str(error):
                    raise


def _pin_runs(store: MemoryStore) -> None:
    """Tag the versions of saved runs whose saving was interrupted before it came to that."""
    for run_id, provenance in read(store.table("runs"), ["run_id", "provenance"]).iter_rows():
        pin_run(store, run_id, json.loads(provenance))


def pin_run(store: MemoryStore, run_id: str, provenance: Mapping[str, Any]) -> None:
    """Tag the versions that a run's provenance names, where they are versions of this store."""
    versions = provenance.get("versions")
    if not isinstance(versions, Mapping):
        return
    wanted = {t: v for t, v in versions.items() if t in VERSIONED and isinstance(v, int)}
    name = RUN_TAG + run_id
    missing = {t: v for t, v in wanted.items() if name not in store.table(t).tags.list()}
    there = {t: {int(v["version"]) for v in store.table(t).list_versions()} for t in missing}
    pin(store, name, {t: v for t, v in missing.items() if v in there[t]})


def _age_of_oldest_needed(table: Any, room: timedelta) -> timedelta:
    """Say how old a version must be to go. LanceDB refuses to clean past a tag, so all after the oldest tag stay."""
    tagged = {int(t["version"]) for t in table.tags.list().values()}
    times = {int(v["version"]): v["timestamp"] for v in table.list_versions()}
    oldest = min((times[v] for v in tagged if v in times), default=None)
    if oldest is None:
        return timedelta(0)
    return datetime.now(oldest.tzinfo) - oldest + room
