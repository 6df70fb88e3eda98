"""The language-model client against a server that misbehaves in every way."""

from __future__ import annotations

import builtins
import json
import re
import threading
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import ModelError, llm
from memlab.llm import Service, batches, client, embeddings

pytestmark = pytest.mark.skipif(not find_spec("openai"), reason="the extra memlab[llm] is not installed")

KEY = "sk-very-secret-1234567890"

Answer = tuple[int, Any] | None


def rows(texts: list[str]) -> list[dict]:
    return [{"index": i, "embedding": [float(len(t)), 1.0]} for i, t in enumerate(texts)]


def good(texts: list[str]) -> Answer:
    return 200, {"data": rows(texts)}


class Faulty:
    """A local server that answers with a list of faults, the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[Callable[[list[str]], Answer]] = [good]
        self.requests: list[dict] = []
        self.keys: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(request)
                outer.keys.append(self.headers["Authorization"])
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                result = answer(request["input"])
                if result is None:
                    self.close_connection = True
                    self.connection.close()
                    return
                status, body = result
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Retry-After-Ms", "10")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                """Stay quiet."""

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}/v1"
        threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Faulty]:
    faulty = Faulty()
    yield faulty
    faulty.httpd.shutdown()
    faulty.httpd.server_close()


def service(server: Faulty, **changes: Any) -> Service:
    return Service(**{"name": "lab", "base_url": server.url, "model": "m", "timeout": 600, "max_retries": 1, **changes})


def test_vectors_come_in_the_order_of_the_texts(server: Faulty) -> None:
    server.answers = [lambda texts: (200, {"data": rows(texts)[::-1]})]
    vectors = embeddings(service(server), ["a", "bbb", "cc"])
    assert vectors[:, 0].tolist() == [1, 3, 2]
    assert vectors.dtype == np.float32
    assert server.requests[0]["encoding_format"] == "float"


def test_rows_without_an_index_are_in_order(server: Faulty) -> None:
    server.answers = [lambda texts: (200, {"data": [{"embedding": [float(len(t))]} for t in texts]})]
    assert embeddings(service(server), ["aa", "b"]).tolist() == [[2.0], [1.0]]


def test_no_texts_ask_nobody(server: Faulty) -> None:
    assert embeddings(service(server), []).shape == (0, 0)
    assert server.requests == []


def test_requests_are_bounded(server: Faulty) -> None:
    embeddings(service(server), ["x" * 60_000, "y" * 60_000, *["z"] * 70])
    sizes = [len(r["input"]) for r in server.requests]
    assert sum(sizes) == 72
    assert max(sizes) <= llm.BATCH_TEXTS
    assert all(sum(map(len, r["input"])) <= llm.BATCH_CHARS for r in server.requests)


@given(st.lists(st.integers(0, 150_000), max_size=150))
def test_batches_keep_every_text_in_order(lengths: list[int]) -> None:
    blank = "x" * 150_000
    texts = [blank[:n] for n in lengths]
    cut = list(batches(texts))
    assert [t for batch in cut for t in batch] == texts
    for batch in cut:
        assert 0 < len(batch) <= llm.BATCH_TEXTS
        assert len(batch) == 1 or sum(map(len, batch)) <= llm.BATCH_CHARS


@pytest.mark.parametrize("fault", [lambda t: (429, {"error": "slow down"}), lambda t: (503, b"busy"), lambda t: None])
def test_passing_faults_are_retried(server: Faulty, fault: Callable[[list[str]], Answer]) -> None:
    server.answers = [fault, good]
    assert embeddings(service(server), ["abc"]).tolist() == [[3.0, 1.0]]
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("fault", "message", "attempts"),
    [
        (lambda t: (429, {"error": {"message": "slow down"}}), "RateLimitError: Error code: 429", 2),
        (lambda t: (500, {"error": {"message": "it broke"}}), "it broke", 2),
        (lambda t: (401, {"error": {"message": "bad key"}}), "AuthenticationError: Error code: 401", 1),
        (lambda t: (404, {"error": {"message": "no model m"}}), "no model m", 1),
        (lambda t: None, "APIConnectionError", 2),
        (lambda t: (200, b"{not json"), "no JSON", 1),
        (lambda t: (200, b""), "no JSON", 1),
        (lambda t: (200, [1]), "answered list; expected an object with a list 'data'", 1),
        (lambda t: (200, {"error": "x"}), "answered an object with ['error']", 1),
        (lambda t: (200, {"data": [1, 2]}), "expected an object with a list 'data'", 1),
        (lambda t: (200, {"data": rows(t)[:1]}), "gave 1 vectors, with indexes [0], for 2 texts", 1),
        (lambda t: (200, {"data": [rows(t)[0]] * 2}), "with indexes [0, 0], for 2 texts", 1),
        (lambda t: (200, {"data": [{"index": "a"}, {"index": 1}]}), "with indexes ['a', 1], for 2 texts", 1),
        (lambda t: (200, {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}), "widths ['1', '2']", 1),
        (lambda t: (200, {"data": [{"embedding": []}, {"embedding": []}]}), "widths ['0']", 1),
        (lambda t: (200, {"data": [{}, {}]}), "widths ['None']", 1),
        (lambda t: (200, {"data": [{"embedding": "AAAA"}, {"embedding": "AAAA"}]}), "widths ['None']", 1),
        (lambda t: (200, b'{"data": [{"embedding": [NaN]}, {"embedding": [1]}]}'), "a vector with NaN", 1),
        (lambda t: (200, b'{"data": [{"embedding": [1e99]}, {"embedding": [1]}]}'), "infinity", 1),
        (lambda t: (200, {"data": [{"embedding": [None]}, {"embedding": [1]}]}), "no number", 1),
        (lambda t: (200, {"data": [{"embedding": ["x"]}, {"embedding": [1]}]}), "no number", 1),
        (lambda t: (200, {"data": [{"embedding": [[1]]}, {"embedding": [1]}]}), "no number", 1),
    ],
)
def test_lasting_faults_are_one_clear_error(
    server: Faulty, fault: Callable[[list[str]], Answer], message: str, attempts: int
) -> None:
    server.answers = [fault]
    with pytest.raises(ModelError, match=re.escape(message)) as caught:
        embeddings(service(server), ["abc", "d"])
    assert "service 'lab'" in str(caught.value)
    assert "model 'm'" in str(caught.value)
    assert len(server.requests) == attempts


def test_a_width_that_changes_between_requests_is_noticed(server: Faulty) -> None:
    server.answers = [good, lambda texts: (200, {"data": [{"embedding": [1.0] * 3} for _ in texts]})]
    with pytest.raises(ModelError, match="vectors of 2 numbers, then 3"):
        embeddings(service(server), ["a"] * 65)


def test_a_slow_server_is_an_error(server: Faulty) -> None:
    wake = threading.Event()
    server.answers = [lambda texts: (wake.wait(600), good(texts))[1]]
    with pytest.raises(ModelError, match="APITimeoutError"):
        embeddings(service(server, timeout=0.2, max_retries=0), ["a"])
    wake.set()


def test_nobody_listens() -> None:
    with pytest.raises(ModelError, match="APIConnectionError"):
        embeddings(Service("off", "http://127.0.0.1:9/v1", "m", timeout=600, max_retries=0), ["a"])


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_key_is_sent_and_never_shown(server: Faulty, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    echo = {"error": {"message": f"Incorrect API key provided: {KEY}", "headers": f"Bearer {KEY}"}, KEY: KEY}
    server.answers = [lambda texts: (status, echo if status != 200 else {"data": f"Bearer {KEY}"})]
    one = service(server, api_key_env="LAB_KEY", max_retries=0)
    with pytest.raises(ModelError) as caught:
        embeddings(one, ["a"])
    assert server.keys == [f"Bearer {KEY}"]
    shown = "".join(traceback.format_exception(caught.value)) + repr(one) + str(one)
    assert KEY not in shown


def test_the_key_is_not_in_the_log(
    server: Faulty, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    with caplog.at_level("DEBUG"):
        embeddings(service(server, api_key_env="LAB_KEY"), ["a"])
    assert KEY not in caplog.text


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch, server: Faulty) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    with pytest.raises(ModelError, match="environment variable LAB_KEY, which is not set"):
        embeddings(service(server, api_key_env="LAB_KEY"), ["a"])
    assert server.requests == []


def test_the_users_other_key_is_not_sent(server: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embeddings(service(server), ["a"])
    assert KEY not in str(server.keys)


def test_what_an_address_may_hide_is_not_shown() -> None:
    hidden = Service("off", f"http://me:{KEY}@127.0.0.1:9/v1?token={KEY}", "m", timeout=600, max_retries=0)
    with pytest.raises(ModelError, match=r"\(http://127\.0\.0\.1:9/v1, model 'm'\)") as caught:
        embeddings(hidden, ["a"])
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("address", ["", "localhost:8080", "file:///x", "ftp://host/v1"])
def test_an_address_is_checked(address: str) -> None:
    with pytest.raises(ModelError, match="base_url is no address"):
        client(Service("s", address, "m"))


def test_the_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "openai":
            raise ImportError("No module named 'openai'")
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModelError, match=re.escape('pip install "memlab[llm]"')):
        client(Service("s", "http://127.0.0.1:9/v1", "m"))
