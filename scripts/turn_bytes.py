"""What a turn takes in a store: turns of the sample again and again, numbered, with random vectors.

`python scripts/turn_bytes.py WORK --turns 100000` prints the bytes a turn of each table, after the
vectors were filled and after `store.optimize()`. Bytes depend on how wide vectors are and how long
texts are, not on what they say, so the encoder is a stand-in of MiniLM's width.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import memlab
from memlab.sessions import sessions_of


class RandomVectors:
    """Gives each text a random unit vector."""

    dim = 384

    def __init__(self) -> None:
        self.identity = memlab.embed.load(f"hashing:{self.dim}").identity
        self.random = np.random.default_rng(0)

    def encode(self, texts: Any, *, kind: str = "document", progress: bool = True) -> np.ndarray:
        vectors = self.random.normal(size=(len(list(texts)), self.dim)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def numbered_turns(size: int) -> pl.DataFrame:
    """Give so many turns of the sample, each copy of it with memories and texts of its own."""
    sample, parts = memlab.sample().turns, list[pl.DataFrame]()
    for number in range(-(-size // sample.height)):
        ids = [pl.format("{}~{}", name, number).alias(name) for name in ("turn_id", "session_id")]
        scope = pl.format("{}~{}", "scope", number).alias("scope")
        parts.append(sample.with_columns(*ids, scope, text=pl.format("{} ({})", "text", number)))
    return pl.concat(parts).head(size)


def table_sizes(folder: Path) -> Counter[str]:
    """Give the bytes of the files of each table."""
    sizes = Counter[str]()
    for path in folder.rglob("*"):
        if path.is_file():
            sizes[path.relative_to(folder).parts[0].removesuffix(".lance")] += path.stat().st_size
    return sizes


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("work", type=Path, help="an empty folder for the store")
    reader.add_argument("--turns", type=int, default=100_000)
    asked = reader.parse_args()
    turns = numbered_turns(asked.turns)
    data = memlab.Dataset("numbered", "example", turns, sessions_of(turns))
    store = memlab.MemoryStore.open(asked.work)
    store.ingest(data)
    store.vectors.backfill(RandomVectors(), data.name, progress=False)
    print(f"{turns.height:,} turns of {turns['text'].str.len_chars().mean():.0f} characters")
    for when in ("filled", "optimized"):
        if when == "optimized":
            store.optimize()
        sizes = table_sizes(asked.work)
        shown = ", ".join(f"{name} {n / turns.height:,.0f}" for name, n in sizes.most_common(4))
        print(f"{when}: {sizes.total() / turns.height:,.0f} bytes a turn ({shown})")


if __name__ == "__main__":
    main()
