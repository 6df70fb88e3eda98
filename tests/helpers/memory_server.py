"""A memory at an address, which answers by the contract of ``docs/memories.md``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import polars as pl

from memlab.memories import TURNS, list_returned_rows, memory


class MemoryServer(ThreadingHTTPServer):
    """Answers for one memory; ``messages`` lists each path and body that came."""

    daemon_threads = True

    def __init__(self, system: Any, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.memory, self.token = memory(system), token
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: MemoryServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.messages.append((self.path, body))
        token = self.server.token
        if token and self.headers.get("Authorization") != f"Bearer {token}":
            self._send(401, {"error": "a bearer token is needed"})
            return
        try:
            answer = _answer(self.server.memory, self.path, body)
        except Exception as error:
            self._send(400, {"error": str(error)})
            return
        self._send(200, answer)

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


def _answer(system: Any, path: str, body: dict[str, Any]) -> dict[str, Any]:
    if path == "/reset":
        system.reset(body["scope"])
    elif path == "/ingest":
        turns = pl.DataFrame(body["turns"], schema={**TURNS, "time": pl.String()})
        time = pl.col("time").str.to_datetime("%+", time_zone="UTC")
        system.ingest(body["scope"], turns.with_columns(time))
    elif path == "/wait":
        system.wait()
    elif path == "/search":
        return {"rows": _search(system, body)}
    elif path == "/usage":
        return dict(system.usage(body["scope"]))
    return {}


def _search(system: Any, body: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for place, query in enumerate(body["queries"]):
        asked = body["now"][place]
        now = datetime.fromisoformat(asked) if asked else None
        found = system.search(body["scope"], query, body["k"], now)
        for row in list_returned_rows(found, body["k"]):
            sent = {name: row[name] for name in ("text", "score", "source_ids", "time")}
            rows.append({"query": place, **sent, "metadata": {"id": row["id"]}})
    return rows


@contextmanager
def serving(system: Any, *, token: str = "") -> Iterator[MemoryServer]:
    """Serve a memory on loopback, asking for a token where one is given."""
    with MemoryServer(system, token) as made:
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield made
        made.shutdown()
