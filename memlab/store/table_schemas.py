"""The tables of a store: what each holds, how its rows are named, and whether results depend on
it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import and_
from typing import Any

import polars as pl

from memlab import records
from memlab.records import TIMESTAMP, encode_id_part, schema

SCHEMA_VERSION = 9
"""Raised by whoever changes the columns of a table; a store of another version is refused.

A column that may be null needs no other version where it stands in :attr:`Table.later`: it is read
as null from a table that lacks it, which gets it when it is next written.
"""

_ROWS = 50_000  # of an Arrow string array, which holds at most 2 GB
_PRIMARY = {"lance-schema:unenforced-primary-key": "true"}


@dataclass(frozen=True)
class Table:
    """One table, or the tables of one cache.

    :param columns: name → polars type; ``key``, the primary key, comes first.
    :param role: ``data`` for what a result can depend on, so that its versions are noted, tagged
        and kept; ``kept`` for what is written beside it; ``cache`` for a family of tables, one for
        each encoder, that could be made again.
    :param row: the row type of :mod:`memlab.records` that a row gives back.
    :param id: the column that, with the dataset, makes the key.
    :param later: columns that tables of earlier stores may lack.
    :param repeats: columns that mostly say what another says, by the name of that: they are stored
        as null where they do, and read as that.
    """

    columns: Mapping[str, Any]
    role: str = "kept"
    row: type | None = None
    id: str = "_id"
    later: tuple[str, ...] = ()
    repeats: Mapping[str, str] = field(default_factory=dict)

    def arrow(self, *, width: int = 0) -> Any:
        """Give the Arrow schema; strings are ``string``, since scalar indexes refuse
        ``large_string``.

        The primary key stands in the schema from the start: set later, a second process could write
        before it is there.

        :param width: of the vectors of a cache.
        """
        import pyarrow as pa

        fields = [pa.field(name, _arrow_type(dtype, width)) for name, dtype in self.columns.items()]
        fields[0] = pa.field("key", pa.string(), nullable=False, metadata=_PRIMARY)
        return pa.schema(fields)


@cache
def _arrow_type(dtype: Any, width: int) -> Any:
    import pyarrow as pa

    if isinstance(dtype, pl.List):
        return pa.list_(_arrow_type(dtype.inner, width))
    if isinstance(dtype, pl.Array):
        return pa.list_(_arrow_type(dtype.inner, width), dtype.size or width)
    arrow_type = pl.Series([], dtype=dtype).to_arrow(compat_level=pl.CompatLevel.oldest()).type
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(
        arrow_type, arrow_type
    )


def _string_columns(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, pl.String())


def _data_table(row: type, id_: str = "_id", later: tuple[str, ...] = (), **more: Any) -> Table:
    placed_columns = {**_string_columns("key", "dataset"), "position": pl.Int64()}
    return Table({**placed_columns, **schema(row), **more}, "data", row, id_, later)


_INDEX_COLUMNS = {
    **_string_columns("key", "dataset", "generation"),
    "position": pl.Int64(),
    **_string_columns("session_id"),
    "written_at": TIMESTAMP,
}
"""The columns that come first in each table of an index."""


def _index_table(row: type, id_: str, later: tuple[str, ...] = ()) -> Table:
    return Table({**_INDEX_COLUMNS, **schema(row)}, "kept", row, id_, later)


_EARLIER_FACT_COLUMNS = {
    **_string_columns("fact_id", "scope", "subject", "predicate", "object", "source"),
    "evidence": pl.List(pl.String()),
    "asserted_at": TIMESTAMP,
    "recorded_at": TIMESTAMP,
    **_string_columns("speaker", "text", "session_id"),
}


_INT = pl.Int64()

TABLES: dict[str, Table] = {
    "store": Table(_string_columns("key", "value")),
    # Conversations.
    "turns": replace(
        _data_table(
            records.Turn,
            "turn_id",
            ("forwarded_from", "quoted"),
            **_string_columns("content", "content_hash"),
        ),
        repeats={"content": "text"},
    ),
    "sessions": _data_table(records.Session, "session_id"),
    "questions": _data_table(
        records.Question,
        "query_id",
        ("judged", "grades", "source", "reasons", "distractors", "checks"),
    ),
    "annotations": _data_table(records.Annotation, "annotation_id"),
    "issues": _data_table(records.Issue),
    "datasets": Table(
        {
            **_string_columns("key", "name", "format", "language", "fingerprint"),
            "turns": _INT,
            "sessions": _INT,
            "questions": _INT,
            "complete": pl.Boolean(),
            "finished": pl.String(),
            "ingested_at": TIMESTAMP,
        },
        "data",
        id="name",
    ),
    # Results.
    "runs": Table(
        {
            **_string_columns("key", "run_id", "name", "level", "provenance", "measures"),
            "queries": _INT,
            "rows": _INT,
            "saved_at": TIMESTAMP,
        },
        id="run_id",
    ),
    "rankings": Table(
        {
            **_string_columns("key", "run_id", "query_id"),
            "position": _INT,
            "doc_id": pl.List(pl.String()),
            "rank": pl.List(pl.Int32()),
            "score": pl.List(pl.Float64()),
        }
    ),
    "grids": Table({**_string_columns("key", "content"), "saved_at": TIMESTAMP}),
    # What is known from finished sessions.
    "summaries": _index_table(records.Summary, "session_id"),
    "facts": Table({**_INDEX_COLUMNS, **_EARLIER_FACT_COLUMNS}, id="fact_id"),
    "entities": _index_table(records.Entity, "entity_id", ("relations", "related")),
    "fact_rows": _index_table(records.Fact, "fact_id"),
    "index_states": Table(
        {**_string_columns("key", "dataset"), **schema(records.IndexState)},
        row=records.IndexState,
        id="session_id",
    ),
    "index_events": Table(
        {**_string_columns("key", "dataset"), **schema(records.IndexEvent)},
        row=records.IndexEvent,
        id="event_id",
    ),
    "undone": Table(
        {
            **_string_columns("key", "dataset", "scope", "old", "new"),
            "undone_at": TIMESTAMP,
            "why": pl.String(),
        }
    ),
    "nodes": _data_table(
        records.Node,
        "node_id",
        **_string_columns("tree", "over", "asked", "tz", "digest", "encoder"),
        seed=_INT,
        indexed=pl.Boolean(),
        turn_hashes=pl.List(pl.String()),
        vector=pl.List(pl.Float32()),
        written_at=TIMESTAMP,
    ),
    # What is searched, and what is counted of large scopes.
    "words": Table(
        {
            **_string_columns("key", "dataset", "scope", "session_id", "turn_id"),
            "position": _INT,
            **_string_columns("content_hash", "words"),
        },
        "cache",
    ),
    "statistics": Table(
        {
            **_string_columns("key", "dataset", "scope", "of", "state"),
            **dict.fromkeys(("n", "length", "squares"), _INT),
            "names": pl.List(pl.String()),
            "frequency": pl.List(_INT),
        },
        "cache",
    ),
    # Caches.
    "embeddings": Table({"key": pl.String(), "vector": pl.Array(pl.Float32(), 0)}, "cache"),
    "tokens": Table({"key": pl.String(), "ids": pl.Binary(), "vectors": pl.Binary()}, "cache"),
}
"""Every table of a store. A change of columns here raises :data:`SCHEMA_VERSION`."""

DATASET_TABLES = ("turns", "sessions", "questions", "annotations", "issues")
"""The tables that hold a dataset, by the attribute of :class:`memlab.records.Dataset` that they
hold."""

INDEX_TABLES = {"summaries": "summaries", "facts": "fact_rows", "entities": "entities"}
"""What an index makes, and the table that holds it."""

EARLIER_FACTS = "facts"
"""The table of facts of an earlier layout: counted and emptied, never read or written."""

LATER_TABLES = ("nodes", "fact_rows")
"""Tables that stores of this schema version may lack; they have no rows there."""

VERSIONED = tuple(name for name, table in TABLES.items() if table.role == "data")


def row_columns(name: str) -> dict[str, Any]:
    """Give the columns of a table that its readers get: those of its row type."""
    row_type = TABLES[name].row
    return (
        schema(row_type)
        if row_type is not None
        else {
            column: column_type
            for column, column_type in TABLES[name].columns.items()
            if column != "key"
        }
    )


def text_hashes(texts: Iterable[str]) -> list[str]:
    """Hash texts to 32 hex digits; polars has no hash that stays the same from version to version.

    >>> from memlab.store.table_schemas import text_hashes
    >>> text_hashes(["a", "a"])[0] == text_hashes(["a"])[0], len(text_hashes(["b"])[0])
    (True, 32)
    """
    return [
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        for text in texts
    ]


def hash_column(texts: pl.Series) -> pl.Series:
    """Hash a column of texts as :func:`text_hashes` does.

    >>> import polars as pl
    >>> from memlab.store.table_schemas import hash_column, text_hashes
    >>> hash_column(pl.Series(["a", "é"])).to_list() == text_hashes(["a", "é"])
    True
    """
    encoded = texts.cast(pl.Binary)
    hashes = [hashlib.blake2b(text, digest_size=16).hexdigest() for text in encoded]
    return pl.Series(hashes, dtype=pl.String)


def make_empty_table(name: str, columns: Iterable[str]) -> pl.DataFrame:
    """Give no rows of some columns of a table."""
    column_types = TABLES[name].columns
    return pl.DataFrame(schema={column: column_types[column] for column in columns})


def primary_keys(dataset: str, id_: pl.Expr) -> pl.Expr:
    """Give the primary key of a column of ids. Injective: the encoded name holds no slash."""
    return pl.concat_str(pl.lit(encode_id_part(dataset) + "/"), id_)


def build_row_filter(**columns: str | Iterable[str] | None) -> Any:
    """Give the expression for the rows whose columns have a value, or one of several; ``None`` asks
    for nothing.

    >>> from memlab.store.table_schemas import build_row_filter
    >>> build_row_filter(dataset="it's", scope=["'; --"], key=None)
    Expr(((dataset = 'it''s') AND `scope` IN ('''; --')))
    """
    from lancedb.expr import col, lit

    columns_and_values = [
        (col(name), wanted_cell) for name, wanted_cell in columns.items() if wanted_cell is not None
    ]
    conditions = (
        filter_column == lit(wanted_one)
        if isinstance(wanted_one, str)
        else filter_column.isin(list(dict.fromkeys(wanted_one)))
        for filter_column, wanted_one in columns_and_values
    )
    return reduce(and_, conditions) if columns_and_values else None


def make_arrow_table(rows: pl.DataFrame, schema: Any) -> Any:
    """Give rows as an Arrow table of a schema."""
    import pyarrow as pa

    row_slices = rows.select(schema.names).iter_slices(_ROWS)
    arrow_parts = [row_slice.to_arrow().cast(schema) for row_slice in row_slices]
    return pa.concat_tables(arrow_parts) if arrow_parts else schema.empty_table()
