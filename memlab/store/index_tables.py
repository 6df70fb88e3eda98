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
from memlab.store.cleaning import clean_when_due
from memlab.store.database import TableGroup
from memlab.store.dataset_rows import read_dataset_entry, read_rows
from memlab.store.schemas import (
    EARLIER_FACTS,
    INDEX_TABLES,
    TABLES,
    primary_keys,
    row_columns,
    text_hashes,
)

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


def _refuse_uneven_lists(summaries: pl.DataFrame) -> None:
    """Refuse summaries of which some text has no list of turns beside it, or the reverse.

    :raises StoreError: with the first of them.
    """
    for texts, evidence in _EVIDENCE_OF.items():
        n_texts, n_lists = (pl.col(name).list.len().fill_null(0) for name in (texts, evidence))
        uneven = summaries.filter(n_texts != n_lists)
        if uneven.height:
            row = uneven.row(0, named=True)
            counted = f"{len(row[texts] or ())} {texts} and {len(row[evidence] or ())} {evidence}"
            raise StoreError(
                f"the summary of session {row['session_id']!r} has {counted}; each text has the "
                "list of its turns beside it"
            )


def _order_undated_facts(facts: pl.DataFrame) -> pl.DataFrame:
    """Let what has no time be heard in the order of the sessions, also where one was read again."""
    undated = pl.col("asserted_at").is_null()
    heard = pl.col("recorded_at").cum_min(reverse=True).over("scope", undated)
    return facts.with_columns(recorded_at=pl.when(undated).then(heard).otherwise("recorded_at"))


def _cited_turns(rows: pl.DataFrame, id_: str) -> pl.DataFrame:
    """Give each row's id with each turn that it stands on: the column ``id_``, and ``turn_id``."""
    columns = [name for name in rows.columns if name.endswith("evidence")]
    cited = pl.concat(rows.select(id_, turn_id=name).explode("turn_id") for name in columns)
    if rows.schema["evidence"] == pl.List(pl.List(pl.String)):
        cited = cited.explode("turn_id")
    return cited


class Knowledge(TableGroup):
    """The index of finished sessions: ``store.knowledge``."""

    def rows(self, kind: str, dataset: str, *, scopes: Sequence[str] | None = None) -> pl.DataFrame:
        """Read the rows of one kind that count, by scope, session and place.

        Rows of sessions that are gone do not count, and rows that stand on a turn that is gone or
        says something else than when it was read.

        :param kind: one of :data:`memlab.store.schemas.INDEX_TABLES`.
        """
        table = INDEX_TABLES[kind]
        states = self._read("index_states", dataset, scopes)
        rows = self._read(table, dataset, scopes)
        rows = rows.join(states.select("session_id", "generation"), on=["session_id", "generation"])
        rows = rows.join(self._sessions(dataset).with_row_index("_session"), on="session_id")
        rows = rows.sort("_session", "position").select(*row_columns(table))
        # A table of an earlier store lacks these lists.
        later = [pl.col(name).fill_null([]) for name in TABLES[table].later]
        rows = rows.with_columns(later)
        if kind == "facts":
            rows = _order_undated_facts(rows)
        gone = self._gone_turns(dataset, scopes, states)
        id_ = TABLES[table].id
        stale = _cited_turns(rows, id_).join(gone, on="turn_id")
        return rows.join(stale, on=id_, how="anti", maintain_order="left")

    def _gone_turns(
        self, dataset: str, scopes: Sequence[str] | None, states: pl.DataFrame
    ) -> pl.DataFrame:
        """Give the ids of the turns that states name and that are gone or changed: ``turn_id``."""
        columns = ["turn_id", "content_hash"]
        there = read_rows(self.database, "turns", dataset, columns=columns, scopes=scopes)
        seen = states.select(turn="turns").explode("turn").drop_nulls()
        gone = seen.join(there.select(turn=_TURN), on="turn", how="anti")
        # Without the last word of a line, a hash, it is the id.
        return gone.select(turn_id=pl.col("turn").str.replace(r" \S*$", ""))

    def count_earlier_facts(self, dataset: str, *, scopes: Sequence[str] | None = None) -> int:
        """Count the facts of an earlier layout, which nothing reads: their sessions are due."""
        columns = ["session_id", "generation"]
        rows = self.database.read(EARLIER_FACTS, columns, dataset=dataset, scope=scopes)
        if rows.is_empty():
            return 0
        states = self._read("index_states", dataset, scopes)
        return rows.join(states, on=["session_id", "generation"], how="semi").height

    def states(self, dataset: str) -> pl.DataFrame:
        """Give where each session stands that the index has seen.

        :returns: rows of :class:`memlab.records.IndexState`.
        """
        return (
            self._read("index_states", dataset)
            .sort("scope", "session_id")
            .select(*row_columns("index_states"))
        )

    def events(self, dataset: str) -> pl.DataFrame:
        """Give what happened to the sessions, in order of time.

        :returns: rows of :class:`memlab.records.IndexEvent`.
        """
        return (
            self._read("index_events", dataset)
            .sort("at", "event_id")
            .select(*row_columns("index_events"))
        )

    def digests(self, dataset: str) -> pl.DataFrame:
        """Hash the turns of each session, in their order.

        :returns: ``session_id``, ``digest`` and ``turns`` (ids with hashes).
        """
        wanted = ["session_id", "turn_id", "role", "timestamp", "content_hash"]
        others = [*TABLES["turns"].later]
        turns = read_rows(self.database, "turns", dataset, columns=[*wanted, *others])
        line = pl.concat_str(pl.col(wanted[1:]).cast(pl.String).fill_null("-"), separator=" ")
        # Whose words they are counts where it is said, so that older digests stay.
        passed_on = (pl.lit(" ") + pl.struct(others).struct.json_encode()).alias("passed_on")
        is_own = pl.all_horizontal(pl.col(others).is_null())
        line += pl.when(is_own).then(pl.lit("")).otherwise(passed_on)
        joined = turns.group_by("session_id", maintain_order=True).agg(
            text=line.str.join("\n"), turns=_TURN
        )
        digests = pl.Series(text_hashes(joined["text"]), dtype=pl.String)
        return joined.select("session_id", digest=digests, turns="turns")

    def commit(
        self,
        dataset: str,
        *,
        parts: Mapping[str, pl.DataFrame],
        states: pl.DataFrame,
        events: pl.DataFrame,
    ) -> None:
        """Write what some sessions gave; all of it counts once their states are written.

        :param parts: frames by the kinds of :data:`memlab.store.schemas.INDEX_TABLES`, each with
            ``session_id``.
        :param states: rows of :class:`memlab.records.IndexState`, one a session; ``generation``
            names these rows.
        """
        if "summaries" in parts:
            _refuse_uneven_lists(parts["summaries"])
        with (
            self.database.alone(dataset),
            self.database.guarded(f"indexing {dataset!r}", writes="index"),
        ):
            # Of a session that failed counts what counts now, whoever wrote it.
            kept = ["generation", "service", "turns"]
            before = self._read("index_states", dataset).join(states, on="session_id", how="semi")
            fails = (pl.col("status") == "failed") & pl.col("generation_now").is_not_null()
            states = states.join(
                before.select("session_id", *kept),
                on="session_id",
                how="left",
                suffix="_now",
                maintain_order="left",
            ).with_columns(pl.when(fails).then(f"{c}_now").otherwise(c).alias(c) for c in kept)
            mine = states.select("session_id", "generation")
            for kind, rows in parts.items():
                table = INDEX_TABLES[kind]
                placed = rows.join(mine, on="session_id", maintain_order="left")
                place = pl.int_range(pl.len(), dtype=pl.Int64).over("session_id")
                placed = placed.with_columns(
                    position=place, written_at=pl.lit(datetime.now(UTC)).cast(TIMESTAMP)
                )
                self._write(
                    table,
                    dataset,
                    placed,
                    pl.concat_str(TABLES[table].id, pl.lit("@"), "generation"),
                )
            # Before the states: what is cut off here is made again, under the same names of events.
            self._write("index_events", dataset, events, pl.col("event_id"))
            self._write("index_states", dataset, states, pl.col("session_id"))
            # What another process wrote meanwhile has another generation, and stays.
            old = before.join(mine, on="session_id").filter(
                pl.col("generation").ne_missing(pl.col("generation_right"))
            )
            doomed = {column: old[column].drop_nulls() for column in ("generation", "session_id")}
            for table in _FILLED:
                self.database.delete(table, dataset=dataset, **doomed)
        clean_when_due(self.database, (*_FILLED, "index_events", "index_states"))

    def sweep(self, dataset: str, *, now: datetime | None = None) -> int:
        """Remove rows of sessions that are gone and of attempts that were cut off; say how many.

        An attempt counts as cut off after :data:`ORPHANS_AFTER`.

        :param now: by the clock, as the times of writing are.
        """
        removed, now = 0, in_utc(now or datetime.now(UTC))
        # Held, since rows that are being committed belong to no state yet.
        with (
            self.database.alone(dataset),
            self.database.guarded(f"sweeping {dataset!r}", writes="sweep"),
        ):
            states = self._read("index_states", dataset)
            gone = states.join(self._sessions(dataset), on="session_id", how="anti")
            for table in (*_FILLED, "index_states"):
                self.database.delete(table, dataset=dataset, session_id=gone["session_id"])
            for table in _FILLED:
                columns = ["key", "session_id", "generation", "written_at"]
                written = self.database.read(table, columns, dataset=dataset)
                orphans = written.join(states, on=["session_id", "generation"], how="anti")
                orphans = orphans.filter(pl.col("written_at") < now - ORPHANS_AFTER)
                self.database.delete(table, dataset=dataset, key=orphans["key"])
                removed += orphans.height
        return removed

    def undone(self, dataset: str, *, scopes: Sequence[str] | None = None) -> pl.DataFrame:
        """Give what was undone: ``scope``, ``old``, ``new``, ``undone_at``, ``why``."""
        return (
            self._read("undone", dataset, scopes)
            .sort("undone_at", "old", "new")
            .drop("key", "dataset")
        )

    def undo(
        self, dataset: str, scope: str, old: str, new: str, *, at: datetime, why: str = ""
    ) -> None:
        """Note that a supersession is undone; what other processes note beside it stays."""
        row = pl.DataFrame(
            {"scope": [scope], "old": [old], "new": [new], "undone_at": [at], "why": [why]}
        )
        with self.database.guarded(f"writing undone of {dataset!r}", writes="undo"):
            self._write("undone", dataset, row, pl.concat_str("old", pl.lit(" "), "new"))

    def redo(self, dataset: str, scope: str, old: str, new: str) -> bool:
        """Let an undone supersession count again; whether there was one."""
        with self.database.guarded(f"writing undone of {dataset!r}", writes="undo"):
            there = self._read("undone", dataset, [scope]).filter(old=old, new=new)
            self.database.delete("undone", dataset=dataset, scope=scope, key=there["key"])
        return there.height > 0

    def _sessions(self, dataset: str) -> pl.DataFrame:
        return read_rows(self.database, "sessions", dataset, columns=["session_id"])

    def _read(self, table: str, dataset: str, scopes: Sequence[str] | None = None) -> pl.DataFrame:
        read_dataset_entry(self.database, dataset)
        return self.database.read(table, list(TABLES[table].columns), dataset=dataset, scope=scopes)

    def _write(self, table: str, dataset: str, rows: pl.DataFrame, key: pl.Expr) -> None:
        if rows.height:
            keyed = rows.with_columns(key=primary_keys(dataset, key), dataset=pl.lit(dataset))
            keyed = keyed.select(
                pl.col(column).cast(dtype) for column, dtype in TABLES[table].columns.items()
            )
            for twice, n in (
                keyed["key"].value_counts(sort=True).filter(pl.col("count") > 1).iter_rows()
            ):
                raise StoreError(
                    f"table {table}: {twice!r} stands for {n} rows; give each its own id"
                )
            self.database.write(table, keyed)
