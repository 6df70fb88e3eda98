"""What the tests of faults run in processes of their own: ``python store_worker.py JOB PLACE …``."""

from __future__ import annotations

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
    jobs = {"together": ingest_together, "slowly": ingest_slowly, "steadily": ingest_steadily}
    jobs[sys.argv[1]](*sys.argv[2:])  # type: ignore[operator]
