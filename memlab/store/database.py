"""The database under the stores: reading and writing tables, and what an error of the database
becomes."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import polars as pl

# Imported now: it says what failed, and without a free file handle nothing can be imported then.
import memlab.argument_errors  # noqa: F401
from memlab.atomic_files import STATED_EVERY, let_ctrl_c_end_waits, lock_path
from memlab.errors import MemlabError, StoreError, explain_methods, is_panic
from memlab.records.dataset import in_utc
from memlab.store.kept_states import open_table_at_version
from memlab.store.table_schemas import (
    DATASET_TABLES,
    LATER_TABLES,
    TABLES,
    VERSIONED,
    TableVersions,
    build_required_row_filter,
    build_row_filter,
    hash_texts,
    to_arrow_table,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.expr import Expr
    from lancedb.table import Table as LanceTable

T = TypeVar("T")

_log = logging.getLogger(__name__)


class HeldDataset(NamedTuple):
    """A dataset of a store that a thread of a process has locked."""

    process_id: int
    store_place: str
    dataset: str


class LockedTurns(NamedTuple):
    """The turns of some scopes of a locked dataset, as a version of their table has them."""

    dataset: str
    scopes: list[str]
    version: int
    rows: pl.DataFrame


class _Held(threading.local):
    """What each thread holds: process, store and dataset, and what
    :meth:`Database.locking_dataset_or_noting_versions` gave.
    """

    def __init__(self) -> None:
        self.since: dict[HeldDataset, TableVersions | None] = {}


_held = _Held()

READERS = ".memlab.readers.lock"
"""The file that is locked, by each for itself, by those who need the versions that they have
seen."""
MADE = "table "
"""Before the name of a table in the notes of a store, once it was made."""

SLOW_AFTER = 10.0
"""Seconds that an object store was waited for after which that is stated."""

_NEVER_ALL = ("dataset", "run_id")
"""Columns of which a value is always meant; ``None`` for another reads all rows."""

_ATTEMPTS = 5
_STREAMED = 10_000
"""Rows that are made while those before them are written."""
_VECTORS = 4_096
_CONFLICT = ("conflict", "concurrent")
_OVERTAKEN = (
    *_CONFLICT,
    "not found",
    "already exists",
)  # a table that another process is making is listed first

_ADVICE = (
    (
        ("no space left", "os error 28", "storage full"),
        "the disk is full: free some space, then run it again",
    ),
    (
        ("file too large", "os error 27"),
        "the largest allowed file size is reached: raise the limit, then run it again",
    ),
    (("quota", "os error 122"), "the disk quota is used up: free some space, then run it again"),
    (
        ("too many open files", "os error 24", "os error 23"),
        "no file can be opened beyond those that are open: raise the limit (ulimit -n) or close "
        "other programs, then run it again",
    ),
    (
        (
            "out of memory",
            "cannot allocate",
            "os error 12)",
            "resources exhausted",
            "memoryerror",
        ),
        "the memory does not suffice: free some, or raise the limit, then run it again",
    ),
    (
        ("failed to spawn", "temporarily unavailable", "os error 11)"),
        "no thread can be started: end other programs or raise the limit (ulimit -u), then run it "
        "again",
    ),
    (
        (
            "permission denied",
            "not permitted",
            "read-only",
            "os error 13",
            "os error 30",
            "access denied",
            "forbidden",
        ),
        "the place cannot be written: correct its permissions or credentials, or name another "
        "place",
    ),
    (_CONFLICT, "another process wrote at the same time: run it again"),
    (
        ("failed to connect", "error sending request", "retryerror", "bucket"),
        "the object store did not answer as one: check the URI, the network and the credentials",
    ),
    (
        (
            "panic",
            "not found",
            "no such file",
            "corrupt",
            "magic",
            "decode",
            "too small",
            "unexpected end",
            "malformed",
            "invalid range",
            "expected value",
            "at line 1 column",
            "out of bounds",
            "is a directory",
            "not a directory",
        ),
        "a file of the store is missing or damaged: restore a copy, or remove the store and ingest "
        "again",
    ),
)
"""What the words of an error advise. Lack comes before damage: a panic may be over either."""


def _choose_advice_for_error_text(error_text: str) -> str:
    """Say what to do about an error of the database.

    >>> error_text = "Panicked: unwrap on: Too many open files (os error 24)"
    >>> advice = _choose_advice_for_error_text(error_text)
    >>> advice.partition(":")[0]
    'no file can be opened beyond those that are open'
    """
    lower_message = error_text.lower()
    for known_words, advice in _ADVICE:
        if any(known_word in lower_message for known_word in known_words):
            return advice
    return "run it again"


def _store_error_if_database_failed(
    method_name: str, table_group: object, error: BaseException
) -> StoreError | None:
    """Give the error of a method of a :class:`TableGroup` in which the database failed."""
    traceback = error.__traceback__
    module_names = set[str]()
    while traceback is not None:
        module_names.add(str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0])
        traceback = traceback.tb_next
    if not is_panic(error) and not module_names.intersection(("lancedb", "lance")):
        return None
    database: Database | None = getattr(table_group, "database", None)
    if database is None:
        return None
    return database.store_error_for(method_name, error)


def rebatch_arrow_table(arrow_table: pa.Table) -> pa.Table:
    """Divide an Arrow table into batches of some thousand rows.

    LanceDB looks for NaN batch by batch and numbers each value of a vector for that: twice the
    memory of the vectors.
    """
    import pyarrow as pa

    return pa.Table.from_batches(
        arrow_table.to_batches(max_chunksize=_VECTORS), schema=arrow_table.schema
    )


def _original_column_by_repeating_column(table_name: str, columns: Sequence[str]) -> dict[str, str]:
    """Give those of some columns of a table that may repeat another, each with that."""
    if table_name not in TABLES:
        return {}
    return {
        own_column: other_column
        for own_column, other_column in TABLES[table_name].repeats.items()
        if own_column in columns
    }


def _with_repeated_cells_as_null(table_name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows as they are stored: null where a column says what another says."""
    stored_columns = []
    for own_column, other_column in _original_column_by_repeating_column(
        table_name, rows.columns
    ).items():
        stored_columns.append(
            pl.when(pl.col(own_column) != pl.col(other_column)).then(own_column).alias(own_column)
        )
    return rows.with_columns(stored_columns)


def _frame_without_rows(table_name: str, columns: Sequence[str]) -> pl.DataFrame:
    """Give some columns of a table, or of one of a family, without rows."""
    family = table_name
    if table_name not in TABLES:
        family = table_name.partition("_")[0]
    column_types = TABLES[family].columns
    return pl.DataFrame(
        schema={column: column_types.get(column, pl.String()) for column in columns}
    )


def sort_in_dataset_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows (``position``, ``key`` …) in the order in which they went in."""
    # Most were written in order: to see that takes a part of the time of sorting.
    if (rows["position"].diff() > 0).all():
        return rows
    return rows.sort("position", "key")


def _with_times_in_utc(cells_by_column: Mapping[str, Any]) -> dict[str, Any]:
    """Give values with their times in UTC."""
    utc_times = {
        column: in_utc(cell)
        for column, cell in cells_by_column.items()
        if isinstance(cell, datetime)
    }
    return {**cells_by_column, **utc_times}


def _versions_by_dataset_locked_by_thread() -> dict[HeldDataset, TableVersions | None]:
    """Give what this thread holds, by process, store and dataset: what
    :meth:`Database.locking_dataset_or_noting_versions` gave.
    """
    return _held.since


def _forget_lock_of_this_thread(held_dataset: HeldDataset) -> None:
    _versions_by_dataset_locked_by_thread().pop(held_dataset, None)


def is_write_conflict(error: BaseException) -> bool:
    """Say whether an error comes from what another process wrote at the same time."""
    return any(known_word in str(error).lower() for known_word in _OVERTAKEN)


def _scan_in_one_call(table: Any, columns: Sequence[str], row_filter: Expr | None) -> pl.DataFrame:
    """Read columns of the rows that a filter gives, in the database's order.

    LanceDB answers on a thread of its own. What ``table.search()`` gives asks it six times for one
    scan, two of them for the schema; the asynchronous table asks once, in half the time.
    """
    from lancedb.background_loop import LOOP

    async def scan_to_arrow() -> pa.Table:
        query = table._table.query().select(list(columns))
        if row_filter is not None:
            query = query.where(row_filter)
        return await query.to_arrow()

    return pl.DataFrame(LOOP.run(scan_to_arrow()))


def _stream_as_arrow_batches(
    rows: pl.DataFrame, schema: pa.Schema, add_columns: Callable[[pl.DataFrame], pl.DataFrame]
) -> pa.RecordBatchReader:
    """Give rows as Arrow batches, each completed and made when the database asks for it."""
    import pyarrow as pa

    def make_batches() -> Iterator[Any]:
        for rows_part in rows.iter_slices(_STREAMED):
            complete_rows = add_columns(rows_part).select(schema.names)
            yield from complete_rows.to_arrow().cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, make_batches())


class TableGroup:
    """What keeps one kind of thing in the tables of a database."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        explain_methods(cls, _store_error_if_database_failed)

    def __init__(self, database: Database) -> None:
        self.database = database


class Database:
    """An open LanceDB database whose tables are those of :data:`memlab.store.table_schemas.TABLES`.

    :param pinned: versions of tables; with them it is a view, and read-only.

    ``made`` are the tables that are known to have been made, caches apart: one that is not there
    was removed. ``None`` while the store itself is being made.
    """

    def __init__(self, connection: Any, uri: str, *, pinned: TableVersions | None = None) -> None:
        self.connection = connection
        self.uri = uri
        self.pinned = pinned
        self.made: set[str] | None = None
        self._tables: dict[str, Any] = {}
        self._datasets: tuple[int | None, pl.DataFrame] | None = None
        self._locked_turns: LockedTurns | None = None
        self._warned = self._is_lockless = False
        self._reading: ExitStack | None = None
        self._waited = 0.0
        self._state_at = SLOW_AFTER
        self._is_waiting = False

    @property
    def is_local(self) -> bool:
        """Whether the tables are files of this machine."""
        return "://" not in self.uri

    @property
    def read_only(self) -> bool:
        """Whether this is a view on earlier versions."""
        return self.pinned is not None

    @contextmanager
    def translating_errors(self, action: str, *, refused_write: str = "") -> Iterator[None]:
        """Turn errors of the database into a :class:`StoreError` that says what to do.

        :param refused_write: what is written, which a view refuses.
        """
        if refused_write and self.read_only:
            raise StoreError(
                f"{refused_write}: this is a view on versions {self.pinned} of store {self.uri}, "
                "and read-only; open the store itself to write"
            )
        if refused_write:
            self._refuse_missing_store_folder()
        try:
            with self._warning_of_long_waits():
                yield
        except MemlabError:
            raise
        except BaseException as error:
            failure_types = (OSError, RuntimeError, ValueError, MemoryError)
            if not (isinstance(error, failure_types) or is_panic(error)):
                raise
            raise self.store_error_for(action, error) from error

    @contextmanager
    def _warning_of_long_waits(self) -> Iterator[None]:
        """Let Ctrl-C end waits; of an object store, state how long all of them were together."""
        let_ctrl_c_end_waits()
        if self.is_local or self._is_waiting:
            yield
            return
        self._is_waiting = True
        begun_at = time.monotonic()
        has_ended = threading.Event()

        def warn_until_ended() -> None:
            while not has_ended.wait(
                max(0.0, self._state_at - self._total_seconds_waited(begun_at))
            ):
                seconds = round(self._total_seconds_waited(begun_at))
                _log.warning(
                    "store %s: reading and writing took %s s so far; Ctrl-C ends it",
                    self.uri,
                    seconds,
                )
                self._state_at += STATED_EVERY

        thread = threading.Thread(target=warn_until_ended, daemon=True)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            self._waited = self._total_seconds_waited(begun_at)
            self._is_waiting = False

    def _total_seconds_waited(self, wait_began: float) -> float:
        return self._waited + time.monotonic() - wait_began

    def store_error_for(self, action: str, error: BaseException) -> StoreError:
        """Give the error that says what failed in the database, and what to do."""
        try:
            self._refuse_missing_store_folder()
        except StoreError as gone:
            return gone
        error_type = type(error).__name__
        message = " ".join(str(error).split())
        advice = _choose_advice_for_error_text(f"{error_type}: {message}")
        return StoreError(
            f"{action} failed in store {self.uri}: {message[:400] or error_type}; no table is left "
            f"half-written: {advice}"
        )

    def _refuse_missing_store_folder(self) -> None:
        """Refuse to go on where the folder of the store is no longer there.

        LanceDB would list no tables there, and make the folder anew for what it writes.
        """
        if self.connection is None or not self.is_local:
            return
        if not os.path.isdir(self.uri):
            raise StoreError(
                f"store {self.uri} is gone: it was moved or removed while it was open; open it "
                "where it is"
            )

    @contextmanager
    def tolerating_cache_failure(self, cache_name: str) -> Iterator[None]:
        """Let a cache not be written, as on a read-only or a full disk; the first time with a
        warning.
        """
        try:
            with self.translating_errors(f"remembering {cache_name}"):
                yield
        except StoreError as error:
            if not self._warned:
                _log.warning("%s (until then nothing is remembered)", error)
            self._warned = True

    @contextmanager
    def locking_dataset_or_noting_versions(self, dataset: str) -> Iterator[TableVersions | None]:
        """Hold a dataset, so that no other process changes it between reading and writing.

        The thread that holds it may hold it again, also through another handle of the store.

        :returns: ``None``; where the file system has no locks, as in an object store, the versions
            of the tables when it began, by which an ingest sees that another process wrote
            meanwhile.
        :raises StoreError: when the store is gone, or its lock cannot be opened.
        """
        held_keys = _versions_by_dataset_locked_by_thread()
        hold_key = self._held_dataset_key(dataset)
        if hold_key in held_keys:
            yield held_keys[hold_key]
            return
        with ExitStack() as stack:
            with self.translating_errors(f"holding dataset {dataset!r}"):
                dataset_text = f"dataset {dataset!r} of {self.uri}"
                is_locked = stack.enter_context(
                    self._trying_to_lock_dataset_file(dataset, wait_subject_or_empty=dataset_text)
                )
            versions_before = None
            if not is_locked:
                versions_before = {
                    name: int(self.open_or_create_table(name).version) for name in DATASET_TABLES
                }
            held_keys[hold_key] = versions_before
            stack.callback(_forget_lock_of_this_thread, hold_key)
            stack.callback(self._forget_locked_turns)
            yield versions_before

    def has_locked_dataset(self, dataset: str) -> bool:
        """Say whether this thread holds a dataset, so that no other process changes it."""
        held_keys = _versions_by_dataset_locked_by_thread()
        hold_key = self._held_dataset_key(dataset)
        return hold_key in held_keys and held_keys[hold_key] is None

    def read_locked_turns(self, dataset: str, scopes: Sequence[str]) -> pl.DataFrame:
        """Read the turns of some scopes of a dataset that this thread holds, with all columns and
        in their order.

        Those that were read last are kept until the dataset is let go: who adds to a long memory
        reads it once.
        """
        wanted_scopes = list(dict.fromkeys(scopes))
        with self.translating_errors("reading turns"):
            version = int(self.open_or_create_table("turns").version)
        asked = (dataset, wanted_scopes, version)
        kept_turns = self._locked_turns
        if kept_turns is not None and kept_turns[:3] == asked:
            return kept_turns.rows
        columns = list(TABLES["turns"].columns)
        rows = self.read_table("turns", columns, dataset=dataset, scope=wanted_scopes)
        kept_turns = LockedTurns(*asked, sort_in_dataset_order(rows))
        self._locked_turns = kept_turns
        return kept_turns.rows

    def _forget_locked_turns(self) -> None:
        self._locked_turns = None

    def try_locking_all_datasets(self, lock_releases: ExitStack) -> bool:
        """Hold every dataset that is listed, without waiting; whether all of them are held.

        :param lock_releases: lets go of them.
        """
        for dataset in self.list_datasets()["name"].sort():
            hold_key = self._held_dataset_key(dataset)
            if hold_key in _versions_by_dataset_locked_by_thread():
                continue
            if not self.try_locking_dataset(dataset, lock_releases):
                return False
        return True

    def try_locking_dataset(self, dataset: str, lock_releases: ExitStack) -> bool:
        """Hold a dataset, without waiting; whether it is held.

        :param lock_releases: lets go of it.
        """
        hold_key = self._held_dataset_key(dataset)
        held_keys = _versions_by_dataset_locked_by_thread()
        if hold_key in held_keys:
            return held_keys[hold_key] is None
        if not lock_releases.enter_context(self._trying_to_lock_dataset_file(dataset)):
            return False
        held_keys[hold_key] = None
        lock_releases.callback(_forget_lock_of_this_thread, hold_key)
        return True

    def _held_dataset_key(self, dataset: str) -> HeldDataset:
        store_place = self.uri
        if self.is_local:
            store_place = os.path.realpath(store_place)
        return HeldDataset(os.getpid(), store_place, dataset)

    @contextmanager
    def _trying_to_lock_dataset_file(
        self, dataset: str, *, wait_subject_or_empty: str = ""
    ) -> Iterator[bool]:
        """Lock a dataset; ``False`` where it cannot be; stated where others could write."""
        if not self.is_local:
            yield False
            return
        store_path = Path(self.uri)
        self._refuse_missing_store_folder()
        lock_file = store_path / f".memlab.{hash_texts([dataset])[0][:16]}.lock"
        if not lock_file.exists() and not os.access(store_path, os.W_OK):
            yield False  # Nothing can be written there, so nothing can be lost.
            return
        with lock_path(lock_file, alone=True, wait_for=wait_subject_or_empty) as is_locked:
            if wait_subject_or_empty and not is_locked and not self._is_lockless:
                self._is_lockless = True
                _log.warning(
                    "the file system of store %s has no locks: of two processes that write to one "
                    "scope within the same moment, one can lose turns",
                    self.uri,
                )
            yield is_locked

    def protect_versions_from_cleaning(self) -> None:
        """Keep the versions that are there now from being cleaned by those who write, while this
        handle lives.
        """
        if self._reading is not None or not self.is_local:
            return
        self._reading = stack = ExitStack()
        with suppress(OSError):
            stack.enter_context(lock_path(Path(self.uri) / READERS))
            weakref.finalize(self, stack.close)

    def retry_on_conflict(self, operation: Callable[[], T]) -> T:
        """Write, again when another writer was faster; the database itself retries only for half a
        minute.
        """
        for attempt in range(_ATTEMPTS - 1):
            try:
                return operation()
            except (OSError, RuntimeError, ValueError) as error:
                if not is_write_conflict(error):
                    raise
                time.sleep(0.02 * 2**attempt)
        return operation()

    def table_names(self) -> list[str]:
        """Give the names of all tables that are there."""
        self._refuse_missing_store_folder()
        return list(self.connection.list_tables(limit=10_000).tables)

    def open_or_create_table(self, table_name: str, schema: pa.Schema | None = None) -> LanceTable:
        """Give the LanceDB table of a name, at the version of this view; it is made where it is not
        there yet.

        :param schema: Arrow schema of one that is not among
            :data:`memlab.store.table_schemas.TABLES`.
        """

        def open_or_create() -> Any:
            if self._table_exists_or_refuse_removed(table_name):
                opened_table = self.open_table_unless_incomplete(table_name)
                if opened_table is not None:
                    return opened_table
            if schema is not None:
                return self.connection.create_table(table_name, schema=schema, exist_ok=True)
            columns = TABLES[table_name].arrow_schema()
            made_table = self.connection.create_table(table_name, schema=columns, exist_ok=True)
            self._write_note_that_table_was_made(table_name)
            return made_table

        if table_name not in self._tables:
            pinned_versions = self.pinned or {}
            if table_name in pinned_versions:
                self._tables[table_name] = open_table_at_version(
                    self.connection, table_name, pinned_versions[table_name]
                )
            else:
                self._tables[table_name] = self.retry_on_conflict(open_or_create)
        return self._tables[table_name]

    def _write_note_that_table_was_made(self, table_name: str) -> None:
        """Note that a table was made, so that it is missed where it is gone later."""
        if self.made is None or table_name in self.made or table_name == "store":
            return
        if TABLES[table_name].role == "cache":
            return
        self.upsert_row("store", f"{MADE}{table_name}", value="")
        self.made.add(table_name)

    def open_table_unless_incomplete(self, table_name: str) -> LanceTable | None:
        """Open a listed table; ``None`` for a folder without a state, which a killed making leaves.

        :raises ValueError: as LanceDB does, where the table is known to have been made.
        """
        try:
            return self.connection.open_table(table_name)
        except ValueError as error:
            if table_name in (self.made or ()) or "was not found" not in str(error):
                raise
            return None

    def _table_exists_or_refuse_removed(self, table_name: str) -> bool:
        """Say whether there is a table of a name.

        :raises StoreError: where there was one, which somebody removed.
        """
        if table_name in self.table_names():
            return True
        if table_name in (self.made or ()):
            raise StoreError(
                f"table {table_name} of store {self.uri} is missing, and what it held with it: "
                "restore a copy of the store, or remove the store and ingest again"
            )
        return False

    def list_versions_of_search_tables(self) -> list[tuple[str, int]]:
        """Give the versions of the tables that search reads: what was read holds for these."""
        search_tables = sorted(
            name for name in self._tables if name.startswith(("words_", "statistics"))
        )
        names = ["turns", "datasets", *search_tables]
        return [(name, int(self.open_or_create_table(name).version)) for name in names]

    def read_table(
        self,
        table_name: str,
        columns: Sequence[str],
        /,
        *,
        version: int | None = None,
        condition: str | None = None,
        **wanted_cells: str | Iterable[str] | None,
    ) -> pl.DataFrame:
        """Read columns of the rows that :func:`build_row_filter` gives, in the database's order.

        A table that nothing was written to has no rows.

        :param version: a version of the table; by default that of this view.
        :param condition: another one of the rows, in SQL, without what somebody wrote.
        :raises StoreError: when a column does not exist, or the table cannot be read.
        :raises TypeError: for ``None`` as a dataset or a run, which would read those of all.
        """
        for column in _NEVER_ALL:
            if wanted_cells.get(column, "") is None:
                raise TypeError(f"{column} is None")
        for column, values in wanted_cells.items():
            if values is not None and not isinstance(values, str):
                wanted_cells[column] = list(values)
        with self.translating_errors(f"reading {table_name}"):
            if [] in wanted_cells.values() or not self.has_table(table_name):
                return _frame_without_rows(table_name, columns)
            table = self._open_at_given_or_view_version(table_name, version)
            absent_columns = self._list_absent_columns_refusing_unknown(
                table_name, columns, table.schema.names
            )
            stored_columns = [column for column in columns if column not in absent_columns]
            repeated_columns = _original_column_by_repeating_column(table_name, stored_columns)
            row_filter: Any = build_row_filter(**wanted_cells)
            if condition is not None and row_filter is not None:
                row_filter = f"({row_filter.to_sql()}) AND ({condition})"

            def scan() -> pl.DataFrame:
                read_columns = list(dict.fromkeys((*stored_columns, *repeated_columns.values())))
                return _scan_in_one_call(table, read_columns, row_filter)

            # Again where the files that were being read were cleaned away.
            is_present = version is None and not self.read_only
            frame_read = self.retry_on_conflict(scan) if is_present else scan()
        if repeated_columns:
            restored_columns = [
                pl.coalesce(column, own_column).alias(column)
                for column, own_column in repeated_columns.items()
            ]
            frame_read = frame_read.with_columns(restored_columns).select(stored_columns)
        if not absent_columns:
            return frame_read
        column_types = TABLES[table_name].columns
        null_columns = [
            pl.lit(None, column_types[column]).alias(column) for column in absent_columns
        ]
        return frame_read.with_columns(null_columns).select(columns)

    def _open_at_given_or_view_version(self, table_name: str, version: int | None) -> LanceTable:
        """Give a table at a version; by default at that of this view."""
        if version is None:
            return self.open_or_create_table(table_name)
        return open_table_at_version(self.connection, table_name, version)

    def _list_absent_columns_refusing_unknown(
        self, table_name: str, columns: Sequence[str], stored_columns: list[str]
    ) -> list[str]:
        """Give those of some columns that came later than a table was made.

        :raises StoreError: for a column that it never had.
        """
        later_columns: Sequence[str] = ()
        if table_name in TABLES:
            later_columns = TABLES[table_name].later
        absent_columns = []
        for column in columns:
            if column in stored_columns:
                continue
            if column not in later_columns:
                raise StoreError(
                    f"table {table_name} of store {self.uri} has no column {column!r}; it has "
                    f"{', '.join(stored_columns)}"
                )
            absent_columns.append(column)
        return absent_columns

    def has_table(self, table_name: str) -> bool:
        """Say whether there is a table of a name; in a view, whether there was one of data."""
        came_later = table_name in LATER_TABLES and table_name in VERSIONED
        if self.pinned is not None and came_later and table_name not in self.pinned:
            return False
        return table_name in self._tables or self._table_exists_or_refuse_removed(table_name)

    def has_column(self, table_name: str, column: str, *, version: int | None = None) -> bool:
        """Say whether a table has a column, at a version or at that of this view."""
        return column in self._open_at_given_or_view_version(table_name, version).schema.names

    def list_datasets(self) -> pl.DataFrame:
        """Read the table of datasets, once for each of its versions: to ask for that takes a tenth
        of the time.
        """
        with self.translating_errors("reading datasets"):
            version = None
            if "datasets" in self._tables or self._table_exists_or_refuse_removed("datasets"):
                version = int(self.open_or_create_table("datasets").version)
        if self._datasets is None or self._datasets[0] != version:
            self._datasets = version, self.read_table("datasets", list(TABLES["datasets"].columns))
        return self._datasets[1]

    def overwrite_or_insert_row(self, table_name: str, key: str, /, **cells: Any) -> None:
        """Write one row that nobody else writes meanwhile; columns without a value are null.

        What an upsert notes of its keys takes 66 kB in LanceDB 0.40, so a row that is there is
        updated.
        """
        row = {**dict.fromkeys(TABLES[table_name].columns), "key": key, **_with_times_in_utc(cells)}
        opened_table = self.open_or_create_table(table_name)
        key_filter = build_required_row_filter(key=key).to_sql()
        update_result = self.retry_on_conflict(
            partial(opened_table.update, where=key_filter, values=row)
        )
        if not update_result.rows_updated:
            self.upsert_row(table_name, key, **cells)

    def insert_row(self, table_name: str, key: str, /, **cells: Any) -> None:
        """Write one row whose key is not there, nor is written by others meanwhile."""
        row = {"key": key, **_with_times_in_utc(cells)}
        self.upsert_rows(
            table_name, pl.DataFrame([row], schema=dict(TABLES[table_name].columns)), are_new=True
        )

    def upsert_row(self, table_name: str, key: str, /, **cells: Any) -> None:
        """Upsert one row; columns without a value are null."""
        row = {"key": key, **_with_times_in_utc(cells)}
        self.upsert_rows(table_name, pl.DataFrame([row], schema=dict(TABLES[table_name].columns)))

    def upsert_rows(
        self,
        table_name: str,
        rows: pl.DataFrame,
        *,
        clear_vectors: bool = False,
        are_new: bool = False,
        add_columns: Callable[[pl.DataFrame], pl.DataFrame] = pl.DataFrame.clone,
    ) -> None:
        """Upsert rows by their key, as one version of the table; columns that they have not stay as
        they are.

        ``use_index(False)``, because two processes that insert the same new keys through an index
        both succeed.

        :param clear_vectors: take the vectors from the rows, whose text is another; the cache has
            those of old texts.
        :param are_new: whether no row with their keys is there, nor is written by others meanwhile:
            no key is looked up then.
        :param add_columns: gives rows the columns that they lack; new ones some thousand at a time,
            while those before them are written.
        """
        import pyarrow as pa

        table = self.open_or_create_table(table_name)
        schema = TABLES[table_name].arrow_schema()
        self._add_columns_of_newer_schema(table_name)
        self._write_note_that_table_was_made(
            table_name
        )  # once more where a kill came between a table and its note

        def complete_rows_and_null_repeated(rows_part: pl.DataFrame) -> pl.DataFrame:
            return _with_repeated_cells_as_null(table_name, add_columns(rows_part))

        if are_new and rows.height:
            self.retry_on_conflict(
                lambda: table.add(
                    _stream_as_arrow_batches(rows, schema, complete_rows_and_null_repeated)
                )
            )
            return
        source = to_arrow_table(complete_rows_and_null_repeated(rows), schema)
        for column in table.schema:
            if clear_vectors and column.name.startswith(("vector_", "embedded_")):
                source = source.append_column(column, pa.nulls(len(source), column.type))
        if not len(source):
            return
        builder = (
            table.merge_insert("key")
            .use_index(False)
            .when_matched_update_all()
            .when_not_matched_insert_all()
        )
        # "null", since a null vector is a bad one by default.
        self.retry_on_conflict(partial(builder.execute, source, on_bad_vectors="null"))

    def has_rows(self, table_name: str, /, **wanted_cells: str) -> bool:
        """Say whether a table has rows that :func:`build_row_filter` gives."""
        table = self.open_or_create_table(table_name)
        if not table.count_rows():
            return False  # to look for some takes longer
        return bool(self.count_rows(table_name, **wanted_cells))

    def count_rows(self, table_name: str, /, **wanted_cells: str) -> int:
        """Count the rows of a table that :func:`build_row_filter` gives."""
        row_filter = build_required_row_filter(**wanted_cells).to_sql()
        return int(self.open_or_create_table(table_name).count_rows(row_filter))

    def _add_columns_of_newer_schema(self, table_name: str) -> None:
        """Give a table of an earlier store the columns that it lacks, null in every row."""
        table = self.open_or_create_table(table_name)
        schema = TABLES[table_name].arrow_schema()

        def add_absent_columns() -> None:
            known_columns = table.schema.names
            absent_columns = [
                column for column in TABLES[table_name].later if column not in known_columns
            ]
            if absent_columns:
                table.add_columns([schema.field(column) for column in absent_columns])

        if TABLES[table_name].later:
            self.retry_on_conflict(add_absent_columns)

    def delete_rows(
        self, table_name: str, /, **wanted_cells: str | Sequence[str] | pl.Series
    ) -> None:
        """Delete the rows that :func:`build_row_filter` gives.

        Without a value for a column there are none, nor in a table that is not there.
        """
        if not self.has_table(table_name):
            return
        if all(len(values) for values in wanted_cells.values()):
            self.retry_on_conflict(
                lambda: self.open_or_create_table(table_name).delete(
                    build_required_row_filter(**wanted_cells)
                )
            )
