"""How memlab grows: ingest, tokens, indexes, search and evaluation of a long log in one scope, each size apart.

`python scripts/scale.py WORK --turns 1000 10000 100000` prints one table and writes it as JSON. Texts are the
sample's again and again, with other names and days; the encoder is MiniLM's table of words without its layers, since
the layers take 25 ms a turn on two cores, at 10⁶ turns seven hours that grow as the turns do and say nothing about
memlab. Filling a store, searching it and comparing everything are a process each, so that the memory of one is not
that of another. `--talk FILE …` puts the conversations of files into one scope instead, read by MiniLM as it is and
ranked by the model that comes with memlab.
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
from repeated import repeated

import memlab
from memlab.embed.base import EncoderIdentity
from memlab.embed.tokens import TokenVectors
from memlab.retrieve import counting, narrow

PART, COPIES = 100_000, 100  # turns of a part, and more copies of the sample than it has
MODEL = "model.safetensors"
PIPELINES = ("combsum", "best", "best | learned")
TALK: list[str] = []
"""The files of `--talk`."""


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
        self.identity = EncoderIdentity("transformer", "minilm-words", dim=self.dim)  # read, not looked up

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


def reader() -> Any:
    return memlab.embed.load("minilm") if TALK else WordTable()


def parts(work: Path, turns: int) -> Iterator[memlab.Dataset]:
    """Write one long log in parts that follow each other in time, made once; or read the files of `--talk`."""
    later, n = timedelta(0), 0
    for i, file in enumerate(TALK):
        made = memlab.datasets.load(file)
        sessions = made.sessions.sort("scope", "n").unique("session_id", keep="first", maintain_order=True)
        sessions = sessions.with_columns(n=pl.int_range(1, 1 + pl.len(), dtype=sessions["n"].dtype))
        turns_of = made.turns.join(sessions, on=["scope", "session_id"], how="semi", maintain_order="left")
        read = {"turns": turns_of, "sessions": sessions, "questions": made.questions}
        yield _placed(read, i, timedelta(0), n)
        n += sessions.height
    if TALK:
        return
    for seed in range(-(-turns // PART)):
        size = min(PART, turns - seed * PART)
        place = work / f"talk-{seed}-{size}"
        if not place.exists():
            made = repeated(size, first=seed * COPIES, one_scope=True)
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
    return memlab.Dataset("talk", "chatlog", turns=turns, sessions=sessions, questions=questions)


def joined(work: Path, turns: int) -> memlab.Dataset:
    every = list(parts(work, turns))
    return memlab.Dataset(
        "talk", "chatlog",
        **{name: pl.concat(getattr(part, name) for part in every) for name in ("turns", "sessions", "questions")},
    )  # fmt: skip


def fill(work: Path, turns: int) -> dict[str, Any]:
    """Fill a store of one size, and train the model that ``learned`` takes, once for all sizes."""
    from memlab.rerank import train, training_lists
    from memlab.store import MemoryStore

    encoder, row = reader(), dict[str, Any]()
    if not TALK and not (work / MODEL).exists():
        small = memlab.sample()
        train(training_lists(memlab.Bench.of(small, encoder=encoder, progress=False), small)).save(work / MODEL)
    for _ in parts(work, turns):
        pass  # made before the clock runs
    place = work / f"store-{turns}"
    store = MemoryStore.open(place)

    def step(name: str, do: Any) -> None:
        start = time.perf_counter()
        do()
        row[f"{name} s"] = round(time.perf_counter() - start, 1)

    step("ingest", lambda: store.ingest(joined(work, turns)))
    step("vectors", lambda: store.vectors.backfill(encoder, "talk", progress=False))
    step("index", lambda: store.search.create_indexes(encoder))
    step("words and tokens", lambda: counting.fill(store, "talk", encoder, progress=False))
    disk = sum(f.stat().st_size for f in place.rglob("*") if f.is_file())
    return row | {"disk GB": round(disk / 1e9, 2), "peak GB filling": _peak()}


def asked(work: Path, turns: int, questions: int) -> pl.DataFrame:
    every = pl.concat(part.questions for part in parts(work, turns)).sample(questions, seed=0, shuffle=True)
    return every.select("query_id", "scope", "text", "timestamp")


def evidence_of(work: Path, turns: int) -> pl.DataFrame:
    every = pl.concat(part.questions.select("query_id", doc_id="evidence") for part in parts(work, turns))
    return every.explode("doc_id").drop_nulls()


def search(work: Path, turns: int, questions: int) -> dict[str, Any]:
    """Ask each question once, of what is cut out around it."""
    from memlab.store import MemoryStore, cached

    store, row = MemoryStore.open(work / f"store-{turns}"), dict[str, Any]()
    encoder, wanted = cached(store, reader()), asked(work, turns, questions)
    runs = []
    other = wanted[0].with_columns(text=pl.lit("What did I buy, and when?"))
    for text, pipeline in pipelines(work):
        times, start = [], time.perf_counter()
        pipeline.run(narrow.around(store, "talk", other, encoder=encoder))  # opens tables, imports, reads the sample
        row[f"{text} first question s"] = round(time.perf_counter() - start, 1)
        for i in range(questions):
            start = time.perf_counter()
            bench = narrow.around(store, "talk", wanted[i], encoder=encoder)
            runs.append(pipeline.run(bench).top(10).frame.with_columns(pipeline=pl.lit(text)))
            times.append(1000 * (time.perf_counter() - start))
        row[f"{text} p50 ms"], row[f"{text} p99 ms"] = (round(float(np.percentile(times, p))) for p in (50, 99))
    pl.concat(runs).write_parquet(work / f"found-{turns}.parquet")
    return row | {"questions": questions, "peak GB searching": _peak()}


def compare(work: Path, turns: int, questions: int, n: int) -> dict[str, Any]:
    """Compare some questions with everything, and the first ten with those of what was cut out."""
    from memlab.store import MemoryStore

    narrow.LARGE, store = 10**9, MemoryStore.open(work / f"store-{turns}")
    bench = memlab.Bench.of(joined(work, turns), encoder=reader(), store=store, ingest=False, progress=False)
    row = dict[str, Any]()
    found, evidence = work / f"found-{turns}.parquet", evidence_of(work, turns)
    bench = bench.with_queries(asked(work, turns, questions)[:n])
    cut = pl.read_parquet(found) if found.exists() else None
    for text, pipeline in pipelines(work):
        start = time.perf_counter()
        frame = pipeline.run(bench).top(10).frame
        row[f"{text} all compared, ms a question"] = round(1000 * (time.perf_counter() - start) / n)
        if cut is not None:
            same = frame.join(cut.filter(pipeline=text), on=["query_id", "doc_id"], how="semi").height
            row[f"{text} recall@10 of all compared"] = round(same / frame.height, 3)
            asked_for = evidence.join(frame, on="query_id", how="semi")
            for name, ranked in (("all compared", frame), ("cut out", cut.filter(pipeline=text))):
                held = asked_for.join(ranked, on=["query_id", "doc_id"], how="semi").height
                row[f"{text} evidence in the first ten, {name}"] = round(held / asked_for.height, 3)
    return row | {"questions compared": n, "peak GB comparing": _peak()}


def pipelines(work: Path) -> Iterator[tuple[str, memlab.Pipeline]]:
    for text in PIPELINES:
        model = "learned" if TALK else f"learned(model={str(work / MODEL)!r})"
        yield text, memlab.pipeline(text.replace("learned", model))


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("work", type=Path, help="folder for logs and stores")
    options.add_argument("--turns", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options.add_argument("--questions", type=int, default=40, help="for the times of search")
    options.add_argument("--exact", type=int, default=15, help="of them, compared with everything; 0 for none")
    options.add_argument("--large", type=int, default=narrow.LARGE, help="turns from which a memory is cut out")
    options.add_argument("--talk", nargs="+", default=[], metavar="FILE", help="conversations to put into one scope")
    options.add_argument("--step", choices=("fill", "search", "compare"), help="one step of one size alone")
    chosen = options.parse_args()
    narrow.LARGE = chosen.large
    TALK.extend(chosen.talk)
    if TALK:
        chosen.turns = [sum(part.turns.height for part in parts(chosen.work, 0))]
    work, rows = chosen.work, []
    for turns in chosen.turns:
        row = work / f"row-{turns}.json"
        steps = {
            "fill": lambda turns=turns: fill(work, turns),
            "search": lambda turns=turns: search(work, turns, chosen.questions) if turns >= narrow.LARGE else {},
            "compare": lambda turns=turns: compare(work, turns, chosen.questions, chosen.exact) if chosen.exact else {},
        }
        if chosen.step:
            before = json.loads(row.read_text()) if row.exists() else {"turns": turns}
            row.write_text(json.dumps(before | steps[chosen.step]()))
            continue
        for step in steps:
            same = ["--questions", str(chosen.questions), "--exact", str(chosen.exact), "--large", str(chosen.large)]
            same += ["--talk", *TALK] if TALK else []
            command = [sys.executable, __file__, str(work), "--turns", str(turns), *same, "--step", step]
            subprocess.run(command, check=True)
        rows.append(json.loads(row.read_text()))
    if chosen.step:
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print("| | " + " | ".join(f"{row['turns']:,}" for row in rows) + " |\n|:--|" + "--:|" * len(rows))
    for name in names[1:]:
        print(f"| {name} | " + " | ".join(str(row.get(name, "")) for row in rows) + " |")
    (work / "scale.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
