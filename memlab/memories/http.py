"""A memory behind HTTP: the same four verbs as JSON, and a server of any memory."""

from __future__ import annotations

import hmac
import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from memlab.errors import DataError, MemlabError
from memlab.memories.contract import TURNS, Memory, Rows
from memlab.terminal import short

TOKEN_VARIABLE = "MEMLAB_MEMORY_TOKEN"
LARGEST = 64_000_000
"""The largest answer and the largest request, in bytes."""
PART = 2_000
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class HttpMemory:
    """A memory that answers at an address, by the contract of ``docs/memory-openapi.json``.

    A redirect is an error, so the token goes to no other host; answers are read to :data:`LARGEST` bytes.

    :param url: under which ``/reset``, ``/ingest``, ``/wait`` and ``/search`` are, and ``/usage`` may be.
    :param token: sent as a bearer token; by default the environment variable :data:`TOKEN_VARIABLE`, where it is set.
    :param timeout: seconds for one request.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 600.0) -> None:
        import httpx

        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname or address.query or address.username:
            raise DataError(f"{short(url, 80)!r} is no address of a memory; expected http://HOST:PORT")
        self.url = url.rstrip("/")
        self._token = os.environ.get(TOKEN_VARIABLE, "").strip() if token is None else token
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        self._client = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False, trust_env=False)

    def reset(self, scope: str) -> None:
        self._post("reset", {"scope": scope})

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        for part in turns.iter_slices(PART):
            told = [row | {"time": row["time"] and row["time"].isoformat()} for row in part.iter_rows(named=True)]
            self._post("ingest", {"scope": scope, "turns": told})

    def wait(self) -> None:
        self._post("wait", {})

    def search(self, scope: str, queries: Sequence[str], k: int, now: Sequence[datetime | None]) -> Rows:
        asked = [when and when.isoformat() for when in now]
        answer = self._post("search", {"scope": scope, "queries": list(queries), "k": k, "now": asked})
        rows = answer.get("rows") if isinstance(answer, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise DataError(f"{self.url}/search answers without a list of rows")
        return rows

    def usage(self, scope: str) -> dict[str, Any]:
        answer = self._post("usage", {"scope": scope}, optional=True)
        return answer if isinstance(answer, dict) else {}

    def _post(self, verb: str, body: dict[str, Any], *, optional: bool = False) -> Any:
        import httpx

        place = f"{self.url}/{verb}"
        try:
            with self._client.stream("POST", place, json=body) as response:
                received = bytearray()
                for chunk in response.iter_bytes():
                    received += chunk
                    if len(received) > LARGEST:
                        raise DataError(f"{place} answers with more than {LARGEST:,} bytes")
        except httpx.HTTPError as error:
            raise DataError(self._clean(f"{place}: {type(error).__name__}: {error}")) from None
        if response.is_redirect:
            raise DataError(f"{place} redirects elsewhere, which is not followed; give the address itself")
        if optional and response.status_code == 404:
            return {}
        text = received.decode("utf-8", "replace")
        if response.is_error:
            raise DataError(self._clean(f"{place} answers {response.status_code}: {short(text, 200)}"))
        try:
            return json.loads(text) if text.strip() else {}
        except (ValueError, RecursionError):
            raise DataError(self._clean(f"{place} answers with no JSON: {short(text, 80)!r}")) from None

    def _clean(self, text: str) -> str:
        return text.replace(self._token, "•••") if self._token else text


def server(memory: Memory, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> ThreadingHTTPServer:
    """Make a server of a memory, by the contract that :class:`HttpMemory` speaks; its verbs run one at a time.

    :param port: 0 takes a free one; ``server_address`` says which.
    :param token: asked of every request; needed where the host is not this machine's own.
    :raises DataError: when another host is to be served without a token.

    >>> import threading
    >>> from memlab.memories import HttpMemory, memory, server
    >>> with server(memory(lambda turns, query, k: turns["text"].head(k))) as running:
    ...     threading.Thread(target=running.serve_forever, daemon=True).start()
    ...     there = HttpMemory(f"http://127.0.0.1:{running.server_address[1]}")
    ...     there.reset("ann")
    ...     rows = there.search("ann", ["Who?"], 3, [None])
    ...     running.shutdown()
    >>> rows
    []
    """
    if host not in _LOOPBACK and not token:
        raise DataError(f"serving {host} without a token opens a memory to everybody; set {TOKEN_VARIABLE}")
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.close_connection = True  # whatever of a refused request was not read
            sent = self.headers.get("Authorization", "")
            if token and not hmac.compare_digest(sent.encode(), f"Bearer {token}".encode()):
                return self._answer(401, {"error": "a bearer token is needed"})
            size = self.headers.get("Content-Length", "")
            if not size.isdigit() or int(size) > LARGEST:
                return self._answer(413, {"error": f"send at most {LARGEST:,} bytes, with Content-Length"})
            try:
                body = json.loads(self.rfile.read(int(size)) or b"{}")
                with lock:
                    answer = _VERBS[self.path.rpartition("/")[2]](memory, body)
            except KeyError as error:
                return self._answer(404 if error.args[0] not in _FIELDS else 400, {"error": f"no {error.args[0]!r}"})
            except (ValueError, TypeError, RecursionError, pl.exceptions.PolarsError, MemlabError) as error:
                return self._answer(400, {"error": short(f"{type(error).__name__}: {error}", 300)})
            except Exception as error:  # whatever a memory raises
                return self._answer(500, {"error": short(f"{type(error).__name__}: {error}", 300)})
            return self._answer(200, answer)

        def _answer(self, status: int, body: Any) -> None:
            content = json.dumps(body, default=str).encode()
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing: a memory's queries are private."""

    return ThreadingHTTPServer((host, port), Handler)


def _reset(memory: Memory, body: dict[str, Any]) -> dict[str, Any]:
    memory.reset(str(body["scope"]))
    return {}


def _ingest(memory: Memory, body: dict[str, Any]) -> dict[str, Any]:
    if not all(
        isinstance(turn.get("id"), str) and isinstance(turn.get("text"), str) for turn in map(dict, body["turns"])
    ):
        raise ValueError("every turn needs id and text, both text")
    texts = pl.DataFrame(body["turns"], schema={**TURNS, "time": pl.String()}, strict=True)
    memory.ingest(str(body["scope"]), texts.with_columns(pl.col("time").str.to_datetime("%+", time_zone="UTC")))
    return {}


def _wait(memory: Memory, body: dict[str, Any]) -> dict[str, Any]:
    memory.wait()
    return {}


def _search(memory: Memory, body: dict[str, Any]) -> dict[str, Any]:
    queries = [str(query) for query in body["queries"]]
    asked = body.get("now") or [None] * len(queries)
    now = [when and datetime.fromisoformat(when) for when in asked]
    rows = memory.search(str(body["scope"]), queries, int(body["k"]), now)
    return {"rows": rows.to_dicts() if isinstance(rows, pl.DataFrame) else [dict(row) for row in rows]}


def _usage(memory: Memory, body: dict[str, Any]) -> dict[str, Any]:
    usage = getattr(memory, "usage", None)
    if usage is None:
        raise KeyError("usage")
    return dict(usage(str(body["scope"])))


_FIELDS = ("scope", "turns", "queries", "k")
_VERBS = {"reset": _reset, "ingest": _ingest, "wait": _wait, "search": _search, "usage": _usage}
