"""Writing datasets into the tables, so that writing twice is writing once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from memlab.embed.text import turn_texts
from memlab.errors import StoreError
from memlab.records import Dataset, concat
from memlab.store.conversations import LANGUAGE, read_dataset
from memlab.store.database import Database
from memlab.store.registry import DATASET_TABLES, TABLES, equal, in_dataset, keys, text_hashes

BATCH_TURNS = 50_000
BATCH_BYTES = 1 << 28


@dataclass
class _Progress:
    """Where the writing of one dataset stands: the next position and the counts of each table."""

    first: Dataset
    next_position: dict[str, int] = field(default_factory=dict)
    wrote: bool = False
    counts: dict[str, list[int]] = field(default_factory=lambda: {table: [0, 0, 0] for table in DATASET_TABLES})


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
    states: dict[str, _Progress] = {}
    stream = batches([parts] if isinstance(parts, Dataset) else parts)
    with tqdm(desc="ingest", unit=" turns", disable=not progress, delay=2) as bar:
        for batch in stream:
            state = states.setdefault(batch.name, _Progress(batch))
            with database.guarded(f"ingesting {batch.name!r}"):
                _write(database, batch, state)
            bar.update(batch.turns.height)
    for name, state in states.items():
        with database.guarded(f"ingesting {name!r}"):
            _finish(database, state, now)
    return _report(states)


def _write(database: Database, batch: Dataset, state: _Progress) -> None:
    for name in DATASET_TABLES:
        rows = _keyed(batch, name)
        rows = _placed(database, name, batch.name, rows, state.next_position)
        new, changed = _difference(database, name, rows, dataset=batch.name)
        same = rows.height - new.height - changed.height
        if same < rows.height:
            _mark_unfinished(database, state)
            database.write(name, pl.concat([new, changed]), clear_vectors=changed.height > 0)
        counts = zip(state.counts[name], (new.height, changed.height, same), strict=True)
        state.counts[name] = [before + more for before, more in counts]


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


def _placed(
    database: Database, table: str, dataset: str, rows: pl.DataFrame, next_position: dict[str, int]
) -> pl.DataFrame:
    """Give each row its place in the dataset.

    Rows that are all there in this order, such as those of some scopes alone, keep their places. A stream begins where
    its first known row stands, or behind everything there is: one that was interrupted, or is read again, gives each
    row the same place as before.
    """
    there = database.read(table, ["key", "position"], where=in_dataset(dataset))
    places = rows.select("key").join(there, on="key", how="left", maintain_order="left")["position"]
    if table not in next_position:
        first = places.is_not_null().arg_max() if there.height and places.len() > places.null_count() else None
        behind = int(there.select(pl.col("position").max()).item()) + 1 if there.height else 0
        next_position[table] = behind if first is None else max(0, int(places[first]) - first)
    start = next_position[table]
    next_position[table] = start + rows.height
    if places.null_count() == 0 and places.is_sorted():
        return rows.with_columns(position=places.cast(pl.Int64))
    return rows.with_columns(position=pl.int_range(start, start + pl.len(), dtype=pl.Int64))


def _difference(
    database: Database, table: str, rows: pl.DataFrame, *, dataset: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the rows that are new to a table, and those that differ from what it holds."""
    there = database.read(table, ["key"], where=in_dataset(dataset))
    new = rows.join(there, on="key", how="anti", maintain_order="left")
    if new.height == rows.height:
        return new, rows.clear()
    old = database.read(table, list(TABLES[table].columns), where=in_dataset(dataset))
    pairs = rows.join(old, on="key", suffix="_old", maintain_order="left")
    columns = [c for c in TABLES[table].columns if c != "key"]
    differs = pl.any_horizontal(pl.col(c).ne_missing(pl.col(f"{c}_old")) for c in columns)
    return new, pairs.filter(differs).select(rows.columns)


def _mark_unfinished(database: Database, state: _Progress) -> None:
    """Note the dataset before the first row is written, so that an interrupted ingest is told from a whole one."""
    if not state.wrote:
        name, kind, language = state.first.name, state.first.format, state.first.language
        database.write_row("datasets", name, name=name, format=kind, language=language, complete=False)
        state.wrote = True


def _finish(database: Database, state: _Progress, now: datetime) -> None:
    name, kind, language = state.first.name, state.first.format, state.first.language
    listed = database.read("datasets", ["complete", "format", "language"], where=equal("name", name))
    if listed.select("complete", "format", LANGUAGE).rows() == [(True, kind, language)]:
        return
    stored = read_dataset(database, name, kind, language)
    database.write_row(
        "datasets",
        name,
        name=name,
        format=kind,
        language=language,
        complete=True,
        ingested_at=now,
        fingerprint=stored.fingerprint(),  # of what was stored, not of what was meant to be
        **{table: getattr(stored, table).height for table in ("turns", "sessions", "questions")},
    )


def _report(states: dict[str, _Progress]) -> pl.DataFrame:
    numbers = dict.fromkeys(("inserted", "updated", "unchanged"), pl.Int64())
    return pl.DataFrame(
        [(name, table, *counts) for name, state in states.items() for table, counts in state.counts.items()],
        schema={"dataset": pl.String(), "table": pl.String(), **numbers},
        orient="row",
    )
