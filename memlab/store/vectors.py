"""Vectors: the cache of what was encoded, and a column of the turns for each encoder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import StoreError
from memlab.records import Turn, schema
from memlab.store.ingest import text_hashes
from memlab.store.reading import read_rows
from memlab.store.tables import arrow_schema, guarded, in_dataset, open_table, retried

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store.memory import MemoryStore

CACHE_CHUNK = 1024
"""Texts that an interruption can lose: about ten seconds of a small model on two cores."""

_LOOKUP = 4000
_BACKFILL_BYTES = 1 << 28


def column_name(encoder: Encoder, header: Sequence[str] = ()) -> str:
    """Give the name of the vector column of an encoder, and of a header where one is put before the text.

    >>> from memlab.embed import load
    >>> from memlab.store.vectors import column_name
    >>> column_name(load("hashing:64")).startswith("vector_")
    True
    """
    suffix = f"_{text_hashes(['|'.join(header)])[0][:8]}" if header else ""
    return f"vector_{encoder.identity.key}{suffix}"


def check_vectors(vectors: np.ndarray, *, dim: int, what: str) -> np.ndarray:
    """Give vectors as contiguous float32 after checking their width and that every number is finite.

    :raises StoreError: naming the first row that is wrong.
    """
    held = np.ascontiguousarray(vectors, dtype=np.float32)
    if held.ndim != 2 or held.shape[1] != dim:
        raise StoreError(f"{what}: vectors have shape {held.shape}; expected (n, {dim}): encode with the same encoder")
    bad = np.flatnonzero(~np.isfinite(held).all(axis=1))
    if bad.size:
        raise StoreError(
            f"{what}: row {bad[0]} holds NaN or infinity ({bad.size} of {len(held)} rows); expected finite numbers"
        )
    return held


def encode(
    store: MemoryStore, encoder: Encoder, texts: Iterable[str], *, kind: str, progress: bool
) -> tuple[np.ndarray, int]:
    """Encode texts through the cache.

    :returns: (n, dim) float32, and how many texts the encoder was asked for.
    """
    from tqdm import tqdm

    from memlab.embed.base import check_texts

    held = check_texts(texts, kind)
    wanted = pl.DataFrame({"key": text_hashes(f"{kind}:{text}" for text in held)}, schema={"key": pl.String()})
    wanted = wanted.with_row_index("row")
    out = np.empty((len(held), encoder.dim), dtype=np.float32)
    cache = _cache(store, encoder)
    found = np.zeros(len(held), dtype=bool)
    if cache is not None and held:
        with guarded("reading the vector cache", store.uri):
            found = _fill(cache, wanted, out)
    missing = wanted.filter(~pl.Series(found)).group_by("key", maintain_order=True).agg("row")
    label = f"encode {encoder.identity.key}"
    with tqdm(total=missing.height, desc=label, unit=" texts", disable=not progress or missing.height < 256) as bar:
        for chunk in missing.iter_slices(CACHE_CHUNK):
            asked = [held[rows[0]] for rows in chunk["row"]]
            made = encoder.encode(asked, kind=kind, progress=False)  # type: ignore[arg-type]
            vectors = check_vectors(made, dim=encoder.dim, what=f"encoder {encoder.identity.key}")
            if len(vectors) != len(asked):
                raise StoreError(f"encoder {encoder.identity.key} gave {len(vectors)} vectors for {len(asked)} texts")
            if cache is not None and not store.read_only:
                _remember(store, cache, chunk["key"], vectors)
            places = chunk.with_row_index("made").explode("row")
            out[places["row"].to_numpy()] = vectors[places["made"].to_numpy()]
            bar.update(len(asked))
    return out, missing.height


def _cache(store: MemoryStore, encoder: Encoder) -> Any:
    """Open the cache table of an encoder; ``None`` in a view where there is none yet."""
    import pyarrow as pa

    name = f"embeddings_{encoder.identity.key}"
    about = {"memlab.encoder": json.dumps(asdict(encoder.identity), ensure_ascii=False, default=str)}
    vector = pa.field("vector", pa.list_(pa.float32(), encoder.dim), nullable=False)
    shape = arrow_schema({"key": pl.String()}).append(vector).with_metadata(about)
    with guarded("opening the vector cache", store.uri):
        if store.read_only and name not in store.table_names():
            return None
        table = open_table(store.database, name, shape)
        width = table.schema.field("vector").type.list_size
    if width != encoder.dim:
        made_by = (table.schema.metadata or {}).get(b"memlab.encoder", b"another encoder").decode()
        raise StoreError(
            f"table {name} of store {store.uri} holds {width}-d vectors of {made_by}; encoder "
            f"{encoder.identity} gives {encoder.dim}-d: use the encoder that made it, or another store"
        )
    return table


def _fill(cache: Any, wanted: pl.DataFrame, out: np.ndarray) -> np.ndarray:
    """Copy the cached vectors of wanted keys into their rows; say which rows were there."""
    from lancedb.expr import col

    found = np.zeros(len(out), dtype=bool)
    query = cache.search().select(["key", "vector"])
    distinct = wanted["key"].unique().to_list()
    if len(distinct) <= _LOOKUP:
        query = query.where(col("key").isin(distinct))
    for batch in query.to_batches():
        there = pl.DataFrame({"key": pl.Series(batch.column("key"), dtype=pl.String)}).with_row_index("at")
        pairs = wanted.join(there, on="key")
        rows = pairs["row"].to_numpy()
        out[rows] = _matrix(batch.column("vector"), out.shape[1])[pairs["at"].to_numpy()]
        found[rows] = True
    return found


def _matrix(column: Any, dim: int) -> np.ndarray:
    """See an Arrow array of vectors without nulls as a matrix, without a copy."""
    flat: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, dim)


def _vector_array(vectors: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def _remember(store: MemoryStore, cache: Any, keys: pl.Series, vectors: np.ndarray) -> None:
    """Append vectors to the cache. Two writers may append the same text twice: the same vector, so no harm."""
    import pyarrow as pa

    rows = pa.table([keys.to_arrow().cast(pa.string()), _vector_array(vectors)], schema=cache.schema)
    with guarded("remembering vectors", store.uri):
        retried(lambda: cache.add(rows))


def backfill(store: MemoryStore, encoder: Encoder, dataset: str, *, header: Sequence[str], progress: bool) -> int:
    """Fill the vector column of a dataset; see :meth:`memlab.store.MemoryStore.backfill`."""
    column = _vector_column(store, encoder, header)
    expected = _expected(store, dataset, header, column=column)
    missing = expected.filter(pl.col("embedded").ne_missing(pl.col("hash")))
    if not header and missing.height:
        content = read_rows(store, "turns", dataset, columns=["key", "content"])
        missing = missing.join(content.rename({"content": "text"}), on="key", maintain_order="left")
    made = 0
    for chunk in missing.iter_slices(max(1, _BACKFILL_BYTES // (4 * encoder.dim))):
        vectors, new = encode(store, encoder, chunk["text"], kind="document", progress=progress)
        made += new
        with guarded(f"filling {column} of {dataset!r}", store.uri):
            _write_column(store.table("turns"), column, chunk, vectors)
    return made


def _embedded(column: str) -> str:
    """Name the column that says of which text a vector is: a vector of another text is never used."""
    return "embedded_" + column.removeprefix("vector_")


def _vector_column(store: MemoryStore, encoder: Encoder, header: Sequence[str]) -> str:
    import pyarrow as pa

    column = column_name(encoder, header)
    table = store.table("turns")
    if column not in table.schema.names:
        about = {"memlab.encoder": str(encoder.identity), "memlab.header": json.dumps(list(header))}
        fields = [
            pa.field(column, pa.list_(pa.float32(), encoder.dim), metadata=about),
            pa.field(_embedded(column), pa.string()),
        ]
        with guarded(f"adding column {column}", store.uri):
            try:
                table.add_columns(fields)
            except (OSError, RuntimeError, ValueError):
                if column not in store.table("turns").schema.names:  # else another process added it
                    raise
    _check_width(store, encoder, column)
    return column


def _check_width(store: MemoryStore, encoder: Encoder, column: str) -> None:
    field = store.table("turns").schema.field(column)
    if field.type.list_size != encoder.dim:
        made_by = (field.metadata or {}).get(b"memlab.encoder", b"another encoder").decode()
        raise StoreError(
            f"column {column} of store {store.uri} holds {field.type.list_size}-d vectors of {made_by}; encoder "
            f"{encoder.identity} gives {encoder.dim}-d: use the encoder that made it, or another store"
        )


def _expected(store: MemoryStore, dataset: str, header: Sequence[str], *, column: str) -> pl.DataFrame:
    """Give, for each turn, the hash of its text with the header, and of which text its vector is."""
    from memlab.embed.text import turn_texts

    wanted = ["key", "content_hash", _embedded(column), *(schema(Turn) if header else ())]
    rows = read_rows(store, "turns", dataset, columns=wanted).rename({_embedded(column): "embedded"})
    if not header:
        return rows.select("key", "content_hash", "embedded", hash="content_hash")
    texts = turn_texts(rows.select(*schema(Turn)), header=tuple(header))
    made = {"text": pl.Series(texts, dtype=pl.String), "hash": pl.Series(text_hashes(texts), dtype=pl.String)}
    return rows.select("key", "content_hash", "embedded").with_columns(**made)


def _write_column(table: Any, column: str, rows: pl.DataFrame, vectors: np.ndarray) -> None:
    import pyarrow as pa

    target = arrow_schema({"key": pl.String(), "content_hash": pl.String()})
    target = target.append(pa.field(column, pa.list_(pa.float32(), vectors.shape[1])))
    target = target.append(pa.field(_embedded(column), pa.string()))
    strings = [rows[name].to_arrow().cast(pa.string()) for name in ("key", "content_hash", "hash")]
    source = pa.table([*strings[:2], _vector_array(vectors), strings[2]], schema=target)
    builder = table.merge_insert("key").use_index(False)
    # Not onto a turn that was rewritten since its text was read.
    builder = builder.when_matched_update_all(where="target.content_hash = source.content_hash")
    retried(lambda: builder.execute(source))


def vectors(store: MemoryStore, encoder: Encoder, dataset: str, *, header: Sequence[str]) -> np.ndarray:
    """Read the vectors of a dataset; see :meth:`memlab.store.MemoryStore.vectors`."""
    column = column_name(encoder, header)
    call = f"store.backfill(encoder, {dataset!r}" + (f", header={tuple(header)!r})" if header else ")")
    table = store.table("turns")
    if column not in table.schema.names:
        raise StoreError(f"store {store.uri} has no vectors of {encoder.identity.key}; run {call}")
    _check_width(store, encoder, column)
    expected = _expected(store, dataset, header, column=column)
    stale = expected.filter(pl.col("embedded").ne_missing(pl.col("hash"))).height
    if stale:
        raise StoreError(
            f"{stale:,} of {expected.height:,} turns of {dataset!r} have no current vector of "
            f"{encoder.identity.key} in store {store.uri}; run {call}"
        )
    out = np.empty((expected.height, encoder.dim), dtype=np.float32)
    with guarded(f"reading {column}", store.uri):
        _read_column(table, column, dataset=dataset, places=expected.select("key").with_row_index("row"), out=out)
    return check_vectors(out, dim=encoder.dim, what=f"column {column} of {dataset!r} in store {store.uri}")


def _read_column(table: Any, column: str, *, dataset: str, places: pl.DataFrame, out: np.ndarray) -> None:
    """Copy a column into a matrix batch by batch; each key goes to its row."""
    seen = np.zeros(len(out), dtype=bool)
    for batch in table.search().where(in_dataset(dataset)).select(["key", column]).to_batches():
        keys = pl.DataFrame({"key": pl.Series(batch.column("key"), dtype=pl.String)})
        row = keys.join(places, on="key", how="left", maintain_order="left")["row"]
        if row.null_count() or batch.column(column).null_count:
            raise StoreError(f"the turns of {dataset!r} were written while their vectors were read; read them again")
        out[row.to_numpy()] = _matrix(batch.column(column), out.shape[1])
        seen[row.to_numpy()] = True
    if not seen.all():
        raise StoreError(f"the turns of {dataset!r} were written while their vectors were read; read them again")
