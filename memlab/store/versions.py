"""Versions: tags, views on earlier versions, and cleaning up."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Self

import polars as pl

from memlab.errors import StoreError
from memlab.store import caches
from memlab.store.conversations import last_finished
from memlab.store.database import Database, Part
from memlab.store.registry import CACHES, TABLES, VERSIONED

RUN_TAG = "run-"
_FAMILIES = tuple(f"{family}_" for family in CACHES)
_TAG = re.compile(r"[A-Za-z0-9._-]+")


def pin(database: Database, name: str, versions: Mapping[str, int]) -> None:
    """Tag versions of tables; the last table is what makes the tag whole, so one that was interrupted is not seen."""
    for table in VERSIONED:
        if table in versions:
            there = database.table(table).tags
            # What an interrupted tagging left behind is moved.
            (there.update if name in there.list() else there.create)(name, versions[table])


def _clean(table: Any, needed: set[int]) -> None:
    """Remove the versions before the oldest one that is needed: tagged, or the last whole state of a dataset.

    The age of a version grows until LanceDB looks at it, by more on a busy machine: it is asked again with more room.
    """
    for room in (0.001, 0.1, 10.0, 1_000.0):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*removes every version except the latest.*")
            try:
                table.optimize(cleanup_older_than=_age_of_oldest_needed(table, needed, timedelta(seconds=room)))
                return
            except RuntimeError as error:
                if "tagged version" not in str(error):
                    raise


def pin_run(database: Database, run_id: str, provenance: Mapping[str, Any]) -> None:
    """Tag the versions that a run's provenance names, where they are versions of this store."""
    versions = provenance.get("versions")
    if not isinstance(versions, Mapping):
        return
    wanted = {t: v for t, v in versions.items() if t in VERSIONED and isinstance(v, int)}
    name = RUN_TAG + run_id
    missing = {t: v for t, v in wanted.items() if name not in database.table(t).tags.list()}
    there = {t: {int(v["version"]) for v in database.table(t).list_versions()} for t in missing}
    pin(database, name, {t: v for t, v in missing.items() if v in there[t]})


def _age_of_oldest_needed(table: Any, needed: set[int], room: timedelta) -> timedelta:
    """Say how old a version must be to go. LanceDB refuses to clean past a tag, so all after the oldest tag stay."""
    tagged = needed | {int(t["version"]) for t in table.tags.list().values()}
    times = {int(v["version"]): v["timestamp"] for v in table.list_versions()}
    oldest = min((times[v] for v in tagged if v in times), default=None)
    if oldest is None:
        return timedelta(0)
    return datetime.now(oldest.tzinfo) - oldest + room


class Versions(Part):
    """The versions of a store."""

    def versions(self) -> dict[str, int]:
        """Give the version of each table that a result can depend on; for :meth:`at` and for provenance."""
        with self.database.guarded("reading"):
            return {name: int(self.database.table(name).version) for name in VERSIONED}

    def tag(self, name: str) -> dict[str, int]:
        """Name the present versions, and keep them from being cleaned up.

        :raises StoreError: when the name is taken or is not made of letters, digits, ``.``, ``-`` and ``_``.
        """
        if not _TAG.fullmatch(name) or name.startswith(RUN_TAG):
            expected = f"letters, digits, '.', '-' and '_', not beginning with {RUN_TAG!r}"
            raise StoreError(f"tag {name!r}: expected {expected}")
        with self.database.guarded(f"tagging {name!r}", writes="tag"):
            taken, now = self.tags().get(name), self.versions()
            if taken is not None and taken != now:
                where = f"tag {name!r} of store {self.database.uri}"
                raise StoreError(f"{where} is taken, for versions {taken}; choose another name")
            pin(self.database, name, now)
        return now

    def tags(self) -> dict[str, dict[str, int]]:
        """Give the tags and the versions that they name."""
        with self.database.guarded("reading"):
            named = {table: self.database.table(table).tags.list() for table in VERSIONED}
        return {
            name: {table: int(named[table][name]["version"]) for table in VERSIONED}
            for name in sorted(named[VERSIONED[-1]])
            if not name.startswith(RUN_TAG) and all(name in named[table] for table in VERSIONED)
        }

    def at(self, what: str | Mapping[str, int]) -> Self:
        """Look at earlier versions: a read-only store on exactly those.

        :param what: a tag, or versions as :meth:`versions` gave them (a run's provenance holds them).
        :raises StoreError: when there is no such tag, or a version was cleaned up.
        """
        database, uri = self.database, self.database.uri
        if isinstance(what, str):
            tags = self.tags()
            if what not in tags:
                raise StoreError(f"store {uri} has no tag {what!r}; it has: {', '.join(tags) or 'none'}")
            what = tags[what]
        for table in VERSIONED:
            if table not in what:
                raise StoreError(
                    f"versions {dict(what)} name no version of table {table!r}; give what store.versions() gave"
                )
            with database.guarded("reading"):
                there = [int(v["version"]) for v in database.table(table).list_versions()]
            if what[table] not in there:
                raise StoreError(
                    f"table {table} of store {uri} has no version {what[table]}; it has {there[0]} to {there[-1]}: it "
                    "was cleaned up, or belongs to another store"
                )
        pinned = {table: int(what[table]) for table in VERSIONED}
        return type(self)(Database(database.connection, uri, pinned=pinned))

    def optimize(self, *, dry_run: bool = False) -> pl.DataFrame:
        """Join small files, bring indexes up to date, and remove the versions before the oldest that is needed.

        All tables take part, and what killed processes left unfinished goes. Of the caches go the rows that are there
        twice, and vectors of texts that the store no longer holds; tokens are kept, for what they were read after is
        not known from the tables. What a tag or a saved run names stays readable. No other process may be using the
        store.

        :param dry_run: say what would go, and change nothing.
        :returns: ``table``, ``versions_before``, ``versions_after``, ``rows_removed``.
        """
        database, rows = self.database, []
        database.writable("optimize")
        if not dry_run:
            database.sweep()
        with database.guarded("optimizing", writes="" if dry_run else "optimize"):
            # The versions of saved runs whose saving was interrupted before it came to that.
            runs = database.read("runs", ["run_id", "provenance"])
            for run_id, provenance in runs.clear().iter_rows() if dry_run else runs.iter_rows():
                pin_run(database, run_id, json.loads(provenance))
            wanted = caches.referenced(database)
            unfinished = [last_finished(database, name) for name in database.read("datasets", ["name"])["name"]]
            for name in sorted(n for n in database.names() if n in TABLES or n.startswith(_FAMILIES)):
                table = database.connection.open_table(name)
                before, family = len(table.list_versions()), name.partition("_")[0]
                gone = caches.unused(table, wanted if family == "embeddings" else None) if family in CACHES else []
                if not dry_run:
                    caches.drop(database, table, gone)
                    table.optimize(cleanup_older_than=timedelta(days=36_500))
                    _clean(table, {at[name] for at in unfinished if name in at})
                rows.append((name, before, len(table.list_versions()), len(gone)))
        return pl.DataFrame(rows, schema=["table", "versions_before", "versions_after", "rows_removed"], orient="row")
