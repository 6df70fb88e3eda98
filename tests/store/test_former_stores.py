"""Stores that earlier memlabs wrote are read, searched, added to and optimized, with their runs."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from store_data import build

import memlab
from memlab.errors import StoreError
from memlab.store import MemoryStore

ROOT = Path(__file__).parents[2]
# The store was written anew after the first; facts, trees and repeated columns came later.
COMMITS = ("98be997a", "d80b1595", "46134829", "d2f0054c")
WRITE = """
import sys
import memlab
from memlab.store import MemoryStore
store = MemoryStore.open(sys.argv[1])
data = memlab.sample(["owen"], turns=120)
store.ingest(data)
memlab.run(["bm25"], data, encoder="hashing:64", store=sys.argv[1], levels=["turn"])
print(data.name, data.turns.height, sep=chr(9))
"""


def _source(commit: str, folder: Path) -> Path:
    """Unpack memlab and its sample as they were at a commit."""
    command = ["git", "archive", commit, "memlab", "data/sample"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    if done.returncode:
        pytest.skip(f"commit {commit} is not in this checkout")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("commit", COMMITS)
def test_a_store_of_an_earlier_memlab_goes_on(commit: str, tmp_path: Path) -> None:
    source, place = _source(commit, tmp_path / "source"), tmp_path / "store"
    command = [sys.executable, "-c", WRITE, place]
    env = {"PYTHONPATH": str(source), "HOME": str(tmp_path)}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    name, height = done.stdout.splitlines()[-1].split("\t")
    store, encoder = MemoryStore.open(place, create=False), memlab.embed.load("hashing:64")
    assert store.dataset(name).turns.height == int(height)
    (run_id,) = store.runs.listing()["run_id"]
    store.ingest(build())
    store.vectors.backfill(encoder, name, progress=False)
    store.search.create_indexes(encoder)
    found = store.search.by_text(["dentist appointment"], dataset=name, scopes=["owen"], k=3)
    assert found.height
    store.optimize()
    run = MemoryStore.open(place).runs.load(run_id)
    view = store.at(run.provenance["versions"])
    assert view.dataset(name).turns.height == int(height)
    assert store.dataset("small").fingerprint() == build().fingerprint()


def test_a_store_with_other_tables_says_what_to_do(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path)
    store.database.upsert_row("store", "schema", value="999")
    with pytest.raises(StoreError, match="ingest the files again into another store, or install"):
        MemoryStore.open(tmp_path)
