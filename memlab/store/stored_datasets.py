"""The datasets of a store: what a user ingests, lists and reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import astuple, fields
from datetime import UTC, datetime
from typing import Any

import polars as pl

from memlab.errors import StoreError
from memlab.progress_bars import progress_bar
from memlab.records import Dataset
from memlab.store.database import TableGroup
from memlab.store.dataset_rows import (
    last_finished_or_current_versions,
    read_dataset,
    read_dataset_entry,
    read_dataset_rows,
    read_last_finished_state,
)
from memlab.store.ingestion import DatasetWriter, RowCounts, join_parts_into_batches
from memlab.store.store_opening import read_store_note, write_store_notes
from memlab.store.table_schemas import DATASET_TABLES, TableVersions
from memlab.store.tree_nodes import TreeNodes
from memlab.store.version_cleaning import clean_due_tables_or_warn

Names = Iterable[str] | None
_REPORT: dict[str, Any] = {
    "dataset": pl.String(),
    "table": pl.String(),
    **dict.fromkeys([field.name for field in fields(RowCounts)], pl.Int64()),
}
"""The columns of what an ingest reports."""


class Conversations(TableGroup):
    """The datasets of a store."""

    def ingest(
        self,
        parts: Dataset | Iterable[Dataset],
        *,
        progress: bool = False,
        now: datetime | None = None,
        choose: bool = True,
    ) -> pl.DataFrame:
        """Write datasets: the scopes that come are replaced whole, rows that do not differ are left
        alone.

        Small parts of a stream are joined and written in whole batches. Other ingests of the
        dataset wait meanwhile: two streams of several datasets must bring them in one order.
        Readers see its last finished state; until there is one, :meth:`dataset` refuses it. One
        that was interrupted, run again, ends in the same tables; one that comes before, with other
        scopes, takes back what it wrote. Turns, sessions and annotations that a scope no longer has
        are removed, and with removed turns what summaries say of them; scopes that do not come, and
        questions, stay: the questions follow their evidence into other sessions. Tables whose
        history outweighs their content are cleaned, see :mod:`memlab.store.version_cleaning`.

        :param now: what is noted as the time of the ingest; the clock where none is given.
        :param choose: whether commands and :func:`memlab.search` ask this dataset from now on, the
            last of several, where none is named.
        :returns: ``dataset``, ``table`` and the counts ``inserted``, ``updated``, ``unchanged``,
            ``removed``.
        :raises StoreError: when an id stands for two rows, or the store cannot be written.
        """
        database = self.database
        writers_by_name = dict[str, DatasetWriter]()
        parts = [parts] if isinstance(parts, Dataset) else parts
        with (
            ExitStack() as held_locks,
            progress_bar(what="ingest", unit="turns", hidden=not progress, delay=2) as turn_bar,
        ):
            # Several datasets in one order, so that no two ingests wait for each other.
            if isinstance(parts, Sequence):
                for name in sorted({dataset_part.name for dataset_part in parts}):
                    held_locks.enter_context(database.locking_dataset_or_noting_versions(name))
            for batch in join_parts_into_batches(parts):
                writer = writers_by_name.setdefault(batch.name, DatasetWriter(database, batch))
                with database.translating_errors(
                    f"ingesting {batch.name!r}", refused_write="ingest"
                ):
                    writer.refuse_stale_and_replace_scopes(
                        batch,
                        held_locks.enter_context(
                            database.locking_dataset_or_noting_versions(batch.name)
                        ),
                    )
                turn_bar.update(batch.turns.height)
            for name, writer in writers_by_name.items():
                with database.translating_errors(f"ingesting {name!r}"):
                    writer.restore_other_scopes_and_note_complete(now or datetime.now(UTC))
                turn_counts = writer.counts["turns"]
                if turn_counts.updated or turn_counts.removed:
                    TreeNodes(database).remove_text_on_changed_turns(name)
            if choose and writers_by_name:
                self._note_as_chosen([*writers_by_name][-1])
            if writers_by_name:
                clean_due_tables_or_warn(database, (*DATASET_TABLES, "datasets", "nodes"))
        report_rows = []
        for name, writer in writers_by_name.items():
            for table, row_counts in writer.counts.items():
                report_rows.append((name, table, *astuple(row_counts)))
        return pl.DataFrame(report_rows, schema=_REPORT, orient="row")

    def alone(self, dataset: str) -> AbstractContextManager[TableVersions | None]:
        """Hold a dataset from reading to writing, so that what others ingest into it meanwhile is
        not lost: they wait.

        >>> import memlab, tempfile
        >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
        >>> with store.alone("mine"):  # read what is there, add to it, and write all of it
        ...     _ = store.ingest(memlab.sample(turns=60))
        """
        return self.database.locking_dataset_or_noting_versions(dataset)

    def _note_as_chosen(self, name: str) -> None:
        if read_store_note(self.database, "dataset") != name:
            with self.database.translating_errors("choosing a dataset", refused_write="choose"):
                write_store_notes(self.database, dataset=name)

    def datasets(self) -> pl.DataFrame:
        """Give what is stored: a row for each dataset; ``complete`` is false where an ingest was
        interrupted.
        """
        return self.database.list_datasets().drop("key", "finished").sort("name")

    def dataset(self, name: str, *, scopes: Names = None) -> Dataset:
        """Read a dataset as it went in: same rows, same order, same fingerprint.

        :param scopes: only these, and only their rows are read.
        :raises StoreError: when there is no such dataset, its ingest was interrupted, or it has
            other numbers of rows than were ingested.
        """
        read_dataset_entry(self.database, name)
        if not self.whole(name):
            place_text = f"{name!r} into store {self.database.uri}"
            raise StoreError(
                f"the first ingest of {place_text} is under way, or was interrupted; run it again"
            )
        if scopes is not None:
            scopes = list(scopes)

        def read_at_versions(versions: TableVersions) -> Dataset:
            data = read_dataset(self.database, name, scopes=scopes, versions=versions)
            if scopes is None and not versions:
                self._refuse_missing_rows(data)
            return data

        return read_last_finished_state(self.database, name, read_at_versions)

    def _refuse_missing_rows(self, read_data: Dataset) -> None:
        """Refuse a dataset that has other numbers of rows than were noted when its ingest ended.

        A table whose newest state was removed would else pass as an earlier one.
        """
        dataset_entry = read_dataset_entry(self.database, read_data.name)
        if not dataset_entry["complete"]:
            return
        for table in ("turns", "sessions", "questions"):
            n_noted = dataset_entry[table]
            n_there = getattr(read_data, table).height
            if n_there != n_noted:
                raise StoreError(
                    f"dataset {read_data.name!r} of store {self.database.uri} has {n_there:,} "
                    f"{table}, and {n_noted:,} were ingested: where nobody is writing to it, a "
                    "file of the store is missing or damaged: restore a copy, or remove the store "
                    "and ingest again"
                )

    def whole(self, name: str) -> bool:
        """Say whether a dataset was ever ingested whole, so that :meth:`dataset` gives it."""
        dataset_entries = self.database.list_datasets().filter(name=name).rows(named=True)
        return any(
            dataset_entry["complete"] or last_finished_or_current_versions(dataset_entry)
            for dataset_entry in dataset_entries
        )

    def scopes(self, dataset: str) -> list[str]:
        """Give the scopes of a dataset, in its order."""
        return (
            self.sessions(dataset, columns=["scope"])["scope"].unique(maintain_order=True).to_list()
        )

    def turns(self, dataset: str, *, scopes: Names = None, columns: Names = None) -> pl.DataFrame:
        """Read turns in the order of the dataset.

        :param columns: only these; ``content`` (the text that is retrieved) and ``content_hash``
            exist too.
        """
        return read_dataset_rows(self.database, "turns", dataset, scopes=scopes, columns=columns)

    def sessions(
        self, dataset: str, *, scopes: Names = None, columns: Names = None
    ) -> pl.DataFrame:
        """Read sessions; parameters as for :meth:`turns`."""
        return read_dataset_rows(self.database, "sessions", dataset, scopes=scopes, columns=columns)

    def questions(
        self, dataset: str, *, scopes: Names = None, columns: Names = None
    ) -> pl.DataFrame:
        """Read questions; parameters as for :meth:`turns`."""
        return read_dataset_rows(
            self.database, "questions", dataset, scopes=scopes, columns=columns
        )
