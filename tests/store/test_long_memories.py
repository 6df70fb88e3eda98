"""Who adds to a long memory reads it once, and the tables are those that reading all of it gives."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal
from store_data import FakeEncoder

from memlab.cli.ingest_fetch_info import ingest
from memlab.datasets import stream
from memlab.store import MemoryStore, full_text_index, ingestion, turn_vectors
from memlab.store.database import Database
from memlab.store.table_schemas import DATASET_TABLES, TABLES

START = datetime(2026, 3, 1, tzinfo=UTC)
ROWS = 400


def log(path: Path, numbers: range, **more: Any) -> Path:
    """Write messages of one person, one every ten minutes; each tenth after a pause."""
    lines = []
    for number in numbers:
        time = START + timedelta(minutes=10 * number, hours=number // 10)
        said = {"scope": "me", "sender": "Ann", "id": f"m{number}", "text": f"pot {number}"}
        lines.append(json.dumps(said | {"timestamp": time.isoformat()} | more))
    path.write_text("\n".join(lines))
    return path


def add(store: MemoryStore, path: Path) -> None:
    with store.alone("log"):
        parts = stream(path, into=lambda scopes: store.dataset("log", scopes=scopes))
        store.ingest(parts)


@pytest.fixture
def long_memory(store: MemoryStore, tmp_path: Path) -> MemoryStore:
    store.ingest(stream(log(tmp_path / "first.jsonl", range(ROWS)), name="log"))
    return store


def test_its_turns_are_read_once(
    long_memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_read = []
    read_table = Database.read_table

    def noted(database: Database, table: str, /, *about: Any, **options: Any) -> Any:
        rows = read_table(database, table, *about, **options)
        if table == "turns":
            n_read.append(rows.height)
        return rows

    monkeypatch.setattr(Database, "read_table", noted)
    add(long_memory, log(tmp_path / "more.jsonl", range(ROWS, ROWS + 10)))
    assert sum(n_read) == ROWS
    stored = long_memory.dataset("log")
    assert stored.turns.height == ROWS + 10
    assert long_memory.datasets()["fingerprint"].to_list() == [stored.fingerprint()]


@pytest.mark.parametrize(
    "changes",
    [
        [range(ROWS, ROWS + 10), range(ROWS + 10, ROWS + 15)],
        [range(ROWS + 50, ROWS + 60), range(ROWS, ROWS + 10)],
        [range(5)],
        [range(390, 410)],
    ],
    ids=["goes on", "comes late", "is there", "partly there"],
)
def test_the_tables_are_those_of_reading_all_of_it(
    long_memory: MemoryStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: list[range],
) -> None:
    other = MemoryStore.open(tmp_path / "other")
    other.ingest(stream(log(tmp_path / "first.jsonl", range(ROWS)), name="log"))
    for number, numbers in enumerate(changes):
        more = log(tmp_path / f"{number}.jsonl", numbers, text=f"shelf {number}")
        add(long_memory, more)
        with monkeypatch.context() as patch:
            patch.setattr(ingestion, "_count_leading_turns_stored_as_they_are", lambda *_, **__: 0)
            add(other, more)
        for table in DATASET_TABLES:
            columns = list(TABLES[table].columns)
            rows, others = (
                where.database.read_table(table, columns, dataset="log").sort("key")
                for where in (long_memory, other)
            )
            assert_frame_equal(rows, others)
        listed = long_memory.datasets()["fingerprint"].to_list()
        assert listed == other.datasets()["fingerprint"].to_list()
        assert listed == [long_memory.dataset("log").fingerprint()]


def test_places_behind_a_gap_are_closed_as_before(long_memory: MemoryStore, tmp_path: Path) -> None:
    """A row that somebody deleted by hand leaves a gap between the places of the others."""
    long_memory.table("turns").delete("turn_id = 'me/m7'")
    add(long_memory, log(tmp_path / "more.jsonl", range(ROWS, ROWS + 10)))
    places = long_memory.database.read_table("turns", ["position"], dataset="log")
    assert places["position"].sort().to_list() == list(range(ROWS + 9))


def test_other_scopes_are_part_of_the_fingerprint(long_memory: MemoryStore, tmp_path: Path) -> None:
    add(long_memory, log(tmp_path / "other.jsonl", range(5), scope="bo"))
    add(long_memory, log(tmp_path / "more.jsonl", range(ROWS, ROWS + 10)))
    stored = long_memory.dataset("log")
    assert stored.scopes == ["me", "bo"]
    assert long_memory.datasets()["fingerprint"].to_list() == [stored.fingerprint()]


def test_what_was_read_is_kept_while_the_dataset_is_held_and_not_longer(
    long_memory: MemoryStore, tmp_path: Path
) -> None:
    database = long_memory.database
    with long_memory.alone("log"):
        rows = database.read_locked_turns("log", ["me"])
        assert database.read_locked_turns("log", ["me", "me"]) is rows
        # Another handle of this thread writes: it holds the dataset too.
        add(MemoryStore.open(long_memory.uri), log(tmp_path / "a.jsonl", range(ROWS, ROWS + 1)))
        assert database.read_locked_turns("log", ["me"]).height == ROWS + 1
        assert long_memory.dataset("log", scopes=["me"]).turns.height == ROWS + 1
    assert not database.has_locked_dataset("log")
    assert database._locked_turns is None


def test_a_sample_shows_that_few_turns_changed(
    long_memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_text_index, "SAMPLED_FROM", 100)
    text = long_memory.search.text
    assert text.update_words_if_due("log"), "nothing is in the index"
    n_read = []
    read = full_text_index.TextIndex._read_current_and_indexed_turns

    def noted(index: Any, *about: Any, **options: Any) -> Any:
        turns, words = read(index, *about, **options)
        n_read.append(turns.height)
        return turns, words

    monkeypatch.setattr(full_text_index.TextIndex, "_read_current_and_indexed_turns", noted)
    add(long_memory, log(tmp_path / "more.jsonl", range(ROWS, ROWS + 10)))
    assert not text.update_words_if_due("log")
    assert sum(n_read) < ROWS / 4
    add(long_memory, log(tmp_path / "edit.jsonl", range(200, 300), text="shelf"))
    assert text.update_words_if_due("log"), "a quarter of the texts is another"


def test_only_turns_without_a_vector_are_read_for_one(
    long_memory: MemoryStore, tmp_path: Path
) -> None:
    encoder = FakeEncoder()
    assert long_memory.vectors.backfill(encoder, "log", progress=False) == ROWS
    column = long_memory.vectors.column(encoder)
    missing = long_memory.vectors._read_turns_without_current_vector("log", None, column)
    assert missing.is_empty()
    add(long_memory, log(tmp_path / "edit.jsonl", range(398, 402), text="shelf"))
    missing = long_memory.vectors._read_turns_without_current_vector("log", ["me"], column)
    assert missing["key"].to_list() == [f"log/me/m{number}" for number in range(398, 402)]
    assert set(missing["content"]) == {"Ann: shelf"}


def test_the_command_line_adds_to_a_long_memory(tmp_path: Path) -> None:
    place: dict[str, Any] = {"store": str(tmp_path / "store"), "encoder": "hashing:64"}
    for number, numbers in enumerate((range(ROWS), range(ROWS, ROWS + 10), range(ROWS + 10))):
        ingest(log(tmp_path / f"{number}.jsonl", numbers), into="log", **place)
    stored = MemoryStore.open(tmp_path / "store").dataset("log")
    assert stored.turns["turn_id"].to_list() == [f"me/m{number}" for number in range(ROWS + 10)]


@pytest.mark.parametrize("is_locked", [True, False], ids=["whole rows", "columns alone"])
def test_vectors_leave_all_else_of_their_turns(
    long_memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_locked: bool
) -> None:
    """Few are written with whole rows where nobody else can write to these meanwhile."""
    one, other = FakeEncoder(), FakeEncoder(16)
    for encoder in (one, other):
        long_memory.vectors.backfill(encoder, "log", progress=False)
    quoting = log(tmp_path / "more.jsonl", range(ROWS, ROWS + 10), quoted=["pot"], caption="a cat")
    add(long_memory, quoting)
    if not is_locked:
        monkeypatch.setattr(Database, "try_locking_dataset", lambda *_: False)
    long_memory.vectors.backfill(one, "log", progress=False)
    before = long_memory.table("turns").to_polars().collect().sort("key")
    long_memory.vectors.backfill(other, "log", progress=False)
    after = long_memory.table("turns").to_polars().collect().sort("key")
    new = [long_memory.vectors.column(other)]
    new.append(new[0].replace("vector_", "embedded_"))
    assert_frame_equal(before.drop(new), after.drop(new))
    assert after["content_hash"].equals(after[new[1]].alias("content_hash"))
    assert not after[new[0]].has_nulls()
    data = long_memory.dataset("log")
    for encoder in (one, other):
        texts = long_memory.turns("log", columns=["content"])["content"].to_list()
        assert (long_memory.vectors.read(encoder, "log") == encoder.encode(texts)).all()
    assert long_memory.datasets()["fingerprint"].to_list() == [data.fingerprint()]


def test_whole_rows_are_not_written_over_the_vectors_of_another_encoder(
    long_memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = FakeEncoder(), FakeEncoder(16)
    for encoder in (one, other):
        long_memory.vectors.backfill(encoder, "log", progress=False)
    add(long_memory, log(tmp_path / "more.jsonl", range(ROWS, ROWS + 10)))
    read = turn_vectors._add_other_columns_of_turns

    def meets_another(database: Database, rows: Any) -> Any:
        whole_rows = read(database, rows)
        with monkeypatch.context() as patch:
            patch.setattr(Database, "try_locking_dataset", lambda *_: False)
            MemoryStore.open(long_memory.uri).vectors.backfill(other, "log", progress=False)
        return whole_rows

    with monkeypatch.context() as patch:
        patch.setattr(turn_vectors, "_add_other_columns_of_turns", meets_another)
        long_memory.vectors.backfill(one, "log", progress=False)
    assert long_memory.vectors.backfill(other, "log", progress=False) == 0
    long_memory.vectors.backfill(one, "log", progress=False)
    assert long_memory.vectors.backfill(one, "log", progress=False) == 0
