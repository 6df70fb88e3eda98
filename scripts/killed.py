"""Verbs that are killed at a drawn time and run again: a part of ``torture.py``."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import re
import shlex
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from malicious import listen, peak

from memlab.cli import main as memlab
from memlab.datasets import fetch
from memlab.store import MemoryStore
from memlab.store.table_schemas import INDEX_TABLES, TABLES

ROOT = Path(__file__).parents[1]
SAMPLE = [
    json.loads(line)
    for line in (ROOT / "data/sample/sample.jsonl").read_text("utf-8").splitlines()[1:]
]
KILLED = (-signal.SIGPROF, -signal.SIGALRM, -signal.SIGKILL)
"""Exit codes of a process that a timer ended, its own or that of who waits: nobody handles these."""
HASHING = "--encoder hashing:64 --store store"
STATED_EVERY = 20
"""Kills after which what was found so far is printed."""
TIMES = re.compile(r"(\d+) bytes, ([\d.]+) s of the processor, ([\d.]+) s\n*$")


@dataclass(frozen=True)
class Ready:
    """A folder in which verbs are killed: the days that its store has, and whether it is indexed."""

    days: int
    is_indexed: bool = False


FILLED, INDEXED = Ready(3), Ready(6, is_indexed=True)
VERBS: dict[str, Ready] = {
    f"ingest log.jsonl --into other {HASHING}": FILLED,
    f"index {HASHING} --now 2026-11-01": FILLED,
    "optimize --store store": FILLED,
    "ingest log.jsonl --encoder hashing:32 --store store": FILLED,
    f"evaluate log.jsonl {HASHING} --out runs --pipeline bm25": FILLED,
    f"evaluate log.jsonl {HASHING} --out runs --pipeline \"tree(over='weeks')\"": FILLED,
    "train log.jsonl --store store --out m.safetensors": FILLED,
    f"compare log.jsonl {HASHING} --system bm25 --system dense --out page": FILLED,
    f"facts {HASHING} --undo OLD NEW": INDEXED,
    "fetch locomo --out data": FILLED,
}
"""What is killed, and where; ``OLD`` and ``NEW`` are the first pair of the log of facts."""


def _verb(
    folder: Path, arguments: list[str], timer: int, seconds: float, before: Callable[[], None]
) -> None:
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(os.open(f"{folder}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    sys.argv = ["memlab", *arguments]
    before()
    begun, used = time.perf_counter(), time.process_time()
    if seconds:
        signal.setitimer(timer, seconds)
    try:
        memlab()
    finally:
        used, whole = time.process_time() - used, time.perf_counter() - begun
        print(f"\n{peak()} bytes, {used:.4f} s of the processor, {whole:.4f} s")


def _nothing() -> None:
    pass


def run(
    folder: Path,
    verb: str,
    seconds: float = 0,
    *,
    timer: int = signal.ITIMER_PROF,
    before: Callable[[], None] = _nothing,
    longest: float | None = None,
) -> tuple[int, str]:
    """Run a verb in a process that has imported what is slow to import, and kill it after some seconds.

    Gives its exit code, one of ``KILLED`` where it was, and what it printed, with the most memory
    and the time that it took at the end.

    :param timer: whether the seconds are those of the processor or of the clock.
    :param before: called in that process.
    :param longest: seconds of the clock after which it is ended whatever it does, as a server is
        that waits.
    """
    out = Path(f"{folder}.out")
    out.write_text("")
    process = multiprocessing.get_context("forkserver").Process(
        target=_verb, args=(folder, shlex.split(verb), timer, seconds, before)
    )
    process.start()
    process.join(longest)
    if process.is_alive():
        process.kill()
        process.join()
    if process.exitcode not in (0, *KILLED):
        print(f"memlab {verb!r}: {out.read_text()[-2000:]!r}")
    return process.exitcode or 0, out.read_text()


def state(folder: Path) -> dict[str, Any]:
    """Give what a folder holds: columns of tables in order of their keys, files by name; caches and clocks apart."""
    # what is drawn of times and sizes is another each time
    files = [
        p
        for p in folder.rglob("*")
        if p.is_file() and "trade-off" not in p.name and "store" not in p.parts
    ]
    whole: dict[str, Any] = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    store = MemoryStore.open(folder / "store")
    for name in set(store.database.table_names()).intersection(TABLES):
        rows = pl.DataFrame(pl.from_arrow(store.table(name).to_arrow())).select(
            ~pl.selectors.datetime()
        )
        if name in (
            "runs",
            "rankings",
        ):  # named by the store's versions too: a write that was cut off is one more
            rows = rows.drop("key", "run_id", "provenance", strict=False)
        if (
            name in INDEX_TABLES.values()
        ):  # rows of an attempt that was cut off count for nothing, and go after a day
            counted = store.table("index_states").to_arrow()["generation"].to_pylist()
            rows = rows.filter(pl.col("generation").is_in(counted))
        rows = rows.sort("key" if "key" in rows.columns else rows.columns)
        whole |= {f"{name}.{column.name}": str(column.to_list()) for column in rows}
    return whole | {"files and columns": len(whole)}


def _make_ready(place: Path, about: Ready) -> None:
    """Fill the store of a folder with the first days of a conversation."""
    place.mkdir()
    days = tuple(f"{day}." for day in range(1, about.days + 1))
    kept = []
    for row in SAMPLE:
        turns = row.get("evidence", [row.get("id", "")])
        if row["scope"] == "owen" and all(turn.startswith(days) for turn in turns):
            kept.append(row)
    (place / "log.jsonl").write_text("\n".join(map(json.dumps, kept)))
    run(place, f"ingest log.jsonl {HASHING}")
    if about.is_indexed:
        run(place, f"index {HASHING} --now 2026-11-01")


def _name_pair(verb: str, ready: Path) -> str:
    """Put the first pair of the log of facts where a verb takes one."""
    if "OLD" not in verb:
        return verb
    _, printed = run(ready, f"facts {HASHING} --log --json")
    pair = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    return verb.replace("OLD", shlex.quote(pair["old"])).replace("NEW", shlex.quote(pair["new"]))


def _serve_file() -> Callable[[], None]:
    """Serve a file in small parts; give what makes it the one that ``fetch locomo`` downloads."""
    body = random.Random(0).randbytes(400_000)

    def answer(request: bytes) -> Iterator[bytes]:
        asked = re.search(rb"(?i)range: bytes=(\d+)-", request)
        begun, status = 0, "200 OK"
        if asked:
            begun, status = int(asked[1]), "206 Partial Content"
        if begun >= len(body):
            yield b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n"
            return
        yield f"HTTP/1.1 {status}\r\nContent-Length: {len(body) - begun}\r\n\r\n".encode()
        for first in range(begun, len(body), 4_000):
            yield body[first : first + 4_000]
            time.sleep(0.002)

    address, _ = listen(answer)
    return partial(_publish, f"{address}/locomo10.json", hashlib.sha256(body).hexdigest())


def _publish(url: str, sha256: str) -> None:
    fetch.SOURCES["locomo"] = fetch.Published(url, "none", "", sha256)


def kills(
    count: int, rng: random.Random, work: Path, *, only: Collection[str] = ()
) -> Counter[str]:
    """Kill verbs at a time that is drawn, run them again, and compare with what was never disturbed.

    :param only: names of the verbs, such as ``index``; by default all.
    """
    faults: Counter[str] = Counter(different=0, left=0, refused=0)
    struck, tried = Counter[str](), Counter[str]()
    published, ready, undisturbed = _serve_file(), dict[Ready, Path](), []
    chosen = [verb for verb in VERBS if not only or verb.split()[0] in only]
    for number, template in enumerate(chosen[:count]):
        about = VERBS[template]
        if about not in ready:
            ready[about] = work / f"ready-{about.days}"
            _make_ready(ready[about], about)
        verb = _name_pair(template, ready[about])
        # A download waits for its server; the rest is timed by the processor, which others use.
        timer = signal.ITIMER_REAL if verb.startswith("fetch") else signal.ITIMER_PROF
        ends = []
        for again in "ab":
            place = shutil.copytree(ready[about], work / f"{number}{again}")
            _, printed = run(place, verb, before=published)
            ends.append(state(place))
            shutil.rmtree(place)
        used = TIMES.search(printed)
        assert used is not None, printed
        seconds = float(used[3 if timer == signal.ITIMER_REAL else 2])
        # what differs between two runs that nobody disturbed, as random ids do, is not compared
        same = {key: value for key, value in ends[0].items() if ends[1].get(key) == value}
        undisturbed.append((verb, ready[about], timer, seconds, same))
    for number in range(count):
        verb, start, timer, seconds, same = undisturbed[number % len(undisturbed)]
        place = shutil.copytree(start, work / f"kill-{number}")
        code, _ = run(place, verb, rng.random() * seconds, timer=timer, before=published)
        name = verb.split()[0]
        tried[name] += 1
        struck[name] += code in KILLED
        faults["refused"] += bool(run(place, verb, before=published)[0])
        found = state(place)
        wrong = [key for key in same if found.get(key) != same[key]]
        left = [path.name for path in place.rglob("*") if path.suffix in (".partial", ".part")]
        faults.update(different=bool(wrong), left=bool(left))
        if wrong or left:
            print(f"kill {number} of {verb}: {wrong[:5]}, {left[:3]} left")
        shutil.rmtree(place)
        if number % STATED_EVERY == STATED_EVERY - 1 or number == count - 1:
            counted = (f"{name} {struck[name]} of {tried[name]}" for name in tried)
            print(f"struck {', '.join(counted)}: {dict(faults)}", flush=True)
    return faults
