"""A memory served at an address, by the contract of ``docs/memory-openapi.json``."""

from __future__ import annotations

import hmac
import json
import re
import socket
import threading
from contextlib import suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import polars as pl

from memlab.config import TOKEN_VARIABLE
from memlab.errors import DataError, MemlabError
from memlab.memories.http_client import LARGEST_BYTES, read_bearer_token
from memlab.memories.memory import TURNS, Memory, memory
from memlab.memories.returned_rows import error_line, list_returned_rows

CLIENTS, PATIENCE = 64, 10.0
"""Connections at a time, and seconds that one may say nothing."""
_LOOPBACK = ("127.0.0.1", "localhost")


def server(
    system: Any, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> Server:
    """Make a server of a memory; its verbs run one at a time.

    It takes JSON alone, nothing that a web page sends, and at this machine's own address no other
    name of it.

    :param system: a memory, or what :func:`memlab.memories.memory` makes one of.
    :param port: 0 takes a free one; ``server_address`` says which.
    :param token: asked of every request; needed where the host is not this machine's own.
    :raises DataError: when another host is to be served without a token.

    >>> import threading
    >>> from memlab.memories import HttpMemory, server
    >>> with server(lambda query, turns, k: turns["text"].head(k)) as running:
    ...     threading.Thread(target=running.serve_forever, daemon=True).start()
    ...     there = HttpMemory(f"http://127.0.0.1:{running.server_address[1]}")
    ...     there.reset("ann")
    ...     rows = there.search("ann", "Who?", 3, None)
    ...     running.shutdown()
    >>> rows
    {'rows': []}
    """
    if host not in _LOOPBACK and not token:
        raise DataError(
            f"serving {host} without a token opens a memory to everybody; set {TOKEN_VARIABLE}"
        )
    made = Server((host, port), _Handler)
    made.memory, made.token, made.loopback = (
        memory(system),
        read_bearer_token(token or ""),
        host in _LOOPBACK,
    )
    return made


class Server(ThreadingHTTPServer):
    """Keeps at most :data:`CLIENTS` connections: for one more, the oldest whose request is not here yet is shut."""

    daemon_threads, request_queue_size = True, 128
    memory: Memory
    token: str
    loopback: bool

    def server_activate(self) -> None:
        self.one_at_a_time = threading.Lock()
        self.silent: dict[Any, None] = {}  # in order of their age
        self.room = threading.Semaphore(CLIENTS)
        super().server_activate()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.room.acquire(blocking=False):
            with suppress(StopIteration, OSError, RuntimeError):
                next(iter(self.silent)).shutdown(socket.SHUT_RDWR)
            if not self.room.acquire(timeout=1):
                return super(ThreadingHTTPServer, self).shutdown_request(request)
        self.silent[request] = None
        return super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.silent.pop(request, None)
        self.room.release()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: somebody hung up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version, timeout = "HTTP/1.1", PATIENCE
    server: Server

    def do_POST(self) -> None:
        self.close_connection = True
        size = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,12}", size) or "Transfer-Encoding" in self.headers:
            return self._answer(400, {"error": "send one Content-Length"})
        if int(size) > LARGEST_BYTES:
            return self._answer(413, {"error": f"send at most {LARGEST_BYTES:,} bytes"})
        content = self.rfile.read(int(size))
        self.server.silent.pop(self.request, None)
        if refused := self._refused():
            return self._answer(*refused)
        try:
            with self.server.one_at_a_time:
                answer = _run_verb(
                    self.server.memory, self.path.rpartition("/")[2], json.loads(content or b"{}")
                )
            return self._answer(200, answer)
        except (
            ValueError,
            TypeError,
            LookupError,
            RecursionError,
            pl.exceptions.PolarsError,
            MemlabError,
        ) as error:
            return self._answer(400, {"error": error_line(error)})
        except Exception as error:  # whatever a memory raises
            return self._answer(500, {"error": error_line(error)})

    def _refused(self) -> tuple[int, dict[str, str]] | None:
        """Say why a request is not taken: a page of the web can send one to this machine too."""
        if self.headers.get_content_type() != "application/json":
            return 415, {"error": "send application/json"}
        name = re.sub(r":\d*$", "", self.headers.get("Host", "")).lower()
        if "Origin" in self.headers or (self.server.loopback and name not in _LOOPBACK):
            return 403, {"error": "sent by a web page, or to another name of this machine"}
        sent, needed = self.headers.get("Authorization", ""), f"Bearer {self.server.token}"
        if self.server.token and not hmac.compare_digest(sent.encode(), needed.encode()):
            return 401, {"error": "a bearer token is needed"}
        return None

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body, default=str).encode()
        with suppress(ConnectionError, TimeoutError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: a memory's queries are private."""


def _run_verb(system: Memory, verb: str, body: dict[str, Any]) -> dict[str, Any]:
    if verb == "wait":
        system.wait()
    elif verb == "reset":
        system.reset(str(body["scope"]))
    elif verb == "ingest":
        turns = pl.DataFrame(body["turns"], schema={**TURNS, "time": pl.String()}, strict=True)
        if turns["id"].null_count() or turns["text"].null_count():
            raise ValueError("every turn needs id and text")
        time = pl.col("time").str.to_datetime("%+", time_zone="UTC")
        system.ingest(str(body["scope"]), turns.with_columns(time))
    elif verb == "search":
        queries, k, rows = [str(query) for query in body["queries"]], int(body["k"]), []
        for n, (query, now) in enumerate(
            zip(queries, body.get("now") or [None] * len(queries), strict=True)
        ):
            found = system.search(str(body["scope"]), query, k, now and datetime.fromisoformat(now))
            rows += [
                row | {"query": n, "metadata": {"id": row.get("id")}}
                for row in list_returned_rows(found, k)[:k]
            ]
        return {"rows": rows}
    elif verb == "usage":
        return dict(system.usage(str(body["scope"])))
    else:
        raise LookupError(f"no verb {verb!r}; there are reset, ingest, wait, search and usage")
    return {}
