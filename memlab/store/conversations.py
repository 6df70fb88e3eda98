"""Datasets in their tables: written so that writing twice is writing once, and read back as they went in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from typing import Any, TypeVar

import polars as pl

from memlab.embed.text import turn_texts
from memlab.errors import StoreError
from memlab.records import Dataset, concat
from memlab.store.database import Database, Part
from memlab.store.places import STEP, between
from memlab.store.registry import DATASET_TABLES, TABLES, keys, row_columns, text_hashes

T = TypeVar("T")
Names = Iterable[str] | None
PRESENT: Mapping[str, int] = {}
"""The versions of no table: the rows that are there, also while an ingest is under way."""

BATCH_TURNS = 50_000
BATCH_BYTES = 1 << 28
_ATTEMPTS = 5

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


class _Writing:
    """The writing of one dataset, batch by batch; a batch holds whole scopes."""

    def __init__(self, database: Database, first: Dataset) -> None:
        self.database, self.name = database, first.name
        self.kind, self.language = first.format, first.language
        self.last: dict[str, int] = {}
        self.counts = {table: [0, 0, 0, 0] for table in DATASET_TABLES}
        self.wrote = False

    def add(self, batch: Dataset, since: Mapping[str, int] | None) -> None:
        """Write what is new or differs from what the tables hold, and take out what its scopes no longer have.

        :param since: see :meth:`memlab.store.database.Database.alone`.
        :raises StoreError: when another process wrote to one of the scopes since then.
        """
        if since is not None:
            self._unchanged(batch.scopes, since)
        moved = self._moved(batch)
        for table in DATASET_TABLES:
            rows = _keyed(batch, table)
            there = self._there(table, [c for c in ("key", "position", "scope") if c in TABLES[table].columns])
            rows = rows.with_columns(position=self._places(table, rows, there))
            new = rows.join(there, on="key", how="anti", maintain_order="left")
            changed = rows.clear() if new.height == rows.height else self._changed(table, rows)
            gone = _gone(table, batch, there, rows)
            if new.height or changed.height or gone.len() or (table == "questions" and moved.height):
                self._begin()
            if new.height or changed.height:
                self.database.write(table, pl.concat([new, changed]), clear_vectors=changed.height > 0)
            for some in gone.to_frame().iter_slices(1_000):
                self.database.delete(table, dataset=self.name, key=some["key"])
            counts = new.height, changed.height, rows.height - new.height - changed.height, gone.len()
            self.counts[table] = [before + more for before, more in zip(self.counts[table], counts, strict=True)]
        if moved.height:
            self.database.write("questions", moved)
            self.counts["questions"][1] += moved.height

    def finish(self, now: datetime) -> None:
        """Note that the dataset is whole, and what it came to."""
        listed = self.database.read("datasets", ["complete", "format", "language"], name=self.name)
        if listed.with_columns(LANGUAGE).rows() != [(True, self.kind, self.language)]:
            stored = read_dataset(self.database, self.name, self.kind, self.language, at=PRESENT)
            sizes = {table: getattr(stored, table).height for table in ("turns", "sessions", "questions")}
            # The fingerprint is that of what was stored, not of what was meant to be.
            self._note(complete=True, ingested_at=now, fingerprint=stored.fingerprint(), **sizes)

    def _begin(self) -> None:
        """Note the dataset before the first row is written, so that an interrupted ingest is told from a whole one.

        With it goes which versions of the tables hold the last state that is whole: others read that meanwhile.
        """
        if not self.wrote:
            listed = self.database.read("datasets", ["complete", "finished"], name=self.name).rows()
            complete, finished = listed[0] if listed else (False, None)
            if complete:
                finished = json.dumps({table: int(self.database.table(table).version) for table in DATASET_TABLES})
            self._note(complete=False, finished=finished)
            self.wrote = True

    def _note(self, **columns: object) -> None:
        about = {"name": self.name, "format": self.kind, "language": self.language}
        self.database.write_row("datasets", self.name, **about, **columns)

    def _unchanged(self, scopes: list[str], since: Mapping[str, int]) -> None:
        """Refuse scopes whose turns are others than when they were read."""
        columns = ["turn_id", "content_hash"]
        now, then = (
            self.database.read("turns", columns, at=at, dataset=self.name, scope=scopes).sort(columns)
            for at in (None, since["turns"])
        )
        if scopes and not now.equals(then):
            raise StoreError(f"another process wrote to the same scopes of {self.name!r} meanwhile: run it again")

    def _there(self, table: str, columns: list[str], scopes: Names = None) -> pl.DataFrame:
        return self.database.read(table, columns, dataset=self.name, scope=scopes)

    def _places(self, table: str, rows: pl.DataFrame, there: pl.DataFrame) -> pl.Series:
        """Give each row its place in the dataset; what is there in this order keeps its place.

        A scope that is new goes behind the one written before it, or behind everything there is: a stream that was
        interrupted, or is read again, ends in the same order.
        """
        places = rows.select("key").join(there, on="key", how="left", maintain_order="left")["position"]
        if places.null_count() or not places.is_sorted():
            scopes = rows["scope"] if "scope" in rows.columns else pl.repeat("", rows.height, eager=True)
            moved = between(places, scopes, there["position"], behind=self.last.get(table))
            if moved is None:
                self._respace(table)
                return self._places(table, rows, self._there(table, ["key", "position"]))
            places = moved
        if rows.height:
            self.last[table] = places[-1]
        return places

    def _respace(self, table: str) -> None:
        """Make room between all rows of the dataset, in their order."""
        rows = self._there(table, list(TABLES[table].columns)).sort("position", "key")
        room = pl.int_range(1, pl.len() + 1, dtype=pl.Int64) * STEP
        self.database.write(table, rows.with_columns(position=room))
        self.last.pop(table, None)

    def _changed(self, table: str, rows: pl.DataFrame) -> pl.DataFrame:
        columns = list(TABLES[table].columns)
        pairs = rows.join(self._there(table, columns), on="key", suffix="_old", maintain_order="left")
        differs = [pl.col(c).ne_missing(pl.col(f"{c}_old")) for c in columns if c not in ("key", "n")]
        if "n" in columns:
            # What is counted when it is read, an older store may have written out.
            differs.append(pl.col("n_old").ne_missing(pl.col("n")) & pl.col("n_old").ne_missing(pl.col("_n")))
        return pairs.filter(pl.any_horizontal(differs)).select(rows.columns)

    def _moved(self, batch: Dataset) -> pl.DataFrame:
        """Give the stored questions that the batch does not bring and whose evidence lies in other sessions now."""
        scopes, columns = batch.scopes, list(TABLES["questions"].columns)
        if not scopes:
            return pl.DataFrame(schema=dict(TABLES["questions"].columns))
        stay = self._there("questions", columns, scopes)
        stay = stay.join(batch.questions, on="query_id", how="anti")
        if stay.is_empty():
            return stay
        before = self._there("turns", ["turn_id", "session_id"], scopes)
        now = dict(batch.turns.select("turn_id", "session_id").iter_rows())
        pairs = before.with_columns(now=pl.col("turn_id").replace_strict(now, default=None, return_dtype=pl.String))
        of = dict(pairs.drop_nulls("now").group_by("session_id").agg(pl.col("now").first()).iter_rows())
        was = dict(before.select("turn_id", "session_id").iter_rows())

        def sessions(evidence: list[str], named: list[str]) -> list[str]:
            cited = [now[turn] for turn in evidence if turn in now]
            own = {was.get(turn) for turn in evidence}
            return list(dict.fromkeys([*cited, *(of.get(s, s) for s in named if s not in own)]))

        lists = stay.select("evidence", "evidence_sessions").iter_rows()
        placed = [sessions(evidence or [], named or []) for evidence, named in lists]
        stay = stay.with_columns(now=pl.Series(placed, dtype=pl.List(pl.String)))
        differs = pl.col("now").list.sort() != pl.col("evidence_sessions").list.sort()
        return stay.filter(differs).with_columns(evidence_sessions="now").select(columns)


_GROUP = {"turns": "session_id", "sessions": "scope"}
"""The column within which ``n`` counts: it is stored only where it does not simply count."""


def _gone(table: str, batch: Dataset, there: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Give the keys of what the scopes of a batch no longer have; questions stay, they may come from elsewhere."""
    if table not in ("turns", "sessions", "annotations"):
        return pl.Series("key", [], pl.String)
    return there.filter(pl.col("scope").is_in(batch.scopes)).join(rows, on="key", how="anti")["key"]


def _counted(table: str) -> pl.Expr:
    return pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(_GROUP[table])


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
    rows = _without_copies(rows, table=table)
    if table in _GROUP:
        counts = (pl.col("n") == _counted(table)).all().over(_GROUP[table])
        rows = rows.with_columns(_n="n", n=pl.when(~counts).then("n"))
    return rows


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
    listed = [column for column in row_columns("datasets") if column != "finished"]
    return database.noted("datasets").select(listed).sort("name").with_columns(LANGUAGE)


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


def last_finished(database: Database, name: str) -> Mapping[str, int]:
    """Give the versions of the tables that hold a dataset whole, where its ingest is under way or was interrupted."""
    return _finished(_state(database, name))


def _state(database: Database, name: str) -> list[tuple[Any, ...]]:
    return database.noted("datasets").filter(name=name).select("complete", "finished", "ingested_at").rows()


def _finished(state: list[tuple[Any, ...]]) -> Mapping[str, int]:
    return json.loads(state[0][1]) if state and not state[0][0] and state[0][1] else {}


def _of_one_state(database: Database, name: str, read: Callable[[Mapping[str, int]], T]) -> T:
    """Read something of the last finished state of a dataset, again where an ingest began or ended meanwhile.

    :param read: takes the versions of the tables; those that it has not are read as they are.
    """
    after = _state(database, name)
    for _ in range(_ATTEMPTS):
        before, made = after, read(_finished(after))
        after = _state(database, name)
        if after == before:
            break
    return made


def read_dataset(
    database: Database,
    name: str,
    kind: str,
    language: str,
    scopes: Iterable[str] | None = None,
    *,
    at: Mapping[str, int] | None = None,
) -> Dataset:
    """Read a dataset as it went in, or some of its scopes; ``at`` as for :func:`read_rows`."""
    wanted = None if scopes is None else list(scopes)

    def tables(at: Mapping[str, int]) -> dict[str, pl.DataFrame]:
        scoped = {table: wanted if "scope" in row_columns(table) else None for table in DATASET_TABLES}
        return {table: read_rows(database, table, name, scopes=some, at=at) for table, some in scoped.items()}

    read = _of_one_state(database, name, tables) if at is None else tables(at)
    return Dataset(name, kind, **read, language=language)


def read_rows(
    database: Database,
    table: str,
    dataset: str,
    *,
    scopes: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
    at: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """Read rows of a dataset in the order in which they went in.

    :param at: versions of tables, or :data:`PRESENT`; by default those of the last finished state.
    :raises StoreError: when a column does not exist.
    """
    wanted = list(row_columns(table) if columns is None else columns)
    unknown = [column for column in wanted if column not in TABLES[table].columns]
    there = database.table(table).schema.names if unknown else []
    if unknown := [column for column in unknown if column not in there]:
        names = ", ".join(there)
        raise StoreError(f"table {table} of store {database.uri} has no column {unknown[0]!r}; it has {names}")
    only = None if scopes is None else list(scopes)
    if only is not None and not only:
        return pl.DataFrame(schema={column: TABLES[table].columns.get(column, pl.String()) for column in wanted})
    group = [_GROUP[table]] if table in _GROUP and "n" in wanted else []
    ordered = list(dict.fromkeys([*wanted, "position", "key", *group]))

    def read(at: Mapping[str, int]) -> pl.DataFrame:
        return database.read(table, ordered, at=at.get(table), dataset=dataset, scope=only)

    rows = _of_one_state(database, dataset, read) if at is None else read(at)
    return (counted(table, rows) if group else rows.sort("position", "key")).select(wanted)


def counted(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Put rows in the order in which they went in, and give ``n`` where it was left out because it simply counts.

    :param rows: whole groups, with ``n``, ``position``, ``key`` and the column within which ``n`` counts.
    """
    return rows.sort("position", "key").with_columns(pl.col("n").fill_null(_counted(table)))


class Conversations(Part):
    """The datasets of a store."""

    def ingest(
        self, parts: Dataset | Iterable[Dataset], *, progress: bool = False, now: datetime | None = None
    ) -> pl.DataFrame:
        """Write datasets: what is new is inserted, what differs is rewritten, the rest is left alone.

        Small parts of a stream are joined and written in whole batches. Other ingests of the dataset wait meanwhile,
        and readers see its last finished state; until there is one, :meth:`dataset` refuses it. An ingest that was
        interrupted, run again, ends in the same tables. A turn that is rewritten loses its vectors. Turns and sessions
        that a scope no longer has are removed; scopes that do not come, and questions, stay: the questions follow their
        evidence into other sessions.

        :param now: what is noted as the time of the ingest; the clock where none is given.
        :returns: ``dataset``, ``table`` and the counts ``inserted``, ``updated``, ``unchanged``, ``removed``.
        :raises StoreError: when an id stands for two rows, or the store cannot be written.
        """
        from tqdm import tqdm

        database, writings = self.database, dict[str, _Writing]()
        database.writable("ingest")
        parts = [parts] if isinstance(parts, Dataset) else parts
        with ExitStack() as held, tqdm(desc="ingest", unit=" turns", disable=not progress, delay=2) as bar:
            # Several datasets in one order, so that no two ingests wait for each other.
            for name in sorted({part.name for part in parts}) if isinstance(parts, Sequence) else ():
                held.enter_context(database.alone(name))
            for batch in batches(parts):
                writing = writings.setdefault(batch.name, _Writing(database, batch))
                with database.guarded(f"ingesting {batch.name!r}"):
                    writing.add(batch, held.enter_context(database.alone(batch.name)))
                bar.update(batch.turns.height)
            for name, writing in writings.items():
                with database.guarded(f"ingesting {name!r}"):
                    writing.finish(now or datetime.now(UTC))
        report = [(name, table, *n) for name, writing in writings.items() for table, n in writing.counts.items()]
        numbers = dict.fromkeys(("inserted", "updated", "unchanged", "removed"), pl.Int64())
        return pl.DataFrame(report, schema={"dataset": pl.String(), "table": pl.String(), **numbers}, orient="row")

    def alone(self, dataset: str) -> AbstractContextManager[Any]:
        """Hold a dataset from reading to writing, so that what others ingest into it meanwhile is not lost: they wait.

        >>> import memlab, tempfile
        >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
        >>> with store.alone("mine"):  # read what is there, add to it, and write all of it
        ...     _ = store.ingest(memlab.sample(turns=60))
        """
        return self.database.alone(dataset)

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
            if not complete and not last_finished(self.database, name):
                where = f"{name!r} into store {self.database.uri}"
                raise StoreError(f"the first ingest of {where} is under way, or was interrupted; run it again")
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
