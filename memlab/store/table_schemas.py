"""The tables of a store: what each holds, how its rows are named, and whether results depend on
it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab import records
from memlab.records import TIMESTAMP, encode_id_part, schema

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.expr import Expr

TableVersions = Mapping[str, int]
"""The versions of tables of a store, by their names."""

SCHEMA_VERSION = 9
"""Raised by whoever changes the columns of a table; a store of another version is refused.

A column that may be null needs no other version where it stands in :attr:`TableDefinition.later`:
it is read as null from a table that lacks it, which gets it when it is next written.
"""

_ROWS = 50_000  # of an Arrow string array, which holds at most 2 GB
_PRIMARY = {"lance-schema:unenforced-primary-key": "true"}


@dataclass(frozen=True)
class TableDefinition:
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

    def arrow_schema(self, *, vector_width: int = 0) -> pa.Schema:
        """Give the Arrow schema; strings are ``string``, since scalar indexes refuse
        ``large_string``.

        The primary key stands in the schema from the start: set later, a second process could write
        before it is there.

        :param vector_width: of the vectors of a cache.
        """
        import pyarrow as pa

        fields = [
            pa.field(name, _arrow_type_of_column(dtype, vector_width))
            for name, dtype in self.columns.items()
        ]
        fields[0] = pa.field("key", pa.string(), nullable=False, metadata=_PRIMARY)
        return pa.schema(fields)


@cache
def _arrow_type_of_column(polars_type: Any, vector_width: int) -> pa.DataType:
    import pyarrow as pa

    if isinstance(polars_type, pl.List):
        return pa.list_(_arrow_type_of_column(polars_type.inner, vector_width))
    if isinstance(polars_type, pl.Array):
        return pa.list_(
            _arrow_type_of_column(polars_type.inner, vector_width), polars_type.size or vector_width
        )
    arrow_type = (
        pl.Series([], dtype=polars_type).to_arrow(compat_level=pl.CompatLevel.oldest()).type
    )
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(
        arrow_type, arrow_type
    )


def _string_type_by_column(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, pl.String())


def _define_dataset_table(
    row_type: type, id_column: str = "_id", later_columns: tuple[str, ...] = (), **more_columns: Any
) -> TableDefinition:
    placed_columns = {**_string_type_by_column("key", "dataset"), "position": pl.Int64()}
    return TableDefinition(
        {**placed_columns, **schema(row_type), **more_columns},
        "data",
        row_type,
        id_column,
        later_columns,
    )


_INDEX_COLUMNS = {
    **_string_type_by_column("key", "dataset", "generation"),
    "position": pl.Int64(),
    **_string_type_by_column("session_id"),
    "written_at": TIMESTAMP,
}
"""The columns that come first in each table of an index."""


def _define_index_table(
    row_type: type, id_column: str, later_columns: tuple[str, ...] = ()
) -> TableDefinition:
    return TableDefinition(
        {**_INDEX_COLUMNS, **schema(row_type)}, "kept", row_type, id_column, later_columns
    )


_EARLIER_FACT_COLUMNS = {
    **_string_type_by_column("fact_id", "scope", "subject", "predicate", "object", "source"),
    "evidence": pl.List(pl.String()),
    "asserted_at": TIMESTAMP,
    "recorded_at": TIMESTAMP,
    **_string_type_by_column("speaker", "text", "session_id"),
}


_INT = pl.Int64()

TABLES: dict[str, TableDefinition] = {
    "store": TableDefinition(_string_type_by_column("key", "value")),
    # Conversations.
    "turns": replace(
        _define_dataset_table(
            records.Turn,
            "turn_id",
            ("forwarded_from", "quoted"),
            **_string_type_by_column("content", "content_hash"),
        ),
        repeats={"content": "text"},
    ),
    "sessions": _define_dataset_table(records.Session, "session_id"),
    "questions": _define_dataset_table(
        records.Question,
        "query_id",
        ("judged", "grades", "source", "reasons", "distractors", "checks"),
    ),
    "annotations": _define_dataset_table(records.Annotation, "annotation_id"),
    "issues": _define_dataset_table(records.Issue),
    "datasets": TableDefinition(
        {
            **_string_type_by_column("key", "name", "format", "language", "fingerprint"),
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
    "runs": TableDefinition(
        {
            **_string_type_by_column("key", "run_id", "name", "level", "provenance", "measures"),
            "queries": _INT,
            "rows": _INT,
            "saved_at": TIMESTAMP,
        },
        id="run_id",
    ),
    "rankings": TableDefinition(
        {
            **_string_type_by_column("key", "run_id", "query_id"),
            "position": _INT,
            "doc_id": pl.List(pl.String()),
            "rank": pl.List(pl.Int32()),
            "score": pl.List(pl.Float64()),
        }
    ),
    "grids": TableDefinition({**_string_type_by_column("key", "content"), "saved_at": TIMESTAMP}),
    # What is known from finished sessions.
    "summaries": _define_index_table(records.Summary, "session_id"),
    "facts": TableDefinition({**_INDEX_COLUMNS, **_EARLIER_FACT_COLUMNS}, id="fact_id"),
    "entities": _define_index_table(records.Entity, "entity_id", ("relations", "related")),
    "fact_rows": _define_index_table(records.Fact, "fact_id"),
    "index_states": TableDefinition(
        {**_string_type_by_column("key", "dataset"), **schema(records.IndexState)},
        row=records.IndexState,
        id="session_id",
    ),
    "index_events": TableDefinition(
        {**_string_type_by_column("key", "dataset"), **schema(records.IndexEvent)},
        row=records.IndexEvent,
        id="event_id",
    ),
    "undone": TableDefinition(
        {
            **_string_type_by_column("key", "dataset", "scope", "old", "new"),
            "undone_at": TIMESTAMP,
            "why": pl.String(),
        }
    ),
    "nodes": _define_dataset_table(
        records.Node,
        "node_id",
        **_string_type_by_column("tree", "over", "asked", "tz", "digest", "encoder"),
        seed=_INT,
        indexed=pl.Boolean(),
        turn_hashes=pl.List(pl.String()),
        vector=pl.List(pl.Float32()),
        written_at=TIMESTAMP,
    ),
    # What is searched, and what is counted of large scopes.
    "words": TableDefinition(
        {
            **_string_type_by_column("key", "dataset", "scope", "session_id", "turn_id"),
            "position": _INT,
            **_string_type_by_column("content_hash", "words"),
        },
        "cache",
    ),
    "statistics": TableDefinition(
        {
            **_string_type_by_column("key", "dataset", "scope", "of", "state"),
            **dict.fromkeys(("n", "length", "squares"), _INT),
            "names": pl.List(pl.String()),
            "frequency": pl.List(_INT),
        },
        "cache",
    ),
    # Caches.
    "embeddings": TableDefinition(
        {"key": pl.String(), "vector": pl.Array(pl.Float32(), 0)}, "cache"
    ),
    "tokens": TableDefinition(
        {"key": pl.String(), "ids": pl.Binary(), "vectors": pl.Binary()}, "cache"
    ),
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


def type_by_record_column(table_name: str) -> dict[str, Any]:
    """Give the columns of a table that its readers get: those of its row type."""
    row_type = TABLES[table_name].row
    return (
        schema(row_type)
        if row_type is not None
        else {
            column: column_type
            for column, column_type in TABLES[table_name].columns.items()
            if column != "key"
        }
    )


def hash_texts(texts: Iterable[str]) -> list[str]:
    """Hash texts to 32 hex digits; polars has no hash that stays the same from version to version.

    >>> from memlab.store.table_schemas import hash_texts
    >>> hash_texts(["a", "a"])[0] == hash_texts(["a"])[0], len(hash_texts(["b"])[0])
    (True, 32)
    """
    return [
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        for text in texts
    ]


def hash_text_column(texts: pl.Series) -> pl.Series:
    """Hash a column of texts as :func:`hash_texts` does.

    >>> import polars as pl
    >>> from memlab.store.table_schemas import hash_text_column, hash_texts
    >>> hash_text_column(pl.Series(["a", "é"])).to_list() == hash_texts(["a", "é"])
    True
    """
    encoded = texts.cast(pl.Binary)
    hashes = [hashlib.blake2b(text, digest_size=16).hexdigest() for text in encoded]
    return pl.Series(hashes, dtype=pl.String)


def make_frame_without_rows(table_name: str, columns: Iterable[str]) -> pl.DataFrame:
    """Give no rows of some columns of a table."""
    column_types = TABLES[table_name].columns
    return pl.DataFrame(schema={column: column_types[column] for column in columns})


def primary_key_expr(dataset: str, row_ids: pl.Expr) -> pl.Expr:
    """Give the primary key of a column of ids. Injective: the encoded name holds no slash."""
    return pl.concat_str(pl.lit(encode_id_part(dataset) + "/"), row_ids)


def build_row_filter(**wanted_cells: str | Iterable[str] | None) -> Expr | None:
    """Give the expression for the rows whose columns have a value, or one of several; ``None`` asks
    for nothing.

    >>> from memlab.store.table_schemas import build_row_filter
    >>> build_row_filter(dataset="it's", scope=["'; --"], key=None)
    Expr(((dataset = 'it''s') AND `scope` IN ('''; --')))
    """
    from lancedb.expr import col, lit

    columns_and_values = [
        (col(name), wanted_cell)
        for name, wanted_cell in wanted_cells.items()
        if wanted_cell is not None
    ]
    conditions = (
        filter_column == lit(wanted_one)
        if isinstance(wanted_one, str)
        else filter_column.isin(list(dict.fromkeys(wanted_one)))
        for filter_column, wanted_one in columns_and_values
    )
    return reduce(and_, conditions) if columns_and_values else None


def build_required_row_filter(**wanted_cells: str | Iterable[str]) -> Expr:
    """Give the expression of :func:`build_row_filter` where every row may not be meant.

    :raises ValueError: where there is no condition.
    """
    row_filter = build_row_filter(**wanted_cells)
    if row_filter is None:
        raise ValueError("no column has a wanted value; expected at least one")
    return row_filter


def to_arrow_table(rows: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Give rows as an Arrow table of a schema."""
    import pyarrow as pa

    row_slices = rows.select(schema.names).iter_slices(_ROWS)
    arrow_parts = [row_slice.to_arrow().cast(schema) for row_slice in row_slices]
    return pa.concat_tables(arrow_parts) if arrow_parts else schema.empty_table()
