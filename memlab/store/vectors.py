"""Vectors: the cache of what was encoded, and a column of the turns for each encoder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.base import Encoder, check_texts, some_direction
from memlab.embed.text import turn_texts
from memlab.errors import StoreError
from memlab.records import Turn, schema
from memlab.store.caches import Cache
from memlab.store.database import Database, Part, in_parts
from memlab.store.opening import add_columns
from memlab.store.reading import PRESENT, entry, read_rows
from memlab.store.schemas import text_hashes

CACHE_CHUNK = 1024
"""Texts that an encoder is asked for at a time: about ten seconds of a small model on two cores."""

_FILL_BYTES = 1 << 28


def column_name(encoder: Encoder, header: Sequence[str] = ()) -> str:
    """Name the column of ``turns`` that holds the vectors of an encoder, and of a header if one stands before the text.

    >>> from memlab.embed import load
    >>> from memlab.store.vectors import column_name
    >>> column_name(load("hashing:64")).startswith("vector_")
    True
    """
    suffix = f"_{text_hashes(['|'.join(header)])[0][:8]}" if header else ""
    return f"vector_{encoder.identity.key}{suffix}"


def check_vectors(vectors: np.ndarray, *, dim: int, what: str, n: int | None = None) -> np.ndarray:
    """Give vectors as contiguous float32 after checking their shape and that every number is finite.

    :raises StoreError: naming the first row that is wrong.
    """
    checked = np.ascontiguousarray(vectors, dtype=np.float32)
    if checked.ndim != 2 or checked.shape[1] != dim or n not in (None, len(checked)):
        rows = "n" if n is None else n
        raise StoreError(
            f"{what}: vectors have shape {checked.shape}; expected ({rows}, {dim}): encode with the same encoder"
        )
    bad = np.flatnonzero(~np.isfinite(checked).all(axis=1))
    if bad.size:
        raise StoreError(
            f"{what}: row {bad[0]} holds NaN or infinity ({bad.size} of {len(checked)} rows); expected finite numbers"
        )
    return checked


def encode(
    database: Database, encoder: Encoder, texts: Iterable[str], *, kind: str, progress: bool
) -> tuple[np.ndarray, int]:
    """Encode texts through the cache.

    :returns: (n, dim) float32, and how many texts the encoder was asked for.
    """
    checked, what = check_texts(texts, kind), f"encoder {encoder.identity.key}"

    def make(places: list[int]) -> pl.DataFrame:
        asked = [checked[place] for place in places]
        made = encoder.encode(asked, kind=kind, progress=False)  # type: ignore[arg-type]
        vectors = check_vectors(made, dim=encoder.dim, what=what, n=len(asked))
        if kind == "document":
            some_direction(vectors, of=what)
        return pl.Series("vector", vectors, dtype=pl.Array(pl.Float32, encoder.dim)).to_frame()

    cache = Cache(database, "embeddings", encoder.identity.key, width=encoder.dim)
    if cache.table is not None and (width := cache.table.schema.field("vector").type.list_size) != encoder.dim:
        raise StoreError(f"{what}: vectors of {width} dimensions are in the store, the encoder gives {encoder.dim}")
    keys, step = text_hashes(f"{kind}:{text}" for text in checked), getattr(encoder, "together", CACHE_CHUNK)
    rows, made = cache.fill(keys, make, step=step, progress=progress)
    vectors = rows["vector"].to_numpy(writable=True) if rows.height else np.empty((0, encoder.dim), np.float32)
    return np.ascontiguousarray(vectors), made


def _strings(texts: pl.Series) -> Any:
    import pyarrow as pa

    return texts.to_arrow().cast(pa.string())


def _vector_array(vectors: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


class Vectors(Part):
    """The vectors of a store's turns: ``store.vectors``."""

    column = staticmethod(column_name)

    def backfill(
        self,
        encoder: Encoder,
        dataset: str,
        *,
        header: Sequence[str] = (),
        scopes: Iterable[str] | None = None,
        progress: bool = True,
    ) -> int:
        """Give every turn of a dataset a current vector of this encoder; only what is missing or stale is written.

        :param header: fields put before the text of each turn; see :func:`memlab.embed.text.turn_texts`.
        :param scopes: only the turns of these.
        :returns: how many texts the encoder had to encode; the others came from the cache.
        """
        database = self.database
        with database.guarded(f"filling vectors of {dataset!r}", writes="backfill"):
            entry(database, dataset)
            column = _make_column(database, encoder, header)
            turns = _turns(database, dataset, header, scopes, [_embedded(column)], at=PRESENT)
            missing = turns.filter(pl.col(_embedded(column)).ne_missing(pl.col("hash")))
        asked = 0
        for chunk in missing.iter_slices(max(1, _FILL_BYTES // (4 * encoder.dim))):
            vectors, new = encode(database, encoder, chunk["content"].to_list(), kind="document", progress=progress)
            asked += new
            with database.guarded(f"filling {column} of {dataset!r}"):
                _write_column(database, column, chunk, vectors)
        return asked

    def read(
        self, encoder: Encoder, dataset: str, *, header: Sequence[str] = (), scopes: Iterable[str] | None = None
    ) -> np.ndarray:
        """Read the vectors of a dataset's turns, in the order of :meth:`memlab.store.MemoryStore.turns`.

        :param scopes: only of the turns of these.
        :returns: (n, dim) float32, contiguous.
        :raises StoreError: when a turn has no current vector of this encoder.
        """
        database, column = self.database, column_name(encoder, header)
        entry(database, dataset)
        call = f"store.vectors.backfill(encoder, {dataset!r}" + (f", header={tuple(header)!r})" if header else ")")
        if column not in database.table("turns").schema.names:
            raise StoreError(f"store {database.uri} has no vectors of {encoder.identity.key}; run {call}")
        rows = _turns(database, dataset, header, scopes, [_embedded(column), column])
        if stale := rows[_embedded(column)].ne_missing(rows["hash"]).sum():
            raise StoreError(
                f"{stale:,} of {rows.height:,} turns of {dataset!r} have no current vector of "
                f"{encoder.identity.key} in store {database.uri}; run {call}"
            )
        out = rows[column].to_numpy() if rows.height else np.empty((0, encoder.dim))
        return check_vectors(out, dim=encoder.dim, what=f"column {column} of {dataset!r} in store {database.uri}")


def _embedded(column: str) -> str:
    """Name the column that says of which text a vector is: a vector of another text is never used."""
    return "embedded_" + column.removeprefix("vector_")


def _make_column(database: Database, encoder: Encoder, header: Sequence[str]) -> str:
    import pyarrow as pa

    column, vector = column_name(encoder, header), pa.list_(pa.float32(), encoder.dim)
    add_columns(database, "turns", [pa.field(column, vector), pa.field(_embedded(column), pa.string())])
    return column


def _turns(
    database: Database,
    dataset: str,
    header: Sequence[str],
    scopes: Iterable[str] | None,
    columns: list[str],
    *,
    at: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """Read columns of turns, with ``content``, the text under the header, and ``hash``, that of this text."""
    wanted = ["key", "content", "content_hash", *columns, *(schema(Turn) if header else ())]
    rows = read_rows(database, "turns", dataset, scopes=scopes, columns=wanted, at=at)
    if not header:
        return rows.with_columns(hash="content_hash")
    texts = pl.Series(turn_texts(rows.select(*schema(Turn)), header=tuple(header)), dtype=pl.String)
    return rows.with_columns(content=texts, hash=pl.Series(text_hashes(texts), dtype=pl.String))


def _write_column(database: Database, column: str, rows: pl.DataFrame, vectors: np.ndarray) -> None:
    import pyarrow as pa

    table = database.table("turns")
    key, content, text = (_strings(rows[name]) for name in ("key", "content_hash", "hash"))
    fields = [table.schema.field(name) for name in ("key", "content_hash", column, _embedded(column))]
    source = in_parts(pa.table([key, content, _vector_array(vectors), text], schema=pa.schema(fields)))
    builder = table.merge_insert("key").use_index(False)
    # Not onto a turn that was rewritten since its text was read.
    builder = builder.when_matched_update_all(where="target.content_hash = source.content_hash")
    database.retried(lambda: builder.execute(source))
