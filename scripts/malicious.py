"""Memories, language models and embeddings that misbehave, and the questions that are put to them."""

from __future__ import annotations

import gzip
import json
import os
import re
import socketserver
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

KEY = "sk-torture-0123456789"
KINDS = {"memory": 6.0, "model": 6.0, "embeddings": 3.0}
"""What is asked, and the seconds in which it has to end: 3 for each call, of which the first two make two."""
GOOD: dict[str, Any] = {
    "memory": {"rows": [{"text": "tea", "score": 1.0, "source_ids": ["turn-1"], "query": 0}]},
    "model": {"choices": [{"message": {"content": '{"summary": "tea"}'}, "finish_reason": "stop"}],
              "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
    "embeddings": {"data": [{"index": 0, "embedding": [1.0, 0.0]}]},
}  # fmt: skip
Mode = Callable[[bytes, bytes, str], Iterator[bytes]]
"""Gives what is sent, in parts: of a good answer, the request, and where somebody listens."""


def sent(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = (f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers)
    return "\r\n".join((*lines, "", "")).encode() + body


def slowly(head: bytes, part: bytes, *, pause: float = 0.0) -> Mode:
    """Send a head, and then a part over and over."""

    def mode(good: bytes, request: bytes, listener: str) -> Iterator[bytes]:
        yield head
        until = time.monotonic() + 60
        while time.monotonic() < until:
            yield part
            time.sleep(pause)

    return mode


def once(make: Callable[[bytes, bytes, str], bytes]) -> Mode:
    return lambda good, request, listener: iter([make(good, request, listener)])


def raw(body: bytes, *headers: str, status: str = "200 OK") -> Mode:
    return once(lambda *_: sent(body, *headers, status=status))


def instead(value: bytes) -> Mode:
    """Put a value in place of each text and number of a good answer."""
    return once(lambda good, *_: sent(re.sub(rb'(?<=: )("[^"]*"|\[?[\d.]+)(?=[,}])', lambda _: value, good)))


def within(value: bytes) -> Mode:
    """Put a value in place of what a good answer carries: its text, its embedding."""
    form = rb'(?<="text": )"tea"|\[1\.0, 0\.0\]|(?<=\{\\"summary\\": )\\"tea\\"'
    return once(lambda good, *_: sent(re.sub(form, lambda _: value, good)))


def away(status: int) -> Mode:
    return once(lambda _, __, listener: sent(b"", f"Location: {listener}/away", status=f"{status} Elsewhere"))


def silent(good: bytes, request: bytes, listener: str) -> Iterator[bytes]:
    time.sleep(60)
    yield b""


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DEEP, BOMB = b"[" * 200_000, gzip.compress(b"[" * 300_000_000, 1)
MODES: dict[str, Mode] = {
    "good": once(lambda good, *_: sent(good)),
    "silent": silent,
    "closes at once": once(lambda *_: b""),
    "no HTTP": once(lambda *_: b"SSH-2.0-x\r\n"),
    "half a header": once(lambda *_: HEAD[:30]),
    "endless header": slowly(HEAD + b"X: ", b"x" * 65536),
    "endless headers": slowly(HEAD, b"X: y\r\n" * 1000),
    "trickling header": slowly(HEAD + b"X: ", b"x", pause=0.5),
    "endless 100": slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "trickling 100": slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.5),
    "endless body": slowly(HEAD + b"\r\n[", b" " * 1_000_000),
    "endless chunks": slowly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + b" " * 0x100000 + b"\r\n"),
    "trickling chunks": slowly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", pause=0.5),
    "chunk of 2^63": once(lambda *_: HEAD + b"Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n["),
    "endless chunk size": slowly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65536),
    "trickling body": slowly(HEAD + b"Content-Length: 100000\r\n\r\n[", b" ", pause=0.5),
    "length of 10^12": slowly(HEAD + b"Content-Length: 1000000000000\r\n\r\n[", b" " * 1_000_000),
    "negative length": once(lambda good, *_: HEAD + b"Content-Length: -5\r\n\r\n" + good),
    "length of 5,000 digits": once(lambda good, *_: HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + good),
    "two lengths": once(lambda good, *_: HEAD + b"Content-Length: 1\r\nContent-Length: 9\r\n\r\n" + good),
    "too short": once(lambda good, *_: HEAD + b"Content-Length: 9999\r\n\r\n" + good),
    "gzip bomb": raw(BOMB, "Content-Encoding: gzip"),
    "gzip in gzip": raw(gzip.compress(BOMB, 1), "Content-Encoding: gzip, gzip"),
    "deflate bomb": raw(zlib.compress(b" " * 300_000_000, 1), "Content-Encoding: deflate"),
    "brotli": raw(b"\xcf\xff\xff\x7f" + b"\0" * 100, "Content-Encoding: br"),
    "zstd": raw(b"\x28\xb5\x2f\xfd\xa4" + b"\xff" * 100, "Content-Encoding: zstd"),
    "gzip bomb of an error": raw(BOMB, "Content-Encoding: gzip", status="500 No"),
    **{f"redirect {status}": away(status) for status in (301, 302, 303, 307, 308)},
    "redirect to a file": raw(b"", "Location: file:///etc/passwd", status="307 Elsewhere"),
    "redirect nowhere": raw(b"", "Location: \x00//[", status="307 Elsewhere"),
    "echo": once(lambda _, request, __: sent(request)),
    "echo of an error": once(lambda _, request, __: sent(request, status="401 No")),
    "echo behind words": once(lambda _, request, __: sent(b"x" * 150 + request, status="400 No")),
    "key as text": within(json.dumps(f"Bearer {KEY}").encode()),
    "429 for ever": raw(b"{}", "Retry-After: 1000000", status="429 Wait"),
    "429 and NaN": raw(b"{}", "Retry-After: nan", status="429 Wait"),
    "503": raw(b"busy", status="503 Busy"),
    "status 999": raw(b"{}", status="999 \x1b[31m"),
    "204": raw(b"", status="204 Nothing"),
    "deep": raw(DEEP),
    "deep value": instead(DEEP),
    "deep within": within(DEEP),
    "5,000 digits": instead(b"9" * 5000),
    "1e999": instead(b"1e999"),
    "NaN": instead(b"NaN"),
    "2^63": instead(b"9223372036854775808"),
    "negative": instead(b"-1"),
    "null": instead(b"null"),
    "lists": instead(b"[[]]"),
    "lone surrogate": within(b'"\\ud800"'),
    "NUL": within(b'"\\u0000\\u202e\\u001b[31m"'),
    "15 MB": within(b'"' + b"x" * 15_000_000 + b'"'),
    "numbers of 15 MB": within(b"[" + b"1," * 7_500_000 + b"1]"),
    "million keys": raw(b"{" + b",".join(b'"%d": 1' % i for i in range(1_000_000)) + b"}"),
    "million rows": raw(b'{"rows": [' + b"{}," * 1_000_000 + b'{}], "data": [' + b"{}," * 1_000_000 + b"{}]}"),
    "a number": raw(b"5"),
    "a web page": raw(b"<html><script>alert(1)</script>"),
    "UTF-16": once(lambda good, *_: sent(good.decode().encode("utf-16"))),
    "no UTF-8": raw(b'{"rows": "\xff\xfe", "data": "\xff"}'),
    "steers the terminal": raw(b"\x1b]0;x\x07\x1b[31m\r\n" * 100, status="500 \x1b[31m"),
}


class Malicious:
    """A server of one kind and one mode; what a memory does before its first search goes well."""

    def __init__(self, kind: str, mode: Mode, listener: str) -> None:
        good = json.dumps(GOOD[kind]).encode()

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError, ValueError):
                    head = b"".join(iter(self.rfile.readline, b"\r\n"))
                    size = re.search(rb"(?i)content-length: *(\d+)", head)
                    request = head + (self.rfile.read(int(size[1])) if size else b"")
                    if re.match(rb"POST \S*/(reset|ingest|wait)\b", head):
                        self.wfile.write(sent(b"{}", "Connection: close"))
                        return
                    for part in mode(good, request, listener):
                        self.wfile.write(part)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads, allow_reuse_address = True, True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def _peak() -> int:
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]


def ask(kind: str, url: str) -> tuple[float, int, str, str]:
    """Ask a server once: the seconds, the most memory, what came of it as text, and an exception that is not ours."""
    import memlab
    from memlab import llm
    from memlab.errors import MemlabError
    from memlab.memories import HttpMemory, collect
    from memlab.summaries.prompts import Session

    data = memlab.sample(["owen"], turns=60)
    data = memlab.Dataset("one", data.format, data.turns, data.sessions, data.questions.head(1))
    service = llm.Service("torture", f"{url}/v1", "m", api_key_env="TORTURE_KEY", timeout=3, max_retries=0)
    request = llm.Request("t", 1, ("x",), "Summarise.", Session)
    calls: dict[str, Callable[[], Any]] = {
        "memory": lambda: collect(HttpMemory(url, timeout=3), data, name="m", k=5, timeout=3).problems.to_dicts(),
        "model": lambda: llm.ask([request], service),
        "embeddings": lambda: llm.embed_texts(service, ["tea"]).shape,
    }
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    begun, told, foreign = time.perf_counter(), "", ""
    try:
        told = str(calls[kind]())
    except MemlabError as error:
        told = str(error)
    except BaseException as error:
        foreign = f"{type(error).__name__}: {str(error)[:200]}"
    return time.perf_counter() - begun, _peak(), told, foreign


def peak(folder: str, arguments: tuple[str, ...]) -> int:
    """Run a verb in this process: the most memory."""
    from memlab.cli import main

    os.chdir(folder)
    sys.argv = ["memlab", *arguments]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()), suppress(SystemExit):
        main()
    return _peak()
