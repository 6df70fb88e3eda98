"""Writing datasets: a scope is replaced whole, and writing twice is writing once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.turn_texts import turn_text_expr
from memlab.errors import StoreError
from memlab.records import Dataset, concat
from memlab.records.dataset import digest_turns_by_scope_or_empty
from memlab.store.database import Database
from memlab.store.dataset_rows import (
    CURRENT_VERSIONS,
    last_finished_or_current_versions,
    read_dataset,
    read_dataset_rows,
)
from memlab.store.table_schemas import (
    DATASET_TABLES,
    TABLES,
    TableVersions,
    hash_text_column,
    make_frame_without_rows,
    primary_key_expr,
    type_by_record_column,
)

BATCH_TURNS = 50_000
BATCH_BYTES = 1 << 28
_ROOM = 1 << 32
"""Places that a scope has for its rows."""
_LOOKED_UP = 20_000
"""New turns up to which the database looks for each by its key."""


def join_parts_into_batches(dataset_parts: Iterable[Dataset]) -> Iterator[Dataset]:
    """Join the small parts of a stream, so that each batch is one version of a table and still fits
    in memory.
    """
    batch_parts: list[Dataset] = []
    n_turns = n_bytes = 0
    for dataset_part in dataset_parts:
        is_full = n_turns + dataset_part.turns.height > BATCH_TURNS or n_bytes > BATCH_BYTES
        if batch_parts and (is_full or not _are_of_one_dataset(batch_parts[0], dataset_part)):
            yield concat(batch_parts)
            batch_parts = []
            n_turns = 0
            n_bytes = 0
        batch_parts.append(dataset_part)
        n_turns += dataset_part.turns.height
        n_bytes += int(dataset_part.turns.estimated_size())
    if batch_parts:
        yield concat(batch_parts)


def _are_of_one_dataset(first: Dataset, second: Dataset) -> bool:
    return first.name == second.name and first.format == second.format


@dataclass
class RowCounts:
    """How many rows of a table an ingest wrote anew, wrote over, left as they are and deleted."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0


class DatasetWriter:
    """The writing of one dataset, batch by batch; a batch holds whole scopes.

    Where nothing of the dataset is stored, nothing is read, and no key is looked up; while no batch
    follows the first, what this one wrote is the whole dataset. All of that needs the lock: without
    it, others may write meanwhile.

    ``counts`` are by table, and so are ``last_places``, the last place that was given to a row;
    ``brought_scopes`` are those of all batches. ``has_begun`` says whether anything was written,
    ``is_held`` whether the lock is held, ``is_new`` whether nothing of the dataset is stored.
    ``interrupted_state`` holds the versions of the last whole state, where an ingest before this
    one was interrupted; ``whole_dataset`` is what one batch wrote where nothing was stored, and
    ``turns_of_scopes`` are the turns of the scopes of the last batch where what was stored of them
    was read and replaced.
    """

    def __init__(self, database: Database, first: Dataset) -> None:
        self.database = database
        self.name = first.name
        self.kind = first.format
        self.language = first.language
        self.last_places = dict.fromkeys(DATASET_TABLES, -1)
        self.counts = {table: RowCounts() for table in DATASET_TABLES}
        self.brought_scopes: set[str] = set()
        self.has_begun = False
        self.is_held = True
        self.interrupted_state: TableVersions | None = None
        self.is_new = False
        self.whole_dataset: Dataset | None = None
        self.turns_of_scopes: pl.DataFrame | None = None

    def refuse_stale_and_replace_scopes(
        self, batch: Dataset, versions_before_if_unlocked: TableVersions | None
    ) -> None:
        """Replace the scopes of a batch: write what is new or differs, and delete what they no
        longer have.

        :param versions_before_if_unlocked: see
            :meth:`memlab.store.database.Database.locking_dataset_or_noting_versions`.
        :raises StoreError: when another process wrote to one of the scopes since then, or since
            they were read to add messages to them.
        """
        if versions_before_if_unlocked is not None:
            self._refuse_scopes_changed_since(batch.scopes, versions_before_if_unlocked)
            self.is_held = False
        self.whole_dataset = None
        self.turns_of_scopes = None
        if self.is_held and not self.has_begun:
            self.is_new = self._has_no_stored_rows()
        stored_turns = None
        if batch.merged_onto:
            stored_turns = self._refuse_stale_merges_and_read_turns(batch)
        self.brought_scopes.update(batch.scopes)
        moved_questions = self._move_evidence_of_stored_questions(batch)
        rows_by_table = {
            table: _distinct_keyed_rows_of_batch(batch, table) for table in DATASET_TABLES
        }
        for table, rows in rows_by_table.items():
            if table == "turns" and stored_turns is not None:
                self._place_turns_and_write_changes(rows, batch.scopes, stored_turns)
            else:
                self._place_rows_and_write_changes(table, rows, batch.scopes)
        self.counts["questions"].updated += moved_questions.height
        self._upsert_rows_and_delete_keys("questions", moved_questions.clear(), moved_questions)
        if self.is_new:
            # Rows that stand twice in the batch are stored once.
            stored_tables: dict[str, Any] = {}
            for table, rows in rows_by_table.items():
                stored_tables[table] = rows.select(list(type_by_record_column(table)))
            self.whole_dataset = replace(batch, **stored_tables)
        elif stored_turns is not None:
            self.turns_of_scopes = rows_by_table["turns"].select(
                list(type_by_record_column("turns"))
            )
        self.is_new = False

    def _has_no_stored_rows(self) -> bool:
        """Say whether nothing of the dataset is stored, nor rows whose entry somebody removed."""
        if not self._read_dataset_entry_columns("name").is_empty():
            return False
        return not any(self.database.has_rows(table, dataset=self.name) for table in DATASET_TABLES)

    def _place_rows_and_write_changes(
        self,
        table_name: str,
        batch_rows: pl.DataFrame,
        scopes: list[str],
        stored_rows: pl.DataFrame | None = None,
    ) -> None:
        """Write the rows of some scopes to one table, and count them.

        :param stored_rows: the stored rows of these scopes, where they were read.
        """
        stored_places = self._read_rows_of_this_dataset(table_name, ["key", "position"])
        places = _number_rows_in_dataset_order(
            batch_rows, stored_places, last_place=self.last_places[table_name]
        )
        batch_rows = batch_rows.with_columns(position=places)
        if batch_rows.height:
            self.last_places[table_name] = places[-1]
        if stored_places.is_empty():
            self._count_and_write_first_rows(table_name, batch_rows)
            return
        if stored_rows is None:
            wanted_scopes = None
            if "scope" in batch_rows.columns:
                wanted_scopes = [*scopes, *batch_rows["scope"].unique()]
            stored_rows = self._read_rows_of_this_dataset(
                table_name, list(TABLES[table_name].columns), wanted_scopes
            )
        self._count_write_and_delete_differences(table_name, batch_rows, stored_rows, stored_places)

    def _place_turns_and_write_changes(
        self, batch_turns: pl.DataFrame, scopes: list[str], stored_turns: pl.DataFrame
    ) -> None:
        """Write the turns of scopes whose stored ones were read.

        Of one scope, those that come first and are stored as they are are only counted.

        :param stored_turns: in the order of the dataset.
        """
        n_same = 0
        if len(scopes) == 1:
            n_same = _count_leading_turns_stored_as_they_are(
                batch_turns, stored_turns, last_place=self.last_places["turns"]
            )
        later_turns = batch_turns[n_same:]
        later_stored = stored_turns[n_same:]
        unknown_turns = later_turns.join(later_stored, on="key", how="anti")
        if not n_same or self._may_stand_in_other_scopes(unknown_turns["key"]):
            self._place_rows_and_write_changes("turns", batch_turns, scopes, stored_turns)
            return
        self.counts["turns"].unchanged += n_same
        last_place = stored_turns["position"][n_same - 1]
        stored_places = later_stored.select("key", "position")
        places = _number_rows_behind(later_turns, stored_places, last_place=last_place)
        self.last_places["turns"] = [last_place, *places][-1]
        self._count_write_and_delete_differences(
            "turns", later_turns.with_columns(position=places), later_stored, stored_places
        )

    def _may_stand_in_other_scopes(self, keys: pl.Series) -> bool:
        """Say whether rows of turns may be there that were not read; few are looked up."""
        if len(keys) > _LOOKED_UP:
            return True
        return not self.database.read_table("turns", ["key"], key=keys).is_empty()

    def _count_and_write_first_rows(self, table_name: str, batch_rows: pl.DataFrame) -> None:
        """Write the rows of a table that holds none of the dataset."""
        self.counts[table_name].inserted += batch_rows.height
        if batch_rows.height:
            self._note_ingest_as_begun()
            add_hashes = partial(_add_content_and_hash_if_turns, table_name)
            self.database.upsert_rows(
                table_name, batch_rows, are_new=self.is_new, add_columns=add_hashes
            )

    def _count_write_and_delete_differences(
        self,
        table_name: str,
        batch_rows: pl.DataFrame,
        stored_rows: pl.DataFrame,
        stored_positions: pl.DataFrame,
    ) -> None:
        """Write what is new or differs from what is stored of some scopes; delete what is gone.

        :param stored_rows: those of these scopes; all of the dataset where the table has no scopes.
        :param stored_positions: ``key`` and ``position`` of all rows of the dataset in the table.
        """
        columns = list(TABLES[table_name].columns)
        is_scoped = "scope" in batch_rows.columns
        batch_rows = _add_content_and_hash_if_turns(table_name, batch_rows, stored_rows).select(
            columns
        )
        # Questions stay: they may come from another file.
        gone_rows = stored_rows.clear()
        if is_scoped and table_name != "questions":
            gone_rows = stored_rows.join(batch_rows, on="key", how="anti")
        # What has another place alone, since something stands before it, is not counted as another
        # row.
        content_columns = [column for column in columns if column not in ("position", "n")]
        differing_rows = _select_rows_not_stored(batch_rows, stored_rows)
        replaced_rows = stored_rows.join(differing_rows, on="key", how="semi")
        moved_rows = differing_rows.join(
            replaced_rows, on=content_columns, how="semi", nulls_equal=True
        )
        n_unchanged = batch_rows.height - differing_rows.height + moved_rows.height
        new_rows = batch_rows.join(stored_positions, on="key", how="anti", maintain_order="left")
        n_updated = batch_rows.height - new_rows.height - n_unchanged
        counts = self.counts[table_name]
        counts.inserted += new_rows.height
        counts.updated += n_updated
        counts.unchanged += n_unchanged
        counts.removed += gone_rows.height
        if new_rows.height and self.is_held:
            # Nobody else writes these keys, so that they need not be looked up.
            self._note_ingest_as_begun()
            self.database.upsert_rows(table_name, new_rows, are_new=True)
            differing_rows = differing_rows.join(
                new_rows, on="key", how="anti", maintain_order="left"
            )
        gone_keys = gone_rows["key"]
        self._upsert_rows_and_delete_keys(
            table_name, replaced_rows, differing_rows, gone_keys, clear_vectors=n_updated > 0
        )

    def _upsert_rows_and_delete_keys(
        self,
        table_name: str,
        stored_rows: pl.DataFrame,
        new_rows: pl.DataFrame,
        gone_keys: Sequence[str] | pl.Series = (),
        *,
        clear_vectors: bool = False,
    ) -> None:
        """Write the rows that are not there as they are, and delete those whose keys are gone."""
        changed_rows = _select_rows_not_stored(new_rows, stored_rows)
        if changed_rows.is_empty() and not len(gone_keys):
            return
        self._note_ingest_as_begun()
        if clear_vectors and table_name == "turns":
            # What has another place alone keeps its vectors.
            moved_rows = changed_rows.join(stored_rows, on=["key", "content_hash"], how="semi")
            rewritten_rows = changed_rows.join(
                moved_rows, on="key", how="anti", maintain_order="left"
            )
            self.database.upsert_rows(table_name, rewritten_rows, clear_vectors=True)
            changed_rows = moved_rows
        self.database.upsert_rows(table_name, changed_rows)
        self.database.delete_rows(table_name, dataset=self.name, key=gone_keys)

    def restore_other_scopes_and_note_complete(self, ingested_at: datetime) -> None:
        """Note that the dataset is whole, and what it came to."""
        if not self.has_begun and self._is_listed_as_complete():
            return
        self._note_ingest_as_begun()
        # Where nothing is held, another ingest may be under way.
        if self.interrupted_state is not None and self.is_held:
            for table in DATASET_TABLES:
                self._restore_scopes_not_brought(table, self.interrupted_state)
        stored_dataset = self.whole_dataset
        if stored_dataset is None:
            # The fingerprint is that of what was stored, not of what was meant to be.
            stored_dataset = read_dataset(
                self.database,
                self.name,
                versions=CURRENT_VERSIONS,
                known_turns=self._whole_turns_if_known(),
            )
        self._write_dataset_entry(
            complete=True,
            ingested_at=ingested_at,
            fingerprint=stored_dataset.fingerprint(),
            turns=stored_dataset.turns.height,
            sessions=stored_dataset.sessions.height,
            questions=stored_dataset.questions.height,
        )

    def _whole_turns_if_known(self) -> pl.DataFrame | None:
        """Give the turns of the dataset where all are of the scopes that were read and replaced."""
        turns = self.turns_of_scopes
        if turns is None or self.interrupted_state is not None:
            return None
        if self.database.count_rows("turns", dataset=self.name) != turns.height:
            return None
        return turns

    def _is_listed_as_complete(self) -> bool:
        """Say whether the dataset is listed as whole, and as it comes."""
        dataset_entry = self._read_dataset_entry_columns("complete", "format", "language")
        return dataset_entry.rows() == [(True, self.kind, self.language)]

    def _note_ingest_as_begun(self) -> None:
        """Note the dataset before the first row is written, so that an interrupted ingest is
        recognised.

        With it goes which versions of the tables hold the last state that is whole: others read
        that meanwhile.
        """
        if self.has_begun:
            return
        self.has_begun = True
        finished_state: TableVersions = CURRENT_VERSIONS
        for dataset_entry in self._read_dataset_entry_columns("complete", "finished").rows(
            named=True
        ):
            if dataset_entry["complete"]:
                finished_state = {
                    table: int(self.database.open_or_create_table(table).version)
                    for table in DATASET_TABLES
                }
            else:
                self.interrupted_state = last_finished_or_current_versions(dataset_entry)
                finished_state = self.interrupted_state
        self._write_dataset_entry(
            complete=False, finished=json.dumps(finished_state) if finished_state else None
        )

    def _restore_scopes_not_brought(
        self, table_name: str, finished_versions: TableVersions
    ) -> None:
        """Bring the scopes that this ingest does not bring to the last finished state: an
        interrupted one wrote there.

        :param finished_versions: versions of the tables that hold that state; none, where
            there was no state yet.
        """
        columns = list(TABLES[table_name].columns)
        if "scope" not in columns:
            return
        is_other_scope = ~pl.col("scope").is_in(list(self.brought_scopes))
        current_rows = self._read_rows_of_this_dataset(table_name, columns).filter(is_other_scope)
        finished_rows = current_rows.clear()
        if table_name in finished_versions:
            finished_rows = self.database.read_table(
                table_name, columns, version=finished_versions[table_name], dataset=self.name
            )
        finished_rows = finished_rows.filter(is_other_scope)
        gone_keys = current_rows.join(finished_rows, on="key", how="anti")["key"]
        self._upsert_rows_and_delete_keys(
            table_name, current_rows, finished_rows, gone_keys, clear_vectors=True
        )

    def _write_dataset_entry(self, **cells: object) -> None:
        entry_columns = {"name": self.name, "format": self.kind, "language": self.language}
        write_entry = self.database.upsert_row
        if self.is_new:
            write_entry = self.database.insert_row
        elif self.is_held:
            write_entry = self.database.overwrite_or_insert_row
        write_entry("datasets", self.name, **entry_columns, **cells)

    def _refuse_scopes_changed_since(
        self, scopes: list[str], versions_before: TableVersions
    ) -> None:
        """Refuse scopes whose turns are others than when they were read."""
        columns = ["turn_id", "content_hash"]
        chosen: dict[str, Any] = {"dataset": self.name, "scope": scopes}
        current_turns = self.database.read_table("turns", columns, **chosen)
        turns_before = self.database.read_table(
            "turns", columns, version=versions_before["turns"], **chosen
        )
        if scopes and not current_turns.sort(columns).equals(turns_before.sort(columns)):
            raise StoreError(
                f"another process wrote to the same scopes of {self.name!r} meanwhile: run it again"
            )

    def _refuse_stale_merges_and_read_turns(self, batch: Dataset) -> pl.DataFrame | None:
        """Refuse scopes that messages were added to in a state that is not the stored one any more.

        One that is stored as the batch has it was written before, and is written once more.

        :returns: the stored turns of the scopes of the batch, where nobody else writes meanwhile
            and no earlier ingest was interrupted.
        """
        merged_onto = batch.merged_onto
        entries = self._read_dataset_entry_columns("complete", "finished").rows(named=True)
        if not entries:
            return None
        batch_turns = None
        if self.is_held and last_finished_or_current_versions(entries[0]) == CURRENT_VERSIONS:
            stored_turns = self.database.read_locked_turns(self.name, [*merged_onto, *batch.scopes])
            batch_turns = stored_turns
            if merged_onto.keys() != set(batch.scopes):
                batch_turns = stored_turns.filter(pl.col("scope").is_in(batch.scopes))
        else:
            stored_turns = read_dataset_rows(
                self.database, "turns", self.name, scopes=list(merged_onto)
            )
        current_digests = digest_turns_by_scope_or_empty(stored_turns, merged_onto)
        changed_scopes = []
        for scope, read_digest in merged_onto.items():
            if current_digests[scope] != read_digest:
                changed_scopes.append(scope)
        # To write down all messages of a long memory once more takes long, and is seldom needed.
        written_digests = digest_turns_by_scope_or_empty(batch.turns, changed_scopes)
        for scope in changed_scopes:
            if current_digests[scope] != written_digests[scope]:
                raise StoreError(
                    f"another process wrote to scope {scope!r} of {self.name!r} after it was read: "
                    f"run it again, or read and write within `with store.alone({self.name!r})`"
                )
        return batch_turns

    def _move_evidence_of_stored_questions(self, batch: Dataset) -> pl.DataFrame:
        """Give the stored questions that the batch does not bring and whose evidence lies in other
        sessions now.
        """
        other_questions = self._read_rows_of_this_dataset(
            "questions", list(TABLES["questions"].columns), batch.scopes
        )
        other_questions = other_questions.join(batch.questions, on="query_id", how="anti")
        if other_questions.is_empty():
            return other_questions
        stored_sessions = self._read_rows_of_this_dataset(
            "turns", ["turn_id", "session_id"], batch.scopes
        )
        moved_turns = stored_sessions.join(
            batch.turns.select("turn_id", now="session_id"), on="turn_id"
        )
        evidence_turns = other_questions.select("key", turn_id="evidence").explode("turn_id")
        sessions_by_question = evidence_turns.join(
            moved_turns, on="turn_id", maintain_order="left"
        ).group_by("key", maintain_order=True)
        placed_questions = other_questions.join(
            sessions_by_question.agg("now", was="session_id"), on="key", maintain_order="left"
        )
        other_sessions = pl.col("evidence_sessions").list.set_difference("was")
        current_sessions = pl.concat_list("now", other_sessions).list.unique(maintain_order=True)
        is_moved = current_sessions.list.sort() != pl.col("evidence_sessions").list.sort()
        return (
            placed_questions.filter(is_moved)
            .with_columns(evidence_sessions=current_sessions)
            .select(other_questions.columns)
        )

    def _read_rows_of_this_dataset(
        self, table_name: str, columns: list[str], scopes: list[str] | None = None
    ) -> pl.DataFrame:
        if self.is_new:
            return make_frame_without_rows(table_name, columns)
        return self.database.read_table(table_name, columns, dataset=self.name, scope=scopes)

    def _read_dataset_entry_columns(self, *columns: str) -> pl.DataFrame:
        if self.is_new:
            return make_frame_without_rows("datasets", columns)
        return self.database.read_table("datasets", columns, name=self.name)


def _number_rows_in_dataset_order(
    batch_rows: pl.DataFrame, stored_places: pl.DataFrame, *, last_place: int
) -> pl.Series:
    """Give rows their places in the order of the dataset: a scope that is there keeps its place, a
    new one goes behind.

    A stream whose scopes come in another order than they are stored goes behind too, from the first
    that is not in order, so that what is read back is in the order of the stream.

    :param stored_places: ``key`` and ``position`` of all stored rows of the dataset.
    :param last_place: the last place that this ingest gave.
    """
    numbers = np.full(batch_rows.height, -1, np.int64)
    if stored_places.height:
        known_places = batch_rows.select("key").join(
            stored_places, on="key", how="left", maintain_order="left"
        )
        numbers = known_places["position"].fill_null(-1).to_numpy().astype(np.int64)
    row_scopes = (
        batch_rows["scope"]
        if "scope" in batch_rows.columns
        else pl.repeat("", batch_rows.height, eager=True)
    )
    free_block = (
        int(max(stored_places["position"].to_numpy().max(initial=-1), last_place)) // _ROOM + 1
    )
    scope_starts = np.flatnonzero((row_scopes != row_scopes.shift())[1:].to_numpy()) + 1
    scope_edges = sorted({0, *scope_starts.tolist(), batch_rows.height})
    for scope_start, scope_end in itertools.pairwise(scope_edges):
        scope_numbers = numbers[scope_start:scope_end]
        if not (scope_numbers > last_place).all() or (np.diff(scope_numbers) <= 0).any():
            first_number = scope_numbers[scope_numbers >= 0].min(initial=np.iinfo(np.int64).max)
            if not last_place < first_number < np.iinfo(np.int64).max:
                first_number = free_block * _ROOM
                free_block = free_block + 1
            scope_numbers[:] = first_number + np.arange(len(scope_numbers))
        last_place = int(scope_numbers[-1])
    return pl.Series("position", numbers, pl.Int64)


def _count_leading_turns_stored_as_they_are(
    batch_turns: pl.DataFrame, stored_turns: pl.DataFrame, *, last_place: int
) -> int:
    """Count the turns at the beginning of a scope that are stored as they are, one behind the
    other.

    :param stored_turns: of the scope, with all columns, in the order of the dataset.
    :param last_place: the last place that this ingest gave to another scope.
    """
    n_compared = min(batch_turns.height, stored_turns.height)
    if not n_compared or stored_turns["position"][0] <= last_place:
        return 0
    given_turns = batch_turns.head(n_compared).with_columns(content=turn_text_expr())
    known_turns = stored_turns.head(n_compared)
    place_in_scope = pl.col("position") - pl.col("position").first()
    is_same = known_turns.select(
        (place_in_scope == pl.int_range(pl.len())) & pl.col("content_hash").is_not_null()
    ).to_series()
    for column in given_turns.columns:
        is_same &= given_turns[column].eq_missing(known_turns[column])
    n_same = is_same.arg_min()
    if is_same.all() or n_same is None:
        return n_compared
    return n_same


def _number_rows_behind(
    rows: pl.DataFrame, stored_places: pl.DataFrame, *, last_place: int
) -> pl.Series:
    """Give the later rows of a scope their places behind one that stays, as
    :func:`_number_rows_in_dataset_order` does.

    :param stored_places: ``key`` and ``position`` of the later stored rows of the scope.
    """
    places = rows.select("key").join(stored_places, on="key", how="left", maintain_order="left")[
        "position"
    ]
    steps = places.diff(null_behavior="drop")
    if not places.has_nulls() and (steps > 0).all():
        return places
    return pl.Series("position", last_place + np.arange(1, rows.height + 1), pl.Int64)


def _distinct_keyed_rows_of_batch(batch: Dataset, table_name: str) -> pl.DataFrame:
    """Give the rows of a table with what the store adds to them, those that repeat once.

    :raises StoreError: when one id stands for two different rows.
    """
    rows: pl.DataFrame = getattr(batch, table_name)
    if table_name == "issues":
        joined_cells = rows.select(
            pl.concat_str(pl.all(), separator="\x1f", ignore_nulls=True)
        ).to_series()
        rows = rows.with_columns(hash_text_column(joined_cells).alias("_id"))
    rows = rows.with_columns(
        key=primary_key_expr(batch.name, pl.col(TABLES[table_name].id)), dataset=pl.lit(batch.name)
    )
    if rows["key"].n_unique() == rows.height:
        return rows
    distinct_rows = rows.unique(maintain_order=True)
    repeated_ids = distinct_rows.filter(pl.col("key").is_duplicated())[TABLES[table_name].id]
    if repeated_ids.len():
        raise StoreError(
            f"dataset {batch.name!r}, table {table_name}: id {repeated_ids[0]!r} stands for "
            f"{(repeated_ids == repeated_ids[0]).sum()} different rows; give each its own id"
        )
    return distinct_rows


def _add_content_and_hash_if_turns(
    table_name: str, rows: pl.DataFrame, stored_rows: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Give turns the text that is retrieved, and its hash; rows of other tables stay as they are.

    :param stored_rows: stored rows: what says the same as that of its key has the same hash.
    """
    if table_name != "turns":
        return rows
    turns_with_content = rows.with_columns(content=turn_text_expr())
    if stored_rows is None:
        return turns_with_content.with_columns(
            hash_text_column(turns_with_content["content"]).alias("content_hash")
        )
    stored_hashes = stored_rows.select("key", "content_hash", stored_content="content")
    known_hashes = turns_with_content.join(
        stored_hashes.unique("key"), on="key", how="left", maintain_order="left"
    )
    is_other_text = known_hashes["content"].ne_missing(known_hashes["stored_content"])
    is_unknown = is_other_text | known_hashes["content_hash"].is_null()
    new_hashes = hash_text_column(known_hashes["content"].filter(is_unknown))
    return known_hashes.drop("stored_content").with_columns(
        known_hashes["content_hash"].scatter(is_unknown.arg_true(), new_hashes)
    )


def _select_rows_not_stored(rows: pl.DataFrame, stored_rows: pl.DataFrame) -> pl.DataFrame:
    """Select the rows that are not stored as they are, in their order."""
    if rows.is_empty() or stored_rows.is_empty():
        return rows
    return rows.join(
        stored_rows, on=rows.columns, how="anti", nulls_equal=True, maintain_order="left"
    )
