"""Caches: what an encoder gave for a text, by the hash of the text, in a table for each encoder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

from memlab.store.database import Database, split_arrow_table
from memlab.store.schemas import TABLES, build_row_filter

LOOKUP = 20_000
"""Keys up to which the database looks for each; for more, every row of a cache is read."""

KEEP_SECONDS, KEEP_TEXTS = 5.0, 16_384
"""When what was made is written, between two chunks: every write is a version and a file. A kill can lose that."""


class Cache:
    """One cache of a store; one that cannot be made or written remembers nothing, with a warning.

    :param family: ``embeddings`` or ``tokens``.
    :param key: of the encoder's identity.
    :param width: of the vectors.
    """

    def __init__(self, database: Database, family: str, key: str, *, width: int = 0) -> None:
        self.database, self.name = database, f"{family}_{key}"
        self.table: Any = None
        if not database.read_only or self.name in database.names():
            with database.remembering(family):
                self.table = database.table(self.name, TABLES[family].arrow(width=width))

    def fill(
        self, keys: Sequence[str], make: Callable[[list[int]], pl.DataFrame], *, step: int, progress: bool
    ) -> tuple[pl.DataFrame, int]:
        """Give the rows of keys, in their order; what is not there yet is made, some rows at a time, and remembered.

        :param make: makes the other columns for some of the keys, given by their places.
        :returns: the rows, and how many were made.
        """
        from tqdm.auto import tqdm

        asked = pl.DataFrame({"key": keys}, schema={"key": pl.String})
        unique = asked.with_row_index("place").unique("key", keep="first", maintain_order=True)
        parts = list(self._read(unique["key"]))
        found = pl.concat([asked.clear(), *(part.select("key") for part in parts)])
        missing = unique.join(found, on="key", how="anti", maintain_order="left")
        new, began, few = list[pl.DataFrame](), time.monotonic(), not progress or missing.height < 256
        with tqdm(total=missing.height, desc=self.name.replace("_", " of ", 1), unit=" texts", disable=few) as bar:
            try:
                for chunk in missing.iter_slices(step):
                    if chunk.height:
                        new.append(chunk.select("key").hstack(make(chunk["place"].to_list())))
                        parts.append(new[-1])
                    bar.update(chunk.height)
                    if sum(map(len, new)) >= KEEP_TEXTS or time.monotonic() - began >= KEEP_SECONDS:
                        self._remember(new)
                        new, began = [], time.monotonic()
            finally:
                self._remember(new)
        # Two writers may have written the same key.
        rows = pl.concat(parts).unique("key", keep="any") if parts else asked
        return asked.join(rows, on="key", how="left", maintain_order="left"), missing.height

    def _read(self, keys: pl.Series) -> Iterator[pl.DataFrame]:
        if self.table is None or keys.is_empty():
            return
        with self.database.guarded(f"reading the cache {self.name}"):
            query = self.table.search()
            if len(keys) <= LOOKUP:
                query = query.where(build_row_filter(key=keys))
            for batch in query.to_batches():
                yield pl.DataFrame(batch).filter(pl.col("key").is_in(keys.implode()))

    def _remember(self, parts: list[pl.DataFrame]) -> None:
        if parts and self.table is not None and not self.database.read_only:
            with self.database.remembering(self.name):
                rows = split_arrow_table(pl.concat(parts).to_arrow().cast(self.table.schema))
                self.database.retried(lambda: self.table.add(rows))
