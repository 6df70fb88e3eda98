"""Writing datasets: a scope is replaced whole, and writing twice is writing once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import numpy as np
import polars as pl

from memlab.embed.text import turn_texts
from memlab.errors import StoreError
from memlab.records import Dataset, concat
from memlab.store.database import Database
from memlab.store.reading import PRESENT, read_dataset
from memlab.store.schemas import DATASET_TABLES, TABLES, keys, text_hashes

BATCH_TURNS = 50_000
BATCH_BYTES = 1 << 28
_ROOM = 1 << 32
"""Places that a scope has for its rows."""


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


class Writing:
    """The writing of one dataset, batch by batch; a batch holds whole scopes."""

    def __init__(self, database: Database, first: Dataset) -> None:
        self.database, self.name = database, first.name
        self.kind, self.language = first.format, first.language
        self.last = dict.fromkeys(DATASET_TABLES, -1)
        self.counts = {table: np.zeros(4, np.int64) for table in DATASET_TABLES}
        self.wrote = False
        self.brought: set[str] = set()
        self.held, self.interrupted = True, ""

    def add(self, batch: Dataset, since: Mapping[str, int] | None) -> None:
        """Replace the scopes of a batch: write what is new or differs, and delete what they no longer have.

        :param since: see :meth:`memlab.store.database.Database.alone`.
        :raises StoreError: when another process wrote to one of the scopes since then.
        """
        if since is not None:
            self._refuse_changed(batch.scopes, since)
            self.held = False
        self.brought.update(batch.scopes)
        following = self._following_questions(batch)
        for table in DATASET_TABLES:
            self._replace(table, _keyed(batch, table), batch.scopes, following)

    def _replace(self, table: str, rows: pl.DataFrame, scopes: list[str], following: pl.DataFrame) -> None:
        """Write the rows of some scopes to one table, as one version of it."""
        columns, asked, scoped = list(TABLES[table].columns), table == "questions", "scope" in rows.columns
        places = self._read(table, ["key", "position"])
        rows = rows.with_columns(position=_places(rows, places, after=self.last[table]))
        self.last[table] = rows["position"][-1] if rows.height else self.last[table]
        there = self._read(table, columns, [*scopes, *rows["scope"].unique()] if scoped else None)
        pairs = rows.join(there, on="key", how="left", suffix="_old", maintain_order="left")
        same = {c: pl.col(c).eq_missing(pl.col(f"{c}_old")) for c in columns[1:]}
        # Questions stay: they may come from another file.
        gone = there.join(rows, on="key", how="anti") if scoped and not asked else there.clear()
        shorter = gone["scope"].unique().to_list() if gone.height else []
        differ = ~pl.all_horizontal(same.values()) | (pl.col("scope").is_in(shorter) if shorter else False)
        written = pl.concat([pairs.filter(differ).select(columns), *([following] if asked else ())])
        # What has another place alone, since something stands before it, is not counted as another row.
        content = pl.all_horizontal(same[c] for c in same if c not in ("position", "n"))
        like, new = int(pairs.select(content.sum()).item()), rows.join(places, on="key", how="anti").height
        updated = rows.height - new - like
        if written.height or shorter:
            self._begin()
            instead = {"dataset": self.name, "scope": shorter} if shorter else None
            self.database.write(table, written, instead=instead, clear_vectors=table == "turns" and updated > 0)
        self.counts[table] += np.array([new, updated + asked * following.height, like, gone.height])

    def finish(self, now: datetime) -> None:
        """Note that the dataset is whole, and what it came to."""
        listed = self.database.read("datasets", ["complete", "format", "language"], name=self.name)
        if listed.rows() != [(True, self.kind, self.language)]:
            self._begin()
            # Where nothing is held, another ingest may be under way.
            if self.interrupted and self.held:
                self._restore(json.loads(self.interrupted))
            stored = read_dataset(self.database, self.name, at=PRESENT)
            sizes = {table: getattr(stored, table).height for table in ("turns", "sessions", "questions")}
            # The fingerprint is that of what was stored, not of what was meant to be.
            self._note(complete=True, ingested_at=now, fingerprint=stored.fingerprint(), **sizes)

    def _begin(self) -> None:
        """Note the dataset before the first row is written, so that an interrupted ingest is recognised.

        With it goes which versions of the tables hold the last state that is whole: others read that meanwhile.
        """
        if not self.wrote:
            listed = self.database.read("datasets", ["complete", "finished"], name=self.name).rows()
            complete, finished = listed[0] if listed else (True, None)
            self.interrupted = "" if complete else finished or "{}"
            if listed and complete:
                finished = json.dumps({table: int(self.database.table(table).version) for table in DATASET_TABLES})
            self._note(complete=False, finished=finished)
            self.wrote = True

    def _restore(self, at: Mapping[str, int]) -> None:
        """Bring the scopes that this ingest does not bring to the last finished state: an interrupted one wrote there.

        :param at: versions of the tables that hold that state; none, where there was no state yet.
        """
        for table in DATASET_TABLES:
            columns = list(TABLES[table].columns)
            if "scope" not in columns:
                continue
            others = ~pl.col("scope").is_in(list(self.brought))
            now = self._read(table, columns).filter(others)
            was = now.clear()
            if table in at:
                was = self.database.read(table, columns, at=at[table], dataset=self.name).filter(others)
            pairs = was.join(now, on="key", how="left", suffix="_now", maintain_order="left")
            differ = ~pl.all_horizontal(pl.col(c).eq_missing(pl.col(f"{c}_now")) for c in columns if c != "key")
            if (changed := pairs.filter(differ).select(columns)).height:
                self.database.write(table, changed, clear_vectors=table == "turns")
            self.database.delete(table, dataset=self.name, key=now.join(was, on="key", how="anti")["key"])

    def _note(self, **columns: object) -> None:
        about = {"name": self.name, "format": self.kind, "language": self.language}
        self.database.write_row("datasets", self.name, **about, **columns)

    def _refuse_changed(self, scopes: list[str], since: Mapping[str, int]) -> None:
        """Refuse scopes whose turns are others than when they were read."""
        columns = ["turn_id", "content_hash"]
        now, then = (
            self.database.read("turns", columns, at=at, dataset=self.name, scope=scopes).sort(columns)
            for at in (None, since["turns"])
        )
        if scopes and not now.equals(then):
            raise StoreError(f"another process wrote to the same scopes of {self.name!r} meanwhile: run it again")

    def _following_questions(self, batch: Dataset) -> pl.DataFrame:
        """Give the stored questions that the batch does not bring and whose evidence lies in other sessions now."""
        stay = self._read("questions", list(TABLES["questions"].columns), batch.scopes)
        stay = stay.join(batch.questions, on="query_id", how="anti")
        was = self._read("turns", ["turn_id", "session_id"], batch.scopes)
        turns = was.join(batch.turns.select("turn_id", now="session_id"), on="turn_id")
        evidence = stay.select("key", turn_id="evidence").explode("turn_id")
        lies = evidence.join(turns, on="turn_id", maintain_order="left").group_by("key", maintain_order=True)
        placed = stay.join(lies.agg("now", was="session_id"), on="key", maintain_order="left")
        others = pl.col("evidence_sessions").list.set_difference("was")
        now = pl.concat_list("now", others).list.unique(maintain_order=True)
        moved = now.list.sort() != pl.col("evidence_sessions").list.sort()
        return placed.filter(moved).with_columns(evidence_sessions=now).select(stay.columns)

    def _read(self, table: str, columns: list[str], scopes: list[str] | None = None) -> pl.DataFrame:
        return self.database.read(table, columns, dataset=self.name, scope=scopes)


def _places(rows: pl.DataFrame, places: pl.DataFrame, *, after: int) -> pl.Series:
    """Give rows their places in the order of the dataset: a scope that is there keeps its place, a new one goes behind.

    A stream whose scopes come in another order than they are stored goes behind too, from the first that is not in
    order, so that what is read back is in the order of the stream.

    :param places: ``key`` and ``position`` of all stored rows of the dataset.
    :param after: the last place that this ingest gave.
    """
    known = rows.select("key").join(places, on="key", how="left", maintain_order="left")["position"]
    numbers = known.fill_null(-1).to_numpy().astype(np.int64)
    scope = rows["scope"] if "scope" in rows.columns else pl.repeat("", rows.height, eager=True)
    free = int(max(places["position"].to_numpy().max(initial=-1), after)) // _ROOM + 1
    edges = [0, *np.flatnonzero((scope != scope.shift())[1:].to_numpy()) + 1, rows.height] if rows.height else []
    for start, end in itertools.pairwise(edges):
        own = numbers[start:end]
        first = own[own >= 0].min(initial=np.iinfo(np.int64).max)
        if not (own > after).all() or (np.diff(own) <= 0).any():
            if not after < first < np.iinfo(np.int64).max:
                first, free = free * _ROOM, free + 1
            own[:] = first + np.arange(len(own))
        after = int(own[-1])
    return pl.Series("position", numbers, pl.Int64)


def _keyed(batch: Dataset, table: str) -> pl.DataFrame:
    """Give the rows of a table with what the store adds to them, those that repeat once.

    :raises StoreError: when one id stands for two different rows.
    """
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
    if not rows["key"].is_duplicated().any():
        return rows
    single = rows.unique(maintain_order=True)
    twice = single.filter(pl.col("key").is_duplicated())
    if twice.height:
        id_ = twice[TABLES[table].id][0]
        n = (twice["key"] == twice["key"][0]).sum()
        raise StoreError(
            f"dataset {batch.name!r}, table {table}: id {id_!r} stands for {n} different rows; give each its own id"
        )
    return single
