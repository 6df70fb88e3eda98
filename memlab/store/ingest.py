"""Writing datasets into the tables, so that writing twice is writing once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import StoreError
from memlab.records import Dataset, concat
from memlab.store.reading import read_dataset
from memlab.store.tables import IDS, ROWS, SCHEMAS, arrow_schema, guarded, in_dataset, keys, read, retried, to_arrow

if TYPE_CHECKING:
    from memlab.store.memory import MemoryStore

BATCH_TURNS = 50_000
BATCH_BYTES = 1 << 28


@dataclass
class _Progress:
    """Where the writing of one dataset stands: the next position and the counts of each table."""

    first: Dataset
    next_position: dict[str, int] = field(default_factory=dict)
    wrote: bool = False
    counts: dict[str, list[int]] = field(default_factory=lambda: {table: [0, 0, 0] for table in ROWS})


def text_hashes(texts: Iterable[str]) -> list[str]:
    """Hash texts to 32 hex digits.

    A loop over C calls: polars has no hash that stays the same from version to version.

    >>> from memlab.store.ingest import text_hashes
    >>> text_hashes(["a", "a"])[0] == text_hashes(["a"])[0], len(text_hashes(["b"])[0])
    (True, 32)
    """
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() for text in texts]


def batches(parts: Iterable[Dataset]) -> Iterator[Dataset]:
    """Join the small parts of a stream, so that each batch is one version of a table and still fits in memory."""
    held: list[Dataset] = []
    turns = size = 0
    for part in parts:
        full = turns + part.turns.height > BATCH_TURNS or size > BATCH_BYTES
        if held and (full or (held[0].name, held[0].format) != (part.name, part.format)):
            yield concat(held)
            held, turns, size = [], 0, 0
        held.append(part)
        turns += part.turns.height
        size += int(part.turns.estimated_size())
    if held:
        yield concat(held)


def ingest(
    store: MemoryStore, parts: Dataset | Iterable[Dataset], *, now: datetime, progress: bool = False
) -> pl.DataFrame:
    """Write datasets; see :meth:`memlab.store.MemoryStore.ingest`."""
    from tqdm import tqdm

    state: dict[str, _Progress] = {}
    stream = batches([parts] if isinstance(parts, Dataset) else parts)
    with tqdm(desc="ingest", unit=" turns", disable=not progress, delay=2) as bar:
        for batch in stream:
            at = state.setdefault(batch.name, _Progress(batch))
            with guarded(f"ingesting {batch.name!r}", store.uri):
                _write(store, batch, at)
            bar.update(batch.turns.height)
    for at in state.values():
        with guarded(f"ingesting {at.first.name!r}", store.uri):
            _finish(store, at, now)
    return _report(state.values())


def _write(store: MemoryStore, batch: Dataset, at: _Progress) -> None:
    for name in ROWS:
        table = store.table(name)
        rows = _keyed(batch, name)
        rows = _placed(table, batch.name, rows, at.next_position)
        new, changed = _difference(table, rows, name=name, dataset=batch.name)
        same = rows.height - new.height - changed.height
        if same < rows.height:
            _mark_unfinished(store, at)
            source = to_arrow(pl.concat([new, changed]), arrow_schema(SCHEMAS[name]))
            merge(table, source, clear_vectors=changed.height > 0)
        at.counts[name] = [a + b for a, b in zip(at.counts[name], (new.height, changed.height, same), strict=True)]


def _keyed(batch: Dataset, table: str) -> pl.DataFrame:
    rows: pl.DataFrame = getattr(batch, table)
    if table == "issues":
        joined = rows.select(pl.concat_str(pl.all(), separator="\x1f", ignore_nulls=True)).to_series()
        rows = rows.with_columns(_id=pl.Series(text_hashes(joined), dtype=pl.String))
    rows = rows.with_columns(key=keys(batch.name, IDS.get(table, "_id")), dataset=pl.lit(batch.name))
    if table == "turns":
        from memlab.embed.text import turn_texts

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
        id_ = twice[IDS[table]][0]
        raise StoreError(
            f"dataset {twice['dataset'][0]!r}, table {table}: id {id_!r} stands for "
            f"{twice.filter(pl.col(IDS[table]) == id_).height} different rows; give each its own id"
        )
    return single


def _placed(table: Any, dataset: str, rows: pl.DataFrame, next_position: dict[str, int]) -> pl.DataFrame:
    """Give each row its place in the dataset.

    Rows that are all there in this order, such as those of some scopes alone, keep their places. A stream begins where
    its first known row stands, or behind everything there is: one that was interrupted, or is read again, gives each
    row the same place as before.
    """
    there = read(table, ["key", "position"], where=in_dataset(dataset))
    kept = rows.select("key").join(there, on="key", how="left", maintain_order="left")["position"]
    name = table.name
    if name not in next_position:
        known = kept.is_not_null().arg_max() if there.height and kept.len() > kept.null_count() else None
        behind = int(there.select(pl.col("position").max()).item()) + 1 if there.height else 0
        next_position[name] = behind if known is None else max(0, int(kept[known]) - known)
    start = next_position[name]
    next_position[name] = start + rows.height
    if kept.null_count() == 0 and kept.is_sorted():
        return rows.with_columns(position=kept.cast(pl.Int64))
    return rows.with_columns(position=pl.int_range(start, start + pl.len(), dtype=pl.Int64))


def _difference(table: Any, rows: pl.DataFrame, *, name: str, dataset: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the rows that are new to a table, and those that differ from what it holds."""
    columns = [c for c in SCHEMAS[name] if c != "key"]
    there = read(table, ["key"], where=in_dataset(dataset))
    new = rows.join(there, on="key", how="anti", maintain_order="left")
    if new.height == rows.height:
        return new, rows.clear()
    old = read(table, ["key", *columns], where=in_dataset(dataset))
    pairs = rows.join(old, on="key", suffix="_old", maintain_order="left")
    differs = pl.any_horizontal(pl.col(c).ne_missing(pl.col(f"{c}_old")) for c in columns)
    return new, pairs.filter(differs).select(rows.columns)


def merge(table: Any, source: Any, *, clear_vectors: bool = False) -> None:
    """Upsert an Arrow table by its key, as one version.

    ``use_index(False)``, because two processes that insert the same new keys through an index both succeed.

    :param clear_vectors: take the vectors from the rows in the same write: they belong to what the rows said before.
        The cache gives them back where the text is the same.
    """
    import pyarrow as pa

    if clear_vectors:
        for column in table.schema:
            if column.name.startswith(("vector_", "embedded_")):
                source = source.append_column(column, pa.nulls(len(source), column.type))
    builder = table.merge_insert("key").use_index(False).when_matched_update_all().when_not_matched_insert_all()
    # "null", since a null vector is a bad one by default.
    retried(lambda: builder.execute(source, on_bad_vectors="null"))


def _mark_unfinished(store: MemoryStore, at: _Progress) -> None:
    """Note the dataset before the first row is written, so that an interrupted ingest is told from a whole one."""
    if not at.wrote:
        row = {"key": at.first.name, "name": at.first.name, "format": at.first.format, "complete": False}
        merge(store.table("datasets"), _dataset_row(row))
        at.wrote = True


def _finish(store: MemoryStore, at: _Progress, now: datetime) -> None:
    name, kind = at.first.name, at.first.format
    before = read(store.table("datasets"), ["complete", "format"], where=_named(name)).rows()
    if before == [(True, kind)]:
        return
    held = read_dataset(store, name, kind)
    row = {
        "key": name,
        "name": name,
        "format": kind,
        "complete": True,
        "ingested_at": now,
        **{table: getattr(held, table).height for table in ("turns", "sessions", "questions")},
        # Of what was stored, not of what was meant to be.
        "fingerprint": held.fingerprint(),
    }
    merge(store.table("datasets"), _dataset_row(row))


def _named(name: str) -> Any:
    from lancedb.expr import col, lit

    return col("name") == lit(name)


def _dataset_row(row: dict[str, Any]) -> Any:
    return to_arrow(pl.DataFrame([row], schema=SCHEMAS["datasets"]), arrow_schema(SCHEMAS["datasets"]))


def _report(states: Iterable[_Progress]) -> pl.DataFrame:
    return pl.DataFrame(
        [(at.first.name, table, *counts) for at in states for table, counts in at.counts.items()],
        schema={
            "dataset": pl.String(),
            "table": pl.String(),
            **dict.fromkeys(("inserted", "updated", "unchanged"), pl.Int64()),
        },
        orient="row",
    )
