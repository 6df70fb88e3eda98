"""The verbs over HTTP, in both directions, and what a server, a client or a web page may do wrong."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from memlab.config import TOKEN_VARIABLE
from memlab.errors import DataError
from memlab.memories import TURNS, HttpMemory, PipelineMemory, collect, server
from memlab.records import Dataset

ROOT = Path(__file__).parents[2]
JSON = {"Content-Type": "application/json"}


def bm25() -> PipelineMemory:
    return PipelineMemory("bm25", encoder=None)


def post(url: str, path: str, body: str | bytes, headers: dict[str, str]) -> tuple[int, Any]:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=20)
    connection.putrequest("POST", path, skip_host="Host" in headers)
    for name, value in ({"Content-Length": str(len(body))} | headers).items():
        connection.putheader(name, value.encode())
    connection.endheaders(body.encode() if isinstance(body, str) else body)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_over_http_as_here(data: Dataset, serving: Any) -> None:
    here = collect(bm25(), data, name="bm25", k=5)
    with serving(server(bm25())) as url:
        there = collect(url, data, name="bm25", k=5)
    assert here.rows.height > 0
    assert there.rows.equals(here.rows)
    assert there.problems.is_empty()

    class Found:
        def add(self, text: str, id: str) -> None:
            self.row = {"memory": text, "metadata": {"id": id, "time": "2024-05-01"}}

        def search(self, query: str) -> list[Any]:
            return [self.row]

        def usage(self) -> dict[str, int]:
            return {"bytes": 12}

    with serving(server(Found)) as url:
        done = collect(url, data, name="found")
    assert done.rows["source_ids"].explode().to_list() == ["ann/m6", "ann/m6", "bo/m6", "bo/m6"]
    assert done.rows["time"].unique().to_list() == ["2024-05-01"]
    assert done.costs["bytes"].to_list() == [12, 12]


def test_the_contract(serving: Any) -> None:
    turns = [
        {"id": "1", "session": "s", "speaker": "Ann", "time": "2024-05-01T10:00:00Z", "text": "My dentist is Dr. Lee."},
        {"id": "2", "session": "s", "speaker": "Bo", "time": None, "text": "Nice weather."},
    ]
    with serving(server(bm25())) as url:
        for verb, body in (("reset", {"scope": "a"}), ("ingest", {"scope": "a", "turns": turns}), ("wait", {})):
            assert post(url, f"/{verb}", json.dumps(body), JSON) == (200, {})
        asked = {"scope": "a", "queries": ["Who is the dentist?", "How is the weather?"], "k": 1}
        rows = post(url, "/search", json.dumps(asked), JSON)[1]["rows"]
        assert [(row["query"], row["source_ids"]) for row in rows] == [(0, ["1"]), (1, ["2"])]
        assert rows[0]["time"].startswith("2024-05-01T10:00")
        for path, wrong, word in (
            ("search", "{", "JSONDecodeError"),
            ("search", '{"scope": "a"}', "queries"),
            ("search", "[" * 100_000, "RecursionError"),
            ("search", "[]", "TypeError"),
            ("forget", "{}", "forget"),
            ("ingest", '{"scope": "a", "turns": [{"id": 1}]}', "Error"),
            ("ingest", '{"scope": "a", "turns": [{"id": "1", "text": "x", "time": "noon"}]}', "Error"),
            ("search", '{"scope": "a", "queries": ["x"], "k": "many"}', "ValueError"),
        ):
            status, answer = post(url, f"/{path}", wrong, JSON)
            assert (status, word in answer["error"]) == (400, True), answer
    spec = json.loads((ROOT / "docs" / "memory-openapi.json").read_text())
    assert set(spec["components"]["schemas"]["Turn"]["properties"]) == set(TURNS)


def test_what_a_web_page_or_a_broken_client_sends_is_refused(serving: Any) -> None:
    forgotten: list[str] = []

    class Notes:
        def reset(self, scope: str) -> None:
            forgotten.append(scope)

        def search(self, query: str, scope: str) -> list[str]:
            return []

    with serving(server(Notes())) as url:
        for headers, status in (
            ({"Content-Type": "text/plain"}, 415),
            ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
            (JSON | {"Origin": "http://evil.example"}, 403),
            (JSON | {"Origin": "null"}, 403),
            (JSON | {"Host": "evil.example:9000"}, 403),
            (JSON | {"Content-Length": "²"}, 400),
            (JSON | {"Content-Length": "9" * 5_000}, 400),
            (JSON | {"Content-Length": "-1"}, 400),
            (JSON | {"Content-Length": "99999999999"}, 413),
            (JSON | {"Transfer-Encoding": "chunked"}, 400),
        ):
            assert post(url, "/reset", '{"scope": "a"}', headers)[0] == status, headers
        assert forgotten == []
        for headers in (JSON | {"Host": "localhost:1"}, {"Content-Type": "application/json; charset=utf-8"}):
            assert post(url, "/reset", '{"scope": "a"}', headers)[0] == 200
    assert forgotten == ["a", "a"]


def test_a_token_is_asked_for_and_sent(monkeypatch: pytest.MonkeyPatch, serving: Any) -> None:
    with serving(server(bm25(), token="sesame")) as url:
        with pytest.raises(DataError, match="401"):
            HttpMemory(url).reset("a")
        monkeypatch.setenv(TOKEN_VARIABLE, "sesame")
        HttpMemory(url).reset("a")
    with pytest.raises(DataError, match="without a token"):
        server(bm25(), host="0.0.0.0")
    for wrong in ("sec\nret", "secret\n", "sec ret", "secrét"):
        for make in (lambda w=wrong: HttpMemory("http://127.0.0.1", token=w), lambda w=wrong: server(bm25(), token=w)):
            with pytest.raises(DataError, match="token") as error:
                make()  # type: ignore[no-untyped-call]
            assert "sec" not in str(error.value)


def test_silent_clients_do_not_make_it_deaf(serving: Any) -> None:
    with serving(server(bm25())) as url, ExitStack() as stack:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        for n in range(130):
            silent = stack.enter_context(socket.create_connection(address))
            silent.sendall((b"", b"POST /reset HTTP/1.1\r\nContent-Length: 99\r\n\r\n{")[n % 2])
        started = time.monotonic()
        HttpMemory(url, timeout=8).reset("a")
        assert time.monotonic() - started < 8


def respond(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65_536)


def trickle(part: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(600):
            handler.wfile.write(part)
            time.sleep(0.1)

    return answer


BOMB = gzip.compress(gzip.compress(bytes(20_000_000)))


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (respond(200, b"<html>"), "no JSON"),
        (respond(200, b"[" * 200_000), "no JSON"),
        (respond(200, b"1" * 9_000), "no JSON"),
        (respond(200, BOMB, Content_Encoding="gzip, gzip"), "no JSON"),
        (respond(500, b"it is secret that broke" + b" secret" * 90), "answers 500: it is ••• that broke"),
        (respond(200, b"{}", Content_Length="9"), "RemoteProtocolError"),
        (endless, "more than 16,000,000 bytes"),
        (trickle(b"\r\n "), "within 0.5 s"),
        (trickle(b"X: y\r\n"), "within 0.5 s"),
        (trickle(b"X"), "within 0.5 s"),
        (lambda handler: handler.wfile.write(b"no HTTP\r\n\r\n"), "RemoteProtocolError"),
    ],
)
def test_a_bad_answer_is_one_line_in_time(answering: Any, answer: Any, word: str) -> None:
    with answering(answer) as url:
        started = time.monotonic()
        patience = 0.5 if "within" in word else 20
        with pytest.raises(DataError, match=word) as error:
            HttpMemory(url, token="secret", timeout=patience).search("a", "who?", 3, None)
        assert time.monotonic() - started < patience + 4
    assert "secret" not in str(error.value)
    assert len(str(error.value)) < 400


def test_nothing_compressed_is_asked_for_and_no_redirect_is_followed(answering: Any) -> None:
    seen: list[tuple[str, str | None]] = []

    def redirect(handler: BaseHTTPRequestHandler) -> None:
        seen.append((handler.path, handler.headers["Accept-Encoding"]))
        respond(307, Location="/elsewhere")(handler)

    with answering(redirect) as url, pytest.raises(DataError, match="redirects"):
        HttpMemory(url, token="secret").search("a", "who?", 3, None)
    assert seen == [("/search", "identity")]
