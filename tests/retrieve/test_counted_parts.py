"""Parts of a large scope that did not change are not read again when messages come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_in import StandIn

from memlab import MemoryStore
from memlab.datasets import chatlog
from memlab.records import Dataset
from memlab.retrieve import large_scope_candidates
from memlab.store import scope_statistics

START = datetime(2026, 3, 1, tzinfo=UTC)


def chat(texts: list[str]) -> Dataset:
    """Give messages of one person, five a session."""
    rows = []
    for number, text in enumerate(texts):
        time = START + timedelta(minutes=number, hours=number // 5)
        rows.append({"scope": "eva", "sender": "eva", "timestamp": time.isoformat(), "text": text})
    return chatlog.dataset(rows, "log")


def encode(store: MemoryStore, texts: list[str]) -> np.ndarray:
    """Ingest messages and encode them; give how often each token stands in them."""
    encoder = StandIn()
    store.ingest(chat(texts))
    store.vectors.backfill(encoder, "log", progress=False)
    store.search.create_indexes(encoder)
    n = large_scope_candidates.encode_large_scopes_and_count_turns(
        store, "log", encoder, progress=False
    )
    assert n == len(texts)
    read = store.search.statistics.read_or_count_scope_statistics(
        "log", "eva", language="en", encoder=encoder
    )
    assert read.tokens is not None
    assert read.tokens.n == len(texts)
    return np.trim_zeros(read.tokens.frequency, "b")


@pytest.mark.slow
def test_only_parts_that_changed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_scope_candidates, "LARGE", 10)
    monkeypatch.setattr(large_scope_candidates, "PART", 10)
    n_read: list[int] = []
    read_part = large_scope_candidates._read_sessions_as_bench

    def counted(*about: object) -> object:
        bench = read_part(*about)  # type: ignore[arg-type]
        n_read.append(bench.turns.height)
        return bench

    monkeypatch.setattr(large_scope_candidates, "_read_sessions_as_bench", counted)
    texts = [f"Pot {number} of the {number % 7} blue shelves broke." for number in range(60)]
    store = MemoryStore.open(tmp_path / "grown")
    encode(store, texts)
    assert sum(n_read) == 60
    assert len(n_read) > 3
    n_read.clear()
    encode(store, texts)
    assert n_read == []
    more = [*texts, "A new pot came.", "It is green."]
    after = encode(store, more)
    assert 0 < sum(n_read) < 40
    n_read.clear()
    # Another text in the middle: its part alone, and what is gone is not counted.
    more[22] = "The shelf went to the attic."
    changed = encode(store, more)
    assert 0 < sum(n_read) < 40
    assert not np.array_equal(changed, after)
    assert np.array_equal(changed, encode(MemoryStore.open(tmp_path / "new"), more))


def test_a_session_that_comes_late_leaves_the_parts_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_scope_candidates, "PART", 10)
    store = MemoryStore.open(tmp_path)
    texts = [f"Pot {number} of the {number % 7} blue shelves broke." for number in range(60)]
    store.ingest(chat(texts))
    before = large_scope_candidates._split_sessions_into_parts(store, "log", "eva")
    store.ingest(chat(["Good", "morning", "and", "hello", "there.", *texts]))
    after = large_scope_candidates._split_sessions_into_parts(store, "log", "eva")
    assert sum(part["n_turns"].sum() for part in after) == 65
    digests = [tuple(part["digest"]) for part in before]
    assert digests[1:] == [tuple(part["digest"]) for part in after][-len(digests[1:]) :]


def test_sessions_that_all_say_the_same_are_divided_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_scope_candidates, "PART", 10**9)
    monkeypatch.setattr(large_scope_candidates, "MOST_OF_PART", 10)
    store = MemoryStore.open(tmp_path)
    store.ingest(chat(["Yes."] * 60))
    parts = large_scope_candidates._split_sessions_into_parts(store, "log", "eva")
    assert [part["n_turns"].sum() for part in parts] == [10] * 6


def test_a_cache_of_few_files_is_not_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_scope_candidates, "LARGE", 10)
    texts = [f"Pot {number} of the blue shelves broke." for number in range(20)]
    store = MemoryStore.open(tmp_path)
    encode(store, texts)
    caches = [name for name in store.database.table_names() if name.startswith("tokens_")]
    assert caches
    tables = [store.database.connection.open_table(name) for name in caches]
    assert all(table.list_indices() for table in tables)
    versions = [table.version for table in tables]
    store.tokens.compact_and_index_caches(StandIn())
    assert [store.database.connection.open_table(name).version for name in caches] == versions


def test_the_sum_is_brought_up_to_date_by_the_parts_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_scope_candidates, "LARGE", 10)
    monkeypatch.setattr(large_scope_candidates, "PART", 10)
    statistics = scope_statistics.Statistics
    read, removed = statistics.read_token_counts_by_part_digest, []
    n_read: list[int] = []

    def counted(*about: Any, digests: Any) -> Any:
        counts = read(*about, digests=digests)
        n_read.append(len(counts))
        return counts

    monkeypatch.setattr(statistics, "read_token_counts_by_part_digest", counted)
    texts = [f"Pot {number} of the {number % 7} blue shelves broke." for number in range(60)]
    store = MemoryStore.open(tmp_path / "grown")
    encode(store, texts)
    n_parts = len(large_scope_candidates._split_sessions_into_parts(store, "log", "eva"))
    more = [*texts, "A new pot came."]
    n_read.clear()
    after = encode(store, more)
    assert sum(n_read) <= 2 < n_parts, "of the part that it joined"
    assert np.array_equal(after, encode(MemoryStore.open(tmp_path / "new"), more))

    # Interrupted before the counts of what is gone are removed, then run again.
    def stops(*about: Any) -> None:
        removed.append(about)
        raise RuntimeError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(statistics, "remove_token_counts_of_parts", stops)
        with pytest.raises(RuntimeError, match="stopped"):
            encode(store, [*more, "It is green."])
    assert removed
    again = encode(store, [*more, "It is green.", "It is round."])
    whole = encode(MemoryStore.open(tmp_path / "whole"), [*more, "It is green.", "It is round."])
    assert np.array_equal(again, whole)
    # Counts of parts that somebody removed are made again.
    store.table("statistics").delete("state != ''")
    more[3] = "The shelf went to the attic."
    changed = encode(store, more)
    assert np.array_equal(changed, encode(MemoryStore.open(tmp_path / "other"), more))


def test_a_sum_of_an_earlier_memlab_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That says not of which parts it is the sum, and may be of other passages."""
    monkeypatch.setattr(large_scope_candidates, "LARGE", 10)
    monkeypatch.setattr(large_scope_candidates, "PART", 10)
    texts = [f"Pot {number} of the {number % 7} blue shelves broke." for number in range(60)]
    store = MemoryStore.open(tmp_path)
    before = encode(store, texts)
    nothing = [(len(texts), np.zeros(5, np.int64))]
    store.search.statistics.sum_and_keep_token_counts("log", "eva", StandIn(), nothing)
    assert np.array_equal(encode(store, texts), before)
