"""A memory at an address: its verbs as JSON over HTTP, by the contract of ``docs/memory-openapi.json``, both sides."""

from __future__ import annotations

import hmac
import json
import os
import re
import socket
import threading
import time
from contextlib import suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import polars as pl

from memlab.config import TOKEN_VARIABLE
from memlab.errors import DataError, MemlabError
from memlab.memories.memory import TURNS, Memory, memory
from memlab.memories.returned_rows import Unanswered, call_with_timeout, error_line, list_returned_rows
from memlab.terminal import shorten_line

LARGEST_BYTES = 16_000_000
"""The largest answer and the largest request, in bytes."""
TURNS_PER_REQUEST = 500
"""Turns of one request."""
CLIENTS, PATIENCE = 64, 10.0
"""Connections at a time, and seconds that one may say nothing."""
_LOOPBACK = ("127.0.0.1", "localhost")


def read_bearer_token(token: str | None = None) -> str:
    """Check a token, by default the environment variable :data:`memlab.config.TOKEN_VARIABLE`; empty where it is unset.

    :raises DataError: when no header can carry it; does not show it.
    """
    token = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    if not re.fullmatch(r"[!-~]*", token):
        raise DataError(f"the token holds white space, or more than ASCII; set {TOKEN_VARIABLE} without")
    return token


class HttpMemory:
    """A memory that answers at an address, by the contract of ``docs/memory-openapi.json``.

    A redirect is an error, so that nothing goes elsewhere; answers are read uncompressed, to :data:`LARGEST_BYTES`
    bytes.

    :param url: under which ``/reset``, ``/ingest``, ``/wait`` and ``/search`` are, and ``/usage`` may be.
    :param token: sent as a bearer token, see :func:`read_bearer_token`.
    :param timeout: seconds for one request, to the last byte of its answer.
    :raises DataError: when it is no address, or the token cannot be sent.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 600.0) -> None:
        import httpx

        try:
            address = httpx.URL(url) if re.fullmatch(r"https?://[!-~]+", url) else httpx.URL()
        except httpx.InvalidURL:
            address = httpx.URL()
        if not address.host or (address.port or 80) > 65535 or address.userinfo or address.query or address.fragment:
            raise DataError(f"{shorten_line(url, 80)!r} is no address of a memory; expected http://HOST:PORT")
        self.url, self._token, self._timeout = url.rstrip("/"), read_bearer_token(token), timeout
        self.settings = {"url": self.url}
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {self._token}"} if self._token else {})
        self._client = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False, trust_env=False)

    def reset(self, scope: str) -> None:
        self._post("reset", {"scope": scope})

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        for part in turns.iter_slices(TURNS_PER_REQUEST):
            rows = [row | {"time": row["time"] and row["time"].isoformat()} for row in part.iter_rows(named=True)]
            self._post("ingest", {"scope": scope, "turns": rows})

    def wait(self) -> None:
        self._post("wait", {})

    def search(self, scope: str, query: str, k: int, now: datetime | None) -> Any:
        asked = now and now.isoformat()
        return self._post("search", {"scope": scope, "queries": [query], "k": k, "now": [asked]})

    def usage(self, scope: str) -> Any:
        return self._post("usage", {"scope": scope}, optional=True)

    def _post(self, verb: str, body: dict[str, Any], *, optional: bool = False) -> Any:
        place = f"{self.url}/{verb}"
        # A header may trickle too, which no time-out of a single read ends.
        status, content = call_with_timeout(self._timeout, place, lambda: self._exchange(place, body))[0]
        if 300 <= status < 400:
            raise Unanswered(f"{place} redirects elsewhere, which is not followed; give the address itself")
        if optional and status == 404:
            return {}
        text = content.decode("utf-8", "replace")
        if status >= 400:
            raise Unanswered(f"{place} answers {status}: {self._clean(text)}")
        try:
            return json.loads(text) if text.strip() else {}
        except (ValueError, RecursionError):
            raise Unanswered(f"{place} answers with no JSON: {self._clean(text)}") from None

    def _exchange(self, place: str, body: dict[str, Any]) -> tuple[int, bytes]:
        import httpx

        until = time.monotonic() + self._timeout
        received = bytearray()
        try:
            with self._client.stream("POST", place, json=body) as response:
                for chunk in response.iter_raw():
                    received += chunk
                    if len(received) > LARGEST_BYTES:
                        raise Unanswered(f"{place} answers with more than {LARGEST_BYTES:,} bytes")
                    if time.monotonic() > until:
                        raise httpx.ReadTimeout("a chunk at a time")
        except httpx.TimeoutException:
            raise Unanswered(f"{place} gave no whole answer within {self._timeout:g} s") from None
        except httpx.HTTPError as error:
            raise Unanswered(f"{place}: {self._clean(f'{type(error).__name__}: {error}')}") from None
        return response.status_code, bytes(received)

    def _clean(self, text: str) -> str:
        return shorten_line(text.replace(self._token, "•••") if self._token else text, 200)


def server(system: Any, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> Server:
    """Make a server of a memory; its verbs run one at a time.

    It takes JSON alone, nothing that a web page sends, and at this machine's own address no other name of it.

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
        raise DataError(f"serving {host} without a token opens a memory to everybody; set {TOKEN_VARIABLE}")
    made = Server((host, port), _Handler)
    made.memory, made.token, made.loopback = memory(system), read_bearer_token(token or ""), host in _LOOPBACK
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
                answer = _run_verb(self.server.memory, self.path.rpartition("/")[2], json.loads(content or b"{}"))
            return self._answer(200, answer)
        except (ValueError, TypeError, LookupError, RecursionError, pl.exceptions.PolarsError, MemlabError) as error:
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
        for n, (query, now) in enumerate(zip(queries, body.get("now") or [None] * len(queries), strict=True)):
            found = system.search(str(body["scope"]), query, k, now and datetime.fromisoformat(now))
            rows += [row | {"query": n, "metadata": {"id": row.get("id")}} for row in list_returned_rows(found, k)[:k]]
        return {"rows": rows}
    elif verb == "usage":
        return dict(system.usage(str(body["scope"])))
    else:
        raise LookupError(f"no verb {verb!r}; there are reset, ingest, wait, search and usage")
    return {}
