"""One side of a row of ``scripts/bench.py --only loading``, in a process of its own.

``python scripts/loading.py WAY FILE`` runs a way twice and prints the seconds of processor time of
the second run, with Python's garbage collector on, as people run it. The first run loads and
compiles.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any


def ingest_log(path: Path, folder: str) -> None:
    """Load a chat log into a store without vectors."""
    from memlab import MemoryStore, datasets

    MemoryStore.open(f"{folder}/store").ingest(datasets.load(path))


def add_lines(path: Path, folder: str) -> None:
    """Read the lines of a chat log, and add them to a table of LanceDB as they are."""
    import lancedb
    import polars as pl

    table = pl.read_ndjson(path).to_arrow()
    lancedb.connect(folder).create_table("turns", schema=table.schema).add(table)


def load_export(path: Path, _: str) -> None:
    """Load an export of ChatGPT into tables."""
    from memlab import datasets

    datasets.load(path)


def decode_export(path: Path, _: str) -> list[tuple[Any, ...]]:
    """Decode an export of ChatGPT, and list what its messages say."""
    rows = []
    for conversation in json.loads(path.read_bytes()):
        for node in conversation["mapping"].values():
            said = node["message"]
            if said is not None:
                text = "\n".join(said["content"]["parts"])
                rows.append((said["id"], said["author"]["role"], text, said["create_time"]))
    return rows


WAYS = {way.__name__: way for way in (ingest_log, add_lines, load_export, decode_export)}


def main() -> None:
    way, path = WAYS[sys.argv[1]], Path(sys.argv[2])
    for _ in range(2):
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            begun = process_time()
            way(path, folder)
            seconds = process_time() - begun
    print(seconds)


if __name__ == "__main__":
    main()
