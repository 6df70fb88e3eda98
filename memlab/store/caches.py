"""The rows of caches: read by key, appended, and found to be of no use: written twice, or of texts that are gone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import polars as pl

from memlab.embed.base import KINDS
from memlab.embed.text import query_texts, session_texts, turn_texts
from memlab.records import Question, Session, Turn, schema
from memlab.store.database import Database, in_parts
from memlab.store.registry import TABLES, matching, text_hashes

LOOKUP = 4000
"""Keys up to which the database looks for each; for more, every row of a cache is read."""

_STEP = 10_000


def read(cache: Any, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Give the rows of a cache that have one of some keys, part by part."""
    query = cache.search()
    if len(keys) <= LOOKUP:
        query = query.where(matching(key=keys))
    wanted = pl.col("key").is_in(pl.Series(keys, dtype=pl.String).implode())
    return (cast(pl.DataFrame, pl.from_arrow(batch)).filter(wanted) for batch in query.to_batches())


def remember(database: Database, cache: Any, *columns: Any) -> None:
    """Append to a cache. Two writers may append the same text twice: what it gives is the same, so no harm."""
    import pyarrow as pa

    rows = in_parts(pa.table(list(columns), schema=cache.schema))
    database.retried(lambda: cache.add(rows))


def referenced(database: Database) -> pl.Series:
    """Give the keys of all texts of a store that an encoder may be asked for, as the cache of vectors names them.

    Turns, sessions and questions with each header that a column of vectors has, and whatever else is text in a table.
    """
    fields = [f for f in database.table("turns").schema if f.name.startswith("vector_")]
    headers = {tuple(json.loads((f.metadata or {}).get(b"memlab.header", b"[]"))) for f in fields} | {()}
    turns, sessions, questions = (
        database.read(name, ["dataset", *schema(row)])
        for name, row in (("turns", Turn), ("sessions", Session), ("questions", Question))
    )
    parts = [pl.Series(dtype=pl.String)]
    for (dataset,), own in turns.group_by("dataset"):
        of, asked = (table.filter(dataset=dataset) for table in (sessions, questions))
        for header in headers:
            texts = [*turn_texts(own, header=header), *session_texts(own, of, header=header)]
            parts.append(pl.Series([*texts, *query_texts(asked, own, header=header)], dtype=pl.String))
    for name in set(TABLES).intersection(database.names()):
        of_text = (pl.String(), pl.List(pl.String())) if TABLES[name].row else ()
        columns = [c for c, kind in TABLES[name].columns.items() if kind in of_text and c != "key"]
        rows = database.read(name, columns) if columns else pl.DataFrame()
        parts += [column.explode() if column.dtype == pl.List else column for column in rows]
    whole = pl.concat(parts).drop_nulls().unique()
    return pl.Series(text_hashes(f"{kind}:{text}" for kind in KINDS for text in whole), dtype=pl.String)


def unused(table: Any, wanted: pl.Series | None) -> list[int]:
    """Give the rows of a cache that another row repeats, or whose text nothing holds.

    :param wanted: the keys that are held; ``None`` looks for repeated rows alone.
    """
    rows = table.search().select(["key"]).with_row_id(True).to_polars()
    kept = pl.col("key").is_first_distinct()
    if wanted is not None:
        kept &= pl.col("key").is_in(wanted.implode())
    doomed: list[int] = rows.sort("_rowid").filter(~kept)["_rowid"].to_list()
    return doomed


def drop(database: Database, table: Any, rows: list[int]) -> None:
    """Delete rows of a cache."""
    for at in range(0, len(rows), _STEP):
        some = ", ".join(map(str, rows[at : at + _STEP]))
        database.retried(lambda some=some: table.delete(f"_rowid IN ({some})"))  # type: ignore[misc]
