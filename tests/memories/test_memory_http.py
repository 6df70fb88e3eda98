"""The four verbs over HTTP, in both directions, and what a server may do wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from talk import excerpt

from memlab.errors import DataError
from memlab.memories import HttpMemory, PipelineMemory, collect, server
from memlab.memories import http as room
from memlab.records import Dataset

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return excerpt(100, scopes=("nadia", "owen"))


@contextmanager
def running(made: ThreadingHTTPServer) -> Iterator[str]:
    with made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer(self)

        def log_message(self, format: str, *arguments: Any) -> None: ...

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        yield url


def respond(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_over_http_as_here(data: Dataset) -> None:
    here = collect(PipelineMemory("bm25", encoder=None), data, name="bm25", k=5)
    with running(server(PipelineMemory("bm25", encoder=None))) as url:
        there = collect(HttpMemory(url), data, name="bm25", k=5)
    assert here.rows.height > 0
    assert there.rows.equals(here.rows)
    assert there.problems.is_empty()


def test_a_token_is_asked_for_and_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(server(PipelineMemory("bm25", encoder=None), token="sesame")) as url:
        with pytest.raises(DataError, match="answers 401"):
            HttpMemory(url).reset("a")
        monkeypatch.setenv(room.TOKEN_VARIABLE, "sesame")
        HttpMemory(url).reset("a")
    with pytest.raises(DataError, match="without a token opens a memory to everybody"):
        server(PipelineMemory("bm25", encoder=None), host="0.0.0.0")


def test_a_redirect_is_not_followed_and_gets_no_token() -> None:
    asked: list[str | None] = []

    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.headers["Authorization"])
        respond(200, b"{}")(handler)

    with (
        answering(elsewhere) as target,
        answering(respond(307, Location=f"{target}/reset")) as url,
        pytest.raises(DataError, match="redirects elsewhere, which is not followed"),
    ):
        HttpMemory(url, token="secret").reset("a")
    assert asked == []


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, b"<html>", "answers with no JSON"),
        (200, b"[" * 100_000, "answers with no JSON"),
        (200, b"[]", "without a list of rows"),
        (200, b'{"rows": [1]}', "without a list of rows"),
        (500, b"it is secret that broke", "answers 500: it is ••• that broke"),
        (200, b"x" * 2_000, "more than 1,000 bytes"),
    ],
)
def test_a_bad_answer_is_one_line(monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, reason: str) -> None:
    if len(body) == 2_000:
        monkeypatch.setattr(room, "LARGEST", 1_000)
    with answering(respond(status, body)) as url, pytest.raises(DataError, match=reason) as error:
        HttpMemory(url, token="secret").search("a", ["who?"], 3, [None])
    assert "secret" not in str(error.value)


def test_nobody_there() -> None:
    made = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    port = made.server_address[1]
    made.server_close()
    with pytest.raises(DataError, match="ConnectError"):
        HttpMemory(f"http://127.0.0.1:{port}").reset("a")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_speaks_the_contract(data: Dataset) -> None:
    turns = [
        {
            "id": "a/s/1",
            "session": "a/s",
            "speaker": "Ann",
            "time": "2024-05-01T10:00:00Z",
            "text": "My dentist is Dr. Lee.",
        },
        {"id": "a/s/2", "session": "a/s", "speaker": "Bo", "time": None, "text": "Nice weather."},
    ]

    def curl(url: str, body: str) -> Any:
        done = subprocess.run(
            ["curl", "-sS", "--noproxy", "*", "-X", "POST", "--data-binary", "@-", url],
            input=body,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    with running(server(PipelineMemory("bm25", encoder=None))) as url:
        assert curl(f"{url}/reset", '{"scope": "a"}') == {}
        assert curl(f"{url}/ingest", json.dumps({"scope": "a", "turns": turns})) == {}
        assert curl(f"{url}/wait", "{}") == {}
        rows = curl(f"{url}/search", '{"scope": "a", "queries": ["Who is the dentist?"], "k": 1}')["rows"]
        assert [(row["query"], row["source_ids"]) for row in rows] == [(0, ["a/s/1"])]
        assert rows[0]["time"].startswith("2024-05-01T10:00")
        for path, body, error in (
            ("search", "{", "JSONDecodeError"),
            ("search", '{"scope": "a"}', "no 'queries'"),
            ("forget", "{}", "no 'forget'"),
            ("ingest", '{"scope": "a", "turns": [{"id": 1}]}', "Error"),
            ("search", '{"scope": "a", "queries": ["x"], "k": "many"}', "ValueError"),
        ):
            assert error in curl(f"{url}/{path}", body)["error"]


def test_what_a_memory_says_of_its_use_comes_over() -> None:
    class Counting(PipelineMemory):
        def usage(self, scope: str) -> dict[str, int]:
            return {"bytes": 12, "tokens_written": 3}

    with running(server(Counting("bm25", encoder=None))) as url:
        assert room.HttpMemory(url).usage("a") == {"bytes": 12, "tokens_written": 3}
    with running(server(PipelineMemory("bm25", encoder=None))) as url:
        assert room.HttpMemory(url).usage("a") == {}


def test_the_openapi_file_describes_what_is_spoken() -> None:
    spec = json.loads((ROOT / "docs" / "memory-openapi.json").read_text())
    assert {path.strip("/") for path in spec["paths"]} == set(room._VERBS)
    turn = spec["components"]["schemas"]["Turn"]
    assert set(turn["properties"]) == set(room.TURNS)
