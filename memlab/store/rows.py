"""Reading some rows of a large table by a column's values, without searching it each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import polars as pl

from memlab.store.database import Part
from memlab.store.registry import matching

LARGE = 100_000
"""Rows from which it is noted where the values of a column stand: 16 bytes a row, half a second for a million."""


class Rows(Part):
    """Rows of large tables by a column's values. Where these stand is looked up once for a version of the table."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self._known: dict[tuple[str, str], tuple[int, tuple[np.ndarray, np.ndarray] | None]] = {}

    def read(self, table: Any, column: str, values: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
        """Read columns of the rows that have one of some values, in no order."""
        asked, version = pl.Series(values, dtype=pl.String).unique(), table.version
        if self._known.get((table.name, column), (None, None))[0] != version:
            self._known[table.name, column] = version, _places(table, column)
        names, found = list(dict.fromkeys([*columns, column])), None
        if (places := self._known[table.name, column][1]) is not None:
            first, last = (np.searchsorted(places[0], asked.hash().to_numpy(), side=side) for side in ("left", "right"))
            parts = (places[1][start:end] for start, end in zip(first, last, strict=True))
            rows = np.concatenate([np.zeros(0, np.uint64), *parts])
            try:
                found = table.take_row_ids(rows.tolist()).select(names).to_arrow() if len(rows) else None
            except (OSError, RuntimeError, ValueError):
                if table.version == version:
                    raise
        if found is None or table.version != version:  # rows may have moved meanwhile
            found = table.search().where(matching(**{column: asked.to_list()})).select(names).to_arrow()
        frame = cast(pl.DataFrame, pl.from_arrow(found))
        return frame.filter(pl.col(column).is_in(asked.implode())).select(columns)


def _places(table: Any, column: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Give the hashes of a column's values in order, and the row of each; ``None`` for a table that is not large."""
    if table.count_rows() < LARGE:
        return None
    parts = []
    for batch in table.search().select([column]).with_row_id(True).to_batches():
        part = cast(pl.DataFrame, pl.from_arrow(batch))
        parts.append((part[column].hash().to_numpy(), part["_rowid"].to_numpy()))
    hashes, rows = (np.concatenate(own) for own in zip(*parts, strict=True))
    order = np.argsort(hashes)
    return hashes[order], rows[order]
