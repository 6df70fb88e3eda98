"""A store is searched again without being read again, until something of it changes."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import memlab
from memlab import MemoryStore, lookup
from memlab.datasets import chatlog
from memlab.errors import StoreError
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.retrieve.bench_cache import BenchCache

START = datetime(2026, 3, 1, tzinfo=UTC)
SAID = ["I planted garlic by the shed.", "The kettle is broken again.", "Nils sold his canoe."]


def chat(*texts: str, scope: str = "eva", name: str = "log") -> Dataset:
    rows = []
    for number, text in enumerate(texts):
        time = (START + timedelta(minutes=number)).isoformat()
        rows.append({"scope": scope, "sender": "eva", "timestamp": time, "text": text})
    return chatlog.dataset(rows, name)


def make_store(place: Path, *texts: str) -> MemoryStore:
    store = MemoryStore.open(place)
    store.ingest(chat(*texts))
    return store


def first_text(store: MemoryStore, question: str) -> str:
    found = memlab.search(store, question, encoder="hashing:64")
    return str(found["text"][0])


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Bench]:
    """Give the benches that are made of stores, of which none is kept at first."""
    benches: list[Bench] = []
    make = lookup._make_scope_bench

    def counted(*about: object, **more: object) -> Bench:
        benches.append(make(*about, **more))  # type: ignore[arg-type]
        return benches[-1]

    monkeypatch.setattr(lookup, "_make_scope_bench", counted)
    monkeypatch.setattr(lookup, "_store_benches", BenchCache())
    return benches


def test_questions_of_a_scope_share_a_bench(tmp_path: Path, made: list[Bench]) -> None:
    store = make_store(tmp_path, *SAID)
    # The first question writes vectors, which is another state of the turns.
    assert first_text(store, "Which canoe?") == SAID[2]
    assert first_text(store, "What about the kettle?") == SAID[1]
    n_made = len(made)
    assert first_text(store, "Where is the garlic?") == SAID[0]
    # One that is opened again is the same store.
    again = memlab.search(MemoryStore.open(tmp_path), "Whose canoe?", encoder="hashing:64")
    assert len(made) == n_made <= 2
    plain = lookup.question_bench(
        store,
        "log",
        lookup.make_checked_question_frame("Whose canoe?", "eva"),
        encoder=memlab.embed.load("hashing:64"),
    )
    run = memlab.pipeline(memlab.retrieve.DEFAULT).run(plain, level="turn")
    assert lookup.hit_rows(run.top(10), plain).equals(again)


def test_another_encoder_and_another_header_have_their_own(
    tmp_path: Path, made: list[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path, *SAID)
    for _ in range(2):
        memlab.search(store, "Which canoe?", encoder="hashing:64")
    n_made = len(made)
    memlab.search(store, "Which canoe?", encoder="hashing:128")
    assert made[-1].encoder is not None
    assert made[-1].encoder.dim == 128
    assert len(made) == n_made + 1
    monkeypatch.setenv("MEMLAB_HEADER", '["time"]')
    memlab.search(store, "Which canoe?", encoder="hashing:64")
    assert made[-1].header == ("time",)


def test_what_another_handle_writes_is_found(tmp_path: Path) -> None:
    store = make_store(tmp_path, *SAID)
    for _ in range(2):
        assert first_text(store, "Who has a trumpet?") not in ("Ole has a trumpet.",)
    other = MemoryStore.open(tmp_path)
    other.ingest(chat(*SAID, "Ole has a trumpet."))
    assert first_text(store, "Who has a trumpet?") == "Ole has a trumpet."
    other.ingest(chat(*SAID))
    assert first_text(store, "Who has a trumpet?") in SAID


def test_a_store_in_the_place_of_another_is_read(tmp_path: Path) -> None:
    here = tmp_path / "here"
    for place, text in ((here, "Ole has a trumpet."), (tmp_path / "other", "Ida has a trumpet.")):
        store = make_store(place, *SAID, text)
        for _ in range(2):
            assert first_text(store, "Who has a trumpet?") == text
    shutil.move(here, tmp_path / "away")
    shutil.move(tmp_path / "other", here)
    assert first_text(MemoryStore.open(here), "Who has a trumpet?") == "Ida has a trumpet."


def test_a_store_that_is_gone_is_not_searched(tmp_path: Path) -> None:
    store = make_store(tmp_path / "here", *SAID)
    for _ in range(2):
        first_text(store, "Which canoe?")
    shutil.move(tmp_path / "here", tmp_path / "away")
    with pytest.raises(StoreError):
        first_text(store, "Which canoe?")


def test_the_oldest_are_let_go_of(tmp_path: Path) -> None:
    cache = BenchCache(max_turns=5)
    parts = {name: chat(*SAID[:n], scope=name) for n, name in ((2, "a"), (3, "b"), (1, "c"))}
    made = []

    def ask(name: str) -> None:
        def make() -> Bench:
            made.append(name)
            return Bench.of(parts[name], encoder=None)

        cache.get_or_make(name, 1, make)

    for name in "abacba":
        ask(name)
    # With c there are 6 turns, and b was not asked for last.
    assert made == ["a", "b", "c", "b", "a"]
    alone = BenchCache(max_turns=1)
    bench = Bench.of(parts["b"], encoder=None)
    assert alone.get_or_make("b", 1, lambda: bench) is alone.get_or_make("b", 1, Bench.of) is bench
