"""Vectors: a column of the turns for each encoder, in which LanceDB searches, and the cache of all
other texts.

A vector is kept once. What is encoded goes into the cache, a few seconds at a time, so that an
interrupted command goes on where it stopped; once a turn has its vector in the column, the cache
gives it up. A text that some turn has is read from the column, whoever asks for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.encoder import Encoder, check_nonzero_vectors, check_texts, for_storing
from memlab.embed.headers import header_of
from memlab.embed.turn_texts import turn_texts
from memlab.errors import StoreError
from memlab.store.caches import LOOKUP, Cache
from memlab.store.cleaning import clean_when_due
from memlab.store.database import Database, TableGroup, split_arrow_table
from memlab.store.dataset_rows import (
    CURRENT_VERSIONS,
    read_dataset_entry,
    read_finished_state,
    read_rows,
)
from memlab.store.schemas import build_row_filter, text_hashes

CACHE_CHUNK = 1024
"""Texts that an encoder is asked for at a time: about ten seconds of a small model on two cores."""

_FILL_BYTES = 1 << 28


def column_name(encoder: Encoder) -> str:
    """Name the column of ``turns`` that holds the vectors of an encoder.

    >>> from memlab.embed import load
    >>> from memlab.store.vectors import column_name
    >>> column_name(load("hashing:64")).startswith("vector_")
    True
    """
    return f"vector_{encoder.identity.key}"


def check_vectors(vectors: np.ndarray, *, dim: int, what: str, n: int | None = None) -> np.ndarray:
    """Give vectors as contiguous float32 after checking their shape and that every number is
    finite.

    :raises StoreError: naming the first row that is wrong.
    """
    checked = np.ascontiguousarray(vectors, dtype=np.float32)
    if checked.ndim != 2 or checked.shape[1] != dim or n not in (None, len(checked)):
        rows = "n" if n is None else n
        raise StoreError(
            f"{what}: vectors have shape {checked.shape}; expected ({rows}, {dim}): "
            "encode with the same encoder"
        )
    bad = np.flatnonzero(~np.isfinite(checked).all(axis=1))
    if bad.size:
        raise StoreError(
            f"{what}: row {bad[0]} holds NaN or infinity ({bad.size} of {len(checked)} rows)"
        )
    return checked


def encode_through_cache(
    database: Database,
    encoder: Encoder,
    texts: Iterable[str],
    *,
    kind: str,
    progress: bool,
    remember: bool = True,
) -> tuple[np.ndarray, int]:
    """Encode texts through the cache.

    :param remember: ``False`` reads the cache, and leaves it as it is.
    :returns: (n, dim) float32, and how many texts the encoder was asked for.
    """
    checked, what = check_texts(texts, kind), f"encoder {encoder.identity.key}"
    model = for_storing(encoder)

    def make(places: list[int]) -> pl.DataFrame:
        asked = [checked[place] for place in places]
        made = model.encode(asked, kind=kind, progress=False)
        vectors = check_vectors(made, dim=encoder.dim, what=what, n=len(asked))
        if kind == "document":
            check_nonzero_vectors(vectors, of=what)
        return pl.Series("vector", vectors, dtype=pl.Array(pl.Float32, encoder.dim)).to_frame()

    cache = Cache(database, "embeddings", encoder.identity.key, width=encoder.dim)
    if (
        cache.table is not None
        and (width := cache.table.schema.field("vector").type.list_size) != encoder.dim
    ):
        raise StoreError(
            f"{what}: vectors of {width} dimensions are in the store, "
            f"the encoder gives {encoder.dim}"
        )
    keys = cache_keys(checked, kind)

    def of_turns(missing: pl.DataFrame) -> pl.DataFrame:
        texts = [checked[place] for place in missing["place"]]
        hashed = missing.select("key", hash=pl.Series(text_hashes(texts), dtype=pl.String))
        there = _read_by_text(database, encoder, hashed["hash"])
        return hashed.join(there, on="hash").select("key", "vector")

    step = getattr(encoder, "together", None) or CACHE_CHUNK
    elsewhere = None
    if kind == "document" and not header_of(encoder):
        elsewhere = of_turns
    rows, made = cache.fill(
        keys, make, step=step, progress=progress, elsewhere=elsewhere, remember=remember
    )
    vectors = np.empty((0, encoder.dim), np.float32)
    if rows.height:
        vectors = rows["vector"].to_numpy(writable=True)
    return np.ascontiguousarray(vectors), made


def cache_keys(texts: Iterable[str], kind: str) -> list[str]:
    """Give the keys of texts in a cache of vectors."""
    return text_hashes(f"{kind}:{text}" for text in texts)


def _read_by_text(database: Database, encoder: Encoder, hashes: pl.Series) -> pl.DataFrame:
    """Give the vectors of texts that some turn has now, of whatever dataset: ``hash`` and
    ``vector``.

    Now, also in a view on earlier versions: a text has one vector.
    """
    column, of_text = column_name(encoder), _text_hash_column(column_name(encoder))
    found = pl.DataFrame(schema={"hash": pl.String, "vector": pl.Array(pl.Float32, encoder.dim)})
    if "turns" not in database.names():
        return found
    with database.guarded("reading turns"):
        table = database.connection.open_table("turns")
        if column not in table.schema.names:
            return found
        query = table.search().select([of_text, column])
        if len(hashes) <= LOOKUP:
            query = query.where(build_row_filter(**{of_text: hashes}))
        # Again where the files that were being read were cleaned away.
        batches = database.retried(lambda: [pl.DataFrame(batch) for batch in query.to_batches()])
    own = [batch.filter(pl.col(of_text).is_in(hashes.implode())) for batch in batches]
    rows = [part.select(hash=of_text, vector=column).drop_nulls() for part in own]
    return pl.concat([found, *rows]).unique("hash", keep="any")


def drop_copies(database: Database, key: str) -> int:
    """Take the vectors from a cache that the column of the turns has too; say how many.

    :param key: of the encoder's identity.
    """
    column, cache = f"vector_{key}", f"embeddings_{key}"
    if cache not in database.names() or column not in database.table("turns").schema.names:
        return 0
    of_text = _text_hash_column(column)
    turns = database.read("turns", ["content", "content_hash", of_text])
    current = turns.filter(pl.col("content_hash") == pl.col(of_text))
    before = int(database.table(cache).count_rows())
    _drop_cached(database, cache, current["content"])
    return before - int(database.table(cache).count_rows())


def _drop_cached(database: Database, cache: str, texts: pl.Series) -> None:
    """Take the vectors of texts from a cache."""
    if cache not in database.names():
        return
    keys = pl.Series(cache_keys(texts.unique(), "document"), dtype=pl.String)
    there = database.table(cache).search().select(["key"]).to_polars()["key"].unique()
    keys = keys.filter(keys.is_in(there.implode()))
    if len(keys) and len(keys) == len(there):
        # All of them, since the list of each would stand in the table's log. What another process
        # remembers at this moment may go too: it is encoded again when it is next asked for.
        database.retried(lambda: database.table(cache).delete("true"))
        return
    for start in range(0, len(keys), LOOKUP):
        database.delete(cache, key=keys[start : start + LOOKUP])


def _free_space(database: Database, cache: str) -> None:
    """Remove the files of vectors that a cache gave up; one who is reading them reads again."""
    if cache in database.names():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*removes every version except the latest.*")
            database.table(cache).optimize(cleanup_older_than=timedelta(0))


class Vectors(TableGroup):
    """The vectors of a store's turns: ``store.vectors``."""

    column = staticmethod(column_name)

    def backfill(
        self,
        encoder: Encoder,
        dataset: str,
        *,
        scopes: Iterable[str] | None = None,
        progress: bool = True,
    ) -> int:
        """Encode every turn of a dataset that has no current vector of this encoder.

        Vectors with the header of an encoder are kept in the cache alone: a column of the turns
        holds those of what the turns say.

        :param scopes: only the turns of these.
        :returns: how many texts the encoder had to encode; the others came from the cache.
        """
        database, column, asked = self.database, column_name(encoder), 0
        cache = f"embeddings_{encoder.identity.key}"
        read_dataset_entry(database, dataset)
        with database.guarded(f"filling vectors of {dataset!r}", writes="backfill"):
            if header_of(encoder):
                return self._through_cache(encoder, dataset, scopes, progress=progress)[1]
            _make_columns(database, column, encoder.dim)
            missing = self._read_missing(dataset, scopes, column)
            for chunk in missing.iter_slices(max(1, _FILL_BYTES // (4 * encoder.dim))):
                texts = chunk["content"].to_list()
                vectors, new = encode_through_cache(
                    database, encoder, texts, kind="document", progress=progress
                )
                asked += new
                if len(vectors):
                    _write_column(database, column, chunk, vectors)
                    _drop_cached(database, cache, chunk["content"])
            if missing.height:
                _free_space(database, cache)
                clean_when_due(database, ["turns"])
        return asked

    def _read_missing(
        self, dataset: str, scopes: Iterable[str] | None, column: str
    ) -> pl.DataFrame:
        """Read the turns without a current vector: ``key``, ``content`` and ``content_hash``."""
        of_text = _text_hash_column(column)
        how: dict[str, Any] = {"scopes": scopes, "at": CURRENT_VERSIONS}
        wanted = ["key", "content_hash", of_text]
        turns = read_rows(self.database, "turns", dataset, columns=wanted, **how)
        missing = turns.filter(pl.col(of_text).ne_missing(pl.col("content_hash"))).select("key")
        # Texts are most of what a long memory holds: only those that are encoded are read.
        said = ["key", "content", "content_hash"]
        if missing.height <= LOOKUP:
            texts = self.database.read("turns", said, key=missing["key"])
        else:
            texts = self.database.read("turns", said, dataset=dataset)
        return missing.join(texts, on="key", maintain_order="left")

    def read(
        self,
        encoder: Encoder,
        dataset: str,
        *,
        scopes: Iterable[str] | None = None,
    ) -> np.ndarray:
        """Give the vectors of a dataset's turns, in the order of
        :meth:`memlab.store.MemoryStore.turns`.

        They come from the column of the turns, with a header from the cache; what is in neither is
        encoded.

        :param scopes: only of the turns of these.
        :returns: (n, dim) float32, contiguous.
        """
        if header_of(encoder):
            return self._through_cache(encoder, dataset, scopes, progress=False)[0]
        database, column = self.database, column_name(encoder)
        of_text = _text_hash_column(column)
        only = None if scopes is None else list(scopes)

        def read(at: Mapping[str, int]) -> pl.DataFrame:
            names = ["content", "content_hash", "position", "key"]
            if database.has_column("turns", column, at=at.get("turns")):
                names += [of_text, column]
            return database.read("turns", names, at=at.get("turns"), dataset=dataset, scope=only)

        rows = read_finished_state(database, dataset, read)
        # Not the vectors: they are slow to sort.
        order = rows.select("position", "key").with_row_index("row").sort("position", "key")["row"]
        vectors = np.empty((rows.height, encoder.dim), np.float32)
        is_there = pl.repeat(False, rows.height, eager=True)
        if column in rows.columns:
            is_there = rows.select(
                (pl.col(of_text) == pl.col("content_hash")).fill_null(False)
                & pl.col(column).is_not_null()
            ).to_series()
            vectors[is_there.to_numpy()] = rows[column].filter(is_there).to_numpy()
        missing = rows["content"].filter(~is_there)
        if len(missing):
            made, _ = encode_through_cache(
                database, encoder, missing, kind="document", progress=False
            )
            vectors[~is_there.to_numpy()] = made
        return np.ascontiguousarray(vectors[order.to_numpy()])

    def _through_cache(
        self,
        encoder: Encoder,
        dataset: str,
        scopes: Iterable[str] | None,
        *,
        progress: bool,
    ) -> tuple[np.ndarray, int]:
        turns = read_rows(self.database, "turns", dataset, scopes=scopes)
        texts = turn_texts(turns, header=header_of(encoder))
        return encode_through_cache(
            self.database, encoder, texts, kind="document", progress=progress
        )


def _text_hash_column(column: str) -> str:
    """Name the column that says of which text a vector is; one of another text is not used."""
    return "embedded_" + column.removeprefix("vector_")


def _make_columns(database: Database, column: str, dim: int) -> None:
    """Give the turns an empty column for vectors, and one for the hashes of their texts."""
    import pyarrow as pa

    if column in database.table("turns").schema.names:
        return
    try:
        fields = [
            pa.field(column, pa.list_(pa.float32(), dim)),
            pa.field(_text_hash_column(column), pa.string()),
        ]
        database.table("turns").add_columns(fields)
    except (OSError, RuntimeError, ValueError):
        if column not in database.table("turns").schema.names:  # else another process added them
            raise


def _write_column(database: Database, column: str, rows: pl.DataFrame, vectors: np.ndarray) -> None:
    import pyarrow as pa

    table = database.table("turns")
    wide = rows.with_columns(
        pl.Series(column, vectors, dtype=pl.Array(pl.Float32, vectors.shape[1]))
    )
    wide = wide.with_columns(pl.col("content_hash").alias(_text_hash_column(column)))
    schema = pa.schema(
        [
            table.schema.field(name)
            for name in ("key", "content_hash", column, _text_hash_column(column))
        ]
    )
    source = split_arrow_table(wide.select(schema.names).to_arrow().cast(schema))
    builder = table.merge_insert("key").use_index(False)
    # Not onto a turn that was rewritten since its text was read.
    builder = builder.when_matched_update_all(where="target.content_hash = source.content_hash")
    database.retried(lambda: builder.execute(source))
