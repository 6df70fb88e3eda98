"""Options of the command line with odd values: a part of ``torture.py``."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import click
import typer
from killed import HASHING, KILLED, SAMPLE, run

from memlab.cli import app

SECONDS = 20
"""Of the processor, after which a verb whose options all happened to fit is ended."""
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
    verbs = typer.main.get_command(app)
    assert isinstance(verbs, click.Group)
    names = [name for name in sorted(verbs.commands) if name not in NOT_TRIED]
    for number in range(count):
        name = names[number % len(names)]
        line = shlex.join([name, *_draw(verbs.commands[name], rng)])
        place = shutil.copytree(ready, work / f"run-{number}")
        code, printed = run(place, line, SECONDS)
        shutil.rmtree(place, ignore_errors=True)
        ended += code in KILLED
        stated = re.findall("^memlab: .*", printed, re.MULTILINE)
        is_foreign = code not in (0, 1, 2, *KILLED) or "Traceback (most recent" in printed
        is_unclear = code == 2 and len(stated) != 1 and "Usage:" not in printed
        faults.update(foreign=is_foreign, many=is_unclear)
        if is_foreign or is_unclear:
            print(f"option {number}: memlab {line!r} ended with {code}: {printed[-1500:]!r}")
    print(f"{len(names)} verbs, {ended} of {count} were ended after {SECONDS} s")
    return faults


def _draw(verb: click.Command, rng: random.Random) -> list[str]:
    """Draw the arguments of a verb: those that it needs, and one to three options with odd values."""
    given = list[str]()
    listed = [
        each for each in verb.params if isinstance(each, click.Option) and each.name != "help"
    ]
    for each in verb.params:
        if isinstance(each, click.Argument):
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
    is_number = option.type.name in ("integer", "float", "integer range", "float range")
    likely = NUMBERS if is_number else TEXTS
    if rng.random() < 0.1:
        likely = (*NUMBERS, *TEXTS, *CHOSEN)
    return rng.choice(likely)
