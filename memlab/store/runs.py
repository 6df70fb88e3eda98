"""Runs: rankings kept with where they came from; and the store at a glance."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import StoreError
from memlab.records import RUN_SCHEMA, TIMESTAMP, Run
from memlab.store.ingest import merge
from memlab.store.tables import SCHEMAS, arrow_schema, guarded, open_table, read, to_arrow
from memlab.store.versions import pin_run, tags

if TYPE_CHECKING:
    from memlab.store.memory import MemoryStore

GRIDS: dict[str, Any] = {**dict.fromkeys(("key", "content"), pl.String()), "saved_at": TIMESTAMP}
"""The table of comparisons: which runs stand in one, by its name. Made with the first of them."""


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") else str(value)


def _json(value: Mapping[str, Any] | None) -> str:
    return json.dumps(dict(value or {}), sort_keys=True, ensure_ascii=False, default=_plain)


def run_id(run: Run) -> str:
    """Make the id of a run from its name, level, provenance and ranking.

    >>> import numpy as np
    >>> from memlab.records import run_from_scores
    >>> from memlab.store.runs import run_id
    >>> run = run_from_scores(np.array(["q"]), np.array(["d"]), np.array([1.0]), level="turn", k=1)
    >>> run_id(run) == run_id(run), len(run_id(run))
    (True, 16)
    """
    digest = hashlib.sha256("\x1f".join((run.name, run.level, _json(run.provenance))).encode())
    digest.update(run.frame.select(*RUN_SCHEMA).write_csv().encode())
    return digest.hexdigest()[:16]


def save(store: MemoryStore, run: Run, *, measures: Mapping[str, Any] | None, now: datetime) -> str:
    """Keep a run; see :meth:`memlab.store.MemoryStore.save_run`."""
    id_ = run_id(run)
    before = read(store.table("runs"), ["measures", "saved_at"], where=_of(id_)).rows(named=True)
    if before and (measures is None or before[0]["measures"] == _json(measures)):
        return id_
    provenance = _json(run.provenance)
    queries = run.frame.group_by("query_id", maintain_order=True).agg("doc_id", "rank", "score")
    if not before:
        ranked = queries.with_row_index("position").with_columns(
            pl.col("position").cast(pl.Int64), run_id=pl.lit(id_), key=pl.lit(f"{id_}/") + pl.col("query_id")
        )
        merge(store.table("rankings"), to_arrow(ranked, arrow_schema(SCHEMAS["rankings"])))
    row = {
        "key": id_,
        "run_id": id_,
        "name": run.name,
        "level": run.level,
        "provenance": provenance,
        "measures": _json(measures),
        "queries": queries.height,
        "rows": run.frame.height,
        "saved_at": before[0]["saved_at"] if before else now,
    }
    # After the rankings: a run that is listed is whole.
    merge(store.table("runs"), to_arrow(pl.DataFrame([row], schema=SCHEMAS["runs"]), arrow_schema(SCHEMAS["runs"])))
    pin_run(store, id_, json.loads(provenance))
    return id_


def listing(store: MemoryStore) -> pl.DataFrame:
    """List runs; see :meth:`memlab.store.MemoryStore.runs`."""
    columns = [c for c in SCHEMAS["runs"] if c != "key"]
    return read(store.table("runs"), columns).sort("saved_at", "run_id", descending=[True, False])


def load(store: MemoryStore, id_: str) -> Run:
    """Read a run; see :meth:`memlab.store.MemoryStore.run`."""
    rows = read(store.table("runs"), ["name", "level", "provenance"], where=_of(id_)).rows(named=True)
    if not rows:
        raise StoreError(f"store {store.uri} has no run {id_!r}; store.runs() lists those it has")
    ranked = read(store.table("rankings"), ["position", *RUN_SCHEMA], where=_of(id_)).sort("position")
    frame = ranked.explode("doc_id", "rank", "score").select(*RUN_SCHEMA)
    return Run(frame, rows[0]["level"], name=rows[0]["name"], provenance=json.loads(rows[0]["provenance"]))


def _of(id_: str) -> Any:
    from lancedb.expr import col, lit

    return col("run_id") == lit(id_)


def save_grid(store: MemoryStore, name: str, content: Mapping[str, Any], *, now: datetime) -> None:
    """Keep which runs stand in a comparison; one of the same name is replaced, its runs stay."""
    row = pl.DataFrame([{"key": name, "content": _json(content), "saved_at": now}], schema=GRIDS)
    with guarded(f"saving grid {name!r}", store.uri):
        merge(open_table(store.database, "grids", arrow_schema(GRIDS)), to_arrow(row, arrow_schema(GRIDS)))


def load_grid(store: MemoryStore, name: str) -> dict[str, Any]:
    """Read what :func:`save_grid` kept.

    :raises StoreError: when there is no comparison of that name.
    """
    with guarded("reading grids", store.uri):
        there = "grids" in store.table_names()
        held = read(store.database.open_table("grids"), ["key", "content"]).rows() if there else []
    known = dict(sorted(held))
    if name not in known:
        raise StoreError(f"store {store.uri} has no grid {name!r}; it has: {', '.join(known) or 'none'}")
    content: dict[str, Any] = json.loads(known[name])
    return content


def overview(store: MemoryStore) -> str:
    """Show the datasets, tables, encoders and tags of a store as HTML, escaped."""
    versions = store.versions()
    counts = [(name, f"{store.table(name).count_rows():,}", versions.get(name, "")) for name in SCHEMAS]
    encoders = [n.removeprefix("embeddings_") for n in store.table_names() if n.startswith("embeddings_")]
    view = " (read-only view)" if store.read_only else ""
    lines = [f"encoders: {', '.join(encoders) or 'none'}", f"tags: {', '.join(tags(store)) or 'none'}"]
    held = store.datasets()
    return (
        f"<p>{html.escape(f'Memory store {store.uri}{view}')}</p>"
        + _table(held.columns, held.rows())
        + _table(("table", "rows", "version"), counts)
        + "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    )


def _table(head: Any, rows: Any) -> str:
    def line(cells: Any, mark: str) -> str:
        return "<tr>" + "".join(f"<{mark}>{html.escape(str(c))}</{mark}>" for c in cells) + "</tr>"

    return "<table>" + line(head, "th") + "".join(line(row, "td") for row in rows) + "</table>"
