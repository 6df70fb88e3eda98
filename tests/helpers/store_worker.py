"""What the tests of faults run in processes of their own: ``python store_worker.py JOB PLACE …``."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from store_data import FakeEncoder, build

from memlab.errors import StoreError
from memlab.store import MemoryStore, writing


def ingest_together(place: str, flag: str) -> None:
    """Ingest at the moment when the flag appears, so that several processes write the same new keys."""
    import lancedb  # noqa: F401  before the flag, since it takes seconds

    print("ready", flush=True)
    while not Path(flag).exists():
        time.sleep(0.005)
    MemoryStore.open(place).ingest(build(3, 2, 10))


def ingest_slowly(place: str) -> None:
    """Ingest scope by scope, a batch each, and say so; to be killed on the way."""
    writing.BATCH_TURNS = 1
    whole = build(20, 2, 6)

    def parts() -> object:
        for scope in whole.scopes:
            yield whole.take([scope])
            print(scope, flush=True)

    MemoryStore.open(place).ingest(parts())  # type: ignore[arg-type]


def ingest_with_small_files(place: str) -> None:
    """Meet the largest allowed file size in the middle, then go on with the limit lifted."""
    store = MemoryStore.open(place)
    store.ingest(build())
    versions = store.versions()
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    try:
        store.ingest(build(12, 5, 20, name="large"))
    except StoreError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert {k: v for k, v in store.versions().items() if k != "datasets"} == {
        k: v for k, v in versions.items() if k != "datasets"
    }
    assert store.dataset("small").fingerprint() == build().fingerprint()
    store.ingest(build(12, 5, 20, name="large"))
    assert store.dataset("large").fingerprint() == build(12, 5, 20, name="large").fingerprint()
    print("whole")


def ingest_steadily(place: str, number: str) -> None:
    """Write small datasets with their vectors, one after the other, as often as another process is met."""
    store, encoder = MemoryStore.open(place), FakeEncoder()
    for part in range(3):
        for _ in range(20):
            try:
                data = build(name=f"w{number}-{part}", seed=part)
                store.ingest(data)
                store.vectors.backfill(encoder, data.name, progress=False)
                break
            except StoreError as error:
                if "another process" not in str(error):
                    raise


if __name__ == "__main__":
    jobs = {"together": ingest_together, "slowly": ingest_slowly, "small_files": ingest_with_small_files}
    (jobs | {"steadily": ingest_steadily})[sys.argv[1]](*sys.argv[2:])
