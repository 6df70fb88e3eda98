"""What memlab withstands: writers of one scope, kills, mutated inputs, malicious servers, hostile text, large scopes.

`python scripts/torture.py --writers 20 --kills 90 --inputs 20000 --servers 1 --texts 1 --large 200000` prints a row for
each part, all zeros where memlab held; a part with count 0 is left out. Everything is drawn from `--seed`.
"""

from __future__ import annotations

import argparse
import base64
import csv
import io
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
from malicious import KEY, KINDS, MODES, Malicious, ask, peak
from polars import selectors as cs
from repeated import SAMPLE, repeated

import memlab
from memlab import datasets, evaluate, memories, pipelines
from memlab.config import settings
from memlab.errors import MemlabError
from memlab.figures import gallery
from memlab.llm import recording, reply
from memlab.memories.returned_rows import Failure, list_returned_rows, read_rows
from memlab.rerank.model import Model
from memlab.store import MemoryStore
from memlab.store.schemas import INDEX_TABLES, TABLES
from memlab.summaries.prompts import Session

MEMLAB = (sys.executable, "-c", "from memlab.cli import main; main()")
HASHING = ("--encoder", "hashing:64", "--store", "store")
LOG = ("ingest", "log.jsonl", *HASHING)
SECONDS, GIGABYTE = 10, 1 << 30
FORMATS = Path(__file__).with_name("formats")
EXPORTS = [FORMATS, Path(__file__).parents[1] / "tests" / "datasets" / "exports"]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def done(folder: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a verb to its end."""
    ended = subprocess.run([*MEMLAB, *arguments], cwd=folder, capture_output=True, text=True)
    if ended.returncode not in codes:
        raise RuntimeError(f"memlab {' '.join(arguments)}: {(ended.stdout + ended.stderr)[-2000:]}")
    return ended.stdout + ended.stderr


def _verb(folder: str, arguments: tuple[str, ...]) -> None:
    os.chdir(folder)
    out = os.open(f"{folder}.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.argv = ["memlab", *arguments]
    from memlab.cli import main

    main()


IMPORTED = ["lancedb", "memlab.cli", "sklearn.ensemble", "torch", "transformers.modeling_layers"]


def forked(folder: Path, *arguments: str, seconds: float = 600) -> bool:
    """Run a verb in a process that has imported what is slow to import; after a time, kill it. Say whether it ended."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
    process = multiprocessing.get_context("forkserver").Process(target=_verb, args=(str(folder), arguments))
    process.start()
    process.join(seconds)
    ended = process.exitcode is not None
    process.kill()
    process.join()
    if ended and process.exitcode:
        raise RuntimeError(f"memlab {' '.join(arguments)}: {Path(f'{folder}.out').read_text()[-2000:]}")
    return ended


def message(**changes: Any) -> dict[str, Any]:
    return {"scope": "a", "session": "s", "sender": "Ann", "role": "user", "text": "I like tea.", "id": "1"} | changes


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def sample_log(path: Path, turns: int = 60) -> memlab.Dataset:
    """Write a chat log of the first sessions of one memory of the sample."""
    data = memlab.sample(["owen"], turns=turns)
    kept = {*data.turns["turn_id"], *data.questions["query_id"]}
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()[1:]]
    write_lines(path, [r for r in rows if r.get("query_id", f"{r['scope']}/{r.get('id')}") in kept])
    return data


def writers(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Let four processes a round add to two scopes that they share and one of their own, while a thread reads."""
    faults: Counter[str] = Counter(lost=0, doubled=0, torn=0, told=0)
    kept, ended = {"a/first"}, threading.Event()
    write_lines(work / "first.jsonl", [message(id="first")])
    done(work, "ingest", "first.jsonl", "--into", "log", *HASHING)

    def read() -> None:
        store = MemoryStore.open(work / "store")
        while not ended.is_set():
            try:
                log = store.dataset("log")
                faults["torn"] += log.sessions["n_turns"].sum() != log.turns.height
            except MemlabError as error:
                faults["torn"] += 1
                say(f"reader: {error}")

    def write(job: tuple[int, int]) -> None:
        name, place = "{}-{}".format(*job), work / f"writer-{job[1]}"
        rows = [message(scope=s, id=f"{name}-{i}") for s in ("a", "b", f"own{job[1]}") for i in range(60)]
        place.mkdir(exist_ok=True)
        write_lines(place / f"{name}.jsonl", rows)
        time.sleep(rng.random() / 10)
        try:
            store = ("--encoder", "hashing:64", "--store", str(work / "store"))
            if not forked(place, "ingest", f"{name}.jsonl", "--into", "log", *store):
                raise RuntimeError("it hangs")
            kept.update(f"{row['scope']}/{row['id']}" for row in rows)
        except RuntimeError as error:
            faults["told"] += 1
            say(f"writer {name}: {error}")

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(4) as pool:
        for number in range(count):
            list(pool.map(write, [(number, w) for w in range(4)]))
    ended.set()
    reader.join()
    turns = MemoryStore.open(work / "store").dataset("log").turns["turn_id"].to_list()
    faults["lost"], faults["doubled"] = len(kept - set(turns)), len(turns) - len(set(turns))
    say(f"writers: {len(kept):,} turns kept of {count * 4} writers")
    return faults


INDEX, TRAIN = ("index", *HASHING, "--now", "2026-11-01"), ("train", "log.jsonl", *HASHING[2:], "--out")
EVALUATE = ("evaluate", "log.jsonl", *HASHING, "--out", "runs", "--pipeline")
VERBS: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "ingest": ((), LOG),
    "index": ((LOG,), INDEX),
    "optimize": ((LOG, INDEX), ("optimize", *HASHING[2:])),
    "backfill": ((LOG,), ("ingest", "log.jsonl", "--encoder", "hashing:32", *HASHING[2:])),
    "evaluate": ((), (*EVALUATE, "bm25")),
    "rollup": ((LOG,), (*EVALUATE, "tree(over='weeks')")),
    "train": (((*TRAIN, "before.safetensors"),), (*TRAIN, "m.safetensors")),
    "compare": ((), ("compare", "log.jsonl", *HASHING, "--system", "bm25", "--system", "dense", "--out", "page")),
    "convert": ((), ("convert", "log.jsonl", "folder")),
}
"""Verbs that are killed: what is run first, and what is killed."""


def state(folder: Path) -> dict[str, Any]:
    """Give what a folder holds: columns of tables in order of their keys, files by name; caches and clocks apart."""
    whole: dict[str, Any] = {}
    if (folder / "store").exists():
        store = MemoryStore.open(folder / "store")
        for name in set(store.database.names()).intersection(TABLES):
            rows = pl.DataFrame(pl.from_arrow(store.table(name).to_arrow())).sort("key")
            if name in ("runs", "rankings"):  # named by the store's versions too: a write that was cut off is one more
                rows = rows.drop("key", "run_id", "provenance", strict=False).drop(cs.datetime())
                rows = rows.sort(rows.columns)
            if name in INDEX_TABLES:  # rows of an attempt that was cut off count for nothing, and go after a day
                counted = store.table("index_states").to_arrow()["generation"].to_pylist()
                rows = rows.filter(pl.col("generation").is_in(counted))
            whole |= {f"{name}.{c}": str(rows[c].to_list()) for c in rows.columns if rows[c].dtype != pl.Datetime}
    for path in folder.rglob("*"):
        if path.is_file() and "store" not in path.relative_to(folder).parts[:1]:
            # what is drawn of times and sizes is another each time
            whole[str(path.relative_to(folder))] = b"" if "trade-off" in path.name else path.read_bytes()
    return whole


def kills(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Kill verbs at a time that is drawn, run them again, and compare with what was never disturbed."""
    faults: Counter[str] = Counter(different=0, left=0, refused=0)
    struck: Counter[str] = Counter()
    verbs: dict[str, tuple[Path, float, dict[str, Any], int]] = {}
    sample_log(work / "log.jsonl")
    for name in [*VERBS][:count]:
        ready, ends = work / name, []
        ready.mkdir()
        shutil.copy(work / "log.jsonl", ready)
        for each in VERBS[name][0]:
            forked(ready, *each)
        for run in range(2):
            place = shutil.copytree(ready, work / f"{name}-{run}")
            begun = time.perf_counter()
            forked(place, *VERBS[name][1])
            seconds = time.perf_counter() - begun
            ends.append(state(place))
        # what differs between two runs that nobody disturbed, as random ids do, is not compared
        verbs[name] = ready, seconds, {k: v for k, v in ends[0].items() if ends[1].get(k) == v}, len(ends[0])
    for number in range(count):
        name = [*verbs][number % len(verbs)]
        ready, seconds, expected, size = verbs[name]
        place = shutil.copytree(ready, work / f"kill-{number}")
        struck[name] += not forked(place, *VERBS[name][1], seconds=rng.random() * seconds)
        try:
            if not forked(place, *VERBS[name][1]):
                raise RuntimeError("hangs when it is run again")
        except RuntimeError as error:
            faults["refused"] += 1
            say(f"kill {number} of {name}: {error}")
            continue
        found = state(place)
        wrong = [key for key in expected if found.get(key) != expected[key]]
        left = [p.name for p in place.rglob("*") if p.name.endswith((".partial", ".part"))]
        faults["different"] += bool(wrong or len(found) != size)
        faults["left"] += bool(left)
        if wrong or left or len(found) != size:
            say(f"kill {number} of {name}: {wrong[:5]}, {len(found)} of {size} files and columns, left {left[:3]}")
        shutil.rmtree(place)
    say(f"struck {sum(struck.values())} of {count}: {dict(struck)}")
    return faults


ASKED = {"scope": "a", "question": "What?", "answer": "tea", "evidence": ["1"], "timestamp": 1.7e9, "stale": []}
SETTINGS = (
    'store = "s"\nseed = 1\n[llm.services.a]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n[index]\nservice = "a"\n'
)
PIPELINES = "bm25(k=50) | mmr(k=10, lambda_=0.5)", "combsum + late | learned(model='x') | dpp(k=5)", "hybrid(k=3)"
SIDECAR = {"name": "a", "caption": "b", "files": ["a.svg", "a.html"], "provenance": {"n": 1}, "versions": {"p": "1"},
           "made_by": {"notebook": "00_corpus.ipynb", "parameters": {}}}  # fmt: skip
JUNK = ("[" * 2_000, "9" * 5_000, '"' * 99, "\\ud800", "\x00", "null", "1e999", "-1", '""', "{}", "[]", "5", "\u2028",
        "\u202e", "\x1b", "é", "NaN", "../")  # fmt: skip


def mutated(text: str, rng: random.Random) -> bytes:
    """Change one to three places of a text: a part dropped, doubled or made of junk, a value of JSON, or a byte."""
    for _ in range(rng.randint(1, 3)):
        values = [m.span() for m in re.finditer(r'(?<=: )("[^"]*"|[\w.]+|\[[^\[\]]*\])', text)]
        if values and rng.random() < 0.4:
            start, end = rng.choice(values)
        else:
            start = rng.randrange(len(text) + 1)
            end = min(len(text), start + rng.choice((0, 1, 1, 3, 12)))
        text = text[:start] + rng.choice((*JUNK, "", text[start:end] * 2)) + text[end:]
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if raw and rng.random() < 0.2:
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return bytes(raw)


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """Change three bytes, mostly near the beginning, and cut it off half the time."""
    harmed = bytearray(raw)
    for _ in range(3):
        harmed[rng.randrange(min(len(harmed), rng.choice((9, 500, len(harmed)))))] = rng.randrange(256)
    return bytes(harmed[: rng.choice((len(harmed), rng.randrange(len(harmed))))])


class Late(BaseException):
    """An input that takes too long; no error that code under test catches."""


def late(*_: Any) -> None:
    raise Late


def inputs(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Read mutated files of all formats, rankings, rows, settings, models, answers, recordings, sidecars and stores."""
    data = sample_log(work / "log.jsonl")
    done(work, *LOG)
    done(work, *TRAIN, "m.safetensors")
    model, turn, query = (work / "m.safetensors").read_bytes(), data.turns["turn_id"][0], data.questions["query_id"][0]
    exports = {str(p): p.read_text("utf-8") for folder in EXPORTS for p in sorted(folder.rglob("*.*")) if p.is_file()}
    ids = json.dumps({query: [turn, 5, "x"]})
    texts = json.dumps({"query_id": query, "text": "tea", "score": 1.5, "source_ids": [turn], "time": "2026"})
    rows = json.dumps([{"text": "tea", "score": 1.5, "source_ids": ["1"], "metadata": {"id": "1"}}] * 2)
    said = json.dumps({"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "usage": {}})
    kept = json.dumps({"task": "t", "version": 1, "key": "k", "answer": {"summary": "x"}, "tokens": [1, 2]})
    stored = sorted(p for p in (work / "store").rglob("*") if p.is_file())

    def put(name: str, content: bytes) -> Path:
        place = work / "in" / name
        shutil.rmtree(work / "in", ignore_errors=True)
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
        return place

    def load(name: str, text: str) -> None:
        how, place = rng.choice(("raise", "quarantine")), put(Path(name).name, mutated(text, rng))
        if rng.random() < 0.2:
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(place, rng.choice((place.name, f"../{place.name}", name)))
            raw = packed.getvalue()
            place = put("export.zip", raw if rng.random() < 0.5 else damaged(raw, rng))
        datasets.load(place, on_error=how, quarantine_dir=work / "in")

    def store() -> None:
        shutil.rmtree(work / "other", ignore_errors=True)
        shutil.copytree(work / "store", work / "other")
        victim = work / "other" / rng.choice(stored).relative_to(work / "store")
        victim.write_bytes(damaged(victim.read_bytes(), rng) if victim.stat().st_size else b"\0")
        opened = MemoryStore.open(work / "other")
        opened.search.by_text(["tea"], dataset="log", scopes=["owen"], k=3) if rng.random() < 0.3 else None
        opened.dataset("log")

    def ranked(place: Path) -> None:
        if place.suffix == ".trec":
            memories.run_to_returned(evaluate.read_run(place, "turn"), data, "x")
        else:
            memories.read_ranking(place, data)

    def memory() -> None:
        with suppress(ValueError, RecursionError):
            answer = json.loads(mutated(rows, rng))
            return read_rows(list_returned_rows(answer, 10), {"1": "a/s/1"}, 10) and None

    kinds: dict[str, Callable[[], Any]] = {
        name: lambda name=name, text=text: load(name, text)  # type: ignore[misc]
        for name, text in exports.items()
    }
    for name, text in (("r.json", ids), ("r.jsonl", texts), ("r.trec", f"{query} Q0 {turn} 1 0.5 x\n")):
        kinds[name] = lambda name=name, text=text: ranked(put(name, mutated(text, rng)))  # type: ignore[misc]
    kinds |= {
        "settings": lambda: settings(directory=put("memlab.toml", mutated(SETTINGS, rng)).parent),
        "reply": lambda: reply.read_completion(mutated(said, rng), Session),
        "recording": lambda: recording.read_recording(put("recorded.jsonl", mutated(kept, rng))),
        "sidecar": lambda: gallery(put("a.json", mutated(json.dumps(SIDECAR), rng)).parent),
        "model": lambda: Model.load(put("m.safetensors", damaged(model, rng))),
        "pipeline": lambda: pipelines.pipeline(mutated(rng.choice(PIPELINES), rng).decode("utf-8", "replace")),
        "rows": memory,
        "store": store,
    }
    faults: Counter[str] = Counter(foreign=0, hangs=0)
    shown: Counter[str] = Counter()
    signal.signal(signal.SIGALRM, late)
    for number in range(count):
        kind = [*kinds][number % len(kinds)]
        try:
            signal.alarm(SECONDS)
            kinds[kind]()
        except (MemlabError, Failure):
            pass
        except Late:
            faults["hangs"] += 1
            say(f"input {number} ({kind}) hangs")
        except BaseException as error:
            faults["foreign"] += 1
            shown[what := f"{kind}: {type(error).__name__}"] += 1
            if shown[what] == 1:
                say(f"input {number} {what}\n{traceback.format_exc()[-1500:]}")
        finally:
            signal.alarm(0)
    say(f"{len(kinds)} kinds of inputs; foreign: {dict(shown)}")
    return faults


def servers(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Ask a memory, a model and embeddings that misbehave in each mode, in a process of its own."""
    faults: Counter[str] = Counter(foreign=0, late=0, large=0, leaked=0, arrived=0)
    os.environ["TORTURE_KEY"] = os.environ["MEMLAB_MEMORY_TOKEN"] = KEY
    with arrivals() as (address, got), multiprocessing.get_context("spawn").Pool(1) as pool:
        for kind in KINDS:
            pool.apply(ask, (kind, Malicious(kind, MODES["good"], address).url))  # what is imported takes seconds
            for name, mode in MODES.items():
                asked = pool.apply_async(ask, (kind, Malicious(kind, mode, address).url))
                try:
                    seconds, size, told, foreign = asked.get(120)
                except multiprocessing.TimeoutError:
                    raise RuntimeError(f"{kind}, {name}: it hangs") from None
                faults["late"] += (late := seconds > KINDS[kind] + 5)
                faults["large"] += (large := size > GIGABYTE)
                faults["leaked"] += (leaked := KEY in told)
                faults["foreign"] += bool(foreign)
                if late or large or leaked or foreign:
                    say(f"{kind}, {name}: {seconds:.1f} s, {size / 1e6:.0f} MB, leaked {leaked}, {foreign}")
        faults["arrived"] = len(got)
    say(f"{len(MODES)} modes of {len(KINDS)} kinds of servers")
    return faults


@contextmanager
def arrivals() -> Iterator[tuple[str, list[str]]]:
    """Listen: the address, and the paths of what was asked there."""
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.path)
            self.send_error(404)

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()


def hostile(address: str) -> list[str]:
    """Give texts that would load something, run something, or steer a terminal or a table."""
    calls = f"fetch('{address}/script')"
    return [
        f'<img src="{address}/img" onerror="{calls}">',
        f"</script></style></title><script>{calls}</script>",
        f"![picture]({address}/markdown.png) [link](javascript:{calls})",
        f"<svg onload={calls}><iframe src='{address}/frame'></iframe>",
        f"\x1b]0;pwned\x07\x1b[31mred\u2028\u202e<b style='background:url({address}/css)'>",
        f"| pipe ` tick ``` $\\href{{javascript:{calls}}}{{x}}$ &lt;img src={address}/entity&gt;",
        '=HYPERLINK("http://127.0.0.1")',
        "@SUM(1+1)",
    ]


def texts(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Put hostile text in every field, and open all reports, figure pages and executed notebooks in Chromium."""
    faults: Counter[str] = Counter(arrivals=0, escapes=0, formulas=0, paths=0)
    pages = 0
    with arrivals() as (address, got):
        for number in range(count):
            place = work / f"text-{number}"
            place.mkdir()
            bad = hostile(address)
            log = [message(scope=h, session=h + rng.choice(bad), sender=h, text=f"{h} I moved to {rng.choice(bad)}.",
                           caption=h, id=f"{h}{i}", timestamp=f"2026-03-{i + 1:02}T09:00Z")
                   for h in bad for i in range(8)]  # fmt: skip
            log += [ASKED | {"scope": h, "question": f"{h} Where {i}?", "answer": h, "type": h, "evidence": [f"{h}{i}"]}
                    for h in bad for i in range(3)]  # fmt: skip
            run = base64.b64encode(f"fetch('{address}/name')".encode()).decode()
            name = f"\x1b]0;pwned\x07<img src=x onerror=eval(atob('{run}'))>log.jsonl"
            write_lines(place / name, log)
            systems = ("--system", "bm25", "--system", "dense")
            printed = [done(place, "ingest", name, *HASHING), done(place, "info", *HASHING), done(place, *INDEX)]
            for kind, scope in zip(("summaries", "topics", "entities", "timeline"), bad, strict=False):
                printed.append(done(place, "list", kind, *HASHING[2:], "--scope", scope, codes=(0, 2)))
            printed.append(done(place, "evaluate", name, *HASHING[:2], "--pipeline", "bm25", "--out", "out"))
            printed.append(done(place, "compare", name, *HASHING[:2], *systems, "--out", "page"))
            small = ("timed=3", "n_seeds=1")
            source = ("--source", str(SAMPLE.parents[2] / "notebooks"), "--out", "books")
            printed.append(done(place, "notebooks", name, *source, *(p for s in small for p in ("--set", s))))
            printed.append(done(place, "figures"))
            for book in (place / "books").glob("*.ipynb"):
                subprocess.run([sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", book], check=True)
            faults["escapes"] += sum(any(e in out for e in ("\x1b]", "\x1b[31", "\x07", "\u202e")) for out in printed)
            for path in (p for p in place.rglob("*") if p.is_file() and "store" not in p.relative_to(place).parts[:1]):
                text = path.read_text(errors="replace") if path.suffix in (".html", ".json", ".csv", ".md") else ""
                if any(f"{folder}/" in text for folder in (place, Path.home())):
                    faults["paths"] += 1
                    say(f"{path.name} holds a path")
                if path.suffix == ".csv":
                    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
                    faults["formulas"] += any(re.match(r"[=@\t\r]|[+-](?![\d.])", cell) for cell in cells)
                if path.suffix == ".html":
                    before, pages = len(got), pages + 1
                    opened(path)
                    if len(got) > before:
                        say(f"{path.relative_to(place)}: {sorted(set(got[before:]))}")
        faults["arrivals"] = len(got)
    say(f"{pages} pages were opened")
    return faults


def opened(page: Path) -> None:
    """Open a page in Chromium for some seconds."""
    from memlab.figures._browser import find_browser_path

    profile = tempfile.mkdtemp()
    options = (f"--user-data-dir={profile}", "--headless", "--no-sandbox", "--disable-gpu", "--timeout=8000")
    shown = subprocess.run(
        [find_browser_path(), *options, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120
    )
    shutil.rmtree(profile, ignore_errors=True)
    if "<html" not in shown.stdout:
        raise RuntimeError(f"{page.name} was not opened: {shown.stderr[-500:]}")


def large(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Evaluate one scope of so many turns with 2,700 questions, and weeks of 50,000 with 827; lines of megabytes."""
    faults: Counter[str] = Counter(large=0)
    for name, turns, questions, line, limit in (
        ("bm25", count, 2_700, "bm25", 3.0), ("weeks", min(count, 50_000), 827, "tree(over='weeks')", 3.0),
    ):  # fmt: skip
        data = repeated(turns, one_scope=True)
        rows = [
            message(scope="a", id=f"{i}", session=s, text=t, timestamp=when.isoformat())
            for i, (s, t, when) in enumerate(data.turns.select("session_id", "text", "timestamp").iter_rows())
        ]
        rows += [ASKED | {"query_id": f"q{i}", "question": rng.choice(rows)["text"], "timestamp": None,
                          "evidence": [str(rng.randrange(turns)) for _ in "ab"]} for i in range(questions)]  # fmt: skip
        write_lines(work / f"{name}.jsonl", rows)
        del data, rows
        verb = ("evaluate", f"{name}.jsonl", "--encoder", "hashing:64", "--store", name, "--pipeline", line)
        faults["large"] += measured(f"{turns:,} turns × {questions:,} questions, {line}", work, verb) > limit * GIGABYTE
    for name, key in (("locomo", "sample_id"), ("longmemeval", "question_id")):
        (record,) = json.loads((FORMATS / f"{name}.json").read_text())
        records = [record | {key: f"{i}"} for i in range(20_000_000 // len(json.dumps(record)))]
        (work / "line.json").write_text(json.dumps(records))
        verb = ("convert", "line.json", f"{name}-folder", "--format", name)
        faults["large"] += measured(f"20 MB of {name} in one line", work, verb) > GIGABYTE
    return faults


def measured(what: str, folder: Path, arguments: tuple[str, ...]) -> int:
    """Run a verb, and give the most memory that it took."""
    begun = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        size = pool.apply(peak, (str(folder), arguments))
    say(f"{what}: {size / 1e9:.2f} GB, {time.perf_counter() - begun:.0f} s")
    return size


PARTS = {part.__name__: part for part in (writers, kills, inputs, servers, texts, large)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, part in PARTS.items():
        parser.add_argument(f"--{name}", type=int, default=0, help=part.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--exports", type=Path, action="append", default=[], help="Further exports that are mutated.")
    chosen = parser.parse_args()
    os.environ.setdefault("PYTHONWARNINGS", "ignore")  # of forks, which end here by being killed
    EXPORTS.extend(chosen.exports)
    rows = []
    for name, part in PARTS.items():
        if count := getattr(chosen, name):
            with tempfile.TemporaryDirectory(prefix=f"torture-{name}-") as folder:
                begun = time.perf_counter()
                faults = part(count, random.Random(chosen.seed), Path(folder))
                what = ", ".join(f"{n} {kind}" for kind, n in faults.items())
                rows.append((name, count, sum(faults.values()), what, round(time.perf_counter() - begun, 1)))
    with pl.Config(tbl_width_chars=200, fmt_str_lengths=200):
        print(table := pl.DataFrame(rows, schema=["part", "count", "faults", "what", "seconds"], orient="row"))
    raise SystemExit(bool(table["faults"].sum()))


if __name__ == "__main__":
    main()
