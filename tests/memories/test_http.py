"""The verbs over HTTP, in both directions, and what a server, a client or a web page may do wrong."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from model_server import KEY, SLOW, UNUSABLE, ModelServer, send

from memlab import memories
from memlab.config import TOKEN_VARIABLE
from memlab.errors import DataError
from memlab.memories import TURNS, HttpMemory, PipelineMemory, collect
from memlab.memories.http_server import Server
from memlab.records import Dataset

ROOT = Path(__file__).parents[2]
JSON = {"Content-Type": "application/json"}


def bm25() -> PipelineMemory:
    return PipelineMemory("bm25", encoder=None)


@contextmanager
def serving(system: Any, **options: Any) -> Iterator[str]:
    """Serve a memory, and give its address."""
    with memories.server(system, **options) as made:
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


def post(url: str, path: str, body: str, headers: dict[str, str]) -> tuple[int, Any]:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=20)
    connection.putrequest("POST", path, skip_host="Host" in headers)
    for name, value in ({"Content-Length": str(len(body))} | headers).items():
        connection.putheader(name, value.encode())
    connection.endheaders(body.encode())
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_over_http_as_here(data: Dataset) -> None:
    here = collect(bm25(), data, name="bm25", k=5)
    with serving(bm25()) as url:
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

    with serving(Found) as url:
        done = collect(url, data, name="found")
    assert done.rows["source_ids"].explode().to_list() == ["ann/2.3", "ann/2.3", "bo/2.3", "bo/2.3"]
    assert done.rows["time"].unique().to_list() == ["2024-05-01"]
    assert done.costs["bytes"].to_list() == [12, 12]


def test_the_contract() -> None:
    turns = [
        {
            "id": "1",
            "session": "s",
            "speaker": "Ann",
            "time": "2024-05-01T10:00:00Z",
            "text": "My dentist is Dr. Lee.",
        },
        {"id": "2", "session": "s", "speaker": "Bo", "time": None, "text": "Nice weather."},
    ]
    with serving(bm25()) as url:
        for verb, body in (
            ("reset", {"scope": "a"}),
            ("ingest", {"scope": "a", "turns": turns}),
            ("wait", {}),
        ):
            assert post(url, f"/{verb}", json.dumps(body), JSON) == (200, {})
        asked = {"scope": "a", "queries": ["Who is the dentist?", "How is the weather?"], "k": 1}
        rows = post(url, "/search", json.dumps(asked), JSON)[1]["rows"]
        assert [(row["query"], row["source_ids"]) for row in rows] == [(0, ["1"]), (1, ["2"])]
        assert rows[0]["time"].startswith("2024-05-01T10:00")
        for path, wrong, word in (
            ("search", "{", "JSONDecodeError"),
            ("search", '{"scope": "a"}', "queries"),
            ("search", "[" * 100_000, "RecursionError"),
            ("forget", "{}", "forget"),
            ("ingest", '{"scope": "a", "turns": [{"id": "1"}]}', "ValueError"),
            (
                "ingest",
                '{"scope": "a", "turns": [{"id": "1", "text": "x", "time": "noon"}]}',
                "Error",
            ),
            ("search", '{"scope": "a", "queries": ["x"], "k": "many"}', "ValueError"),
        ):
            status, answer = post(url, f"/{path}", wrong, JSON)
            assert (status, word in answer["error"]) == (400, True), answer
    spec = json.loads((ROOT / "docs" / "memory-openapi.json").read_text())
    assert set(spec["components"]["schemas"]["Turn"]["properties"]) == set(TURNS)


def test_what_a_web_page_or_a_broken_client_sends_is_refused() -> None:
    forgotten: list[str] = []

    class Notes:
        def reset(self, scope: str) -> None:
            forgotten.append(scope)

        def search(self, query: str, scope: str) -> list[str]:
            return []

    with serving(Notes()) as url:
        for headers, status in (
            ({"Content-Type": "text/plain"}, 415),
            (JSON | {"Origin": "http://evil.example"}, 403),
            (JSON | {"Origin": "null"}, 403),
            (JSON | {"Host": "evil.example:9000"}, 403),
            (JSON | {"Content-Length": "²"}, 400),
            (JSON | {"Content-Length": "9" * 5_000}, 400),
            (JSON | {"Content-Length": "99999999999"}, 413),
            (JSON | {"Transfer-Encoding": "chunked"}, 400),
        ):
            assert post(url, "/reset", '{"scope": "a"}', headers)[0] == status, headers
        assert forgotten == []
        for headers in (
            JSON | {"Host": "localhost:1"},
            {"Content-Type": "application/json; charset=utf-8"},
        ):
            assert post(url, "/reset", '{"scope": "a"}', headers)[0] == 200
    assert forgotten == ["a", "a"]


def test_a_token_is_asked_for_and_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(bm25(), token="sesame") as url:
        with pytest.raises(DataError, match="401"):
            HttpMemory(url).reset("a")
        monkeypatch.setenv(TOKEN_VARIABLE, "sesame")
        HttpMemory(url).reset("a")
    with pytest.raises(DataError, match="without a token"):
        memories.server(bm25(), host="0.0.0.0")
    for wrong in ("sec\nret", "secret\n", "sec ret", "secrét"):
        for take in (HttpMemory, memories.server):
            with pytest.raises(DataError, match="token") as error:
                take("http://127.0.0.1", token=wrong)
            assert "sec" not in str(error.value)


def test_it_serves_with_the_token_of_the_environment(
    memlab_cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[str] = []
    monkeypatch.setattr(Server, "serve_forever", lambda made: tokens.append(made.token))
    arguments = ("serve", "--pipeline", "bm25", "--encoder", "hashing", "--port", "0")
    done = memlab_cli(*arguments, cwd=tmp_path, MEMLAB_MEMORY_TOKEN="sesame")
    assert (done.code, tokens) == (0, ["sesame"])
    assert "at http://127.0.0.1:" in done.out
    done = memlab_cli(*arguments, cwd=tmp_path, MEMLAB_MEMORY_TOKEN="open\nsesame")
    assert (done.code, "MEMLAB_MEMORY_TOKEN" in done.err) == (2, True)
    assert "sesame" not in done.err + done.out


def test_silent_clients_do_not_make_it_deaf() -> None:
    with serving(bm25()) as url, ExitStack() as stack:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        for n in range(130):
            silent = stack.enter_context(socket.create_connection(address))
            silent.sendall((b"", b"POST /reset HTTP/1.1\r\nContent-Length: 99\r\n\r\n{")[n % 2])
        started = time.monotonic()
        HttpMemory(url, timeout=8).reset("a")
        assert time.monotonic() - started < 8


BAD = {
    "no JSON": (UNUSABLE["no JSON"], "no JSON"),
    "deep": (send(200, b"[" * 200_000), "no JSON"),
    "a large number": (send(200, b"1" * 9_000), "no JSON"),
    "gzip bomb": (UNUSABLE["gzip bomb"], "no JSON"),
    "echoed key": (
        send(500, f"it is {KEY} that broke {KEY * 90}"),
        "answers 500: .it is ••• that broke",
    ),
    "endless": (UNUSABLE["endless"], "more than 16,000,000 bytes"),
    "dropped": (UNUSABLE["dropped"], "RemoteProtocolError"),
    "no HTTP": (lambda handler, _: handler.wfile.write(b"no HTTP\r\n\r\n"), "RemoteProtocolError"),
    **{name: (mode, "within 0.5 s") for name, mode in SLOW.items()},
}


@pytest.mark.parametrize(("mode", "word"), BAD.values(), ids=BAD)
def test_a_bad_answer_is_one_line_in_time(server: ModelServer, mode: Any, word: str) -> None:
    server.modes, started = [mode], time.monotonic()
    patience = 0.5 if "within" in word else 20
    with pytest.raises(DataError, match=word) as error:
        HttpMemory(server.url, token=KEY, timeout=patience).search("a", "who?", 3, None)
    assert time.monotonic() - started < patience + 4
    assert KEY not in str(error.value)
    assert len(str(error.value)) < 400


def test_nothing_compressed_is_asked_for_and_no_redirect_is_followed(server: ModelServer) -> None:
    server.modes = [send(307, b"", Location="/elsewhere")]
    with pytest.raises(DataError, match="redirects"):
        HttpMemory(server.url, token=KEY).search("a", "who?", 3, None)
    assert [headers["accept-encoding"] for headers in server.headers] == ["identity"]
