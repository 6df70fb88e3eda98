"""What is known from finished sessions: the tables of an index, all of a session or nothing.

LanceDB commits one table at a time. So every row names the *generation* that wrote it, and the
state of a session, written last, names the generation that counts: rows of an attempt that was cut
off are never read. The state also has the turns that its rows were made of: what stands on a
message that was edited or deleted since is not read either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from memlab.errors import StoreError
from memlab.records import TIMESTAMP
from memlab.records.dataset import in_utc
from memlab.store.database import TableGroup
from memlab.store.dataset_rows import read_dataset_entry, read_dataset_rows
from memlab.store.table_schemas import (
    EARLIER_FACTS,
    INDEX_TABLES,
    TABLES,
    hash_texts,
    primary_key_expr,
    type_by_record_column,
)
from memlab.store.version_cleaning import clean_due_tables_or_warn

ORPHANS_AFTER = timedelta(days=1)
_FILLED = (*INDEX_TABLES.values(), EARLIER_FACTS)
"""The tables with rows that an index made, whichever memlab it was."""
_TURN = pl.concat_str("turn_id", "content_hash", separator=" ")
"""How a state names a turn that it was made of."""


_EVIDENCE_OF = {
    "sentences": "evidence",
    "decisions": "decision_evidence",
    "action_items": "action_item_evidence",
    "open_questions": "open_question_evidence",
}
"""Lists of texts of a summary, and of the turns of each text."""


def _refuse_unequal_text_and_turn_lists(summaries: pl.DataFrame) -> None:
    """Refuse summaries of which some text has no list of turns beside it, or the reverse.

    :raises StoreError: with the first of them.
    """
    for texts, evidence in _EVIDENCE_OF.items():
        n_texts, n_lists = (pl.col(name).list.len().fill_null(0) for name in (texts, evidence))
        uneven_rows = summaries.filter(n_texts != n_lists)
        if uneven_rows.height:
            uneven_row = uneven_rows.row(0, named=True)
            count_text = (
                f"{len(uneven_row[texts] or ())} {texts} and {len(uneven_row[evidence] or ())} "
                f"{evidence}"
            )
            raise StoreError(
                f"the summary of session {uneven_row['session_id']!r} has {count_text}; each text "
                "has the list of its turns beside it"
            )


def _lower_recorded_at_of_undated_facts(facts_by_session: pl.DataFrame) -> pl.DataFrame:
    """Let what has no time be heard in the order of the sessions, also where one was read again."""
    is_undated = pl.col("asserted_at").is_null()
    heard_at = pl.col("recorded_at").cum_min(reverse=True).over("scope", is_undated)
    return facts_by_session.with_columns(
        recorded_at=pl.when(is_undated).then(heard_at).otherwise("recorded_at")
    )


def _explode_rows_to_cited_turns(knowledge_rows: pl.DataFrame, id_column: str) -> pl.DataFrame:
    """Give each row's id with each turn that it stands on: the column ``id_column``, and
    ``turn_id``.
    """
    evidence_columns = [name for name in knowledge_rows.columns if name.endswith("evidence")]
    cited_turns = pl.concat(
        knowledge_rows.select(id_column, turn_id=name).explode("turn_id")
        for name in evidence_columns
    )
    if knowledge_rows.schema["evidence"] == pl.List(pl.List(pl.String)):
        cited_turns = cited_turns.explode("turn_id")
    return cited_turns


class Knowledge(TableGroup):
    """The index of finished sessions: ``store.knowledge``."""

    def rows(self, kind: str, dataset: str, *, scopes: Sequence[str] | None = None) -> pl.DataFrame:
        """Read the rows of one kind that count, by scope, session and place.

        Rows of sessions that are gone do not count, and rows that stand on a turn that is gone or
        says something else than when it was read.

        :param kind: one of :data:`memlab.store.table_schemas.INDEX_TABLES`.
        """
        table = INDEX_TABLES[kind]
        session_states = self._read_rows_of_known_dataset("index_states", dataset, scopes)
        kind_rows = self._read_rows_of_known_dataset(table, dataset, scopes)
        kind_rows = kind_rows.join(
            session_states.select("session_id", "generation"), on=["session_id", "generation"]
        )
        kind_rows = kind_rows.join(
            self._read_session_ids(dataset).with_row_index("_session"), on="session_id"
        )
        kind_rows = kind_rows.sort("_session", "position").select(*type_by_record_column(table))
        # A table of an earlier store lacks these lists.
        later_columns = [pl.col(name).fill_null([]) for name in TABLES[table].later]
        kind_rows = kind_rows.with_columns(later_columns)
        if kind == "facts":
            kind_rows = _lower_recorded_at_of_undated_facts(kind_rows)
        gone_turns = self._ids_of_deleted_or_edited_turns(dataset, scopes, session_states)
        id_column = TABLES[table].id
        stale_rows = _explode_rows_to_cited_turns(kind_rows, id_column).join(
            gone_turns, on="turn_id"
        )
        return kind_rows.join(stale_rows, on=id_column, how="anti", maintain_order="left")

    def _ids_of_deleted_or_edited_turns(
        self, dataset: str, scopes: Sequence[str] | None, session_states: pl.DataFrame
    ) -> pl.DataFrame:
        """Give the ids of the turns that states name and that are gone or changed: ``turn_id``."""
        columns = ["turn_id", "content_hash"]
        known_turns = read_dataset_rows(
            self.database, "turns", dataset, columns=columns, scopes=scopes
        )
        seen_turns = session_states.select(turn="turns").explode("turn").drop_nulls()
        missing_turns = seen_turns.join(known_turns.select(turn=_TURN), on="turn", how="anti")
        # Without the last word of a line, a hash, it is the id.
        return missing_turns.select(turn_id=pl.col("turn").str.replace(r" \S*$", ""))

    def count_facts_of_earlier_layout(
        self, dataset: str, *, scopes: Sequence[str] | None = None
    ) -> int:
        """Count the facts of an earlier layout, which nothing reads: their sessions are due."""
        columns = ["session_id", "generation"]
        fact_rows = self.database.read_table(EARLIER_FACTS, columns, dataset=dataset, scope=scopes)
        if fact_rows.is_empty():
            return 0
        session_states = self._read_rows_of_known_dataset("index_states", dataset, scopes)
        return fact_rows.join(session_states, on=["session_id", "generation"], how="semi").height

    def session_states(self, dataset: str) -> pl.DataFrame:
        """Give where each session stands that the index has seen.

        :returns: rows of :class:`memlab.records.IndexState`.
        """
        return (
            self._read_rows_of_known_dataset("index_states", dataset)
            .sort("scope", "session_id")
            .select(*type_by_record_column("index_states"))
        )

    def events(self, dataset: str) -> pl.DataFrame:
        """Give what happened to the sessions, in order of time.

        :returns: rows of :class:`memlab.records.IndexEvent`.
        """
        return (
            self._read_rows_of_known_dataset("index_events", dataset)
            .sort("at", "event_id")
            .select(*type_by_record_column("index_events"))
        )

    def session_digests(self, dataset: str) -> pl.DataFrame:
        """Hash the turns of each session, in their order.

        :returns: ``session_id``, ``digest`` and ``turns`` (ids with hashes).
        """
        digest_columns = ["session_id", "turn_id", "role", "timestamp", "content_hash"]
        later_columns = [*TABLES["turns"].later]
        turns = read_dataset_rows(
            self.database, "turns", dataset, columns=[*digest_columns, *later_columns]
        )
        turn_line = pl.concat_str(
            pl.col(digest_columns[1:]).cast(pl.String).fill_null("-"), separator=" "
        )
        # Whose words they are counts where it is said, so that older digests stay.
        passed_on = (pl.lit(" ") + pl.struct(later_columns).struct.json_encode()).alias("passed_on")
        is_own = pl.all_horizontal(pl.col(later_columns).is_null())
        turn_line += pl.when(is_own).then(pl.lit("")).otherwise(passed_on)
        session_lines = turns.group_by("session_id", maintain_order=True).agg(
            text=turn_line.str.join("\n"), turns=_TURN
        )
        digests = pl.Series(hash_texts(session_lines["text"]), dtype=pl.String)
        return session_lines.select("session_id", digest=digests, turns="turns")

    def commit_sessions(
        self,
        dataset: str,
        *,
        rows_by_kind: Mapping[str, pl.DataFrame],
        states: pl.DataFrame,
        events: pl.DataFrame,
    ) -> None:
        """Write what some sessions gave; all of it counts once their states are written.

        :param rows_by_kind: frames by the kinds of
            :data:`memlab.store.table_schemas.INDEX_TABLES`, each with ``session_id``.
        :param states: rows of :class:`memlab.records.IndexState`, one a session; ``generation``
            names these rows.
        """
        if "summaries" in rows_by_kind:
            _refuse_unequal_text_and_turn_lists(rows_by_kind["summaries"])
        with (
            self.database.locking_dataset_or_noting_versions(dataset),
            self.database.translating_errors(f"indexing {dataset!r}", refused_write="index"),
        ):
            # Of a session that failed counts what counts now, whoever wrote it.
            kept_columns = ["generation", "service", "turns"]
            states_before = self._read_rows_of_known_dataset("index_states", dataset).join(
                states, on="session_id", how="semi"
            )
            keeps_earlier = (pl.col("status") == "failed") & pl.col("generation_now").is_not_null()
            states = states.join(
                states_before.select("session_id", *kept_columns),
                on="session_id",
                how="left",
                suffix="_now",
                maintain_order="left",
            ).with_columns(
                pl.when(keeps_earlier)
                .then(f"{kept_column}_now")
                .otherwise(kept_column)
                .alias(kept_column)
                for kept_column in kept_columns
            )
            new_generations = states.select("session_id", "generation")
            for kind, kind_rows in rows_by_kind.items():
                table = INDEX_TABLES[kind]
                placed_rows = kind_rows.join(
                    new_generations, on="session_id", maintain_order="left"
                )
                row_place = pl.int_range(pl.len(), dtype=pl.Int64).over("session_id")
                placed_rows = placed_rows.with_columns(
                    position=row_place, written_at=pl.lit(datetime.now(UTC)).cast(TIMESTAMP)
                )
                self._refuse_repeats_and_upsert_rows(
                    table,
                    dataset,
                    placed_rows,
                    pl.concat_str(TABLES[table].id, pl.lit("@"), "generation"),
                )
            # Before the states: what is cut off here is made again, under the same names of events.
            self._refuse_repeats_and_upsert_rows(
                "index_events", dataset, events, pl.col("event_id")
            )
            self._refuse_repeats_and_upsert_rows(
                "index_states", dataset, states, pl.col("session_id")
            )
            # What another process wrote meanwhile has another generation, and stays.
            old_generations = states_before.join(new_generations, on="session_id").filter(
                pl.col("generation").ne_missing(pl.col("generation_right"))
            )
            doomed_ids = {
                column: old_generations[column].drop_nulls()
                for column in ("generation", "session_id")
            }
            for table in _FILLED:
                self.database.delete_rows(table, dataset=dataset, **doomed_ids)
        clean_due_tables_or_warn(self.database, (*_FILLED, "index_events", "index_states"))

    def remove_orphaned_rows(self, dataset: str, *, now: datetime | None = None) -> int:
        """Remove rows of sessions that are gone and of attempts that were cut off; say how many.

        An attempt counts as cut off after :data:`ORPHANS_AFTER`.

        :param now: by the clock, as the times of writing are.
        """
        n_removed = 0
        now = in_utc(now or datetime.now(UTC))
        # Held, since rows that are being committed belong to no state yet.
        with (
            self.database.locking_dataset_or_noting_versions(dataset),
            self.database.translating_errors(f"sweeping {dataset!r}", refused_write="sweep"),
        ):
            session_states = self._read_rows_of_known_dataset("index_states", dataset)
            gone_sessions = session_states.join(
                self._read_session_ids(dataset), on="session_id", how="anti"
            )
            for table in (*_FILLED, "index_states"):
                self.database.delete_rows(
                    table, dataset=dataset, session_id=gone_sessions["session_id"]
                )
            for table in _FILLED:
                columns = ["key", "session_id", "generation", "written_at"]
                written_rows = self.database.read_table(table, columns, dataset=dataset)
                orphan_rows = written_rows.join(
                    session_states, on=["session_id", "generation"], how="anti"
                )
                orphan_rows = orphan_rows.filter(pl.col("written_at") < now - ORPHANS_AFTER)
                self.database.delete_rows(table, dataset=dataset, key=orphan_rows["key"])
                n_removed += orphan_rows.height
        return n_removed

    def undone_supersessions(
        self, dataset: str, *, scopes: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Give what was undone: ``scope``, ``old``, ``new``, ``undone_at``, ``why``."""
        return (
            self._read_rows_of_known_dataset("undone", dataset, scopes)
            .sort("undone_at", "old", "new")
            .drop("key", "dataset")
        )

    def undo_supersession(
        self,
        dataset: str,
        scope: str,
        old_fact_id: str,
        new_fact_id: str,
        *,
        at: datetime,
        reason: str = "",
    ) -> None:
        """Note that a supersession is undone; what other processes note beside it stays."""
        undone_row = pl.DataFrame(
            {
                "scope": [scope],
                "old": [old_fact_id],
                "new": [new_fact_id],
                "undone_at": [at],
                "why": [reason],
            }
        )
        with self.database.translating_errors(
            f"writing undone of {dataset!r}", refused_write="undo"
        ):
            self._refuse_repeats_and_upsert_rows(
                "undone", dataset, undone_row, pl.concat_str("old", pl.lit(" "), "new")
            )

    def redo_supersession(
        self, dataset: str, scope: str, old_fact_id: str, new_fact_id: str
    ) -> bool:
        """Let an undone supersession count again; whether there was one."""
        with self.database.translating_errors(
            f"writing undone of {dataset!r}", refused_write="undo"
        ):
            undone_rows = self._read_rows_of_known_dataset("undone", dataset, [scope]).filter(
                old=old_fact_id, new=new_fact_id
            )
            self.database.delete_rows(
                "undone", dataset=dataset, scope=scope, key=undone_rows["key"]
            )
        return undone_rows.height > 0

    def _read_session_ids(self, dataset: str) -> pl.DataFrame:
        return read_dataset_rows(self.database, "sessions", dataset, columns=["session_id"])

    def _read_rows_of_known_dataset(
        self, table_name: str, dataset: str, scopes: Sequence[str] | None = None
    ) -> pl.DataFrame:
        read_dataset_entry(self.database, dataset)
        return self.database.read_table(
            table_name, list(TABLES[table_name].columns), dataset=dataset, scope=scopes
        )

    def _refuse_repeats_and_upsert_rows(
        self, table_name: str, dataset: str, rows: pl.DataFrame, row_id_expr: pl.Expr
    ) -> None:
        if rows.height:
            keyed_rows = rows.with_columns(
                key=primary_key_expr(dataset, row_id_expr), dataset=pl.lit(dataset)
            )
            keyed_rows = keyed_rows.select(
                pl.col(column).cast(dtype) for column, dtype in TABLES[table_name].columns.items()
            )
            for repeated_key, n_copies in (
                keyed_rows["key"].value_counts(sort=True).filter(pl.col("count") > 1).iter_rows()
            ):
                raise StoreError(
                    f"table {table_name}: {repeated_key!r} stands for {n_copies} rows; give each "
                    "its own id"
                )
            self.database.upsert_rows(table_name, keyed_rows)
