"""How memlab grows: ingest, store, memory, search and its agreement with exact search, for one scope of each size.

`python scripts/scale.py WORK --turns 10000 100000` prints one table. The conversations are those of
`data/train` and `data/heldout`, again and again with other words: each copy swaps its rarer words
for others that are as frequent, so that every copy speaks of something else. The encoder is
MiniLM's table of words without its layers, which take 25 ms a turn on two cores, seven hours at 10⁶
turns, and say nothing about memlab. `--talk FILE …` puts the conversations of files into one scope
instead, as they are, read by MiniLM. Filling a store, searching and comparing everything are a
process each, so that the memory of one is not that of another.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.numpy import load_file
from tokenizers import Tokenizer

import memlab
from memlab.embed.model_files import installed_minilm_folder
from memlab.embed.token_vectors import TokenVectors
from memlab.retrieve import large_scope_candidates

DATA = Path(__file__).parents[1] / "data"
PIPELINES = ("combsum", "best", "best | learned")
TABLES = ("turns", "sessions", "questions")
WORD = re.compile(r"[A-Za-z]{4,}")
BAND = 200
"""Words of about one frequency that take each other's places."""


class WordTable:
    """MiniLM's vectors of words alone: a text is their mean, a token in context leans to its text."""

    def __init__(self) -> None:
        path = installed_minilm_folder() or Path()
        weights = load_file(path / "model.safetensors")
        table = next(
            array for name, array in weights.items() if name.endswith("word_embeddings.weight")
        )
        table = table.astype(np.float32) - table.mean(0)
        self.table = table / np.linalg.norm(table, axis=1, keepdims=True)
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)
        self.dim = table.shape[1]
        self.identity = memlab.embed.load(
            "minilm"
        ).identity  # else the bundled reranker would refuse its vectors

    def encode(self, texts: Any, *, kind: str = "document", progress: bool = True) -> np.ndarray:
        listed = list(texts)
        chunks = (listed[start : start + 10_000] for start in range(0, len(listed), 10_000))
        return np.concatenate(
            [np.zeros((0, self.dim), np.float32), *(self._means(self._ids(c)) for c in chunks)]
        )

    def encode_tokens(
        self, texts: Any, *, before: Any = None, kind: str = "document", progress: bool = True
    ) -> TokenVectors:
        ids = self._ids(list(texts))
        own = np.repeat(np.arange(len(ids)), [len(row) for row in ids])
        flat = np.array([i for row in ids for i in row], np.int32)
        vectors = self.table[flat] + 0.5 * self._means(ids)[own]
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return TokenVectors(
            flat, vectors.astype(np.float16), np.r_[0, np.cumsum([len(row) for row in ids])]
        )

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return [one.ids for one in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def _means(self, ids: list[list[int]]) -> np.ndarray:
        means = np.array(
            [self.table[row].mean(0) if row else np.ones(self.dim) for row in ids], np.float32
        )
        means = means.reshape(len(ids), self.dim)
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)


def pooled(files: list[str]) -> dict[str, pl.DataFrame]:
    """Put the conversations of files into one scope, one after the other."""
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    for number, file in enumerate(files):
        data = memlab.datasets.load(file)
        for name in TABLES:
            ids = [
                c for c in ("turn_id", "session_id", "query_id") if c in getattr(data, name).columns
            ]
            frame = getattr(data, name).with_columns(
                pl.format("{}/{}", pl.lit(number), c).alias(c) for c in ids
            )
            if name == "questions":
                cited = pl.format("{}/{}", pl.lit(number), pl.element())
                frame = frame.with_columns(pl.col("evidence", "evidence_sessions").list.eval(cited))
            rows[name].append(frame.with_columns(scope=pl.lit("everything")))
    whole = {name: pl.concat(parts) for name, parts in rows.items()}
    sessions = whole["sessions"].unique("session_id", keep="first", maintain_order=True)
    whole["turns"] = whole["turns"].join(
        sessions, on="session_id", how="semi", maintain_order="left"
    )
    whole["sessions"] = sessions.with_columns(
        n=pl.int_range(1, 1 + pl.len(), dtype=sessions["n"].dtype)
    )
    return whole


def conversation(turns: int, talk: list[str]) -> memlab.Dataset:
    """Give one long scope: the files of ``talk`` as they are, or so many turns, a copy of the project's talk each."""
    base = pooled(
        talk or sorted(map(str, [*DATA.glob("train/*.jsonl"), *DATA.glob("heldout/*.jsonl")]))
    )
    if talk:
        return memlab.Dataset("talk", "chatlog", **base)
    counts = Counter(
        w for text in base["turns"]["text"] for w in {w.lower() for w in WORD.findall(text)}
    )
    rare = [word for word, n in counts.most_common() if n <= base["turns"].height / 100]
    copies = []
    for copy in range(-(-turns // base["turns"].height)):
        rng, swapped = np.random.default_rng(copy), dict(zip(rare, rare, strict=True))
        for start in range(0, len(rare) if copy else 0, BAND):
            band = rare[start : start + BAND]
            swapped |= dict(zip(band, rng.permutation(band).tolist(), strict=True))

        def other(word: re.Match[str], swapped: dict[str, str] = swapped) -> str:
            new = swapped.get(word[0].lower(), word[0])
            return new.capitalize() if word[0][0].isupper() else new

        copies.append(
            _placed(base, copy, partial(WORD.sub, other), turns - copy * base["turns"].height)
        )
    return memlab.Dataset("talk", "chatlog", *map(pl.concat, zip(*copies, strict=True)))


def _placed(
    base: dict[str, pl.DataFrame], copy: int, other: Callable[[str], str], most: int
) -> list[pl.DataFrame]:
    """Give a copy that follows those before it in time, with ids of its own and other words."""
    ids = {c: pl.format("{}-{}", pl.lit(copy), c) for c in ("turn_id", "session_id", "query_id")}
    moved = pl.col(pl.Datetime("us", "UTC")) + timedelta(days=4000 * copy)
    texts = pl.col("text").map_elements(other, return_dtype=pl.String)
    turns = (
        base["turns"]
        .head(most)
        .with_columns(texts, moved, turn_id=ids["turn_id"], session_id=ids["session_id"])
    )
    n = pl.col("n") + copy * base["sessions"].height
    sessions = base["sessions"].with_columns(moved, session_id=ids["session_id"], n=n)
    sessions = sessions.drop("n_turns").join(
        turns.group_by("session_id").agg(n_turns=pl.len()), on="session_id"
    )
    cited = pl.col("evidence", "evidence_sessions").list.eval(
        pl.format("{}-{}", pl.lit(copy), pl.element())
    )
    asked = base["questions"].with_columns(texts, moved, cited, query_id=ids["query_id"])
    there = pl.col("evidence").list.eval(pl.element().is_in(turns["turn_id"].implode())).list.all()
    sessions = sessions.select(base["sessions"].columns).cast(dict(base["sessions"].schema))
    return [turns, sessions, asked.filter(there)]


class Size:
    """One size: its folder, how many turns, and what is asked."""

    def __init__(self, chosen: argparse.Namespace, turns: int) -> None:
        self.work, self.turns, self.talk, self.chosen = chosen.work, turns, chosen.talk, chosen
        self.place = chosen.work / f"store-{turns}"
        self.encoder = memlab.embed.load("minilm") if chosen.talk else WordTable()
        self.pipelines = {text: memlab.pipeline(text) for text in PIPELINES}

    def fill(self) -> dict[str, Any]:
        """Fill a store, and note what each step costs."""
        row, store, data = (
            dict[str, Any](),
            memlab.MemoryStore.open(self.place),
            conversation(self.turns, self.talk),
        )
        data.questions.write_parquet(self.work / f"asked-{self.turns}.parquet")
        steps: dict[str, Callable[[], Any]] = {
            "ingest": lambda: store.ingest(data),
            "vectors": lambda: store.vectors.backfill(self.encoder, "talk", progress=False),
            "indexes": lambda: store.search.create_indexes(self.encoder),
            "tokens": lambda: large_scope_candidates.encode_large_scopes_and_count_turns(
                store, "talk", self.encoder, progress=False
            ),
        }
        for name, do in steps.items():
            start = time.process_time()
            do()
            row[f"{name}, s of the processor"] = round(time.process_time() - start, 1)
        return row | {"store, GB": round((store.size() or 0) / 1e9, 2), "peak filling, GB": _peak()}

    def asked(self) -> pl.DataFrame:
        every = pl.read_parquet(self.work / f"asked-{self.turns}.parquet").filter(
            pl.col("evidence").list.len() > 0
        )
        return every.sample(self.chosen.questions, seed=0, shuffle=True)

    def search(self) -> dict[str, Any]:
        """Ask each question once, of its candidates."""
        store, row, runs, wanted = (
            memlab.MemoryStore.open(self.place),
            dict[str, Any](),
            [],
            self.asked(),
        )
        for text, pipeline in self.pipelines.items():
            clocks = []
            for i in (
                0,
                *range(wanted.height),
            ):  # the first one also opens tables and imports, and is not counted
                start = np.array([time.perf_counter(), time.process_time()])
                bench = large_scope_candidates.read_candidate_bench(
                    store, "talk", wanted[i], encoder=self.encoder
                )
                run = pipeline.run(bench).top(10)
                clocks.append(1000 * (np.array([time.perf_counter(), time.process_time()]) - start))
                runs.append(run.frame.with_columns(pipeline=pl.lit(text)))
            for name, times in zip(("clock", "processor"), np.transpose(clocks[1:]), strict=True):
                spread = " / ".join(f"{np.percentile(times, p):.0f}" for p in (50, 99))
                row[f"{text}, median / 99 %, ms of the {name}"] = spread
        pl.concat(runs).unique().write_parquet(self.work / f"found-{self.turns}.parquet")
        return row | {"questions": wanted.height, "peak searching, GB": _peak()}

    def compare(self) -> dict[str, Any]:
        """Compare some questions with everything, and the first ten with those of the candidates."""
        large_scope_candidates.LARGE, store = 10**9, memlab.MemoryStore.open(self.place)
        bench = memlab.Bench.of(
            conversation(self.turns, self.talk), encoder=self.encoder, store=store, ingest=False
        )
        wanted, row = self.asked().head(self.chosen.exact), dict[str, Any]()
        bench = bench.with_queries(wanted.select("query_id", "scope", "text", "timestamp"))
        cited = wanted.select("query_id", doc_id="evidence").explode("doc_id")
        found = pl.read_parquet(self.work / f"found-{self.turns}.parquet")
        for text, pipeline in self.pipelines.items():
            start = time.process_time()
            exact = pipeline.run(bench).top(10).frame
            row[f"{text}, exact, ms of the processor"] = round(
                1000 * (time.process_time() - start) / wanted.height
            )
            some = found.filter(pipeline=text)
            row[f"{text}, top-10 overlap"] = round(_share(exact, some), 3)
            shares = [_share(cited, frame) for frame in (exact, some)]
            row[f"{text}, evidence found, exact / candidates"] = (
                f"{shares[0]:.3f} / {shares[1]:.3f}"
            )
        return row | {"questions compared": wanted.height, "peak comparing, GB": _peak()}


def _share(wanted: pl.DataFrame, found: pl.DataFrame) -> float:
    return wanted.join(found, on=["query_id", "doc_id"], how="semi").height / wanted.height


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("work", type=Path, help="folder for stores and rankings")
    options.add_argument("--turns", type=int, nargs="+", default=[10_000, 100_000])
    options.add_argument("--questions", type=int, default=40, help="asked of the candidates")
    options.add_argument(
        "--exact", type=int, default=20, help="of them, compared with everything; 0 for none"
    )
    options.add_argument(
        "--talk", nargs="+", default=[], metavar="FILE", help="conversations to put into one scope"
    )
    options.add_argument(
        "--step", choices=("fill", "search", "compare"), help="one step of one size alone"
    )
    chosen = options.parse_args()
    chosen.work.mkdir(exist_ok=True, parents=True)
    large_scope_candidates.LARGE = 1
    if chosen.talk:
        chosen.turns = [conversation(0, chosen.talk).turns.height]
    rows = []
    for turns in chosen.turns:
        place = chosen.work / f"row-{turns}.json"
        if chosen.step:
            before = json.loads(place.read_text()) if place.exists() else {"turns": turns}
            place.write_text(json.dumps(before | getattr(Size(chosen, turns), chosen.step)()))
            continue
        for step in ("fill", "search", *(("compare",) if chosen.exact else ())):
            same = [
                "--turns",
                str(turns),
                "--questions",
                str(chosen.questions),
                "--exact",
                str(chosen.exact),
            ]
            same += ["--talk", *chosen.talk] if chosen.talk else []
            subprocess.run(
                [sys.executable, __file__, str(chosen.work), *same, "--step", step], check=True
            )
        rows.append(json.loads(place.read_text()))
    if rows:
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        print(
            "| | "
            + " | ".join(f"{row.pop('turns'):,} turns" for row in rows)
            + " |\n|:--|"
            + "--:|" * len(rows)
        )
        for name in rows[0]:
            print(f"| {name} | " + " | ".join(str(row.get(name, "")) for row in rows) + " |")


if __name__ == "__main__":
    main()
