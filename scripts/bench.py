"""How fast memlab is beside what one would pick instead: `python scripts/bench.py [DATASET] [--only WORD …]`.

`FORMER=PATH` names a checkout of another build of memlab: then what people wait for on a store is
measured beside that, with `QUESTIONS=N` questions.

Both sides of a row take turns in one process, so that a busy machine slows both; times are medians,
and the first call is not counted. Single questions and facts are measured by processor time, as
`memlab.experiments.latency` does, all else by the clock. The table is printed row by row. Vectors
are kept from run to run: only the first rows are of encoding.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from timeit import timeit
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import bm25s
import ir_measures
import lancedb
import numpy as np
import polars as pl
import psutil
import pyarrow as pa
import pyversity
import sklearn.cluster
import torch
from hdbscan import HDBSCAN
from scipy.sparse import csr_array
from sentence_transformers import SentenceTransformer
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits
from umap import UMAP

from memlab import (
    Bench,
    Dataset,
    MemoryStore,
    cluster,
    datasets,
    embed,
    evaluate,
    experiments,
    knowledge,
    records,
    retrieve,
    run,
    search,
    select,
    summaries,
)
from memlab.embed import model_files
from memlab.select.selection_candidates import candidates_by_query
from memlab.text.text_analyser import tokenize

SAMPLE = Path(__file__).parents[1] / "data" / "sample" / "sample.jsonl"
LARGE, DIM = 100_000, 384
SEARCHED_SIZES = (2_600, 20_000)
INGESTED_SIZES = (25_000, 50_000, 100_000)
"""Turns of the stores that two builds are compared on."""
QUESTIONS = int(os.environ.get("QUESTIONS", "42"))
"""That two builds are asked; the first two, which read the store, are not of the warm ones."""
PACKAGES = (
    "numpy",
    "torch",
    "sentence-transformers",
    "lancedb",
    "bm25s",
    "ir_measures",
    "scikit-learn",
    "umap-learn",
    "hdbscan",
)
Rows = Iterator[
    tuple[Any, ...]
]  # work, what it is compared with, n, seconds of memlab, of the other side or None


def medians(
    calls: list[tuple[Any, ...]],
    *ways: Callable[..., Any],
    timer: Callable[[], float] = perf_counter,
) -> list[float]:
    """Time ways in turn, with the arguments of each call; the first, which loads and compiles, is left out."""
    times = [timeit(partial(way, *call), number=1, timer=timer) for call in calls for way in ways]
    return np.median(np.reshape(times, (-1, len(ways)))[1:], axis=0).tolist()


def largest(data: Dataset, store: MemoryStore) -> Bench:
    """Give a bench of the scope with the most turns."""
    scope = data.turns["scope"].value_counts().sort("count", "scope")["scope"][-1]
    return Bench.of(data.take([scope]), store=store)


def encode(data: Dataset, _: MemoryStore) -> Rows:
    """Encode turns as texts, and their tokens in the context of the turn before."""
    other, every = (
        SentenceTransformer(str(model_files.installed_minilm_folder()), device="cpu"),
        data.turns["text"].to_list(),
    )
    model, pairs = (
        other[0].auto_model,
        {"padding": True, "truncation": True, "max_length": 256, "return_tensors": "pt"},
    )
    rows = np.linspace(1, len(every) - 1, min(256, len(every))).astype(int)
    spread, before = [every[i] for i in rows], [every[i - 1] for i in rows[::2]]
    texts = spread[::2]

    def theirs() -> None:
        for start in range(0, len(texts), 32):
            some = slice(start, start + 32)
            with torch.inference_mode():
                model(
                    **other.tokenizer(before[some], texts[some], **pairs)
                ).last_hidden_state.numpy()

    for name in ("minilm", "minilm:bf16"):
        ours = partial(embed.load(name).encode, spread, progress=False)
        times = medians([()] * 4, ours, partial(other.encode, spread, show_progress_bar=False))
        yield f"encode turns, `{name}`", "sentence-transformers", f"{len(spread)} turns", *times
        read = partial(embed.load(name).encode_tokens, texts, before=before, progress=False)
        times = medians([()] * 4, read, theirs)
        yield (
            f"token vectors, `{name}`",
            "transformers, batches of 32",
            f"{len(texts)} turns",
            *times,
        )


def one_thread(data: Dataset, _: MemoryStore) -> Rows:
    """Encode turns with one thread, beside the library at its own batch size and at the best for it; processor time."""
    other = SentenceTransformer(str(model_files.installed_minilm_folder()), device="cpu")
    every = data.turns["text"].unique(maintain_order=True).to_list()
    texts = [every[i] for i in np.linspace(0, len(every) - 1, min(256, len(every))).astype(int)]
    ours = partial(embed.load("minilm").encode, texts, progress=False)
    read = partial(other.encode, texts, show_progress_bar=False)
    sizes = (32, 16, 8)
    ways = [partial(read, batch_size=size) for size in sizes]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    spent, *theirs = medians([()] * 4, ours, *ways, timer=process_time)
    torch.set_num_threads(threads)
    for size, taken in zip(sizes, theirs, strict=True):
        against = f"sentence-transformers, batches of {size}"
        yield "encode turns, `minilm`, one thread", against, f"{len(texts)} turns", spent, taken
    similar = (ours() * read()).sum(axis=1).min()
    assert similar > 0.99999, similar


def selection(data: Dataset, store: MemoryStore) -> Rows:
    """Diversify 200 candidates of each question, 50 taken: beside a library and a loop of numpy; processor time."""
    bench = Bench.of(data, store=store)
    run = retrieve.dense(bench, k=200)
    vectors = bench.documents("turn").speaker_centred()
    candidates = list(candidates_by_query(run, bench))

    def library(strategy: str, diversity: float) -> list[np.ndarray]:
        chosen = []
        for at, relevance in candidates:
            with np.errstate(all="ignore"):
                found = pyversity.diversify(vectors[at], relevance, 50, strategy, diversity)
            chosen.append(found.indices)
        return chosen

    def loop() -> None:
        for at, relevance in candidates:
            own = vectors[at]
            nearest, left = np.full(len(at), -np.inf, np.float32), 0.7 * relevance
            for _ in range(min(50, len(at))):
                best = int((left - 0.3 * np.maximum(nearest, 0)).argmax())
                left[best] = -np.inf
                np.maximum(nearest, own @ own[best], out=nearest)

    ways: dict[str, tuple[Any, float]] = {
        "mmr": (select.mmr, 0.3), "dpp": (select.dpp, 0.2), "msd": (select.msd, 0.05)
    }  # fmt: skip
    n = f"{len(candidates):,} questions"
    with threadpool_limits(1):
        for name, (stage, diversity) in ways.items():
            ours = partial(stage, run, bench)
            theirs = [partial(library, name, diversity)]
            if name == "mmr":
                theirs.append(loop)
            spent, *others = medians([()] * 4, ours, *theirs, timer=process_time)
            for against, taken in zip(("pyversity", "a loop of numpy"), others, strict=False):
                yield f"`{name}` of rankings", against, n, spent, taken


def processes(data: Dataset, _: MemoryStore) -> Rows:
    """Encode and rank in two processes, beside one with one thread: by the clock, and the longest process alone."""
    pipelines = ["bm25", "dense", "hybrid", "best"]
    about = (
        f"{data.turns.height:,} turns, {len(data.scopes)} scopes, {data.questions.height} questions"
    )
    run(pipelines, data.take(data.scopes[:2]), encoder="minilm", jobs=2)  # starts them
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    clock, longest = [], []
    with threadpool_limits(1):
        for jobs in (1, 2):
            before, began = processor_seconds(), perf_counter()
            run(pipelines, data, encoder="minilm", jobs=jobs)
            clock.append(perf_counter() - began)
            spent = {}
            for number, seconds in processor_seconds().items():
                spent[number] = seconds - before.get(number, 0)
            # What this process does, it does before and after the others.
            here = spent.pop(os.getpid())
            longest.append(here + max(spent.values(), default=0))
    torch.set_num_threads(threads)
    yield "`memlab.run`, two processes", "one thread", about, clock[1], clock[0]
    yield "the same, longest process", "one thread", about, longest[1], longest[0]


def processor_seconds() -> dict[int, float]:
    """Give the processor time of this process and of those that work for it, by their numbers."""
    here = psutil.Process()
    spent = {}
    for one in (here, *here.children(recursive=True)):
        times = one.cpu_times()
        spent[one.pid] = times.user + times.system
    return spent


def question(data: Dataset, store: MemoryStore) -> Rows:
    """Ask 40 questions of the largest scope by all pipelines in turn; processor time, their encoding included."""
    pipelines = ["combsum", "late", "best", "best | learned"]
    times = experiments.latency(pipelines, largest(data, store))
    for text, n, *_, single, low, high in times.iter_rows():
        spread = f"{n} questions, quartiles {low:.1f} to {high:.1f} ms"
        yield f"one question, `{text}`", "", spread, single / 1000, None


def warm(_: Dataset, __: MemoryStore) -> Rows:
    """Ask a store 40 questions that were not asked before, of one person's turns of random words."""
    encoder = embed.load("minilm")
    for n in (2_600, 20_000):
        rng = np.random.default_rng(0)
        words = rng.integers(0, 4_000, (n, 15)).astype(str).tolist()
        data = datasets.chatlog.dataset([*person_messages(words)], "warm")
        # Of its own, and kept from run to run as the other one is: to encode it takes minutes.
        store = MemoryStore.open(f"results/bench_{n}")
        store.ingest(data)
        store.vectors.backfill(encoder, data.name)
        table, column = store.table("turns"), store.vectors.column(encoder)

        def ours(question: str, store: MemoryStore = store) -> None:
            search(store, question, encoder="minilm")

        def bare(question: str, table: Any = table, column: str = column) -> None:
            vector = encoder.encode([question], kind="query", progress=False)[0]
            found = table.search(vector, vector_column_name=column).distance_type("cosine")
            found.limit(10).select(["turn_id", "text", "_distance"]).to_arrow()

        asked = rng.integers(0, 4_000, (42, 8)).astype(str).tolist()
        # Two more: the first one reads the store, and the second the vectors that it wrote.
        ours(" ".join(asked.pop()))
        calls = [(" ".join(row),) for row in asked]
        times = medians(calls, ours, bare, timer=process_time)
        yield "`memlab.search`, warm", "bare vector search", f"{n:,} turns", *times


def person_messages(words: list[list[str]]) -> Iterator[dict[str, str]]:
    """Give messages of one person, twenty a session."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    for i, row in enumerate(words):
        when = start + timedelta(minutes=i + 60 * (i // 20))
        said = {"scope": "me", "sender": "user", "role": "user", "id": f"m{i}"}
        yield said | {"timestamp": when.isoformat(), "text": " ".join(row)}


SERVED = """
import json, resource, sys
from time import process_time
names = {}
exec(sys.argv[1], names)
for line in sys.stdin:
    began = process_time()
    result = names["call"](json.loads(line))
    spent = process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([spent, peak, result]), flush=True)
"""
DRAWN = """
import zlib
import numpy as np
from memlab.embed.token_vectors import TokenVectors
try:
    from memlab.embed.transformer_encoder import TransformerEncoder
except ModuleNotFoundError:  # a former build calls it otherwise
    from memlab.embed.transformer import TransformerEncoder

TOKENS = 27
read, read_tokens = TransformerEncoder.encode, TransformerEncoder.encode_tokens
TransformerEncoder.for_storing = lambda self: self  # which would read by torch

def encode(self, texts, *, kind="document", progress=True):
    if kind == "query":
        return read(self, texts, kind=kind, progress=progress)
    seeds = [zlib.crc32(text.encode()) for text in texts]
    vectors = [np.random.default_rng(seed).standard_normal(self.dim) for seed in seeds]
    return np.array([vector / np.linalg.norm(vector) for vector in vectors], np.float32)

def encode_tokens(self, texts, *, before=None, kind="document", progress=True):
    if kind == "query":
        return read_tokens(self, texts, before=before, kind=kind, progress=progress)
    rng = np.random.default_rng(zlib.crc32("".join(texts).encode()))
    n = TOKENS * len(texts)
    codes = rng.integers(0, 256, (n, self.dim // 8), dtype=np.uint8)
    ids = rng.integers(1_000, 30_000, n, dtype=np.int32)
    return TokenVectors(ids, codes, np.arange(0, n + 1, TOKENS))

TransformerEncoder.encode, TransformerEncoder.encode_tokens = encode, encode_tokens
"""
"""Draws the vectors of messages, at no cost; those of questions are read."""
FILLED = """
from memlab import MemoryStore, datasets, embed, search
def call(path):
    store, data = MemoryStore.open({place!r}), datasets.load(path)
    store.ingest(data)
    store.vectors.backfill(embed.load("minilm"), data.name, progress=False)
    for question in ("What did I do in May?", "Who came along?"):
        search(store, question, encoder="minilm")
"""
SEARCHED = """
from memlab import MemoryStore, search
store = MemoryStore.open({place!r})
def call(question):
    return search(store, question, encoder="minilm")["turn_id"].to_list()
"""
INGESTED = """
import contextlib, sys
from memlab.cli import main
def call(path):
    words = ["ingest", path, "--into", "me", "--store", {place!r}, "--encoder", "minilm"]
    sys.argv = ["memlab", *words]
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
        main()
"""


RECALLED = """
import polars as pl
from memlab.knowledge import fact_search
facts = pl.read_parquet({place!r})
def call(question):
    asked = pl.DataFrame({{"scope": ["me"], "text": [question]}})
    return fact_search.search_facts(asked, facts, k=50).to_dicts()
"""
EVALUATED = "import sys; from memlab.cli import main; sys.argv[0] = 'memlab'; main()"


class Build:
    """A process of one build of memlab, which is asked in turn with that of another.

    :param root: of its checkout.
    :param code: what it runs first; it defines ``call``, of one argument.
    """

    def __init__(self, root: Path, code: str) -> None:
        self.root = root
        self.process = subprocess.Popen(
            # Not from where this one was started: that is a checkout too.
            [sys.executable, "-P", "-c", SERVED, code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(root)},
            text=True,
        )

    def ask(self, argument: Any) -> tuple[float, float, Any]:
        """Call it: seconds of processor time, megabytes at most until then, and what it gave."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(argument) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the build at {self.root} failed on {argument!r}")
        seconds, peak, result = json.loads(answer)
        return seconds, peak, result

    def end(self) -> None:
        """Let the process end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def alternate(former: Path, code: str, place: str, calls: list[Any]) -> tuple[np.ndarray, str]:
    """Let this build and a former one answer in turn, each with a copy of a store.

    :param code: for :class:`Build`, with a ``place`` to be filled in; vectors of messages are drawn.
    :returns: (calls, 2) seconds, and what is to be said of memory and results.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as work:
        builds = []
        for name, root in (("ours", Path(__file__).parents[1]), ("former", former.resolve())):
            shutil.copytree(place, f"{work}/{name}")
            builds.append(Build(root, DRAWN + code.format(place=f"{work}/{name}")))
        seconds, waits, same = [], [], 0
        for call in calls:
            answers, waited = [], []
            for build in builds:
                began = perf_counter()
                answers.append(build.ask(call))
                waited.append(perf_counter() - began)
            seconds.append([spent for spent, _, _ in answers])
            waits.append(waited)
            same += answers[0][2] == answers[1][2]
        for build in builds:
            build.end()
    memory = answers[0][1] / answers[1][1]
    ratios = np.array(waits)[2:, 1] / np.array(waits)[2:, 0]
    shares = np.array(seconds)[2:, 1] / np.array(seconds)[2:, 0]
    low, high = np.quantile(shares, (0.25, 0.75))
    said = f"quartiles {low:.2f} to {high:.2f} ×, wall {np.median(ratios):.2f} ×"
    return np.array(seconds), f"{said}, memory {memory:.2f} ×, {same} of {len(calls)} the same"


def former(_: Dataset, __: MemoryStore) -> Rows:
    """Wait on a store, beside a former build: the first question of a process, and warm ones."""
    if "FORMER" not in os.environ:
        return
    other = Path(os.environ["FORMER"])
    for n in SEARCHED_SIZES:
        rng = np.random.default_rng(0)
        words = rng.integers(0, 4_000, (n, 15)).astype(str).tolist()
        asked = rng.integers(0, 4_000, (QUESTIONS, 8)).astype(str).tolist()
        with TemporaryDirectory(ignore_cleanup_errors=True) as work:
            write_lines(Path(work, "messages.jsonl"), person_messages(words))
            first = Build(other, DRAWN + FILLED.format(place=f"{work}/store"))
            first.ask(f"{work}/messages.jsonl")
            first.end()
            calls = [" ".join(row) for row in asked]
            seconds, said = alternate(other, SEARCHED, f"{work}/store", calls)
        yield "first `memlab.search`", "former build", f"{n:,} turns", *seconds[0].tolist()
        # Of the second one vectors are read that the first one wrote.
        warm = np.median(seconds[2:], axis=0).tolist()
        yield "`memlab.search`, warm", "former build", f"{n:,} turns, {said}", *warm


def added(_: Dataset, __: MemoryStore) -> Rows:
    """Add ten messages to a long memory, beside a former build."""
    if "FORMER" not in os.environ:
        return
    other, before = Path(os.environ["FORMER"]), None
    for n in INGESTED_SIZES:
        with TemporaryDirectory(ignore_cleanup_errors=True) as work:
            words = np.random.default_rng(0).integers(0, 4_000, (n + 50, 13)).astype(str)
            messages = [*person_messages(list(map(long_or_short, words.tolist())))]
            paths = []
            for start, end in ((0, n), *((n + 10 * i, n + 10 * i + 10) for i in range(5))):
                paths.append(f"{work}/{start}.jsonl")
                write_lines(Path(paths[-1]), messages[start:end])
            first = Build(other, DRAWN + INGESTED.format(place=f"{work}/store"))
            first.ask(paths[0])
            first.end()
            seconds, said = alternate(other, INGESTED, f"{work}/store", paths[1:])
        # The first one counts what a former build had not counted in this way.
        spent = np.median(seconds[1:], axis=0).tolist()
        if before is not None:
            said += f", exponent {np.log2(spent[0] / before):.2f}"
        before = spent[0]
        yield "ten messages, `ingest --into`", "former build", f"into {n:,}, {said}", *spent


def recall(_: Dataset, __: MemoryStore) -> Rows:
    """Recall of 40,000 facts that all hold, beside a former build; processor time."""
    if "FORMER" not in os.environ:
        return
    slots = pl.format("{} {}", "slot", pl.int_range(pl.len()))
    stated = knowledge.resolve(person_facts(40_000).with_columns(slot=slots)).facts
    scored = knowledge.score(stated, now=datetime(2026, 1, 1, tzinfo=UTC))
    holding = scored.filter(pl.col("status").is_in(["active", "due"])).height
    asked = [f"What is Ann's {slot}?" for slot in stated["slot"][:4]]
    roots = (Path(__file__).parents[1], Path(os.environ["FORMER"]).resolve())
    with TemporaryDirectory() as work:
        scored.write_parquet(f"{work}/facts.parquet")
        code = RECALLED.format(place=f"{work}/facts.parquet")
        builds = [Build(root, code) for root in roots]
        seconds, same = [], 0
        for question in asked:
            answers = [build.ask(question) for build in builds]
            seconds.append([spent for spent, _, _ in answers])
            same += answers[0][2] == answers[1][2]
        for build in builds:
            build.end()
    memory = answers[0][1] / answers[1][1]
    n = f"{holding:,} facts that hold, memory {memory:.2f} ×, {same} of {len(asked)} the same"
    yield "recall of facts, the first of a process", "former build", n, *seconds[0]
    yield "recall of facts", "former build", n, *np.median(seconds[1:], axis=0).tolist()


def saved(_: Dataset, __: MemoryStore) -> Rows:
    """Evaluate the sample again, whose runs are saved, beside a former build; processor time of a process."""
    if "FORMER" not in os.environ:
        return
    roots = (Path(__file__).parents[1], Path(os.environ["FORMER"]).resolve())
    seconds = []
    with TemporaryDirectory() as work:
        # The first one ranks and saves; each build has a store of its own.
        for _round in range(4):
            for number, root in enumerate(roots):
                place = ["--store", f"{work}/{number}", "--out", f"{work}/out{number}"]
                # Modules are compiled once, as where a build is installed.
                compiled = {
                    "PYTHONDONTWRITEBYTECODE": "",
                    "PYTHONPYCACHEPREFIX": f"{work}/compiled",
                }
                verb = ["evaluate", str(SAMPLE), "--encoder", "hashing:384", *place]
                before = children_seconds()
                subprocess.run(
                    [sys.executable, "-P", "-c", EVALUATED, *verb],
                    check=True,
                    capture_output=True,
                    env=os.environ | {"PYTHONPATH": str(root)} | compiled,
                )
                seconds.append(children_seconds() - before)
    spent = np.median(np.reshape(seconds, (-1, 2))[1:], axis=0).tolist()
    n = f"sample, {datasets.load(SAMPLE).questions.height} questions, 3 calls"
    yield "`memlab evaluate`, runs saved", "former build", n, *spent


def children_seconds() -> float:
    """Give the processor time of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def write_lines(path: Path, messages: Iterable[dict[str, str]]) -> None:
    """Write messages as a chat log."""
    path.write_text("\n".join(map(json.dumps, messages)))


def long_or_short(words: list[str]) -> list[str]:
    """Make of some thirteen words a message; every thirtieth has twenty sentences of them."""
    if int(words[0]) % 30:
        return words
    return [f"{word}." if i % 13 == 12 else word for i, word in enumerate(words * 20)]


def facts(_: Dataset, __: MemoryStore) -> Rows:
    """Resolve facts of one person, whose slots have twenty values each, without and with an encoder."""
    sizes = (1_000, 10_000, 100_000)
    for name in (None, "hashing:384"):
        encoder = name and embed.load(name)
        seconds = []
        for n in sizes:
            stated = person_facts(n)
            began = process_time()
            knowledge.resolve(stated, encoder=encoder)
            seconds.append(process_time() - began)
        for n, before, n_before, taken in zip(sizes[1:], seconds, sizes, seconds[1:], strict=False):
            exponent = np.log(taken / before) / np.log(n / n_before)
            work = f"resolve facts, {name or 'no encoder'}"
            yield work, "", f"{n:,} facts, exponent {exponent:.2f}", taken, None


def person_facts(n: int) -> pl.DataFrame:
    """Draw facts of one person: slots and values of two made-up words each."""
    rng = np.random.default_rng(0)
    syllables = rng.permutation([a + b + c for a in "bdgklmnrst" for b in "aeiou" for c in "lnrst"])
    words = np.char.add(*(rng.choice(syllables, (2, 5_000))))
    slots = rng.choice(words, (n // 20, 2))[rng.integers(0, n // 20, n)].tolist()
    values = rng.choice(words, (n, 2)).tolist()
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = []
    for i, (slot, value) in enumerate(zip(slots, values, strict=True)):
        said = (" ".join(slot), " ".join(value), "stated", [f"me/s{i // 20}/{i}"])
        rows.append(records.Fact(f"f{i}", "me", "Ann", *said, start + timedelta(minutes=i)))
    return records.frame(records.Fact, rows)


def questions(data: Dataset, store: MemoryStore) -> Rows:
    """Rank the turns for all questions, whose vectors are there, and measure the rankings; processor time."""
    bench, depth = Bench.of(data, store=store), 200
    vectors, asked = (
        bench.turn_vectors[bench.documents("turn").at(bench.turns["turn_id"])],
        bench.query_vectors,
    )
    truth = records.qrels(data.questions, "turn", data.turns).frame.select(
        "query_id", "doc_id", "relevance"
    )
    relevant = ir_measures.util.QrelsConverter(
        starmap(ir_measures.Qrel, truth.iter_rows())
    ).as_dict_of_dict()
    wanted = [ir_measures.parse_measure(text) for text in ("R@10", "Success@10", "nDCG@10", "RR")]
    named = {"measures": ["recall@10", "recall_any@10", "ndcg@10", "mrr"], "unit": "question"}
    rng = np.random.default_rng(0)

    def ours() -> list[records.Run]:
        fresh = replace(bench, vectors=vectors)
        vars(fresh)["query_vectors"] = asked
        return [rank(fresh, k=depth) for rank in (retrieve.dense, retrieve.bm25, retrieve.hybrid)]

    def theirs() -> Iterator[tuple[list[str], list[list[str]]]]:
        for (scope,), turns in bench.turns.with_row_index("row").group_by("scope"):
            queries, index = bench.queries.with_row_index("row").filter(scope=scope), bm25s.BM25()
            index.index(tokenize(turns["text"].to_list()), show_progress=False)
            words = np.array(
                [index.get_scores(words) for words in tokenize(queries["text"].to_list())]
            )
            similar = asked[queries["row"]] @ vectors[turns["row"]].T
            orders = [np.argsort(-scores, kind="stable")[:, :depth] for scores in (similar, words)]
            fused = np.zeros_like(words)
            for order in orders:
                fused[np.arange(len(order))[:, None], order] += 1 / (60 + np.arange(order.shape[1]))
            orders.append(np.argsort(-fused, kind="stable")[:, :depth])
            ids = turns["turn_id"].to_numpy()
            yield queries["query_id"].to_list(), [ids[order] for order in orders]

    def ours_measured() -> None:
        for ranking in ours():
            evaluate.evaluate(ranking, data, **named).summary()

    def theirs_measured() -> None:
        runs: list[dict[str, dict[str, int]]] = [{}, {}, {}]
        for query_ids, rankings in theirs():
            for found, ranking in zip(runs, rankings, strict=True):
                for query_id, ids in zip(query_ids, ranking.tolist(), strict=True):
                    found[query_id] = dict(zip(ids, range(len(ids), 0, -1), strict=True))
        n = len(relevant)
        for found in runs:
            calculated = ir_measures.iter_calc(wanted, relevant, found)
            measured = sorted(calculated, key=lambda each: str(each.measure))
            values = np.reshape([each.value for each in measured], (len(wanted), n))
            np.quantile(
                values[:, rng.integers(0, n, (2_000, n))].mean(axis=2), [0.025, 0.975], axis=1
            )

    n = f"{bench.queries.height:,} questions, load {os.getloadavg()[0]:.0f}"
    calls = [()] * 6
    spent = medians(calls, ours, lambda: [*theirs()], timer=process_time)
    yield "all questions: dense, BM25, hybrid", "numpy, bm25s", n, *spent
    spent = medians(calls, ours_measured, theirs_measured, timer=process_time)
    yield "the same, with means and intervals", "numpy, bm25s, ir_measures", n, *spent


def measures(data: Dataset, store: MemoryStore) -> Rows:
    """Evaluate a ranking ten times, with a bootstrap of each mean."""
    run = retrieve.bm25(Bench.of(data, store=store), k=100)
    truth = records.qrels(data.questions, "turn", data.turns).frame.select(
        "query_id", "doc_id", "relevance"
    )
    scored = starmap(
        ir_measures.ScoredDoc, run.frame.select("query_id", "doc_id", "score").iter_rows()
    )
    ranked = ir_measures.util.RunConverter(scored).as_dict_of_dict()
    relevant = ir_measures.util.QrelsConverter(
        starmap(ir_measures.Qrel, truth.iter_rows())
    ).as_dict_of_dict()
    wanted = [ir_measures.parse_measure(text) for text in ("R@10", "Success@10", "nDCG@10", "RR")]
    n, rng = len(relevant), np.random.default_rng(0)
    asked = {"measures": ["recall@10", "recall_any@10", "ndcg@10", "mrr"], "unit": "question"}

    def ours() -> None:
        for _ in range(10):
            evaluate.evaluate(run, data, **asked).summary()

    def theirs() -> None:
        for _ in range(10):
            found = sorted(
                ir_measures.iter_calc(wanted, relevant, ranked), key=lambda each: str(each.measure)
            )
            values = np.reshape([each.value for each in found], (len(wanted), n))
            np.quantile(
                values[:, rng.integers(0, n, (2_000, n))].mean(axis=2), [0.025, 0.975], axis=1
            )

    yield (
        "measures and bootstrap",
        "ir_measures, numpy",
        f"{n:,} queries × 10",
        *medians([()] * 4, ours, theirs),
    )


def large(_: Dataset, __: MemoryStore) -> Rows:
    """Write 100,000 turns of random words with vectors, and ask the store for some of them."""
    rng, n = np.random.default_rng(0), f"{LARGE:,} turns"
    drawn = rng.standard_normal((LARGE, DIM), dtype=np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)

    def encode(
        texts: Any, **_: Any
    ) -> np.ndarray:  # at no cost, so that only the store is measured
        start = rng.integers(LARGE - len(texts) + 1)
        return drawn[start : start + len(texts)]

    encoder = SimpleNamespace(
        identity=embed.encoder.EncoderIdentity("random", "random", dim=DIM), dim=DIM, encode=encode
    )
    message = {
        "scope": "all",
        "sender": "user",
        "role": "user",
        "timestamp": "2024-01-01T00:00:00Z",
    }
    words = rng.integers(0, 4_000, (LARGE, 15)).astype(str).tolist()
    rows = [
        message | {"session": f"s{i // 20}", "id": f"{i}", "text": " ".join(row)}
        for i, row in enumerate(words)
    ]
    data = datasets.chatlog.dataset(rows, "random")

    def ours(folder: str) -> None:
        made = MemoryStore.open(f"{folder}/ours")
        made.ingest(data)
        made.vectors.backfill(encoder, data.name, progress=False)

    def theirs(folder: str) -> None:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(drawn.ravel()), DIM)
        table = data.turns.to_arrow().append_column("vector", vectors)
        lancedb.connect(folder).create_table("turns", schema=table.schema).add(table)

    with TemporaryDirectory(ignore_cleanup_errors=True) as work:
        yield (
            "ingest with vectors",
            "bare LanceDB add",
            n,
            *medians([(f"{work}/{i}",) for i in range(3)], ours, theirs),
        )
        made = MemoryStore.open(f"{work}/0/ours")
        made.search.create_indexes(encoder)
        table, column = made.table("turns"), made.vectors.column(encoder)

        def search(query: np.ndarray) -> None:
            made.search.by_vector(
                query[None], column=column, dataset="random", scopes=["all"], k=10
            )

        def bare(query: np.ndarray) -> None:
            found = (
                table.search(query, vector_column_name=column)
                .distance_type("cosine")
                .where("scope = 'all'")
            )
            found.limit(10).select(["turn_id", "_distance"]).to_arrow()

        queries = rng.standard_normal((101, 1, DIM), dtype=np.float32)
        yield (
            "one indexed query, p50",
            "bare LanceDB call",
            n,
            *medians(list(queries), search, bare),
        )


def write_chat_log(path: Path, rng: np.random.Generator) -> None:
    """Write 100,000 messages of 100 people, of 15 random words each."""
    words = rng.integers(0, 4_000, (LARGE, 15)).astype(str).tolist()
    start = datetime(2024, 1, 1, tzinfo=UTC)
    with path.open("w") as file:
        for i, row in enumerate(words):
            # A pause that ends a session stands before every twentieth message.
            when = start + timedelta(minutes=i + 60 * (i // 20))
            said = {"scope": f"user {i // 1000}", "role": ("user", "assistant")[i % 2]}
            said |= {"id": f"m{i}", "timestamp": when.isoformat(), "text": " ".join(row)}
            file.write(json.dumps(said) + "\n")


def write_chatgpt_export(path: Path, rng: np.random.Generator) -> None:
    """Write an export of ChatGPT with 1,000 conversations of 30 messages, of 40 random words each."""
    conversations = []
    for number, words in enumerate(rng.integers(0, 4_000, (1_000, 30, 40)).astype(str).tolist()):
        ids = [f"{number:08x}-0000-4000-8000-{n:012x}" for n in range(31)]
        mapping = {ids[0]: {"message": None, "parent": None, "children": [ids[1]]}}
        for n, row in enumerate(words, 1):
            content = {"content_type": "text", "parts": [" ".join(row)]}
            role = ("assistant", "user")[n % 2]
            about = {"author": {"role": role, "name": None, "metadata": {}}, "update_time": None}
            about |= {"create_time": 1.7e9 + 86_400 * number + n, "status": "finished_successfully"}
            about |= {"end_turn": True, "weight": 1.0, "recipient": "all", "channel": None}
            slug = {"model_slug": "gpt-4o", "default_model_slug": "gpt-4o", "parent_id": ids[n - 1]}
            about["metadata"] = slug | {"request_id": f"{number:032x}", "timestamp_": "absolute"}
            message = about | {"id": ids[n], "content": content}
            near = {"parent": ids[n - 1], "children": ids[n + 1 : n + 2]}
            mapping[ids[n]] = near | {"id": ids[n], "message": message}
        known = {"conversation_id": f"c{number}", "current_node": ids[-1], "mapping": mapping}
        conversations.append(known | {"title": f"talk {number}", "create_time": 1.7e9})
    path.write_text(json.dumps(conversations))


def loading(_: Dataset, __: MemoryStore) -> Rows:
    """Load a chat log into a store without vectors, and an export of ChatGPT into tables.

    Each side runs in processes of its own, see ``scripts/loading.py``.
    """
    rng = np.random.default_rng(0)
    with TemporaryDirectory(ignore_cleanup_errors=True) as work:
        log, export = Path(work, "log.jsonl"), Path(work, "conversations.json")
        write_chat_log(log, rng)
        times = medians_apart(log, "ingest_log", "add_lines")
        against = "polars.read_ndjson, bare LanceDB add"
        yield "chat log into a store", against, f"{LARGE:,} messages", *times
        write_chatgpt_export(export, rng)
        times = medians_apart(export, "load_export", "decode_export")
        yield "load an export of ChatGPT", "json and a loop", "30,000 messages", *times


def medians_apart(path: Path, *ways: str) -> list[float]:
    """Time ways of ``scripts/loading.py`` in turn, by processor time, each in new processes."""
    script = str(Path(__file__).with_name("loading.py"))
    times = []
    for _ in range(5):
        for way in ways:
            command = [sys.executable, script, way, str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            times.append(float(done.stdout))
    return np.median(np.reshape(times, (-1, len(ways))), axis=0).tolist()


def tree(data: Dataset, store: MemoryStore) -> Rows:
    """Grow the tree of one scope; the port chooses groups as the paper does, the rest of the tree is the same."""
    bench = largest(data, store)
    turns, vectors = (
        bench.turns,
        bench.turn_vectors[bench.documents("turn").at(bench.turns["turn_id"])],
    )
    encoder = embed.load("hashing:384")

    def ours(first: int) -> None:
        part = bench.with_changes(
            turns=turns.head(first), vectors=vectors[:first], encoder=encoder, store=None
        )
        summaries.build_raptor_tree(part)

    theirs = patch("memlab.summaries.raptor_trees.mixture_memberships", published)(ours)
    times = medians([(60,), (turns.height,)], ours, theirs)
    yield "tree of turns", "RAPTOR's grouping, ported", f"{turns.height:,} turns", *times


def published(rows: np.ndarray, *, reduce: str = "umap", seed: int = 0) -> Any:
    """Group as Sarthi et al. 2024 publish it: UMAP, then mixtures of every size up to 50, twice over."""

    def groups(some: np.ndarray, neighbors: int) -> list[np.ndarray]:
        if len(some) <= 11:
            return [np.arange(len(some))]
        points = UMAP(neighbors, 10, metric="cosine", random_state=seed, n_jobs=1).fit_transform(
            some
        )
        mixtures = [
            GaussianMixture(n, random_state=seed).fit(points) for n in range(1, min(50, len(some)))
        ]
        best = min(mixtures, key=lambda mixture: mixture.bic(points))
        return [np.flatnonzero(column > 0.1) for column in best.predict_proba(points).T]

    outer = groups(rows, int((len(rows) - 1) ** 0.5))
    chosen = [
        members[inner] for members in outer for inner in groups(rows[members], 10) if len(inner)
    ]
    row, column = (
        np.concatenate(chosen),
        np.repeat(np.arange(len(chosen)), [len(each) for each in chosen]),
    )
    return csr_array((np.ones(len(row)), (row, column)), shape=(len(rows), len(chosen)))


def layout(_: Dataset, __: MemoryStore) -> Rows:
    """Lay out and cluster 100,000 structured vectors.

    The other side is umap-learn in two and in five dimensions, and hdbscan on the latter, with the
    same seed and one thread. Processor time, one run of each after one of few rows, for which the
    libraries compile.
    """
    rows = structured_vectors(LARGE)

    def ours(n: int) -> None:
        cluster.project(rows[:n])
        cluster.cluster_labels(rows[:n], "umap_hdbscan")

    def theirs(n: int) -> None:
        plain = {"metric": "cosine", "random_state": 0, "n_jobs": 1}
        UMAP(**plain).fit_transform(rows[:n])
        points = UMAP(n_components=5, min_dist=0.0, **plain).fit_transform(rows[:n])
        HDBSCAN(cluster_selection_method="leaf", core_dist_n_jobs=1, **DENSE).fit(points)

    times = medians([(1_000,), (LARGE,)], ours, theirs, timer=process_time)
    yield "layout and clusters", "umap-learn, hdbscan", f"{LARGE:,} vectors", *times


def density(_: Dataset, __: MemoryStore) -> Rows:
    """Find dense groups of points as a layout gives them; processor time."""
    for n in (10_500, 21_000, 42_000):
        points = scattered_points(n)

        def own(n_points: int, points: np.ndarray = points) -> None:
            cluster.hdbscan_labels(points[:n_points], n_components=None)

        def bare(n_points: int, points: np.ndarray = points) -> None:
            model = sklearn.cluster.HDBSCAN(
                min_cluster_size=5, min_samples=4, cluster_selection_method="leaf", copy=True
            )
            model.fit(points[:n_points])

        times = medians([(1_000,), (n,), (n,)], own, bare, timer=process_time)
        yield "HDBSCAN of points in five dimensions", "scikit-learn", f"{n:,} points", *times


# What memlab takes: with the row itself, which hdbscan does not count, four rows say how dense it is.
DENSE = {"min_cluster_size": 5, "min_samples": 3}


def structured_vectors(n: int) -> np.ndarray:
    """Draw unit vectors of 120 subjects of different sizes, each of which spreads along eight axes of its own."""
    rng, subjects = np.random.default_rng(0), 120
    plane = np.linalg.qr(rng.normal(size=(DIM, 24)))[0].T
    centres = rng.normal(size=(subjects, 24)) @ plane
    subject = rng.choice(subjects, n, p=rng.dirichlet(np.full(subjects, 2.0)))
    own_axes = rng.normal(size=(subjects, 8, DIM)) / np.sqrt(DIM)
    rows = centres[subject] + rng.normal(scale=1.2 / np.sqrt(DIM), size=(n, DIM))
    along = rng.normal(scale=1.2, size=(n, 8))
    for number in range(subjects):
        members = subject == number
        rows[members] += along[members] @ own_axes[number]
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def scattered_points(n: int) -> np.ndarray:
    """Draw unit vectors in five dimensions, around one place for each sixty of them, near or far."""
    rng, places = np.random.default_rng(0), n // 60
    middle, place = rng.normal(size=(places, 5)), rng.integers(0, places, n)
    width = rng.uniform(0.01, 0.1, places)[place][:, None]
    rows = middle[place] + width * rng.normal(size=(n, 5))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def start(_: Dataset, __: MemoryStore) -> Rows:
    """Search from a shell; the first call, which is not counted, embeds the memory."""
    data, run = (
        datasets.load(SAMPLE).take(["owen"]),
        partial(subprocess.run, check=True, capture_output=True),
    )
    with TemporaryDirectory() as work:
        MemoryStore.open(work).ingest(data)
        verb = [
            str(Path(sys.executable).with_name("memlab")),
            "search",
            data.questions["text"][0],
            "--store",
            work,
        ]
        times = medians([()] * 6, partial(run, verb), partial(run, [sys.executable, "-c", "pass"]))
    yield "`memlab search`, cold", "empty interpreter", "5 starts", *times


ROWS = {
    rows.__name__: rows
    for rows in (
        encode,
        one_thread,
        selection,
        processes,
        question,
        warm,
        former,
        added,
        recall,
        saved,
        facts,
        questions,
        measures,
        large,
        loading,
        tree,
        layout,
        density,
        start,
    )
}


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument(
        "dataset", nargs="?", type=Path, default=SAMPLE, help="LoCoMo's file; the sample by default"
    )
    reader.add_argument("--only", nargs="+", choices=ROWS, default=ROWS, help="some of the rows")
    chosen = reader.parse_args()
    data, store = datasets.load(chosen.dataset), MemoryStore.open("results/bench")
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    print(
        f"{chosen.dataset.name}; {cpu}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version}"
    )
    print(*(f"{name} {version(name)}" for name in PACKAGES), sep=", ", end="\n\n")
    print("| work | against | n | memlab | other | ratio |\n|:---|:---|:---|---:|---:|---:|")
    for name in chosen.only:
        for *about, ours, theirs in ROWS[name](data, store):
            times = [f"{s:.2f} s" if s >= 1 else f"{1000 * s:.1f} ms" for s in (ours, theirs) if s]
            cells = [*about, *times, *([f"{theirs / ours:.2f} ×"] if theirs else ["", ""])]
            print("|", " | ".join(cell.replace("|", r"\|") for cell in cells), "|", flush=True)


if __name__ == "__main__":
    main()
