"""What tables were goes, and what runs, readers and interrupted ingests need of it stays readable."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from store_data import FakeEncoder, build, edited

from memlab.errors import StoreError
from memlab.records import Dataset, Run, run_from_scores
from memlab.store import MemoryStore, version_cleaning
from memlab.store.table_schemas import VERSIONED

WHOLE = build(4, 3, 5)
STATES = [
    WHOLE.take(WHOLE.scopes[:1]),
    WHOLE.take(WHOLE.scopes[:3]),
    edited(WHOLE, "scope-1/session_0/2", text="Bo keeps bees."),
    WHOLE,
]


def save_run(store: MemoryStore, number: int) -> str:
    """Save a run on the store as it is; by a handle of its own, which then lets go of the versions."""
    handle = MemoryStore.open(store.uri)
    run = run_from_scores(["q", "q"], ["a", "b"], [1.0, 0.5 / (number + 1)], level="turn", k=2)
    return handle.runs.save(replace(run, name=f"run-{number}", provenance={"versions": handle.versions()}))  # fmt: skip


def view_of(store: MemoryStore, run_id: str) -> Dataset:
    run: Run = store.runs.load(run_id)
    return store.at(run.provenance["versions"]).dataset("small")


def version_counts(store: MemoryStore) -> dict[str, int]:
    names = (name for name in store.database.table_names() if not name.startswith("kept_"))
    return {name: len(store.table(name).list_versions()) for name in names}


@pytest.fixture(scope="module")
def made_with_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The place of a store with a run on each of some states, all with vectors."""
    place = tmp_path_factory.mktemp("with_runs") / "store"
    store = MemoryStore.open(place)
    ids = []
    for number, state in enumerate(STATES):
        store.ingest(state)
        store.vectors.backfill(FakeEncoder(), "small", progress=False)
        ids.append(save_run(store, number))
    return place, ids


@pytest.fixture
def with_runs(
    made_with_runs: tuple[Path, list[str]], tmp_path: Path
) -> tuple[MemoryStore, list[str]]:
    """A copy of it, of the test's own."""
    place, ids = made_with_runs
    return MemoryStore.open(shutil.copytree(place, tmp_path / "store")), ids


@pytest.fixture
def soon_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be cleaned after few versions, so that few ingests show what many do."""
    monkeypatch.setattr(version_cleaning, "MOST_VERSIONS", 4)


def assert_states(store: MemoryStore, ids: list[str]) -> None:
    for run_id, state in zip(ids, STATES, strict=True):
        there = view_of(store, run_id)
        assert there.fingerprint() == state.fingerprint()
        assert_frame_equal(there.turns, state.turns)
        assert_frame_equal(there.sessions, state.sessions)
        at = store.at(store.runs.load(run_id).provenance["versions"])
        assert at.versions() == store.runs.load(run_id).provenance["versions"]
        assert at.vectors.read(FakeEncoder(), "small").shape == (state.turns.height, 8)


@pytest.mark.slow
def test_versions_between_those_of_runs_go(with_runs: tuple[MemoryStore, list[str]]) -> None:
    store, ids = with_runs
    for _ in range(4):  # of which nothing is needed
        for state in STATES[2:]:
            store.ingest(state)
    before, sizes = store.size(), []
    assert before is not None
    for _ in range(3):
        report = store.optimize()
        sizes.append(store.size())
        assert report["versions_after"].max() <= 2
        assert_states(store, ids)
    assert sizes[0] < before
    assert sizes[2] <= sizes[1] <= sizes[0]
    rows = store.database.connection.open_table("kept_turns").count_rows()
    assert rows == WHOLE.turns.height


@pytest.mark.slow
def test_runs_are_listed_with_what_they_hold_and_let_go_of(
    with_runs: tuple[MemoryStore, list[str]],
) -> None:
    store, ids = with_runs
    store.optimize()
    held = store.runs.held().sort("name")
    assert held["run_id"].to_list() == ids
    for states in held["states"][:3]:
        assert any(of.startswith("turns ") for of in states)
    assert (held["own_bytes"][:3] > 0).all()
    assert (held["own_bytes"] <= held["bytes"]).all()
    with pytest.raises(StoreError, match=r"has no run 'none'.* nothing is removed"):
        store.runs.remove([ids[0], "none"])
    versions = [store.runs.load(run_id).provenance["versions"] for run_id in ids]
    store.runs.remove(ids[:2])
    assert store.runs.listing()["run_id"].to_list() == ids[:1:-1]
    store.optimize()
    for gone in versions[:2]:
        with pytest.raises(StoreError, match="was cleaned up"):
            store.at(gone)
    assert view_of(store, ids[2]).fingerprint() == STATES[2].fingerprint()
    store.runs.remove(ids[2:])
    store.optimize()
    assert not [name for name in store.database.table_names() if name.startswith("kept_")]
    assert store.runs.held().is_empty()
    assert store.database.read_table("rankings", ["run_id"]).is_empty()
    assert store.dataset("small").fingerprint() == WHOLE.fingerprint()


def test_the_command_lists_runs_and_drops_them(store: MemoryStore, memlab_cli: Any) -> None:
    place = Path(store.uri).parent
    store.ingest(STATES[0])
    run_id = save_run(store, 0)
    store.ingest(STATES[1])
    size = store.size()
    listed = memlab_cli("optimize", "--runs", "--store", store.uri, cwd=place)
    assert listed.code == 0, listed.err
    assert f"{run_id}  20" in listed.out
    assert "1 saved run; --drop ID removes one with what it alone holds" in listed.out
    assert store.size() == size
    refused = memlab_cli("optimize", "--drop", "none", "--store", store.uri, cwd=place)
    assert refused.code == 2
    assert "has no run 'none'" in refused.messages[0]
    done = memlab_cli("optimize", "--drop", run_id, "--store", store.uri, cwd=place)
    assert done.code == 0, done.err
    assert "MB freed of" in done.out
    assert store.runs.listing().is_empty()


def test_a_run_that_is_removed_at_once_holds_nothing(store: MemoryStore) -> None:
    store.ingest(STATES[0])
    run_id = save_run(store, 0)
    store.ingest(STATES[1])
    assert store.runs.held()["own_bytes"].item() > 0
    store.runs.remove(run_id)
    store.optimize()
    assert not store.table("turns").tags.list()
    assert max(version_counts(store).values()) <= 2


@pytest.mark.usefixtures("soon_due")
@pytest.mark.slow
def test_a_tag_of_somebody_else_stays(store: MemoryStore) -> None:
    store.ingest(STATES[0])
    version = int(store.table("turns").version)
    store.table("turns").tags.create("mine", version)
    save_run(store, 0)
    store.ingest(STATES[1])
    store.optimize()
    for part in parts(6):  # which clean what has no such tag
        store.ingest(part)
    assert version_counts(store)["datasets"] <= version_cleaning.MOST_VERSIONS + 4
    assert store.table("turns").tags.list()["mine"]["version"] == version
    table = store.database.connection.open_table("turns")
    table.checkout(version)
    assert table.count_rows() == STATES[0].turns.height


class _Clock(datetime):
    """Stands before everything that was written."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return datetime(1975, 1, 1, tzinfo=tz)


def test_a_clock_that_is_behind_cleans_what_it_can(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store.ingest(STATES[0])
    store.table("turns").tags.create("mine", int(store.table("turns").version))
    store.ingest(WHOLE)
    monkeypatch.setattr(version_cleaning, "datetime", _Clock)
    store.optimize()
    assert "the clock is behind version" in caplog.text
    assert store.dataset("small").fingerprint() == WHOLE.fingerprint()
    assert "mine" in store.table("turns").tags.list()


@pytest.mark.nightly
def test_a_cleaning_that_was_interrupted_is_done_again(
    with_runs: tuple[MemoryStore, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, ids = with_runs
    for broken in ("compact_and_drop_old_versions", "copy_version_rows_to_kept_table"):
        work, calls = getattr(version_cleaning, broken), iter(range(100))

        def breaks(*place: Any, work: Any = work, calls: Iterator[int] = calls) -> None:
            if next(calls) == 2:
                raise OSError("No space left on device (os error 28)")
            work(*place)

        with monkeypatch.context() as patch:
            patch.setattr(version_cleaning, broken, breaks)
            with pytest.raises(StoreError, match="the disk is full"):
                store.optimize()
        assert_states(store, ids)
    store.optimize()
    assert_states(store, ids)


@pytest.mark.nightly
@pytest.mark.usefixtures("soon_due")
def test_a_run_that_was_made_during_an_ingest_stays_readable(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlab.store.ingestion.BATCH_TURNS", 1)
    ids = list[str]()

    def with_a_run() -> Iterator[Dataset]:
        for scope in WHOLE.scopes:
            yield WHOLE.take([scope])
            if scope == WHOLE.scopes[2]:
                ids.append(save_run(store, 0))

    store.ingest(STATES[0])
    store.ingest(with_a_run())
    for _ in range(3):
        store.optimize()
        assert view_of(store, ids[0]).fingerprint() == STATES[0].fingerprint()
    for part in parts(6):
        store.ingest(part)
    assert view_of(store, ids[0]).fingerprint() == STATES[0].fingerprint()
    assert version_counts(store)["datasets"] <= version_cleaning.MOST_VERSIONS + 4


@pytest.mark.usefixtures("soon_due")
def test_a_cleaning_that_fails_leaves_the_ingest_done(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(table: Any) -> None:
        raise OSError("No space left on device (os error 28)")

    monkeypatch.setattr(version_cleaning, "compact_and_drop_old_versions", breaks)
    for part in parts(4):
        store.ingest(part)
    assert store.dataset("small").fingerprint() == part.fingerprint()
    assert "cleaning tables failed" in caplog.text
    assert "the tables are whole, and are cleaned the next time" in caplog.text


def parts(count: int) -> Iterator[Dataset]:
    """Give a growing chat, one message more each time."""
    turns = WHOLE.take(WHOLE.scopes[:1]).turns
    for number in range(1, count + 1):
        yield _first_turns(number % turns.height or turns.height)


def _first_turns(number: int) -> Dataset:
    one = WHOLE.take(WHOLE.scopes[:1])
    turns = one.turns.head(number)
    counted = turns.group_by("session_id", maintain_order=True).len("counted")
    sessions = one.sessions.join(counted, on="session_id", maintain_order="left")
    sessions = sessions.with_columns(n_turns=pl.col("counted").cast(pl.Int64)).drop("counted")
    return replace(one, turns=turns, sessions=sessions, questions=one.questions.clear())


@pytest.mark.usefixtures("soon_due")
@pytest.mark.slow
def test_small_ingests_are_cleaned_on_their_own(store: MemoryStore, tmp_path: Path) -> None:
    most = 0
    for part in parts(7):
        store.ingest(part)
        store.vectors.backfill(FakeEncoder(), "small", progress=False)
        store.search.create_indexes()
        most = max(most, *version_counts(store).values())
    assert most <= version_cleaning.MOST_VERSIONS + 4
    fresh = MemoryStore.open(tmp_path / "fresh")
    fresh.ingest(part)
    assert store.dataset("small").fingerprint() == fresh.dataset("small").fingerprint()
    assert int(store.table("turns").version) > 2 * version_cleaning.MOST_VERSIONS
    size = store.size()
    assert size is not None
    assert size < 3 * version_cleaning.MOST_VERSIONS * version_cleaning.VERSION_BYTES


@pytest.mark.usefixtures("soon_due")
@pytest.mark.slow
def test_what_looks_at_versions_keeps_them(store: MemoryStore) -> None:
    store.ingest(STATES[0])
    reader = MemoryStore.open(store.uri)
    view = reader.at(store.versions())
    del store.database._reading  # as if another process had asked for the versions
    for part in parts(6):
        store.ingest(part)
    assert view.dataset("small").fingerprint() == STATES[0].fingerprint()
    assert version_counts(store)["turns"] > version_cleaning.MOST_VERSIONS


@pytest.mark.usefixtures("soon_due")
@pytest.mark.slow
def test_a_handle_that_is_gone_keeps_nothing(store: MemoryStore) -> None:
    for number, part in enumerate(parts(7)):
        handle = MemoryStore.open(store.uri)
        view = handle.at(handle.versions())
        store.ingest(part)
        assert number == 0 or view.dataset("small").turns.height
        del view, handle
    for part in parts(2):
        store.ingest(part)
    assert version_counts(store)["turns"] <= version_cleaning.MOST_VERSIONS + 4


@pytest.mark.usefixtures("soon_due")
@pytest.mark.slow
def test_another_dataset_that_is_held_keeps_the_versions(store: MemoryStore) -> None:
    store.ingest(build(name="other"))

    def meanwhile() -> Iterator[Dataset]:
        yield replace(build(5, name="other"))
        for part in parts(6):
            MemoryStore.open(store.uri).ingest(part)
        seen.append(MemoryStore.open(store.uri).dataset("other").fingerprint())

    seen = list[str]()
    store.ingest(meanwhile())
    assert seen == [build(name="other").fingerprint()]
    assert store.dataset("other").fingerprint() == build(5, name="other").fingerprint()


def test_every_table_of_data_can_be_kept(store: MemoryStore) -> None:
    store.ingest(STATES[0])
    versions = store.versions()
    save_run(store, 0)
    store.ingest(WHOLE)
    store.optimize()
    assert {f"kept_{name}" for name in VERSIONED} <= set(store.database.table_names())
    assert store.at(versions).scopes("small") == STATES[0].scopes
    again = MemoryStore.open(store.uri)
    assert again.at(versions).questions("small").equals(STATES[0].questions)


@pytest.mark.parametrize("how", [shutil.copytree, shutil.move])
@pytest.mark.slow
def test_states_of_a_store_that_was_copied_or_moved_stay(
    with_runs: tuple[MemoryStore, list[str]], tmp_path: Path, how: Callable[[Path, Path], Any]
) -> None:
    store, ids = with_runs
    store.optimize()
    how(Path(store.uri), tmp_path / "elsewhere")
    other = MemoryStore.open(tmp_path / "elsewhere")
    for run_id in ids[:2]:
        other.runs.remove([run_id])
        other.optimize()
    for run_id, state in zip(ids[2:], STATES[2:], strict=True):
        assert view_of(other, run_id).fingerprint() == state.fingerprint()
