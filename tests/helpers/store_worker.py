"""What the tests of faults run in processes of their own: ``python store_worker.py JOB PLACE …``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from store_data import build

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


if __name__ == "__main__":
    jobs = {"together": ingest_together, "slowly": ingest_slowly}
    jobs[sys.argv[1]](*sys.argv[2:])  # type: ignore[operator]
