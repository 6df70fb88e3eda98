"""Options of the command line with odd values: a part of ``torture.py``."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import typer
from killed import HASHING, KILLED, SAMPLE, run

from memlab.cli import app

SECONDS = 20
"""Of the processor, after which a verb whose options all happened to fit is ended."""
WAITED = 90
"""Seconds of the clock after which a verb is ended that waits, as ``proxy`` does for who calls it."""
ALTOGETHER = 600
"""Seconds of the clock after which no further verb is tried: what is printed says how many were."""
NUMBERS = (
    *("inf", "-inf", "nan", "-1", "0", "-0.0", "1e400", "1e-320", "9" * 30, "-" + "9" * 30),
    *("1.5", "", " ", "١٢", "0x10", "1_000", "1,5", "1e3", "true", "7\n"),
)
TEXTS = (
    *("", " ", ".", "..", "/", "~", "~nobody-of-that-name/x", "-", "--", "a\nb", "a b", "../x"),
    *("file:///", "file://", "file:relative", "s3://", "db://x", "http://", "://", "/dev/null"),
    *("/proc/self/mem", "x" * 5_000, "\udcff", "é", "e\u0301", "\u202eabc", "%s", "{}", "[", "*"),
    *("owen", "log", "log.jsonl", "store", "none", "None", "2026-13-45", "0001-01-01", "ja", "xx"),
    *("bm25 |", "module:name", "os:getcwd", "minilm", "hashing:0", "hashing:-1", "endpoint:none"),
)
CHOSEN = ("log.jsonl", "store", "hashing:64", "owen", "bm25")
NOT_TRIED = ("fetch",)
"""Verbs that would ask other machines."""


def options(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Run verbs whose options have odd values; each ends well, or with one error in one line."""
    faults: Counter[str] = Counter(foreign=0, many=0)
    ready, ended = work / "ready", 0
    ready.mkdir()
    (ready / "log.jsonl").write_text("\n".join(map(json.dumps, SAMPLE[:80])))
    run(ready, f"ingest log.jsonl {HASHING}")
    verbs: Any = typer.main.get_command(app)
    names = [name for name in sorted(verbs.commands) if name not in NOT_TRIED]
    tried, began = Counter[str](), time.monotonic()
    for number in range(count):
        if time.monotonic() - began > ALTOGETHER:
            break
        name = names[number % len(names)]
        line = shlex.join([name, *_draw(verbs.commands[name], rng)])
        place = shutil.copytree(ready, work / f"run-{number}")
        code, printed = run(place, line, SECONDS, before=_stay_here, longest=WAITED)
        tried[name] += 1
        shutil.rmtree(place, ignore_errors=True)
        ended += code in KILLED
        stated = re.findall("^memlab: .*", printed, re.MULTILINE)
        is_foreign = code not in (0, 1, 2, *KILLED) or "Traceback (most recent" in printed
        is_unclear = code == 2 and len(stated) != 1 and "Usage:" not in printed
        faults.update(foreign=is_foreign, many=is_unclear)
        if is_foreign or is_unclear:
            print(f"option {number}: memlab {line!r} ended with {code}: {printed[-1500:]!r}")
    spent = time.monotonic() - began
    print(f"{tried.total()} of {count} in {spent:.0f} s, {len(tried)} of {len(names)} verbs")
    print(f"{ended} were ended, after {SECONDS} s of the processor or {WAITED} s of the clock")
    return faults


def _stay_here() -> None:
    """Let no name that is drawn be looked for elsewhere."""
    os.environ["HF_HUB_OFFLINE"] = "1"


def _draw(verb: Any, rng: random.Random) -> list[str]:
    """Draw the arguments of a verb: those that it needs, and one to three options with odd values."""
    given = list[str]()
    # Typer has a click of its own, whose classes are not those of the package.
    kinds = {each.name: each.param_type_name for each in verb.params if each.name != "help"}
    listed = [each for each in verb.params if kinds.get(each.name) == "option"]
    for each in verb.params:
        if kinds.get(each.name) == "argument":
            odd = rng.random() < 0.3
            given.append(rng.choice(TEXTS if odd else CHOSEN))
    for each in rng.sample(listed, min(len(listed), rng.randint(1, 3))):
        given.append(rng.choice(each.opts))
        if not each.is_flag:
            given += [_value(each, rng) for _ in range(each.nargs)]
    names = {each.name for each in listed}
    for name, value in (("store", "store"), ("encoder", "hashing:64")):
        if name in names and f"--{name}" not in given:
            given += [f"--{name}", value]
    return given


def _value(option: Any, rng: random.Random) -> str:
    is_number = option.type_descriptor.annotation in (int, float)
    likely = NUMBERS if is_number else TEXTS
    if rng.random() < 0.1:
        likely = (*NUMBERS, *TEXTS, *CHOSEN)
    return rng.choice(likely)
