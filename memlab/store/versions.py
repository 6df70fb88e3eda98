"""Versions: tags, views on earlier versions, and cleaning up."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any, Self

import polars as pl

from memlab.errors import StoreError
from memlab.store.database import Database, Part
from memlab.store.schemas import VERSIONED

RUN_TAG = "run-"
_TAG = re.compile(r"[A-Za-z0-9._-]+")
_MARGIN = timedelta(seconds=5)
"""How much later than asked LanceDB may look at the age of a version: it refuses to remove one that is tagged."""


def pin(database: Database, name: str, versions: Mapping[str, int]) -> None:
    """Tag versions of tables; the last table is what makes the tag whole, so one that was interrupted is not seen."""
    for table in VERSIONED:
        if table in versions:
            there = database.table(table).tags
            # What an interrupted tagging left behind is moved.
            (there.update if name in there.list() else there.create)(name, versions[table])


def pin_run(database: Database, run_id: str, provenance: Mapping[str, Any]) -> None:
    """Tag the versions that a run's provenance names, where they are versions of this store."""
    versions = provenance.get("versions")
    if isinstance(versions, Mapping):
        wanted = {t: v for t, v in versions.items() if t in VERSIONED and v in _times(database.table(t))}
        pin(database, RUN_TAG + run_id, wanted)


def _times(table: Any) -> dict[int, datetime]:
    return {int(v["version"]): v["timestamp"] for v in table.list_versions()}


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
            with database.guarded("reading"):
                there = sorted(_times(database.table(table)))
            if what.get(table) not in there:
                raise StoreError(
                    f"table {table} of store {uri} has no version {what.get(table)}; it has {there[0]} to {there[-1]}: "
                    "it was cleaned up, or belongs to another store"
                )
        pinned = {table: int(what[table]) for table in VERSIONED}
        return type(self)(Database(database.connection, uri, pinned=pinned))

    def optimize(self) -> pl.DataFrame:
        """Join small files, bring indexes up to date, and remove the versions before the oldest that is needed.

        What a tag or a saved run names, and the last finished state of an ingest that was interrupted, stay readable.
        Ingests, indexing and other calls of this wait meanwhile, in other processes too.

        :returns: ``table``, ``versions_before``, ``versions_after``.
        """
        database, rows = self.database, []
        with database.guarded("optimizing", writes="optimize"), ExitStack() as held:
            for dataset in database.datasets()["name"].sort():
                held.enter_context(database.alone(dataset))
            # The versions of runs whose saving was interrupted before it came to that.
            whole = database.table(VERSIONED[-1]).tags.list()
            for run_id, provenance in database.read("runs", ["run_id", "provenance"]).iter_rows():
                if RUN_TAG + run_id not in whole:
                    pin_run(database, run_id, json.loads(provenance))
            # A tag made during an ingest names a listing whose dataset lies in older versions.
            seen = {int(tag["version"]) for tag in database.table("datasets").tags.list().values()}
            listed = [database.read("datasets", ["complete", "finished"], at=at) for at in (None, *sorted(seen))]
            finished = pl.concat(listed).filter(~pl.col("complete"))["finished"].drop_nulls().unique()
            needed = [json.loads(at) for at in finished]
            for name in sorted(database.names()):
                table = database.connection.open_table(name)
                before, tagged = _times(table), [int(tag["version"]) for tag in table.tags.list().values()]
                kept = [before[v] for v in (*tagged, *(at[name] for at in needed if name in at)) if v in before]
                table.optimize(cleanup_older_than=timedelta(days=36_500))
                age = datetime.now(min(kept).tzinfo) - min(kept) + _MARGIN if kept else timedelta(0)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message=".*removes every version except the latest.*")
                    table.optimize(cleanup_older_than=age)
                rows.append((name, len(before), len(table.list_versions())))
        return pl.DataFrame(rows, schema=["table", "versions_before", "versions_after"], orient="row")
