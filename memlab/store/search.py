"""Indexes, and search through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from memlab.errors import StoreError
from memlab.store.tables import in_dataset, read
from memlab.store.vectors import check_vectors

if TYPE_CHECKING:
    from memlab.store.memory import MemoryStore

INDEXED_SCOPE = 100_000
"""Turns of one scope from which a vector index pays. Below it, comparing every vector of the scope is as fast (75,000
turns, 384-d, two cores: 12 ms a query, 10 ms through the index) and misses nothing."""

OVER_FETCH = 2
_FOUND = {"query": pl.Int32(), "doc_id": pl.String(), "score": pl.Float64(), "position": pl.Int64()}


def create_indexes(store: MemoryStore, column: str | None) -> pl.DataFrame:
    """Make indexes; see :meth:`memlab.store.MemoryStore.create_indexes`."""
    from lancedb.index import FTS, Bitmap, BTree, IvfFlat

    table = store.table("turns")
    there = {index.columns[0] for index in table.list_indices()}
    rows = []
    wanted: list[tuple[str, Any]] = [("content", FTS()), ("scope", BTree()), ("dataset", Bitmap())]
    for name, config in wanted:
        if name not in there:
            table.create_index(name, config=config)
        rows.append((name, type(config).__name__, "there" if name in there else "made"))
    if column is not None:
        dim(store, column)
        largest = max(scope_sizes(store).values(), default=0)
        if column in there:
            made = "there"
        elif largest < INDEXED_SCOPE:
            made = f"left out: the largest scope has {largest:,} turns, it pays from {INDEXED_SCOPE:,}"
        else:
            # Flat within a partition: distances are exact, which those of quantised indexes are not.
            table.create_index(column, config=IvfFlat(distance_type="cosine"))
            made = "made"
        rows.append((column, "IvfFlat", made))
    return pl.DataFrame(rows, schema=["column", "index", "made"], orient="row")


def scope_sizes(store: MemoryStore) -> dict[tuple[str, str], int]:
    """Count the turns of each (dataset, scope)."""
    sizes = read(store.table("turns"), ["dataset", "scope"]).group_by("dataset", "scope").len()
    return {(dataset, scope): n for dataset, scope, n in sizes.iter_rows()}


def dim(store: MemoryStore, column: str) -> int:
    """Give the width of a vector column.

    :raises StoreError: when there is no such column.
    """
    import pyarrow as pa

    held = store.table("turns").schema
    if column not in held.names or not pa.types.is_fixed_size_list(held.field(column).type):
        there = [f.name for f in held if pa.types.is_fixed_size_list(f.type)]
        raise StoreError(
            f"store {store.uri} has no vector column {column!r}; it has: {', '.join(there) or 'none'}. "
            "Run store.backfill(encoder, dataset)"
        )
    return int(held.field(column).type.list_size)


def _check(queries: int, scopes: list[str], k: int) -> None:
    if len(scopes) != queries:
        raise StoreError(f"{queries} queries have {len(scopes)} scopes; expected one scope for each query")
    if k < 1:
        raise StoreError(f"k is {k}; expected at least 1")


def search_vectors(
    store: MemoryStore, vectors: np.ndarray, *, column: str, dataset: str, scopes: list[str], k: int, exact: bool
) -> pl.DataFrame:
    """Search by vector; see :meth:`memlab.store.MemoryStore.search_vectors`."""
    queries = check_vectors(vectors, dim=dim(store, column), what=f"queries on {column}")
    _check(len(queries), scopes, k)
    table = store.table("turns")
    indexed = not exact and any(index.columns == [column] for index in table.list_indices())
    sizes = scope_sizes(store) if indexed else {}
    found = []
    for scope, rows in pl.DataFrame({"scope": scopes}).with_row_index("row").group_by("scope", maintain_order=True):
        query = table.search(queries[rows["row"].to_numpy()], vector_column_name=column)
        query = query.distance_type("cosine").where(in_dataset(dataset, [scope[0]])).limit(OVER_FETCH * k)
        if sizes.get((dataset, scope[0]), 0) < INDEXED_SCOPE:
            query = query.bypass_vector_index()
        hits = cast(pl.DataFrame, pl.from_arrow(query.select(["turn_id", "_distance", "position"]).to_arrow()))
        if "query_index" not in hits.columns:  # one query alone has none
            hits = hits.with_columns(query_index=pl.lit(0, pl.Int32))
        place = rows["row"].gather(hits["query_index"])
        found.append(
            hits.select(place.alias("query"), doc_id="turn_id", score=1.0 - pl.col("_distance"), position="position")
        )
    return _best(found, k)


def search_text(store: MemoryStore, texts: list[str], *, dataset: str, scopes: list[str], k: int) -> pl.DataFrame:
    """Search by words; see :meth:`memlab.store.MemoryStore.search_text`."""
    from lancedb.query import MatchQuery

    _check(len(texts), scopes, k)
    table = store.table("turns")
    if not any(index.columns == ["content"] for index in table.list_indices()):
        raise StoreError(f"store {store.uri} has no full-text index; run store.create_indexes()")
    found = []
    for row, (text, scope) in enumerate(zip(texts, scopes, strict=True)):
        query = table.search(MatchQuery(text, "content"), query_type="fts")  # type: ignore[call-arg]
        query = query.where(in_dataset(dataset, [scope]))
        query = query.limit(OVER_FETCH * k + 50).select(["turn_id", "_score", "position"])
        hits = cast(pl.DataFrame, pl.from_arrow(query.to_arrow()))
        found.append(hits.select(query=pl.lit(row), doc_id="turn_id", score="_score", position="position"))
    return _best(found, k)


def _best(found: list[pl.DataFrame], k: int) -> pl.DataFrame:
    """Keep the first k of each query: best score first, ties in the dataset's order, whatever the database's order.

    Never by id: in some benchmarks an id gives the label away.
    """
    hits = pl.concat([pl.DataFrame(schema=_FOUND), *(f.cast(pl.Schema(_FOUND)) for f in found)])
    ordered = hits.drop_nulls("score").sort("query", "score", "position", descending=[False, True, False])
    return ordered.group_by("query", maintain_order=True).head(k).drop("position")
