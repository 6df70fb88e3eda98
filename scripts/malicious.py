"""Inputs that are mutated and servers that misbehave: two parts of ``torture.py``."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import socketserver
import threading
import time
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from memlab import Dataset, MemoryStore, datasets, evaluate, llm, memories, pipeline, sample
from memlab.config import settings
from memlab.errors import MemlabError
from memlab.figures import write_gallery
from memlab.memories.returned_rows import (
    Failure,
    list_returned_rows,
    select_usable_rows_and_problems,
)
from memlab.rerank.learned_reranker import BUNDLED_MODEL
from memlab.rerank.network_ensemble import Model
from memlab.summaries.summary_prompts import Session

JUNK = (b"[" * 2_000, b"9" * 5_000, b'"' * 99, b"\\ud800", b"\0", b"null", b"1e999", b"-1", b'""', b"{}", b"[]", b"5",
        b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\x1b", b"\xe9", b"NaN", b"../", b"")  # fmt: skip


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """Change one to three places: a value of JSON or some bytes are dropped, doubled or made of junk."""
    for _ in range(rng.randint(1, 3)):
        values = [
            m.span() for m in re.finditer(rb'(?<=: )("[^"]*"|[\w.]+|\[[^\[\]]*\])', raw[:100_000])
        ]
        first = rng.randrange(min(len(raw), rng.choice((9, 500, len(raw)))) + 1)
        start, end = (
            rng.choice(values)
            if values and rng.random() < 0.4
            else (first, first + rng.choice((0, 1, 3, 12)))
        )
        raw = (
            raw[:start]
            + rng.choice((*JUNK, raw[start:end] * 2, rng.randbytes(end - start)))
            + raw[end:]
        )
    return raw if rng.random() < 0.9 else raw[: rng.randrange(len(raw) + 1)]


def inputs(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Read mutated files of all formats, rankings, rows, settings, models, answers, recordings, sidecars and stores."""
    data, stored, mutate = sample(["owen"], turns=60), work / "stored", partial(mutated, rng=rng)
    MemoryStore.open(stored).ingest(data)
    MemoryStore.open(stored).search.create_indexes()
    (work / "store").touch()

    def load(path: Path) -> None:
        """Read a file, or an archive of it that is mutated too."""
        if rng.random() < 0.2:
            archive = path.with_name("export.zip")
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
                file.write(path, rng.choice((path.name, f"../{path.name}")))
            archive.write_bytes(rng.choice((bytes, mutate))(archive.read_bytes()))
            path = archive
        datasets.load(
            path, on_error=rng.choice(("raise", "quarantine")), quarantine_dir=path.parent
        )

    def rows(path: Path) -> None:
        with suppress(ValueError, RecursionError):
            select_usable_rows_and_problems(
                list_returned_rows(json.loads(path.read_bytes()), 10), {"1": "a/s/1"}, 10
            )

    def store(path: Path) -> None:
        place = shutil.copytree(stored, path.with_name("copy"))
        victim = rng.choice(sorted(file for file in place.rglob("*") if file.is_file()))
        victim.write_bytes(mutate(victim.read_bytes()))
        opened = MemoryStore.open(place)
        opened.dataset(data.name)
        opened.search.by_text(["tea"], dataset=data.name, scopes=["owen"], k=3)

    readers: dict[str, Callable[[Path], Any]] = {
        "run.trec": lambda path: memories.run_to_returned_texts(
            evaluate.read_run(path, "turn"), data, "x"
        ),
        "ids.json": lambda path: memories.read_ranking(path, data),
        "texts.jsonl": lambda path: memories.read_ranking(path, data),
        "rows.json": rows,
        "memlab.toml": lambda path: settings(directory=path.parent),
        "pipeline.txt": lambda path: pipeline(path.read_text(errors="replace").strip()),
        "reply.json": lambda path: llm.chat_completions.read_completion(path.read_bytes(), Session),
        "recorded.jsonl": lambda path: llm.recorded_answers.read_recorded_rows_or_empty(path),
        "sidecar.json": lambda path: write_gallery(path.parent),
        BUNDLED_MODEL.name: Model.load,
        "store": store,
    }
    folders = (
        Path(__file__).with_name("formats"),
        Path(__file__).parents[1] / "tests" / "datasets" / "exports",
    )
    seeds = [
        BUNDLED_MODEL,
        work / "store",
        *(path for folder in folders for path in sorted(folder.rglob("*.*"))),
    ]
    faults: Counter[str] = Counter(foreign=0, hangs=0)
    signal.signal(
        signal.SIGALRM, signal.default_int_handler
    )  # no code under test catches KeyboardInterrupt
    for number in range(count):
        seed = seeds[number % len(seeds)]
        shutil.rmtree(work / "in", ignore_errors=True)
        (work / "in").mkdir()
        path = work / "in" / seed.name
        path.write_bytes(mutate(seed.read_bytes()))
        signal.alarm(10)
        try:
            with suppress(MemlabError, Failure):
                readers.get(seed.name, load)(path)
        except BaseException as error:
            faults["hangs" if isinstance(error, KeyboardInterrupt) else "foreign"] += 1
            print(f"input {number} ({seed.name}): {traceback.format_exc()[-1500:]}")
    signal.alarm(0)
    return faults


KEY = "sk-torture-0123456789"
GOOD = {
    "memory": b'{"rows": [{"text": "tea", "score": 1.0, "source_ids": ["turn-1"], "query": 0}]}',
    "model": b'{"choices": [{"message": {"content": "{\\"summary\\": \\"tea\\"}"}, "finish_reason": "stop"}], '
             b'"usage": {"prompt_tokens": 1, "completion_tokens": 1}}',
    "embeddings": b'{"data": [{"index": 0, "embedding": [1.0, 0.0]}]}',
}  # fmt: skip
Mode = Callable[
    [bytes, bytes, str], Iterable[bytes]
]  # parts of an answer, of a good one, the request, an address


def sent(body: bytes, *headers: str, status: str = "200 OK") -> list[bytes]:
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    )
    return ["\r\n".join((*lines, "", "")).encode() + body]


def raw(body: bytes, *headers: str, status: str = "200 OK") -> Mode:
    return lambda *_: sent(body, *headers, status=status)


def slowly(head: bytes, part: bytes, pause: float, *_: Any) -> Iterator[bytes]:
    """Send a head, and then a part over and over, until nobody listens."""
    yield head
    while True:
        yield part
        time.sleep(pause)


def put(value: bytes, place: bytes) -> Mode:
    """Put a value in places of a good answer."""
    return lambda good, *_: sent(re.sub(place, lambda _: value, good))


EACH = rb'(?<=: )("[^"]*"|\[?[\d.]+)(?=[,}])'
CONTENT = rb'(?<="text": )"tea"|\[1\.0, 0\.0\]|(?<=\{\\"summary\\": )\\"tea\\"'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED, LENGTH = HEAD + b"Transfer-Encoding: chunked\r\n\r\n", HEAD + b"Content-Length: "
DEEP, BOMB = b"[" * 200_000, gzip.compress(b"[" * 300_000_000, 1)
ENDLESS = {"header": (HEAD + b"X: ", b"x"), "headers": (HEAD, b"X: y\r\n"), "body": (HEAD + b"\r\n[", b" "),
           "100": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "length": (LENGTH + b"1000000000000\r\n\r\n[", b" "),
           "chunks": (CHUNKED, b"1\r\n \r\n"), "chunk size": (CHUNKED, b"0")}  # fmt: skip
MODES: dict[str, Mode] = {
    "good": lambda good, *_: sent(good),
    "silent": partial(slowly, b"", b"", 60.0),
    **{f"endless {what}": partial(slowly, head, 20_000 * part, 0.0) for what, (head, part) in ENDLESS.items()},
    **{f"trickling {what}": partial(slowly, head, part, 0.5) for what, (head, part) in ENDLESS.items()},
    **{f"sends {part[-20:]!r}": lambda *_, part=part: [part]
       for part in (b"", b"SSH-2.0-x\r\n", HEAD[:30], CHUNKED + b"7fffffffffffffff\r\n[")},
    **{f"length {n[:9]!r}": lambda good, *_, n=n: [LENGTH + n + b"\r\n\r\n" + good]
       for n in (b"-5", b"9" * 5000, b"1\r\nContent-Length: 9", b"9999")},
    **{f"{kind} of {len(body)} bytes": raw(body, f"Content-Encoding: {kind}")
       for kind, body in (("gzip", BOMB), ("gzip, gzip", gzip.compress(BOMB, 1)),
                          ("deflate", zlib.compress(b" " * 300_000_000, 1)), ("br", b"\xcf\xff\xff\x7f" + b"\0" * 100),
                          ("zstd", b"\x28\xb5\x2f\xfd\xa4" + b"\xff" * 100))},
    "gzip bomb of an error": raw(BOMB, "Content-Encoding: gzip", status="500 No"),
    **{f"redirect {n}": lambda _, __, away, n=n: sent(b"", f"Location: {away}/away", status=f"{n} Elsewhere")
       for n in (301, 302, 303, 307, 308)},
    **{f"redirect to {place!r}": raw(b"", f"Location: {place}", status="307 Elsewhere")
       for place in ("file:///etc/passwd", "\x00//[")},
    **{f"echo, {status}": lambda _, got, __, status=status, words=words: sent(b"x" * words + got, status=status)
       for status, words in (("200 OK", 0), ("400 No", 150), ("401 No", 0))},
    **{f"429, {seconds}": raw(b"{}", f"Retry-After: {seconds}", status="429 Wait") for seconds in ("1000000", "nan")},
    **{status: raw(b"\x1b]0;x\x07\r\n", status=status) for status in ("503 Busy", "999 \x1b[31m", "204 No", "500 No")},
    **{f"values {value[:9]!r}": put(value, EACH)
       for value in (DEEP, b"9" * 5000, b"1e999", b"NaN", b"9223372036854775808", b"-1", b"null", b"[[]]")},
    **{f"content {value[:9]!r}, {len(value)}": put(value, CONTENT)
       for value in (DEEP, b'"\\ud800"', b'"\\u0000\\u202e\\u001b[31m"', b'"' + b"x" * 15_000_000 + b'"',
                     b"[" + b"1," * 7_500_000 + b"1]", b'"Bearer %s"' % KEY.encode())},
    **{f"body {body[:20]!r}": raw(body)
       for body in (DEEP, b"5", b"<html><script>alert(1)</script>", b'{"rows": "\xff\xfe", "data": "\xff"}',
                    b"{" + b",".join(b'"%d": 1' % i for i in range(1_000_000)) + b"}",
                    b'{"rows": [' + b"{}," * 1_000_000 + b'{}], "data": [' + b"{}," * 1_000_000 + b"{}]}")},
    "UTF-16": lambda good, *_: sent(good.decode().encode("utf-16")),
}  # fmt: skip


def listen(answer: Callable[[bytes], Iterable[bytes]]) -> tuple[str, list[bytes]]:
    """Serve on loopback what a function gives for a request; give the address, and a list of what is asked there."""
    got: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, ValueError):
                head = b"".join(takewhile(bytes.strip, self.rfile))
                got.append(head.partition(b"\r\n")[0])
                size = re.search(rb"(?i)content-length: *(\d+)", head)
                for part in answer(
                    head + b"\r\n" + (self.rfile.read(int(size[1])) if size else b"")
                ):
                    self.wfile.write(part)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}", got


def peak() -> int:
    """Give the most memory that this process has taken, in bytes."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]


def ask(kind: str, mode: str, url: str) -> Counter[str]:
    """Ask a server once; count what is wrong with what comes of it."""
    data = sample(["owen"], turns=60)
    data = Dataset("one", data.format, data.turns, data.sessions, data.questions.head(1))
    service = llm.Service(
        "torture", f"{url}/v1", "m", api_key_env="TORTURE_KEY", timeout=3, max_retries=0
    )
    memory, request = (
        memories.HttpMemory(url, timeout=3),
        llm.Request("t", 1, ("x",), "Summarise.", Session),
    )
    calls: dict[str, Callable[[], Any]] = {
        "memory": lambda: memories.collect(
            memory, data, name="m", k=5, timeout=3
        ).problems.to_dicts(),
        "model": lambda: llm.ask([request], service),
        "embeddings": lambda: llm.embed_texts(service, ["tea"]).shape,
    }
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    begun, foreign = time.perf_counter(), False
    try:
        told = str(calls[kind]())
    except BaseException as error:
        told, foreign = f"{type(error).__name__}: {error}", not isinstance(error, MemlabError)
    took, size = time.perf_counter() - begun, peak()
    limit = (
        8 if kind == "embeddings" else 11
    )  # three seconds a call, of which the others make two, and five
    found = Counter(foreign=foreign, late=took > limit, large=size > 1 << 30, leaked=KEY in told)
    if found.total():
        print(f"{kind}, {mode}: {took:.1f} s, {size / 1e6:.0f} MB, {told[:500]!r}")
    return found


def servers(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Ask a memory, a model and embeddings that misbehave in each mode, in a process of its own."""
    faults: Counter[str] = Counter(foreign=0, late=0, large=0, leaked=0, arrived=0)
    os.environ["TORTURE_KEY"] = os.environ["MEMLAB_MEMORY_TOKEN"] = KEY
    address, arrived = listen(lambda _: sent(b""))
    first = re.compile(
        rb"POST \S*/(reset|ingest|wait)\b"
    )  # what a memory does before its first search goes well
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for kind, good in GOOD.items():
            for name, mode in [("first", MODES["good"]), *MODES.items()]:
                url, _ = listen(
                    lambda got, m=mode, g=good: (
                        sent(b"{}") if first.match(got) else m(g, got, address)
                    )
                )
                found = pool.apply_async(ask, (kind, name, url)).get(120)
                faults.update(found if name != "first" else {})  # what is imported takes seconds
    faults["arrived"] = len(arrived)
    return faults
