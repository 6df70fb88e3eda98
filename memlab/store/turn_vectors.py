"""Vectors: a column of the turns for each encoder, in which LanceDB searches, and the cache of all
other texts.

A vector is kept once. What is encoded goes into the cache, a few seconds at a time, so that an
interrupted command goes on where it stopped; once a turn has its vector in the column, the cache
gives it up. A text that some turn has is read from the column, whoever asks for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import timedelta
from typing import cast

import numpy as np
import polars as pl

from memlab.embed.contextual_headers import header_fields_or_empty
from memlab.embed.encoder import (
    Encoder,
    Kind,
    check_and_list_texts,
    check_nonzero_vectors,
    encoder_for_storing,
)
from memlab.embed.turn_texts import turn_texts
from memlab.errors import StoreError
from memlab.store.database import (
    Database,
    TableGroup,
    rebatch_arrow_table,
    sort_in_dataset_order,
)
from memlab.store.dataset_rows import (
    read_dataset_entry,
    read_dataset_rows,
    read_last_finished_state,
)
from memlab.store.table_schemas import TableVersions, build_required_row_filter, hash_texts
from memlab.store.vector_cache import LOOKUP, Cache
from memlab.store.version_cleaning import clean_due_tables_or_warn

CACHE_CHUNK = 1024
"""Texts that an encoder is asked for at a time: about ten seconds of a small model on two cores."""

_FILL_BYTES = 1 << 28
WRITTEN_WHOLE = 1_000
"""Turns up to which whole rows are written with new vectors."""


def vector_column_name(encoder: Encoder) -> str:
    """Name the column of ``turns`` that holds the vectors of an encoder.

    >>> from memlab.embed import load
    >>> from memlab.store.turn_vectors import vector_column_name
    >>> vector_column_name(load("hashing:64")).startswith("vector_")
    True
    """
    return f"vector_{encoder.identity.key}"


def check_vectors_and_give_float32(
    vectors: np.ndarray, *, dim: int, error_subject: str, n_expected: int | None = None
) -> np.ndarray:
    """Give vectors as contiguous float32 after checking their shape and that every number is
    finite.

    :raises StoreError: naming the first row that is wrong.
    """
    checked = np.ascontiguousarray(vectors, dtype=np.float32)
    if checked.ndim != 2 or checked.shape[1] != dim or n_expected not in (None, len(checked)):
        expected_rows = "n" if n_expected is None else n_expected
        raise StoreError(
            f"{error_subject}: vectors have shape {checked.shape}; expected ({expected_rows}, "
            f"{dim}): encode with the same encoder"
        )
    bad_rows = np.flatnonzero(~np.isfinite(checked).all(axis=1))
    if bad_rows.size:
        raise StoreError(
            f"{error_subject}: row {bad_rows[0]} holds NaN or infinity ({bad_rows.size} of "
            f"{len(checked)} rows)"
        )
    return checked


def encode_through_cache_and_count_new(
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
    checked = check_and_list_texts(texts, kind)
    encoder_text = f"encoder {encoder.identity.key}"
    model = encoder_for_storing(encoder)

    def encode_chunk(places: list[int]) -> pl.DataFrame:
        chunk_texts = [checked[place] for place in places]
        chunk_vectors = model.encode(chunk_texts, kind=cast(Kind, kind), progress=False)
        vectors = check_vectors_and_give_float32(
            chunk_vectors, dim=encoder.dim, error_subject=encoder_text, n_expected=len(chunk_texts)
        )
        if kind == "document":
            check_nonzero_vectors(vectors, made_by=encoder_text)
        return pl.Series("vector", vectors, dtype=pl.Array(pl.Float32, encoder.dim)).to_frame()

    cache = Cache(database, "embeddings", encoder.identity.key, vector_width=encoder.dim)
    if cache.table is not None:
        width = cache.table.schema.field("vector").type.list_size
        if width != encoder.dim:
            raise StoreError(
                f"{encoder_text}: vectors of {width} dimensions are in the store, "
                f"the encoder gives {encoder.dim}"
            )
    text_keys = vector_cache_keys(checked, kind)

    def read_vectors_of_turns(missing: pl.DataFrame) -> pl.DataFrame:
        missing_texts = [checked[place] for place in missing["place"]]
        hashed_texts = missing.select(
            "key", hash=pl.Series(hash_texts(missing_texts), dtype=pl.String)
        )
        known_vectors = _read_turn_vectors_by_text_hash(database, encoder, hashed_texts["hash"])
        return hashed_texts.join(known_vectors, on="hash").select("key", "vector")

    chunk_size = getattr(encoder, "texts_per_call", None) or CACHE_CHUNK
    read_elsewhere = None
    if kind == "document" and not header_fields_or_empty(encoder):
        read_elsewhere = read_vectors_of_turns
    cached_rows, n_encoded = cache.read_or_make_rows_and_count_made(
        text_keys,
        encode_chunk,
        chunk_size=chunk_size,
        progress=progress,
        read_elsewhere=read_elsewhere,
        remember=remember,
    )
    vectors = np.empty((0, encoder.dim), np.float32)
    if cached_rows.height:
        vectors = cached_rows["vector"].to_numpy(writable=True)
    return np.ascontiguousarray(vectors), n_encoded


def vector_cache_keys(texts: Iterable[str], text_kind: str) -> list[str]:
    """Give the keys of texts in a cache of vectors."""
    return hash_texts(f"{text_kind}:{text}" for text in texts)


def _read_turn_vectors_by_text_hash(
    database: Database, encoder: Encoder, text_hashes: pl.Series
) -> pl.DataFrame:
    """Give the vectors of texts that some turn has now, of whatever dataset: ``hash`` and
    ``vector``.

    Now, also in a view on earlier versions: a text has one vector.
    """
    column = vector_column_name(encoder)
    of_text = _name_text_hash_column(vector_column_name(encoder))
    no_vectors = pl.DataFrame(
        schema={"hash": pl.String, "vector": pl.Array(pl.Float32, encoder.dim)}
    )
    if "turns" not in database.table_names():
        return no_vectors
    with database.translating_errors("reading turns"):
        table = database.connection.open_table("turns")
        if column not in table.schema.names:
            return no_vectors
        query = table.search().select([of_text, column])
        if len(text_hashes) <= LOOKUP:
            query = query.where(build_required_row_filter(**{of_text: text_hashes}))
        # Again where the files that were being read were cleaned away.
        batches = database.retry_on_conflict(
            lambda: [pl.DataFrame(batch) for batch in query.to_batches()]
        )
    matching_batches = [
        batch.filter(pl.col(of_text).is_in(text_hashes.implode())) for batch in batches
    ]
    vector_rows = [
        vector_batch.select(hash=of_text, vector=column).drop_nulls()
        for vector_batch in matching_batches
    ]
    return pl.concat([no_vectors, *vector_rows]).unique("hash", keep="any")


def drop_and_count_cached_turn_vectors(database: Database, encoder_key: str) -> int:
    """Take the vectors from a cache that the column of the turns has too; say how many.

    :param encoder_key: of the encoder's identity.
    """
    column = f"vector_{encoder_key}"
    cache_name = f"embeddings_{encoder_key}"
    if (
        cache_name not in database.table_names()
        or column not in database.open_or_create_table("turns").schema.names
    ):
        return 0
    of_text = _name_text_hash_column(column)
    turns = database.read_table("turns", ["content", "content_hash", of_text])
    current_turns = turns.filter(pl.col("content_hash") == pl.col(of_text))
    n_before = int(database.open_or_create_table(cache_name).count_rows())
    _drop_cached_vectors_of_texts(database, cache_name, current_turns["content"])
    return n_before - int(database.open_or_create_table(cache_name).count_rows())


def _drop_cached_vectors_of_texts(database: Database, cache_name: str, texts: pl.Series) -> None:
    """Take the vectors of texts from a cache."""
    if cache_name not in database.table_names():
        return
    text_keys = pl.Series(vector_cache_keys(texts.unique(), "document"), dtype=pl.String)
    known_keys = (
        database.open_or_create_table(cache_name)
        .search()
        .select(["key"])
        .to_polars()["key"]
        .unique()
    )
    text_keys = text_keys.filter(text_keys.is_in(known_keys.implode()))
    if len(text_keys) and len(text_keys) == len(known_keys):
        # All of them, since the list of each would stand in the table's log. What another process
        # remembers at this moment may go too: it is encoded again when it is next asked for.
        database.retry_on_conflict(lambda: database.open_or_create_table(cache_name).delete("true"))
        return
    for key_start in range(0, len(text_keys), LOOKUP):
        database.delete_rows(cache_name, key=text_keys[key_start : key_start + LOOKUP])


def _remove_old_versions_of_cache(database: Database, cache_name: str) -> None:
    """Remove the files of vectors that a cache gave up; one who is reading them reads again."""
    if cache_name in database.table_names():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*removes every version except the latest.*")
            database.open_or_create_table(cache_name).optimize(cleanup_older_than=timedelta(0))


class Vectors(TableGroup):
    """The vectors of a store's turns: ``store.vectors``."""

    column = staticmethod(vector_column_name)

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
        database = self.database
        column = vector_column_name(encoder)
        n_encoded = 0
        cache_name = f"embeddings_{encoder.identity.key}"
        read_dataset_entry(database, dataset)
        with database.translating_errors(
            f"filling vectors of {dataset!r}", refused_write="backfill"
        ):
            if header_fields_or_empty(encoder):
                return self._encode_turns_and_count_new(
                    encoder, dataset, scopes, progress=progress
                )[1]
            _add_vector_and_hash_columns_if_absent(database, column, encoder.dim)
            missing_turns = self._read_turns_without_current_vector(dataset, scopes, column)
            for chunk in missing_turns.iter_slices(max(1, _FILL_BYTES // (4 * encoder.dim))):
                texts = chunk["content"].to_list()
                vectors, n_new = encode_through_cache_and_count_new(
                    database, encoder, texts, kind="document", progress=progress
                )
                n_encoded += n_new
                if len(vectors):
                    _write_vectors_unless_turn_rewritten(database, dataset, column, chunk, vectors)
                    _drop_cached_vectors_of_texts(database, cache_name, chunk["content"])
            if missing_turns.height:
                _remove_old_versions_of_cache(database, cache_name)
                clean_due_tables_or_warn(database, ["turns"])
        return n_encoded

    def _read_turns_without_current_vector(
        self, dataset: str, scopes: Iterable[str] | None, vector_column: str
    ) -> pl.DataFrame:
        """Read the turns without a current vector: ``key``, ``content`` and ``content_hash``."""
        from lancedb.expr import col

        of_text = col(_name_text_hash_column(vector_column)).to_sql()
        # Of a long memory most have one: the database leaves them out.
        missing_turns = self.database.read_table(
            "turns",
            ["key", "position", "content", "content_hash"],
            condition=f"{of_text} IS NULL OR {of_text} != content_hash",
            dataset=dataset,
            scope=scopes,
        )
        return sort_in_dataset_order(missing_turns).drop("position")

    def count_missing(self, encoder: Encoder, dataset: str) -> int:
        """Count the turns of a dataset that :meth:`backfill` would give a vector.

        It is 0 where an encoder has a header, whose vectors are kept in the cache alone.
        """
        if header_fields_or_empty(encoder):
            return 0
        column = vector_column_name(encoder)
        with self.database.translating_errors(
            f"counting vectors of {dataset!r}", refused_write="backfill"
        ):
            _add_vector_and_hash_columns_if_absent(self.database, column, encoder.dim)
            return self._read_turns_without_current_vector(dataset, None, column).height

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
        if header_fields_or_empty(encoder):
            return self._encode_turns_and_count_new(encoder, dataset, scopes, progress=False)[0]
        database = self.database
        column = vector_column_name(encoder)
        of_text = _name_text_hash_column(column)
        wanted_scopes = None if scopes is None else list(scopes)

        def read_turns_with_vectors(at: TableVersions) -> pl.DataFrame:
            column_names = ["content", "content_hash", "position", "key"]
            if database.has_column("turns", column, version=at.get("turns")):
                column_names += [of_text, column]
            return database.read_table(
                "turns", column_names, version=at.get("turns"), dataset=dataset, scope=wanted_scopes
            )

        turn_rows = read_last_finished_state(database, dataset, read_turns_with_vectors)
        # Not the vectors: they are slow to sort.
        row_order = (
            turn_rows.select("position", "key").with_row_index("row").sort("position", "key")["row"]
        )
        vectors = np.empty((turn_rows.height, encoder.dim), np.float32)
        is_there = pl.repeat(False, turn_rows.height, eager=True)
        if column in turn_rows.columns:
            is_there = turn_rows.select(
                (pl.col(of_text) == pl.col("content_hash")).fill_null(False)
                & pl.col(column).is_not_null()
            ).to_series()
            vectors[is_there.to_numpy()] = turn_rows[column].filter(is_there).to_numpy()
        missing_texts = turn_rows["content"].filter(~is_there)
        if len(missing_texts):
            missing_vectors, _ = encode_through_cache_and_count_new(
                database, encoder, missing_texts, kind="document", progress=False
            )
            vectors[~is_there.to_numpy()] = missing_vectors
        return np.ascontiguousarray(vectors[row_order.to_numpy()])

    def _encode_turns_and_count_new(
        self,
        encoder: Encoder,
        dataset: str,
        scopes: Iterable[str] | None,
        *,
        progress: bool,
    ) -> tuple[np.ndarray, int]:
        turns = read_dataset_rows(self.database, "turns", dataset, scopes=scopes)
        texts = turn_texts(turns, header=header_fields_or_empty(encoder))
        return encode_through_cache_and_count_new(
            self.database, encoder, texts, kind="document", progress=progress
        )


def _name_text_hash_column(vector_column: str) -> str:
    """Name the column that says of which text a vector is; one of another text is not used."""
    return "embedded_" + vector_column.removeprefix("vector_")


def _add_vector_and_hash_columns_if_absent(
    database: Database, vector_column: str, vector_width: int
) -> None:
    """Give the turns an empty column for vectors, and one for the hashes of their texts."""
    import pyarrow as pa

    if vector_column in database.open_or_create_table("turns").schema.names:
        return
    try:
        fields = [
            pa.field(vector_column, pa.list_(pa.float32(), vector_width)),
            pa.field(_name_text_hash_column(vector_column), pa.string()),
        ]
        database.open_or_create_table("turns").add_columns(fields)
    except (OSError, RuntimeError, ValueError):
        if (
            vector_column not in database.open_or_create_table("turns").schema.names
        ):  # else another process added them
            raise


def _write_vectors_unless_turn_rewritten(
    database: Database,
    dataset: str,
    vector_column: str,
    turn_rows: pl.DataFrame,
    vectors: np.ndarray,
) -> None:
    """Write the vectors of turns, but not onto one that was rewritten since its text was read.

    :param turn_rows: ``key`` and ``content_hash`` of each.
    """
    import pyarrow as pa

    rows_with_vectors = turn_rows.select(
        "key",
        "content_hash",
        pl.Series(vector_column, vectors, dtype=pl.Array(pl.Float32, vectors.shape[1])),
        pl.col("content_hash").alias(_name_text_hash_column(vector_column)),
    )
    new_columns = set(rows_with_vectors.columns)
    with ExitStack() as lock_releases:
        # LanceDB 0.40 reads a column whole that some rows get, and little where rows come whole.
        # Nobody else may write to those between reading and writing.
        is_few = turn_rows.height <= WRITTEN_WHOLE
        if is_few and database.try_locking_dataset(dataset, lock_releases):
            rows_with_vectors = _add_other_columns_of_turns(database, rows_with_vectors)
        table = database.open_or_create_table("turns")
        known_columns = set(rows_with_vectors.columns)
        fields = [field for field in table.schema if field.name in known_columns]
        schema = pa.schema(fields)
        source = rebatch_arrow_table(rows_with_vectors.select(schema.names).to_arrow().cast(schema))
        conditions = ["target.content_hash = source.content_hash"]
        # Nor over what another encoder wrote meanwhile.
        others = {name for name in schema.names if name.startswith("embedded_")} - new_columns
        conditions.extend(map(_same_in_source_and_target, sorted(others)))
        builder = table.merge_insert("key").use_index(False)
        builder = builder.when_matched_update_all(where=" AND ".join(conditions))
        # "null", since a null vector of another encoder is a bad one by default.
        database.retry_on_conflict(lambda: builder.execute(source, on_bad_vectors="null"))


def _same_in_source_and_target(column: str) -> str:
    """Write the condition, in SQL, that a column is the same in both sides of a merge."""
    are_null = f"(target.{column} IS NULL AND source.{column} IS NULL)"
    return f"(target.{column} = source.{column} OR {are_null})"


def _add_other_columns_of_turns(
    database: Database, rows_with_vectors: pl.DataFrame
) -> pl.DataFrame:
    """Add to vectors of turns all other columns that these have, as they are stored."""
    table = database.open_or_create_table("turns")
    query = table.search().where(build_required_row_filter(key=rows_with_vectors["key"]))
    stored_rows = database.retry_on_conflict(lambda: pl.DataFrame(query.to_arrow()))
    new_columns = rows_with_vectors.columns[2:]
    return stored_rows.drop(new_columns).join(
        rows_with_vectors, on=["key", "content_hash"], maintain_order="left"
    )
