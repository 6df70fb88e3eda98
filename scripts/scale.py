"""How memlab grows: ingest, tokens, indexes, search and evaluation of a synthetic log in one scope, each size apart.

`python scripts/scale.py WORK --turns 1000 10000 100000` prints one table and writes it as JSON. Texts are synthetic
talk; the encoder is MiniLM's table of words without its layers, since the layers take 25 ms a turn on two cores, at
10⁶ turns seven hours that grow as the turns do and say nothing about memlab.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import memlab
from memlab.embed.base import EncoderIdentity
from memlab.embed.tokens import TokenVectors
from memlab.retrieve import narrow

PART = 100_000
PIPELINES = ("combsum", "best", "best | learned")


class WordTable:
    """MiniLM's vectors of words alone: a text is their mean, a token in context leans to its text."""

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        from memlab.embed.transformer import minilm_path

        path = minilm_path()
        assert path is not None
        weights = load_file(path / "model.safetensors")
        table = next(array for name, array in weights.items() if name.endswith("word_embeddings.weight"))
        table = table.astype(np.float32) - table.mean(0)
        self.table = table / np.linalg.norm(table, axis=1, keepdims=True)
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)
        self.dim = table.shape[1]
        self.identity = EncoderIdentity("table", "minilm-words", dim=self.dim)

    def encode(self, texts: Any, *, kind: str = "document", progress: bool = True) -> np.ndarray:
        parts = [self._means(self._ids(chunk)) for chunk in _chunks(list(texts))]
        return np.concatenate([np.zeros((0, self.dim), np.float32), *parts])

    def encode_tokens(
        self, texts: Any, *, before: Any = None, kind: str = "document", progress: bool = True
    ) -> TokenVectors:
        ids = self._ids(list(texts))
        own = np.repeat(np.arange(len(ids)), [len(row) for row in ids])
        flat = np.array([i for row in ids for i in row], np.int32)
        vectors = self.table[flat] + 0.5 * self._means(ids)[own]
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return TokenVectors(flat, vectors.astype(np.float16), np.r_[0, np.cumsum([len(row) for row in ids])])

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return [one.ids for one in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def _means(self, ids: list[list[int]]) -> np.ndarray:
        means = np.array([self.table[row].mean(0) if row else np.zeros(self.dim) for row in ids], np.float32)
        means = means.reshape(len(ids), self.dim)
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)


def _chunks(texts: list[str], size: int = 10_000) -> Iterator[list[str]]:
    yield from (texts[start : start + size] for start in range(0, len(texts), size))


def parts(work: Path, turns: int) -> Iterator[memlab.Dataset]:
    """Write one long log in parts that follow each other in time, made once."""
    later, n = timedelta(0), 0
    for seed in range(-(-turns // PART)):
        size = min(PART, turns - seed * PART)
        place = work / f"talk-{seed}-{size}"
        if not place.exists():
            made = memlab.datasets.synthetic.generate(size, seed=seed, turns_per_scope=size)
            place.mkdir(parents=True)
            for name in ("turns", "sessions", "questions"):
                getattr(made, name).write_parquet(place / f"{name}.parquet")
        read = {name: pl.read_parquet(place / f"{name}.parquet") for name in ("turns", "sessions", "questions")}
        yield _placed(read, seed, later, n)
        first, last = read["sessions"]["start"].min(), read["sessions"]["end"].max()
        later += last - first + timedelta(days=1)  # type: ignore[operator]
        n += read["sessions"].height


def _placed(read: dict[str, pl.DataFrame], seed: int, later: timedelta, n: int) -> memlab.Dataset:
    named = pl.lit(f"{seed}/")
    scope = {"scope": pl.lit("everything")}
    session = {"session_id": named + pl.col("session_id")}
    turns = read["turns"].with_columns(
        turn_id=named + pl.col("turn_id"), timestamp=pl.col("timestamp") + later, **scope, **session
    )
    sessions = read["sessions"].with_columns(
        n=pl.col("n") + n, start=pl.col("start") + later, end=pl.col("end") + later, **scope, **session
    )
    questions = read["questions"].with_columns(
        query_id=named + pl.col("query_id"),
        timestamp=pl.col("timestamp") + later,
        evidence=pl.col("evidence").list.eval(named + pl.element()),
        evidence_sessions=pl.col("evidence_sessions").list.eval(named + pl.element()),
        **scope,
    )
    return memlab.Dataset("talk", "synthetic", turns=turns, sessions=sessions, questions=questions)


def joined(work: Path, turns: int) -> memlab.Dataset:
    every = list(parts(work, turns))
    return memlab.Dataset(
        "talk", "synthetic",
        **{name: pl.concat(getattr(part, name) for part in every) for name in ("turns", "sessions", "questions")},
    )  # fmt: skip


def measured(work: Path, turns: int, questions: int, exact: int) -> dict[str, Any]:
    """Do everything once for one size, in a process of its own."""
    from memlab.rerank import train, training_lists
    from memlab.store import MemoryStore, cached

    encoder, row = WordTable(), {"turns": turns}
    model = work / "model.safetensors"
    if not model.exists():
        small = memlab.datasets.synthetic.generate(4_000, seed=99, turns_per_scope=1_000)
        train(training_lists(memlab.Bench.of(small, encoder=encoder, progress=False), small)).save(model)
    for _ in parts(work, turns):
        pass  # made before the clock runs
    place = work / f"store-{turns}"
    store = MemoryStore.open(place)

    def step(name: str, do: Any) -> Any:
        start = time.perf_counter()
        made = do()
        row[f"{name} s"] = round(time.perf_counter() - start, 2)
        return made

    step("ingest", lambda: store.ingest(parts(work, turns)))
    step("vectors", lambda: store.vectors.backfill(encoder, "talk", progress=False))
    step("tokens", lambda: narrow.fill(store, "talk", encoder, progress=False))
    step("index", lambda: store.search.create_indexes(encoder))
    row["disk GB"] = round(sum(f.stat().st_size for f in place.rglob("*") if f.is_file()) / 1e9, 3)
    row["peak GB after indexing"] = _peak()
    asked = pl.concat(part.questions for part in parts(work, turns)).sample(questions, seed=0, shuffle=True)
    asked = asked.select("query_id", "scope", "text", "timestamp")
    runs: dict[str, pl.DataFrame] = {}
    if turns >= narrow.LARGE:
        narrow.around(store, "talk", asked[0], encoder=cached(store, encoder))  # opens tables
        for text in PIPELINES:
            pipeline = memlab.pipeline(text.replace("learned", f"learned(model={str(model)!r})"))
            times, found = [], []
            for i in range(questions):
                start = time.perf_counter()
                bench = narrow.around(store, "talk", asked[i], encoder=cached(store, encoder))
                found.append(pipeline.run(bench).top(10).frame)
                times.append(1000 * (time.perf_counter() - start))
            row[f"{text} p50 ms"], row[f"{text} p99 ms"] = (round(float(np.percentile(times, p))) for p in (50, 99))
            runs[text] = pl.concat(found)
        row["peak GB with search"] = _peak()
    if exact or turns < narrow.LARGE:
        data = joined(work, turns)
        bench = memlab.Bench.of(data, encoder=encoder, progress=False).with_queries(asked[: exact or questions])
        for text in PIPELINES:
            pipeline = memlab.pipeline(text.replace("learned", f"learned(model={str(model)!r})"))
            start = time.perf_counter()
            frame = pipeline.run(bench).top(10).frame
            row[f"{text} all compared, ms a question"] = round(
                1000 * (time.perf_counter() - start) / bench.queries.height
            )
            if text in runs:
                same = frame.join(runs[text], on=["query_id", "doc_id"], how="semi").height
                row[f"{text} recall@10 of all compared"] = round(same / frame.height, 3)
        row["n compared"] = bench.queries.height
    return row


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("work", type=Path, help="folder for logs and stores")
    reader.add_argument("--turns", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    reader.add_argument("--questions", type=int, default=100, help="for the times of search")
    reader.add_argument("--exact", type=int, default=20, help="questions compared with everything; 0 for none")
    reader.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = reader.parse_args()
    if chosen.one:
        row = measured(chosen.work, chosen.turns[0], chosen.questions, chosen.exact)
        (chosen.work / f"row-{chosen.turns[0]}.json").write_text(json.dumps(row))
        return
    rows = []
    for turns in chosen.turns:
        same = ["--questions", str(chosen.questions), "--exact", str(chosen.exact)]
        command = [sys.executable, __file__, str(chosen.work), "--turns", str(turns), *same, "--one"]
        subprocess.run(command, check=True)
        rows.append(json.loads((chosen.work / f"row-{turns}.json").read_text()))
    names = list(dict.fromkeys(name for row in rows for name in row))
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print("| | " + " | ".join(f"{row['turns']:,}" for row in rows) + " |\n|:--|" + "--:|" * len(rows))
    for name in names[1:]:
        print(f"| {name} | " + " | ".join(str(row.get(name, "")) for row in rows) + " |")
    (chosen.work / "scale.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
