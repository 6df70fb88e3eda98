"""What is known from finished sessions: the tables of an index, written session by session, whole or not at all.

LanceDB commits one table at a time. So every row names the *generation* that wrote it, and the state of a session,
written last, names the generation that counts: rows of an attempt that was cut off are never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import StoreError
from memlab.records import TIMESTAMP, Entity, Fact, IndexEvent, IndexState, Relation, Summary, schema
from memlab.store import reading
from memlab.store.ingest import merge, text_hashes
from memlab.store.tables import arrow_schema, guarded, in_dataset, keys, open_table, read, retried, to_arrow

if TYPE_CHECKING:
    from memlab.store.memory import MemoryStore

ROWS: dict[str, tuple[type, str]] = {
    "summaries": (Summary, "session_id"),
    "facts": (Fact, "fact_id"),
    "entities": (Entity, "entity_id"),
    "relations": (Relation, "relation_id"),
}
"""The tables that an index fills: their row type and the column of its id."""

UNDONE: dict[str, Any] = {
    **dict.fromkeys(("scope", "old", "new"), pl.String()),
    "undone_at": TIMESTAMP,
    "why": pl.String(),
}
ORPHANS_AFTER = timedelta(days=1)

_KEYED = {"key": pl.String(), "dataset": pl.String()}
_GENERATED = {**_KEYED, "generation": pl.String(), "position": pl.Int64(), "session_id": pl.String()}
_GENERATED["written_at"] = TIMESTAMP
SCHEMAS: dict[str, dict[str, Any]] = {
    **{table: {**_GENERATED, **schema(row)} for table, (row, _) in ROWS.items()},
    "index_states": {**_KEYED, **schema(IndexState)},
    "index_events": {**_KEYED, **schema(IndexEvent)},
    "undone": {**_KEYED, **UNDONE},
}


def rows(store: MemoryStore, table: str, dataset: str, *, scopes: Sequence[str] | None = None) -> pl.DataFrame:
    """Read the rows of one table that count, by scope, session and place.

    :param table: ``summaries``, ``facts``, ``entities`` or ``relations``.
    :returns: rows of the table's row type; none where nothing was indexed yet.
    :raises StoreError: when there is no such dataset.
    """
    row_type, _ = ROWS[table]
    with guarded(f"reading {table} of {dataset!r}", store.uri):
        reading.known(store, dataset)
        held = _read(store, table, dataset, scopes)
        counts = _read(store, "index_states", dataset, scopes).select("session_id", "generation")
    order = reading.read_rows(store, "sessions", dataset, columns=["session_id"]).with_row_index("_session")
    return (
        held.join(counts, on=["session_id", "generation"])
        .join(order, on="session_id", how="left")
        .sort("_session", "session_id", "position", nulls_last=True)
        .select(*schema(row_type))
    )


def states(store: MemoryStore, dataset: str) -> pl.DataFrame:
    """Give where each session stands that the index has seen: rows of :class:`memlab.records.IndexState`."""
    with guarded(f"reading the index of {dataset!r}", store.uri):
        reading.known(store, dataset)
        return _read(store, "index_states", dataset).sort("scope", "session_id").select(*schema(IndexState))


def events(store: MemoryStore, dataset: str) -> pl.DataFrame:
    """Give what happened to the sessions in the index, in order of time: rows of :class:`memlab.records.IndexEvent`."""
    with guarded(f"reading the index of {dataset!r}", store.uri):
        reading.known(store, dataset)
        return _read(store, "index_events", dataset).sort("at", "event_id").select(*schema(IndexEvent))


def digests(store: MemoryStore, dataset: str) -> pl.DataFrame:
    """Hash the turns of each session, in their order: ``session_id``, ``digest``; other words, another hash."""
    wanted = ["session_id", "turn_id", "role", "timestamp", "content_hash"]
    turns = reading.read_rows(store, "turns", dataset, columns=wanted)
    said = pl.concat_str(pl.exclude("session_id").cast(pl.String).fill_null("-"), separator=" ")
    joined = (
        turns.select("session_id", text=said)
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("text").str.join("\n"))
    )
    return joined.select("session_id", digest=pl.Series(text_hashes(joined["text"]), dtype=pl.String))


def commit(
    store: MemoryStore,
    dataset: str,
    *,
    parts: Mapping[str, pl.DataFrame],
    states: pl.DataFrame,
    events: pl.DataFrame,
    now: datetime,
) -> None:
    """Write what some sessions gave; they count once their states are written, all at the same time.

    :param parts: frames of the tables of :data:`ROWS`, each with ``session_id``.
    :param states: rows of :class:`memlab.records.IndexState`, one a session; ``generation`` names these rows.
    :param events: rows of :class:`memlab.records.IndexEvent`.
    :raises StoreError: when the store is read-only or cannot be written.
    """
    if store.read_only:
        raise StoreError(f"store {store.uri} is a view on earlier versions, and read-only; open the store to index it")
    with guarded(f"indexing {dataset!r}", store.uri):
        before = _read(store, "index_states", dataset).select("session_id", "generation")
        mine = states.select("session_id", "generation")
        for table, (_, id_) in ROWS.items():
            if table in parts and parts[table].height:
                placed = (
                    parts[table]
                    .join(mine, on="session_id", maintain_order="left")
                    .with_columns(
                        pl.int_range(pl.len(), dtype=pl.Int64).over("session_id").alias("position"),
                        pl.lit(now).cast(TIMESTAMP).alias("written_at"),
                    )
                )
                _write(store, table, _keyed(placed, dataset, pl.concat_str(id_, pl.lit("@"), "generation")))
        _write(store, "index_states", _keyed(states, dataset, pl.col("session_id")))
        _write(store, "index_events", _keyed(events, dataset, pl.col("event_id")))
        replaced = before.join(mine, on="session_id", suffix="_new").filter(
            pl.col("generation").ne_missing(pl.col("generation_new"))
        )
        _drop(store, dataset, replaced["generation"].drop_nulls().unique().to_list(), replaced["session_id"].to_list())


def sweep(store: MemoryStore, dataset: str, *, now: datetime) -> int:
    """Remove the rows of attempts that were cut off more than :data:`ORPHANS_AFTER` ago.

    :returns: how many rows.
    """
    from lancedb.expr import col, lit

    gone = 0
    with guarded(f"sweeping {dataset!r}", store.uri):
        counts = _read(store, "index_states", dataset).select("session_id", "generation")
        for table in ROWS:
            held = _read(store, table, dataset)
            orphans = held.join(counts, on=["session_id", "generation"], how="anti")
            orphans = orphans.filter(pl.col("written_at") < now - ORPHANS_AFTER)
            if orphans.height:
                doomed = (col("dataset") == lit(dataset)) & col("key").isin(orphans["key"].to_list())
                _table(store, table).delete(doomed)
            gone += orphans.height
    return gone


def undone(store: MemoryStore, dataset: str, *, scopes: Sequence[str] | None = None) -> pl.DataFrame:
    """Give the supersessions that were undone: ``scope``, ``old``, ``new``, ``undone_at``, ``why``."""
    with guarded(f"reading undone of {dataset!r}", store.uri):
        reading.known(store, dataset)
        return _read(store, "undone", dataset, scopes).sort("undone_at", "old", "new").select(*UNDONE)


def write_undone(store: MemoryStore, dataset: str, scope: str, rows: pl.DataFrame) -> None:
    """Keep which supersessions of a scope are undone; those that are not among the rows count again."""
    from lancedb.expr import col, lit

    with guarded(f"writing undone of {dataset!r}", store.uri):
        kept = _keyed(rows.with_columns(scope=pl.lit(scope)), dataset, pl.concat_str("old", pl.lit(" "), "new"))
        _write(store, "undone", kept)
        here = (col("dataset") == lit(dataset)) & (col("scope") == lit(scope))
        gone = set(_read(store, "undone", dataset, [scope])["key"]) - set(kept["key"])
        if gone:
            _table(store, "undone").delete(here & col("key").isin(sorted(gone)))


def _table(store: MemoryStore, name: str) -> Any:
    return open_table(store.database, name, arrow_schema(SCHEMAS[name]))


def _read(store: MemoryStore, name: str, dataset: str, scopes: Sequence[str] | None = None) -> pl.DataFrame:
    wanted = list(dict.fromkeys(SCHEMAS[name]))
    if store.read_only and name not in store.table_names():
        return pl.DataFrame(schema=SCHEMAS[name])
    return read(_table(store, name), wanted, where=in_dataset(dataset, None if scopes is None else list(scopes)))


def _keyed(rows: pl.DataFrame, dataset: str, key: pl.Expr) -> pl.DataFrame:
    return rows.with_columns(_id=key).with_columns(key=keys(dataset, "_id"), dataset=pl.lit(dataset)).drop("_id")


def _write(store: MemoryStore, name: str, rows: pl.DataFrame) -> None:
    if rows.height:
        held = rows.select(pl.col(c).cast(t) for c, t in SCHEMAS[name].items())
        for key, n in held["key"].value_counts(sort=True).filter(pl.col("count") > 1).iter_rows():
            raise StoreError(f"table {name}: {key!r} stands for {n} rows; give each its own id")
        merge(_table(store, name), to_arrow(held, arrow_schema(SCHEMAS[name])))


def _drop(store: MemoryStore, dataset: str, generations: list[str], sessions: list[str]) -> None:
    """Remove the rows that were replaced; what another process wrote meanwhile has another generation, and stays."""
    from lancedb.expr import col, lit

    if not generations:
        return
    doomed = (col("dataset") == lit(dataset)) & col("generation").isin(generations) & col("session_id").isin(sessions)
    for table in ROWS:
        held = _table(store, table)
        retried(lambda held=held: held.delete(doomed))  # type: ignore[misc]
