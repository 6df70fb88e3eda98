"""Caches: what an encoder gave for a text, by the hash of the text, in a table for each encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import polars as pl

from memlab.store.database import Database, in_parts
from memlab.store.schemas import TABLES, matching

LOOKUP = 4000
"""Keys up to which the database looks for each; for more, every row of a cache is read."""


class Cache:
    """One cache of a store; one that cannot be made or written remembers nothing, with a warning.

    :param family: ``embeddings`` or ``tokens``.
    :param key: of the encoder's identity.
    :param width: of the vectors.
    """

    def __init__(self, database: Database, family: str, key: str, *, width: int = 0) -> None:
        self.database, self.family, self.table = database, family, cast(Any, None)
        name = f"{family}_{key}"
        if not database.read_only or name in database.names():
            with database.remembering(family):
                self.table = database.table(name, TABLES[family].arrow(width=width))

    def read(self, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Give the rows that have one of some keys, part by part; two writers may have written one of them twice."""
        if self.table is None or not len(keys):
            return
        with self.database.guarded(f"reading the cache of {self.family}"):
            query = self.table.search()
            if len(keys) <= LOOKUP:
                query = query.where(matching(key=keys))
            wanted = pl.col("key").is_in(pl.Series(keys, dtype=pl.String).implode())
            for batch in query.to_batches():
                yield cast(pl.DataFrame, pl.from_arrow(batch)).filter(wanted)

    def remember(self, *columns: Any) -> None:
        """Append rows, given by column."""
        import pyarrow as pa

        if self.table is not None and not self.database.read_only:
            with self.database.remembering(self.family):
                rows = in_parts(pa.table(list(columns), schema=self.table.schema))
                self.database.retried(lambda: self.table.add(rows))
