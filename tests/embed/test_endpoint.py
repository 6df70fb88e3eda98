"""The endpoint encoder: against a local HTTP server, and against a real llama.cpp server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import numpy as np
import pytest
from llama_server import llama_server

from memlab import ModelError
from memlab.embed import Encoder, load
from memlab.llm import Service

DIM = 8


class Server(BaseHTTPRequestHandler):
    """Embeds a text as counts of its letters; remembers what it was sent."""

    sent: list[str]
    width = DIM

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        type(self).sent += texts
        rows = [[1.0 + sum(ord(c) % self.width == i for c in t) for i in range(self.width)] for t in texts]
        data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
        body = json.dumps({"data": data[::-1]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture
def server() -> Iterator[type[Server]]:
    handler = type("Handler", (Server,), {"sent": []})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
    handler.url = f"http://127.0.0.1:{httpd.server_port}/v1"
    yield handler
    httpd.shutdown()
    httpd.server_close()


def test_vectors_are_units_in_the_order_of_the_texts(server: type[Server]) -> None:
    encoder = load("endpoint:local", services={"local": Service("local", server.url, "letters")})
    texts = [f"text {i} " * (i % 5) for i in range(150)]
    vectors = encoder.encode(texts, progress=False)
    assert vectors.shape == (150, DIM)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for row in (1, 77, 149):
        np.testing.assert_allclose(vectors[row], encoder.encode([texts[row]])[0], atol=1e-6)
    assert encoder.encode([]).shape == (0, DIM)
    assert isinstance(encoder, Encoder)


def test_texts_of_one_call_share_a_client_and_all_calls_the_certificates(
    server: type[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, made = load("endpoint:local", services={"local": Service("local", server.url, "letters")}), []

    class Counted(httpx.AsyncHTTPTransport):
        def __init__(self, **options: Any) -> None:
            made.append(options["verify"])
            super().__init__(**options)

    monkeypatch.setattr(httpx, "AsyncHTTPTransport", Counted)
    encoder.encode([f"text {i}" for i in range(150)])
    encoder.encode(["a question"], kind="query")
    assert len(made) == 2
    assert made[0] is made[1]


def test_prompts_limits_and_empty_texts(server: type[Server]) -> None:
    service = Service("s", server.url, "letters", max_input=12, query_prompt="ask: ", document_prompt="doc: ")
    encoder = load("endpoint:s", services={"s": service})
    del server.sent[:]
    encoder.encode(["where is it", " \n"], kind="query")
    encoder.encode([""])
    assert server.sent == ["ask: where i", "ask: (empty)", "doc: (empty)"]


def test_a_server_that_changes_its_model_is_noticed(server: type[Server]) -> None:
    encoder = load("endpoint:s", services={"s": Service("s", server.url, "letters")})
    server.width = 5
    with pytest.raises(ModelError, match="gave vectors of 5 numbers, expected 8"):
        encoder.encode(["a"])


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llama_server(serves="embedding") as address:
        yield address


@pytest.mark.slow
def test_a_real_llama_cpp_server(llama: str) -> None:
    service = Service("smol", llama, "smollm2", timeout=1800, max_retries=0)
    encoder = load("endpoint:smol", services={"smol": service})
    doctor, same, other, empty = encoder.encode(["My doctor called.", "My doctor called.", "SELECT * FROM x;", ""])
    assert encoder.dim == 576
    assert doctor @ same > 0.9999
    assert doctor @ other < doctor @ same
    assert np.isfinite(empty).all()
