"""A store of an earlier version opens and is brought up to date, or it is refused, as one of a later version is."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from store_data import FakeEncoder, build
from tiny_store import DATA, FACT, SESSIONS, STORES, a_run

from memlab.errors import StoreError
from memlab.records import Dataset
from memlab.store import MemoryStore, opening, schemas, writing
from memlab.store.opening import note, noted
from memlab.store.schemas import OLDEST, SCHEMA_VERSION, TABLES


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    with tarfile.open(STORES / f"version-{getattr(request, 'param', OLDEST)}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


def wider(monkeypatch: pytest.MonkeyPatch, *tables: str) -> None:
    """Put another column into tables, as a later version of memlab would."""
    for name in tables:
        columns = {**TABLES[name].columns, "mood": pl.String()}
        monkeypatch.setitem(schemas.TABLES, name, replace(TABLES[name], columns=columns))
    monkeypatch.setattr(opening, "SCHEMA_VERSION", SCHEMA_VERSION + 1)


@pytest.mark.parametrize("place", range(OLDEST, SCHEMA_VERSION + 1), indirect=True)
def test_a_store_of_each_version_opens(place: Path) -> None:
    store = MemoryStore.open(place, create=False)
    assert noted(store.database, "schema") == str(SCHEMA_VERSION)
    assert store.dataset("tiny").fingerprint() == DATA.fingerprint()
    assert store.vectors.read(FakeEncoder(), "tiny").shape == (4, 8)
    encoder = FakeEncoder()
    assert store.vectors.backfill(encoder, "tiny", progress=False) == 0
    run_id = store.grids.load("tiny")["cells"][0]
    run = store.runs.load(run_id)
    assert run.frame.equals(a_run().frame)
    assert store.at(run.provenance["versions"]).dataset("tiny").fingerprint() == DATA.fingerprint()
    facts = store.knowledge.rows("facts", "tiny")
    assert facts.row(0, named=True)["fact_id"] == FACT.fact_id
    assert store.knowledge.states("tiny")["session_id"].to_list() == SESSIONS[:1]
    store.ingest(build(name="another"))
    store.optimize()
    assert MemoryStore.open(place, create=False).datasets()["name"].to_list() == ["another", "tiny"]


@pytest.mark.parametrize("place", [7, 8], indirect=True)
def test_an_older_store_keeps_its_finished_state_too_and_loses_what_nobody_reads(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lancedb

    lancedb.connect(place).create_table("postings_fake_8", [{"key": "turn:tea"}])
    store = MemoryStore.open(place)
    assert "postings_fake_8" not in store.database.names()

    def broken() -> Iterator[Dataset]:
        longer = build(2, 1, 3, name="tiny")
        yield from (longer.take([scope]) for scope in longer.scopes)
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "BATCH_TURNS", 1)
    with pytest.raises(KeyboardInterrupt):
        store.ingest(broken())
    assert store.datasets()["complete"].to_list() == [False]
    assert MemoryStore.open(place).dataset("tiny").fingerprint() == DATA.fingerprint()


def test_opening_again_writes_nothing(place: Path) -> None:
    store = MemoryStore.open(place)
    version = store.table("store").version
    assert MemoryStore.open(place).table("store").version == version


@pytest.mark.parametrize(("number", "mend"), [(SCHEMA_VERSION + 1, "pip install"), (OLDEST - 1, "ingest")])
def test_a_store_of_another_version_is_refused(tmp_path: Path, number: int, mend: str) -> None:
    note(MemoryStore.open(tmp_path).database, schema=str(number), memlab="9.8")
    with pytest.raises(StoreError, match=rf"schema version {number}, written by memlab 9.8; .*{mend}"):
        MemoryStore.open(tmp_path)


def test_columns_that_an_older_store_lacks_are_added(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = MemoryStore.open(place)
    versions = before.versions()
    wider(monkeypatch, "turns", "facts", "grids")
    store = MemoryStore.open(place)
    assert {"mood"} <= {*store.table("turns").schema.names} & {*store.table("grids").schema.names}
    assert store.turns("tiny", columns=["mood"])["mood"].null_count() == 4
    assert store.dataset("tiny").fingerprint() == DATA.fingerprint()
    view = store.at(versions)
    assert view.turns("tiny", columns=["turn_id", "mood"])["mood"].null_count() == 4
    assert_frame_equal(view.dataset("tiny").turns, DATA.turns)


def test_what_the_schema_version_covers_is_written_down() -> None:
    """Whoever changes a table raises the version, adds the store of it (see tiny_store.py), and this number."""
    described = repr([(name, table.columns, table.role, table.id) for name, table in TABLES.items()])
    assert (SCHEMA_VERSION, schemas.text_hashes([described])[0][:8]) == (9, "4ef20de4")
    assert (STORES / f"version-{SCHEMA_VERSION}.tar.xz").exists()


@pytest.mark.slow
def test_the_client_that_is_left_out_of_the_import_works_when_asked(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom memlab.store import MemoryStore\n"
        f"MemoryStore.open({str(tmp_path / 'store')!r})\n"
        "assert 'lance_namespace_urllib3_client.api' not in sys.modules\n"
        "import lance_namespace_urllib3_client as client\n"
        "assert client.models.DescribeTableRequest(id=['x']).id == ['x']\n"
        "assert client.ApiClient().configuration.host\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
