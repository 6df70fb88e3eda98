"""Runs and grids: rankings kept with where they came from, and which of them stand in a
comparison."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from memlab.errors import StoreError
from memlab.records import RUN_SCHEMA, Run
from memlab.store.database import TableGroup
from memlab.store.kept_states import open_table_at_version, storage_version_by_kept_version
from memlab.store.table_schemas import VERSIONED, type_by_record_column
from memlab.store.table_versions import tag_versions_of_run
from memlab.store.version_cleaning import RUN_TAG, clean_due_tables_or_warn, write_time_by_version

_TEXTS = pl.List(pl.String)
_HELD_STATE = {"number": pl.UInt32, "states": pl.String, "bytes": pl.Int64}


def _to_serialisable_value(unserialisable_value: object) -> object:
    if is_dataclass(unserialisable_value) and not isinstance(unserialisable_value, type):
        return asdict(unserialisable_value)
    if isinstance(unserialisable_value, Mapping):
        return dict(unserialisable_value)
    if hasattr(unserialisable_value, "item"):
        return unserialisable_value.item()
    return str(unserialisable_value)


def _to_sorted_json(json_object: Mapping[str, Any]) -> str:
    return json.dumps(
        dict(json_object), sort_keys=True, ensure_ascii=False, default=_to_serialisable_value
    )


def _digest_run(run: Run) -> str:
    """Make the id of a run from its name, level, provenance and ranking."""
    digest = hashlib.sha256(
        "\x1f".join((run.name, run.level, _to_sorted_json(run.provenance))).encode()
    )
    digest.update(run.frame.select(*RUN_SCHEMA).write_csv().encode())
    return digest.hexdigest()[:16]


def _table_versions_in_provenance(provenance_json: str) -> list[tuple[str, int]]:
    """Give the versions of tables that the provenance of a run names."""
    versions = json.loads(provenance_json).get("versions")
    if not isinstance(versions, Mapping):
        return []
    return list(versions.items())


class Runs(TableGroup):
    """The runs of a store: ``store.runs``."""

    def save(
        self,
        run: Run,
        *,
        measures: Mapping[str, Any] | None = None,
        now: datetime | None = None,
        run_id: str | None = None,
    ) -> str:
        """Save a run and where it came from; saving the same run twice saves it once.

        Where the provenance holds ``versions`` (see :meth:`memlab.store.MemoryStore.versions`),
        those stay readable.

        :param run_id: of a run as :meth:`load` gave it; made from its content otherwise, which
            takes long where it ranks much.
        :returns: the id of the run.
        """
        database = self.database
        if not run_id:
            run_id = _digest_run(run)
        provenance = _to_sorted_json(run.provenance)
        measures_text = _to_sorted_json(measures or {})
        with database.translating_errors("saving a run", refused_write="save a run"):
            saved_runs = database.read_table("runs", ["measures", "saved_at"], run_id=run_id)
            saved_before = next(saved_runs.iter_rows(named=True), None)
            if saved_before is not None and (
                measures is None or saved_before["measures"] == measures_text
            ):
                return run_id
            ranking_groups = run.frame.group_by("query_id", maintain_order=True)
            query_rows = ranking_groups.agg("doc_id", "rank", "score")
            if saved_before is None:
                saved_at = now or datetime.now(UTC)
                ranking_rows = query_rows.with_columns(
                    position=pl.int_range(pl.len(), dtype=pl.Int64),
                    run_id=pl.lit(run_id),
                    key=pl.lit(f"{run_id}/") + pl.col("query_id"),
                )
                database.upsert_rows("rankings", ranking_rows)
                tag_versions_of_run(database, run_id, json.loads(provenance))
            else:
                saved_at = saved_before["saved_at"]
            run_columns = {
                "run_id": run_id,
                "name": run.name,
                "level": run.level,
                "provenance": provenance,
            }
            size_columns = {"queries": query_rows.height, "rows": run.frame.height}
            # Last: a run that is listed is whole.
            database.upsert_row(
                "runs",
                run_id,
                **run_columns,
                **size_columns,
                measures=measures_text,
                saved_at=saved_at,
            )
        clean_due_tables_or_warn(database, ["rankings", "runs"])
        return run_id

    def listing(self) -> pl.DataFrame:
        """Give the saved runs, newest first; provenance and measures as JSON."""
        runs = self.database.read_table("runs", list(type_by_record_column("runs")))
        return runs.sort("saved_at", "run_id", descending=[True, False])

    def held(self) -> pl.DataFrame:
        """Give what the saved runs hold, newest first: states of tables that are not the present
        ones.

        :returns: ``run_id``, ``name``, ``level``, ``saved_at``, ``states`` (such as ``turns 12``),
            ``bytes`` of their rows, which other runs may hold too, and ``own_bytes`` of those that
            no other run names: about what :meth:`remove` frees.
        """
        database = self.database
        run_rows = self.listing()
        with database.translating_errors("listing what runs hold"):
            sizes_by_table = {name: self._bytes_by_earlier_version(name) for name in VERSIONED}
        state_rows = []
        for number, provenance in enumerate(run_rows["provenance"]):
            for name, version in _table_versions_in_provenance(provenance):
                state_size = sizes_by_table.get(name, {}).get(version)
                if state_size is not None:
                    state_rows.append((number, f"{name} {version}", state_size))
        held_states = pl.DataFrame(state_rows, _HELD_STATE, orient="row")
        is_own = pl.len().over("states") == 1
        own_bytes = pl.when(is_own).then("bytes").otherwise(0)
        states_by_run = held_states.with_columns(own_bytes=own_bytes).group_by(
            "number", maintain_order=True
        )
        held_by_run = states_by_run.agg("states", pl.col("bytes", "own_bytes").sum())
        numbered_runs = run_rows.select("run_id", "name", "level", "saved_at").with_row_index(
            "number"
        )
        runs_with_states = numbered_runs.join(
            held_by_run, on="number", how="left", maintain_order="left"
        ).drop("number")
        empty_list = pl.lit([], _TEXTS)
        return runs_with_states.with_columns(
            pl.col("states").fill_null(empty_list), pl.col("bytes", "own_bytes").fill_null(0)
        )

    def _bytes_by_earlier_version(self, table_name: str) -> dict[int, int]:
        """Give the versions of a table before the present one that are there, with the bytes of
        their rows.
        """
        if not self.database.has_table(table_name):
            return {}
        connection = self.database.connection
        table = self.database.open_or_create_table(table_name)
        earlier_versions = {
            *write_time_by_version(table),
            *storage_version_by_kept_version(connection, table_name),
        } - {table.version}
        size_by_version = {}
        for version in earlier_versions:
            table_stats: Any = open_table_at_version(connection, table_name, version).stats()
            size_by_version[version] = int(table_stats["total_bytes"])
        return size_by_version

    def remove(self, run_ids: str | Iterable[str]) -> None:
        """Remove saved runs; what they alone held goes with the next ``store.optimize()``.

        :raises StoreError: when one is not there; nothing is removed then.
        """
        database = self.database
        if isinstance(run_ids, str):
            run_ids = [run_ids]
        id_list = list(run_ids)
        with database.translating_errors("removing runs", refused_write="remove runs"):
            known_ids = database.read_table("runs", ["run_id"])["run_id"]
            for unknown in sorted({*id_list}.difference(known_ids)):
                raise StoreError(
                    f"store {database.uri} has no run {unknown!r}; store.runs.listing() gives its "
                    "runs: nothing is removed"
                )
            # First what lists them: of a run without its ranking nothing would be known.
            for table in ("runs", "rankings"):
                database.delete_rows(table, run_id=id_list)
            removed_tags = {RUN_TAG + id_ for id_ in id_list}
            for name in filter(database.has_table, VERSIONED):
                tags = database.open_or_create_table(name).tags
                for tag in removed_tags.intersection(tags.list()):
                    tags.delete(tag)

    def load(self, run_id: str) -> Run:
        """Read a run back.

        :raises StoreError: when there is no such run.
        """
        database = self.database
        run_rows = database.read_table(
            "runs", ["level", "name", "provenance"], run_id=run_id
        ).rows()
        if not run_rows:
            raise StoreError(
                f"store {database.uri} has no run {run_id!r}; store.runs.listing() gives its runs"
            )
        ranking_rows = database.read_table(
            "rankings", ["position", *RUN_SCHEMA], run_id=run_id
        ).sort("position")
        level, name, provenance = run_rows[0]
        ranking = ranking_rows.explode("doc_id", "rank", "score").select(*RUN_SCHEMA)
        return Run(ranking, level, name, json.loads(provenance))


class Grids(TableGroup):
    """The comparisons of a store, by name: ``store.grids``."""

    def save(self, name: str, content: Mapping[str, Any], *, now: datetime | None = None) -> None:
        """Save which runs a comparison holds; one of the same name is replaced, its runs stay."""
        with self.database.translating_errors(f"saving grid {name!r}", refused_write="save a grid"):
            self.database.upsert_row(
                "grids", name, content=_to_sorted_json(content), saved_at=now or datetime.now(UTC)
            )

    def load(self, name: str) -> dict[str, Any]:
        """Read a comparison back.

        :raises StoreError: when there is none of that name.
        """
        contents = dict(self.database.read_table("grids", ["key", "content"]).rows())
        if name not in contents:
            known_names = ", ".join(sorted(contents)) or "none"
            raise StoreError(
                f"store {self.database.uri} has no experiment {name!r}; it has: {known_names}"
            )
        return dict(json.loads(contents[name]))
