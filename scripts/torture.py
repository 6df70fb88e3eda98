"""What memlab bears: killed commands, writers at once, mutated inputs, hostile text, secrets; a table of faults.

`python scripts/torture.py --kills 63 --writers 4 --same 20 --inputs 20000 --lines 2 --texts 1 --secrets 1` prints a row
for each part, all zeros where memlab held; a part with count 0 is left out. Everything is drawn from `--seed`.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors as cs
from repeated import SAMPLE

import memlab
from memlab import datasets, llm, pipelines
from memlab.config import settings
from memlab.errors import MemlabError
from memlab.memories.reading import Failure, read_rows, rows_of
from memlab.rerank.model import Model
from memlab.store import MemoryStore
from memlab.store.schemas import INDEX_TABLES, TABLES

MEMLAB = (sys.executable, "-c", "from memlab.cli import main; main()")
HASHING = ("--encoder", "hashing:64", "--store", "store")
NOW = ("--now", "2026-11-01")
KEY = "sk-torture-0123456789"
SECONDS = 10
LISTS = ("summaries", "topics", "entities", "facts")
WRITTEN = (".html", ".json", ".csv", ".md", ".txt", ".ipynb")
HOSTILE = (
    "<img src=x onerror=\"document.documentElement.setAttribute('pwned',1)\">",
    "</script><script>document.documentElement.setAttribute('pwned',1)</script>",
    "\x1b]0;pwned\x07\x1b[31mred\u2028\u202e",
    '=HYPERLINK("http://127.0.0.1")',
    "@SUM(1+1)",
    "| pipe ` tick [link](javascript:alert(1))",
)


def command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a verb in a folder."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([*MEMLAB, *arguments], cwd=folder, **pipes)


def done(folder: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a verb to its end."""
    process = command(folder, *arguments)
    out, _ = process.communicate()
    if process.returncode not in codes:
        raise RuntimeError(f"memlab {' '.join(arguments)}: {out[-2000:]}")
    return out


def state(folder: Path) -> dict[str, Any]:
    """Give what a folder holds: columns of tables in order of their keys, files by name; caches and clocks apart."""
    whole: dict[str, Any] = {}
    if (folder / "store").exists():
        store = MemoryStore.open(folder / "store")
        if "index_states" in store.database.names():
            counted = pl.DataFrame(pl.from_arrow(store.table("index_states").to_arrow()))
        for name in set(store.database.names()).intersection(TABLES):
            rows = pl.DataFrame(pl.from_arrow(store.table(name).to_arrow())).sort("key")
            if name in ("runs", "rankings"):  # Named by the store's versions too: a write that was cut off is one more.
                rows = rows.drop("key", "run_id", "provenance", strict=False).drop(cs.datetime())
                rows = rows.sort(rows.columns)
            if name in INDEX_TABLES:  # Rows of an attempt that was cut off count for nothing, and go after a day.
                rows = rows.filter(pl.col("generation").is_in(counted["generation"].to_list()))
            whole |= {f"{name}.{c}": str(rows[c].to_list()) for c in rows.columns if rows[c].dtype != pl.Datetime}
    for path in folder.rglob("*"):
        if path.is_file() and "store" not in path.relative_to(folder).parts[:1]:
            # What is drawn of times and sizes is another each time.
            whole[str(path.relative_to(folder))] = b"" if "trade-off" in path.name else path.read_bytes()
    return whole


def leftovers(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.name.endswith((".partial", ".part"))]


def _verb(folder: str, arguments: tuple[str, ...]) -> None:
    os.chdir(folder)
    out = os.open(f"{folder}.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    if arguments == ("export",):
        import plotly.graph_objects as go

        from memlab.figures import export

        export(go.Figure(go.Bar(y=[1, 2])), "bars")
    else:
        sys.argv = ["memlab", *arguments]
        from memlab.cli import main

        main()


def _fresh(folder: Path, *arguments: str, seconds: float = 120) -> bool:
    """Run a verb in a process of its own that has imported what is slow to import, and kill it after a time."""
    process = multiprocessing.get_context("forkserver").Process(target=_verb, args=(str(folder), arguments))
    process.start()
    process.join(seconds)
    ended = process.exitcode is not None
    process.kill()
    process.join()
    if ended and process.exitcode:
        raise RuntimeError(f"memlab {' '.join(arguments)}: {Path(f'{folder}.out').read_text()[-2000:]}")
    return ended


VERBS = {
    "ingest": ((), ("ingest", "log.jsonl", *HASHING)),
    "index": ((("ingest", "log.jsonl", *HASHING),), ("index", *HASHING, *NOW)),
    "backfill": (
        (("ingest", "log.jsonl", *HASHING),),
        ("ingest", "log.jsonl", "--encoder", "hashing:32", *HASHING[2:]),
    ),
    "evaluate": ((), ("evaluate", "log.jsonl", *HASHING, "--pipeline", "bm25", "--out", "runs")),
    "train": (
        (("train", "log.jsonl", *HASHING[2:], "--out", "before.safetensors"),),
        ("train", "log.jsonl", *HASHING[2:], "--out", "m.safetensors"),
    ),
    "compare": (
        (),
        ("compare", "log.jsonl", *HASHING, "--system", "bm25", "--system", "dense", "--out", "page"),
    ),
    "convert": ((), ("convert", "log.jsonl", "folder")),
    "rollup": (
        (("ingest", "log.jsonl", *HASHING),),
        ("evaluate", "log.jsonl", *HASHING, "--pipeline", "tree(over='weeks')", "--out", "runs"),
    ),
    "export": ((), ("export",)),
}
IMPORTED = ["lancedb", "memlab.cli", "sklearn.ensemble",
            "torch", "transformers.activations", "transformers.modeling_layers"]  # fmt: skip


def kills(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Kill verbs at a time that is drawn, run them again, and compare with what was never disturbed."""
    faults: Counter[str] = Counter(different=0, left=0, refused=0)
    after, killed = Counter[str](), Counter[str]()
    multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
    beginning(work / "log.jsonl", 60)
    verbs: dict[str, tuple[Path, float, dict[str, Any], int]] = {}
    for name, (first, verb) in VERBS.items():
        ready, ends = work / name, []
        ready.mkdir()
        shutil.copy(work / "log.jsonl", ready)
        for each in first:
            _fresh(ready, *each)
        for run in range(2):
            place = shutil.copytree(ready, work / f"{name}-{run}")
            begun = time.perf_counter()
            _fresh(place, *verb)
            seconds = time.perf_counter() - begun
            ends.append(state(place))
        # What differs between two runs that nobody disturbed, as random ids do, is not compared.
        verbs[name] = ready, seconds, {k: v for k, v in ends[0].items() if ends[1].get(k) == v}, len(ends[0])
    for number in range(count):
        name = list(VERBS)[number % len(VERBS)]
        ready, seconds, expected, size = verbs[name]
        place = shutil.copytree(ready, work / f"kill-{number}")
        (after if _fresh(place, *VERBS[name][1], seconds=rng.random() * seconds) else killed)[name] += 1
        try:
            if not _fresh(place, *VERBS[name][1]):
                raise RuntimeError("hangs when it is run again")
        except RuntimeError as error:
            faults["refused"] += 1
            print(f"kill {number} of {name}: {error}", file=sys.stderr)
            continue
        found = state(place)
        wrong = [key for key in expected if found.get(key) != expected[key]]
        if wrong or len(found) != size:
            faults["different"] += 1
            print(f"kill {number} of {name}: {wrong[:5]}, {len(found)} of {size} files and columns", file=sys.stderr)
        if left := leftovers(place):
            faults["left"] += 1
            print(f"kill {number} of {name} left {left[:3]}", file=sys.stderr)
        shutil.rmtree(place)
    print(f"killed: {dict(killed)}; ended before: {dict(after)}; keys compared: "
          f"{ {name: len(v[2]) for name, v in verbs.items()} }", file=sys.stderr)  # fmt: skip
    return faults


def writers(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Let several processes add scopes to one dataset while two threads read."""
    faults: Counter[str] = Counter(doubled=0, lost=0, stale=0, refused=0)
    logs = [[_message(scope=f"w{w}s{s}", id=f"{i}") for s in range(3) for i in range(40)] for w in range(count)]
    (work / "first.jsonl").write_text(json.dumps(_message(scope="first", id="0")))
    done(work, "ingest", "first.jsonl", "--into", "log", *HASHING)
    ended, seen = threading.Event(), list[list[int]]()

    def read() -> None:
        counts: list[int] = []
        while not ended.is_set():
            counts.append(MemoryStore.open(work / "store").table("turns").count_rows())
        seen.append(counts)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    running = []
    for w, log in enumerate(logs):
        (work / f"{w}.jsonl").write_text("\n".join(map(json.dumps, log)))
        running.append(command(work, "ingest", f"{w}.jsonl", "--into", "log", *HASHING))
    for process in running:
        out, _ = process.communicate()
        if process.returncode:
            faults["refused"] += 1
            print(f"writer: {out[-500:]}", file=sys.stderr)
    ended.set()
    for reader in readers:
        reader.join()
    turns = MemoryStore.open(work / "store").table("turns").to_arrow()["key"].to_pylist()
    faults["doubled"] = len(turns) - len(set(turns))
    faults["lost"] = 1 + sum(map(len, logs)) - len(set(turns))
    faults["stale"] = sum(b < a for counts in seen for a, b in itertools.pairwise(counts))
    return faults


def same(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Let four processes add messages to the same two scopes of one dataset, round by round, while a thread reads."""
    faults: Counter[str] = Counter(lost=0, doubled=0, torn=0, told=0)
    multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
    kept, ended = {"a/first"}, threading.Event()
    (work / "first.jsonl").write_text(json.dumps(_message(id="first")))
    done(work, "ingest", "first.jsonl", "--into", "log", *HASHING)

    def read() -> None:
        store = MemoryStore.open(work / "store")
        while not ended.is_set():
            try:
                log = store.dataset("log")
                faults["torn"] += log.sessions["n_turns"].sum() != log.turns.height
            except MemlabError as error:
                faults["torn"] += 1
                print(f"reader: {error}", file=sys.stderr)

    def write(job: tuple[int, int]) -> None:
        ids = [f"{job[0]}-{job[1]}-{i}" for i in range(100)]
        name = f"{job[0]}-{job[1]}.jsonl"
        (work / name).write_text("\n".join(json.dumps(_message(scope=s, id=i)) for s in "ab" for i in ids))
        time.sleep(rng.random() / 10)
        try:
            if _fresh(work, "ingest", name, "--into", "log", *HASHING):
                kept.update(f"{s}/{i}" for s in "ab" for i in ids)
        except RuntimeError:
            faults["told"] += 1

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(4) as writers:
        for number in range(count):
            list(writers.map(write, [(number, w) for w in range(4)]))
    ended.set()
    reader.join()
    turns = MemoryStore.open(work / "store").dataset("log").turns["turn_id"].to_list()
    faults["lost"], faults["doubled"] = len(kept - set(turns)), len(turns) - len(set(turns))
    return faults


def _message(**changes: Any) -> dict[str, Any]:
    return {"scope": "a", "session": "s", "sender": "Ann", "role": "user", "text": "I like tea.", "id": "1"} | changes


LOCOMO = {
    "sample_id": "c",
    "conversation": {"session_1_date_time": "1:56 pm on 8 May, 2023",
                     "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I moved.", "blip_caption": "a box"}]},
    "qa": [{"question": "When?", "answer": "May", "evidence": ["D1:1"], "category": 2}],
    "session_summary": {"session_1_summary": "Ann moved."},
    "observation": {"session_1_observation": {"Ann": [["Ann moved.", "D1:1"]]}},
}  # fmt: skip
HAYSTACK = {
    "question_id": "q", "question_type": "multi-session", "question": "How many?", "answer": 2,
    "question_date": "2023/05/30 (Tue) 23:40", "haystack_dates": ["2023/05/20 (Sat) 02:21"],
    "haystack_session_ids": ["x"], "answer_session_ids": ["x"],
    "haystack_sessions": [[{"role": "user", "content": "one", "has_answer": True}]],
}  # fmt: skip
ASKED = {"scope": "a", "question": "What?", "answer": "tea", "evidence": ["1"], "timestamp": 1.7e9, "stale": []}
FILES = {
    "chatlog": "\n".join(map(json.dumps, ({"memlab": {"language": "en"}}, _message(), _message(id="2"), ASKED))),
    "locomo": json.dumps([LOCOMO]),
    "longmemeval": json.dumps([HAYSTACK]),
    "beam": json.dumps([{"batch_number": 1, "turns": [[{"role": "user", "content": "x", "id": 1}]]}]),
    "realtalk": json.dumps({"name": {"speaker_1": "E", "speaker_2": "F"}, "session_1": [{"clean_text": "x"}]}),
    "convomem": json.dumps({"evidence_items": [{"question": "x", "answer": "y", "conversations": []}]}),
    "membench": json.dumps({"simple": {"roles": [{"tid": 0, "message_list": [[{"user": "x"}]]}]}}),
}
EXPORTS = Path(__file__).parents[1] / "tests" / "datasets" / "exports"
FILES |= {path.relative_to(EXPORTS).as_posix(): path.read_text("utf-8") for path in EXPORTS.rglob("*.*")}
SETTINGS = (
    'store = "s"\nseed = 1\n[llm.services.a]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n[index]\nservice = "a"\n'
)
PIPELINES = ("bm25(k=50) | mmr(k=10, lambda_=0.5)", "combsum + late | learned(model='x') | dpp(k=5)", "hybrid(k=3)")
JUNK = ("[" * 2_000, "9" * 5_000, '"' * 99, "\\ud800", "\x00", "null", "1e999", "-1", '""', "{}", "\u2028", "\x1b",
        "é", "NaN")  # fmt: skip


def mutated(text: str, rng: random.Random) -> bytes:
    """Change one to three places of a text: a piece dropped, doubled or made of junk, or a byte of another."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice((0, 1, 1, 3, 12)))
        text = text[:start] + rng.choice((*JUNK, "", text[start:end] * 2)) + text[end:]
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if raw and rng.random() < 0.2:
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return bytes(raw)


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {seconds} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def beginning(path: Path, turns: int) -> None:
    """Write a chat log of the first sessions of one memory of the sample."""
    data = memlab.sample(["owen"], turns=turns)
    kept = {*data.turns["turn_id"], *data.questions["query_id"]}
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()[1:]]
    named = [row for row in rows if row.get("query_id", f"{row['scope']}/{row.get('id')}") in kept]
    path.write_text("".join(json.dumps(row) + "\n" for row in named), encoding="utf-8")


def inputs(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Read mutated files, settings, pipelines, models, and answers of services and memories."""
    from memlab.llm.reply import read
    from memlab.summaries.asking import Session as Answer

    file, model = work / "input", work / "m.safetensors"
    beginning(work / "log.jsonl", 60)
    done(work, "train", "log.jsonl", *HASHING[2:], "--out", model.name)
    whole = model.read_bytes()
    said = json.dumps({"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "usage": {}})
    rows = json.dumps([{"text": "tea", "score": 1.5, "sources": ["1"], "id": "x"}])

    def load(format: str) -> None:
        shutil.rmtree(work / "side", ignore_errors=True)
        place = work / Path(format).name if "." in format else file
        place.write_bytes(mutated(FILES[format], rng))
        how, known = rng.choice(("raise", "quarantine")), format if format in datasets.FORMATS else None
        datasets.load(place, format=rng.choice((None, known)), on_error=how, quarantine_dir=work / "side")

    def setting() -> None:
        (work / "memlab.toml").write_bytes(mutated(SETTINGS, rng))
        settings(directory=work)

    def weights() -> None:
        raw = bytearray(whole)
        for _ in range(3):
            raw[rng.randrange(min(len(raw), rng.choice((9, 500, len(raw)))))] = rng.randrange(256)
        model.with_name("x.safetensors").write_bytes(bytes(raw[: rng.choice((len(raw), rng.randrange(len(raw))))]))
        Model.load(model.with_name("x.safetensors"))

    def service() -> None:
        read(mutated(said, rng), Answer)

    def memory() -> None:
        try:
            answer = json.loads(mutated(rows, rng))
        except (ValueError, RecursionError):
            return
        read_rows(rows_of(answer, 10), {"1": "a/s/1"}, 10)

    kinds: dict[str, Callable[[], Any]] = {name: lambda name=name: load(name) for name in FILES}  # type: ignore[misc]
    kinds |= {"settings": setting, "service": service, "memory": memory, "model": weights}
    kinds["pipeline"] = lambda: pipelines.pipeline(mutated(rng.choice(PIPELINES), rng).decode("utf-8", "replace"))
    faults: Counter[str] = Counter(foreign=0, hangs=0)
    shown: set[str] = set()
    for number in range(count):
        kind = list(kinds)[number % len(kinds)]
        try:
            with limited(SECONDS):
                kinds[kind]()
        except (MemlabError, Failure):
            pass
        except TimeoutError:
            faults["hangs"] += 1
            print(f"input {number} ({kind}) hangs", file=sys.stderr)
        except Exception as error:
            faults["foreign"] += 1
            if (what := f"{kind}: {type(error).__name__}: {str(error)[:100]}") not in shown:
                shown.add(what)
                print(f"input {number} {what}", file=sys.stderr)
    return faults


LOAD = r"""
import json, re, sys
from memlab import datasets
# Not that of getrusage, which begins with what the process that started this one takes.
def peak(): return int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) * 1024
datasets.load(sys.argv[1], format=sys.argv[3])
before = peak()
datasets.load(sys.argv[2], format=sys.argv[3])
print(json.dumps(peak() - before))
"""


def lines(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Load files of so many MB in one line: no more memory than 20 times the file, above what a small one takes."""
    faults: Counter[str] = Counter(large=0)
    for format, record in (("locomo", LOCOMO), ("longmemeval", HAYSTACK)):
        small, large = work / "small.json", work / "large.json"
        small.write_text(json.dumps([record]))
        size, told = count * 1_000_000, json.dumps(record)
        ids = "sample_id" if format == "locomo" else "question_id"
        records = [record | {ids: f"{i}"} for i in range(size // len(told))]
        large.write_text(json.dumps(records))
        begun = time.perf_counter()
        loaded = subprocess.run(
            [sys.executable, "-c", LOAD, small, large, format], capture_output=True, text=True, check=True
        )
        ratio = json.loads(loaded.stdout.splitlines()[-1]) / large.stat().st_size
        print(f"{format}: {ratio:.1f} times the file, {time.perf_counter() - begun:.1f} s", file=sys.stderr)
        faults["large"] += ratio > 20
    return faults


def texts(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Put hostile text in every field, and look for it raw in what is printed and written, opened in Chromium too."""
    faults: Counter[str] = Counter(executed=0, escapes=0, formulas=0, paths=0)
    for number in range(count):
        place = work / f"text-{number}"
        place.mkdir()
        a, b = rng.choice(HOSTILE), rng.choice(HOSTILE)
        log = [_message(scope=h, session=h + a, sender=h, text=f"{h} I moved to {b}.", caption=h, id=f"{h}{i}",
                        timestamp=f"2026-03-0{i + 1}T09:00Z")
               for h in HOSTILE for i in range(3)]  # fmt: skip
        log += [ASKED | {"scope": h, "question": f"{h} Where?", "answer": h, "type": h, "evidence": [f"{h}1"]}
                for h in HOSTILE]  # fmt: skip
        name = f"{HOSTILE[2]}log.jsonl"
        (place / name).write_text("\n".join(map(json.dumps, log)))
        printed = [
            done(place, "ingest", name, *HASHING),
            done(place, "index", *HASHING, *NOW),
            *(done(place, verb, *HASHING[2:], "--scope", h, codes=(0, 2)) for verb in LISTS for h in HOSTILE[:2]),
            done(place, "info", *HASHING),
            done(place, "evaluate", name, *HASHING[:2], "--pipeline", "bm25", "--out", "out"),
            done(place, "compare", name, *HASHING[:2], "--system", "bm25", "--system", "dense", "--out", "page"),
        ]
        faults["escapes"] += sum("\x1b]" in out or "\x1b[31" in out or "\x07" in out for out in printed)
        for path in (p for p in place.rglob("*") if p.is_file() and "store" not in p.relative_to(place).parts[:1]):
            text = path.read_text(errors="replace") if path.suffix in WRITTEN else ""
            if any(f"{folder}/" in text for folder in (place, Path.home())):
                faults["paths"] += 1
                print(f"{path.name} holds a path", file=sys.stderr)
            if path.suffix == ".csv":
                with path.open(newline="") as table:
                    cells = [cell for row in csv.reader(table) for cell in row]
                if raw := [c for c in cells if c[:1] in ("=", "@", "+", "-", "\t", "\r") and not _number(c)]:
                    faults["formulas"] += 1
                    print(f"{path.name} holds {raw[0]!r}", file=sys.stderr)
            if path.suffix == ".html":
                faults["executed"] += _runs(path)
    return faults


def _number(cell: str) -> bool:
    with suppress(ValueError):
        return float(cell) is not None
    return False


def _runs(page: Path) -> bool:
    """Open a page in Chromium, and say whether a script of the data ran."""
    from memlab.figures._browser import find

    profile = tempfile.mkdtemp()
    options = (f"--user-data-dir={profile}", "--headless", "--no-sandbox", "--disable-gpu",
               "--virtual-time-budget=3000")  # fmt: skip
    done = subprocess.run([find(), *options, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120)
    shutil.rmtree(profile, ignore_errors=True)
    if "<html" not in done.stdout:
        raise RuntimeError(f"{page.name} was not opened: {done.stderr[-500:]}")
    head = done.stdout[done.stdout.index("<html") :]
    return "pwned" in head[: head.index(">")]


def secrets(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Redirect requests that carry a key to another port, by each kind of redirect."""
    faults: Counter[str] = Counter(keys=0)
    got: list[str] = []

    def serve(answer: Callable[[BaseHTTPRequestHandler], None]) -> ThreadingHTTPServer:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer(self)

            do_GET = do_POST

            def log_message(self, *args: object) -> None:
                """Stay quiet."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def other(request: BaseHTTPRequestHandler) -> None:
        got.append(str(request.headers))
        request.send_error(500)

    thief = serve(other)
    os.environ["TORTURE_KEY"] = KEY
    for status in (301, 302, 303, 307, 308) * count:

        def away(request: BaseHTTPRequestHandler, status: int = status) -> None:
            request.send_response(status)
            request.send_header("Location", f"http://127.0.0.1:{thief.server_port}/v1/x")
            request.end_headers()

        server = serve(away)
        url = f"http://127.0.0.1:{server.server_port}/v1"
        with suppress(MemlabError):
            llm.embeddings(llm.Service("x", url, "m", api_key_env="TORTURE_KEY", max_retries=0), ["a"])
        server.shutdown()
    faults["keys"] = sum(KEY in headers for headers in got)
    thief.shutdown()
    return faults


PARTS = {
    "kills": kills,
    "writers": writers,
    "same": same,
    "inputs": inputs,
    "lines": lines,
    "texts": texts,
    "secrets": secrets,
}


def run(counts: dict[str, int], *, seed: int = 0) -> pl.DataFrame:
    """Run parts: a row each of ``part``, ``count``, ``faults``, ``what`` and ``seconds``."""
    rows = []
    for name, count in counts.items():
        with tempfile.TemporaryDirectory(prefix=f"torture-{name}-") as folder:
            begun = time.perf_counter()
            faults = PARTS[name](count, random.Random(seed), Path(folder))
            what = ", ".join(f"{n} {kind}" for kind, n in faults.items())
            rows.append((name, count, sum(faults.values()), what, round(time.perf_counter() - begun, 1)))
    return pl.DataFrame(rows, schema=["part", "count", "faults", "what", "seconds"], orient="row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, part in PARTS.items():
        parser.add_argument(f"--{name}", type=int, default=0, help=part.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    chosen = vars(parser.parse_args())
    seed = chosen.pop("seed")
    with pl.Config(tbl_width_chars=200, fmt_str_lengths=200):
        print(table := run({name: count for name, count in chosen.items() if count}, seed=seed))
    raise SystemExit(bool(table["faults"].sum()))


if __name__ == "__main__":
    main()
