"""Writing datasets: a scope is replaced whole, and writing twice is writing once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.turn_texts import turn_text_expr
from memlab.errors import StoreError
from memlab.records import Dataset, concat
from memlab.records.dataset import digest_turns
from memlab.store.database import Database
from memlab.store.dataset_rows import (
    CURRENT_VERSIONS,
    finished_versions,
    read_dataset,
    read_rows,
)
from memlab.store.schemas import (
    DATASET_TABLES,
    TABLES,
    hash_column,
    make_empty_table,
    primary_keys,
    row_columns,
)

BATCH_TURNS = 50_000
BATCH_BYTES = 1 << 28
_ROOM = 1 << 32
"""Places that a scope has for its rows."""


def join_small_parts(parts: Iterable[Dataset]) -> Iterator[Dataset]:
    """Join the small parts of a stream, so that each batch is one version of a table and still fits
    in memory.
    """
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


class DatasetWriter:
    """The writing of one dataset, batch by batch; a batch holds whole scopes.

    Where nothing of the dataset is stored, nothing is read, and no key is looked up; while no batch
    follows the first, what this one wrote is the whole dataset. All of that needs the lock: without
    it, others may write meanwhile.
    """

    def __init__(self, database: Database, first: Dataset) -> None:
        self.database, self.name = database, first.name
        self.kind, self.language = first.format, first.language
        self.last = dict.fromkeys(DATASET_TABLES, -1)
        self.counts = {table: np.zeros(4, np.int64) for table in DATASET_TABLES}
        self.brought: set[str] = set()
        self.wrote, self.held = False, True
        self.interrupted: Mapping[str, int] | None = None
        self.is_new = False
        self.whole: Dataset | None = None

    def add(self, batch: Dataset, since: Mapping[str, int] | None) -> None:
        """Replace the scopes of a batch: write what is new or differs, and delete what they no
        longer have.

        :param since: see :meth:`memlab.store.database.Database.alone`.
        :raises StoreError: when another process wrote to one of the scopes since then, or since
            they were read to add messages to them.
        """
        if since is not None:
            self._refuse_changed(batch.scopes, since)
            self.held = False
        self.whole = None
        if self.held and not self.wrote:
            self.is_new = self._stores_nothing()
        there: dict[str, pl.DataFrame | None] = {}
        if batch.merged_onto:
            there["turns"] = self._refuse_merged_with_older(batch)
        self.brought.update(batch.scopes)
        moved_questions = self._moved_questions(batch)
        written = {table: _add_keys(batch, table) for table in DATASET_TABLES}
        for table, rows in written.items():
            self._write_changes(table, rows, batch.scopes, there.get(table))
        self.counts["questions"][1] += moved_questions.height
        self._change("questions", moved_questions.clear(), moved_questions)
        if self.is_new:
            # Rows that stand twice in the batch are stored once.
            tables: dict[str, Any] = {}
            for table, rows in written.items():
                tables[table] = rows.select(list(row_columns(table)))
            self.whole = replace(batch, **tables)
        self.is_new = False

    def _stores_nothing(self) -> bool:
        """Say whether nothing of the dataset is stored, nor rows whose entry somebody removed."""
        if not self._read_listing("name").is_empty():
            return False
        return not any(self.database.has_rows(t, dataset=self.name) for t in DATASET_TABLES)

    def _write_changes(
        self,
        table: str,
        rows: pl.DataFrame,
        scopes: list[str],
        there: pl.DataFrame | None,
    ) -> None:
        """Write the rows of some scopes to one table, and count them.

        :param there: the stored rows of these scopes, where they were read.
        """
        columns, scoped = list(TABLES[table].columns), "scope" in rows.columns
        places = self._read(table, ["key", "position"])
        rows = rows.with_columns(position=_assign_places(rows, places, after=self.last[table]))
        if rows.height:
            self.last[table] = rows["position"][-1]
        if places.is_empty():
            self.counts[table][0] += rows.height
            if rows.height:
                self._begin()
                complete = partial(_add_hashes, table)
                self.database.write(table, rows, are_new=self.is_new, complete=complete)
            return
        wanted = None
        if scoped:
            wanted = [*scopes, *rows["scope"].unique()]
        if there is None:
            there = self._read(table, columns, wanted)
        rows = _add_hashes(table, rows, there).select(columns)
        # Questions stay: they may come from another file.
        gone = there.clear()
        if scoped and table != "questions":
            gone = there.join(rows, on="key", how="anti")
        # What has another place alone, since something stands before it, is not counted as another
        # row.
        content = [column for column in columns if column not in ("position", "n")]
        differing = _select_differing(rows, there)
        rivals = there.join(differing, on="key", how="semi")
        like = rows.height - differing.height
        like += differing.join(rivals, on=content, how="semi", nulls_equal=True).height
        new = rows.join(places, on="key", how="anti", maintain_order="left")
        updated = rows.height - new.height - like
        if new.height and self.held:
            # Nobody else writes these keys, so that they need not be looked up.
            self._begin()
            self.database.write(table, new, are_new=True)
            differing = differing.join(new, on="key", how="anti", maintain_order="left")
        self._change(table, rivals, differing, gone["key"], clear_vectors=updated > 0)
        self.counts[table] += np.array([new.height, updated, like, gone.height])

    def _change(
        self,
        table: str,
        there: pl.DataFrame,
        rows: pl.DataFrame,
        gone: Sequence[str] | pl.Series = (),
        *,
        clear_vectors: bool = False,
    ) -> None:
        """Write the rows that are not there as they are, and delete those whose keys are gone."""
        written = _select_differing(rows, there)
        if written.height or len(gone):
            self._begin()
            if clear_vectors and table == "turns":
                # What has another place alone keeps its vectors.
                says_same = written.join(there, on=["key", "content_hash"], how="semi")
                changed = written.join(says_same, on="key", how="anti", maintain_order="left")
                self.database.write(table, changed, clear_vectors=True)
                written = says_same
            self.database.write(table, written)
            self.database.delete(table, dataset=self.name, key=gone)

    def finish(self, now: datetime) -> None:
        """Note that the dataset is whole, and what it came to."""
        if self.wrote or not self._is_whole():
            self._begin()
            # Where nothing is held, another ingest may be under way.
            if self.interrupted is not None and self.held:
                self._restore(self.interrupted)
            stored = self.whole
            if stored is None:
                # The fingerprint is that of what was stored, not of what was meant to be.
                stored = read_dataset(self.database, self.name, at=CURRENT_VERSIONS)
            sizes = {
                table: getattr(stored, table).height for table in ("turns", "sessions", "questions")
            }
            self._note(complete=True, ingested_at=now, fingerprint=stored.fingerprint(), **sizes)

    def _is_whole(self) -> bool:
        """Say whether the dataset is listed as whole, and as it comes."""
        about = self._read_listing("complete", "format", "language")
        return about.rows() == [(True, self.kind, self.language)]

    def _begin(self) -> None:
        """Note the dataset before the first row is written, so that an interrupted ingest is
        recognised.

        With it goes which versions of the tables hold the last state that is whole: others read
        that meanwhile.
        """
        if self.wrote:
            return
        self.wrote = True
        state: Mapping[str, int] = CURRENT_VERSIONS
        for about in self._read_listing("complete", "finished").rows(named=True):
            if about["complete"]:
                state = {table: int(self.database.table(table).version) for table in DATASET_TABLES}
            else:
                state = self.interrupted = finished_versions(about)
        self._note(complete=False, finished=json.dumps(state) if state else None)

    def _restore(self, at: Mapping[str, int]) -> None:
        """Bring the scopes that this ingest does not bring to the last finished state: an
        interrupted one wrote there.

        :param at: versions of the tables that hold that state; none, where there was no state yet.
        """
        for table in DATASET_TABLES:
            columns = list(TABLES[table].columns)
            if "scope" in columns:
                others = ~pl.col("scope").is_in(list(self.brought))
                now = self._read(table, columns).filter(others)
                was = now.clear()
                if table in at:
                    was = self.database.read(table, columns, at=at[table], dataset=self.name)
                was = was.filter(others)
                self._change(
                    table, now, was, now.join(was, on="key", how="anti")["key"], clear_vectors=True
                )

    def _note(self, **columns: object) -> None:
        about = {"name": self.name, "format": self.kind, "language": self.language}
        write = self.database.write_row
        if self.is_new:
            write = self.database.add_row
        elif self.held:
            write = self.database.update_row
        write("datasets", self.name, **about, **columns)

    def _refuse_changed(self, scopes: list[str], since: Mapping[str, int]) -> None:
        """Refuse scopes whose turns are others than when they were read."""
        columns = ["turn_id", "content_hash"]
        now, then = (
            self.database.read("turns", columns, at=at, dataset=self.name, scope=scopes).sort(
                columns
            )
            for at in (None, since["turns"])
        )
        if scopes and not now.equals(then):
            raise StoreError(
                f"another process wrote to the same scopes of {self.name!r} meanwhile: run it again"
            )

    def _refuse_merged_with_older(self, batch: Dataset) -> pl.DataFrame | None:
        """Refuse scopes that messages were added to in a state that is not the stored one any more.

        One that is stored as the batch has it was written before, and is written once more.

        :returns: the stored turns of the scopes of the batch, where nobody else writes meanwhile
            and no earlier ingest was interrupted.
        """
        merged_onto, there = batch.merged_onto, None
        listed = self._read_listing("complete", "finished").rows(named=True)
        if not listed:
            return None
        if self.held and finished_versions(listed[0]) == CURRENT_VERSIONS:
            scopes = [*merged_onto, *batch.scopes]
            stored = self._read("turns", list(TABLES["turns"].columns), scopes)
            there = stored.filter(pl.col("scope").is_in(batch.scopes))
        else:
            stored = read_rows(self.database, "turns", self.name, scopes=list(merged_onto))
        now = digest_turns(stored, merged_onto)
        changed = [scope for scope, read in merged_onto.items() if now[scope] != read]
        # To write down all messages of a long memory once more takes long, and is seldom needed.
        then = digest_turns(batch.turns, changed)
        for scope in changed:
            if now[scope] != then[scope]:
                raise StoreError(
                    f"another process wrote to scope {scope!r} of {self.name!r} after it was read: "
                    f"run it again, or read and write within `with store.alone({self.name!r})`"
                )
        return there

    def _moved_questions(self, batch: Dataset) -> pl.DataFrame:
        """Give the stored questions that the batch does not bring and whose evidence lies in other
        sessions now.
        """
        stay = self._read("questions", list(TABLES["questions"].columns), batch.scopes)
        stay = stay.join(batch.questions, on="query_id", how="anti")
        if stay.is_empty():
            return stay
        was = self._read("turns", ["turn_id", "session_id"], batch.scopes)
        turns = was.join(batch.turns.select("turn_id", now="session_id"), on="turn_id")
        evidence = stay.select("key", turn_id="evidence").explode("turn_id")
        lies = evidence.join(turns, on="turn_id", maintain_order="left").group_by(
            "key", maintain_order=True
        )
        placed = stay.join(lies.agg("now", was="session_id"), on="key", maintain_order="left")
        others = pl.col("evidence_sessions").list.set_difference("was")
        now = pl.concat_list("now", others).list.unique(maintain_order=True)
        moved = now.list.sort() != pl.col("evidence_sessions").list.sort()
        return placed.filter(moved).with_columns(evidence_sessions=now).select(stay.columns)

    def _read(
        self, table: str, columns: list[str], scopes: list[str] | None = None
    ) -> pl.DataFrame:
        if self.is_new:
            return make_empty_table(table, columns)
        return self.database.read(table, columns, dataset=self.name, scope=scopes)

    def _read_listing(self, *columns: str) -> pl.DataFrame:
        if self.is_new:
            return make_empty_table("datasets", columns)
        return self.database.read("datasets", columns, name=self.name)


def _assign_places(rows: pl.DataFrame, stored: pl.DataFrame, *, after: int) -> pl.Series:
    """Give rows their places in the order of the dataset: a scope that is there keeps its place, a
    new one goes behind.

    A stream whose scopes come in another order than they are stored goes behind too, from the first
    that is not in order, so that what is read back is in the order of the stream.

    :param stored: ``key`` and ``position`` of all stored rows of the dataset.
    :param after: the last place that this ingest gave.
    """
    numbers = np.full(rows.height, -1, np.int64)
    if stored.height:
        known = rows.select("key").join(stored, on="key", how="left", maintain_order="left")
        numbers = known["position"].fill_null(-1).to_numpy().astype(np.int64)
    scope = rows["scope"] if "scope" in rows.columns else pl.repeat("", rows.height, eager=True)
    free = int(max(stored["position"].to_numpy().max(initial=-1), after)) // _ROOM + 1
    begins = np.flatnonzero((scope != scope.shift())[1:].to_numpy()) + 1
    edges = sorted({0, *begins.tolist(), rows.height})
    for start, end in itertools.pairwise(edges):
        own = numbers[start:end]
        if not (own > after).all() or (np.diff(own) <= 0).any():
            first = own[own >= 0].min(initial=np.iinfo(np.int64).max)
            if not after < first < np.iinfo(np.int64).max:
                first, free = free * _ROOM, free + 1
            own[:] = first + np.arange(len(own))
        after = int(own[-1])
    return pl.Series("position", numbers, pl.Int64)


def _add_keys(batch: Dataset, table: str) -> pl.DataFrame:
    """Give the rows of a table with what the store adds to them, those that repeat once.

    :raises StoreError: when one id stands for two different rows.
    """
    rows: pl.DataFrame = getattr(batch, table)
    if table == "issues":
        joined = rows.select(
            pl.concat_str(pl.all(), separator="\x1f", ignore_nulls=True)
        ).to_series()
        rows = rows.with_columns(hash_column(joined).alias("_id"))
    rows = rows.with_columns(
        key=primary_keys(batch.name, pl.col(TABLES[table].id)), dataset=pl.lit(batch.name)
    )
    if rows["key"].n_unique() == rows.height:
        return rows
    single = rows.unique(maintain_order=True)
    twice = single.filter(pl.col("key").is_duplicated())[TABLES[table].id]
    if twice.len():
        raise StoreError(
            f"dataset {batch.name!r}, table {table}: id {twice[0]!r} stands for "
            f"{(twice == twice[0]).sum()} different rows; give each its own id"
        )
    return single


def _add_hashes(table: str, rows: pl.DataFrame, there: pl.DataFrame | None = None) -> pl.DataFrame:
    """Give turns the text that is retrieved, and its hash; rows of other tables stay as they are.

    :param there: stored rows: what says the same as that of its key has the same hash.
    """
    if table != "turns":
        return rows
    read = rows.with_columns(content=turn_text_expr())
    if there is None:
        return read.with_columns(hash_column(read["content"]).alias("content_hash"))
    stored = there.select("key", "content_hash", stored_content="content").unique("key")
    joined = read.join(stored, on="key", how="left", maintain_order="left")
    known, there_as = joined.drop("stored_content"), joined["stored_content"]
    unknown = known["content"].ne_missing(there_as) | known["content_hash"].is_null()
    hashes = hash_column(known["content"].filter(unknown))
    return known.with_columns(known["content_hash"].scatter(unknown.arg_true(), hashes))


def _select_differing(rows: pl.DataFrame, there: pl.DataFrame) -> pl.DataFrame:
    """Select the rows that are not there as they are, in their order."""
    if rows.is_empty() or there.is_empty():
        return rows
    return rows.join(there, on=rows.columns, how="anti", nulls_equal=True, maintain_order="left")
