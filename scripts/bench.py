"""How fast memlab is beside what one would pick instead: `python scripts/bench.py [DATASET] [--only WORD …]`.

Both sides of a row take turns in one process, so that a busy machine slows both; times are medians. One table is
printed and written as JSON. Vectors are kept in a store, since only the first rows are about encoding.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
from one_question import PIPELINES, measured
from repeated import repeated

import memlab
from memlab.embed.base import EncoderIdentity

SAMPLE = Path("data/sample/sample.jsonl")
ENCODERS = ("minilm", "minilm:bf16")
LARGE, DIM = 100_000, 384
PACKAGES = ("numpy", "polars", "torch", "transformers", "sentence-transformers", "lancedb", "bm25s",
            "ir_measures", "scikit-learn", "umap-learn")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds of both sides, and what was to be reached.

    :param bound: the least ``theirs / ours``; of rows without another side, or with ``added``, the most seconds.
    """

    work: str
    against: str
    n: str
    ours: float
    theirs: float | None
    bound: float
    added: bool = False
    note: str = ""

    @property
    def reached(self) -> bool:
        if self.theirs is None or self.added:
            return self.ours - (self.theirs or 0.0) <= self.bound
        return self.theirs / self.ours >= self.bound

    def cells(self) -> list[str]:
        """Write the row: a factor where a side is compared, seconds where they are what counts."""
        if self.theirs is None:
            result, bound = _seconds(self.ours), f"≤ {_seconds(self.bound)}"
        elif self.added:
            result, bound = f"+ {_seconds(self.ours - self.theirs)}", f"≤ + {_seconds(self.bound)}"
        else:
            result, bound = f"{self.theirs / self.ours:.2f} ×", f"≥ {self.bound:.2g} ×"
        theirs = "" if self.theirs is None else _seconds(self.theirs)
        mark = "yes" if self.reached else "**no**"
        return [self.work, self.against, self.n, _seconds(self.ours), theirs, result, bound, mark, self.note]


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.1f} ms"


@dataclass(frozen=True)
class Place:
    """What the rows work on: conversations, a store that keeps their vectors, and a folder to throw away."""

    data: memlab.Dataset
    store: memlab.MemoryStore
    work: Path

    def bench(self) -> memlab.Bench:
        return memlab.Bench.of(self.data, store=self.store)


def turns_about(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Time two ways in turn; the first time of each, which loads and compiles, does not count."""
    spent: tuple[list[float], list[float]] = ([], [])
    for repeat in range(repeats + 1):
        for times, way in zip(spent, (ours, theirs), strict=True):
            start = time.perf_counter()
            way()
            if repeat:
                times.append(time.perf_counter() - start)
    return float(np.median(spent[0])), float(np.median(spent[1]))


def encode(at: Place) -> Iterator[Row]:
    from sentence_transformers import SentenceTransformer

    theirs, texts = _minilm(SentenceTransformer), _spread(at.data.turns["text"].to_list(), 256)
    made = theirs.encode(texts, show_progress_bar=False, normalize_embeddings=True)
    for name in ENCODERS:
        encode = partial(memlab.embed.load(name).encode, texts, progress=False)
        cosine = float((encode() * made).sum(1).min())
        times = turns_about(encode, lambda: theirs.encode(texts, show_progress_bar=False), 3)
        yield Row(
            f"encode turns, `{name}`", "sentence-transformers", f"{len(texts)} turns", *times, 2.0,
            note=f"least cosine {cosine:.5f}",
        )  # fmt: skip


def tokens(at: Place) -> Iterator[Row]:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from memlab.embed.models import minilm_path

    path = str(minilm_path())
    model, tokenizer = AutoModel.from_pretrained(path).eval(), AutoTokenizer.from_pretrained(path)
    every = at.data.turns["text"].to_list()
    pairs = _spread(list(zip(["", *every[:-1]], every, strict=True)), 128)
    before, texts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def theirs() -> None:
        for start in range(0, len(texts), 32):
            some = slice(start, start + 32)
            read = tokenizer(
                before[some], texts[some], padding=True, truncation=True, max_length=256, return_tensors="pt"
            )
            with torch.inference_mode():
                model(**read).last_hidden_state.numpy()

    for name in ENCODERS:
        read = partial(memlab.embed.load(name).encode_tokens, texts, before=before, progress=False)
        work, against = f"tokens in context, for `late`, `{name}`", "transformers, batches of 32"
        yield Row(work, against, f"{len(texts)} turns", *turns_about(read, theirs, 3), 2.0)


def question(at: Place) -> Iterator[Row]:
    for name, bound, times in zip(PIPELINES, (15, 25, 30, 80), measured(at.data, at.store), strict=True):
        median = float(np.median(times[1:] or times)) / 1000
        yield Row(f"one question, encoded, `{name}`", "", f"{len(times) - 1} questions", median, None, bound / 1000)


def questions(at: Place) -> Iterator[Row]:
    import bm25s

    from memlab.retrieve import bm25, dense, hybrid
    from memlab.text.analysis import tokenize

    bench, depth = at.bench(), 200
    vectors = bench.turn_vectors[bench.documents("turn").at(bench.turns["turn_id"])]
    asked = bench.query_vectors

    def ours() -> None:
        fresh = replace(bench, vectors=vectors)
        vars(fresh)["query_vectors"] = asked
        for rank in (dense, bm25, hybrid):
            rank(fresh, k=depth)

    def theirs() -> list[list[list[str]]]:
        ranked: list[list[list[str]]] = [[], [], []]
        for (scope,), turns in bench.turns.with_row_index("row").group_by("scope", maintain_order=True):
            mine = np.flatnonzero((bench.queries["scope"] == scope).to_numpy())
            ids, k = turns["turn_id"].to_list(), min(depth, turns.height)
            index = bm25s.BM25()
            index.index(tokenize(turns["text"].to_list()), show_progress=False)
            near = asked[mine] @ vectors[turns["row"].to_numpy()].T
            words = tokenize(bench.queries["text"].gather(mine).to_list())
            for row, query in zip(near, words, strict=True):
                both = row, index.get_scores(query) if query else np.zeros(len(ids), np.float32)
                orders = [np.argsort(-scores, kind="stable")[:k] for scores in both]
                fused: dict[str, float] = {}
                for place, order in enumerate(orders):
                    names = [ids[i] for i in order]
                    ranked[place].append(names)
                    for rank, name in enumerate(names, start=1):
                        fused[name] = fused.get(name, 0.0) + 1 / (60 + rank)
                ranked[2].append(sorted(fused, key=lambda name: -fused[name])[:k])
        return ranked

    times = turns_about(ours, theirs, 3)
    n = f"{bench.queries.height:,} questions"
    yield Row("all questions, encoded: dense, BM25, hybrid", "numpy product, bm25s, by hand", n, *times, 1 / 1.5)


def measures(at: Place) -> Iterator[Row]:
    import ir_measures

    from memlab.evaluate import compare
    from memlab.evaluate import evaluate as report
    from memlab.records import qrels, run_from_scores

    n, systems, depth = 1_000, 10, 100
    data = repeated(10_000)
    asked = data.questions.filter(pl.col("evidence").list.len() > 0)
    asked = asked.sample(n, seed=0, with_replacement=True).with_columns(
        query_id=pl.format("{}/{}", "query_id", pl.int_range(pl.len()))
    )
    data = replace(data, questions=asked)
    within = dict(data.turns.group_by("scope").agg("turn_id").iter_rows())
    rng = np.random.default_rng(0)
    runs = []
    for system in range(systems):
        drawn = [rng.choice(within[scope], depth, replace=False) for scope in asked["scope"]]
        ids = np.repeat(asked["query_id"].to_numpy(), depth), np.concatenate(drawn)
        made = run_from_scores(*ids, rng.random(n * depth), level="turn", k=depth)
        runs.append(replace(made, name=f"system {system}"))
    wanted = ["recall@10", "recall_any@10", "ndcg@10", "mrr"]
    their = [ir_measures.parse_measure(text) for text in ("R@10", "Success@10", "nDCG@10", "RR")]
    truth = qrels(data.questions, "turn", data.turns)
    relevant = {q: dict.fromkeys(rows["doc_id"].to_list(), 1) for (q,), rows in truth.frame.group_by("query_id")}
    ranked = [
        {q: dict(zip(docs, scores, strict=True)) for q, docs, scores in
         run.frame.group_by("query_id").agg("doc_id", "score").iter_rows()}
        for run in runs
    ]  # fmt: skip

    def ours() -> None:
        for run in runs:
            report(run, data, measures=wanted).summary()

    def theirs() -> None:
        rng = np.random.default_rng(0)
        for run in ranked:
            values = {str(measure): np.zeros(n) for measure in their}
            place = {query: row for row, query in enumerate(relevant)}
            for metric in ir_measures.iter_calc(their, relevant, run):
                values[str(metric.measure)][place[metric.query_id]] = metric.value
            for each in values.values():
                means = each[rng.integers(0, n, (2_000, n))].mean(axis=1)
                np.quantile(means, [0.025, 0.975])

    size = f"{n:,} queries × {systems}"
    yield Row("measures and bootstrap", "ir_measures, numpy", size, *turns_about(ours, theirs, 3), 1.0)

    def everything() -> None:
        reports = [report(run, data) for run in runs]
        for each in reports:
            for by in ("all", "question_type", "evidence_sessions", "form"):
                each.summary(by)
        compare(reports, measure="recall_all@10")

    start = time.perf_counter()
    everything()
    yield Row("all reports, in all groups, compared", "", size, time.perf_counter() - start, None, 10.0)


def store(at: Place) -> Iterator[Row]:
    """Write 100,000 turns with vectors, three times each way, and ask what the last made."""
    import lancedb

    data, encoder = _talk(LARGE), RandomEncoder()
    vectors = encoder.rows
    places = iter(range(100))

    def ours() -> memlab.MemoryStore:
        made = memlab.MemoryStore.open(str(at.work / f"ours-{next(places)}"))
        made.ingest(data)
        made.vectors.backfill(encoder, data.name, progress=False)
        return made

    def theirs() -> None:
        import pyarrow as pa

        table = data.turns.to_arrow()
        flat = pa.array(vectors.ravel())
        table = table.append_column("vector", pa.FixedSizeListArray.from_arrays(flat, DIM))
        lancedb.connect(at.work / f"theirs-{next(places)}").create_table("turns", schema=table.schema).add(table)

    times = turns_about(ours, theirs, 2)
    note = "ours also notes texts, keys, and keeps vectors in a cache"
    yield Row("ingest with vectors", "bare LanceDB add", f"{LARGE:,} turns", *times, 0.8, note=note)
    made = ours()
    made.search.create_indexes(encoder)
    table, column = made.table("turns"), made.vectors.column(encoder)
    spent: tuple[list[float], list[float]] = ([], [])
    for query in _random_rows(101):
        start = time.perf_counter()
        made.search.by_vector(query[None], column=column, dataset=data.name, scopes=["everything"], k=10)
        spent[0].append(time.perf_counter() - start)
        start = time.perf_counter()
        bare = table.search(query, vector_column_name=column).distance_type("cosine").where("scope = 'everything'")
        bare.limit(10).select(["turn_id", "_distance"]).to_arrow()
        spent[1].append(time.perf_counter() - start)
    mine, bare_time = (float(np.median(times[1:])) for times in spent)
    work = "one indexed query, p50"
    yield Row(work, "the bare LanceDB call", f"100 queries, {LARGE:,} turns", mine, bare_time, 1 / 1.3)


def tree(at: Place) -> Iterator[Row]:
    """Grow the tree of one scope; the port chooses groups as the paper does, the rest of the tree is the same."""
    from one_question import largest

    from memlab.summaries import grow

    data = largest(at.data)
    bench = memlab.Bench.of(data, store=at.store, ingest=False)
    vectors, encoder = bench.turn_vectors[bench.documents("turn").at(data.turns["turn_id"])], "hashing:384"
    if vectors is None:
        return

    def ours() -> None:
        grow(data.turns, encoder=encoder, vectors=vectors)

    def theirs() -> None:
        with patch("memlab.summaries.raptor.mixture_memberships", _published):
            ours()

    grow(data.turns.head(60), encoder=encoder, vectors=vectors[:60])  # compiles
    times = []
    for way in (ours, theirs):
        start = time.perf_counter()
        way()
        times.append(time.perf_counter() - start)
    size = f"{data.turns.height:,} turns, one scope, once"
    yield Row("tree of turns", "RAPTOR's grouping, ported", size, *times, 5.0, note="both with our summaries")


def _published(rows: np.ndarray, *, reduce: str = "umap", seed: int = 0) -> Any:
    """Group as Sarthi et al. 2024 publish it: UMAP, then mixtures of every size up to 50, twice over."""
    from scipy.sparse import csr_array
    from sklearn.mixture import GaussianMixture
    from umap import UMAP

    def groups(some: np.ndarray, neighbors: int) -> list[np.ndarray]:
        if len(some) <= 11:
            return [np.arange(len(some))]
        points = UMAP(n_neighbors=neighbors, n_components=10, metric="cosine", random_state=seed, n_jobs=1)
        points = points.fit_transform(some)
        sizes = range(1, min(50, len(some)))
        bic = [GaussianMixture(size, random_state=seed).fit(points).bic(points) for size in sizes]
        best = GaussianMixture(sizes[int(np.argmin(bic))], random_state=seed).fit(points)
        return [np.flatnonzero(column > 0.1) for column in best.predict_proba(points).T]

    chosen = []
    for members in groups(rows, int((len(rows) - 1) ** 0.5)):
        chosen += [members[inner] for inner in groups(rows[members], 10) if len(inner)]
    row, column = np.concatenate(chosen), np.repeat(np.arange(len(chosen)), [len(each) for each in chosen])
    return csr_array((np.ones(len(row)), (row, column)), shape=(len(rows), len(chosen)))


def start(at: Place) -> Iterator[Row]:
    folder, data = at.work / "cold", memlab.sample(["owen"], turns=200)
    memlab.MemoryStore.open(str(folder)).ingest(data)
    run = [str(Path(sys.executable).parent / "memlab")]
    search = [*run, "search", data.questions["text"][0], "--store", str(folder)]
    _process(search)  # embeds the memory
    for name, command, bound in (("--help", [*run, "--help"], 0.3), ("search", search, 2.5)):
        times = turns_about(lambda c=command: _process(c), lambda: _process([sys.executable, "-c", "pass"]), 5)
        yield Row(f"`memlab {name}`, cold", "an empty interpreter", "5 starts", *times, bound, added=True)


def _process(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


class RandomEncoder:
    """Vectors at no cost, so that only the store is measured."""

    identity = EncoderIdentity("random", "random", "1", "none", "", "", None, True, DIM)
    dim = DIM

    def __init__(self) -> None:
        self.rows, self.at = _random_rows(LARGE), 0

    def encode(self, texts: Any, *, kind: str = "document", progress: bool = True) -> np.ndarray:
        start = self.at if self.at + len(texts) <= LARGE else 0
        self.at = start + len(texts)
        return self.rows[start : self.at]


def _random_rows(n: int) -> np.ndarray:
    vectors = np.random.default_rng(n).standard_normal((n, DIM), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _talk(n: int) -> memlab.Dataset:
    """Make one scope of turns of fifteen random words, twenty a session."""
    from memlab.records import Session, Turn, schema

    words = np.array([f"word{i}" for i in range(4000)])
    text = pl.DataFrame(np.random.default_rng(0).choice(words, (n, 15))).select(pl.concat_str(pl.all(), separator=" "))
    turns = pl.DataFrame({"n": np.arange(n) % 20 + 1, "s": np.arange(n) // 20, "text": text.to_series()})
    session = pl.format("everything/session_{}", "s")
    types = schema(Turn)
    turns = turns.with_columns(
        turn_id=pl.format("{}/{}", session, "n"), session_id=session, scope=pl.lit("everything"),
        speaker=pl.lit("user"), role=pl.lit("user"), caption=pl.lit(None),
        timestamp=pl.lit(datetime(2024, 1, 1, tzinfo=UTC)),
    )  # fmt: skip
    turns = turns.select(*types).cast(types)
    sessions = turns.group_by("session_id", maintain_order=True).agg(
        pl.col("scope").first(), start=pl.col("timestamp").first(), end=pl.col("timestamp").last(), n_turns=pl.len(),
        participants=pl.col("speaker").unique(), status=pl.lit("closed"), summary=pl.lit(None),
    )  # fmt: skip
    sessions = sessions.with_columns(n=pl.int_range(1, pl.len() + 1))
    return memlab.Dataset("random", "random", turns, sessions.select(*schema(Session)).cast(schema(Session)))


def _minilm(made: Any) -> Any:
    from memlab.embed.models import minilm_path

    return made(str(minilm_path()), device="cpu", local_files_only=True)


def _spread(items: list[Any], n: int) -> list[Any]:
    """Take n of the items, evenly."""
    return [items[i] for i in np.linspace(0, len(items) - 1, min(n, len(items))).astype(int)]


ROWS = (encode, tokens, question, questions, measures, store, tree, start)


def machine() -> dict[str, Any]:
    """Say what the rows ran on."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    load = [round(value, 1) for value in os.getloadavg()]
    of_packages = {name: version(name) for name in PACKAGES}
    return {"cpu": model or platform.processor(), "cores": os.cpu_count(), "python": platform.python_version(),
            "load before": load, "packages": of_packages}  # fmt: skip


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        try:
            yield Path(name)
        finally:
            shutil.rmtree(name, ignore_errors=True)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("dataset", nargs="?", type=Path, default=SAMPLE, help="LoCoMo's file; the sample by default")
    reader.add_argument("--only", nargs="+", choices=[row.__name__ for row in ROWS], help="some of the rows")
    reader.add_argument("--store", default="results/bench/store", help="keeps the vectors from run to run")
    reader.add_argument("--json", type=Path, default=Path("results/bench/bench.json"))
    chosen = reader.parse_args()
    path = chosen.dataset if chosen.dataset.exists() else SAMPLE
    if path != chosen.dataset:
        print(f"{chosen.dataset} is not there: the sample is measured instead, whose figures are not those of LoCoMo")
    about, began = machine(), time.perf_counter()
    rows: list[Row] = []
    failures = {}
    with _folder() as work:
        at = Place(memlab.datasets.load(path), memlab.MemoryStore.open(chosen.store), work)
        for row in ROWS:
            if chosen.only and row.__name__ not in chosen.only:
                continue
            begin = time.perf_counter()
            try:
                rows += row(at)
            except Exception as error:  # one row that fails takes no other with it
                traceback.print_exc()
                failures[row.__name__] = f"{type(error).__name__}: {error}"
            print(f"{row.__name__}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    heads = ("work", "against", "n", "memlab", "the other", "result", "to reach", "reached", "")
    print(f"{path.name}; {about['cpu']}, {about['cores']} cores, Python {about['python']}; load {about['load before']}")
    print(", ".join(f"{name} {number}" for name, number in about["packages"].items()) + "\n")
    for cells in (heads, (":--",) * 3 + ("--:",) * 4 + (":--",) * 2, *(row.cells() for row in rows)):
        print("| " + " | ".join(cells) + " |")
    for name, error in failures.items():
        print(f"\n{name} failed: {error}")
    result = {"dataset": path.name, "machine": about, "seconds": round(time.perf_counter() - began, 1),
              "rows": [asdict(row) | {"reached": row.reached} for row in rows], "failures": failures}  # fmt: skip
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    chosen.json.write_text(json.dumps(result, indent=1, ensure_ascii=False))
    print(f"\n{result['seconds']:.0f} s; also in {chosen.json}")
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
