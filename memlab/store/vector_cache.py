"""Caches: what an encoder gave for a text, by the hash of the text, in a table for each encoder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.embed.encoder import Encoder, Kind, check_and_list_texts, encoder_for_storing
from memlab.embed.encoder_wrapper import token_encoder_of
from memlab.embed.token_vectors import TokenEncoder, TokenVectors, compress_tokens, concat_tokens
from memlab.progress_bars import progress_bar
from memlab.store.database import Database, TableGroup, rebatch_arrow_table
from memlab.store.table_schemas import TABLES, build_required_row_filter, hash_texts
from memlab.terminal_text import say_if_step_takes_long

if TYPE_CHECKING:
    from lancedb.table import Table as LanceTable

LOOKUP = 20_000
"""Keys up to which the database looks for each; for more, every row of a cache is read."""

KEEP_SECONDS = 5.0
KEEP_TEXTS = 16_384
"""When what was made is written, between two chunks: every write is a version and a file. A kill
can lose that."""

_SHOWN_FROM = 256  # texts of which the progress is shown
_WARMING = 8
_MEASURED = 32
"""Texts before the time is taken, and while it is."""


class Cache:
    """One cache of a store; one that cannot be made or written remembers nothing, with a warning.

    :param family: ``embeddings`` or ``tokens``.
    :param key: of the encoder's identity.
    :param width: of the vectors.
    """

    def __init__(
        self, database: Database, family: str, encoder_key: str, *, vector_width: int = 0
    ) -> None:
        self.database = database
        self.name = f"{family}_{encoder_key}"
        self.table: Any = None
        can_be_made = not database.read_only
        if can_be_made or self.name in database.table_names():
            with database.tolerating_cache_failure(family):
                self.table = database.open_or_create_table(
                    self.name, TABLES[family].arrow_schema(vector_width=vector_width)
                )

    def read_or_make_rows_and_count_made(
        self,
        keys: Sequence[str],
        make_rows: Callable[[list[int]], pl.DataFrame],
        *,
        chunk_size: int,
        progress: bool,
        read_elsewhere: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
        remember: bool = True,
    ) -> tuple[pl.DataFrame, int]:
        """Give the rows of keys, in their order; what is not there yet is made, some rows at a
        time, and remembered.

        :param make_rows: makes the other columns for some of the keys, given by their places.
        :param read_elsewhere: gives rows that are kept elsewhere, for ``place`` and ``key`` of
            those that are not here; they are not remembered.
        :param remember: ``False`` for what the caller keeps itself.
        :returns: the rows, and how many were made.
        """
        asked_keys = pl.DataFrame({"key": keys}, schema={"key": pl.String})
        distinct_keys = asked_keys.with_row_index("place").unique(
            "key", keep="first", maintain_order=True
        )
        known_parts = self._read_batches_of_keys(distinct_keys["key"])
        missing = distinct_keys
        for known_rows in known_parts:
            missing = missing.join(known_rows, on="key", how="anti", maintain_order="left")
        if missing.is_empty():
            read_elsewhere = None
        if read_elsewhere is not None:
            known_parts.append(read_elsewhere(missing))
            missing = missing.join(known_parts[-1], on="key", how="anti", maintain_order="left")
        new_rows = list[pl.DataFrame]()
        began_at = time.monotonic()
        shown_name = self.name.replace("_", " of ", 1)
        is_short = missing.height < _SHOWN_FROM
        disable = is_short or not progress
        with progress_bar(
            what=shown_name, total=missing.height, unit="texts", hidden=disable
        ) as text_bar:
            try:
                for missing_chunk in _slice_and_announce_long_encoding(
                    missing, chunk_size, shown_name, is_measured=not disable
                ):
                    if missing_chunk.height:
                        new_rows.append(
                            missing_chunk.select("key").hstack(
                                make_rows(missing_chunk["place"].to_list())
                            )
                        )
                        known_parts.append(new_rows[-1])
                    text_bar.update(missing_chunk.height)
                    if remember and _are_unsaved_rows_many_or_old(new_rows, began_at):
                        self._try_to_append_rows(new_rows)
                        new_rows = []
                        began_at = time.monotonic()
            finally:
                if remember:
                    self._try_to_append_rows(new_rows)
        known_vectors = asked_keys
        if known_parts:
            # Two writers may have written the same key.
            known_vectors = pl.concat(known_parts).unique("key", keep="any")
        return asked_keys.join(
            known_vectors, on="key", how="left", maintain_order="left"
        ), missing.height

    def _read_batches_of_keys(self, keys: pl.Series) -> list[pl.DataFrame]:
        if self.table is None or keys.is_empty():
            return []

        def read_wanted_batches() -> list[pl.DataFrame]:
            query = self.table.search()
            # To list most of the keys that there are takes longer than to read the others too.
            if len(keys) <= min(LOOKUP, self.table.count_rows() // 2):
                query = query.where(build_required_row_filter(key=keys))
            is_wanted = pl.col("key").is_in(keys.implode())
            return [pl.DataFrame(batch).filter(is_wanted) for batch in query.to_batches()]

        with self.database.translating_errors(f"reading the cache {self.name}"):
            # Again where another process removed the files that were being read.
            return self.database.retry_on_conflict(read_wanted_batches)

    def _try_to_append_rows(self, new_rows: list[pl.DataFrame]) -> None:
        if self.table is None or self.database.read_only:
            return
        if new_rows:
            with self.database.tolerating_cache_failure(self.name):
                arrow_rows = rebatch_arrow_table(
                    pl.concat(new_rows).to_arrow().cast(self.table.schema)
                )
                self.database.retry_on_conflict(partial(self.table.add, arrow_rows))


def _slice_and_announce_long_encoding(
    missing_rows: pl.DataFrame, chunk_size: int, cache_text: str, *, is_measured: bool
) -> Iterator[pl.DataFrame]:
    """Give some rows at a time; after the first few, say how long the others take where that is
    long.

    :param cache_text: is made of them, for who waits.
    :param is_measured: whether somebody waits.
    """
    if not is_measured or missing_rows.height <= _WARMING + _MEASURED:
        yield from missing_rows.iter_slices(chunk_size)
        return
    # The first ones also wait for the model to be loaded.
    yield missing_rows.head(_WARMING)
    began_at = time.monotonic()
    yield missing_rows.slice(_WARMING, _MEASURED)
    seconds = time.monotonic() - began_at
    other_rows = missing_rows.slice(_WARMING + _MEASURED)
    step_text = f"{cache_text}: encoding {other_rows.height:,} texts, once for this store,"
    say_if_step_takes_long(step_text, seconds / _MEASURED * other_rows.height)
    yield from other_rows.iter_slices(chunk_size)


def _are_unsaved_rows_many_or_old(
    unsaved_rows: Sequence[pl.DataFrame], unsaved_since: float
) -> bool:
    """Say whether what was made since a time is many texts, or took long."""
    if time.monotonic() - unsaved_since >= KEEP_SECONDS:
        return True
    return sum(map(len, unsaved_rows)) >= KEEP_TEXTS


CHUNK = 512
"""Texts that an encoder is asked for at a time: about ten seconds of a small model on two cores."""

FEW_FILES = 8
"""Files of a cache up to which they stay as they are: to join them reads all of it."""

_READING = timedelta(minutes=10)  # that somebody may still read an earlier version
_VERSION = 2  # of what is kept of a text


class Tokens(TableGroup):
    """Token embeddings through the cache of a store: ``store.tokens``."""

    def encode(
        self,
        encoder: TokenEncoder,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts; see :class:`memlab.embed.token_vectors.TokenEncoder`.

        :param texts: n texts; what stands in the cache, or twice among them, is not encoded again.
        :returns: of questions vectors, of documents codes: see
            :func:`memlab.embed.token_vectors.compress_tokens`.
        """
        texts = check_and_list_texts(texts, kind)
        model = encoder_for_storing(encoder)
        context = [""] * len(texts)
        if before is not None:
            context = check_and_list_texts(before, kind)
        contexts_and_texts = zip(context, texts, strict=True)
        keys = hash_texts(
            f"{_VERSION}:{kind}:{context_text}\x1e{text}"
            for context_text, text in contexts_and_texts
        )
        is_document = kind == "document"

        def encode_and_compress_chunk(places: list[int]) -> pl.DataFrame:
            chunk_texts = list(map(texts.__getitem__, places))
            chunk_contexts = list(map(context.__getitem__, places))
            token_vectors = model.encode_tokens(
                chunk_texts, before=chunk_contexts, kind=kind, progress=False
            )
            if is_document:
                token_vectors = compress_tokens(token_vectors)
            return _tokens_as_byte_rows(token_vectors)

        cache = Cache(self.database, "tokens", encoder.identity.key)
        chunk_size = getattr(encoder, "texts_per_call", None) or CHUNK
        rows, _ = cache.read_or_make_rows_and_count_made(
            keys, encode_and_compress_chunk, chunk_size=chunk_size, progress=progress
        )
        if rows.is_empty():
            return concat_tokens([], encoder.dim)
        token_ids = np.frombuffer(b"".join(rows["ids"]), np.int32)
        number_type: Any = np.float16
        if is_document:
            number_type = np.uint8
        values = np.frombuffer(b"".join(rows["vectors"]), number_type)
        width = len(values) // max(len(token_ids), 1)
        token_counts = rows["ids"].bin.size().to_numpy().astype(np.int64) // token_ids.itemsize
        return TokenVectors(
            token_ids, values.reshape(len(token_ids), width), np.r_[0, np.cumsum(token_counts)]
        )

    def compact_and_index_caches(self, encoder: Encoder) -> None:
        """Join the small files of an encoder's caches and index their keys, so that a lookup opens
        few.
        """
        from lancedb.index import BTree

        families = {"embeddings": encoder, "tokens": token_encoder_of(encoder)}
        for family, family_encoder in families.items():
            if (
                family_encoder is None
                or f"{family}_{family_encoder.identity.key}" not in self.database.table_names()
            ):
                continue
            step_text = f"arranging the cache of {family}"
            with self.database.translating_errors(step_text, refused_write="arranging a cache"):
                table = Cache(
                    self.database,
                    family,
                    family_encoder.identity.key,
                    vector_width=family_encoder.dim,
                ).table
                if table is None or not table.count_rows():
                    continue
                is_new = not table.list_indices()
                if is_new:
                    table.create_index("key", config=BTree())
                if is_new or _count_data_files(table) > FEW_FILES:
                    table.optimize(cleanup_older_than=_READING)


def _count_data_files(table: LanceTable) -> int:
    """Count the files of a table's rows."""
    table_statistics: Any = table.stats()
    return int(table_statistics["fragment_stats"]["num_fragments"])


def _tokens_as_byte_rows(token_vectors: TokenVectors) -> pl.DataFrame:
    """Give a row for each text: ``ids`` and ``vectors`` of its tokens, as bytes."""
    id_bytes = list[bytes]()
    vector_bytes = list[bytes]()
    for first_token, end_token in pairwise(token_vectors.start.tolist()):
        id_bytes.append(token_vectors.ids[first_token:end_token].tobytes())
        vector_bytes.append(token_vectors.vectors[first_token:end_token].tobytes())
    return pl.DataFrame({"ids": id_bytes, "vectors": vector_bytes})
