"""Datasets in their tables: written so that writing twice is writing once, and read back as they went in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import polars as pl

from memlab.embed.text import turn_texts
from memlab.errors import StoreError
from memlab.records import Dataset, concat
from memlab.store.database import Database, Part
from memlab.store.registry import DATASET_TABLES, TABLES, equal, in_dataset, keys, row_columns, text_hashes

Names = Iterable[str] | None
BATCH_TURNS = 50_000
BATCH_BYTES = 1 << 28

LANGUAGE = pl.col("language").fill_null(Dataset.language)
"""What people speak in a dataset; stores of versions 0 and 1 did not note it."""


def batches(parts: Iterable[Dataset]) -> Iterator[Dataset]:
    """Join the small parts of a stream, so that each batch is one version of a table and still fits in memory."""
    batch: list[Dataset] = []
    turns = size = 0
    for part in parts:
        full = turns + part.turns.height > BATCH_TURNS or size > BATCH_BYTES
        if batch and (full or (batch[0].name, batch[0].format) != (part.name, part.format)):
            yield concat(batch)
            batch, turns, size = [], 0, 0
        batch.append(part)
        turns += part.turns.height
        size += int(part.turns.estimated_size())
    if batch:
        yield concat(batch)


def ingest(
    database: Database, parts: Dataset | Iterable[Dataset], *, now: datetime, progress: bool = False
) -> pl.DataFrame:
    """Write datasets; see :meth:`memlab.store.MemoryStore.ingest`."""
    from tqdm import tqdm

    database.writable("ingest")
    writings: dict[str, _Writing] = {}
    stream = batches([parts] if isinstance(parts, Dataset) else parts)
    with tqdm(desc="ingest", unit=" turns", disable=not progress, delay=2) as bar:
        for batch in stream:
            writing = writings.setdefault(batch.name, _Writing(database, batch))
            with database.guarded(f"ingesting {batch.name!r}"):
                writing.add(batch)
            bar.update(batch.turns.height)
    for name, writing in writings.items():
        with database.guarded(f"ingesting {name!r}"):
            writing.finish(now)
    report = [(name, table, *n) for name, writing in writings.items() for table, n in writing.counts.items()]
    numbers = dict.fromkeys(("inserted", "updated", "unchanged"), pl.Int64())
    return pl.DataFrame(report, schema={"dataset": pl.String(), "table": pl.String(), **numbers}, orient="row")


class _Writing:
    """The writing of one dataset, batch by batch."""

    def __init__(self, database: Database, first: Dataset) -> None:
        self.database, self.name = database, first.name
        self.kind, self.language = first.format, first.language
        self.next_position: dict[str, int] = {}
        self.counts = {table: [0, 0, 0] for table in DATASET_TABLES}
        self.wrote = False

    def add(self, batch: Dataset) -> None:
        """Write what is new or differs from what the tables hold."""
        for table in DATASET_TABLES:
            rows, there = _keyed(batch, table), self._there(table, ["key", "position"])
            rows = rows.with_columns(position=self._places(table, rows, there))
            new = rows.join(there, on="key", how="anti", maintain_order="left")
            changed = rows.clear() if new.height == rows.height else self._changed(table, rows)
            if new.height or changed.height:
                self._begin()
                self.database.write(table, pl.concat([new, changed]), clear_vectors=changed.height > 0)
            counts = new.height, changed.height, rows.height - new.height - changed.height
            self.counts[table] = [before + more for before, more in zip(self.counts[table], counts, strict=True)]

    def finish(self, now: datetime) -> None:
        """Note that the dataset is whole, and what it came to."""
        where = equal("name", self.name)
        listed = self.database.read("datasets", ["complete", "format", "language"], where=where).with_columns(LANGUAGE)
        if listed.rows() != [(True, self.kind, self.language)]:
            stored = read_dataset(self.database, self.name, self.kind, self.language)
            sizes = {table: getattr(stored, table).height for table in ("turns", "sessions", "questions")}
            # The fingerprint is that of what was stored, not of what was meant to be.
            self._note(complete=True, ingested_at=now, fingerprint=stored.fingerprint(), **sizes)

    def _begin(self) -> None:
        """Note the dataset before the first row is written, so that an interrupted ingest is told from a whole one."""
        if not self.wrote:
            self._note(complete=False)
            self.wrote = True

    def _note(self, **columns: object) -> None:
        about = {"name": self.name, "format": self.kind, "language": self.language}
        self.database.write_row("datasets", self.name, **about, **columns)

    def _there(self, table: str, columns: list[str]) -> pl.DataFrame:
        return self.database.read(table, columns, where=in_dataset(self.name))

    def _places(self, table: str, rows: pl.DataFrame, there: pl.DataFrame) -> pl.Series:
        """Give each row its place in the dataset.

        Rows that are all there in this order, such as those of some scopes alone, keep their places. A stream begins
        where its first known row stands, or behind everything there is: one that was interrupted, or is read again,
        gives each row the same place as before.
        """
        places = rows.select("key").join(there, on="key", how="left", maintain_order="left")["position"]
        if table not in self.next_position:
            first = places.is_not_null().arg_max() if places.len() > places.null_count() else None
            behind = int(there.select(pl.col("position").max()).item()) + 1 if there.height else 0
            self.next_position[table] = behind if first is None else max(0, int(places[first]) - first)
        start = self.next_position[table]
        self.next_position[table] = start + rows.height
        if places.null_count() == 0 and places.is_sorted():
            return places.cast(pl.Int64)
        return pl.int_range(start, start + rows.height, dtype=pl.Int64, eager=True)

    def _changed(self, table: str, rows: pl.DataFrame) -> pl.DataFrame:
        columns = list(TABLES[table].columns)
        pairs = rows.join(self._there(table, columns), on="key", suffix="_old", maintain_order="left")
        differs = pl.any_horizontal(pl.col(c).ne_missing(pl.col(f"{c}_old")) for c in columns if c != "key")
        return pairs.filter(differs).select(rows.columns)


def _keyed(batch: Dataset, table: str) -> pl.DataFrame:
    rows: pl.DataFrame = getattr(batch, table)
    if table == "issues":
        joined = rows.select(pl.concat_str(pl.all(), separator="\x1f", ignore_nulls=True)).to_series()
        rows = rows.with_columns(_id=pl.Series(text_hashes(joined), dtype=pl.String))
    rows = rows.with_columns(key=keys(batch.name, TABLES[table].id), dataset=pl.lit(batch.name))
    if table == "turns":
        content = turn_texts(batch.turns)
        rows = rows.with_columns(
            content=pl.Series(content, dtype=pl.String), content_hash=pl.Series(text_hashes(content), dtype=pl.String)
        )
    return _without_copies(rows, table=table)


def _without_copies(rows: pl.DataFrame, *, table: str) -> pl.DataFrame:
    """Drop rows that repeat; the database would insert each of them.

    :raises StoreError: when one id stands for two different rows.
    """
    if not rows["key"].is_duplicated().any():
        return rows
    single = rows.unique(maintain_order=True)
    twice = single.filter(pl.col("key").is_duplicated())
    if twice.height:
        column = TABLES[table].id
        id_ = twice[column][0]
        raise StoreError(
            f"dataset {twice['dataset'][0]!r}, table {table}: id {id_!r} stands for "
            f"{twice.filter(pl.col(column) == id_).height} different rows; give each its own id"
        )
    return single


def datasets(database: Database) -> pl.DataFrame:
    """List what is stored; see :meth:`memlab.store.MemoryStore.datasets`."""
    return database.read("datasets", list(row_columns("datasets"))).sort("name").with_columns(LANGUAGE)


def require(database: Database, name: str) -> tuple[str, str, bool]:
    """Give the format and the language of a dataset, and whether its ingest came to an end.

    :raises StoreError: when there is no such dataset.
    """
    listed = datasets(database)
    row = listed.filter(pl.col("name") == name).select("format", "language", "complete").rows()
    if not row:
        names = ", ".join(listed["name"]) or "none"
        raise StoreError(f"store {database.uri} has no dataset {name!r}; it has: {names}. Ingest it first")
    return row[0]


def read_dataset(
    database: Database, name: str, kind: str, language: str, scopes: Iterable[str] | None = None
) -> Dataset:
    """Read a dataset as it went in, or some of its scopes, whether or not its ingest came to an end."""
    wanted = None if scopes is None else list(scopes)
    tables = {
        table: read_rows(database, table, name, scopes=wanted if "scope" in row_columns(table) else None)
        for table in DATASET_TABLES
    }
    return Dataset(name, kind, **tables, language=language)


def read_rows(
    database: Database,
    table: str,
    dataset: str,
    *,
    scopes: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
) -> pl.DataFrame:
    """Read rows of a dataset in the order in which they went in.

    :raises StoreError: when a column does not exist.
    """
    wanted = list(row_columns(table) if columns is None else columns)
    there = {*database.table(table).schema.names, *TABLES[table].columns}
    unknown = [column for column in wanted if column not in there]
    if unknown:
        names = ", ".join(database.table(table).schema.names)
        raise StoreError(f"table {table} of store {database.uri} has no column {unknown[0]!r}; it has {names}")
    only = None if scopes is None else list(scopes)
    if only is not None and not only:
        return pl.DataFrame(schema={column: TABLES[table].columns.get(column, pl.String()) for column in wanted})
    ordered = list(dict.fromkeys([*wanted, "position", "key"]))
    return database.read(table, ordered, where=in_dataset(dataset, only)).sort("position", "key").select(wanted)


class Conversations(Part):
    """The datasets of a store."""

    def ingest(
        self, parts: Dataset | Iterable[Dataset], *, progress: bool = False, now: datetime | None = None
    ) -> pl.DataFrame:
        """Write datasets: what is new is inserted, what differs is rewritten, the rest is left alone.

        Small parts of a stream are joined and written in whole batches. An ingest that was interrupted, run again,
        ends in the same tables; until it has, :meth:`dataset` refuses the dataset. A turn that is rewritten loses its
        vectors. Rows that the dataset no longer has stay.

        :param now: what is noted as the time of the ingest; the clock where none is given.
        :returns: ``dataset``, ``table`` and the counts ``inserted``, ``updated``, ``unchanged``.
        :raises StoreError: when an id stands for two rows, or the store cannot be written.
        """
        return ingest(self.database, parts, progress=progress, now=now or datetime.now(UTC))

    def datasets(self) -> pl.DataFrame:
        """Give what is stored: a row for each dataset; ``complete`` is false where an ingest was interrupted."""
        with self.database.guarded("reading"):
            return datasets(self.database)

    def dataset(self, name: str, *, scopes: Names = None) -> Dataset:
        """Read a dataset as it went in: same rows, same order, same fingerprint.

        :param scopes: only these, and only their rows are read.
        :raises StoreError: when there is no such dataset, or its ingest was interrupted.
        """
        with self.database.guarded(f"reading {name!r}"):
            kind, language, complete = require(self.database, name)
            if not complete:
                where = f"{name!r} into store {self.database.uri}"
                raise StoreError(f"the ingest of {where} was interrupted; run it again to finish it")
            return read_dataset(self.database, name, kind, language, scopes)

    def scopes(self, dataset: str) -> list[str]:
        """Give the scopes of a dataset, in its order."""
        return self.sessions(dataset, columns=["scope"])["scope"].unique(maintain_order=True).to_list()

    def turns(self, dataset: str, *, scopes: Names = None, columns: Names = None) -> pl.DataFrame:
        """Read turns in the order of the dataset.

        :param columns: only these; ``content`` (the text that is retrieved) and ``content_hash`` exist too.
        """
        return self._rows("turns", dataset, scopes, columns)

    def sessions(self, dataset: str, *, scopes: Names = None, columns: Names = None) -> pl.DataFrame:
        """Read sessions; parameters as for :meth:`turns`."""
        return self._rows("sessions", dataset, scopes, columns)

    def questions(self, dataset: str, *, scopes: Names = None, columns: Names = None) -> pl.DataFrame:
        """Read questions; parameters as for :meth:`turns`."""
        return self._rows("questions", dataset, scopes, columns)

    def annotations(self, dataset: str, *, scopes: Names = None, columns: Names = None) -> pl.DataFrame:
        """Read annotations; parameters as for :meth:`turns`."""
        return self._rows("annotations", dataset, scopes, columns)

    def _rows(self, table: str, dataset: str, scopes: Names, columns: Names) -> pl.DataFrame:
        with self.database.guarded(f"reading {table} of {dataset!r}"):
            require(self.database, dataset)
            return read_rows(self.database, table, dataset, scopes=scopes, columns=columns)
