"""Tables: their schemas, how they are opened and read, and what an error from below becomes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import polars as pl

from memlab.errors import MemlabError, StoreError
from memlab.records import TIMESTAMP, Annotation, Issue, Question, Session, Turn, id_part, schema

T = TypeVar("T")

ROWS: dict[str, type] = {
    "turns": Turn,
    "sessions": Session,
    "questions": Question,
    "annotations": Annotation,
    "issues": Issue,
}
"""The tables that hold a dataset, by the attribute of :class:`memlab.records.Dataset` that they hold."""

IDS = {"turns": "turn_id", "sessions": "session_id", "questions": "query_id", "annotations": "annotation_id"}

_KEYED = {"key": pl.String(), "dataset": pl.String(), "position": pl.Int64()}

SCHEMAS: dict[str, dict[str, Any]] = {
    **{table: {**_KEYED, **schema(row)} for table, row in ROWS.items()},
    "datasets": {
        **dict.fromkeys(("key", "name", "format", "fingerprint"), pl.String()),
        **dict.fromkeys(("turns", "sessions", "questions"), pl.Int64()),
        "complete": pl.Boolean(),
        "ingested_at": TIMESTAMP,
    },
    "runs": {
        **dict.fromkeys(("key", "run_id", "name", "level", "provenance", "measures"), pl.String()),
        **dict.fromkeys(("queries", "rows"), pl.Int64()),
        "saved_at": TIMESTAMP,
    },
    "rankings": {
        **dict.fromkeys(("key", "run_id", "query_id"), pl.String()),
        "position": pl.Int64(),
        "doc_id": pl.List(pl.String()),
        "rank": pl.List(pl.Int32()),
        "score": pl.List(pl.Float64()),
    },
}
SCHEMAS["turns"] |= {"content": pl.String(), "content_hash": pl.String()}

VERSIONED = ("turns", "sessions", "questions", "annotations", "issues", "datasets")
"""The tables that a result can depend on."""

_PRIMARY = {"lance-schema:unenforced-primary-key": "true"}
_ADVICE = (
    (("no space left", "os error 28", "storage full"), "the disk is full: free some space, then run it again"),
    (("file too large", "os error 27"), "the largest allowed file size is reached: raise the limit, then run it again"),
    (("quota", "os error 122"), "the disk quota is used up: free some space, then run it again"),
    (
        ("permission denied", "not permitted", "read-only", "os error 13", "os error 30", "access denied", "forbidden"),
        "the place cannot be written: correct its permissions or credentials, or name another place",
    ),
    (("conflict", "concurrent"), "another process wrote at the same time: run it again"),
    (
        ("failed to connect", "error sending request", "retryerror", "bucket"),
        "the object store did not answer as one: check the URI, the network and storage_options",
    ),
)


@contextmanager
def guarded(doing: str, uri: str) -> Iterator[None]:
    """Turn an error of the database into a :class:`StoreError` that says what to do."""
    try:
        yield
    except MemlabError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        found = " ".join(str(error).split())
        advice = next((a for words, a in _ADVICE if any(w in found.lower() for w in words)), "run it again")
        raise StoreError(
            f"{doing} failed in store {uri}: {found[:400]}; no table is left half-written: {advice}"
        ) from error


def retried(write: Callable[[], T], *, attempts: int = 5) -> T:
    """Do a write again when another writer was faster; the database itself retries only for half a minute."""
    for _ in range(attempts - 1):
        try:
            return write()
        except (OSError, RuntimeError) as error:
            if not any(word in str(error).lower() for word in ("conflict", "concurrent")):
                raise
    return write()


def connect(uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None, create: bool) -> Any:
    """Connect to the database at a path or an object-store URI; nothing is written.

    :raises StoreError: for a hosted service, a file where a directory should be, or nothing there and not ``create``.
    """
    place = os.fspath(uri)
    if place.startswith("db://"):
        raise StoreError(
            f"store {place} is a hosted service, which memlab does not speak; expected a directory or an "
            "s3://, gs:// or az:// URI"
        )
    if "://" not in place:
        if Path(place).is_file():
            raise StoreError(f"store {place} is a file; expected a directory: name one that is empty or new")
        if not create and not Path(place).is_dir():
            raise StoreError(f"there is no store at {place}; make it with `memlab ingest`, or correct the path")
    # Read when the library is imported; without it every retried write prints a warning.
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb

    options = dict(storage_options) if storage_options else None
    with guarded("opening", place):
        # A handle without this does not see what other processes write.
        database = lancedb.connect(place, storage_options=options, read_consistency_interval=timedelta(0))
        if not create and "datasets" not in database.list_tables().tables:
            raise StoreError(f"{place} holds no memlab store; make it with `memlab ingest`, or correct the path")
    return database


def arrow_schema(columns: Mapping[str, Any]) -> Any:
    """Give the Arrow schema of a table; strings are ``string``, since scalar indexes refuse ``large_string``.

    The primary key stands in the schema from the start: set later, a second process could write before it is there.
    """
    import pyarrow as pa

    arrow = {
        pl.String(): pa.string(),
        pl.Int32(): pa.int32(),
        pl.Int64(): pa.int64(),
        pl.Float64(): pa.float64(),
        pl.Boolean(): pa.bool_(),
        TIMESTAMP: pa.timestamp("us", tz="UTC"),
    }
    for _ in range(2):
        arrow |= {pl.List(inner): pa.list_(kind) for inner, kind in list(arrow.items())}
    return pa.schema(
        [
            pa.field(name, arrow[dtype], nullable=name != "key", metadata=_PRIMARY if name == "key" else None)
            for name, dtype in columns.items()
        ]
    )


def to_arrow(rows: pl.DataFrame, target: Any, *, chunk: int = 50_000) -> Any:
    """Convert a frame to an Arrow table of a schema, in chunks: one Arrow string array holds at most 2 GB."""
    import pyarrow as pa

    ordered = rows.select(target.names)
    parts = [part.to_arrow().cast(target) for part in ordered.iter_slices(chunk)]
    return pa.concat_tables(parts) if parts else target.empty_table()


def open_table(database: Any, name: str, schema: Any, *, patience: float = 5.0) -> Any:
    """Open a table; make it where it does not exist, also when another process makes it at the same time.

    A table that is being made is listed before it can be opened: so try to open, then to make, until one succeeds.

    :param patience: seconds to wait for another process.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return database.open_table(name)
        except (OSError, RuntimeError, ValueError) as error:
            if "not found" not in str(error):
                raise
        try:
            return database.create_table(name, schema=schema)
        except (OSError, RuntimeError, ValueError):
            if name not in database.list_tables(limit=10_000).tables or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def read(table: Any, columns: list[str], *, where: Any = None) -> pl.DataFrame:
    """Read columns of the rows for which an expression holds (all rows without one); the order is the database's."""
    query = table.search().select(columns)
    if where is not None:
        query = query.where(where)
    return cast(pl.DataFrame, pl.from_arrow(query.to_arrow()))


def in_dataset(dataset: str, scopes: list[str] | None = None) -> Any:
    """Give the expression for the rows of a dataset, or of some of its scopes.

    >>> from memlab.store.tables import in_dataset
    >>> in_dataset("it's", ["'; --"])
    Expr(((dataset = 'it''s') AND `scope` IN ('''; --')))
    """
    from lancedb.expr import col, lit

    held = col("dataset") == lit(dataset)
    return held if scopes is None else held & col("scope").isin(scopes)


def keys(dataset: str, ids: str) -> pl.Expr:
    """Give the primary key of a column of ids. Injective: the encoded name holds no slash."""
    return pl.concat_str(pl.lit(id_part(dataset) + "/"), pl.col(ids))
